//! A look: a snapshot together with the content of every entry. Content is read only where stats moved since the
//! last look, and goes into the store as it is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use triphammer_model::{Bounds, RunId};

use crate::descend::threads;
use crate::facts::Facts;
use crate::packs::Batch;
use crate::root::{Root, split};
use crate::snapshot::{Entry, EntryKind, Pair, Snapshot, directory_pairs, entry_pairs};
use crate::store_objects::{ObjectId, ObjectKind, PutError, Store, StoreError, hash_file};
use crate::trees::{DELIVERABLE, Kept, Subtree, keep};
use crate::walk::SHOWN;
use crate::zones::{BadSkip, ZoneMap};

/// The size above which a file is recorded by hash and size and its content is not stored.
pub const DEFAULT_LIMIT: u64 = 64 << 20;

/// The workspace could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The folder itself cannot be listed.
    #[error("workspace `{}` could not be listed: {what}; give yourself read permission on it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        what: String,
    },
    /// Another folder lies at its path, or none.
    #[error(
        "workspace `{}` is not the folder any more that the run began with: it was moved, replaced or removed; put it \
         back and resume, or take an attempt's tree with `restore`",
        path.display()
    )]
    Replaced {
        /// The folder.
        path: PathBuf,
    },
    /// The system ran out of something.
    #[error("workspace `{}` could not be looked at ({source}): raise the limit on open files or free memory", path.display())]
    System {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A configured skip is no glob.
    #[error(transparent)]
    Skip(#[from] BadSkip),
    /// Content could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is known of an entry's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is in the store: a file's bytes or a link's target.
    Stored(ObjectId),
    /// It is hashed, but too large for the store.
    Large(ObjectId),
    /// A special file has none.
    Nothing,
    /// It could not be read.
    Unknown,
    /// It was not read: there is too much of its kind.
    Unread,
}

impl Held {
    pub(crate) fn id(self) -> Option<ObjectId> {
        match self {
            Self::Stored(id) | Self::Large(id) => Some(id),
            Self::Nothing | Self::Unknown | Self::Unread => None,
        }
    }
}

/// What the deliverable looked like, and what it held. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Look {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    snapshot: Snapshot,
    held: Vec<Held>,
    bounds: Bounds,
    /// The git tree of each directory, where it was made; the next look takes over those that did not move.
    subtrees: Mutex<Vec<Subtree>>,
}

impl Look {
    fn new(snapshot: Snapshot, held: Vec<Held>, bounds: Bounds, subtrees: Vec<Subtree>) -> Self {
        Self { inner: Arc::new(Inner { snapshot, held, bounds, subtrees: Mutex::new(subtrees) }) }
    }

    /// A look of which only names and stats were written down.
    pub fn by_stats(snapshot: Snapshot) -> Self {
        let held = vec![Held::Unread; snapshot.len()];
        let subtrees = vec![Subtree::Unknown; snapshot.listings().len()];
        let bounds = snapshot.bounds().clone();
        Self::new(snapshot, held, bounds, subtrees)
    }

    /// The git tree of each directory of the snapshot, as far as known.
    pub(crate) fn subtrees(&self) -> MutexGuard<'_, Vec<Subtree>> {
        self.inner.subtrees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names and stats.
    pub fn snapshot(&self) -> &Snapshot {
        &self.inner.snapshot
    }

    /// What was not looked at, or could not be read.
    pub fn bounds(&self) -> &Bounds {
        &self.inner.bounds
    }

    /// Whether the deliverable holds no file at all.
    pub fn is_empty(&self) -> bool {
        self.inner.snapshot.is_empty()
    }

    /// How long fresh timestamps were waited out.
    pub fn waited(&self) -> Duration {
        self.inner.snapshot.waited()
    }

    pub(crate) fn held(&self, index: usize) -> Held {
        self.inner.held[index]
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (Entry<'_>, Held)> {
        self.inner.snapshot.iter().zip(self.inner.held.iter().copied())
    }

    pub(crate) fn find(&self, path: &[u8]) -> Option<(Entry<'_>, Held)> {
        let index = self.inner.snapshot.position(path)?;
        Some((self.inner.snapshot.at(index), self.inner.held[index]))
    }
}

/// The eyes on one workspace: where, which zones, and the store that content goes into. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Eyes {
    root: Root,
    zones: Arc<ZoneMap>,
    store: Store,
    limit: u64,
}

/// Bytes of files above the limit, and of holes in others, that are hashed in one look. A sparse file costs an agent nothing and a reader
/// hours, so what goes beyond is compared by its stat alone and named in the bounds.
const HASH_BUDGET: u64 = 8 << 30;

/// The bytes of a file that are not on the disk.
#[expect(clippy::cast_sign_loss, reason = "sizes and counts of blocks are never negative")]
fn holes(stat: &rustix::fs::Stat) -> u64 {
    (stat.st_size as u64).saturating_sub((stat.st_blocks as u64).saturating_mul(512))
}

