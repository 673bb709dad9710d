//! What a run was set to do, with every default filled in. Pinned as `policy.toml`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use triphammer_model::config::{ModelApi, PromptWay, SandboxConfig, VendorName};
use triphammer_model::event::Isolation;
use triphammer_model::policy::PipelinePolicy;
use triphammer_model::{AgentName, Limits, Policy, Price, Span};

/// What stands behind an agent's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// A command with its arguments.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A shell line (`--agent-cmd`).
    Shell {
        /// The line.
        line: String,
    },
    /// A recorded session.
    Scripted {
        /// The file, as named in messages; its text is pinned under `pinned/scripts/`.
        script: String,
    },
    /// Our own loop.
    Native {
        /// The model's name.
        model: String,
        /// How its service is spoken to.
        api: ModelApi,
        /// Where the service is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base_url: Option<String>,
        /// The variable that holds the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_env: Option<String>,
    },
    /// A server that speaks the Agent Client Protocol.
    Acp {
        /// The server's program and arguments.
        argv: Vec<String>,
    },
    /// An agent that people know by name.
    Vendor {
        /// Which.
        vendor: VendorName,
        /// Its program, and arguments that stand before ours; empty is the usual program.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        argv: Vec<String>,
        /// The model to ask for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
}

impl AgentKind {
    /// The model that is asked for, where one is configured.
    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Native { model, .. } => Some(model),
            Self::Vendor { model, .. } => model.as_deref(),
            Self::Command { .. } | Self::Shell { .. } | Self::Scripted { .. } | Self::Acp { .. } => None,
        }
    }
}

/// One agent of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSettings {
    /// Its name.
    pub name: AgentName,
    /// How the brief reaches it.
    pub prompt: PromptWay,
    /// Variables beyond the shared environment: `NAME` passes it on, `NAME=value` sets it.
    pub env: Vec<String>,
    /// Hard deadline of one try.
    pub timeout: Span,
    /// Longest silence.
    pub idle_timeout: Span,
    /// Whether it goes on with its session at the next attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continue_session: bool,
    /// What stands behind it.
    pub kind: AgentKind,
}

/// Everything that decides how a run goes, beside the spec and the packs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Order and stopping of gates.
    pub stages: PipelinePolicy,
    /// How the workspace is kept apart.
    pub isolation: Isolation,
    /// All green before any work is no reason to stop.
    pub allow_green: bool,
    /// Whether acceptance is confirmed on a fresh checkout.
    pub confirm_clean: bool,
    /// Bytes kept of each log stream.
    pub log_cap: u64,
    /// Packs by name; absent is discovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<String>>,
    /// Variables beyond the built-in list for agent and gates.
    pub env: Vec<String>,
    /// Variables whose values are redacted beside those that look secret.
    pub secrets: Vec<String>,
    /// Names and globs pruned as caches beside the built-in ones.
    pub skip: Vec<String>,
    /// Commands that make an isolated workspace usable.
    pub setup: Vec<String>,
    /// Ignored files that an isolated workspace gets.
    pub carry: Vec<String>,
    /// What may be spent.
    pub limits: Limits,
    /// The breaker's policy.
    pub policy: Policy,
    /// What agent and gates can reach.
    #[serde(default)]
    pub sandbox: SandboxConfig,
    /// The user's own prices of models, before those that are built in.
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    /// The fallback chain.
    pub chain: Vec<AgentSettings>,
}
