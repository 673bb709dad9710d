//! What moved between two looks, against the world itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{Bench, plain};
use triphammer_model::{Change, Content, Observed};
use triphammer_workspace::{Eyes, Look, ZoneConfig, ZoneMap, moved, moved_directories};

fn short(observed: &[Observed]) -> Vec<(String, Change, Content)> {
    observed.iter().map(|o| (o.path.to_string(), o.change, o.content)).collect()
}

/// What `act` moves, as the eyes see it.
fn seen(bench: &Bench, act: impl FnOnce(&Bench)) -> Vec<(String, Change, Content)> {
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    act(bench);
    short(&moved(&before, &eyes.look(Some(&before)).unwrap()))
}

fn restore_mtime(path: &Path, act: impl FnOnce()) {
    let mtime = std::fs::symlink_metadata(path).unwrap().modified().unwrap();
    act();
    File::options().write(true).open(path).unwrap().set_modified(mtime).unwrap();
}

#[test]
fn kinds_of_movement() {
    use Change::{Added, Changed, Deleted};
    type Act = fn(&Bench);
    type Seen = &'static [(&'static str, Change, Content)];
    const C: Content = Content::Changed;
    const S: Content = Content::Same;
    let table: &[(&str, Act, Seen)] = &[
        ("nothing", |_| {}, &[]),
        ("added", |b| b.write("new", "n"), &[("new", Added, C)]),
        ("deleted", |b| std::fs::remove_file(b.at("a/x")).unwrap(), &[("a/x", Deleted, C)]),
        ("changed", |b| b.write("f", "longer"), &[("f", Changed, C)]),
        ("same size", |b| b.write("f", "g"), &[("f", Changed, C)]),
        (
            "same size, restored mtime",
            |b| restore_mtime(&b.at("f"), || b.write("f", "g")),
            &[("f", Changed, C)],
        ),
        (
            "touched",
            |b| {
                let later = SystemTime::now() + Duration::from_secs(5);
                File::options().write(true).open(b.at("f")).unwrap().set_modified(later).unwrap();
            },
            &[("f", Changed, S)],
        ),
        ("written with the same bytes", |b| b.write("f", "f"), &[("f", Changed, S)]),
        (
            "renamed over with the same bytes",
            |b| {
                b.write("other", "f");
                std::fs::rename(b.at("other"), b.at("f")).unwrap();
            },
            &[("f", Changed, S)],
        ),
        ("executable", |b| b.chmod("f", 0o755), &[("f", Changed, C)]),
        ("other mode bits", |b| b.chmod("f", 0o600), &[("f", Changed, C)]),
        (
            "mode there and back",
            |b| {
                b.chmod("f", 0o600);
                b.chmod("f", 0o644);
            },
            &[("f", Changed, S)],
        ),
        (
            "link retargeted",
            |b| {
                std::fs::remove_file(b.at("link")).unwrap();
                symlink("b", b.at("link")).unwrap();
            },
            &[("link", Changed, C)],
        ),
        (
            "link made anew",
            |b| {
                std::fs::remove_file(b.at("link")).unwrap();
                symlink("a", b.at("link")).unwrap();
            },
            &[("link", Changed, S)],
        ),
        (
            "file becomes a link with its bytes as target",
            |b| {
                std::fs::remove_file(b.at("f")).unwrap();
                symlink("f", b.at("f")).unwrap();
            },
            &[("f", Changed, C)],
        ),
        (
            "file becomes a directory",
            |b| {
                std::fs::remove_file(b.at("f")).unwrap();
                b.write("f/x", "x");
            },
            &[("f", Deleted, C), ("f/x", Added, C)],
        ),
        (
            "directories swapped",
            |b| {
                std::fs::rename(b.at("a"), b.at("t")).unwrap();
                std::fs::rename(b.at("b"), b.at("a")).unwrap();
                std::fs::rename(b.at("t"), b.at("b")).unwrap();
            },
            &[("a/x", Changed, C), ("b/x", Changed, C)],
        ),
        ("empty directory", |b| std::fs::create_dir(b.at("empty")).unwrap(), &[]),
        ("a FIFO appears", |b| b.fifo("pipe2"), &[("pipe2", Added, C)]),
        (
            "in the caches and the infrastructure",
            |b| {
                b.write("node_modules/m/i.js", "x");
                b.write(".local/bin/tool", "x");
                b.write(".git/x", "x");
                b.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
                b.write("target/debug/x", "x");
            },
            &[],
        ),
        ("in a nested repository", |b| b.write("nested/src", "new"), &[("nested/src", Changed, C)]),
        (
            "hidden work",
            |b| {
                b.write(".env", "x");
                b.write(".github/ci.yml", "x");
            },
            &[(".env", Added, C), (".github/ci.yml", Added, C)],
        ),
        (
            "hiding one's work afterwards",
            |b| {
                b.write("a/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
                b.write(".gitignore", "a/\n");
            },
            &[(".gitignore", Added, C), ("a/CACHEDIR.TAG", Added, C)],
        ),
    ];
    for (what, act, expected) in table {
        let bench = Bench::new();
        bench.write("f", "f");
        bench.write("a/x", "1");
        bench.write("b/x", "2");
        let time = SystemTime::now() - Duration::from_secs(1_000);
        for file in ["a/x", "b/x"] {
            File::options().write(true).open(bench.at(file)).unwrap().set_modified(time).unwrap();
        }
        symlink("a", bench.at("link")).unwrap();
        bench.fifo("pipe");
        bench.write("nested/.git/HEAD", "x");
        bench.write("nested/src", "x");
        let expected: Vec<_> = expected.iter().map(|(p, c, k)| ((*p).to_owned(), *c, *k)).collect();
        assert_eq!(seen(&bench, act), expected, "{what}");
    }
}

