//! The trait behind which every agent works.

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use crate::ids::{AgentName, Attempt, RunId};
use crate::process::{Cancel, LaunchError, Supervisor, WaitStatus};
use crate::receipt::Receipt;

/// One try of one attempt, as the agent gets it.
#[derive(Clone, Debug)]
pub struct Task {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: Attempt,
    /// Which try within the attempt, from 1.
    pub try_no: u32,
    /// The workspace, absolute.
    pub workspace: PathBuf,
    /// The brief.
    pub brief: String,
    /// A file with the same text, absolute.
    pub brief_file: PathBuf,
    /// The attempt's folder in the run directory: `transcript.jsonl`, `stdout.log`, `stderr.log` go here.
    pub dir: PathBuf,
    /// A private folder for the agent's scratch files, such as the receipt file; outside the workspace.
    pub scratch: PathBuf,
    /// Whether a write fence holds the agent.
    pub fenced: bool,
    /// A session of an earlier attempt that the agent goes on with, where it can.
    pub session: Option<String>,
    /// The environment that agent and gates share. Secrets that this agent is configured to get are included.
    pub env: Vec<(OsString, OsString)>,
}

/// What an agent did, as far as its process and its own words tell.
#[derive(Clone, Debug)]
pub struct Performance {
    /// What it claims.
    pub receipt: Receipt,
    /// How its leader ended.
    pub wait: WaitStatus,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
}

/// An agent could not be used at all.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Supervision failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its configuration or script is wrong.
    #[error("agent `{agent}`: {what}")]
    Config {
        /// The agent.
        agent: AgentName,
        /// What is wrong and what to do.
        what: String,
    },
    /// A file of its own could not be read or written.
    #[error("agent `{agent}`: {what}")]
    File {
        /// The agent.
        agent: AgentName,
        /// What was attempted.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// What `run --plan` says about an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlan {
    /// Its kind: `command`, `scripted`, ...
    pub kind: String,
    /// What is run, one argument an entry; secrets never appear.
    pub argv: Vec<String>,
    /// How the brief reaches it: `stdin`, `file`, `argument`.
    pub prompt: String,
    /// Names of variables it gets beyond the shared environment.
    pub env: Vec<String>,
    /// What is not known about it, such as its cost.
    pub unknowns: Vec<String>,
}

/// Whatever writes the code.
pub trait Agent: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &AgentName;

    /// What would be run, in a write fence or without one; spends nothing.
    fn plan(&self, fenced: bool) -> AgentPlan;

    /// Checks, without spending anything, that it could work: its program exists, its script parses.
    ///
    /// # Errors
    /// [`AgentError::Config`] with what to do.
    fn check(&self, path_var: &std::ffi::OsStr, workspace: &Path) -> Result<(), AgentError>;

    /// Works on `task` until its process tree is dead.
    ///
    /// # Errors
    /// [`AgentError`] when it could not be used at all; whatever goes wrong on its own side is a fault in the
    /// receipt.
    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError>;
}
