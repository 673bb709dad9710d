//! Landing work in a person's folder: a three-way merge, file by file. Everything is decided before anything is
//! written, and what the person changed is never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use triphammer_model::WorkPath;

use crate::git::output_within;
use crate::listing::is_in;
use crate::look::{Eyes, Held, Look, LookError};
use crate::placing::{InTheWay, Staged, Thing};
use crate::root::{Root, ancestors, split, work_path};
use crate::snapshot::EntryKind;
use crate::store_objects::{ObjectId, ObjectKind, Store, StoreError};
use crate::trees::Kept;
use crate::zones::ZoneMap;

/// Work could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The folder cannot be looked at; nothing was changed.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A tree cannot be read; nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The `git` command could not merge; nothing was changed.
    #[error("git could not merge `{path}` ({source}): install git")]
    Git {
        /// The path.
        path: WorkPath,
        /// What the system said.
        source: io::Error,
    },
    /// There is no room; nothing was changed.
    #[error("`{}` has {free} bytes free, and {needed} are needed: make room and apply again", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Bytes free.
        free: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// Writing failed half-way; every file is either as it was or as it shall be.
    #[error(
        "`{path}` could not be written ({source}): {done} of {all} paths are applied; mend the cause and apply again"
    )]
    Write {
        /// The path.
        path: WorkPath,
        /// What the system said.
        source: io::Error,
        /// Paths applied before it.
        done: usize,
        /// Paths to apply.
        all: usize,
    },
}

/// A path on which both sides moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: WorkPath,
    /// What cannot be reconciled.
    pub why: String,
    /// Whether the file now carries git's conflict markers; else it is untouched.
    pub marked: bool,
}

/// What applying did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// Paths that now are as accepted or merged, sorted; those with conflict markers are among the conflicts too.
    pub applied: Vec<WorkPath>,
    /// Paths that were as accepted already, sorted.
    pub already: Vec<WorkPath>,
    /// Paths on which both sides moved, sorted.
    pub conflicts: Vec<Conflict>,
}

/// Merges the difference from tree `base` to tree `theirs` into the deliverable of the folder `to`. With `dry_run`
/// nothing is written, and the report says what would be.
///
/// # Errors
/// [`ApplyError`].
pub fn apply(
    store: &Store,
    base: &Kept,
    theirs: &Kept,
    to: &Root,
    zones: &ZoneMap,
    dry_run: bool,
) -> Result<ApplyReport, ApplyError> {
    let eyes = Eyes::new(to.clone(), zones.clone(), store.clone());
    let plan = Plan::make(&eyes, base, theirs)?;
    if !dry_run {
        plan.carry_out(&eyes)?;
    }
    Ok(plan.report)
}

/// A file or link on one side.
#[derive(Clone, Copy, Debug)]
struct Version {
    link: bool,
    mode: u32,
    id: Option<ObjectId>,
    stored: bool,
}

impl Version {
    /// Same content, kind and right to run; other permission bits are a person's own affair.
    fn same(&self, other: &Self) -> bool {
        let key = |v: &Self| (v.link, v.link || v.mode & 0o100 != 0);
        self.id.is_some() && self.id == other.id && key(self) == key(other)
    }
}

fn same(a: Option<&Version>, b: Option<&Version>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.same(b),
        _ => false,
    }
}

enum Act {
    Write { link: bool, mode: u32, id: ObjectId },
    Mode(u32),
    Delete,
}

struct Plan {
    acts: BTreeMap<WorkPath, Act>,
    directories: Vec<WorkPath>,
    needed: u64,
    report: ApplyReport,
}

fn versions(store: &Store, kept: &Kept) -> Result<BTreeMap<WorkPath, Version>, StoreError> {
    let mut all = BTreeMap::new();
    for entry in store.list(&kept.tree)? {
        let link = entry.is_link();
        let left_out = kept.manifest.not_stored.iter().find(|n| n.path == entry.path);
        let version = Version {
            link,
            mode: if link { 0o777 } else { kept.manifest.mode_of(&entry.path, entry.mode) },
            id: match left_out {
                None => Some(entry.id),
                Some(left_out) => left_out.sha1.as_ref().and_then(|text| text.parse().ok()),
            },
            stored: left_out.is_none(),
        };
        all.insert(entry.path, version);
    }
    Ok(all)
}