#[test]
fn renames_are_labelled() {
    let bench = Bench::new();
    bench.write("old", "content");
    bench.write("copied", "other content");
    bench.write("empty", "");
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    std::fs::rename(bench.at("old"), bench.at("new")).unwrap();
    std::fs::remove_file(bench.at("copied")).unwrap();
    bench.write("pasted", "other content");
    std::fs::remove_file(bench.at("empty")).unwrap();
    let observed = moved(&before, &eyes.look(Some(&before)).unwrap());
    let from: BTreeMap<_, _> = observed
        .iter()
        .filter_map(|o| Some((o.path.to_string(), o.renamed_from.as_ref()?.to_string())))
        .collect();
    assert_eq!(from.get("new").map(String::as_str), Some("old"));
    assert_eq!(from.get("pasted").map(String::as_str), Some("copied"));
    assert_eq!(observed.len(), 5);
}

#[test]
fn signatures_are_published() {
    let bench = Bench::new();
    bench.write("f", "abc");
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    bench.write("f", "abcd");
    let observed = moved(&before, &eyes.look(Some(&before)).unwrap());
    let meta = std::fs::metadata(bench.at("f")).unwrap();
    let signature = format!("4:{}", meta.mtime() * 1_000_000_000 + meta.mtime_nsec());
    assert_eq!(observed[0].after.as_deref(), Some(signature.as_str()));
    assert!(observed[0].before.as_deref().unwrap().starts_with("3:"));
}

/// One random act on a small workspace.
fn act(random: &mut fastrand::Rng, work: &Path) {
    let name = |random: &mut fastrand::Rng| {
        let dir = ["", "a/", "b/", "a/c/"][random.usize(..4)];
        work.join(format!("{dir}{}", ["f", "g", "h", "i"][random.usize(..4)]))
    };
    let (path, other) = (name(random), name(random));
    let bytes = |random: &mut fastrand::Rng| vec![random.u8(b'a'..b'd'); random.usize(..3)];
    // An act that does not apply to what is there does nothing: so much the better.
    let _ = match random.u8(..16) {
        0..3 => std::fs::write(&path, bytes(random)),
        3 => std::fs::read(&path).and_then(|old| std::fs::write(&path, old)),
        4 => std::fs::metadata(&path).and_then(|old| {
            let time = old.modified()?;
            std::fs::write(&path, bytes(random))?;
            File::options().write(true).open(&path)?.set_modified(time)
        }),
        5 => std::fs::rename(&path, &other),
        6 => {
            let (a, b, t) = (work.join("a"), work.join("b"), work.join("t"));
            std::fs::rename(&a, &t)
                .and_then(|()| std::fs::rename(&b, &a))
                .and_then(|()| std::fs::rename(&t, &b))
        }
        7 => std::fs::remove_file(&path),
        8 => symlink(["f", "a", "nowhere"][random.usize(..3)], &path),
        9 => std::fs::hard_link(&path, &other),
        10 => std::fs::metadata(&path)
            .map(|_| crate::common::chmod(&path, [0o644, 0o755, 0o600][random.usize(..3)])),
        11 => std::fs::create_dir(&path),
        12 => std::fs::remove_dir(&path),
        13 => {
            File::options().append(true).open(&path).and_then(|mut f| std::io::Write::write_all(&mut f, b"z"))
        }
        14 => File::options().write(true).open(&path).and_then(|f| f.set_len(1)),
        _ => File::options().write(true).open(&path).and_then(|f| f.set_modified(SystemTime::now())),
    };
}

