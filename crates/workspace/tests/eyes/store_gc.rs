//! Cleaning the store up: what no ref keeps goes, every tree that a ref names stays as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use triphammer_model::RunId;
use triphammer_workspace::{Onto, PruneError, Pruned, Store, restore};

use crate::common::{Bench, git, plain};

fn id(n: usize) -> RunId {
    RunId::new(format!("r{n}"))
}

/// Cleans up, when nobody else has the store open. Between its fork and its own program a process that another test
/// starts holds all that is open here, so that it is asked again.
pub(crate) fn prune(store: &Store) -> Result<Pruned, PruneError> {
    for _ in 0..100_000 {
        match store.prune() {
            Err(PruneError::InUse { .. }) => std::thread::yield_now(),
            done => return done,
        }
    }
    panic!("somebody has the store open for good");
}

/// Keeps the workspace as it is as tree `name` of run `n`.
fn keep(bench: &Bench, n: usize, name: &str) {
    let eyes = bench.eyes();
    eyes.keep(&eyes.look(None).unwrap(), &id(n), name).unwrap();
}

/// What a tree of a run holds, by restoring it.
fn content(store: &Store, n: usize, name: &str) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    let to = tempfile::tempdir().unwrap();
    let restored = restore(store, &store.kept(&id(n), name).unwrap(), to.path(), Onto::Fresh).unwrap();
    assert!(restored.is_complete());
    plain(to.path())
}

/// Asserts that git finds nothing wrong, and nothing that no ref keeps.
#[track_caller]
fn assert_clean(store: &Store) {
    let said =
        git(store.dir(), &["fsck", "--full", "--strict", "--unreachable", "--no-dangling", "--no-progress"]);
    let complaints: Vec<&str> = said.lines().filter(|line| !line.starts_with("notice:")).collect();
    assert_eq!(complaints, [""; 0]);
}

fn counts(store: &Store) -> BTreeMap<String, u64> {
    let said = git(store.dir(), &["count-objects", "-v"]);
    let pairs = said.lines().filter_map(|line| line.split_once(": "));
    pairs.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?))).collect()
}

/// Every path below a folder with its inode, size and times: what a look must not change.
fn stats(dir: &Path) -> BTreeSet<String> {
    use std::os::unix::fs::MetadataExt;
    let entries = walkdir::WalkDir::new(dir).into_iter().map(Result::unwrap);
    let line = |e: walkdir::DirEntry| {
        let meta = e.metadata().unwrap();
        format!(
            "{} {} {} {} {}",
            e.path().display(),
            meta.ino(),
            meta.len(),
            meta.mtime_nsec(),
            meta.ctime_nsec()
        )
    };
    entries.map(line).collect()
}

#[test]
fn few_objects_go_as_files() {
    let bench = Bench::new();
    bench.write("shared", "shared");
    bench.write("old", "old");
    keep(&bench, 1, "0");
    bench.write("old", "new");
    keep(&bench, 2, "0");
    let store = bench.store();
    let before = content(&store, 2, "0");
    store.forget(&id(1)).unwrap();
    // The blob `old`, its tree and the manifest of that.
    assert_eq!(prune(&store).unwrap(), Pruned { dropped: 3, kept: 4 });
    assert_clean(&store);
    assert_eq!(content(&store, 2, "0"), before);
    assert_eq!(prune(&store).unwrap(), Pruned { dropped: 0, kept: 4 });
    store.forget(&id(2)).unwrap();
    prune(&store).unwrap();
    assert_eq!((counts(&store)["count"], counts(&store)["in-pack"]), (0, 0));
    // It is still a store.
    keep(&bench, 3, "0");
    assert_eq!(content(&bench.store(), 3, "0"), before);
}

