//! One pass over a workspace: names and stats, zone by zone, with everything that was not seen.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::fs::FileType;
use triphammer_model::{Bounds, WorkPath};

use crate::descend::{Outside, Start, descend};
use crate::lister::Scene;
use crate::listing::{Listing, by_parts};
use crate::look::LookError;
use crate::restat::{Which, look_again};
use crate::root::{join, split, work_path};
use crate::tick;
use crate::zones::{CacheReason, Zone};

/// How many entries a list in `bounds` shows; its count is exact beyond.
pub(crate) const SHOWN: usize = 200;

/// How many mount points are named in a note.
const MOUNTS: usize = 5;

/// How often fresh entries are looked at again before they are marked as uncertain.
const MAX_ROUNDS: u32 = 4;

/// What an earlier pass found, as far as the next one can build on it.
#[derive(Clone, Copy)]
pub(crate) struct Earlier<'a> {
    pub(crate) listings: &'a [Arc<Listing>],
    /// Directories that it met and did not list.
    pub(crate) outside: &'a [Vec<u8>],
}

/// What a pass found.
pub(crate) struct Found {
    /// Each directory before what lies below it, see [`by_parts`].
    pub(crate) listings: Vec<Arc<Listing>>,
    pub(crate) outside: Outside,
    pub(crate) waited: Duration,
    ahead: u64,
    restless: u64,
}

/// Lists the subtrees `starts`, sorted, and waits out what is too fresh to trust. With what an `earlier` pass found
/// only that is read which moved since; the answer is the same.
///
/// # Errors
/// [`LookError`] when the workspace folder itself cannot be listed, or the system ran out of something.
pub(crate) fn walk(
    scene: &Scene<'_>,
    starts: &[Start],
    earlier: Option<Earlier<'_>>,
) -> Result<Found, LookError> {
    let mut outside = Outside::default();
    let listings = match earlier {
        None => descend(scene, starts.to_vec(), &mut outside)?,
        Some(earlier) => {
            outside.tagged.extend(earlier.outside.iter().cloned());
            look_again(scene, earlier.listings, Which::All, starts, &mut outside)?
        }
    };
    let mut found = Found { listings, outside, waited: Duration::ZERO, ahead: 0, restless: 0 };
    found.settle(scene, starts)?;
    let whole = starts.iter().any(|(start, _)| start.is_empty());
    if whole && found.listings.first().is_none_or(|listing| !listing.path().is_empty()) {
        let what = found.outside.unreadable.remove(&[][..]).unwrap_or_else(|| "it vanished".to_owned());
        return Err(LookError::Folder { path: scene.root.path().to_path_buf(), what });
    }
    Ok(found)
}

impl Found {
    /// Directories of `zone` that hold files.
    pub(crate) fn directories_with_files(&self, zone: Zone) -> impl Iterator<Item = &[u8]> {
        self.listings
            .iter()
            .filter(move |listing| listing.zone == zone && listing.len() > 0)
            .map(|listing| listing.path())
    }

    /// Inode numbers of directories of the deliverable that hold files, or other directories.
    pub(crate) fn inodes_with_files(&self) -> std::collections::BTreeSet<u64> {
        let work = self.listings.iter().filter(|listing| listing.zone == Zone::Deliverable);
        work.filter(|l| l.len() > 0 || l.dirs().next().is_some()).map(|l| l.facts().ino).collect()
    }

    /// Waits until the clock has passed what is fresh, and looks at it again.
    fn settle(&mut self, scene: &Scene<'_>, starts: &[Start]) -> Result<(), LookError> {
        for round in 0.. {
            let fresh: Vec<usize> =
                (0..self.listings.len()).filter(|i| self.listings[*i].fresh().is_some()).collect();
            let Some(latest) = fresh.iter().filter_map(|i| self.listings[*i].fresh()).max() else { break };
            if round == MAX_ROUNDS {
                // Something writes all the time; content is compared instead of times.
                self.restless = fresh.len() as u64;
                for i in fresh {
                    self.listings[i] = Arc::new(self.listings[i].distrusted());
                }
                break;
            }
            self.waited += tick::wait_past(latest);
            self.listings =
                look_again(scene, &self.listings, Which::Anew(&fresh), starts, &mut self.outside)?;
        }
        if scene.weak.is_none() {
            let listings = self.listings.iter().filter(|listing| listing.uncertain);
            let files = listings.map(|l| l.files().filter(|(_, facts)| facts.uncertain).count() as u64);
            self.ahead = files.sum();
        }
        Ok(())
    }

