//! What an agent, or a process that was killed, can put into the store: it is no part of it, it leads nowhere, and what
//! is kept beside it is whole.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Kept, ObjectId, Onto, Store, StoreError, restore};

use crate::common::{Bench, chmod, git, plain, run};
use crate::store_gc::prune;

/// A workspace of `files` files and its store, which holds nothing yet, and a folder outside with something precious.
struct Scene {
    bench: Bench,
    dir: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn of(files: usize) -> Self {
        let bench = Bench::new();
        for n in 0..files {
            bench.write(format!("f{n}"), format!("content {n}"));
        }
        let dir = bench.store().dir().to_owned();
        let outside = bench.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "p").unwrap();
        Self { bench, dir, outside }
    }

    fn keep(&self, name: &str) -> Result<Kept, String> {
        keep(&self.bench.eyes(), name)
    }

    #[track_caller]
    fn assert_restores(&self, store: &Store, name: &str) {
        let to = tempfile::tempdir().unwrap();
        let kept = store.kept(&run(), name).unwrap();
        assert!(restore(store, &kept, to.path(), Onto::Fresh).unwrap().is_complete());
        assert!(plain(to.path()) == plain(&self.bench.work()), "what is restored is what was kept");
    }

    #[track_caller]
    fn assert_outside_untouched(&self) {
        let left: Vec<_> =
            std::fs::read_dir(&self.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["precious"]);
        assert_eq!(std::fs::read(self.outside.join("precious")).unwrap(), b"p");
    }
}

fn keep(eyes: &Eyes, name: &str) -> Result<Kept, String> {
    let look = eyes.look(None).map_err(|e| e.to_string())?;
    eyes.keep(&look, &run(), name).map_err(|e| e.to_string())
}

fn hex(raw: &[u8]) -> String {
    raw.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn names_in(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect()
}

fn with_end(dir: &Path, end: &str) -> PathBuf {
    names_in(dir).into_iter().find(|p| p.extension().is_some_and(|e| e == end)).unwrap()
}

/// A pack of the same files in another store, as it will be in this one: its index and the pack.
fn pack_of(files: usize) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let other = Scene::of(files);
    let eyes = other.bench.eyes();
    eyes.look(None).unwrap();
    let dir = other.dir.join("objects/pack");
    let (index, pack) = (with_end(&dir, "idx"), with_end(&dir, "pack"));
    (other.bench.dir, index, pack)
}

/// A process was killed, or is at work, before its index got its name: the objects in it are not there.
#[test]
fn an_index_that_is_still_being_written_is_no_pack() {
    let (_other, index, _) = pack_of(200);
    let whole = std::fs::read(&index).unwrap();
    for left in [&whole[..], &whole[..whole.len() / 2]] {
        let scene = Scene::of(200);
        let beside = scene.dir.join("objects/pack/tmp_pack_1_1.idx");
        std::fs::write(&beside, left).unwrap();
        let early = scene.bench.store();
        scene.keep("0").unwrap();
        scene.assert_restores(&scene.bench.store(), "0");
        // One that had it open before sees the same.
        scene.assert_restores(&early, "0");
        drop(early);
        prune(&scene.bench.store()).unwrap();
        assert!(!beside.exists(), "it is swept away");
        scene.assert_restores(&scene.bench.store(), "0");
    }
}

/// Whoever lists the packs while one is put into its place, half by half, finds it when it is whole, and before that
/// stores a copy rather than trusting a half.
#[test]
fn half_a_pack_is_none_until_it_is_whole() {
    let (_other, index, pack) = pack_of(200);
    // The names begin after a head and 256 counts.
    let first = std::fs::read(&index).unwrap()[1_032..1_052].to_vec();
    let id: ObjectId = hex(&first).parse().unwrap();
    for first in [&index, &pack] {
        let scene = Scene::of(200);
        let dir = scene.dir.join("objects/pack");
        let put = |file: &Path| std::fs::copy(file, dir.join(file.file_name().unwrap())).unwrap();
        let store = scene.bench.store();
        put(first);
        let error = store.blob(&id).unwrap_err();
        if first == &index {
            assert!(
                matches!(&error, StoreError::Damaged { path, .. } if path.ends_with(pack.file_name().unwrap()))
            );
        } else {
            assert!(matches!(error, StoreError::Missing { .. }), "{error}");
        }
        put(if first == &index { &pack } else { &index });
        store.blob(&id).unwrap();
        std::fs::remove_file(dir.join(first.file_name().unwrap())).unwrap();
        scene.keep("0").unwrap();
        scene.assert_restores(&scene.bench.store(), "0");
    }
}

