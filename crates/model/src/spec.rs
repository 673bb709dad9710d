//! The spec: what to build and how "done" is judged.
//!
//! Its file is Markdown below flat frontmatter. Decisions that the format leaves open:
//!
//! - A heading begins at the start of its line. A goal's line that begins with `#` or `<!--` is written with a
//!   backslash before it; the backslash is not part of the goal.
//! - A comment begins with `<!--` at the start of a line and ends at the next `-->`; it is read over, and lost in
//!   printing. Anywhere else `<!--` is text.
//! - A bullet goes on over deeper indented lines. In a list of texts the lines are joined by a space, and an
//!   unindented line right below goes on too. In a list of commands they are lines of the command, their shared
//!   indentation taken away; after `- name: |` the command begins on the next line.

mod body;
mod fault;
mod front;
mod parse;
mod print;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod value;

use serde::{Deserialize, Serialize};

use crate::ids::AgentName;
use crate::money::MicroUsd;
use crate::span::Span;

pub use fault::{SpecError, SpecErrors, SpecFault};
pub(crate) use front::glob_trouble;
pub use status::{SetStatusError, set_status};
pub use template::template;
pub(crate) use text::is_name;

/// How many attempts a run may have at most.
pub const MAX_ATTEMPTS: u32 = 50;

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
    /// Its name, unique in the spec, keep-greens included: ASCII letters, digits, `-` and `_`. Its gate is called
    /// `accept-<name>`.
    pub name: String,
    /// The shell command, of one line or several; exit 0 is green.
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
    /// A trivial locked spec whose goal is `text`. An empty text gives an empty goal, which the caller must
    /// refuse, as [`Spec::parse`] does.
    pub fn for_task(task: &str) -> Self {
        Self { status: Status::Locked, goal: text::paragraphs(task), ..Self::default() }
    }

    /// The goal line: the goal's first sentence, up to a full stop before white space or the end of the line.
    pub fn goal_line(&self) -> String {
        let paragraph: Vec<&str> = self
            .goal
            .lines()
            .map(str::trim)
            .skip_while(|line| line.is_empty())
            .take_while(|line| !line.is_empty())
            .collect();
        let mut line = paragraph.join(" ");
        let stop = line.match_indices('.').find(|(i, _)| line[i + 1..].starts_with(char::is_whitespace));
        if let Some((i, _)) = stop {
            line.truncate(i + 1);
        }
        line
    }
}