    /// What was not looked at.
    pub(crate) fn bounds(&self, scene: &Scene<'_>) -> Bounds {
        let mut bounds = Bounds::default();
        let mut vanished = self.outside.vanished;
        for listing in &self.listings {
            if let Some(hidden) = listing.hidden() {
                vanished += hidden.vanished;
                hidden.pruned.iter().for_each(|(path, reason)| prune(&mut bounds, path, *reason));
                hidden.unreadable.iter().for_each(|(path, why)| unreadable(&mut bounds, path, why));
            }
            if !scene.want.lists(listing.zone) {
                continue;
            }
            let path = |name: &[u8]| work_path(&join(listing.path(), name));
            if listing.special {
                let kinds = [FileType::RegularFile, FileType::Symlink];
                for (name, _) in listing.files().filter(|(_, facts)| !kinds.contains(&facts.kind())) {
                    shown(&mut bounds.special, &mut bounds.special_count, || path(name));
                }
            }
            if listing.zone == Zone::Deliverable {
                for (name, _) in listing.dirs().filter(|(_, zone)| *zone == Zone::Infrastructure) {
                    shown(&mut bounds.infrastructure, &mut bounds.infrastructure_count, || path(name));
                }
            }
        }
        self.outside.tagged.iter().for_each(|path| prune(&mut bounds, path, CacheReason::CachedirTag));
        self.outside.unreadable.iter().for_each(|(path, why)| unreadable(&mut bounds, path, why));
        bounds.notes = self.notes(scene, vanished);
        bounds
    }

    fn notes(&self, scene: &Scene<'_>, vanished: u64) -> Vec<String> {
        let Self { restless, ahead, .. } = self;
        let mut notes = scene.zones.notes().to_vec();
        let mut note = |condition: bool, text: &dyn Fn() -> String| notes.extend(condition.then(text));
        note(vanished > 0, &|| format!("{vanished} entries vanished while they were looked at"));
        note(*restless > 0, &|| {
            format!("{restless} directories kept changing while they were looked at; content is compared")
        });
        note(*ahead > 0 && *restless == 0, &|| {
            format!("{ahead} entries carry a change time ahead of the clock; content is compared")
        });
        notes.extend(scene.weak.map(|name| weak("the workspace lies", name)));
        let below = scene.weak_below.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(below.iter().map(|name| weak("a part of the workspace lies", name)));
        let elsewhere = scene.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        let tops = elsewhere.iter().filter(|dir| !elsewhere.contains(split(dir).0));
        let tops: Vec<String> = tops.map(|dir| format!("`{}`", work_path(dir))).collect();
        if !tops.is_empty() {
            let more = if tops.len() > MOUNTS {
                format!(" and {} more", tops.len() - MOUNTS)
            } else {
                String::new()
            };
            let named = tops[..tops.len().min(MOUNTS)].join(", ");
            notes.push(format!("other file systems are mounted at {named}{more} and were looked at as well"));
        }
        notes
    }

    /// Places that could not be looked at, with the reasons, sorted.
    pub(crate) fn unseen(&self) -> Vec<(Vec<u8>, String)> {
        let entries = self.listings.iter().filter_map(|listing| listing.hidden());
        let entries = entries.flat_map(|hidden| hidden.unreadable.iter().cloned());
        let places = self.outside.unreadable.iter().map(|(path, why)| (path.clone(), why.clone()));
        let mut all: Vec<_> = places.chain(entries).collect();
        all.sort_unstable();
        all
    }

