//! Movement: what differs between two looks.

use std::collections::BTreeMap;

use triphammer_model::movement::Infrastructure;
use triphammer_model::{Change, Content, Observed, WorkPath};

use crate::look::{Held, Look};
use crate::snapshot::{Entry, EntryKind, Pair, differing_pairs, directory_pairs};

/// How many infrastructure paths are shown.
const SAMPLE: usize = 20;

/// Git's id of the empty blob: every empty file has it, so it tells nothing about renames.
const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// What moved between two looks at the deliverable, sorted by path.
///
/// Files, links and special files move; a directory that is made, removed or whose mode changes is no movement by
/// itself, since work is files. The label [`Content::Same`] says that bytes, permission bits and link target are
/// what they were, whatever the timestamps say.
pub fn moved(before: &Look, after: &Look) -> Vec<Observed> {
    let mut observed = Vec::new();
    let mut came = Vec::new();
    let mut gone = Vec::new();
    for pair in differing_pairs(before.snapshot(), after.snapshot()) {
        match pair {
            // Where nothing can be looked at, absence proves nothing; the bounds name the place.
            Pair::Before(i) if after.snapshot().is_unseen(&before.snapshot().at(i).path()) => {}
            Pair::Before(i) => {
                let entry = before.snapshot().at(i);
                gone.push((entry, before.held(i)));
                observed.push(one(Change::Deleted, Some(entry), None, Content::Changed));
            }
            Pair::After(i) => {
                let entry = after.snapshot().at(i);
                // What was there before and what was not cannot be told where nothing could be looked at.
                let known = !before.snapshot().is_unseen(&entry.path());
                let content = if known { Content::Changed } else { Content::Unknown };
                came.push((observed.len(), entry, after.held(i)));
                observed.push(one(Change::Added, None, Some(entry), content));
            }
            Pair::Both(i, j) => {
                let (old, new) = (before.snapshot().at(i), after.snapshot().at(j));
                let content = compare(old, before.held(i), new, after.held(j));
                let uncertain = (old.facts.uncertain || new.facts.uncertain) && content != Content::Same;
                if uncertain || !old.facts.same_as(&new.facts) {
                    observed.push(one(Change::Changed, Some(old), Some(new), content));
                }
            }
        }
    }
    label_renames(&mut observed, &gone, &came);
    observed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    observed
}

fn one(change: Change, before: Option<Entry<'_>>, after: Option<Entry<'_>>, content: Content) -> Observed {
    let path = after.or(before).map(|entry| entry.path()).unwrap_or_default();
    Observed {
        path: WorkPath::from_bytes(path),
        change,
        before: before.map(|entry| entry.signature()),
        after: after.map(|entry| entry.signature()),
        content,
        renamed_from: None,
    }
}

fn compare(old: Entry<'_>, was: Held, new: Entry<'_>, is: Held) -> Content {
    if old.kind() != new.kind() || old.permissions() != new.permissions() {
        return Content::Changed;
    }
    match (was.id(), is.id()) {
        (Some(was), Some(is)) if was == is => Content::Same,
        (Some(_), Some(_)) => Content::Changed,
        _ if new.kind() == EntryKind::Special => Content::Same,
        // A different size is a different content, read or not.
        _ if old.size() != new.size() => Content::Changed,
        _ => Content::Unknown,
    }
}

/// Labels what came with what went, by inode first and by content second; each deleted path is used once.
fn label_renames(observed: &mut [Observed], gone: &[(Entry<'_>, Held)], came: &[(usize, Entry<'_>, Held)]) {
    let mut used = vec![false; gone.len()];
    let mut by_inode = BTreeMap::new();
    let mut by_content: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (i, (entry, held)) in gone.iter().enumerate().rev() {
        by_inode.insert(entry.facts.ino, i);
        if let Some(id) = held.id().filter(|id| id.to_string() != EMPTY_BLOB) {
            by_content.entry(id).or_default().push(i);
        }
    }
    let mut label = |at: usize, i: usize, used: &mut [bool]| {
        used[i] = true;
        observed[at].renamed_from = Some(gone[i].0.work_path());
    };
    let mut rest = Vec::new();
    for (at, entry, held) in came {
        let same_inode = by_inode.get(&entry.facts.ino).copied().filter(|i| {
            // An inode number is used again after a deletion, so size or content must agree as well.
            let (old, was) = &gone[*i];
            let agree = was.id() == held.id() || old.facts.mtime == entry.facts.mtime;
            !used[*i] && old.kind() == entry.kind() && agree
        });
        match same_inode {
            Some(i) => label(*at, i, &mut used),
            None => rest.push((*at, entry, held)),
        }
    }
    for (at, entry, held) in rest {
        let Some(candidates) = held.id().and_then(|id| by_content.get_mut(&id)) else { continue };
        while let Some(i) = candidates.pop() {
            if !used[i] && gone[i].0.kind() == entry.kind() {
                label(at, i, &mut used);
                break;
            }
        }
    }
}

/// How many directories were made, removed or given other permission bits between two looks. They are no movement by
/// themselves.
pub fn moved_directories(before: &Look, after: &Look) -> usize {
    let (was, is) = (before.snapshot(), after.snapshot());
    let moved = |pair: &Pair| match *pair {
        Pair::Before(_) | Pair::After(_) => true,
        Pair::Both(i, j) => was.listings()[i].facts().mode != is.listings()[j].facts().mode,
    };
    directory_pairs(was, is).filter(moved).count()
}

/// What moved in the infrastructure, by stats, and by content where stats prove nothing and both are known.
pub fn moved_infrastructure(before: &Look, after: &Look) -> Infrastructure {
    let mut found = Infrastructure::default();
    let (was, is) = (before.snapshot(), after.snapshot());
    let still = |i: usize, j: usize| {
        let (old, new) = (was.at(i).facts, is.at(j).facts);
        let content = || before.held(i).id().zip(after.held(j).id()).is_none_or(|(old, new)| old == new);
        old.same_as(&new) && (!(old.uncertain || new.uncertain) || content())
    };
    for pair in differing_pairs(was, is) {
        let entry = match pair {
            Pair::Before(i) => was.at(i),
            Pair::Both(i, j) if still(i, j) => continue,
            Pair::After(j) | Pair::Both(_, j) => is.at(j),
        };
        found.moved += 1;
        if found.sample.len() < SAMPLE {
            found.sample.push(entry.work_path());
        }
    }
    found.sample.sort_unstable();
    found
}
