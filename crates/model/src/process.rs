//! Processes as the rooms see them: what to launch, how it ended. The supervisor itself lives in `agent`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A process to launch, with all that it gets. Nothing is inherited.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Program and arguments; never empty. The program is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// Working directory.
    pub dir: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// A file to read standard input from; `None` is an empty, closed input.
    pub stdin: Option<PathBuf>,
    /// Where standard output is streamed to, redacted and capped.
    pub stdout: PathBuf,
    /// Where standard error is streamed to; the same path as `stdout` merges both in order of arrival.
    pub stderr: PathBuf,
    /// Bytes kept of each stream on disk: head, tail and a marker with the exact number between.
    pub log_cap: u64,
    /// Bytes kept of each stream's end in memory.
    pub tail_cap: usize,
    /// Hard deadline.
    pub timeout: Option<Duration>,
    /// Longest silence on both streams.
    pub idle: Option<Duration>,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Where to write the shim's process id and start time, so that a later process can end what is left.
    pub pid_file: Option<PathBuf>,
}

/// How a process's leader ended, as the kernel said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum WaitStatus {
    /// It exited by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It ran past its deadline and was ended; `signal` or `code` is how it then went.
    TimedOut {
        /// Exit code, where it exited after TERM.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// It was silent for too long and was ended.
    Idle {
        /// Exit code, where it exited after TERM.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// The run was interrupted and it was ended.
    Cancelled {
        /// Exit code, where it exited after TERM.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// It never started.
    NotStarted {
        /// The operating system's error number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
    },
    /// Its end was not seen: the supervising process died first.
    Unknown,
}

impl WaitStatus {
    /// Exited by itself with code 0.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }
}

impl std::fmt::Display for WaitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tail = |code: Option<i32>, signal: Option<i32>| match (code, signal) {
            (Some(code), _) => format!(" (then exit code {code})"),
            (None, Some(signal)) => format!(" (by signal {signal})"),
            (None, None) => String::new(),
        };
        match *self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signalled { signal } => write!(f, "killed by signal {signal}"),
            Self::TimedOut { code, signal } => write!(f, "ended at its deadline{}", tail(code, signal)),
            Self::Idle { code, signal } => write!(f, "ended after too long a silence{}", tail(code, signal)),
            Self::Cancelled { code, signal } => write!(f, "ended by the interrupt{}", tail(code, signal)),
            Self::NotStarted { errno: Some(errno) } => {
                write!(f, "could not be started: {}", io::Error::from_raw_os_error(errno))
            }
            Self::NotStarted { errno: None } => f.write_str("could not be started"),
            Self::Unknown => f.write_str("end not seen"),
        }
    }
}

/// What a stream carried.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Exact number of bytes that the process wrote (before redaction).
    pub bytes: u64,
    /// The end of the stream, redacted, at most the launch's `tail_cap`.
    pub tail: Vec<u8>,
}

/// A process tree that is dead.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How the leader ended.
    pub wait: WaitStatus,
    /// How long it ran.
    pub duration: Duration,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error; empty when merged into `stdout`.
    pub stderr: Captured,
    /// Descendants that were still alive when the leader had ended and were killed.
    pub killed: u32,
}

/// Supervising a process failed, as opposed to the process failing.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A log, pid file or pipe could not be made or written.
    #[error("supervising `{program}`: {what}")]
    Supervision {
        /// The program.
        program: String,
        /// What was attempted.
        what: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// Hears standard output as it comes, redacted, in pieces of any size.
pub type Ear<'a> = &'a mut dyn FnMut(&[u8]);

/// Runs a process tree to its verified end.
pub trait Supervisor: Send + Sync {
    /// Runs `launch` until its leader ends, its deadline passes or `cancel` is raised; then nothing of its
    /// process tree is alive.
    ///
    /// # Errors
    /// [`LaunchError`] when the supervision itself fails; a program that does not start is an [`Ended`] with
    /// [`WaitStatus::NotStarted`].
    fn run(&self, launch: &Launch, cancel: &Cancel) -> Result<Ended, LaunchError> {
        self.run_heard(launch, cancel, &mut |_| {})
    }

    /// The same, with an ear on standard output.
    ///
    /// # Errors
    /// As [`Supervisor::run`].
    fn run_heard(&self, launch: &Launch, cancel: &Cancel, ear: Ear<'_>) -> Result<Ended, LaunchError>;
}

/// How urgently a run is asked to stop. Shared between the signal handler and everything that waits.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicU8>);

impl Cancel {
    /// Nobody asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop; asked twice, to stop at once.
    pub fn raise(&self) {
        // Saturates at 2: more is not more urgent.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some((n + 1).min(2)));
    }

    /// Whether anybody asked.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Whether it is to be at once: KILL without TERM and grace.
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }
}