/// The names that files have while they are written cannot be known before.
#[test]
fn links_at_temporary_names_are_not_written_through() {
    let scene = Scene::of(300);
    let target = scene.outside.join("precious");
    let mut planted = Vec::new();
    for process in [1, std::process::id()] {
        for n in 0..700 {
            planted.push(scene.dir.join(format!("objects/tmp_obj_{process}_{n}")));
            planted.push(scene.dir.join(format!("objects/pack/tmp_pack_{process}_{n}")));
            planted.push(scene.dir.join(format!("objects/pack/tmp_pack_{process}_{n}.idx")));
        }
    }
    for path in &planted {
        symlink(&target, path).unwrap();
    }
    scene.keep("0").unwrap();
    scene.bench.write("more", "more");
    scene.keep("001").unwrap();
    scene.assert_outside_untouched();
    assert!(planted.iter().all(|path| path.is_symlink()), "what others put there is theirs");
    scene.assert_restores(&scene.bench.store(), "001");
}

/// A link anywhere between the store and a ref, planted while the store is open.
#[test]
fn refs_are_neither_written_nor_read_through_links() {
    let of_run = format!("/{}", run());
    for kind in ["runs", "manifests", "infrastructure", "infrastructure-manifests"] {
        for below in ["", &of_run] {
            let scene = Scene::of(3);
            scene.bench.write(".tools/bin/tool", "a tool");
            let eyes = scene.bench.eyes();
            let keep_both = |name: &str| -> Result<(), String> {
                let look = eyes.look(None).map_err(|e| e.to_string())?;
                eyes.keep(&look, &run(), name).map_err(|e| e.to_string())?;
                let tools = eyes.infrastructure(&look, None).map_err(|e| e.to_string())?;
                eyes.keep_infrastructure(&tools, &run(), name).map_err(|e| e.to_string())?;
                Ok(())
            };
            keep_both("0").unwrap();
            let place = scene.dir.join(format!("refs/{kind}{below}"));
            let moved = scene.outside.join("moved");
            std::fs::rename(&place, &moved).unwrap();
            // To nothing, and to what looks just like it.
            for target in ["nothing", "moved"] {
                symlink(scene.outside.join(target), &place).unwrap();
                let before = plain(&scene.outside);
                let error = keep_both("001").expect_err("it leads elsewhere");
                let named = format!("`{}` is a link", place.display());
                assert!(error.contains(&named), "{kind}{below} to {target}: {error}");
                let store = eyes.store();
                let read = store.kept(&run(), "0").map(drop);
                let read = read.and_then(|()| store.kept_infrastructure(&run(), "0").map(drop));
                let error = read.expect_err("what lies elsewhere is no ref").to_string();
                assert!(error.contains(&named), "{kind}{below} to {target}: {error}");
                // Nobody knows what it keeps alive.
                assert!(store.holdings().is_err(), "{kind}{below} to {target}");
                assert!(plain(&scene.outside) == before, "{kind}{below} to {target}: written outside");
                std::fs::remove_file(&place).unwrap();
            }
            std::fs::rename(&moved, &place).unwrap();
            keep_both("001").unwrap();
            scene.assert_outside_untouched();
        }
    }
}

/// Refs of a run that goes: what its folder of refs leads to stays.
#[test]
fn what_is_forgotten_is_not_forgotten_through_links() {
    let scene = Scene::of(3);
    scene.keep("0").unwrap();
    let store = scene.bench.store();
    let of_run = scene.dir.join(format!("refs/manifests/{}", run()));
    std::fs::remove_dir_all(&of_run).unwrap();
    symlink(&scene.outside, &of_run).unwrap();
    store.forget(&run()).unwrap();
    assert!(!of_run.is_symlink() && store.runs_with_refs().unwrap().is_empty());
    scene.assert_outside_untouched();
    // Nor where all refs are elsewhere.
    scene.keep("0").unwrap();
    let refs = scene.dir.join("refs");
    std::fs::rename(&refs, scene.bench.dir.path().join("moved")).unwrap();
    symlink(scene.bench.dir.path().join("moved"), &refs).unwrap();
    let error = store.forget(&run()).unwrap_err().to_string();
    assert!(error.contains(refs.to_str().unwrap()), "{error}");
    assert!(scene.bench.dir.path().join("moved/runs").join(run().as_str()).join("0").exists());
}

/// A folder of objects that is a link.
#[test]
fn objects_are_not_written_through_links() {
    let scene = Scene::of(20);
    for n in 0..=255 {
        symlink(&scene.outside, scene.dir.join(format!("objects/{n:02x}"))).unwrap();
    }
    let error = scene.keep("0").expect_err("they lead elsewhere");
    assert!(error.contains("is a link") && error.contains("objects/"), "{error}");
    scene.assert_outside_untouched();
}

/// What a loss of power leaves: files that were renamed and never filled. The next look that meets the content stores it
/// anew; until then they are named.
#[test]
fn empty_objects_are_stored_anew() {
    let scene = Scene::of(10);
    scene.keep("0").unwrap();
    let objects = walkdir::WalkDir::new(scene.dir.join("objects")).into_iter().flatten();
    let files: Vec<PathBuf> =
        objects.filter(|e| e.file_type().is_file()).map(|e| e.path().to_owned()).collect();
    assert!(files.len() >= 12);
    for file in &files {
        chmod(file, 0o644);
        std::fs::write(file, "").unwrap();
    }
    let error = scene.bench.store().kept(&run(), "0").unwrap_err().to_string();
    assert!(
        error.contains("is damaged") && files.iter().any(|f| error.contains(f.to_str().unwrap())),
        "{error}"
    );
    scene.keep("001").unwrap();
    scene.assert_restores(&scene.bench.store(), "0");
    scene.assert_restores(&scene.bench.store(), "001");
}

