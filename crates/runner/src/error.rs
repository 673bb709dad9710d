//! Why a run could not begin, or could not be carried on.

use triphammer_model::SuspendReason;
use triphammer_store::{FileError, WriteError};

/// A run could not begin; nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The spec, the configuration or the command line is wrong.
    #[error("{0}")]
    Config(String),
    /// The machine did not let it: a full or read-only disk, a workspace that another run holds.
    #[error("{0}")]
    Infrastructure(String),
    /// What a run was pinned to has been altered: it was rejected as tampered.
    #[error("{0}")]
    Tampered(String),
}

impl StartError {
    /// A configuration error from anything that says what and where.
    pub fn config(error: impl std::fmt::Display) -> Self {
        Self::Config(error.to_string())
    }

    /// An infrastructure error from anything that says what and where.
    pub fn infrastructure(error: impl std::fmt::Display) -> Self {
        Self::Infrastructure(error.to_string())
    }

    /// The process exit code.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Tampered(_) => 1,
            Self::Config(_) => 2,
            Self::Infrastructure(_) => 5,
        }
    }
}

/// A run stopped without an end of its own: its journal could not be written. What was written stays readable.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The journal.
    #[error("{0}; the run stopped here and can be resumed")]
    Journal(#[from] WriteError),
    /// The machine asked for nothing where it had to ask for something.
    #[error("bug: after `{0}` the machine asked for nothing")]
    Stuck(&'static str),
}

/// Something around the work failed while an effect was carried out.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) reason: SuspendReason,
    pub(crate) detail: String,
}

impl Trouble {
    pub(crate) fn new(what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut detail = format!("{what}: {error}");
        let mut full = is_disk_full(error);
        let mut source = error.source();
        while let Some(inner) = source {
            full |= is_disk_full(inner);
            let text = inner.to_string();
            if !detail.contains(&text) {
                detail.push_str(": ");
                detail.push_str(&text);
            }
            source = inner.source();
        }
        let reason = if full { SuspendReason::DiskFull } else { SuspendReason::Infrastructure };
        Self { reason, detail }
    }
}

fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error
        .downcast_ref::<std::io::Error>()
        .or_else(|| error.downcast_ref::<FileError>().map(|f| &f.source));
    io.is_some_and(|e| {
        matches!(e.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
    })
}

/// Adds what was attempted to an error of any room.
pub(crate) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Trouble>;
}

impl<T, E: std::error::Error + 'static> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, Trouble> {
        self.map_err(|e| Trouble::new(what, &e))
    }
}
