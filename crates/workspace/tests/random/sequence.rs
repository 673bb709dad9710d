//! One sequence: what is compared, and with what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use sha1::{Digest as _, Sha1};
use triphammer_model::{Change, Content, Observed, WorkPath};
use triphammer_workspace::snapshot::Entry;
use triphammer_workspace::{EntryKind, Kept, Look, Onto, Snapshot, moved, restore};

use crate::act::{self, Times};
use crate::arena::Arena;
use crate::plan::{Plan, Verb};
use crate::world::{Thing, World};

/// What came of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What could be done.
    pub(crate) done: Vec<Verb>,
    pub(crate) observed: Vec<(Change, Content)>,
    pub(crate) restored: bool,
}

/// Carries out a plan and compares what was seen with what there is.
///
/// # Errors
/// What differs.
pub(crate) fn run(arena: &Arena, plan: &Plan) -> Result<Outcome, String> {
    arena.clear();
    let mut outcome = Outcome::default();
    for act in &plan.start {
        if act::perform(arena, act, &Times::new()).is_ok() {
            outcome.done.push(act.verb);
        }
    }
    let early = plan.read_first.then(|| World::read(&arena.work()));
    plan.before_first_look.take();
    let first = arena.eyes.look(None).map_err(|error| error.to_string())?;
    let before = early.unwrap_or_else(|| World::read(&arena.work()));
    let times = first.snapshot().iter().map(|entry| (path(&entry), entry.mtime_ns())).collect();
    let mut last = first.clone();
    for (i, act) in plan.work.iter().enumerate() {
        if plan.look_between == Some(i) {
            last = arena.eyes.look(Some(&last)).map_err(|error| error.to_string())?;
        }
        if act::perform(arena, act, &times).is_ok() {
            outcome.done.push(act.verb);
        }
    }
    plan.before_second_look.take();
    let second = arena.eyes.look(Some(&last)).map_err(|error| error.to_string())?;
    let after = World::read(&arena.work());

    check_snapshot("first look", first.snapshot(), &before)?;
    check_snapshot("second look", second.snapshot(), &after)?;
    let observed = moved(&first, &second);
    check_movement(&observed, &before, &after)?;
    outcome.observed = observed.iter().map(|one| (one.change, one.content)).collect();
    check_listing_again(arena, &first, &second)?;
    let kept = arena.eyes.keep(&second, &arena.run, "after").map_err(|error| error.to_string())?;
    check_tree(arena, &kept, &after)?;
    if plan.restored {
        check_restored(arena, &kept, &after)?;
        outcome.restored = true;
    }
    Ok(outcome)
}

fn path(entry: &Entry<'_>) -> Vec<u8> {
    entry.path()
}

/// An error that names what is only on one side and what differs.
fn same<K: Ord + AsRef<[u8]>, V: PartialEq + Debug>(
    what: &str,
    ours: &BTreeMap<K, V>,
    truth: &BTreeMap<K, V>,
) -> Result<(), String> {
    let paths: BTreeSet<&K> = ours.keys().chain(truth.keys()).collect();
    let mut wrong = paths.into_iter().filter(|path| ours.get(path) != truth.get(path)).peekable();
    if wrong.peek().is_none() {
        return Ok(());
    }
    let lines: Vec<String> = wrong
        .map(|path| {
            let name = path.as_ref().escape_ascii();
            format!("`{name}`: ours {:?}, in truth {:?}", ours.get(path), truth.get(path))
        })
        .collect();
    Err(format!("{what}: {}", lines.join("; ")))
}

/// A snapshot holds what is there, as its stat is.
fn check_snapshot(what: &str, snapshot: &Snapshot, world: &World) -> Result<(), String> {
    let ours: BTreeMap<_, _> = snapshot
        .iter()
        .map(|entry| {
            let link = entry.kind() == EntryKind::Symlink;
            (path(&entry), (link, entry.permissions(), entry.signature(), entry.ctime_ns()))
        })
        .collect();
    let truth = |thing: &Thing| (thing.is_link(), thing.permissions(), thing.signature(), thing.ctime);
    let truth = world.things.iter().map(|(path, thing)| (path.clone(), truth(thing))).collect();
    same(what, &ours, &truth)?;
    let ours = snapshot.directories().map(|entry| (path(&entry), entry.permissions())).collect();
    same(what, &ours, &world.directories)
}

