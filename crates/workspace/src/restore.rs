//! Restoring: a folder is made equal to a tree, as far as the deliverable goes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use triphammer_model::WorkPath;

use crate::look::{Eyes, Held, Look, LookError};
use crate::placing::{InTheWay, Staged, Thing};
use crate::root::{Root, WorkspaceError, ancestors, work_path};
use crate::snapshot::EntryKind;
use crate::store_objects::{ObjectId, Store, StoreError};
use crate::trees::{Kept, NotStored, TreeEntry};
use crate::zones::{ZoneConfig, ZoneMap};

/// Where a tree is restored to.
#[derive(Clone, Copy, Debug)]
pub enum Onto<'a> {
    /// A folder that is absent or empty.
    Fresh,
    /// A folder whose deliverable is made equal to the tree: what the tree does not hold is deleted. Caches and
    /// infrastructure stay.
    Exact(&'a ZoneMap),
}

/// What restoring did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files and links written.
    pub written: usize,
    /// Files and links deleted.
    pub deleted: usize,
    /// Files and links that were right already.
    pub kept: usize,
    /// What the tree names but the store does not hold, and special files that are not there.
    pub not_restored: Vec<NotStored>,
    /// Paths that could not be made right, because something outside the deliverable stands there.
    pub blocked: Vec<(WorkPath, String)>,
}

impl Restored {
    /// Whether the folder now equals the tree.
    pub fn is_complete(&self) -> bool {
        self.not_restored.is_empty() && self.blocked.is_empty()
    }
}

/// A tree could not be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The folder holds something.
    #[error("`{}` is not empty: name an empty folder, or use --force to make it equal the tree", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is a link.
    #[error("`{}` is a link: name the folder itself", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The folder cannot be made.
    #[error("`{}` could not be made ({source}): name a folder that you can write to", path.display())]
    Make {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// What is there cannot be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The tree cannot be read; nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A path could not be written.
    #[error(
        "`{path}` could not be restored ({source}): the folder is now partly restored; mend the cause and restore again"
    )]
    Write {
        /// The path.
        path: WorkPath,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes the folder `to` equal the tree.
///
/// # Errors
/// [`RestoreError`]; before anything is deleted, the store is checked to hold what is to be written.
pub fn restore(store: &Store, kept: &Kept, to: &Path, onto: Onto<'_>) -> Result<Restored, RestoreError> {
    // A slash at its end would have the system follow a link.
    let to: &Path = &to.components().collect::<PathBuf>();
    if std::fs::symlink_metadata(to).is_ok_and(|m| m.is_symlink()) {
        return Err(RestoreError::Link { path: to.to_path_buf() });
    }
    let zones = match onto {
        Onto::Exact(zones) => zones.clone(),
        Onto::Fresh => {
            std::fs::create_dir_all(to)
                .map_err(|source| RestoreError::Make { path: to.to_path_buf(), source })?;
            let mut entries = std::fs::read_dir(to)
                .map_err(|source| RestoreError::Make { path: to.to_path_buf(), source })?;
            if entries.next().is_some() {
                return Err(RestoreError::NotEmpty { path: to.to_path_buf() });
            }
            ZoneMap::capture(&Root::open(to)?, &ZoneConfig::default())?
        }
    };
    Eyes::new(Root::open(to)?, zones, store.clone()).restore(kept, None)
}

/// How deep directories that cannot be entered may lie in each other for a restore to open them.
const LEVELS: usize = 8;

impl Eyes {
    /// Makes the workspace's deliverable equal the tree. What did not move since `last` is not read again.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(&self, kept: &Kept, last: Option<&Look>) -> Result<Restored, RestoreError> {
        let mut have = self.look(last)?;
        // A directory that its owner may not enter is opened again, level by level; what it had is set at the end.
        for _ in 0..LEVELS {
            let closed = have.snapshot().unseen().to_vec();
            let opened = closed.iter().filter(|(path, _)| self.root().set_mode(path, 0o700).is_ok()).count();
            if opened == 0 {
                break;
            }
            have = self.look(Some(&have))?;
        }
        let plan = Plan::make(self.store(), kept, &have)?;
        plan.carry_out(self, kept, &have)
    }
}