impl Plan {
    fn make(eyes: &Eyes, base: &Kept, theirs: &Kept) -> Result<Self, ApplyError> {
        let store = eyes.store();
        let (base_files, their_files) = (versions(store, base)?, versions(store, theirs)?);
        let have = eyes.look(None)?;
        let mut plan = Self {
            acts: BTreeMap::new(),
            directories: Vec::new(),
            needed: 0,
            report: ApplyReport::default(),
        };
        let paths: BTreeSet<&WorkPath> = base_files.keys().chain(their_files.keys()).collect();
        for path in paths {
            let (was, wanted) = (base_files.get(path), their_files.get(path));
            if wanted.is_none() && theirs.manifest.is_unseen(path) {
                plan.conflict(path, "the run could not look at it, so what became of it is not known");
            } else if !same(was, wanted) {
                plan.decide(eyes, &have, path, was, wanted)?;
            }
        }
        plan.drop_blocked(eyes, &have);
        let old: BTreeSet<&WorkPath> = base.manifest.empty.iter().collect();
        plan.directories = theirs.manifest.empty.iter().filter(|dir| !old.contains(dir)).cloned().collect();
        for act in plan.acts.values() {
            if let Act::Write { id, .. } = act {
                plan.needed += store.blob(id)?.len() as u64;
            }
        }
        plan.report.applied = plan.acts.keys().cloned().collect();
        plan.report.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(plan)
    }

    fn decide(
        &mut self,
        eyes: &Eyes,
        have: &Look,
        path: &WorkPath,
        was: Option<&Version>,
        wanted: Option<&Version>,
    ) -> Result<(), ApplyError> {
        let found = have.find(path.as_bytes());
        if found.is_some_and(|(entry, _)| entry.kind() == EntryKind::Special) {
            self.conflict(path, "a FIFO, socket or device is there");
            return Ok(());
        }
        let ours = found.map(|(entry, held)| Version {
            link: entry.kind() == EntryKind::Symlink,
            mode: entry.permissions(),
            id: held.id(),
            stored: matches!(held, Held::Stored(_)),
        });
        if same(ours.as_ref(), wanted) {
            self.report.already.push(path.clone());
            return Ok(());
        }
        let Some(wanted) = wanted else {
            if same(ours.as_ref(), was) {
                self.acts.insert(path.clone(), Act::Delete);
            } else {
                self.conflict(path, "it was deleted by the run and changed here");
            }
            return Ok(());
        };
        let Some(id) = wanted.id.filter(|_| wanted.stored) else {
            self.conflict(path, "its accepted content is not in the store");
            return Ok(());
        };
        if same(ours.as_ref(), was) {
            let mode = ours.map_or(wanted.mode, |ours| mode_here(ours.mode, was, wanted));
            let act = match ours {
                Some(ours) if ours.id == wanted.id && ours.link == wanted.link => Act::Mode(mode),
                _ => Act::Write { link: wanted.link, mode, id },
            };
            self.acts.insert(path.clone(), act);
            return Ok(());
        }
        let Some(ours) = ours else {
            self.conflict(path, "it was changed by the run and deleted here");
            return Ok(());
        };
        let (Some(our_id), false, false) = (ours.id.filter(|_| ours.stored), ours.link, wanted.link) else {
            self.conflict(path, "both sides changed it, and it is no text file on both");
            return Ok(());
        };
        let base = was.filter(|v| !v.link && v.stored).and_then(|v| v.id);
        match merge(eyes.store(), path, our_id, base, id)? {
            None => self.conflict(path, "both sides changed it, and it is binary"),
            Some((merged, conflicts)) => {
                let id = eyes.store().put(ObjectKind::Blob, &merged)?;
                let mode = mode_here(ours.mode, was, wanted);
                self.acts.insert(path.clone(), Act::Write { link: false, mode, id });
                if conflicts > 0 {
                    let places = if conflicts == 1 { "place" } else { "places" };
                    let why = format!("both sides changed the same lines, in {conflicts} {places}");
                    self.report.conflicts.push(Conflict { path: path.clone(), why, marked: true });
                }
            }
        }
        Ok(())
    }

    fn conflict(&mut self, path: &WorkPath, why: &str) {
        self.report.conflicts.push(Conflict { path: path.clone(), why: why.to_owned(), marked: false });
    }

