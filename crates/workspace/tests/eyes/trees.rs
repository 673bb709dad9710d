//! Trees in the store: any git tool reads them, and what they hold can be put back.

use std::os::unix::fs::symlink;

use crate::common::{Bench, git, plain, run};
use triphammer_model::{Change, Content, TreeId, WorkPath};
use triphammer_workspace::{
    Eyes, Kept, Onto, RestoreError, Store, ZoneConfig, ZoneMap, fingerprint_file, moved, restore,
};

const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Names that have led programs astray.
fn hostile(bench: &Bench) {
    for name in
        [&b"a-b"[..], b"a/x", b"a.c", b"a0", b"\xff\xfe/x", b"new\nline", b"sp ace", b"q\"uote", b"-dash"]
    {
        bench.write(name, [b"content of ", name].concat());
    }
    bench.write("deep/er/and/deeper/f", "f");
    bench.write("run.sh", "#!/bin/sh\n");
    bench.chmod("run.sh", 0o755);
    bench.write("private", "p");
    bench.chmod("private", 0o600);
    bench.write("set", "s");
    bench.chmod("set", 0o4755);
    bench.write("crlf", "a\r\nb\r\n");
    bench.write(".gitattributes", "* text=auto eol=lf\n*.x filter=evil\n");
    bench.write("zero", [0_u8; 100]);
    bench.write("nothing", "");
    symlink("a/x", bench.at("link")).unwrap();
    symlink("/nowhere", bench.at("a/dangling")).unwrap();
    std::fs::create_dir_all(bench.at("empty/er")).unwrap();
    std::fs::create_dir_all(bench.at("locked")).unwrap();
    bench.chmod("locked", 0o700);
    bench.write("nested/.git/HEAD", "ref: refs/heads/main");
    bench.write("nested/src/f", "f");
    bench.write("module/.git", "gitdir: elsewhere");
    bench.write("module/f", "f");
}

#[test]
fn git_reads_trees() {
    let bench = Bench::new();
    let eyes = bench.eyes();
    let empty = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    assert_eq!(empty.tree.as_str(), EMPTY_TREE);
    hostile(&bench);
    let look = eyes.look(None).unwrap();
    let kept = eyes.keep(&look, &run(), "001").unwrap();
    let store = bench.store();
    git(store.dir(), &["fsck", "--full", "--strict"]);
    let listed = git(store.dir(), &["ls-tree", "-r", "-z", "--name-only", kept.tree.as_str()]);
    assert_eq!(listed.split_terminator('\0').count(), look.snapshot().len());
    assert!(!listed.contains(".git/") && !listed.contains("module/.git"));
    assert_eq!(git(store.dir(), &["rev-parse", &format!("refs/runs/{}/001", run())]), kept.tree.as_str());

    // Git itself, given the same files and no filters, comes to the same tree.
    let index = bench.dir.path().join("index");
    for nested in ["nested", "module"] {
        std::fs::remove_dir_all(bench.at(nested).join(".git"))
            .or_else(|_| std::fs::remove_file(bench.at(nested).join(".git")))
            .unwrap();
    }
    std::fs::remove_file(bench.at(".gitattributes")).unwrap();
    let kept = eyes.keep(&eyes.look(Some(&look)).unwrap(), &run(), "002").unwrap();
    let other = bench.dir.path().join("other.git");
    git(bench.dir.path(), &["init", "-q", "--bare", other.to_str().unwrap()]);
    let script = "git add -A -f . && git write-tree";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.work())
        .env("GIT_DIR", &other)
        .env("GIT_WORK_TREE", bench.work())
        .env("GIT_INDEX_FILE", &index)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), kept.tree.as_str(), "{output:?}");
}

