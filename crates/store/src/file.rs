//! Files of a run: written whole or not at all, never through a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file of a run could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{what} `{}`: {source}", path.display())]
pub struct FileError {
    /// What was attempted.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn new(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self { what, path: path.to_owned(), source }
    }
}

/// Writes `bytes` to `path` through a temporary file beside it, so that a reader sees all or nothing.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let write = || -> io::Result<()> {
        // A leftover of a crash, or a planted link, is replaced, not followed.
        match std::fs::remove_file(&partial) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&partial)?;
        file.write_all(bytes)?;
        drop(file);
        std::fs::rename(&partial, path)
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&partial);
        FileError::new("writing", path, e)
    })
}

/// Opens a regular file for reading, following no link and waiting for no FIFO.
///
/// # Errors
/// As the system says; `InvalidInput` when it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Reads a regular file of at most `limit` bytes, following no link.
///
/// # Errors
/// [`FileError`] when it cannot be read, is no regular file, or is larger.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let read = || -> io::Result<Vec<u8>> {
        let file = open_regular(path)?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
        }
        Ok(bytes)
    };
    read().map_err(|e| FileError::new("reading", path, e))
}