    /// Turns writes into conflicts where a directory or file that stays stands in the way.
    fn drop_blocked(&mut self, eyes: &Eyes, have: &Look) {
        let mut blocked = Vec::new();
        for (path, act) in &self.acts {
            if !matches!(act, Act::Write { .. }) || have.find(path.as_bytes()).is_some() {
                continue;
            }
            let goes = |at: &[u8]| matches!(self.acts.get(&work_path(at)), Some(Act::Delete));
            let in_the_way = ancestors(path.as_bytes()).any(|dir| {
                let file = have.find(dir).is_some();
                file && !goes(dir)
            });
            let occupied = match eyes.root().stat(path.as_bytes()) {
                Ok(None) => false,
                // A directory goes by itself when all that it holds is deleted.
                Ok(Some(_)) => {
                    let top = path.as_bytes();
                    let below = have.entries().filter(|(e, _)| is_in(e.dir, top));
                    let mut below = below.map(|(e, _)| e.path()).peekable();
                    below.peek().is_none() || !below.all(|path| goes(&path))
                }
                Err(_) => !ancestors(path.as_bytes()).any(goes),
            };
            if in_the_way || occupied {
                blocked.push(path.clone());
            }
        }
        for path in blocked {
            self.acts.remove(&path);
            self.conflict(&path, "something else is there");
        }
    }

    fn carry_out(&self, eyes: &Eyes) -> Result<(), ApplyError> {
        let root = eyes.root();
        if let Ok(stat) = rustix::fs::fstatvfs(root.fd()) {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            if free < self.needed {
                return Err(ApplyError::NoSpace {
                    path: root.path().to_path_buf(),
                    free,
                    needed: self.needed,
                });
            }
        }
        let mut done = 0;
        let all = self.acts.len();
        let mut step = |path: &WorkPath, result: Result<(), Errno>| match result {
            Ok(()) => {
                done += 1;
                Ok(())
            }
            Err(error) => Err(ApplyError::Write { path: path.clone(), source: error.into(), done, all }),
        };
        // Deletions first: a file may have to make room for a directory of its name, and the other way round.
        for (path, _) in self.acts.iter().filter(|(_, act)| matches!(act, Act::Delete)) {
            step(path, root.remove_file(path.as_bytes()))?;
            let mut dir = split(path.as_bytes()).0;
            while !dir.is_empty() && root.remove_empty_dir(dir).is_ok_and(|gone| gone) {
                dir = split(dir).0;
            }
        }
        for (path, act) in &self.acts {
            match act {
                Act::Delete => {}
                Act::Mode(mode) => step(path, root.set_mode(path.as_bytes(), *mode))?,
                Act::Write { link, mode, id } => {
                    let content = eyes.store().blob(id)?;
                    let thing = if *link { Thing::Link(&content) } else { Thing::File(&content, *mode) };
                    let placed = root.stage(path.as_bytes(), thing, InTheWay::Stays).and_then(Staged::commit);
                    step(path, placed)?;
                }
            }
        }
        for dir in &self.directories {
            // Where something stands in the way there is no empty directory to make.
            let _ = root.make_dir(dir.as_bytes(), InTheWay::Stays);
        }
        Ok(())
    }
}

/// The person's permission bits, with the right to run given or taken as the run did.
fn mode_here(ours: u32, was: Option<&Version>, wanted: &Version) -> u32 {
    let runs = |mode: u32| mode & 0o100 != 0;
    match was {
        Some(was) if runs(was.mode) == runs(wanted.mode) => ours,
        _ if runs(wanted.mode) == runs(ours) => ours,
        // Who may read may run.
        _ if runs(wanted.mode) => ours | ((ours & 0o444) >> 2),
        _ => ours & !0o111,
    }
}

/// Merges as git does; `None` for binary files, else the result and the number of conflicts in it.
fn merge(
    store: &Store,
    path: &WorkPath,
    ours: ObjectId,
    base: Option<ObjectId>,
    theirs: ObjectId,
) -> Result<Option<(Vec<u8>, u32)>, ApplyError> {
    let content = [
        ("ours", store.blob(&ours)?),
        ("base", base.map_or(Ok(Vec::new()), |id| store.blob(&id))?),
        ("theirs", store.blob(&theirs)?),
    ];
    // As git tells binary from text: a NUL among the first 8,000 bytes.
    if content.iter().any(|(_, bytes)| bytes[..bytes.len().min(8_000)].contains(&0)) {
        return Ok(None);
    }
    let fail = |source| ApplyError::Git { path: path.clone(), source };
    let scratch = store.scratch()?;
    let output = content
        .iter()
        .try_for_each(|(name, bytes)| std::fs::write(scratch.path().join(name), bytes))
        .and_then(|()| {
            let mut command = scratch.git();
            command.args(["merge-file", "-p", "-L", "yours", "-L", "start", "-L", "accepted"]);
            command.args(content.iter().map(|(name, _)| scratch.path().join(name)));
            output_within(command, crate::git::PATIENCE)
        });
    let output = output.map_err(fail)?;
    match output.status.code() {
        Some(conflicts @ 0..=127) => Ok(Some((output.stdout, conflicts.unsigned_abs()))),
        _ => Ok(None),
    }
}
