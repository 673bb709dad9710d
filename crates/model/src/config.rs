//! `triphammer.toml`: what a home or a person has settled for all runs.
//!
//! Every setting is optional here, so that layers can be laid over each other ([`Config::over`]): flag over
//! environment ([`Config::from_env`]) over home over user file. Whoever starts a run fills in what is still
//! missing. An unknown key is an error, and so is a key of a feature that this version does not have: what would
//! do nothing is not silently accepted.

mod agent;
mod breaker;
mod environment;
mod read;
mod sandbox;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::event::Isolation;
use crate::ids::AgentName;
use crate::money::MicroUsd;
use crate::policy::{FlakyPolicy, PipelinePolicy, UnknownCost};
use crate::price::Price;
use crate::span::Span;
use crate::spec::JudgeMode;

pub use agent::{
    AgentConfig, AgentKind, DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, ModelApi, PromptWay, VendorName,
};
pub use breaker::{BadPolicy, BreakerConfig, set_policy};
pub use read::{ConfigError, ConfigProblem};
pub use sandbox::{FenceChoice, NetworkChoice, SandboxConfig, expanded};
pub use value::EnvEntry;

/// The file that makes a folder a home.
pub const FILE: &str = "triphammer.toml";

/// Bytes kept of each log stream when nothing else is configured.
pub const DEFAULT_LOG_CAP: u64 = 64 << 20;

/// The configuration of a home or a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "triphammer.toml")]
pub struct Config {
    /// What holds for every run.
    #[serde(default)]
    pub run: RunConfig,
    /// The agents by name.
    #[serde(default, deserialize_with = "agent::named")]
    pub agents: BTreeMap<AgentName, AgentConfig>,
    /// What must not be written down.
    #[serde(default)]
    pub secrets: SecretsConfig,
    /// What models cost, in dollars per million tokens, by the name of the model; `*` stands for any characters. These
    /// come before the prices that are built in, and before what an agent says that it cost.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// When a run is proven immobile.
    #[serde(default)]
    pub breaker: BreakerConfig,
    /// How workspaces are seen and made usable.
    #[serde(default)]
    pub workspace: WorkspaceConfig,
    /// What agent and gates can reach.
    #[serde(default)]
    pub sandbox: SandboxConfig,
}

/// `[run]`: what holds for every run, unless its spec or a flag says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "a section `[run]`")]
#[schemars(deny_unknown_fields)]
pub struct RunConfig {
    /// The agent, or a list of agents as a fallback chain.
    #[serde(default, deserialize_with = "value::agents")]
    #[schemars(with = "Option<value::AgentsSchema>")]
    pub agent: Option<Vec<AgentName>>,
    /// How many attempts are charged at most, 1 to 50.
    #[serde(default, deserialize_with = "value::attempts")]
    #[schemars(range(min = 1, max = 50))]
    pub attempts: Option<u32>,
    /// Wall clock, such as `4h`.
    #[serde(default)]
    pub budget: Option<Span>,
    /// Money in USD.
    #[serde(default, deserialize_with = "value::dollars")]
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub max_cost: Option<MicroUsd>,
    /// Tokens: input, cached and output together.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// In which order gates run, and when the pipeline stops.
    #[serde(default)]
    pub policy: Option<PipelinePolicy>,
    /// Whether a model judges the work.
    #[serde(default)]
    pub judge: Option<JudgeMode>,
    /// How the workspace is kept apart: `in-place`, `worktree` or `copy`.
    #[serde(default, deserialize_with = "value::isolation")]
    #[schemars(with = "Option<value::IsolationSchema>")]
    pub isolate: Option<Isolation>,
    /// More variables for agent and gates: `NAME` passes one on, `NAME=value` sets one.
    #[serde(default)]
    pub env: Option<Vec<EnvEntry>>,
    /// How often a transient failure of the agent is tried again within an attempt, at most 10 times.
    #[serde(default, deserialize_with = "value::retries")]
    #[schemars(range(max = 10))]
    pub retries: Option<u32>,
    /// Pause before the first retry, such as `1s`; doubled each time.
    #[serde(default)]
    pub retry_backoff: Option<Span>,
    /// What an attempt of unknown cost does under a cap.
    #[serde(default)]
    pub unknown_cost: Option<UnknownCost>,
    /// What a pass does that rests on a gate whose re-runs differed.
    #[serde(default)]
    pub flaky: Option<FlakyPolicy>,
    /// Bytes kept of each log stream, at least 1024; 64 MiB by default.
    #[serde(default, deserialize_with = "value::log_cap")]
    #[schemars(range(min = 1024))]
    pub log_cap: Option<u64>,
}

