//! Writing and deleting beneath a folder, without ever following a link that lies in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, fstat, ftruncate, mkdirat, openat, statat, unlinkat};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes a file, with the folders above it. Returns whether it was not there before.
pub(crate) fn write(root: &Path, path: &Path, content: &[u8], executable: bool) -> io::Result<bool> {
    let (folder, name) = descend(root, path, true)?;
    let added = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_err();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let mut file = File::from(openat(&folder, name, flags, mode)?);
    let stat = fstat(&file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is there and no plain file"));
    }
    ftruncate(&file, 0)?;
    file.write_all(content)?;
    if executable {
        let now = Mode::from_raw_mode(stat.st_mode);
        // Whoever may read it may run it.
        let runs = Mode::from_raw_mode((now.as_raw_mode() & 0o444) >> 2);
        fchmod(&file, Mode::from_raw_mode(now.as_raw_mode() & 0o7777) | runs)?;
    }
    Ok(added)
}

/// Opens a plain file for reading.
pub(crate) fn open(root: &Path, path: &Path) -> io::Result<File> {
    let (folder, name) = descend(root, path, false)?;
    // NONBLOCK so that opening a FIFO returns.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&folder, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    Ok(file)
}

/// Deletes a file or link.
pub(crate) fn delete(root: &Path, path: &Path) -> io::Result<()> {
    let (folder, name) = descend(root, path, false)?;
    Ok(unlinkat(&folder, name, AtFlags::empty())?)
}

/// Opens the folder in which `path` lies, one part at a time.
fn descend<'p>(root: &Path, path: &'p Path, make: bool) -> io::Result<(OwnedFd, &'p OsStr)> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the workspace")),
        }
    }
    let name = parts.pop().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names nothing"))?;
    let mut folder = openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for part in parts {
        if make {
            match mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        folder = openat(&folder, part, FOLDER, Mode::empty())?;
    }
    Ok((folder, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn writes_makes_folders_and_deletes() {
        let dir = tempfile::tempdir().unwrap();
        let path = Path::new("a/b/c");
        assert!(write(dir.path(), path, b"one", false).unwrap());
        assert!(!write(dir.path(), path, b"2", true).unwrap());
        let file = dir.path().join(path);
        assert_eq!(std::fs::read(&file).unwrap(), b"2");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o111, 0o111);
        delete(dir.path(), path).unwrap();
        assert!(!file.exists());
        assert!(delete(dir.path(), path).is_err());
    }

    #[test]
    fn follows_no_link_and_leaves_by_no_word() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(dir.path().join("outside")).unwrap();
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join("outside/victim"), "keep").unwrap();
        symlink(dir.path().join("outside"), root.join("way")).unwrap();
        symlink(dir.path().join("outside/victim"), root.join("link")).unwrap();
        for path in ["way/victim", "way/new", "link", "../outside/victim", "/tmp/x", ""] {
            assert!(write(&root, Path::new(path), b"evil", false).is_err(), "{path}");
        }
        for path in ["way/victim", "../outside/victim"] {
            assert!(delete(&root, Path::new(path)).is_err(), "{path}");
        }
        for path in ["way/victim", "link", "../outside/victim", "way", "."] {
            assert!(open(&root, Path::new(path)).is_err(), "{path}");
        }
        assert_eq!(std::fs::read(dir.path().join("outside/victim")).unwrap(), b"keep");
        assert!(!dir.path().join("outside/new").exists());
        delete(&root, Path::new("link")).unwrap();
        assert!(dir.path().join("outside/victim").exists(), "the link goes, not what it names");
    }
}
