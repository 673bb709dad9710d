//! A store that is damaged, locked, foreign or led elsewhere: an error that names the place and the cure, and nothing
//! outside touched.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Onto, Store, StoreError, restore};

use crate::common::{Bench, git, plain, run};
use crate::store_gc::prune;

struct Stored {
    bench: Bench,
    dir: PathBuf,
    outside: PathBuf,
}

impl Stored {
    /// A store with a tree of `files` files: as files of their own while they are few, else as a pack.
    fn of(files: usize) -> Self {
        let bench = Bench::new();
        for n in 0..files {
            bench.write(format!("f{n}"), format!("content {n}"));
        }
        let eyes = bench.eyes();
        eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
        let dir = bench.store().dir().to_owned();
        let outside = bench.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "p").unwrap();
        Self { bench, dir, outside }
    }

    fn open(&self) -> Result<Store, StoreError> {
        Store::open(&self.dir)
    }

    /// What restoring the tree says.
    fn restored(&self) -> Result<(), String> {
        let to = tempfile::tempdir().unwrap();
        let store = self.open().map_err(|e| e.to_string())?;
        let kept = store.kept(&run(), "0").map_err(|e| e.to_string())?;
        let restored = restore(&store, &kept, to.path(), Onto::Fresh).map_err(|e| e.to_string())?;
        assert!(restored.is_complete());
        assert!(plain(to.path()) == plain(&self.bench.work()), "what is restored is what was kept");
        Ok(())
    }

    #[track_caller]
    fn assert_refused(&self, path: &Path, cure: &str) {
        let error = self.restored().expect_err("damage is no success");
        let named = path.to_str().unwrap();
        assert!(error.contains(named) && error.contains(cure), "`{named}` and `{cure}` are not in: {error}");
        let left: Vec<_> =
            std::fs::read_dir(&self.outside).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["precious"], "nothing outside is touched");
    }

    fn loose(&self, path: &str) -> PathBuf {
        let id = git(&self.dir, &["rev-parse", &format!("refs/runs/{}/0:{path}", run())]);
        self.dir.join("objects").join(&id[..2]).join(&id[2..])
    }

    fn pack(&self, end: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.dir.join("objects/pack")).unwrap().flatten().map(|e| e.path());
        entries.into_iter().find(|p| p.extension().is_some_and(|e| e == end)).unwrap()
    }
}

/// Changes a read-only file's bytes.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_object_is_named_and_can_be_stored_anew() {
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(5),
        |bytes: &mut Vec<u8>| bytes.clear(),
        |bytes: &mut Vec<u8>| *bytes = b"junk".to_vec(),
        |bytes: &mut Vec<u8>| {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        },
    ] {
        let stored = Stored::of(5);
        let place = stored.loose("f3");
        edit(&place, damage);
        stored.assert_refused(&place, "is removed, the same content is stored anew");
        std::fs::remove_file(&place).unwrap();
        let error = stored.restored().unwrap_err();
        assert!(error.contains("does not hold object"), "{error}");
        let eyes = stored.bench.eyes();
        eyes.keep(&eyes.look(None).unwrap(), &RunId::new("again"), "0").unwrap();
        stored.restored().unwrap();
    }
}

#[test]
fn an_objects_place_that_is_no_file_is_neither_followed_nor_waited_for() {
    let stored = Stored::of(5);
    let place = stored.loose("f3");
    std::fs::remove_file(&place).unwrap();
    assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
    stored.assert_refused(&place, "could not be read");
    std::fs::remove_file(&place).unwrap();
    symlink(stored.outside.join("precious"), &place).unwrap();
    stored.assert_refused(&place, "could not be read");
}

#[test]
fn a_damaged_pack_is_named() {
    for damage in [|bytes: &mut Vec<u8>| bytes.truncate(600), |bytes: &mut Vec<u8>| bytes[500..].fill(0)] {
        let stored = Stored::of(200);
        let pack = stored.pack("pack");
        edit(&pack, damage);
        stored.assert_refused(&pack, "is damaged");
    }
    let stored = Stored::of(200);
    let pack = stored.pack("pack");
    std::fs::remove_file(&pack).unwrap();
    stored.assert_refused(&pack, "is damaged");
}

