//! Placing files into a folder beneath its descriptor: never through a link, never half a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::git::arg;
use crate::root::{Root, ancestors, kind_of, split, stat_at};

/// What becomes of something that stands where a directory is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InTheWay {
    /// It stays, and placing fails with `ENOTDIR`.
    Stays,
    /// It is removed; a link is removed itself, not what it points at.
    Goes,
}

/// What is placed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thing<'a> {
    /// A regular file with these bytes and permission bits.
    File(&'a [u8], u32),
    /// A regular file with what this file holds from its start, and permission bits.
    Copy(&'a File, u32),
    /// A link to this target.
    Link(&'a [u8]),
}

/// Something that lies beside its place, complete. Dropped without [`Staged::commit`] it is removed.
#[derive(Debug)]
pub(crate) struct Staged {
    dir: OwnedFd,
    beside: OsString,
    name: Vec<u8>,
    done: bool,
}

impl Staged {
    /// Renames it into its place; what was there goes, a directory excepted.
    pub(crate) fn commit(mut self) -> Result<(), Errno> {
        rustix::fs::renameat(&self.dir, &self.beside, &self.dir, arg(&self.name))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.done {
            // The reason why it was not committed matters more than the leftover.
            let _ = rustix::fs::unlinkat(&self.dir, &self.beside, AtFlags::empty());
        }
    }
}

fn fresh_name(purpose: &str) -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    OsString::from_vec(format!(".triphammer-{purpose}-{}-{next}", std::process::id()).into_bytes())
}

fn raw(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o7777) as RawMode)
}

/// Runs `act` on an opened directory; when permission is what lacks, gives its owner all of it and tries again.
fn in_dir<T>(dir: BorrowedFd<'_>, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match act() {
        Err(Errno::ACCESS) => {
            let mode = rustix::fs::fstat(dir)?.st_mode | 0o700;
            rustix::fs::fchmod(dir, Mode::from_raw_mode(mode & 0o7777))?;
            act()
        }
        other => other,
    }
}

impl Root {
    /// Opens the directory `path`, and makes it and those above it where they are missing.
    pub(crate) fn make_dir(&self, path: &[u8], in_the_way: InTheWay) -> Result<OwnedFd, Errno> {
        match self.open_dir(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            other => return other,
        }
        let mut current = self.open_dir(b"")?;
        for dir in ancestors(path).chain((!path.is_empty()).then_some(path)) {
            let name = split(dir).1;
            if name.is_empty() || name == b"." || name == b".." {
                return Err(Errno::INVAL);
            }
            current = match open_sub(current.as_fd(), name) {
                Err(Errno::NOENT) => make_sub(&current, name)?,
                Err(Errno::NOTDIR | Errno::LOOP) if in_the_way == InTheWay::Goes => {
                    in_dir(current.as_fd(), || rustix::fs::unlinkat(&current, arg(name), AtFlags::empty()))?;
                    make_sub(&current, name)?
                }
                Err(Errno::LOOP) => return Err(Errno::NOTDIR),
                other => other?,
            };
        }
        Ok(current)
    }