#[test]
fn differences_are_told() {
    let bench = Bench::new();
    bench.write("kept", "k");
    bench.write("gone", "a long enough text to be recognised when it moves elsewhere\n");
    bench.write("changed", "one\ntwo\n");
    let eyes = bench.eyes();
    let first = eyes.look(None).unwrap();
    let a = eyes.keep(&first, &run(), "0").unwrap();
    std::fs::rename(bench.at("gone"), bench.at("moved")).unwrap();
    bench.write("changed", "one\n2\n");
    bench.write("new\nline", "x");
    let b = eyes.keep(&eyes.look(Some(&first)).unwrap(), &run(), "001").unwrap();
    let store = bench.store();
    let changes: Vec<_> = store
        .diff(&a.tree, &b.tree)
        .unwrap()
        .into_iter()
        .map(|c| (c.path.to_string(), c.change, c.renamed_from.map(|p| p.to_string())))
        .collect();
    assert_eq!(
        changes,
        [
            ("changed".to_owned(), Change::Changed, None),
            ("gone".to_owned(), Change::Deleted, None),
            ("moved".to_owned(), Change::Added, Some("gone".to_owned())),
            ("new\nline".to_owned(), Change::Added, None),
        ]
    );
    let patch = String::from_utf8(store.diff_patch(&a.tree, &b.tree).unwrap()).unwrap();
    assert!(patch.contains("-two\n+2\n") && patch.contains("rename to moved"), "{patch}");
    let mut text = String::new();
    store.diff_text(&a.tree, &b.tree, |from| from.read_to_string(&mut text).unwrap()).unwrap();
    assert_eq!(text, patch);
    store.diff_text(&a.tree, &b.tree, |_| ()).unwrap();
    assert!(store.diff(&a.tree, &a.tree).unwrap().is_empty());
    let missing = TreeId::new("0123456789012345678901234567890123456789");
    assert!(store.diff(&a.tree, &missing).is_err());
    assert!(store.diff(&a.tree, &TreeId::new("--output=/tmp/x")).is_err());
}

#[test]
fn a_tree_is_put_back_whole() {
    let bench = Bench::new();
    hostile(&bench);
    let eyes = bench.eyes();
    let kept = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let again = bench.store().kept(&run(), "0").unwrap();
    assert_eq!(again, kept);
    assert_eq!(bench.store().names(&run()).unwrap(), ["0"]);
    let to = bench.dir.path().join("to");
    let restored = restore(&bench.store(), &again, &to, Onto::Fresh).unwrap();
    assert!(restored.is_complete(), "{restored:?}");
    let mut expected = plain(&bench.work());
    // What is named like a repository is no content.
    expected.retain(|path, _| !path.ends_with(b"/.git"));
    assert_eq!(plain(&to), expected);
    assert!(matches!(restore(&bench.store(), &again, &to, Onto::Fresh), Err(RestoreError::NotEmpty { .. })));
}

#[test]
fn exact_restore_undoes_everything_but_caches_and_infrastructure() {
    let bench = Bench::new();
    hostile(&bench);
    bench.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    let kept = eyes.keep(&before, &run(), "0").unwrap();
    let expected = plain(&bench.work());
    let outside = bench.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x"), "outside").unwrap();

    std::fs::remove_dir_all(bench.at("a")).unwrap();
    symlink(&outside, bench.at("a")).unwrap();
    std::fs::remove_dir_all(bench.at("deep")).unwrap();
    bench.write("deep", "a file now");
    std::fs::remove_file(bench.at("private")).unwrap();
    bench.write("private/and/more", "a directory now");
    bench.chmod("run.sh", 0o644);
    bench.chmod("locked", 0o755);
    bench.write("crlf", "gone");
    std::fs::remove_file(bench.at("link")).unwrap();
    symlink("elsewhere", bench.at("link")).unwrap();
    std::fs::remove_dir_all(bench.at("empty")).unwrap();
    bench.write("new/dir/f", "new");
    bench.fifo("new/pipe");
    bench.write(".local/bin/tool", "stays");
    bench.write("new/node_modules/m", "stays");
    bench.write("target/debug/x", "stays");

    let differing = eyes.differences(&kept, Some(&before)).unwrap();
    assert!(
        differing.iter().any(|p| p.to_string() == "run.sh")
            && !differing.iter().any(|p| p.to_string() == "set")
    );
    let restored = eyes.restore(&kept, Some(&before)).unwrap();
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(eyes.differences(&kept, None).unwrap(), []);
    let mut now = plain(&bench.work());
    for stays in [".local/bin/tool", "new/node_modules/m", "target/debug/x"] {
        assert!(now.contains_key(stays.as_bytes()), "{stays}");
    }
    now.retain(|path, _| {
        ![&b".local"[..], b"new", b"target/debug"].iter().any(|dir| path.starts_with(dir))
            || path == b"new\nline"
    });
    assert_eq!(now, expected);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.join("x")).unwrap(), b"outside");
    let after = eyes.look(None).unwrap();
    assert!(eyes.keep(&after, &run(), "001").unwrap().same_files_as(&kept));
    let idle = eyes.restore(&kept, Some(&after)).unwrap();
    assert_eq!((idle.written, idle.deleted), (0, 0));
}

