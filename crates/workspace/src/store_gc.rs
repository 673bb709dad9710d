//! Cleaning the store up: what no ref keeps goes, what is left is packed, and no tree that a ref names is harmed.
//!
//! # Theory of operation
//!
//! Only refs keep objects. Git lists everything that they reach, and where it cannot, because something is missing,
//! nothing is taken away. Then, with the store locked against everybody else: loose objects and packs of which
//! nothing is reached are deleted, which needs no room on a full disk; packs that hold both are written anew, checked,
//! put in place, and only then are the old ones deleted. A kill at any point leaves each reached object at least once.
//!
//! Git works here from a scratch repository, see [`crate::store_scratch`], and before it begins all that it could open
//! is looked at: what is no file would make it wait for ever.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use triphammer_model::RunId;

use crate::git::{complaint, exchange_within, output_within};
use crate::object_id::{ObjectId, id_lines};
use crate::packs::Index;
use crate::store_draft::UNFINISHED;
use crate::store_lock::{Alone, Exclusive};
use crate::store_objects::{Store, StoreError};
use crate::store_scratch::{Scratch, sweep};

/// How long git may take to list or write objects.
const PATIENCE: Duration = Duration::from_hours(1);

/// A pack of this size that nothing can be dropped from is left as it is.
const LARGE: u64 = 64 << 20;

/// More packs than this are made one.
const MANY_PACKS: usize = 8;

/// More loose objects than this are packed.
const MANY_LOOSE: usize = 1_000;

/// A half of a pack that is younger may be about to become whole.
const HALVES_STAY: Duration = Duration::from_hours(24);

/// New packs are written in a folder of this name, so that nobody takes them for complete ones.
const WORK: &str = "gc.partial";

/// The store could not be cleaned up; every object that a ref keeps is still there.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// Another process has it open.
    #[error("store `{}` is in use by another process; gc again when that has ended", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// Whether it is in use cannot be told.
    #[error("the file system of store `{}` has no locks, so nobody knows whether it is in use", path.display())]
    NoLocks {
        /// The store.
        path: PathBuf,
    },
    /// Git failed, or found something missing.
    #[error("git could not {what} store `{}`: {said}; `git --git-dir={} fsck --full` tells more", path.display(), path.display())]
    Git {
        /// What was attempted.
        what: &'static str,
        /// The store.
        path: PathBuf,
        /// What git said.
        said: String,
    },
    /// A file or folder.
    #[error("`{}` could not be {what} ({source}): check the disk and the permissions", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// `made`, `written`, `removed`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The store itself.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a clean-up did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Objects that were dropped.
    pub dropped: u64,
    /// Objects that refs keep.
    pub kept: u64,
}

/// What every run's refs keep, and what it takes on disk: to know what the removal of a run would free.
#[derive(Debug, Default)]
pub struct Holdings {
    numbers: HashMap<ObjectId, usize>,
    sizes: Vec<u64>,
    holders: Vec<u32>,
    runs: HashMap<RunId, Vec<usize>>,
}

impl Holdings {
    /// Takes a run out and says how many bytes of objects nothing keeps any more.
    pub fn give_up(&mut self, run: &RunId) -> u64 {
        let mut freed = 0;
        for n in self.runs.remove(run).unwrap_or_default() {
            self.holders[n] -= 1;
            if self.holders[n] == 0 {
                freed += self.sizes[n];
            }
        }
        freed
    }

    /// Bytes of objects that nothing keeps.
    pub fn unkept(&self) -> u64 {
        let unkept = self.holders.iter().zip(&self.sizes).filter(|(holders, _)| **holders == 0);
        unkept.map(|(_, size)| size).sum()
    }

    /// What a clean-up would do now.
    pub fn would_prune(&self) -> Pruned {
        let kept = self.holders.iter().filter(|holders| **holders > 0).count() as u64;
        Pruned { dropped: self.holders.len() as u64 - kept, kept }
    }

    fn hold(&mut self, objects: &HashSet<ObjectId>) -> Vec<usize> {
        let mut held: Vec<usize> = objects.iter().filter_map(|id| self.numbers.get(id).copied()).collect();
        held.sort_unstable();
        for n in &held {
            self.holders[*n] += 1;
        }
        held
    }
}

