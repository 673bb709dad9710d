//! Files of the store while they are written: under a name that nobody can guess, until they are whole.
//!
//! What is below `runs/` an agent may be able to write, and a link at a place that we write to would have us write
//! elsewhere. So every folder is entered one by one from the store's own, never through a link; a file is made where
//! nothing was; and what is moved, removed or opened is named relative to folders that are open.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Opens the folder `name`, some parts below the store's own folder `top`, which is at `dir`. Folders that are missing
/// are made where `make` says so.
///
/// # Errors
/// As the system says; a link, or what is no folder, is named.
pub(crate) fn enter(top: BorrowedFd<'_>, dir: &Path, name: &str, make: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = top.try_clone_to_owned()?;
    let mut path = dir.to_path_buf();
    for part in name.split('/') {
        path.push(part);
        let opened = match rustix::fs::openat(&here, part, flags, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&here, part, Mode::from_raw_mode(0o777)) {
                    // Another process was faster; what it made is looked at as anything else.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::openat(&here, part, flags, Mode::empty())
            }
            other => other,
        };
        here = opened.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                io::Error::other(format!("`{}` is a link or no folder", path.display()))
            }
            other => other.into(),
        })?;
    }
    Ok(here)
}

/// A file that is being written. Dropped before it is in its place it leaves nothing.
#[derive(Debug)]
pub(crate) struct Draft {
    folder: OwnedFd,
    name: String,
    placed: bool,
}

impl Draft {
    /// Makes an empty file in `folder`.
    ///
    /// # Errors
    /// As the system says; what is there already is neither opened nor removed.
    pub(crate) fn create(folder: OwnedFd, purpose: &str) -> io::Result<(Self, File)> {
        Self::create_as(folder, temporary_name(purpose))
    }

    fn create_as(folder: OwnedFd, name: String) -> io::Result<(Self, File)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&folder, &name, flags, Mode::from_raw_mode(0o666))?);
        Ok((Self { folder, name, placed: false }, file))
    }

    /// Moves the file, which is complete, to `name` in `folder`.
    ///
    /// # Errors
    /// As the system says; then the file is gone, and what was at that place is still there.
    pub(crate) fn place(mut self, folder: impl AsFd, name: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.folder, &self.name, folder, name)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.placed {
            // Why it was given up matters more than the leftover, which a clean-up finds.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// What the name of a file begins with that is not complete: git's own clean-up knows it too.
pub(crate) const UNFINISHED: &str = "tmp_";

/// A name that nobody else uses or can guess. Process ids do not tell processes apart that share a folder from within
/// different containers.
pub(crate) fn temporary_name(purpose: &str) -> String {
    let chance = || RandomState::new().build_hasher().finish();
    format!("{UNFINISHED}{purpose}_{:016x}{:016x}", chance(), chance())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn open(dir: &Path) -> OwnedFd {
        File::open(dir).unwrap().into()
    }

    #[test]
    fn names_are_no_ones_else() {
        let names: std::collections::BTreeSet<_> = (0..1_000).map(|_| temporary_name("pack")).collect();
        assert_eq!(names.len(), 1_000);
        let process = std::process::id().to_string();
        assert!(
            names.iter().all(|n| Path::new(n).extension().is_none() && !n.contains(&format!("_{process}_")))
        );
    }

    /// What stands at a draft's name is another's: it is neither written to, nor followed, nor removed.
    #[test]
    fn what_is_there_already_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("outside"), "precious").unwrap();
        std::fs::write(dir.path().join("tmp_file"), "another's").unwrap();
        symlink("outside", dir.path().join("tmp_link")).unwrap();
        symlink("nothing", dir.path().join("tmp_dangling")).unwrap();
        for name in ["tmp_file", "tmp_link", "tmp_dangling"] {
            let error = Draft::create_as(open(dir.path()), name.to_owned()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
            assert!(dir.path().join(name).symlink_metadata().is_ok(), "{name}");
        }
        assert_eq!(std::fs::read(dir.path().join("outside")).unwrap(), b"precious");
        assert_eq!(std::fs::read(dir.path().join("tmp_file")).unwrap(), b"another's");
        assert!(!dir.path().join("nothing").exists());
    }

    #[test]
    fn a_draft_that_is_given_up_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(Draft::create(open(dir.path()), "obj").unwrap());
        let (draft, _) = Draft::create(open(dir.path()), "obj").unwrap();
        std::fs::create_dir_all(dir.path().join("in/the way")).unwrap();
        draft.place(open(dir.path()), "in").unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let (draft, _) = Draft::create(open(dir.path()), "obj").unwrap();
        draft.place(open(dir.path()), "placed").unwrap();
        assert!(dir.path().join("placed").exists());
    }

    #[test]
    fn no_folder_is_entered_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let top = open(dir.path());
        drop(enter(top.as_fd(), dir.path(), "a/b/c", true).unwrap());
        assert!(dir.path().join("a/b/c").is_dir());
        let error = enter(top.as_fd(), dir.path(), "a/x", false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        symlink(outside.path(), dir.path().join("a/way")).unwrap();
        std::fs::write(dir.path().join("a/file"), "").unwrap();
        for (name, named) in
            [("a/way", "a/way"), ("a/way/b", "a/way"), ("a/file", "a/file"), ("a/file/b", "a/file")]
        {
            let error = enter(top.as_fd(), dir.path(), name, true).unwrap_err().to_string();
            let named = format!("`{}` is a link", dir.path().join(named).display());
            assert!(error.contains(&named), "{name}: {error}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