impl Eyes {
    /// The paths that [`Eyes::restore`] would write, delete or give other permission bits, sorted: how the
    /// workspace differs from the tree now. Empty directories do not count.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn differences(&self, kept: &Kept, last: Option<&Look>) -> Result<Vec<WorkPath>, RestoreError> {
        let have = self.look(last)?;
        let plan = Plan::make(self.store(), kept, &have)?;
        let Plan { mut delete, write, chmod, done, .. } = plan;
        delete.extend(write.into_iter().map(|entry| entry.path));
        delete.extend(chmod.into_iter().map(|(path, _)| path));
        // What can be looked at neither then nor now is no difference that could be told.
        let told = done.not_restored.into_iter().map(|left_out| left_out.path);
        delete.extend(told.filter(|path| !have.snapshot().is_unseen(path.as_bytes())));
        delete.sort();
        Ok(delete)
    }
}

/// What has to be done, decided before anything is touched.
pub(crate) struct Plan {
    delete: Vec<WorkPath>,
    write: Vec<TreeEntry>,
    chmod: Vec<(WorkPath, u32)>,
    /// Directories of the tree with their permission bits; outermost first.
    directories: BTreeMap<WorkPath, u32>,
    obsolete: Vec<WorkPath>,
    done: Restored,
}

impl Plan {
    pub(crate) fn make(store: &Store, kept: &Kept, have: &Look) -> Result<Self, StoreError> {
        let manifest = &kept.manifest;
        let target = store.list(&kept.tree)?;
        let not_stored: BTreeMap<&WorkPath, &NotStored> =
            manifest.not_stored.iter().map(|n| (&n.path, n)).collect();
        let mut done = Restored::default();
        let mut write = Vec::new();
        let mut chmod = Vec::new();
        let mut wanted = BTreeSet::new();
        for entry in &target {
            wanted.insert(entry.path.as_bytes());
            if not_stored.contains_key(&entry.path) {
                continue;
            }
            let kind = if entry.is_link() { EntryKind::Symlink } else { EntryKind::File };
            let mode = manifest.mode_of(&entry.path, entry.mode);
            match have.find(entry.path.as_bytes()) {
                Some((found, held)) if found.kind() == kind && held.id() == Some(entry.id) => {
                    done.kept += 1;
                    if kind == EntryKind::File && found.permissions() != mode {
                        chmod.push((entry.path.clone(), mode));
                    }
                }
                _ => write.push(entry.clone()),
            }
        }
        for left_out in &manifest.not_stored {
            wanted.insert(left_out.path.as_bytes());
            let there = have.find(left_out.path.as_bytes()).and_then(|(_, held)| held.id());
            let known: Option<ObjectId> = left_out.sha1.as_ref().and_then(|text| text.parse().ok());
            if known.is_some() && there == known {
                done.kept += 1;
            } else {
                done.not_restored.push(left_out.clone());
            }
        }
        for (path, size) in &manifest.unread {
            wanted.insert(path.as_bytes());
            let why = "there was too much of its kind to be read".to_owned();
            done.not_restored.push(NotStored { path: path.clone(), size: *size, sha1: None, why });
        }
        for path in &manifest.special {
            wanted.insert(path.as_bytes());
            if !have.find(path.as_bytes()).is_some_and(|(_, held)| held == Held::Nothing) {
                let why = "it is a FIFO, socket or device".to_owned();
                done.not_restored.push(NotStored { path: path.clone(), size: 0, sha1: None, why });
            }
        }
        for entry in &write {
            if !store.has(&entry.id) {
                return Err(StoreError::Missing {
                    path: store.dir().to_path_buf(),
                    id: entry.id.to_string(),
                });
            }
        }
        done.not_restored.extend(manifest.unseen.iter().cloned());
        let delete = have
            .snapshot()
            .iter()
            .map(|e| e.work_path())
            .filter(|path| !wanted.contains(path.as_bytes()) && !manifest.is_unseen(path))
            .collect();
        let mut directories = BTreeMap::new();
        for path in wanted.iter().copied().chain(manifest.empty.iter().map(WorkPath::as_bytes)) {
            for dir in ancestors(path) {
                let dir = work_path(dir);
                let mode = manifest.directory_mode_of(&dir);
                directories.entry(dir).or_insert(mode);
            }
        }
        // Those are another tree's; here they are made where they are missing, and left alone.
        let leading: BTreeSet<&WorkPath> = manifest.leading.iter().collect();
        directories.retain(|dir, _| !leading.contains(dir));
        directories.extend(manifest.empty.iter().map(|dir| (dir.clone(), manifest.directory_mode_of(dir))));
        let present = have.snapshot().directories().map(|e| e.work_path());
        let mut obsolete: Vec<_> =
            present.filter(|dir| !directories.contains_key(dir) && !manifest.is_unseen(dir)).collect();
        // Innermost first.
        obsolete.reverse();
        Ok(Self { delete, write, chmod, directories, obsolete, done })
    }

