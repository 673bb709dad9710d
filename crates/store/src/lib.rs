//! The memory: a run's journal, its artifacts, and the folder of all runs.
//!
//! # Theory of operation
//!
//! A run is a folder. Its `journal.jsonl` is the truth: one line an event with the effects that it caused, each line
//! carrying the digest of the one before, each synced before anything it asks for is done. Everything else in the
//! folder is an artifact named by the last `sealed` line, or is derived (`run.json`) and can be rebuilt.
//!
//! A process that works on a run holds a lock on its journal. A journal that ends in the middle of a line was cut
//! short by a crash: the torn end is cut off and named. Damage anywhere else is an error of that run alone; the
//! listing names it and goes on. Damage done while a process writes the journal is undone from what that process
//! remembers, and told.
//!
//! Everything written here passes the redactor first.

mod artifacts;
mod file;
mod journal;
mod removal;
mod retention;
mod run_dir;
mod runs;
mod witness;

pub use artifacts::{ArtifactError, digest_artifacts};
pub use file::{FileError, open_regular, read_bounded};
pub use journal::{Journal, JournalError, JournalText, Torn, WriteError, is_live, read_journal};
pub use removal::{Claim, Going, bytes_on_disk, marked, marked_for_removal, remove_folder};
pub use retention::{Aged, Beyond, Choice, Fate, Limits, choose};
pub use run_dir::RunDir;
pub use runs::{DamagedRun, Listing, ResolveError, Runs, RunsError};