/// What moved is what differs, no less and no more.
pub(crate) fn check_movement(observed: &[Observed], before: &World, after: &World) -> Result<(), String> {
    let mut truth = BTreeMap::new();
    let paths: BTreeSet<&Vec<u8>> = before.things.keys().chain(after.things.keys()).collect();
    for path in paths {
        let (old, new) = (before.things.get(path), after.things.get(path));
        let change = match (old, new) {
            (None, _) => (Change::Added, Content::Changed),
            (_, None) => (Change::Deleted, Content::Changed),
            (Some(old), Some(new)) if !old.is_like(new) => (Change::Changed, Content::Changed),
            (Some(old), Some(new)) if old != new => (Change::Changed, Content::Same),
            _ => continue,
        };
        truth.insert(path.clone(), (change, old.map(Thing::signature), new.map(Thing::signature)));
    }
    let ours: BTreeMap<_, _> = observed
        .iter()
        .map(|one| {
            let change = (one.change, one.content);
            (one.path.as_bytes().to_vec(), (change, one.before.clone(), one.after.clone()))
        })
        .collect();
    same("movement", &ours, &truth)?;
    if !observed.is_sorted_by(|one, next| one.path < next.path) {
        return Err(format!("movement: out of order, or a path twice: {observed:?}"));
    }
    let mut renamed = BTreeSet::new();
    for one in observed {
        let Some(from) = &one.renamed_from else { continue };
        let gone = ours.get(from.as_bytes()).is_some_and(|(change, ..)| change.0 == Change::Deleted);
        if one.change != Change::Added || !gone || !renamed.insert(from) {
            return Err(format!("movement: `{}` cannot come from `{from}`", one.path));
        }
    }
    Ok(())
}

/// A listing that is only brought up to date equals one that is made anew.
fn check_listing_again(arena: &Arena, first: &Look, second: &Look) -> Result<(), String> {
    let (root, zones) = (arena.eyes.root(), arena.eyes.zones());
    let full = Snapshot::deliverable(root, zones).map_err(|error| error.to_string())?;
    check_equal("the second look and a full one", second.snapshot(), &full)?;
    let again =
        Snapshot::deliverable_since(root, zones, first.snapshot()).map_err(|error| error.to_string())?;
    check_equal("a listing since the first look and a full one", &again, &full)
}

fn check_equal(what: &str, ours: &Snapshot, full: &Snapshot) -> Result<(), String> {
    let facts = |entry: Entry<'_>| {
        let times = (entry.mtime_ns(), entry.ctime_ns());
        (path(&entry), (entry.kind(), entry.permissions(), entry.size(), times))
    };
    same(what, &ours.iter().map(facts).collect(), &full.iter().map(facts).collect())?;
    same(what, &ours.directories().map(facts).collect(), &full.directories().map(facts).collect())?;
    if (ours.len(), ours.bounds()) == (full.len(), full.bounds()) {
        return Ok(());
    }
    Err(format!("{what}: bounds {:?} and {:?}", ours.bounds(), full.bounds()))
}

/// The kept tree holds every byte, and its manifest what trees drop.
pub(crate) fn check_tree(arena: &Arena, kept: &Kept, world: &World) -> Result<(), String> {
    let listed = arena.eyes.store().list(&kept.tree).map_err(|error| error.to_string())?;
    let manifest = &kept.manifest;
    let ours = listed
        .iter()
        .map(|entry| {
            let usual = if entry.mode == 0o100_755 { manifest.executable_mode } else { manifest.file_mode };
            let mode = manifest.modes.get(&entry.path).copied().unwrap_or(usual);
            let mode = if entry.is_link() { 0o120_000 } else { mode };
            (entry.path.as_bytes().to_vec(), (mode, entry.id.to_string()))
        })
        .collect();
    let truth = world.things.iter().map(|(path, thing)| {
        let mode = if thing.is_link() { 0o120_000 } else { thing.permissions() };
        (path.clone(), (mode, blob_id(&thing.bytes)))
    });
    same("kept tree", &ours, &truth.collect())?;
    let empty = manifest.empty.iter().map(WorkPath::as_bytes);
    if !empty.eq(world.empty_directories()) || !manifest.not_stored.is_empty() {
        return Err(format!("kept tree: manifest {manifest:?} for {:?}", world.directories));
    }
    Ok(())
}

/// Git's name for these bytes.
fn blob_id(bytes: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hasher.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// A tree put back is the same world again.
fn check_restored(arena: &Arena, kept: &Kept, world: &World) -> Result<(), String> {
    let to = arena.outside("restored");
    let restored = restore(arena.eyes.store(), kept, &to, Onto::Fresh).map_err(|error| error.to_string())?;
    if !restored.is_complete() {
        return Err(format!("restored tree: {restored:?}"));
    }
    let back = World::read(&to);
    let plain = |world: &World| {
        let thing = |thing: &Thing| (thing.mode, thing.bytes.clone());
        world.things.iter().map(|(path, it)| (path.clone(), thing(it))).collect::<BTreeMap<_, _>>()
    };
    same("restored tree", &plain(&back), &plain(world))?;
    same("restored tree", &back.directories, &world.directories)
}