/// An index is made from its pack again, so whoever reads the message can help themselves.
#[test]
fn a_damaged_index_is_named_and_can_be_mended() {
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(2_000),
        |bytes: &mut Vec<u8>| bytes.truncate(3),
        |bytes: &mut Vec<u8>| bytes.extend_from_slice(b"more"),
        // Ids, offsets.
        |bytes: &mut Vec<u8>| bytes[1_032..1_432].fill(0),
        |bytes: &mut Vec<u8>| {
            let end = bytes.len();
            bytes[end - 440..end - 40].fill(0x11);
        },
        // The number of objects.
        |bytes: &mut Vec<u8>| bytes[8 + 255 * 4] = 0x7f,
    ] {
        let stored = Stored::of(200);
        let index = stored.pack("idx");
        let blobs = git(&stored.dir, &["ls-tree", "--object-only", &format!("refs/runs/{}/0", run())]);
        edit(&index, damage);
        let error = stored.restored().expect_err("damage is no success");
        assert!(error.contains("git index-pack '") || error.contains("fsck --full"), "{error}");
        let store = stored.open().unwrap();
        // Some are found all the same; the first that is not says why.
        let error = blobs.lines().find_map(|id| store.blob(&id.parse().unwrap()).err()).unwrap().to_string();
        assert!(error.contains(index.to_str().unwrap()) && error.contains("git index-pack '"), "{error}");
        assert!(prune(&store).is_err());
        // Not from within the store, where git would ask the damaged index first.
        git(stored.bench.dir.path(), &["index-pack", index.with_extension("pack").to_str().unwrap()]);
        stored.restored().unwrap();
    }
}

#[test]
fn a_ref_that_is_none_is_named_and_can_be_put_back() {
    let stored = Stored::of(3);
    let name = format!("refs/runs/{}/0", run());
    let reference = stored.dir.join(&name);
    let tree = std::fs::read_to_string(&reference).unwrap();
    for garbage in [&b"garbage\n"[..], b"", b"\0\0\0", b"ref: refs/heads/x\n", &[b'a'; 5_000]] {
        std::fs::write(&reference, garbage).unwrap();
        stored.assert_refused(&reference, "");
    }
    std::fs::write(&reference, "garbage\n").unwrap();
    stored.assert_refused(&reference, "git update-ref");
    std::fs::remove_file(&reference).unwrap();
    assert!(Command::new("mkfifo").arg(&reference).status().unwrap().success());
    stored.assert_refused(&reference, "could not be read");
    std::fs::remove_file(&reference).unwrap();
    std::fs::write(stored.dir.join("packed-refs"), "garbage without end").unwrap();
    stored.assert_refused(&stored.dir.join("packed-refs"), "");
    std::fs::remove_file(stored.dir.join("packed-refs")).unwrap();
    git(&stored.dir, &["update-ref", &name, tree.trim()]);
    stored.restored().unwrap();
}

#[test]
fn a_head_or_configuration_that_is_gone_is_named_and_git_mends_it() {
    for file in ["HEAD", "config"] {
        let stored = Stored::of(3);
        let path = stored.dir.join(file);
        std::fs::remove_file(&path).unwrap();
        stored.assert_refused(&path, "git init --bare");
        let mended = Command::new("git").args(["init", "-q", "--bare"]).arg(&stored.dir).status().unwrap();
        assert!(mended.success());
        stored.restored().unwrap();
    }
    let stored = Stored::of(3);
    std::fs::write(stored.dir.join("HEAD"), "nonsense").unwrap();
    stored.assert_refused(&stored.dir.join("HEAD"), "git init --bare");
}

