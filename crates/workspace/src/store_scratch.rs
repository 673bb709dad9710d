//! Git on the store's objects, from a repository that is ours alone.
//!
//! What is below `runs/` an agent may be able to write. A configuration there could include a FIFO, which git would
//! wait for until somebody writes into it, and a list of repositories to borrow from could be one. So git never looks
//! at the store's own configuration: it works from an empty repository beside the other temporary folders, which says
//! nothing and only leads to the store's objects, and nothing may be borrowed.
//!
//! Whoever works with such a folder holds a lock on it. A process that is killed leaves its folder, and a later clean-up
//! knows by the lock that nobody needs it.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::git::git;
use crate::store_draft::{UNFINISHED, temporary_name};
use crate::store_error::StoreError;
use crate::store_format::check_lends_only;
use crate::store_objects::Store;

/// What the folders are called.
const PURPOSE: &str = "triphammer_git";

/// One that is younger may not be locked yet.
const SETTLED: Duration = Duration::from_mins(1);

/// A bare repository that holds nothing; it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch<'a> {
    store: &'a Store,
    path: PathBuf,
    _lock: File,
}

impl Store {
    /// Makes a repository from which git reads this store.
    ///
    /// # Errors
    /// [`StoreError::Strange`] when the store borrows, or no folder can be made.
    pub(crate) fn scratch(&self) -> Result<Scratch<'_>, StoreError> {
        self.scratch_in(&std::env::temp_dir())
    }

    fn scratch_in(&self, temporary: &Path) -> Result<Scratch<'_>, StoreError> {
        check_lends_only(self.dir())?;
        let path = temporary.join(temporary_name(PURPOSE));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path).and_then(|()| {
            let scratch = Scratch { store: self, path: path.clone(), _lock: locked(&path)? };
            // What git takes a repository by. `refs` is a file, since git only looks whether it is there, and since to
            // remove a folder can take milliseconds.
            std::fs::write(path.join("HEAD"), "ref: refs/heads/none\n")?;
            std::fs::write(path.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path.join("refs"))?;
            Ok(scratch)
        });
        made.map_err(|error| StoreError::Strange {
            path,
            what: format!("could not be made ({error}), and git reads the store from there"),
            cure: "make room there, or name another folder for temporary files in TMPDIR".to_owned(),
        })
    }
}

impl Scratch<'_> {
    /// Where small files may be put for as long as it lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Git with the store's objects and nothing else of it.
    pub(crate) fn git(&self) -> Command {
        let mut command = git();
        command.env("GIT_DIR", &self.path).env("GIT_OBJECT_DIRECTORY", self.store.dir().join("objects"));
        command
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // A few small files among the temporary ones.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Opens a folder of ours and says by a lock that somebody works with it.
fn locked(path: &Path) -> io::Result<File> {
    let folder = open(path)?;
    // Without locks it is never swept, see there.
    let _ = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive);
    Ok(folder)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Removes what processes that were killed have left among the temporary folders. What cannot be removed is in nobody's
/// way.
pub(crate) fn sweep(now: SystemTime) {
    sweep_in(&std::env::temp_dir(), now);
}

fn sweep_in(temporary: &Path, now: SystemTime) {
    let prefix = format!("{UNFINISHED}{PURPOSE}_");
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) && is_left(&entry.path(), now)
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left(path: &Path, now: SystemTime) -> bool {
    let Ok(folder) = open(path) else { return false };
    let Ok(meta) = folder.metadata() else { return false };
    let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
    meta.uid() == rustix::process::geteuid().as_raw()
        && age > SETTLED
        && rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs/.store.git")).unwrap();
        (dir, store)
    }

    #[test]
    fn a_folder_goes_with_its_use() {
        let (_dir, store) = store();
        let scratch = store.scratch().unwrap();
        let path = scratch.path.clone();
        assert!(path.join("HEAD").exists());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let (dir, store) = store();
        let temporary = dir.path().join("temporary");
        let (left, link) = (temporary.join(temporary_name(PURPOSE)), temporary.join(temporary_name(PURPOSE)));
        std::fs::create_dir_all(left.join("objects")).unwrap();
        std::os::unix::fs::symlink(store.dir(), &link).unwrap();
        let others = [temporary.join("tmp_other_git_0"), temporary.join("mine")];
        for other in &others {
            std::fs::create_dir(other).unwrap();
        }
        let used = store.scratch_in(&temporary).unwrap();
        let now = SystemTime::now();
        sweep_in(&temporary, now);
        assert!(left.exists(), "it may have been made just now");
        sweep_in(&temporary, now + Duration::from_hours(1));
        assert!(!left.exists());
        assert!(used.path.join("config").exists(), "somebody works with it");
        assert!(link.is_symlink() && store.dir().join("config").exists());
        assert!(others.iter().all(|other| other.exists()));
    }

    #[test]
    fn where_no_folder_can_be_made_it_is_named() {
        let (dir, store) = store();
        let error = store.scratch_in(&dir.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none/tmp_") && error.contains("TMPDIR"), "{error}");
    }
}
