//! What a person, or a program, is told while a run goes on.

use std::path::Path;

use triphammer_gate::GateProgress;
use triphammer_model::{Attempt, JournalLine, Outcome, Plan, RunId, RunSummary};

/// Something worth telling.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The run directory exists; comes before everything else.
    Launched {
        /// The run.
        run: &'a RunId,
        /// Its folder.
        dir: &'a Path,
    },
    /// What is going to happen.
    Planned(&'a Plan),
    /// A line was added to the journal.
    Recorded(&'a JournalLine),
    /// A gate began or ended.
    Gate(GateProgress<'a>),
    /// Something a person should know and no event says.
    Remark(&'a str),
    /// An agent starts to work in the workspace.
    Working {
        /// The attempt.
        attempt: Attempt,
        /// Where.
        workspace: &'a Path,
    },
    /// The run is over, for now or for good, and sealed.
    Done {
        /// How it ended.
        outcome: &'a Outcome,
        /// What became of it.
        summary: &'a RunSummary,
    },
}

/// Listens to a run.
pub trait Watcher: Sync {
    /// Takes a notice in. Must not block.
    fn notice(&self, notice: &Notice<'_>);
}

/// Listens and says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Watcher for Silent {
    fn notice(&self, _: &Notice<'_>) {}
}