/// A pack of which a part is kept is written anew, and both we and git read it.
#[test]
fn packs_shrink_to_what_is_kept() {
    let bench = Bench::new();
    for n in 0..600 {
        bench.write(format!("d{}/f{n}", n % 7), format!("{n} of the first run").repeat(n % 50));
    }
    keep(&bench, 1, "0");
    for n in 0..300 {
        bench.write(format!("d{}/f{n}", n % 7), format!("{n} of the second run").repeat(n % 50));
    }
    keep(&bench, 2, "0");
    let store = bench.store();
    let before = content(&store, 2, "0");
    store.forget(&id(1)).unwrap();
    let pruned = prune(&store).unwrap();
    assert!(pruned.dropped > 290 && pruned.kept > 590, "{pruned:?}");
    assert_clean(&store);
    assert_eq!(counts(&store)["in-pack"], pruned.kept);
    assert_eq!((counts(&store)["packs"], counts(&store)["count"]), (1, 0));
    assert_eq!(content(&store, 2, "0"), before);
    assert_eq!(content(&bench.store(), 2, "0"), before);
    let files = std::fs::read_dir(store.dir().join("objects/pack")).unwrap().count();
    prune(&store).unwrap();
    assert_eq!(
        std::fs::read_dir(store.dir().join("objects/pack")).unwrap().count(),
        files,
        "nothing piles up"
    );
    assert!(!store.dir().join("gc.partial").exists());
}

/// Random runs, random removals, and a person's own git in between.
#[test]
fn no_tree_that_a_ref_names_is_harmed() {
    for seed in 0..6 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let bench = Bench::new();
        let mut trees: BTreeMap<(usize, String), _> = BTreeMap::new();
        for n in 0..5 {
            for name in ["0", "001"] {
                let many = if dice.u8(..) < 60 { 150 } else { 5 };
                for _ in 0..many {
                    bench.write(format!("d{}/f{}", dice.u8(..4), dice.u8(..)), format!("{}", dice.u16(..)));
                }
                keep(&bench, n, name);
                trees.insert((n, name.to_owned()), content(&bench.store(), n, name));
            }
            let store = bench.store();
            match dice.u8(..8) {
                0 => drop(git(store.dir(), &["pack-refs", "--all", "--prune"])),
                1 => drop(git(store.dir(), &["repack", "-q", "-a", "-d", "--depth=50", "--window=10"])),
                2 => drop(git(store.dir(), &["repack", "-q", "-d"])),
                3 if counts(&store)["packs"] > 0 => drop(git(store.dir(), &["multi-pack-index", "write"])),
                4 => drop(git(store.dir(), &["repack", "-q", "-A", "-d", "--write-bitmap-index"])),
                _ => {}
            }
            for gone in (0..=n).filter(|_| dice.u8(..4) == 0) {
                store.forget(&id(gone)).unwrap();
                trees.retain(|(of, _), _| *of != gone);
            }
            if dice.bool() && n < 4 {
                continue;
            }
            prune(&store).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_clean(&store);
            for ((n, name), before) in &trees {
                assert!(content(&store, *n, name) == *before, "seed {seed}: tree {name} of run {n}");
            }
        }
    }
}

#[test]
fn what_somebody_uses_is_left_alone() {
    let bench = Bench::new();
    bench.write("a", "a");
    keep(&bench, 1, "0");
    let (ours, other) = (bench.store(), bench.store());
    ours.forget(&id(1)).unwrap();
    let before = stats(ours.dir());
    assert!(matches!(ours.prune(), Err(PruneError::InUse { .. })));
    assert_eq!(stats(ours.dir()), before);
    // The other one goes on as if nothing had happened: its tree is complete.
    bench.write("b", "b");
    let eyes = triphammer_workspace::Eyes::new(bench.root(), bench.zones(), other);
    eyes.keep(&eyes.look(None).unwrap(), &id(2), "0").unwrap();
    drop(eyes);
    prune(&ours).unwrap();
    assert_eq!(content(&ours, 2, "0").len(), 2);
    assert_clean(&ours);
}