#[test]
fn newer_formats_are_refused_and_left_as_they_are() {
    for (from, to) in [
        ("repositoryformatversion = 0", "repositoryformatversion = 2"),
        ("repositoryformatversion = 0", "repositoryformatversion = 1"),
        ("[gc]", "[extensions]\n\tobjectFormat = sha256\n[gc]"),
        ("[gc]", "[extensions]\n\tworldPeace = true\n[gc]"),
        ("format = 1", "format = 2"),
    ] {
        let stored = Stored::of(3);
        let config = stored.dir.join("config");
        let text = std::fs::read_to_string(&config).unwrap();
        assert!(text.contains(from));
        let text = text.replacen(from, to, 1);
        std::fs::write(&config, &text).unwrap();
        stored.assert_refused(&stored.dir, "use the version that made it");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    }
}

#[test]
fn a_store_that_leads_elsewhere_is_refused() {
    for place in ["", "objects", "objects/pack", "refs", "refs/runs", "refs/manifests"] {
        let stored = Stored::of(3);
        let path = if place.is_empty() { stored.dir.clone() } else { stored.dir.join(place) };
        std::fs::rename(&path, stored.bench.dir.path().join("moved")).unwrap();
        symlink(&stored.outside, &path).unwrap();
        stored.assert_refused(&path, "in its place");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a file").unwrap();
        stored.assert_refused(&path, "in its place");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(stored.bench.dir.path().join("moved"), &path).unwrap();
        stored.restored().unwrap();
    }
    let stored = Stored::of(3);
    symlink(&stored.outside, stored.dir.join("refs/later-kind")).unwrap();
    stored.assert_refused(&stored.dir.join("refs/later-kind"), "in its place");
    std::fs::remove_file(stored.dir.join("refs/later-kind")).unwrap();
    std::fs::remove_file(stored.dir.join("config")).unwrap();
    assert!(Command::new("mkfifo").arg(stored.dir.join("config")).status().unwrap().success());
    stored.assert_refused(&stored.dir.join("config"), "could not be read");
}

/// While a run has it open, an agent moves it away and puts a link in its place.
#[test]
fn a_store_that_is_swapped_while_it_is_open_is_not_written_through() {
    for (files, place) in [(3, ""), (300, ""), (3, "objects"), (300, "objects/pack"), (3, "refs")] {
        let stored = Stored::of(1);
        let eyes = Eyes::new(stored.bench.root(), stored.bench.zones(), stored.open().unwrap());
        let path = if place.is_empty() { stored.dir.clone() } else { stored.dir.join(place) };
        std::fs::rename(&path, stored.bench.dir.path().join("moved")).unwrap();
        symlink(&stored.outside, &path).unwrap();
        for n in 0..files {
            stored.bench.write(format!("new{n}"), format!("new content {n}"));
        }
        let kept = eyes
            .look(None)
            .map_err(|e| e.to_string())
            .and_then(|look| eyes.keep(&look, &RunId::new("r2"), "0").map_err(|e| e.to_string()));
        let error = kept.expect_err("it is not where it was");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert_eq!(std::fs::read_dir(&stored.outside).unwrap().count(), 1, "{place}");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(stored.bench.dir.path().join("moved"), &path).unwrap();
        eyes.keep(&eyes.look(None).unwrap(), &RunId::new("r2"), "0").unwrap();
    }
}

/// Locks that a killed git left, of any name, do not keep us from writing and reading; only a change of the packed refs
/// has to wait.
#[test]
fn locks_of_git_are_in_nobodys_way() {
    let stored = Stored::of(3);
    let of_run = format!("refs/runs/{}/0.lock", run());
    for lock in
        ["config.lock", "HEAD.lock", "packed-refs.lock", "index.lock", &of_run, "objects/maintenance.lock"]
    {
        std::fs::write(stored.dir.join(lock), "").unwrap();
    }
    stored.restored().unwrap();
    stored.bench.write("more", "more");
    let eyes = stored.bench.eyes();
    eyes.keep(&eyes.look(None).unwrap(), &RunId::new("r2"), "0").unwrap();
    let store = stored.bench.store();
    assert_eq!(store.kept(&RunId::new("r2"), "0").unwrap().manifest.not_stored, []);
    let error = store.check_unlocked().unwrap_err().to_string();
    assert!(error.contains("packed-refs.lock") && error.contains("remove this file"), "{error}");
}
