//! Opening files below a folder without ever following a link or opening a FIFO.
//!
//! What lies in a workspace was put there by an agent. A report file may be a link to the person's keys, a FIFO
//! that never answers, or a sparse file of a terabyte; none of these may hang, leak or exhaust us.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

/// The parts of a relative path; `..`, an empty path and absolute paths are refused.
fn parts(rel: &[u8]) -> io::Result<Vec<&[u8]>> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidInput, "the path leaves its folder");
    if rel.first() == Some(&b'/') {
        return Err(refuse());
    }
    let parts: Vec<&[u8]> = rel.split(|b| *b == b'/').filter(|p| !p.is_empty() && *p != b".").collect();
    if parts.contains(&&b".."[..]) { Err(refuse()) } else { Ok(parts) }
}

/// Opens the folder that holds the last part of `rel`.
fn open_parent<'a>(root: &Path, rel: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
    let parts = parts(rel)?;
    let Some((last, dirs)) = parts.split_last() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is empty"));
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
    for part in dirs {
        dir = rustix::fs::openat(&dir, *part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok((dir, last))
}

fn stat(root: &Path, rel: &[u8]) -> io::Result<Stat> {
    let (dir, name) = open_parent(root, rel)?;
    Ok(rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether `rel` is a regular file, reached through real folders only.
pub(crate) fn is_file(root: &Path, rel: &[u8]) -> bool {
    stat(root, rel).is_ok_and(|s| kind(&s).is_file())
}

/// Whether anything lies at `rel`, reached through real folders only. The folder itself exists.
pub(crate) fn exists(root: &Path, rel: &[u8]) -> bool {
    parts(rel).is_ok_and(|p| p.is_empty()) || stat(root, rel).is_ok()
}

/// Whether `rel` is a folder, reached through real folders only. The root itself is one.
pub(crate) fn is_dir(root: &Path, rel: &[u8]) -> bool {
    parts(rel).is_ok_and(|p| p.is_empty()) || stat(root, rel).is_ok_and(|s| kind(&s).is_dir())
}

/// Opens a regular file for reading.
pub(crate) fn open(root: &Path, rel: &[u8]) -> io::Result<(File, u64)> {
    let (dir, name) = open_parent(root, rel)?;
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    // Looked at before it is opened: opening a FIFO or a device is an act by itself.
    if !kind(&rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?).is_file() {
        return Err(not_regular());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
    // And again afterwards, for what may have been swapped in between.
    let stat = rustix::fs::fstat(&fd)?;
    if !kind(&stat).is_file() {
        return Err(not_regular());
    }
    Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(u64::MAX)))
}

/// Reads a regular file of at most `cap` bytes; a larger one is an error, never a silent prefix.
pub(crate) fn read(root: &Path, rel: &[u8], cap: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {cap} bytes"));
    let (file, size) = open(root, rel)?;
    if size > cap {
        return Err(too_large());
    }
    let mut out = Vec::new();
    file.take(cap.saturating_add(1)).read_to_end(&mut out)?;
    if out.len() as u64 > cap { Err(too_large()) } else { Ok(out) }
}

/// Removes a file or link at `rel`; `false` when there is none. A folder stays.
pub(crate) fn remove(root: &Path, rel: &[u8]) -> io::Result<bool> {
    let gone = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    let (dir, name) = match open_parent(root, rel) {
        Ok(found) => found,
        Err(e) if gone(&e) => return Ok(false),
        Err(e) => return Err(e),
    };
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn follows_no_link_and_opens_no_fifo() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "key").unwrap();
        std::fs::write(root.join("sub/ok"), "fine").unwrap();
        symlink(outer.path().join("secret"), root.join("link")).unwrap();
        symlink(outer.path(), root.join("out")).unwrap();
        rustix::fs::mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();

        assert_eq!(read(&root, b"sub/ok", 10).unwrap(), b"fine");
        assert_eq!(read(&root, b"./sub//ok", 10).unwrap(), b"fine");
        for bad in [&b"link"[..], b"out/secret", b"fifo", b"sub", b"../secret", b"/etc/passwd", b"", b"none"]
        {
            assert!(read(&root, bad, 10).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        assert!(read(&root, b"sub/ok", 3).is_err(), "a prefix is not the file");
        assert!(is_file(&root, b"sub/ok") && !is_file(&root, b"link") && exists(&root, b"link"));
        assert!(is_dir(&root, b"sub") && is_dir(&root, b".") && !is_dir(&root, b"out"));
    }

    #[test]
    fn removes_the_link_and_not_its_target() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(outer.path().join("kept"), "x").unwrap();
        symlink(outer.path().join("kept"), root.join("report.xml")).unwrap();
        symlink(outer.path(), root.join("out")).unwrap();
        assert!(remove(&root, b"report.xml").unwrap());
        assert!(!remove(&root, b"report.xml").unwrap());
        assert!(!remove(&root, b"no/such/folder").unwrap());
        assert!(remove(&root, b"out/kept").is_err());
        assert!(outer.path().join("kept").exists());
    }
}