/// Takes `size` out of the budget, or says why the file is not read.
fn spend(budget: &AtomicU64, size: u64) -> Result<(), PutError> {
    let spent = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
    spent.map(drop).map_err(|_| {
        let why = format!("{size} bytes: too large to be read, only its stat is compared");
        PutError::Read(io::Error::new(io::ErrorKind::FileTooLarge, why))
    })
}

impl Eyes {
    /// Eyes on the workspace `root` with its `zones` as captured at the run's start.
    pub fn new(root: Root, zones: ZoneMap, store: Store) -> Self {
        Self { root, zones: Arc::new(zones), store, limit: DEFAULT_LIMIT }
    }

    /// Files above `limit` bytes are not stored.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// The workspace.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Its zones.
    pub fn zones(&self) -> &ZoneMap {
        &self.zones
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Looks at the deliverable. What did not move since `last` is not read again.
    ///
    /// # Errors
    /// [`LookError`] when the folder cannot be listed or the store cannot be written. A file that cannot be read
    /// is no error: its content is unknown, and the bounds name it.
    pub fn look(&self, last: Option<&Look>) -> Result<Look, LookError> {
        if !self.root.is_in_place() {
            return Err(LookError::Replaced { path: self.root.path().to_path_buf() });
        }
        let snapshot = match last {
            None => Snapshot::deliverable(&self.root, &self.zones)?,
            Some(last) => Snapshot::deliverable_since(&self.root, &self.zones, last.snapshot())?,
        };
        Ok(self.fill(snapshot, last, true)?)
    }

    /// Keeps a look as a tree under `refs/runs/<run>/<name>`, with its manifest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn keep(&self, look: &Look, run: &RunId, name: &str) -> Result<Kept, StoreError> {
        keep(&self.store, look, DELIVERABLE, run, name, self.limit)
    }

    /// Rebuilds the look that a killed process had written down: its snapshot from `before.fp`, its content from
    /// the tree that was kept of it. What the tree does not hold is unknown.
    ///
    /// # Errors
    /// [`StoreError`] when the tree cannot be read.
    pub fn remember(&self, snapshot: Snapshot, kept: &Kept) -> Result<Look, StoreError> {
        let mut known = BTreeMap::new();
        for entry in self.store.list(&kept.tree)? {
            known.insert(entry.path, entry.id);
        }
        let large: BTreeMap<_, _> = kept.manifest.not_stored.iter().map(|n| (&n.path, n)).collect();
        let held = snapshot.iter().map(|entry| {
            let path = entry.work_path();
            if entry.kind() == EntryKind::Special {
                return Held::Nothing;
            }
            if let Some(not_stored) = large.get(&path) {
                let id = not_stored.sha1.as_ref().and_then(|text| text.parse().ok());
                return id.map_or(Held::Unknown, Held::Large);
            }
            known.get(&path).map_or(Held::Unknown, |id| Held::Stored(*id))
        });
        let held = held.collect();
        let bounds = snapshot.bounds().clone();
        let subtrees = vec![Subtree::Unknown; snapshot.listings().len()];
        Ok(Look::new(snapshot, held, bounds, subtrees))
    }

    /// Adds content to a snapshot: what is known since `last`, and what can be read where it is to be read.
    pub(crate) fn fill(
        &self,
        snapshot: Snapshot,
        last: Option<&Look>,
        read: bool,
    ) -> Result<Look, StoreError> {
        let mut held = vec![Held::Unknown; snapshot.len()];
        let mut subtrees = vec![Subtree::Unknown; snapshot.listings().len()];
        let mut open = Vec::new();
        match last {
            Some(last) => {
                let mut carry = Carry { held: &mut held, subtrees: &mut subtrees, open: &mut open, read };
                carry.over(last, &snapshot);
            }
            None => open.extend(0..snapshot.len()),
        }
        if !read {
            open.drain(..).for_each(|index| held[index] = Held::Unread);
        }
        let mut bounds = snapshot.bounds().clone();
        for (index, read) in self.read_all(&snapshot, &open)? {
            match read {
                Ok(content) => held[index] = content,
                Err(error) => {
                    bounds.unreadable_count += 1;
                    if bounds.unreadable.len() < SHOWN {
                        bounds.unreadable.insert(snapshot.at(index).work_path(), error.to_string());
                    }
                }
            }
        }
        Ok(Look::new(snapshot, held, bounds, subtrees))
    }

    /// Reads the entries `open` on all cores; the order of the answer is that of `open`.
    fn read_all(
        &self,
        snapshot: &Snapshot,
        open: &[usize],
    ) -> Result<Vec<(usize, io::Result<Held>)>, StoreError> {
        let batch = Batch::new(&self.store);
        let all = self.read_into(&batch, snapshot, open)?;
        batch.finish()?;
        Ok(all)
    }