impl Store {
    /// What every run keeps. Changes nothing.
    ///
    /// # Errors
    /// [`PruneError`] when something that a ref names is missing or damaged.
    pub fn holdings(&self) -> Result<Holdings, PruneError> {
        let mut all = Holdings::default();
        for (id, size) in self.sizes()? {
            let next = all.sizes.len();
            all.numbers.insert(id, next);
            all.sizes.push(size);
        }
        all.holders = vec![0; all.sizes.len()];
        let mut of_runs: HashMap<RunId, Vec<ObjectId>> = HashMap::new();
        let mut others = Vec::new();
        let runs = self.runs_with_refs()?;
        for (name, id) in self.refs()? {
            let run = name.split('/').nth(2).map(RunId::new).filter(|run| runs.contains_key(run));
            match run {
                Some(run) => of_runs.entry(run).or_default().push(id),
                None => others.push(id),
            }
        }
        let scratch = self.reader()?;
        for (run, roots) in of_runs {
            let held = all.hold(&self.reached(&scratch, &roots)?);
            all.runs.insert(run, held);
        }
        let reached = self.reached(&scratch, &others)?;
        all.hold(&reached);
        Ok(all)
    }

    /// Every object of a run's trees and manifests.
    ///
    /// # Errors
    /// [`PruneError`] when something is missing or damaged.
    pub fn objects_of(&self, run: &RunId) -> Result<HashSet<ObjectId>, PruneError> {
        let part = format!("/{run}/");
        let roots: Vec<ObjectId> =
            self.refs()?.into_iter().filter(|(name, _)| name.contains(&part)).map(|(_, id)| id).collect();
        self.reached(&self.reader()?, &roots)
    }

    /// Asks whether [`Store::prune`] could begin now.
    ///
    /// # Errors
    /// [`PruneError::InUse`], [`PruneError::NoLocks`], or a lock that git left.
    pub fn check_prunable(&self) -> Result<(), PruneError> {
        self.check_unlocked()?;
        self.have_alone().map(|_| ())
    }