/// Where something is missing nobody knows what else is kept by it, so nothing is taken away.
#[test]
fn a_store_with_a_hole_is_left_alone() {
    let bench = Bench::new();
    bench.write("a", "content of a");
    keep(&bench, 1, "0");
    bench.write("a", "content of b");
    keep(&bench, 2, "0");
    let store = bench.store();
    store.forget(&id(1)).unwrap();
    let blob = git(store.dir(), &["rev-parse", "refs/runs/r2/0:a"]);
    let place = store.dir().join("objects").join(&blob[..2]).join(&blob[2..]);
    let lost = std::fs::read(&place).unwrap();
    std::fs::remove_file(&place).unwrap();
    let before = stats(&store.dir().join("objects"));
    let error = prune(&store).unwrap_err().to_string();
    assert!(error.contains(&blob) && error.contains("fsck"), "{error}");
    assert_eq!(stats(&store.dir().join("objects")), before);
    // A ref that is none may have kept anything.
    std::fs::write(&place, lost).unwrap();
    let before = stats(&store.dir().join("objects"));
    let reference = store.dir().join("refs/runs/r2/0");
    let was = std::fs::read(&reference).unwrap();
    std::fs::write(&reference, "garbage\n").unwrap();
    let error = prune(&store).unwrap_err().to_string();
    assert!(error.contains("refs/runs/r2/0"), "{error}");
    assert_eq!(stats(&store.dir().join("objects")), before);
    std::fs::write(&reference, was).unwrap();
    assert_eq!(prune(&store).unwrap().dropped, 3);
}

/// An agent of an in-place home can write into the store's configuration.
#[test]
fn the_stores_configuration_runs_nothing() {
    let bench = Bench::new();
    for n in 0..200 {
        bench.write(format!("f{n}"), format!("{n}"));
    }
    keep(&bench, 1, "0");
    bench.write("f1", "other");
    keep(&bench, 2, "0");
    let store = bench.store();
    let trap = bench.dir.path().join("trap");
    let script = format!("touch {}", trap.display());
    for key in [
        "gc.recentObjectsHook",
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "uploadpack.packObjectsHook",
    ] {
        git(store.dir(), &["config", key, &script]);
    }
    for (key, value) in [("pack.packSizeLimit", "1m"), ("pack.depth", "50"), ("core.compression", "0")] {
        git(store.dir(), &["config", key, value]);
    }
    let hooks = store.dir().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-auto-gc", "reference-transaction", "post-index-change"] {
        std::fs::write(hooks.join(hook), format!("#!/bin/sh\n{script}\n")).unwrap();
        crate::common::chmod(&hooks.join(hook), 0o755);
    }
    store.forget(&id(1)).unwrap();
    prune(&store).unwrap();
    assert!(!trap.exists());
    assert_clean(&store);
}

#[test]
fn leftovers_of_the_killed_go() {
    let bench = Bench::new();
    bench.write("a", "a");
    keep(&bench, 1, "0");
    let store = bench.store();
    let left =
        ["objects/tmp_obj_1_0", "objects/pack/tmp_pack_1_0", "merge-1-x/ours", "gc.partial/pack-1.pack"];
    for path in left {
        let path = store.dir().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let outside = bench.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "f").unwrap();
    std::os::unix::fs::symlink(&outside, store.dir().join("merge-2-x")).unwrap();
    prune(&store).unwrap();
    for path in left {
        assert!(!store.dir().join(path).exists(), "{path}");
    }
    assert!(outside.join("f").exists());
    assert_eq!(content(&store, 1, "0").len(), 1);
}

/// Half a pack is what a kill between two renames leaves, or what a person's git just completes: only an old one goes.
#[test]
fn old_halves_of_packs_go() {
    let bench = Bench::new();
    bench.write("a", "a");
    keep(&bench, 1, "0");
    let store = bench.store();
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(48);
    let halves = ["pack-1.pack", "pack-2.idx", "pack-3.pack", "pack-4.pack", "pack-4.keep", "other.pack"];
    for half in halves {
        let path = store.dir().join("objects/pack").join(half);
        // An index that is whole and names nothing.
        let bytes = [&b"\xfftOc\0\0\0\x02"[..], &[0; 1_024 + 40]].concat();
        let file = std::fs::File::create(path).unwrap();
        std::io::Write::write_all(&mut &file, &bytes).unwrap();
        if half != "pack-3.pack" {
            file.set_modified(old).unwrap();
        }
    }
    prune(&store).unwrap();
    let mut left: Vec<_> = std::fs::read_dir(store.dir().join("objects/pack"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["other.pack", "pack-3.pack", "pack-4.keep", "pack-4.pack"]);
    assert_eq!(content(&store, 1, "0").len(), 1);
}
