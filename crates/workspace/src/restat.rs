//! Looking again at directories that were listed before: only those whose own times moved are read anew.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::descend::{MAX_OPEN, Outside, Start, descend, threads};
use crate::lister::{Again, LIST, Lister, Scene, again};
use crate::listing::{Listing, by_parts, is_in};
use crate::look::LookError;
use crate::root::{join, split};
use crate::zones::Zone;

/// Directories that one thread takes at a time; its neighbours share the open directories above.
const CHUNK: usize = 64;

/// Directories below which a second thread costs more than it saves.
const ALONE: usize = 3 * CHUNK;

/// Flags with which a directory is opened that is only asked for stats.
#[cfg(target_os = "linux")]
const STAT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const STAT: OFlags = LIST;

/// How a kept listing stands now, where it is not the same.
enum Outcome {
    /// The same names with other stats.
    Restated(Listing),
    /// Listed anew: names may have come and gone.
    Relisted(Listing),
    /// It is a cache by its tag now.
    Tagged,
    /// It cannot be listed.
    Refused(Errno),
}

/// Which of the kept listings are looked at.
#[derive(Clone, Copy)]
pub(crate) enum Which<'a> {
    /// All, by their stats.
    All,
    /// Those at these places, by listing them anew.
    Anew(&'a [usize]),
}

impl Which<'_> {
    fn len(self, kept: &[Arc<Listing>]) -> usize {
        match self {
            Self::All => kept.len(),
            Self::Anew(places) => places.len(),
        }
    }
}

/// Looks at the kept listings again. `starts` are the subtrees that make up the view, sorted; what is kept and lies
/// in none of them is let go, and a start that is not kept is listed. The answer is what a full walk would find.
pub(crate) fn look_again(
    scene: &Scene<'_>,
    kept: &[Arc<Listing>],
    which: Which<'_>,
    starts: &[Start],
    outside: &mut Outside,
) -> Result<Vec<Arc<Listing>>, LookError> {
    let outcomes = outcomes(scene, kept, which);
    let mut merge = Merge {
        scene,
        kept,
        result: Vec::with_capacity(kept.len()),
        came: Vec::new(),
        dropped: BTreeSet::new(),
        relisted: BTreeSet::new(),
        vanished: Vec::new(),
        skip: None,
    };
    merge.came = starts.iter().filter(|(path, _)| !merge.knows(path)).cloned().collect();
    let mut outcomes = outcomes.into_iter().peekable();
    for (place, listing) in kept.iter().enumerate() {
        let outcome = outcomes.next_if(|(at, _)| *at == place).map(|(_, outcome)| outcome);
        if !is_below_one(listing.path(), starts) || merge.is_gone(listing.path()) {
            continue;
        }
        merge.take(listing, outcome, outside)?;
    }
    merge.ask_outside(outside);
    let Merge { mut came, result, .. } = merge;
    if came.is_empty() {
        return Ok(result);
    }
    came.sort_unstable_by(|a, b| by_parts(&a.0, &b.0));
    came.dedup_by(|a, b| a.0 == b.0);
    let new = descend(scene, came, outside)?;
    Ok(merged(result, new))
}

/// Whether a path lies in one of the subtrees, which are sorted and apart.
fn is_below_one(path: &[u8], starts: &[Start]) -> bool {
    let after = starts.partition_point(|(start, _)| by_parts(start, path).is_le());
    after > 0 && is_in(path, &starts[after - 1].0)
}

/// Two sorted lists as one.
fn merged(a: Vec<Arc<Listing>>, b: Vec<Arc<Listing>>) -> Vec<Arc<Listing>> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let mut b = b.into_iter().peekable();
    for listing in a {
        while let Some(earlier) = b.next_if(|other| by_parts(other.path(), listing.path()).is_lt()) {
            all.push(earlier);
        }
        all.push(listing);
    }
    all.extend(b);
    all
}

/// Brings outcomes together, directory by directory, each before what lies below it.
struct Merge<'a> {
    scene: &'a Scene<'a>,
    kept: &'a [Arc<Listing>],
    result: Vec<Arc<Listing>>,
    /// Subtrees to list.
    came: Vec<Start>,
    /// Directories that their parent does not name any more.
    dropped: BTreeSet<Vec<u8>>,
    /// Directories that were listed anew: their new ones are in `came`.
    relisted: BTreeSet<Vec<u8>>,
    /// Directories that were gone.
    vanished: Vec<Vec<u8>>,
    /// The subtree that is gone, while we are in it.
    skip: Option<Vec<u8>>,
}