    /// Writes `thing` beside `path`, complete, with the directories above it.
    pub(crate) fn stage(&self, path: &[u8], thing: Thing<'_>, in_the_way: InTheWay) -> Result<Staged, Errno> {
        let (dir, name) = split(path);
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Errno::INVAL);
        }
        let dir = self.make_dir(dir, in_the_way)?;
        let beside = fresh_name("new");
        match thing {
            Thing::Link(target) => {
                in_dir(dir.as_fd(), || rustix::fs::symlinkat(arg(target), &dir, &beside))?;
                Ok(Staged { dir, beside, name: name.to_vec(), done: false })
            }
            Thing::File(_, mode) | Thing::Copy(_, mode) => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = in_dir(dir.as_fd(), || {
                    rustix::fs::openat(&dir, &beside, flags, Mode::RUSR | Mode::WUSR)
                })?;
                // From here on the half-written file goes when anything fails.
                let staged = Staged { dir, beside, name: name.to_vec(), done: false };
                let mut file = File::from(file);
                let written = match thing {
                    Thing::File(bytes, _) => file.write_all(bytes),
                    Thing::Copy(mut from, _) => {
                        from.rewind().and_then(|()| io::copy(&mut from, &mut file)).map(|_| ())
                    }
                    Thing::Link(_) => Ok(()),
                };
                written.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
                rustix::fs::fchmod(&file, raw(mode))?;
                Ok(staged)
            }
        }
    }

    /// Removes the file or link at `path`; nothing being there is as good.
    pub(crate) fn remove_file(&self, path: &[u8]) -> Result<(), Errno> {
        let (dir, name) = split(path);
        let removed = self
            .open_dir(dir)
            .and_then(|dir| in_dir(dir.as_fd(), || rustix::fs::unlinkat(&dir, arg(name), AtFlags::empty())));
        match removed {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Removes the directory at `path` if it is empty; says whether it is gone.
    pub(crate) fn remove_empty_dir(&self, path: &[u8]) -> Result<bool, Errno> {
        let (dir, name) = split(path);
        let removed = self.open_dir(dir).and_then(|dir| {
            in_dir(dir.as_fd(), || rustix::fs::unlinkat(&dir, arg(name), AtFlags::REMOVEDIR))
        });
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sets the permission bits of the file or directory at `path`; a link is refused.
    pub(crate) fn set_mode(&self, path: &[u8], mode: u32) -> Result<(), Errno> {
        let (dir, name) = split(path);
        let dir = self.open_dir(dir)?;
        if kind_of(&stat_at(dir.as_fd(), name)?) == FileType::Symlink {
            return Err(Errno::LOOP);
        }
        rustix::fs::chmodat(&dir, arg(name), raw(mode), AtFlags::empty())
    }

    /// Removes whatever is at `path`, with everything below it. Links are removed themselves.
    ///
    /// Directories are moved up before they are emptied, so that depth costs neither stack nor descriptors.
    pub(crate) fn clear(&self, path: &[u8]) -> Result<(), Errno> {
        let (dir, name) = split(path);
        let parent = match self.open_dir(dir) {
            Ok(parent) => parent,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error),
        };
        match stat_at(parent.as_fd(), name) {
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
            Ok(stat) if kind_of(&stat) != FileType::Directory => {
                return in_dir(parent.as_fd(), || rustix::fs::unlinkat(&parent, arg(name), AtFlags::empty()));
            }
            Ok(_) => {}
        }
        let mut pending = vec![OsString::from_vec(name.to_vec())];
        while let Some(name) = pending.pop() {
            let open = || open_sub(parent.as_fd(), name.as_bytes());
            let current = match open() {
                Err(Errno::ACCESS) => {
                    rustix::fs::chmodat(&parent, &name, Mode::RWXU, AtFlags::empty())?;
                    open()?
                }
                other => other?,
            };
            for entry in Dir::read_from(&current)? {
                let entry = entry?;
                let child = entry.file_name();
                if child.to_bytes() == b"." || child.to_bytes() == b".." {
                    continue;
                }
                let unlink = || rustix::fs::unlinkat(&current, child, AtFlags::empty());
                match in_dir(current.as_fd(), unlink) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::ISDIR | Errno::PERM) => {
                        let moved = fresh_name("old");
                        in_dir(current.as_fd(), || rustix::fs::renameat(&current, child, &parent, &moved))?;
                        pending.push(moved);
                    }
                    Err(error) => return Err(error),
                }
            }
            in_dir(parent.as_fd(), || rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR))?;
        }
        Ok(())
    }
}

fn open_sub(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, arg(name), flags, Mode::empty())
}

fn make_sub(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    in_dir(dir.as_fd(), || match rustix::fs::mkdirat(dir, arg(name), mode) {
        Err(Errno::EXIST) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    })?;
    open_sub(dir.as_fd(), name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn never_writes_through_a_planted_link() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("f"), "outside").unwrap();
        let dir = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("way")).unwrap();
        symlink(outside.path().join("f"), dir.path().join("leaf")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let file = Thing::File(b"new", 0o640);
        assert_eq!(root.stage(b"way/f", file, InTheWay::Stays).unwrap_err(), Errno::NOTDIR);
        root.stage(b"leaf", file, InTheWay::Stays).unwrap().commit().unwrap();
        root.stage(b"way/f", file, InTheWay::Goes).unwrap().commit().unwrap();
        assert!(root.stage(b"../f", file, InTheWay::Goes).is_err());
        assert!(root.remove_file(b"../f").is_err());
        assert_eq!(std::fs::read(outside.path().join("f")).unwrap(), b"outside");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        let leaf = std::fs::symlink_metadata(dir.path().join("leaf")).unwrap();
        assert!(leaf.is_file());
        assert_eq!(leaf.permissions().mode() & 0o7777, 0o640);
        assert_eq!(std::fs::read(dir.path().join("way/f")).unwrap(), b"new");
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        drop(root.stage(b"f", Thing::File(b"x", 0o644), InTheWay::Stays).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn clears_deep_trees_and_keeps_what_links_point_at() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("f"), "outside").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let deep = vec!["d"; 1_500].join("/");
        drop(root.make_dir(deep.as_bytes(), InTheWay::Stays).unwrap());
        symlink(outside.path(), dir.path().join("d/out")).unwrap();
        std::fs::write(dir.path().join("d/file"), "x").unwrap();
        root.clear(b"d").unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(outside.path().join("f").exists());
    }
}