/// `[secrets]`: variables whose values are redacted in everything that is written, beside those whose names say
/// that they are secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "a section `[secrets]`")]
#[schemars(deny_unknown_fields)]
pub struct SecretsConfig {
    /// The variables' names.
    #[serde(default, deserialize_with = "value::variable_names")]
    pub names: Vec<String>,
}

/// `[workspace]`: how workspaces are seen and made usable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "a section `[workspace]`")]
#[schemars(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// Names and globs of directories that are caches, beside the built-in ones.
    #[serde(default, deserialize_with = "value::globs")]
    pub skip: Option<Vec<String>>,
    /// Shell commands that make an isolated workspace usable.
    #[serde(default, deserialize_with = "value::shell_lines")]
    pub setup: Option<Vec<String>>,
    /// Ignored files, as paths and globs, that an isolated workspace gets.
    #[serde(default, deserialize_with = "value::globs")]
    pub carry: Option<Vec<String>>,
    /// Whether the gates must pass once more on a fresh checkout; by default they must in isolated workspaces.
    #[serde(default)]
    pub confirm_clean: Option<bool>,
}

impl Config {
    /// Lays this configuration over `lower`: what is set here holds, setting by setting. An agent is taken as a
    /// whole, so that a home's command never gets the secrets that the person's file gives to an agent of the
    /// same name. The names of secrets add up.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        let mut agents = lower.agents;
        agents.extend(self.agents);
        let mut prices = lower.prices;
        prices.extend(self.prices);
        let mut names = self.secrets.names;
        names.extend(lower.secrets.names);
        names.sort();
        names.dedup();
        Self {
            run: self.run.over(lower.run),
            agents,
            secrets: SecretsConfig { names },
            prices,
            breaker: self.breaker.over(lower.breaker),
            workspace: self.workspace.over(lower.workspace),
            sandbox: self.sandbox.over(lower.sandbox),
        }
    }
}

impl RunConfig {
    fn over(self, lower: Self) -> Self {
        Self {
            agent: self.agent.or(lower.agent),
            attempts: self.attempts.or(lower.attempts),
            budget: self.budget.or(lower.budget),
            max_cost: self.max_cost.or(lower.max_cost),
            max_tokens: self.max_tokens.or(lower.max_tokens),
            policy: self.policy.or(lower.policy),
            judge: self.judge.or(lower.judge),
            isolate: self.isolate.or(lower.isolate),
            env: self.env.or(lower.env),
            retries: self.retries.or(lower.retries),
            retry_backoff: self.retry_backoff.or(lower.retry_backoff),
            unknown_cost: self.unknown_cost.or(lower.unknown_cost),
            flaky: self.flaky.or(lower.flaky),
            log_cap: self.log_cap.or(lower.log_cap),
        }
    }
}

impl WorkspaceConfig {
    fn over(self, lower: Self) -> Self {
        Self {
            skip: self.skip.or(lower.skip),
            setup: self.setup.or(lower.setup),
            carry: self.carry.or(lower.carry),
            confirm_clean: self.confirm_clean.or(lower.confirm_clean),
        }
    }
}

/// The JSON schema of `triphammer.toml`.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}