    /// Places that a later pass has to ask again.
    pub(crate) fn unlisted(&self) -> Vec<Vec<u8>> {
        self.outside.tagged.iter().chain(self.outside.unreadable.keys()).cloned().collect()
    }
}

fn weak(what: &str, name: &str) -> String {
    format!("{what} on {name}, where times do not prove that nothing moved; content is compared")
}

/// The infrastructure directories that the listings name, sorted.
pub(crate) fn infrastructure_starts(listings: &[Arc<Listing>]) -> Vec<Start> {
    let mut starts = Vec::new();
    for listing in listings.iter().filter(|listing| listing.zone == Zone::Deliverable) {
        let named = listing.dirs().filter(|(_, zone)| *zone == Zone::Infrastructure);
        starts.extend(named.map(|(name, zone)| (join(listing.path(), name), zone)));
    }
    starts.sort_unstable_by(|a, b| by_parts(&a.0, &b.0));
    starts
}

fn prune(bounds: &mut Bounds, path: &[u8], reason: CacheReason) {
    bounds.pruned_count += 1;
    if bounds.pruned.len() < SHOWN {
        bounds.pruned.insert(work_path(path), reason.word().to_owned());
    }
}

fn unreadable(bounds: &mut Bounds, path: &[u8], why: &str) {
    bounds.unreadable_count += 1;
    if bounds.unreadable.len() < SHOWN {
        bounds.unreadable.insert(work_path(path), why.to_owned());
    }
}

fn shown(list: &mut Vec<WorkPath>, count: &mut u64, path: impl FnOnce() -> WorkPath) {
    *count += 1;
    if list.len() < SHOWN {
        list.push(path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lister::Want;
    use crate::root::Root;
    use crate::zones::{ZoneConfig, ZoneMap};

    /// On a network file system nothing is settled by its times: all is listed anew, and content will be compared.
    #[test]
    fn times_of_a_foreign_file_system_prove_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), "x").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let scene =
            Scene { weak: Some("nfs"), ..Scene::new(&root, &zones, Want::DELIVERABLE, &|_, _| false) };
        let starts = [(Vec::new(), Zone::Deliverable)];
        let first = walk(&scene, &starts, None).unwrap();
        let earlier = Earlier { listings: &first.listings, outside: &[] };
        let second = walk(&scene, &starts, Some(earlier)).unwrap();
        for found in [&first, &second] {
            assert!(
                found.listings.iter().all(|l| l.facts().uncertain && l.files().all(|(_, f)| f.uncertain))
            );
            let notes = found.bounds(&scene).notes;
            assert_eq!(
                notes,
                [
                    "the workspace lies on nfs, where times do not prove that nothing moved; content is compared"
                ]
            );
        }
        let shared = first.listings.iter().zip(&second.listings).any(|(a, b)| Arc::ptr_eq(a, b));
        assert!(!shared);
    }

    #[test]
    fn wide_and_deep_trees_are_walked_in_order() {
        // Deeper than directories are held open.
        let dir = tempfile::tempdir().unwrap();
        let mut deep = dir.path().to_path_buf();
        for level in 0..200 {
            deep.push("d");
            std::fs::create_dir(&deep).unwrap();
            for n in 0..20 {
                std::fs::create_dir(deep.join(format!("{level}-{n}"))).unwrap();
            }
            std::fs::write(deep.join("f"), "x").unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let scene = Scene::new(&root, &zones, Want::DELIVERABLE, &|_, _| false);
        let starts = [(Vec::new(), Zone::Deliverable)];
        let first = walk(&scene, &starts, None).unwrap();
        assert_eq!(first.listings.len(), 1 + 200 * 21);
        assert!(first.listings.is_sorted_by(|a, b| by_parts(a.path(), b.path()).is_lt()));
        std::fs::remove_dir_all(dir.path().join("d/d/d/d/d")).unwrap();
        let earlier = Earlier { listings: &first.listings, outside: &[] };
        let second = walk(&scene, &starts, Some(earlier)).unwrap();
        assert_eq!(second.listings.len(), 1 + 4 * 21);
    }
}
