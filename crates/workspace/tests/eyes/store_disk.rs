//! A store on a full or read-only disk. Each test starts itself again in a place of its own: a small file system where
//! this machine lets us mount one, else a limit on the size of files, else a user without rights.

use std::path::{Path, PathBuf};
use std::process::Command;

use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Onto, Store, ZoneConfig, ZoneMap, restore};

use crate::common::{Bench, chmod, plain, run};
use crate::store_gc::prune;

/// Tells the second process where it is to work.
const PLACE: &str = "TRIPHAMMER_TEST_PLACE";

/// What the second process runs under, in the order of preference. `$1` is the place, `$2` this binary, `$3` the test.
const MOUNTED: &str = r#"mount -t tmpfs -o size=512k none "$1" && exec "$2" --exact "$3" --nocapture"#;
const LIMITED: &str = r#"trap '' XFSZ; ulimit -f 64; exec "$2" --exact "$3" --nocapture"#;

/// A user without rights.
const NOBODY: u32 = 65_534;

/// Runs `child` in a second process. `inside` says in which way its place is small.
fn apart(test: &str, child: impl FnOnce(&Path, bool)) {
    if let Some(place) = std::env::var_os(PLACE) {
        let mounted = std::env::var_os("TRIPHAMMER_TEST_MOUNTED").is_some();
        child(&PathBuf::from(place), mounted);
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let can_mount = Command::new("unshare")
        .args(["-m", "sh", "-c", r#"mount -t tmpfs -o size=64k none "$1""#, "sh"])
        .arg(place.path())
        .output()
        .is_ok_and(|output| output.status.success());
    let mut command = Command::new(if can_mount { "unshare" } else { "sh" });
    if can_mount {
        command.args(["-m", "sh", "-c", MOUNTED, "sh"]).env("TRIPHAMMER_TEST_MOUNTED", "1");
    } else {
        command.args(["-c", LIMITED, "sh"]);
        if rustix::process::geteuid().is_root() {
            // No permission binds root.
            std::os::unix::fs::chown(place.path(), Some(NOBODY), None).unwrap();
            std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
        }
    }
    command.arg(place.path()).arg(std::env::current_exe().unwrap()).arg(test).env(PLACE, place.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn eyes(bench: &Bench, store: Store) -> Eyes {
    let zones = ZoneMap::capture(&bench.root(), &ZoneConfig::default()).unwrap();
    Eyes::new(bench.root(), zones, store)
}

fn keep(eyes: &Eyes, run: &RunId) -> Result<(), String> {
    let look = eyes.look(None).map_err(|e| e.to_string())?;
    eyes.keep(&look, run, "0").map(|_| ()).map_err(|e| e.to_string())
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| dice.u8(..)).take(length).collect()
}

fn leftovers(store: &Path) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(store).into_iter().flatten();
    all.map(walkdir::DirEntry::into_path)
        .filter(|p| p.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"tmp_")))
        .collect()
}

/// What does not fit is told with its place; what was kept before stays whole, nothing half-written is left, and with
/// room again everything goes on.
#[test]
fn a_full_disk() {
    apart("store_disk::a_full_disk", |place, mounted| {
        let dir = place.join(".store.git");
        let bench = Bench::new();
        bench.write("first", "first");
        let eyes = eyes(&bench, Store::open(&dir).unwrap());
        keep(&eyes, &run()).unwrap();
        let before = plain(&bench.work());
        // A pack that fits when its index does not, one large file, many small ones, and a pack of those. A limit on
        // files binds those of the workspace too, so there only packs and indexes are too large.
        let tiny = if mounted { 14_000 } else { 1_800 };
        let sizes = [("tiny", tiny, 4), ("large", 1, 2 << 20), ("few", 20, 200_000), ("many", 300, 9_000)];
        for (name, files, length) in sizes.into_iter().filter(|(_, files, _)| mounted || *files > 100) {
            for n in 0..files {
                bench.write(format!("{name}{n}"), noise(n + length as u64, length));
            }
            let error = keep(&eyes, &RunId::new("r2")).expect_err("it does not fit");
            assert!(error.contains(dir.to_str().unwrap()) && error.contains("check the disk"), "{error}");
            assert!(!mounted || error.contains("No space left"), "{error}");
            assert_eq!(leftovers(&dir), Vec::<PathBuf>::new(), "{name}");
            for n in 0..files {
                std::fs::remove_file(bench.at(format!("{name}{n}"))).unwrap();
            }
        }
        let to = tempfile::tempdir().unwrap();
        let kept = eyes.store().kept(&run(), "0").unwrap();
        restore(eyes.store(), &kept, to.path(), Onto::Fresh).unwrap();
        assert!(plain(to.path()) == before);
        if !mounted {
            return;
        }
        // To drop objects that are files takes no room at all.
        let full = place.join("full");
        let crowd = || {
            let mut filler = std::fs::File::create(&full).unwrap();
            while std::io::Write::write_all(&mut filler, &[1; 512]).is_ok() {}
        };
        crowd();
        let fits = |n: u64| bench.write("more", noise(n, 2_000));
        fits(1);
        keep(&eyes, &RunId::new("r3")).expect_err("nothing fits");
        let store = eyes.store();
        assert!(prune(store).unwrap().dropped > 0, "what was put before the disk was full");
        std::fs::remove_file(&full).unwrap();
        keep(&eyes, &RunId::new("r3")).unwrap();
        crowd();
        store.forget(&RunId::new("r3")).unwrap();
        assert!(prune(store).unwrap().dropped >= 2);
        // A pack of which a part stays cannot be written anew: it stays whole.
        std::fs::remove_file(&full).unwrap();
        for n in 0..100 {
            bench.write(format!("p{n}"), noise(n, 1_500));
        }
        keep(&eyes, &RunId::new("r4")).unwrap();
        std::fs::remove_file(bench.at("p1")).unwrap();
        keep(&eyes, &RunId::new("r5")).unwrap();
        let before = plain(&bench.work());
        store.forget(&RunId::new("r4")).unwrap();
        crowd();
        let error = prune(store).expect_err("there is no room for a new pack").to_string();
        assert!(error.contains(dir.to_str().unwrap()), "{error}");
        assert!(!dir.join("gc.partial").exists());
        let restored = |store: &Store| {
            let to = tempfile::tempdir().unwrap();
            restore(store, &store.kept(&RunId::new("r5"), "0").unwrap(), to.path(), Onto::Fresh).unwrap();
            plain(to.path())
        };
        assert!(restored(store) == before);
        std::fs::remove_file(&full).unwrap();
        assert!(prune(store).unwrap().dropped > 0);
        assert!(restored(store) == before);
    });
}

/// What is there can be read; what cannot be written is told with its place, and the workspace is as it was.
#[test]
fn a_read_only_disk() {
    apart("store_disk::a_read_only_disk", |place, mounted| {
        let dir = place.join(".store.git");
        let bench = Bench::new();
        bench.write("first", "first");
        keep(&eyes(&bench, Store::open(&dir).unwrap()), &run()).unwrap();
        let seal =
            if mounted { "mount -o remount,ro \"$1\"" } else { "chmod -R a-w \"$1\" && chmod a-w \"$1\"" };
        assert!(Command::new("sh").args(["-c", seal, "sh"]).arg(place).status().unwrap().success());
        assert!(std::fs::File::create(place.join("probe")).is_err(), "it is read-only");
        let eyes = eyes(&bench, Store::open(&dir).unwrap());
        let store = eyes.store();
        let to = tempfile::tempdir().unwrap();
        restore(store, &store.kept(&run(), "0").unwrap(), to.path(), Onto::Fresh).unwrap();
        assert!(plain(to.path()) == plain(&bench.work()));
        bench.write("second", "second");
        let before = plain(&bench.work());
        let error = keep(&eyes, &RunId::new("r2")).expect_err("nothing can be written");
        assert!(error.contains(dir.to_str().unwrap()) && error.contains("permissions of runs/"), "{error}");
        assert!(plain(&bench.work()) == before);
        let error = store.forget(&run()).expect_err("a ref is a file").to_string();
        assert!(error.contains("/refs/") && error.contains("removed"), "{error}");
        assert!(Store::open(&place.join("another.git")).is_err(), "none can be made");
        if !mounted {
            for entry in walkdir::WalkDir::new(place).into_iter().flatten().filter(|e| e.file_type().is_dir())
            {
                chmod(entry.path(), 0o700);
            }
        }
    });
}
