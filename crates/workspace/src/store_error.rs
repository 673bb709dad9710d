//! What can be wrong with the store, with the place and the cure.

use std::io;
use std::path::{Path, PathBuf};

use triphammer_model::RunId;

use crate::store_format::FORMAT;

/// The store could not do its job.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused.
    #[error("store: `{}` could not be {what} ({source}): check the disk and the permissions of runs/", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// `written`, `read`, `made`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It was made by a newer version.
    #[error(
        "store `{}` has {found}, this version knows format {FORMAT} without extensions: use the version that made it",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// An object is not there.
    #[error(
        "store `{}` does not hold object {id}: the tree cannot be rebuilt from it; `git --git-dir='{}' fsck --full` tells \
         what is wrong",
        path.display(),
        path.display()
    )]
    Missing {
        /// The store.
        path: PathBuf,
        /// The object.
        id: String,
    },
    /// An object is not what its name says.
    #[error(
        "store: `{}`: object {id} is damaged ({what}): trees that hold it cannot be rebuilt, all others can; once a file \
         of that name under objects/ is removed, the same content is stored anew",
        path.display()
    )]
    Damaged {
        /// The object's file, its pack, or the store.
        path: PathBuf,
        /// The object.
        id: String,
        /// What is wrong.
        what: String,
    },
    /// A file of the store is not what it must be.
    #[error("store: `{}` {what}: {cure}", path.display())]
    Strange {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        cure: String,
    },
    /// A git command is at work in it, or was killed in it.
    #[error(
        "store: `{}` is there: a git command changes the store, or was killed while it did; when none runs any more, \
         remove this file and try again",
        path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// It is being cleaned up.
    #[error(
        "store `{}` is being cleaned up by a `triphammer gc`: wait for its end, then try again",
        path.display()
    )]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// No tree of that name was kept.
    #[error("run {run} has no tree `{name}` in the store: `show {run}` lists its attempts")]
    NoSuchTree {
        /// The run.
        run: RunId,
        /// The name.
        name: String,
    },
    /// A run or a name cannot be part of a ref.
    #[error("`{name}` cannot name a tree: use letters, digits, `-`, `_` and inner dots")]
    BadName {
        /// The name.
        name: String,
    },
}

impl StoreError {
    /// The index at `path` is damaged, and hides what its pack holds.
    pub(crate) fn index(path: &Path) -> Self {
        Self::Strange {
            path: path.to_path_buf(),
            what: "is damaged, so what its pack holds is not found".to_owned(),
            cure: format!(
                "`git index-pack '{}'`, from outside the store, makes it anew",
                path.with_extension("pack").display()
            ),
        }
    }
}
