//! The spec: what to build and how "done" is judged.

use serde::{Deserialize, Serialize};

use crate::ids::AgentName;
use crate::money::MicroUsd;
use crate::span::Span;

/// Whether a spec is consent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not yet.
    #[default]
    Draft,
    /// It may run.
    Locked,
}

/// Whether a model judges the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JudgeMode {
    /// Where one is configured.
    #[default]
    Auto,
    /// No acceptance without it.
    Required,
    /// Never.
    Off,
}

/// What integrity findings a spec permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowance {
    /// Tests may become fewer, emptied or ignored.
    TestsRemoved,
}

/// A named shell command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique in the spec: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// The shell command; exit 0 is green.
    pub command: String,
}

/// Where the agent works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceChoice {
    /// A path from the home.
    Path(String),
    /// An empty folder outside any repository.
    New,
}

/// A parsed spec. `None` and empty mean that the key or section is absent; defaults are applied by the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Consent.
    pub status: Status,
    /// Attempts, 1 to 50.
    pub attempts: Option<u32>,
    /// Wall clock.
    pub budget: Option<Span>,
    /// Money.
    pub max_cost: Option<MicroUsd>,
    /// Tokens.
    pub max_tokens: Option<u64>,
    /// Packs by name; `None` is discovery.
    pub gates: Option<Vec<String>>,
    /// Globs of protected files.
    pub protect: Vec<String>,
    /// What integrity findings are permitted.
    pub allow: Vec<Allowance>,
    /// Whether a model judges.
    pub judge: Option<JudgeMode>,
    /// The fallback chain; empty is the configured default.
    pub agents: Vec<AgentName>,
    /// Where the agent works; `None` is the home itself.
    pub workspace: Option<WorkspaceChoice>,
    /// `# Goal`: the goal line first, more sentences may follow.
    pub goal: String,
    /// `## Acceptance`.
    pub acceptance: Vec<String>,
    /// `## Checks`: red before the work.
    pub checks: Vec<Check>,
    /// `## Keep green`: green before the work and after it.
    pub keep_green: Vec<Check>,
    /// `## Constraints`.
    pub constraints: Vec<String>,
    /// `## Non-goals`.
    pub non_goals: Vec<String>,
}

impl Spec {
    /// The goal line: the goal's first sentence, up to a full stop before white space or the end of the line.
    pub fn goal_line(&self) -> &str {
        let first = self.goal.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
        let end = first.find(". ").map_or(first.len(), |i| i + 1);
        &first[..end]
    }
}
