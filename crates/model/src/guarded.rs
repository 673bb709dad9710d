//! What an agent says it ran that cannot be undone: a report of claims, which nobody saw happen.

use serde::{Deserialize, Serialize};

/// A command of which the guard says that it cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// The simple command, as the agent wrote it; bounded.
    pub command: String,
    /// What it does, as a rule's name: `guard/forced-push`.
    pub rule: String,
    /// What of the command says so.
    pub why: String,
    /// False where it hangs on something that only the running shell knew.
    pub sure: bool,
    /// The agent asked before and was refused, by the guard or by a rule of its own: it was not run. Else the agent says
    /// that it ran.
    pub refused: bool,
}

/// `guard.json`: written for an attempt whose agent claims such commands. It decides nothing: a claim is no observation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardReport {
    /// Schema version of this file.
    pub schema: u32,
    /// The commands, those that the agent says it ran first.
    pub reported: Vec<Reported>,
    /// How many more there are.
    #[serde(default)]
    pub left_out: u64,
}