impl Merge<'_> {
    fn knows(&self, path: &[u8]) -> bool {
        self.kept.binary_search_by(|listing| by_parts(listing.path(), path)).is_ok()
    }

    fn is_gone(&mut self, path: &[u8]) -> bool {
        if let Some(top) = &self.skip {
            if is_in(path, top) {
                return true;
            }
            self.skip = None;
        }
        if !self.dropped.is_empty() && self.dropped.remove(path) {
            self.skip = Some(path.to_vec());
            return true;
        }
        false
    }

    fn take(
        &mut self,
        listing: &Arc<Listing>,
        outcome: Option<Outcome>,
        outside: &mut Outside,
    ) -> Result<(), LookError> {
        let path = listing.path();
        match outcome {
            None => self.result.push(Arc::clone(listing)),
            Some(Outcome::Restated(now)) => self.result.push(Arc::new(now)),
            Some(Outcome::Relisted(now)) => {
                let want = self.scene.want;
                let (was, is): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    (listing.dirs().collect(), now.dirs().collect());
                let entered = |dirs: &BTreeMap<&[u8], Zone>, other: &BTreeMap<&[u8], Zone>| {
                    let mine = dirs.iter().filter(|(_, zone)| want.enters(**zone));
                    mine.map(|(name, zone)| (join(path, name), *zone, other.get(name) == Some(zone)))
                        .collect::<Vec<_>>()
                };
                for (below, _, stays) in entered(&was, &is) {
                    if !stays {
                        self.dropped.insert(below);
                    }
                }
                for (below, zone, stayed) in entered(&is, &was) {
                    if !stayed || !self.knows(&below) {
                        self.came.push((below, zone));
                    }
                }
                self.relisted.insert(path.to_vec());
                self.result.push(Arc::new(now));
            }
            Some(gone) => {
                self.skip = Some(path.to_vec());
                match gone {
                    // It may be there again by the time that its parent was listed.
                    Outcome::Refused(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => {
                        self.vanished.push(path.to_vec());
                    }
                    Outcome::Refused(error) => outside.refused(self.scene, path.to_vec(), error)?,
                    _ => drop(outside.tagged.insert(path.to_vec())),
                }
            }
        }
        Ok(())
    }

    /// What was left outside before is asked again where its parent still names it, and forgotten where not.
    fn ask_outside(&mut self, outside: &mut Outside) {
        let (scene, result, kept) = (self.scene, &self.result, self.kept);
        let mut dirs_of: BTreeMap<&[u8], BTreeMap<&[u8], Zone>> = BTreeMap::new();
        let at = |path: &[u8]| result.binary_search_by(|listing| by_parts(listing.path(), path)).ok();
        let mut zone_of = |path: &[u8]| {
            let listing = &result[at(split(path).0)?];
            let names = dirs_of.entry(listing.path()).or_insert_with(|| listing.dirs().collect());
            names.get(split(path).1).copied().filter(|zone| scene.want.enters(*zone))
        };
        let fresh = |path: &[u8]| kept.binary_search_by(|listing| by_parts(listing.path(), path)).is_ok();
        let mut again = Vec::new();
        for path in self.vanished.drain(..) {
            again.extend(zone_of(&path).map(|zone| (path, zone)));
        }
        let mut stays = |path: &Vec<u8>| {
            // What became a cache or unreadable just now was asked just now.
            if fresh(path) {
                return true;
            }
            if !self.relisted.contains(split(path).0) {
                again.extend(zone_of(path).map(|zone| (path.clone(), zone)));
            }
            false
        };
        outside.tagged.retain(&mut stays);
        outside.unreadable.retain(|path, _| stays(path));
        self.came.extend(again);
    }
}

fn outcomes(scene: &Scene<'_>, kept: &[Arc<Listing>], which: Which<'_>) -> Vec<(usize, Outcome)> {
    let count = which.len(kept);
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        let mut visitor = Visitor { scene, kept, lister: Lister::new(), open: Vec::new() };
        let mut part = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= count {
                break;
            }
            for i in start..count.min(start + CHUNK) {
                let (place, anew) = match which {
                    Which::All => (i, false),
                    Which::Anew(places) => (places[i], true),
                };
                part.extend(visitor.visit(&kept[place], anew).map(|outcome| (place, outcome)));
            }
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut part);
    };
    if count <= ALONE {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads() {
                // A system that has no thread left is looked at with fewer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(place, _)| *place);
    all
}

struct Visitor<'a> {
    scene: &'a Scene<'a>,
    kept: &'a [Arc<Listing>],
    lister: Lister,
    /// The open directories above the one that was looked at last, outermost first.
    open: Vec<(&'a [u8], OwnedFd)>,
}

impl<'a> Visitor<'a> {
    fn visit(&mut self, listing: &'a Arc<Listing>, anew: bool) -> Option<Outcome> {
        match self.try_visit(listing, anew) {
            Ok(outcome) => outcome,
            Err(error) => Some(Outcome::Refused(error)),
        }
    }

    fn try_visit(&mut self, listing: &'a Arc<Listing>, anew: bool) -> Result<Option<Outcome>, Errno> {
        let path = listing.path();
        let fd = self.open(path)?;
        let now = if anew { Again::Stale } else { again(self.scene, fd.as_fd(), listing)? };
        let outcome = match now {
            Again::Same => None,
            Again::Restated(listing) => Some(Outcome::Restated(listing)),
            Again::Stale => {
                let fd = rustix::fs::openat(&fd, c".", LIST, Mode::empty())?;
                let listed = self.lister.list(self.scene, fd.as_fd(), path, listing.zone)?;
                Some(listed.map_or(Outcome::Tagged, Outcome::Relisted))
            }
        };
        if self.open.len() < MAX_OPEN {
            self.open.push((path, fd));
        }
        Ok(outcome)
    }

    /// Opens a directory from the one above it, which is opened first and kept, since its other directories come
    /// next.
    fn open(&mut self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let (dir, name) = split(path);
        while self.open.last().is_some_and(|(open, _)| !is_in(dir, open) || path.is_empty()) {
            self.open.pop();
        }
        if path.is_empty() {
            return self.scene.root.open_beneath(path, STAT);
        }
        if self.open.last().is_none_or(|(open, _)| *open != dir) {
            let parent = self.scene.root.open_beneath(dir, STAT)?;
            let known = self.kept.binary_search_by(|listing| by_parts(listing.path(), dir));
            match known {
                Ok(at) if self.open.len() < MAX_OPEN => self.open.push((self.kept[at].path(), parent)),
                _ => return rustix::fs::openat(&parent, name, STAT, Mode::empty()),
            }
        }
        let (_, parent) = self.open.last().ok_or(Errno::NOENT)?;
        rustix::fs::openat(parent, name, STAT, Mode::empty())
    }
}