    fn read_into(
        &self,
        batch: &Batch<'_>,
        snapshot: &Snapshot,
        open: &[usize],
    ) -> Result<Vec<(usize, io::Result<Held>)>, StoreError> {
        let budget = AtomicU64::new(HASH_BUDGET);
        let read = |index: usize| match self.read(&snapshot.at(index), batch, &budget) {
            Ok(held) => Ok((index, Ok(held))),
            Err(PutError::Read(error)) => Ok((index, Err(error))),
            Err(PutError::Store(error)) => Err(error),
        };
        // A thread costs more than a few files.
        let threads = threads().min(open.len() / 64).max(1);
        if threads == 1 {
            return open.iter().map(|index| read(*index)).collect();
        }
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Ok(Vec::with_capacity(open.len())));
        let work = || {
            while let Some(chunk) = {
                let start = next.fetch_add(32, Ordering::Relaxed);
                open.get(start..open.len().min(start + 32)).filter(|chunk| !chunk.is_empty())
            } {
                let part: Result<Vec<_>, _> = chunk.iter().map(|index| read(*index)).collect();
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                match (&mut *all, part) {
                    (Ok(all), Ok(part)) => all.extend(part),
                    (Ok(_), Err(error)) => *all = Err(error),
                    // Another thread failed; what it said is reported.
                    (Err(_), _) => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // A system that has no thread left is read with fewer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        all.sort_unstable_by_key(|(index, _)| *index);
        Ok(all)
    }

    fn read(&self, entry: &Entry<'_>, batch: &Batch<'_>, budget: &AtomicU64) -> Result<Held, PutError> {
        let system = |error: rustix::io::Errno| PutError::Read(error.into());
        match entry.kind() {
            EntryKind::Special | EntryKind::Directory => Ok(Held::Nothing),
            EntryKind::Symlink => {
                let target = self.root.read_link(&entry.path()).map_err(system)?;
                batch.put(ObjectKind::Blob, &target).map(Held::Stored).map_err(PutError::Store)
            }
            EntryKind::File => {
                let (fd, stat) = self.root.open_file(&entry.path()).map_err(system)?;
                let changed = || PutError::Read(io::Error::other("it changed while it was looked at"));
                if !Facts::of(&stat).same_as(&entry.facts) {
                    return Err(changed());
                }
                let mut file = File::from(fd);
                let size = entry.size();
                // Holes cost nobody anything to make and us as much as data to read.
                spend(budget, if size > self.limit { size } else { holes(&stat) })?;
                let held = if size > self.limit {
                    Held::Large(hash_file(&mut file, size).map_err(PutError::Read)?)
                } else {
                    Held::Stored(self.store.put_file(&mut file, size, batch)?)
                };
                let after = rustix::fs::fstat(&file).map_err(system)?;
                if Facts::of(&after).same_as(&entry.facts) { Ok(held) } else { Err(changed()) }
            }
        }
    }
}

/// What a new look takes over from the one before.
struct Carry<'a> {
    held: &'a mut [Held],
    subtrees: &'a mut [Subtree],
    /// Entries of which nothing is known.
    open: &'a mut Vec<usize>,
    /// Whether what was not read before is to be read now.
    read: bool,
}

impl Carry<'_> {
    /// Takes over what is known of entries that did not move since `last`, and lists the open ones.
    fn over(&mut self, last: &Look, snapshot: &Snapshot) {
        let before = last.snapshot();
        let known = last.subtrees();
        // Directories whose tree must be made again, with all that hold them.
        let mut moved = vec![false; self.subtrees.len()];
        for pair in directory_pairs(before, snapshot) {
            let (old, new) = match pair {
                Pair::Before(i) => {
                    if let Some(parent) = snapshot.listing_of(split(before.listings()[i].path()).0) {
                        moved[parent] = true;
                    }
                    continue;
                }
                Pair::After(j) => (None, j),
                Pair::Both(i, j) => (Some(i), j),
            };
            let first = snapshot.first_of(new);
            let entries = first..first + snapshot.listings()[new].len();
            let shared = |i: &usize| Arc::ptr_eq(&before.listings()[*i], &snapshot.listings()[new]);
            if let Some(old) = old.filter(shared) {
                let start = before.first_of(old);
                self.held[entries.clone()].copy_from_slice(&last.inner.held[start..start + entries.len()]);
                self.subtrees[new] = known[old];
            } else {
                moved[new] = true;
                for pair in entry_pairs(old.map(|i| (before, i)), Some((snapshot, new))) {
                    if let Pair::Both(i, j) = pair {
                        let (was, is) = (before.at(i).facts, snapshot.at(j).facts);
                        if was.same_as(&is) && !was.uncertain && !is.uncertain {
                            self.held[j] = last.held(i);
                        }
                    }
                }
            }
            for index in entries {
                let open = match self.held[index] {
                    Held::Unknown => true,
                    Held::Unread => self.read,
                    _ => false,
                };
                if open {
                    moved[new] = true;
                    self.open.push(index);
                }
            }
        }
        for (listing, subtree) in self.subtrees.iter_mut().enumerate().rev() {
            if moved[listing] {
                *subtree = Subtree::Unknown;
                let path = snapshot.listings()[listing].path();
                if let Some(parent) = snapshot.listing_of(split(path).0).filter(|_| !path.is_empty()) {
                    moved[parent] = true;
                }
            }
        }
    }
}