/// Of two copies one is enough.
#[test]
fn a_damaged_copy_hides_no_sound_one() {
    let scene = Scene::of(5);
    scene.keep("0").unwrap();
    let id = git(&scene.dir, &["rev-parse", &format!("refs/runs/{}/0:f3", run())]);
    git(&scene.dir, &["repack", "-q", "-a", "-d"]);
    let place = scene.dir.join("objects").join(&id[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join(&id[2..]), "junk").unwrap();
    scene.assert_restores(&scene.bench.store(), "0");
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Few bytes on disk, many in memory: inflating ends where the object says that it does, or before it begins.
#[test]
fn an_object_that_grows_is_not_inflated() {
    let scene = Scene::of(1);
    let store = scene.bench.store();
    let id: ObjectId = "00".repeat(20).parse().unwrap();
    let place = scene.dir.join("objects/00").join("00".repeat(19));
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    // Damage at the end tells how far it was read.
    let mut long = deflated(&[&b"blob 5\0"[..], &vec![0; 1 << 20]].concat());
    let end = long.len();
    long[end - 4..].fill(0);
    let huge = deflated(b"blob 1099511627776\0content");
    let headless = deflated(&vec![b'x'; 1 << 20]);
    for (bytes, why) in
        [(long, "another hash"), (huge, "no object of ours is larger"), (headless, "no header")]
    {
        std::fs::write(&place, bytes).unwrap();
        let error = store.blob(&id).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// Of the two refs of a tree the manifest's is written first, so that a tree which is there can be restored as it was.
#[test]
fn a_tree_without_its_manifest_is_none() {
    let scene = Scene::of(2);
    let (trees, manifests) = ("refs/runs", "refs/manifests");
    let place = |kind: &str| scene.dir.join(kind).join(run().as_str()).join("0");
    // Where the manifest cannot be named, the tree is not.
    std::fs::create_dir_all(place(manifests).join("in the way")).unwrap();
    scene.keep("0").unwrap_err();
    assert!(matches!(scene.bench.store().kept(&run(), "0"), Err(StoreError::NoSuchTree { .. })));
    std::fs::remove_dir_all(place(manifests)).unwrap();
    std::fs::create_dir_all(place(trees).join("in the way")).unwrap();
    scene.keep("0").unwrap_err();
    std::fs::remove_dir_all(place(trees)).unwrap();
    assert!(place(manifests).exists());
    assert!(matches!(scene.bench.store().kept(&run(), "0"), Err(StoreError::NoSuchTree { .. })));

    let kept = scene.keep("0").unwrap();
    let refused = |what: &str| {
        let store = scene.bench.store();
        let error = store.kept(&run(), "0").expect_err(what).to_string();
        let named = place(manifests);
        assert!(error.contains(what) && error.contains(named.to_str().unwrap()), "{what}: {error}");
        let tar = scene.bench.dir.path().join("saved.tar");
        assert!(error.contains("archive -o FILE.tar") && error.contains(kept.tree.as_str()), "{error}");
        git(&scene.dir, &["archive", "-o", tar.to_str().unwrap(), kept.tree.as_str()]);
        // Whoever asks for the content alone gets it.
        let to = tempfile::tempdir().unwrap();
        restore(&store, &Kept::bare(kept.tree.clone()), to.path(), Onto::Fresh).unwrap();
    };
    let manifest = std::fs::read_to_string(place(manifests)).unwrap();
    std::fs::remove_file(place(manifests)).unwrap();
    refused("is missing");
    // Killed between the two while the name was given to another tree.
    scene.bench.write("f0", "other");
    scene.keep("001").unwrap();
    let other = scene.dir.join(manifests).join(run().as_str()).join("001");
    std::fs::copy(other, place(manifests)).unwrap();
    refused("belongs to another tree");
    std::fs::write(place(manifests), &manifest).unwrap();
    assert_eq!(scene.bench.store().kept(&run(), "0").unwrap(), kept);
    // Earlier versions did not say which tree it belongs to.
    let text = git(&scene.dir, &["cat-file", "blob", manifest.trim()]);
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(old.as_object_mut().unwrap().remove("tree").is_some());
    let file = scene.bench.dir.path().join("old.json");
    std::fs::write(&file, old.to_string()).unwrap();
    let blob = git(&scene.dir, &["hash-object", "-w", file.to_str().unwrap()]);
    std::fs::write(place(manifests), format!("{blob}\n")).unwrap();
    assert_eq!(scene.bench.store().kept(&run(), "0").unwrap(), kept);
    assert!(matches!(
        scene.bench.store().kept(&RunId::new("other"), "0"),
        Err(StoreError::NoSuchTree { .. })
    ));
}
