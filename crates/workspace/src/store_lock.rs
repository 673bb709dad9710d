//! Who uses the store: everybody who has it open shares a lock on its folder, and a clean-up needs it alone.
//!
//! An object is written before the ref that keeps it, so while somebody may be between the two no object may be
//! taken away. The lock lies on the folder itself, where no file can be deleted from under it, and the system
//! releases the locks of a process that dies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::store_draft::enter;
use crate::store_objects::StoreError;

/// How long a process that wants to use the store waits for a clean-up to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A shared lock on the store's folder, for as long as it lives.
#[derive(Debug)]
pub(crate) struct StoreLock {
    folder: OwnedFd,
    /// False on a file system that has no locks.
    works: bool,
}

/// What came of the wish to have the store alone.
#[derive(Debug)]
pub(crate) enum Alone<'a> {
    /// Nobody else has it open, until this is dropped.
    Held(Exclusive<'a>),
    /// Somebody has.
    InUse,
    /// The file system cannot tell.
    NoLocks,
}

/// The lock, held alone. Dropping it shares the store again.
#[derive(Debug)]
pub(crate) struct Exclusive<'a>(&'a StoreLock);

impl StoreLock {
    /// Takes a share in the store at `dir`, and waits a while for a clean-up to end.
    pub(crate) fn share(dir: &Path) -> Result<Self, StoreError> {
        Self::share_within(dir, PATIENCE)
    }

    fn share_within(dir: &Path, patience: Duration) -> Result<Self, StoreError> {
        let failed =
            |e: Errno| StoreError::File { path: dir.to_path_buf(), what: "locked", source: e.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(dir, flags, Mode::empty()).map_err(failed)?;
        let until = Instant::now() + patience;
        loop {
            match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockShared) {
                Ok(()) => return Ok(Self { folder, works: true }),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => return Err(StoreError::Busy { path: dir.to_path_buf() }),
                Err(Errno::INTR) => {}
                // A clean-up cannot lock it either, and so takes no object away.
                Err(_) => return Ok(Self { folder, works: false }),
            }
        }
    }

    /// Refuses where the store's place no longer is the folder that was opened: what an agent put there is no store, and
    /// what we wrote would not be found.
    pub(crate) fn check_place(&self, dir: &Path) -> io::Result<()> {
        let strange = |path: &Path, what: &str| Err(io::Error::other(format!("`{}` {what}", path.display())));
        let opened = rustix::fs::fstat(&self.folder)?;
        match std::fs::symlink_metadata(dir) {
            Ok(now) if (now.dev(), now.ino()) == (opened.st_dev, opened.st_ino) => {}
            Ok(now) if now.is_symlink() => return strange(dir, "has become a link"),
            _ => return strange(dir, "was replaced while it was in use"),
        }
        Ok(())
    }

    /// Opens a folder of the store, which is at `dir`, for reading from it.
    pub(crate) fn folder(&self, dir: &Path, name: &str) -> io::Result<OwnedFd> {
        enter(self.folder.as_fd(), dir, name, false)
    }

    /// Opens a folder of the store, which is at `dir`, for writing into it, and makes it when it is missing.
    pub(crate) fn folder_made(&self, dir: &Path, name: &str) -> io::Result<OwnedFd> {
        enter(self.folder.as_fd(), dir, name, true)
    }

    /// The store's own folder.
    pub(crate) fn top(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Takes the store alone at once or not at all.
    pub(crate) fn alone(&self) -> io::Result<Alone<'_>> {
        if !self.works {
            return Ok(Alone::NoLocks);
        }
        match rustix::fs::flock(&self.folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Alone::Held(Exclusive(self))),
            Err(Errno::WOULDBLOCK) => {
                // Asking for more gave up the share that there was.
                self.share_again()?;
                Ok(Alone::InUse)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn share_again(&self) -> io::Result<()> {
        Ok(rustix::fs::flock(&self.folder, FlockOperation::LockShared)?)
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        // A lock that is held alone can always be shared.
        let _ = self.0.share_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_up_is_alone_or_does_not_begin() {
        let dir = tempfile::tempdir().unwrap();
        let share = || StoreLock::share_within(dir.path(), Duration::from_millis(1));
        let (one, two) = (share().unwrap(), share().unwrap());
        assert!(matches!(one.alone().unwrap(), Alone::InUse));
        drop(two);
        let alone = one.alone().unwrap();
        assert!(matches!(alone, Alone::Held(_)));
        let error = share().unwrap_err().to_string();
        assert!(error.contains("triphammer gc") && error.contains(dir.path().to_str().unwrap()), "{error}");
        drop(alone);
        let two = share().unwrap();
        assert!(matches!(one.alone().unwrap(), Alone::InUse), "it shares again after it was alone");
        assert!(matches!(two.alone().unwrap(), Alone::InUse), "and after it could not be");
    }
}
