//! Opening files that an agent may have had its hands on: no links, nothing that blocks, nothing but plain files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, ftruncate, openat};

/// Opens a plain file for reading. A link, a FIFO, a socket or a device is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    plain(openat(CWD, path, OFlags::RDONLY | COMMON, Mode::empty())?.into())
}

/// Makes or empties a plain file for writing. A file that has another name too is refused: emptying it would
/// empty whatever it was linked to.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let file = plain(openat(CWD, path, OFlags::RDWR | OFlags::CREATE | COMMON, mode)?.into())?;
    if fstat(&file)?.st_nlink > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has a second name (a hard link)"));
    }
    ftruncate(&file, 0)?;
    Ok(file)
}

/// Reads a plain file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

// NONBLOCK so that opening a FIFO returns; what was opened is looked at before anything else.
const COMMON: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

fn plain(file: File) -> io::Result<File> {
    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"))
    }
}
