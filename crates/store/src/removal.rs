//! Removing a run's folder so that a kill in between is finished by the next clean-up.
//!
//! A run that goes is renamed first: from then on it is no run any more. Whatever else belongs to it is removed while
//! its renamed folder says so, and the folder itself goes last.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use triphammer_model::RunId;

use crate::file::{FileError, open_regular};
use crate::runs::Runs;

/// What the folder's name of a run that goes begins with. A name with a dot in front is no run's.
const MARK: &str = ".going-";

/// A run that no other process can take up while this is held.
#[derive(Debug)]
pub struct Claim {
    run: RunId,
    _journal: File,
}

/// A run that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Going {
    /// The run.
    pub run: RunId,
    /// Its folder by the new name.
    pub folder: PathBuf,
}

impl Runs {
    /// Claims a run at rest; `None` when a process works on it.
    ///
    /// # Errors
    /// [`FileError`] when its journal cannot be opened.
    pub fn claim(&self, run: &RunId) -> Result<Option<Claim>, FileError> {
        let path = self.path().join(run.as_str()).join("journal.jsonl");
        let failed = |what| {
            let path = path.clone();
            move |source| FileError { what, path, source }
        };
        let journal = open_regular(&path).map_err(failed("opening"))?;
        match rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Claim { run: run.clone(), _journal: journal })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed("locking")(error.into())),
        }
    }

    /// Begins the removal of a run: from here on it is none.
    ///
    /// # Errors
    /// [`FileError`]; the run is as it was.
    pub fn let_go(&self, claim: &Claim) -> Result<Going, FileError> {
        let from = self.path().join(claim.run.as_str());
        let folder = self.path().join(format!("{MARK}{}", claim.run));
        std::fs::rename(&from, &folder).map_err(|e| FileError::new("renaming", &from, e))?;
        Ok(Going { run: claim.run.clone(), folder })
    }

    /// Runs whose removal was begun and not finished.
    ///
    /// # Errors
    /// [`FileError`] when the folder cannot be listed.
    pub fn going(&self) -> Result<Vec<Going>, FileError> {
        Ok(marked(self.path())?
            .into_iter()
            .map(|(name, folder)| Going { run: RunId::new(name), folder })
            .collect())
    }
}

/// The folder beside `folder` that it is renamed to when it goes.
pub fn marked_for_removal(folder: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(MARK);
    name.push(folder.file_name().unwrap_or_default());
    folder.with_file_name(name)
}

/// The real folders in `parent` that are marked as going, with what they were called.
///
/// # Errors
/// [`FileError`] when it cannot be listed; a missing one holds none.
pub fn marked(parent: &Path) -> Result<Vec<(String, PathBuf)>, FileError> {
    let failed = |e| FileError::new("listing", parent, e);
    let entries = match std::fs::read_dir(parent) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if let Some(was) = name.strip_prefix(MARK)
            && entry.file_type().map_err(failed)?.is_dir()
        {
            found.push((was.to_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a folder with all that it holds, never through a link. Folders that do not let their owner in, as some tools
/// make them, are opened first.
///
/// # Errors
/// [`FileError`] when something is left.
pub fn remove_folder(folder: &Path) -> Result<(), FileError> {
    let remove = || match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let removed = match remove() {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder);
            remove()
        }
        other => other,
    };
    removed.map_err(|e| FileError::new("removing", folder, e))
}

fn open_up(folder: &Path) {
    // What cannot be opened is told by the removal that follows.
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// What a folder takes on disk; a file of several names counts once. Nothing is followed, and what vanishes meanwhile
/// counts nothing.
pub fn bytes_on_disk(folder: &Path) -> u64 {
    let mut seen = std::collections::HashSet::new();
    let mut bytes = 0;
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        if meta.nlink() < 2 || meta.is_dir() || seen.insert((meta.dev(), meta.ino())) {
            bytes += meta.blocks() * 512;
        }
        if meta.is_dir() {
            pending.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use triphammer_model::{Event, Redactor, Stamp};

    use super::*;
    use crate::journal::Journal;

    fn run(runs: &Runs, id: &str) -> Journal {
        let dir = runs.create(&RunId::new(id), Redactor::default()).unwrap();
        let mut journal = Journal::create(&dir.journal(), Redactor::default()).unwrap();
        let event = Event::Told { by: "ann".to_owned(), text: "x".to_owned() };
        journal.append(Stamp { at: jiff::Timestamp::now(), elapsed_ms: 0 }, &event, &[]).unwrap();
        journal
    }

    #[test]
    fn a_run_goes_in_steps_that_can_be_finished_later() {
        let home = tempfile::tempdir().unwrap();
        let runs = Runs::new(home.path().to_owned());
        let journal = run(&runs, "r1");
        let id = RunId::new("r1");
        assert!(runs.claim(&id).unwrap().is_none(), "a process works on it");
        drop(journal);
        let claim = runs.claim(&id).unwrap().unwrap();
        let path = home.path().join("r1/journal.jsonl");
        assert!(Journal::reopen(&path, Redactor::default()).is_err(), "nobody takes it up now");
        let going = runs.let_go(&claim).unwrap();
        assert!(runs.ids().unwrap().is_empty());
        assert_eq!(runs.going().unwrap(), std::slice::from_ref(&going));
        remove_folder(&going.folder).unwrap();
        assert!(runs.going().unwrap().is_empty());
        remove_folder(&going.folder).unwrap();
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("keep"), "k").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(".going-r1");
        std::fs::create_dir_all(folder.join("locked/in")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.join("way")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join(".going-r2")).unwrap();
        std::fs::write(folder.join("locked/in/f"), "f").unwrap();
        std::fs::set_permissions(folder.join("locked"), std::fs::Permissions::from_mode(0o500)).unwrap();
        assert_eq!(Runs::new(dir.path().to_owned()).going().unwrap().len(), 1, "a link is nobody's folder");
        remove_folder(&folder).unwrap();
        assert!(!folder.exists() && outside.path().join("keep").exists());
    }

    #[test]
    fn a_file_of_several_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![1; 1 << 20]).unwrap();
        let one = bytes_on_disk(dir.path());
        assert!(one >= 1 << 20);
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("c")).unwrap();
        let more = bytes_on_disk(dir.path());
        assert!(more < one + (1 << 19), "{one} {more}");
    }
}
