//! Those who look at a tree within one process: ours, and what other Rust programs would use. Each keeps the path, the
//! size and the modification time of every file; all leave out what is named `.git`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ignore::WalkState;
use serde_json::{Value, json};
use triphammer_workspace::{Root, Snapshot, ZoneMap};

use crate::Result;
use crate::stopwatch::time;

/// Threads of a walk that can have several, as in the figures that the targets come from.
const THREADS: usize = 2;

type Kept = (PathBuf, u64, Option<SystemTime>);

pub(crate) struct Peers {
    tree: PathBuf,
    root: Root,
    zones: ZoneMap,
    last: Snapshot,
}

/// What came of a run.
enum Seen {
    Snapshot(Box<Snapshot>),
    Paths(Vec<Kept>),
    Parts(Vec<Vec<Kept>>),
}

impl Seen {
    fn len(&self) -> usize {
        match self {
            Self::Snapshot(snapshot) => snapshot.len(),
            Self::Paths(paths) => paths.len(),
            Self::Parts(parts) => parts.iter().map(Vec::len).sum(),
        }
    }
}

impl Peers {
    pub(crate) fn new(tree: &Path) -> Result<Self> {
        let (root, zones) = (Root::open(tree)?, crate::plain_zones()?);
        let last = Snapshot::deliverable(&root, &zones)?;
        Ok(Self { tree: tree.to_path_buf(), root, zones, last })
    }

    /// One run: its times, and how many files it saw.
    pub(crate) fn run(&self, who: &str) -> Result<Value> {
        let (seen, took) = time(|| self.look(who));
        Ok(json!({ "wall_ms": took.wall, "cpu_ms": took.cpu, "count": seen?.len() }))
    }

    /// The paths that one run sees, from the tree's folder.
    pub(crate) fn paths(&self, who: &str) -> Result<Vec<Vec<u8>>> {
        let below = |(path, ..): &Kept| Ok(path.strip_prefix(&self.tree)?.as_os_str().as_bytes().to_vec());
        match self.look(who)? {
            Seen::Snapshot(snapshot) => Ok(snapshot.iter().map(|entry| entry.path()).collect()),
            Seen::Paths(paths) => paths.iter().map(below).collect(),
            Seen::Parts(parts) => parts.iter().flatten().map(below).collect(),
        }
    }

    fn look(&self, who: &str) -> Result<Seen> {
        match who {
            "walk" => Ok(Seen::Snapshot(Box::new(Snapshot::deliverable(&self.root, &self.zones)?))),
            "restat" => Ok(Seen::Snapshot(Box::new(Snapshot::deliverable_since(
                &self.root,
                &self.zones,
                &self.last,
            )?))),
            "walkdir" => Ok(Seen::Paths(by_walkdir(&self.tree)?)),
            "ignore" => Ok(Seen::Parts(by_ignore(&self.tree)?)),
            _ => Err(format!("nobody is called `{who}`").into()),
        }
    }
}

fn by_walkdir(tree: &Path) -> Result<Vec<Kept>> {
    let mut all = Vec::new();
    for entry in walkdir::WalkDir::new(tree).into_iter().filter_entry(|entry| entry.file_name() != ".git") {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            let found = entry.metadata()?;
            all.push((entry.into_path(), found.len(), found.modified().ok()));
        }
    }
    Ok(all)
}

/// A thread's share; it is handed over when the thread ends.
struct Part<'a> {
    kept: Vec<Kept>,
    all: &'a Mutex<Vec<Vec<Kept>>>,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.kept));
    }
}

fn by_ignore(tree: &Path) -> Result<Vec<Vec<Kept>>> {
    let all = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    let mut walk = ignore::WalkBuilder::new(tree);
    walk.standard_filters(false).threads(THREADS).filter_entry(|entry| entry.file_name() != ".git");
    walk.build_parallel().run(|| {
        let mut part = Part { kept: Vec::new(), all: &all };
        let failed = &failed;
        Box::new(move |entry| {
            let kept = entry.and_then(|entry| {
                if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                    return Ok(None);
                }
                let found = entry.metadata()?;
                Ok(Some((entry.into_path(), found.len(), found.modified().ok())))
            });
            match kept {
                Ok(kept) => part.kept.extend(kept),
                Err(error) => {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return WalkState::Quit;
                }
            }
            WalkState::Continue
        })
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}