    /// The same without removing anything that the tree does not hold.
    pub(crate) fn without_deletions(self) -> Self {
        Self { delete: Vec::new(), obsolete: Vec::new(), ..self }
    }

    pub(crate) fn carry_out(self, eyes: &Eyes, kept: &Kept, have: &Look) -> Result<Restored, RestoreError> {
        let Self { delete, write, chmod, directories, obsolete, mut done } = self;
        let root = eyes.root();
        for path in delete {
            let deleted = root.remove_file(path.as_bytes());
            done.deleted += usize::from(done.take(&path, deleted)?);
        }
        for path in obsolete {
            // What holds a cache or infrastructure stays.
            let removed = root.remove_empty_dir(path.as_bytes()).map(|_| ());
            done.take(&path, removed)?;
        }
        for entry in write {
            let content = eyes.store().blob(&entry.id)?;
            let thing = if entry.is_link() {
                Thing::Link(&content)
            } else {
                Thing::File(&content, kept.manifest.mode_of(&entry.path, entry.mode))
            };
            let placed = root.stage(entry.path.as_bytes(), thing, InTheWay::Stays).and_then(Staged::commit);
            done.written += usize::from(done.take(&entry.path, placed)?);
        }
        for (path, mode) in chmod {
            let set = root.set_mode(path.as_bytes(), mode);
            done.take(&path, set)?;
        }
        for dir in directories.keys() {
            let made = root.make_dir(dir.as_bytes(), InTheWay::Stays).map(|_| ());
            done.take(dir, made)?;
        }
        // Innermost first: a directory may take away the right to enter it.
        for (dir, mode) in directories.iter().rev() {
            let now = have.snapshot().directory(dir.as_bytes()).map(|e| e.permissions());
            let is =
                root.stat(dir.as_bytes()).ok().flatten().map(|s| crate::facts::Facts::of(&s).mode & 0o7777);
            if is != Some(*mode) || now != Some(*mode) {
                let set = root.set_mode(dir.as_bytes(), *mode);
                done.take(dir, set)?;
            }
        }
        Ok(done)
    }
}

impl Restored {
    /// Takes note of what else was restored into the same folder.
    pub fn add(&mut self, other: Self) {
        self.written += other.written;
        self.deleted += other.deleted;
        self.kept += other.kept;
        self.not_restored.extend(other.not_restored);
        self.blocked.extend(other.blocked);
    }

    /// Takes note of what became of one path; says whether it went well.
    fn take(&mut self, path: &WorkPath, result: Result<(), Errno>) -> Result<bool, RestoreError> {
        match result {
            Ok(()) => Ok(true),
            // Something outside the deliverable stands in the way; it is not ours to remove.
            Err(
                error @ (Errno::NOTDIR
                | Errno::ISDIR
                | Errno::LOOP
                | Errno::NOTEMPTY
                | Errno::EXIST
                | Errno::INVAL),
            ) => {
                if !self.blocked.iter().any(|(known, _)| known == path) {
                    self.blocked.push((path.clone(), io::Error::from(error).to_string()));
                }
                Ok(false)
            }
            Err(Errno::NOENT) if self.blocked.iter().any(|(known, _)| known == path) => Ok(false),
            Err(error) => Err(RestoreError::Write { path: path.clone(), source: error.into() }),
        }
    }
}
