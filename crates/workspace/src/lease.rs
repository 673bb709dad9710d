//! The lease: one run at a time on a folder, and none on a folder inside or around it.
//!
//! The lock lies on the folder itself (`flock`, exclusive) and, shared, on every folder above it. So two runs on
//! overlapping folders meet on one descriptor: the outer one's exclusive lock and the inner one's shared lock are
//! both on the outer folder. The system releases the locks of a process that dies. A note in the state folder
//! only tells people who holds what; it decides nothing.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};
use triphammer_model::RunId;

/// A folder could not be leased.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another run holds it, or one that overlaps it.
    #[error(
        "workspace {} is held by {}; wait for it, cancel it, or use --isolate copy",
        path.display(),
        holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string)
    )]
    Held {
        /// The folder that is wanted.
        path: PathBuf,
        /// Who holds it, where that is known.
        holder: Option<Holder>,
    },
    /// The system refused.
    #[error("workspace `{}` could not be leased ({source}): name a folder that you can open", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Who holds a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// Its process.
    pub pid: u32,
    /// The folder it holds, escaped.
    pub workspace: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run {} (pid {})", self.run, self.pid)
    }
}

/// A held folder. Dropping it, or the death of the process, releases it.
#[derive(Debug)]
pub struct Lease {
    note: PathBuf,
    note_text: String,
    _folder: OwnedFd,
    _above: Vec<OwnedFd>,
}

impl Lease {
    /// Takes the lease on `workspace` at once or not at all. `state` is the user's state folder.
    ///
    /// # Errors
    /// [`LeaseError::Held`] names the run that holds it or overlaps it.
    pub fn acquire(workspace: &Path, state: &Path, run: &RunId) -> Result<Self, LeaseError> {
        let system = |source: io::Error| LeaseError::System { path: workspace.to_path_buf(), source };
        let path = std::fs::canonicalize(workspace).map_err(system)?;
        let notes = state.join("leases");
        let held = || LeaseError::Held { path: path.clone(), holder: holder_of(&notes, &path) };
        let lock = |fd: &OwnedFd, how| match rustix::fs::flock(fd, how) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Err(held()),
            // A file system without locks cannot refuse a second run either.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
            Err(error) => Err(system(error.into())),
        };
        let folder = open(&path).map_err(|e| system(e.into()))?;
        lock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        let mut above = Vec::new();
        for dir in path.ancestors().skip(1) {
            // A folder above that we may not even open is held by nobody who could work here.
            let Ok(fd) = open(dir) else { continue };
            lock(&fd, FlockOperation::NonBlockingLockShared)?;
            above.push(fd);
        }
        let workspace = triphammer_model::path::escape(path.as_os_str().as_bytes()).into_owned();
        let holder = Holder { run: run.clone(), pid: std::process::id(), workspace };
        let note = notes.join(note_name(&path));
        let note_text = serde_json::to_string(&holder).unwrap_or_default();
        // The lock is what counts. Without the note a message would only say less.
        let _ = std::fs::create_dir_all(&notes).and_then(|()| std::fs::write(&note, &note_text));
        Ok(Self { note, note_text, _folder: folder, _above: above })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.note).is_ok_and(|text| text == self.note_text) {
            // A stale note harms nobody: its process is checked before it is believed.
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

fn open(dir: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn note_name(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for byte in Sha1::digest(path.as_os_str().as_bytes()).iter().take(10) {
        // Writing to a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name.push_str(".json");
    name
}

/// The living process whose note names `path`, a folder above it or one below it.
fn holder_of(notes: &Path, path: &Path) -> Option<Holder> {
    let read = |file: &Path| {
        let holder: Holder = serde_json::from_reader(File::open(file).ok()?).ok()?;
        let pid = rustix::process::Pid::from_raw(i32::try_from(holder.pid).ok()?)?;
        let alive = !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH));
        alive.then_some(holder)
    };
    if let Some(holder) = path.ancestors().find_map(|dir| read(&notes.join(note_name(dir)))) {
        return Some(holder);
    }
    let own = path.as_os_str().as_bytes();
    std::fs::read_dir(notes).ok()?.flatten().filter_map(|entry| read(&entry.path())).find(|holder| {
        triphammer_model::path::unescape(&holder.workspace).is_ok_and(|held| {
            held.len() > own.len()
                && held.starts_with(own)
                && (own.ends_with(b"/") || held[own.len()] == b'/')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_folders_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        for sub in ["a/b/c", "a/d", "ab"] {
            std::fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        std::os::unix::fs::symlink("a", dir.path().join("alias")).unwrap();
        let take = |sub: &str, run: &str| Lease::acquire(&dir.path().join(sub), &state, &RunId::from(run));
        let lease = take("a/b", "first").unwrap();
        for sub in ["a", "a/b", "a/b/c", ".", "alias", "alias/b/c"] {
            let error = take(sub, "second").unwrap_err();
            assert!(
                matches!(&error, LeaseError::Held { holder: Some(h), .. } if h.run.as_str() == "first"),
                "{sub}"
            );
            let message = error.to_string();
            assert!(message.contains(&format!("run first (pid {})", std::process::id())), "{message}");
            assert!(message.contains("--isolate copy"), "{message}");
        }
        let beside = (take("a/d", "beside").unwrap(), take("ab", "beside too").unwrap());
        drop(lease);
        take("a/b/c", "third").unwrap();
        assert!(take("a", "fourth").is_err());
        drop(beside);
        take("a", "fifth").unwrap();
        assert_eq!(std::fs::read_dir(state.join("leases")).unwrap().count(), 0);
    }

    #[test]
    fn a_note_of_the_dead_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let work = std::fs::canonicalize(dir.path()).unwrap();
        let notes = work.join("state/leases");
        std::fs::create_dir_all(&notes).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let holder =
            Holder { run: RunId::from("dead"), pid: child.id(), workspace: work.display().to_string() };
        std::fs::write(notes.join(note_name(&work)), serde_json::to_string(&holder).unwrap()).unwrap();
        assert_eq!(holder_of(&notes, &work), None);
        let _lock =
            open(&work).map(|fd| rustix::fs::flock(&fd, FlockOperation::LockExclusive).map(|()| fd)).unwrap();
        let error = Lease::acquire(&work, &work.join("state"), &RunId::from("r")).unwrap_err();
        assert!(error.to_string().contains("held by another process"), "{error}");
    }
}