#[test]
fn what_stands_in_the_way_stays_and_is_named() {
    let bench = Bench::new();
    bench.write("build", "a file");
    bench.write("f", "f");
    let eyes = bench.eyes();
    let kept = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    std::fs::remove_file(bench.at("build")).unwrap();
    bench.write("build/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    std::fs::remove_file(bench.at("f")).unwrap();
    let restored = eyes.restore(&kept, None).unwrap();
    assert_eq!(restored.blocked.len(), 1);
    assert_eq!(restored.blocked[0].0.to_string(), "build");
    assert!(bench.at("f").exists() && bench.at("build/CACHEDIR.TAG").exists());
}

#[test]
fn large_files_are_named_and_their_change_still_counts() {
    let bench = Bench::new();
    bench.write("large", vec![b'x'; 5_000]);
    bench.write("small", "s");
    let eyes = bench.eyes().with_limit(1_000);
    let before = eyes.look(None).unwrap();
    let kept = eyes.keep(&before, &run(), "0").unwrap();
    assert_eq!(kept.manifest.not_stored.len(), 1);
    assert_eq!(kept.manifest.not_stored[0].size, 5_000);
    let sha1 = git(&bench.work(), &["hash-object", "large"]);
    assert_eq!(kept.manifest.not_stored[0].sha1.as_deref(), Some(sha1.as_str()));
    // It is left alone where it is right, and named where it is not.
    assert_eq!(eyes.restore(&kept, None).unwrap().kept, 2);
    bench.write("large", vec![b'y'; 5_000]);
    let after = eyes.look(Some(&before)).unwrap();
    assert_eq!(moved(&before, &after).len(), 1);
    assert_ne!(eyes.keep(&after, &run(), "001").unwrap().tree, kept.tree);
    let restored = eyes.restore(&kept, None).unwrap();
    assert_eq!(restored.not_restored[0].path.to_string(), "large");
    assert_eq!(std::fs::read(bench.at("large")).unwrap(), vec![b'y'; 5_000]);
}

#[test]
fn a_killed_run_remembers_its_look() {
    let bench = Bench::new();
    hostile(&bench);
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    let kept = eyes.keep(&before, &run(), "001-before").unwrap();
    let file = bench.dir.path().join("before.fp");
    fingerprint_file::write(before.snapshot(), &file).unwrap();
    drop((before, kept));

    bench.write("a/x", "changed");
    let eyes = bench.eyes();
    let snapshot = fingerprint_file::read(&file).unwrap();
    let remembered = eyes.remember(snapshot, &bench.store().kept(&run(), "001-before").unwrap()).unwrap();
    let observed = moved(&remembered, &eyes.look(Some(&remembered)).unwrap());
    assert_eq!(observed.iter().map(|o| o.path.to_string()).collect::<Vec<_>>(), ["a/x"]);
}

#[test]
fn a_damaged_store_stops_a_restore_before_anything_is_deleted() {
    let bench = Bench::new();
    bench.write("f", "content");
    let eyes = bench.eyes();
    let kept = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let id = git(&bench.work(), &["hash-object", "f"]);
    std::fs::remove_file(bench.store().dir().join("objects").join(&id[..2]).join(&id[2..])).unwrap();
    bench.write("f", "other");
    bench.write("new", "n");
    assert!(matches!(eyes.restore(&kept, None), Err(RestoreError::Store(_))));
    assert!(bench.at("new").exists());
}

#[test]
fn a_bare_tree_needs_no_manifest() {
    let bench = Bench::new();
    bench.write("f", "f");
    let eyes = bench.eyes();
    let kept = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let to = bench.dir.path().join("to");
    restore(&bench.store(), &Kept::bare(kept.tree), &to, Onto::Fresh).unwrap();
    assert_eq!(std::fs::read(to.join("f")).unwrap(), b"f");
    let zones =
        ZoneMap::capture(&triphammer_workspace::Root::open(&to).unwrap(), &ZoneConfig::default()).unwrap();
    std::fs::write(to.join("g"), "g").unwrap();
    let bare = Kept::bare(TreeId::new(EMPTY_TREE));
    restore(&Store::open(bench.store().dir()).unwrap(), &bare, &to, Onto::Exact(&zones)).unwrap();
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
}

/// A sparse file costs an agent nothing; hashing it would cost the run its night.
#[test]
fn a_file_too_large_to_read_is_compared_by_its_stat_and_named() {
    let bench = Bench::new();
    let eyes = bench.eyes();
    let huge = std::fs::File::create(bench.at("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let before = eyes.look(None).unwrap();
    assert!(before.bounds().unreadable.contains_key(&WorkPath::from("huge")), "{:?}", before.bounds());
    let again = eyes.look(Some(&before)).unwrap();
    assert_eq!(moved(&before, &again), []);
    huge.set_len((1 << 40) + 1).unwrap();
    let after = eyes.look(Some(&again)).unwrap();
    let seen = moved(&again, &after);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].content, Content::Changed);
    eyes.keep(&after, &run(), "001").unwrap();
}

/// A tree that is made from the one before equals one that is made from nothing.
#[test]
fn a_tree_of_what_moved_is_the_whole_tree() {
    let bench = Bench::new();
    hostile(&bench);
    bench.write("target/out", "o");
    bench.write("target/deep/out", "o");
    let eyes = bench.eyes();
    let mut last = eyes.look(None).unwrap();
    eyes.keep(&last, &run(), "0").unwrap();
    let steps: [(&str, &dyn Fn()); 9] = [
        ("nothing", &|| {}),
        ("content", &|| bench.write("deep/er/and/deeper/f", "other")),
        ("a mode", &|| bench.chmod("run.sh", 0o644)),
        ("a directory's mode", &|| bench.chmod("a", 0o700)),
        ("a directory is emptied", &|| std::fs::remove_file(bench.at("deep/er/and/deeper/f")).unwrap()),
        ("a directory goes", &|| std::fs::remove_dir_all(bench.at("empty")).unwrap()),
        ("a directory moves", &|| std::fs::rename(bench.at("a"), bench.at("moved")).unwrap()),
        ("a cache is found out", &|| {
            bench.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
        }),
        ("many come", &|| (0..200).for_each(|n| bench.write(format!("many/{}/{n}", n % 7), format!("{n}")))),
    ];
    for (what, step) in steps {
        step();
        let now = eyes.look(Some(&last)).unwrap();
        let kept = eyes.keep(&now, &run(), "001").unwrap();
        // The second time nothing is made at all.
        assert_eq!(eyes.keep(&now, &run(), "001").unwrap(), kept, "{what}");
        let other = Store::open(&bench.dir.path().join("other.git")).unwrap();
        let anew = Eyes::new(bench.root(), eyes.zones().clone(), other);
        let whole = anew.keep(&anew.look(None).unwrap(), &run(), "001").unwrap();
        assert_eq!(kept, whole, "{what}");
        last = now;
    }
    git(bench.store().dir(), &["fsck", "--full", "--strict"]);
}
