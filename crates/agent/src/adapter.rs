//! What is the same for every adapter that starts a process.

use triphammer_model::{AgentName, Redactor};

use crate::limits::ProcessLimits;

/// The common part of an agent's configuration.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The agent's name.
    pub name: AgentName,
    /// Its bounds.
    pub limits: ProcessLimits,
    /// Names of variables that it gets beyond the shared environment; the values are in the task.
    pub env_names: Vec<String>,
    /// Takes secrets out of what it says.
    pub redactor: Redactor,
}
