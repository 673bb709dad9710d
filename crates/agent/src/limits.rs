//! How long a process may take and how much of its output is kept.

use std::time::Duration;

/// Bounds of an agent's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Hard deadline of a try.
    pub timeout: Option<Duration>,
    /// Longest silence on both streams.
    pub idle: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Bytes kept of each stream on disk.
    pub log_cap: u64,
    /// Bytes kept of each stream's end in memory.
    pub tail_cap: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_mins(45)),
            idle: Some(Duration::from_mins(15)),
            grace: Duration::from_secs(10),
            log_cap: 64 * 1024 * 1024,
            tail_cap: 64 * 1024,
        }
    }
}