    fn have_alone(&self) -> Result<Exclusive<'_>, PruneError> {
        let path = self.dir().to_path_buf();
        match self.lock().alone().map_err(failed(self.dir(), "locked"))? {
            Alone::Held(alone) => Ok(alone),
            Alone::InUse => Err(PruneError::InUse { path }),
            Alone::NoLocks => Err(PruneError::NoLocks { path }),
        }
    }

    /// Drops every object that no ref keeps, and packs what is left where that is worth it.
    ///
    /// # Errors
    /// [`PruneError`]; what refs keep is still there.
    pub fn prune(&self) -> Result<Pruned, PruneError> {
        let _alone = self.have_alone()?;
        self.check_place().map_err(failed(self.dir(), "cleaned up"))?;
        // First of all, so that nobody, git included, takes what was never completed for a part of the store.
        self.sweep_leftovers()?;
        sweep(SystemTime::now());
        let roots: Vec<ObjectId> = self.refs()?.into_values().collect();
        let packs = self.packs()?;
        let reached = self.reached(&self.reader()?, &roots)?;
        let before: HashSet<ObjectId> = self.sizes()?.into_keys().collect();
        self.sweep_halves(SystemTime::now())?;
        let left = self.drop_whole(&packs, &reached)?;
        let packed = self.pack_again(&left, &reached);
        // The packs that were known are not those that are there.
        self.packs()?;
        packed?;
        let kept = before.intersection(&reached).count() as u64;
        Ok(Pruned { dropped: before.len() as u64 - kept, kept })
    }

    /// What `roots` reach, themselves included.
    fn reached(&self, scratch: &Scratch<'_>, roots: &[ObjectId]) -> Result<HashSet<ObjectId>, PruneError> {
        if roots.is_empty() {
            return Ok(HashSet::new());
        }
        let mut command = scratch.git();
        command.args(["rev-list", "--objects", "--no-object-names", "--stdin"]);
        let said = self.exchange(command, roots, "list the objects of")?;
        let ids = said.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok()?.parse().ok());
        let mut reached: HashSet<ObjectId> = ids.collect();
        reached.extend(roots);
        Ok(reached)
    }

    /// From where git lists objects.
    fn reader(&self) -> Result<Scratch<'_>, PruneError> {
        self.check_files()?;
        Ok(self.scratch()?)
    }

    /// Refuses where something that is neither a file nor a folder is among the objects.
    fn check_files(&self) -> Result<(), PruneError> {
        let mut pending = vec![self.dir().join("objects")];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(&folder).map_err(failed(&folder, "read"))? {
                let entry = entry.map_err(failed(&folder, "read"))?;
                let kind = entry.file_type().map_err(failed(&entry.path(), "read"))?;
                if kind.is_dir() {
                    pending.push(entry.path());
                } else if !kind.is_file() {
                    return Err(PruneError::Store(StoreError::Strange {
                        path: entry.path(),
                        what: "is no file, and no part of a store".to_owned(),
                        cure: "git could wait there for ever; remove it".to_owned(),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Runs a git command that reads object ids.
    fn exchange<'a>(
        &self,
        command: Command,
        ids: impl IntoIterator<Item = &'a ObjectId>,
        what: &'static str,
    ) -> Result<Vec<u8>, PruneError> {
        self.answer(exchange_within(command, id_lines(ids), PATIENCE), what)
    }

    fn answer(
        &self,
        output: io::Result<std::process::Output>,
        what: &'static str,
    ) -> Result<Vec<u8>, PruneError> {
        let git = |said| PruneError::Git { what, path: self.dir().to_path_buf(), said };
        match output {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(git(complaint(&output))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(git("install git".to_owned())),
            Err(error) => Err(git(error.to_string())),
        }
    }

    /// The objects that there are, and what each takes on disk.
    fn sizes(&self) -> Result<HashMap<ObjectId, u64>, PruneError> {
        let mut sizes = HashMap::new();
        for pack in self.packs()? {
            sizes.extend(pack.objects().map_err(failed(&pack.path, "read"))?);
        }
        for (id, path) in self.loose_objects()? {
            let size = std::fs::symlink_metadata(&path).map_or(0, |meta| meta.blocks() * 512);
            *sizes.entry(id).or_default() += size;
        }
        Ok(sizes)
    }

    fn loose_objects(&self) -> Result<Vec<(ObjectId, PathBuf)>, PruneError> {
        let objects = self.dir().join("objects");
        let mut found = Vec::new();
        for folder in list(&objects)? {
            let Some(first) = folder.file_name().and_then(|n| n.to_str()).filter(|n| n.len() == 2) else {
                continue;
            };
            if !std::fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()) {
                continue;
            }
            for path in list(&folder)? {
                let rest = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                if let Ok(id) = format!("{first}{rest}").parse() {
                    found.push((id, path));
                }
            }
        }
        Ok(found)
    }

    /// Removes what processes that were killed have left: nobody writes now.
    fn sweep_leftovers(&self) -> Result<(), PruneError> {
        let objects = self.dir().join("objects");
        let mut leftovers = Vec::new();
        for folder in [objects.clone(), objects.join("pack")] {
            leftovers.extend(list(&folder)?);
        }
        for path in leftovers {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.starts_with(UNFINISHED.as_bytes())
                && path.symlink_metadata().is_ok_and(|meta| !meta.is_dir())
            {
                remove(&path)?;
            }
        }
        for path in list(self.dir())? {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let ours = name.starts_with(b"merge-") || name == WORK.as_bytes();
            if ours && path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                std::fs::remove_dir_all(&path).map_err(failed(&path, "removed"))?;
            }
        }
        Ok(())
    }

    /// Removes packs without an index and indexes without a pack, left by who was killed between the two. All that is
    /// reached was found without them. A person's own git may just be between the two, so only old ones go.
    fn sweep_halves(&self, now: SystemTime) -> Result<(), PruneError> {
        for path in list(&self.pack_dir())? {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let other = match path.extension().and_then(std::ffi::OsStr::to_str) {
                Some("pack") => path.with_extension("idx"),
                Some("idx") => path.with_extension("pack"),
                _ => continue,
            };
            let Ok(meta) = path.symlink_metadata() else { continue };
            let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
            let is_half = name.starts_with(b"pack-") && !meta.is_dir() && other.symlink_metadata().is_err();
            if is_half && age > HALVES_STAY && !path.with_extension("keep").exists() {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Deletes loose objects and packs that hold nothing which is reached, and says what is left.
    fn drop_whole(&self, packs: &[Arc<Index>], reached: &HashSet<ObjectId>) -> Result<Left, PruneError> {
        let mut left = Left::default();
        for (id, path) in self.loose_objects()? {
            if reached.contains(&id) {
                left.loose.push((id, path));
            } else {
                remove(&path)?;
            }
        }
        for pack in packs {
            let objects = pack.objects().map_err(failed(&pack.path, "read"))?;
            let alive = objects.iter().filter(|(id, _)| reached.contains(id)).count();
            let bytes = objects.iter().map(|(_, size)| size).sum::<u64>();
            let person_keeps = pack.path.with_extension("keep").exists();
            if alive == 0 && !person_keeps {
                self.remove_pack(&pack.path)?;
            } else if person_keeps || (alive == objects.len() && bytes >= LARGE) {
                left.settled.push(Arc::clone(pack));
            } else {
                left.mixed |= alive < objects.len();
                left.packs.push(Arc::clone(pack));
            }
        }
        for folder in list(&self.dir().join("objects"))? {
            // Only those that are empty can be removed.
            let _ = std::fs::remove_dir(&folder);
        }
        for folder in ["objects/info", "objects/pack"] {
            let path = self.dir().join(folder);
            std::fs::create_dir_all(&path).map_err(failed(&path, "made"))?;
        }
        Ok(left)
    }

    /// Writes what is left into one pack where something can be dropped or there are many files.
    fn pack_again(&self, left: &Left, reached: &HashSet<ObjectId>) -> Result<(), PruneError> {
        if !(left.mixed || left.packs.len() > MANY_PACKS || left.loose.len() > MANY_LOOSE) {
            return Ok(());
        }
        let settled = |id: &ObjectId| left.settled.iter().any(|pack| pack.find(id).is_some());
        let mut wanted: HashSet<ObjectId> = left.loose.iter().map(|(id, _)| *id).collect();
        for pack in &left.packs {
            let objects = pack.objects().map_err(failed(&pack.path, "read"))?;
            wanted.extend(objects.into_iter().map(|(id, _)| id).filter(|id| reached.contains(id)));
        }
        wanted.retain(|id| !settled(id));
        let mut sorted: Vec<&ObjectId> = wanted.iter().collect();
        sorted.sort_unstable();
        let work = self.dir().join(WORK);
        std::fs::create_dir_all(&work).map_err(failed(&work, "made"))?;
        let written = self.write_pack(&work, &sorted).and_then(|made| {
            for index in &made {
                self.put_in_place(index)?;
            }
            Ok(made)
        });
        // What could not be completed is of no use.
        let _ = std::fs::remove_dir_all(&work);
        let made = written?;
        let is_new = |old: &Path| made.iter().any(|new| new.file_name() == old.file_name());
        for pack in left.packs.iter().filter(|pack| !is_new(&pack.path)) {
            self.remove_pack(&pack.path)?;
        }
        for (_, path) in &left.loose {
            remove(path)?;
            // Not empty yet, or it goes.
            let _ = path.parent().map(std::fs::remove_dir);
        }
        Ok(())
    }

    /// Writes packs of `wanted` into the folder `work`, checks them, and says their indexes.
    fn write_pack(&self, work: &Path, wanted: &[&ObjectId]) -> Result<Vec<PathBuf>, PruneError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let scratch = self.scratch()?;
        let mut command = scratch.git();
        // Without deltas, so that we read it without git.
        command.args(["pack-objects", "-q", "--no-reuse-delta", "--depth=0", "--window=0", "--threads=2"]);
        command.arg(work.join("pack"));
        self.exchange(command, wanted.iter().copied(), "pack the objects of")?;
        let made: Vec<PathBuf> =
            list(work)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "idx")).collect();
        for index in &made {
            let mut command = scratch.git();
            command.arg("verify-pack").arg(index);
            self.answer(output_within(command, PATIENCE), "check a new pack of")?;
        }
        let indexes: Vec<Index> = made.iter().filter_map(|path| Index::read(path)).collect();
        match wanted.iter().find(|id| !indexes.iter().any(|index| index.find(id).is_some())) {
            None => Ok(made),
            Some(lost) => Err(PruneError::Git {
                what: "pack the objects of",
                path: self.dir().to_path_buf(),
                said: format!("object {lost} is not in the new pack"),
            }),
        }
    }

    /// Moves a complete pack into its place; the index makes it known, so it comes last.
    fn put_in_place(&self, index: &Path) -> Result<(), PruneError> {
        let dir = self.pack_dir();
        for end in ["pack", "rev", "idx"] {
            let from = index.with_extension(end);
            if !from.exists() {
                continue;
            }
            let to = dir.join(from.file_name().unwrap_or_default());
            File::open(&from)
                .and_then(|file| file.sync_all())
                .and_then(|()| std::fs::rename(&from, &to))
                .map_err(failed(&to, "written"))?;
        }
        File::open(&dir).and_then(|dir| dir.sync_all()).map_err(failed(&dir, "written"))
    }

    fn remove_pack(&self, index: &Path) -> Result<(), PruneError> {
        // A list over all packs, which only a person's own git makes, would name one that is gone.
        let dir = self.pack_dir();
        for path in list(&dir)? {
            if path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"multi-pack-index")) {
                remove(&path)?;
            }
        }
        // Without its index nobody takes the rest for a pack.
        for end in ["idx", "pack", "rev", "bitmap", "mtimes"] {
            remove(&index.with_extension(end))?;
        }
        Ok(())
    }
}

/// What is left when everything that can be deleted whole is gone.
#[derive(Default)]
struct Left {
    loose: Vec<(ObjectId, PathBuf)>,
    /// Packs that stay whatever happens.
    settled: Vec<Arc<Index>>,
    /// Packs that may be written anew.
    packs: Vec<Arc<Index>>,
    /// Whether one of them holds something to drop.
    mixed: bool,
}

fn failed(path: &Path, what: &'static str) -> impl Fn(io::Error) -> PruneError + use<> {
    let path = path.to_path_buf();
    move |source| PruneError::File { path: path.clone(), what, source }
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, PruneError> {
    let entries = std::fs::read_dir(dir).map_err(failed(dir, "read"))?;
    entries.map(|entry| entry.map(|e| e.path()).map_err(failed(dir, "read"))).collect()
}

fn remove(path: &Path) -> Result<(), PruneError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, "removed")(error)),
        _ => Ok(()),
    }
}
