//! The shape of a journal line. Reading, writing and syncing are the store's.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::effect::Effect;
use crate::event::{Event, Stamp};

/// The version of the journal line's shape.
pub const SCHEMA: u32 = 1;

/// One line of `journal.jsonl`: an event and the effects that it caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Number of the line, from 0.
    pub seq: u64,
    /// SHA-256 of the previous line's bytes without its newline; zeros for the first.
    pub prev: Digest,
    /// Wall clock.
    pub at: Timestamp,
    /// Monotonic milliseconds since the writing process took the run up.
    pub elapsed_ms: u64,
    /// What happened.
    pub event: Event,
    /// What the machine wanted done.
    pub effects: Vec<Effect>,
    /// On a `sealed` line: SHA-256 of this line without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

impl JournalLine {
    /// When it happened, by both clocks.
    pub const fn stamp(&self) -> Stamp {
        Stamp { at: self.at, elapsed_ms: self.elapsed_ms }
    }
}