/// Files and links by content and mode, without directories.
fn files(work: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    plain(work).into_iter().filter(|(_, (mode, _))| mode & 0o170_000 != 0o040_000).collect()
}

#[test]
fn no_change_is_missed_and_none_invented() {
    let seed = std::env::var("TRIPHAMMER_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("TRIPHAMMER_SEED={seed}");
    // Zones are told by relative paths, and a store serves many workspaces: one of each will do.
    let first = Bench::new();
    let (zones, store) = (first.zones(), first.store());
    for n in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_add(n));
        let bench = Bench::new();
        for dir in ["a/c", "b"] {
            std::fs::create_dir_all(bench.at(dir)).unwrap();
        }
        let eyes = Eyes::new(bench.root(), zones.clone(), store.clone());
        let mut last: Option<Look> = None;
        let mut truth: BTreeMap<Vec<u8>, (u32, Vec<u8>)> = BTreeMap::new();
        for round in 0..4 {
            for _ in 0..random.usize(..8) {
                act(&mut random, &bench.work());
            }
            let look = eyes.look(last.as_ref()).unwrap();
            let now = files(&bench.work());
            if let Some(before) = &last {
                let observed = moved(before, &look);
                let mut shown: Vec<_> = observed
                    .iter()
                    .filter(|o| o.content != Content::Same)
                    .map(|o| o.path.as_bytes().to_vec())
                    .collect();
                shown.sort();
                let mut real: Vec<Vec<u8>> =
                    now.iter().filter(|(p, v)| truth.get(*p) != Some(v)).map(|(p, _)| p.clone()).collect();
                real.extend(truth.keys().filter(|p| !now.contains_key(*p)).cloned());
                real.sort();
                assert_eq!(shown, real, "seed {seed}, sequence {n}, round {round}: {observed:?}");
            }
            truth = now;
            last = Some(look);
        }
    }
}

#[test]
fn directories_alone_are_counted_apart() {
    let bench = Bench::new();
    bench.write("a/f", "f");
    std::fs::create_dir(bench.at("gone")).unwrap();
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    std::fs::create_dir_all(bench.at("new/er")).unwrap();
    std::fs::remove_dir(bench.at("gone")).unwrap();
    bench.chmod("a", 0o700);
    let after = eyes.look(Some(&before)).unwrap();
    assert_eq!((moved(&before, &after), moved_directories(&before, &after)), (Vec::new(), 4));
    assert_eq!(moved_directories(&after, &after), 0);
}

/// Only root can mount; elsewhere there is nothing to see.
#[test]
fn what_is_mounted_below_is_named() {
    let bench = Bench::new();
    bench.write("f", "f");
    std::fs::create_dir_all(bench.at("mnt/deep")).unwrap();
    let script =
        "mount -t tmpfs none mnt/deep && mkdir mnt/deep/sub && echo x > mnt/deep/sub/f && exec \"$0\" \"$@\"";
    let inside = std::env::var_os("TRIPHAMMER_MOUNTED").map(std::path::PathBuf::from);
    let Some(work) = inside else {
        let unshared = std::process::Command::new("unshare")
            .args(["-m", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "movement::what_is_mounted_below_is_named", "--nocapture"])
            .env("TRIPHAMMER_MOUNTED", bench.work())
            .current_dir(bench.work())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&unshared.stderr);
        // Where mounting is refused there is nothing to look at, and the refusal is what is seen.
        let refused = said.contains("permission denied") || said.contains("Operation not permitted");
        assert!(unshared.status.success() || refused, "{said}");
        return;
    };
    let root = triphammer_workspace::Root::open(&work).unwrap();
    let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
    let eyes = Eyes::new(root, zones, bench.store());
    let first = eyes.look(None).unwrap();
    let again = eyes.look(Some(&first)).unwrap();
    for look in [&first, &again] {
        let notes = &look.bounds().notes;
        assert!(notes.iter().any(|n| n.contains("mounted at `mnt/deep` ")), "{notes:?}");
        assert!(notes.iter().any(|n| n.contains("a part of the workspace lies on tmpfs")), "{notes:?}");
    }
}
