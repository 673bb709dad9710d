//! Exit codes.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Not found or refused.
    Refused,
    /// The command line, the configuration or the spec is wrong.
    Usage,
    /// The code of a run's outcome.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Code(code) => code,
        })
    }
}

/// Why a command did not do what it was asked, in one line, and the exit code that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), exit: Exit::Usage }
    }

    pub(crate) fn refused(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), exit: Exit::Refused }
    }

    pub(crate) fn code(message: impl std::fmt::Display, code: u8) -> Self {
        Self { message: message.to_string(), exit: Exit::Code(code) }
    }
}

/// What a command returns.
pub(crate) type Outcome = Result<Exit, Failure>;
