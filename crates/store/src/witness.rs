//! What a file was like when it was last written here, so that another hand is seen without reading the file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file's identity, size and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    /// No program can set this one back.
    changed: (i64, i64),
}

impl Witness {
    fn of(meta: &Metadata) -> Self {
        Self {
            place: (meta.dev(), meta.ino()),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Of an open file.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        file.metadata().map(|meta| Self::of(&meta))
    }

    /// Of whatever lies at `path`; a link is not followed.
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        std::fs::symlink_metadata(path).map(|meta| Self::of(&meta))
    }

    /// Whether both are the same file, whatever became of it.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.place == other.place
    }
}
