//! Folders of a run's own.

use std::os::unix::fs::symlink;
use std::path::Path;

use triphammer_model::WorkPath;
use triphammer_model::event::Isolation;
use triphammer_workspace::{
    Eyes, IsolateError, Isolated, Place, Root, Start, Zone, ZoneMap, carry, isolate, moved,
};

use crate::common::{Bench, git, plain, run};

/// Isolates the workspace from its tree 0.
fn apart(bench: &Bench, isolation: Isolation, state: &Path) -> Result<Isolated, IsolateError> {
    let eyes = bench.eyes();
    let tree = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let store = bench.store();
    let root = bench.root();
    let start = Start { origin: &root, zones: eyes.zones(), store: &store, tree: &tree };
    isolate(isolation, Some(&start), &Place { state, home: &bench.dir.path().join("home"), run: &run() })
}

fn repository() -> Bench {
    let bench = Bench::new();
    bench.write("src/a", "committed\n");
    bench.write("gone", "x");
    bench.write(".tools/run", "tracked, hidden");
    bench.git(&["init", "-q"]);
    bench.git(&["config", "user.name", "Person"]);
    bench.git(&["config", "user.email", "person@example.org"]);
    bench.git(&["add", "-f", "."]);
    bench.git(&["commit", "-q", "-m", "one"]);
    bench.git(&["branch", "other"]);
    bench.git(&["checkout", "-q", "-b", "feature/x"]);
    bench.write("src/a", "uncommitted\r\n");
    bench.write(".gitattributes", "* text=auto eol=lf\n");
    std::fs::remove_file(bench.at("gone")).unwrap();
    bench.write("new", "untracked");
    bench.write("ignored", "ignored");
    bench.write(".git/info/exclude", "ignored\n");
    bench
}

#[test]
fn a_worktree_starts_from_uncommitted_work_and_keeps_its_commits() {
    let bench = repository();
    let trap = bench.dir.path().join("trap");
    bench.write(".git/hooks/post-checkout", format!("#!/bin/sh\ntouch {}\n", trap.display()));
    bench.chmod(".git/hooks/post-checkout", 0o755);
    let state = tempfile::tempdir().unwrap();
    let before = plain(&bench.work());
    let refs = git(&bench.work(), &["for-each-ref"]);
    let made = apart(&bench, Isolation::Worktree, state.path()).unwrap();
    assert_eq!(plain(&made.root), before);
    assert!(!trap.exists());
    assert_eq!(git(&made.root, &["symbolic-ref", "HEAD"]), "refs/heads/feature/x");
    assert_eq!(git(&made.root, &["branch", "--list", "other", "--format=%(refname)"]), "refs/heads/other");
    assert_eq!(git(&made.root, &["remote"]), "");
    assert_eq!(git(&made.root, &["config", "--local", "user.name"]), "Person");
    let status = git(&made.root, &["status", "--porcelain"]);
    assert!(
        status.contains("D gone") && status.contains("?? new") && !status.contains("ignored"),
        "{status}"
    );

    git(&made.root, &["add", "-A"]);
    git(&made.root, &["commit", "-q", "-m", "by the agent"]);
    git(&made.root, &["gc", "-q", "--prune=now"]);
    git(&made.root, &["fsck", "--full"]);
    assert!(!made.root.join(".git/objects/info/alternates").exists());
    assert_eq!(git(&bench.work(), &["for-each-ref"]), refs);
    assert_eq!(plain(&bench.work()), before);
    git(&bench.work(), &["fsck", "--full"]);
}

#[test]
fn a_part_of_a_repository_and_other_heads() {
    let bench = repository();
    let state = tempfile::tempdir().unwrap();
    bench.git(&["checkout", "-q", "--detach"]);
    let sub = Bench { dir: tempfile::tempdir().unwrap() };
    std::fs::rename(bench.work(), sub.dir.path().join("repo")).unwrap();
    symlink("repo/src", sub.dir.path().join("work")).unwrap();
    let made = apart(&sub, Isolation::Worktree, state.path()).unwrap();
    assert_eq!(made.root, made.folder.join("src"));
    assert_eq!(plain(&made.root), plain(&sub.work().join(".")));
    assert_eq!(git(&made.root, &["rev-parse", "HEAD"]), git(&sub.work(), &["rev-parse", "HEAD"]));
    assert_eq!(git(&made.root, &["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");

    let unborn = Bench::new();
    unborn.git(&["init", "-q"]);
    unborn.git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    unborn.write("a", "a");
    let state = tempfile::tempdir().unwrap();
    let made = apart(&unborn, Isolation::Worktree, state.path()).unwrap();
    git(&made.root, &["add", "-A"]);
    git(&made.root, &["commit", "-q", "-m", "first"]);
    assert_eq!(git(&made.root, &["symbolic-ref", "HEAD"]), "refs/heads/trunk");
}

#[test]
fn a_copy_holds_the_deliverable_and_its_zones() {
    let bench = repository();
    bench.write("node_modules/m/i.js", "x");
    bench.write(".local/bin/tool", "x");
    let state = tempfile::tempdir().unwrap();
    let made = apart(&bench, Isolation::Copy, state.path()).unwrap();
    let mut expected = plain(&bench.work());
    expected.retain(|p, _| !p.starts_with(b"node_modules") && !p.starts_with(b".local"));
    assert_eq!(plain(&made.root), expected);
    // The origin's zones hold there, though there is no git to ask.
    let root = Root::open(&made.root).unwrap();
    let eyes = Eyes::new(root, bench.zones(), bench.store());
    assert_eq!(eyes.zones().zone_of(eyes.root(), &WorkPath::from(".tools/run")), Zone::Deliverable);
    let store = bench.store();
    let kept = store.kept(&run(), "0").unwrap();
    let look = eyes.look(None).unwrap();
    assert!(eyes.keep(&look, &run(), "001").unwrap().same_as(&kept));
    assert!(moved(&look, &eyes.look(None).unwrap()).is_empty());
    assert!(matches!(apart(&bench, Isolation::Copy, state.path()), Err(IsolateError::Exists { .. })));
}

#[test]
fn what_is_too_large_for_the_store_is_copied_too() {
    let bench = Bench::new();
    bench.write("large", vec![7; 10_000]);
    let eyes = bench.eyes().with_limit(100);
    let tree = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let (store, root, state) = (bench.store(), bench.root(), tempfile::tempdir().unwrap());
    let start = Start { origin: &root, zones: eyes.zones(), store: &store, tree: &tree };
    let place = Place { state: state.path(), home: &bench.dir.path().join("home"), run: &run() };
    let made = isolate(Isolation::Copy, Some(&start), &place).unwrap();
    assert_eq!(plain(&made.root), plain(&bench.work()));
    assert!(made.notes.is_empty(), "{:?}", made.notes);
}

#[test]
fn new_is_empty_and_bad_places_are_refused() {
    let bench = Bench::new();
    let state = tempfile::tempdir().unwrap();
    let home = bench.dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let at = |state: &Path| isolate(Isolation::New, None, &Place { state, home: &home, run: &run() });
    let made = at(state.path()).unwrap();
    assert_eq!(std::fs::read_dir(&made.root).unwrap().count(), 0);
    assert!(made.root.ends_with(format!("workspaces/{}", run())));

    assert!(matches!(at(&home.join("state")), Err(IsolateError::Inside { what: "the home", .. })));
    let repository = tempfile::tempdir().unwrap();
    std::fs::create_dir(repository.path().join(".git")).unwrap();
    let error = at(&repository.path().join("deep/state")).unwrap_err();
    assert!(error.to_string().contains("XDG_STATE_HOME"), "{error}");
    let error = apart(&bench, Isolation::Copy, &bench.at("state")).unwrap_err();
    assert!(matches!(error, IsolateError::Inside { what: "the workspace", .. }), "{error}");
    let other = tempfile::tempdir().unwrap();
    let error = apart(&bench, Isolation::Worktree, other.path()).unwrap_err();
    assert!(error.to_string().contains("use --isolate copy"), "{error}");
    assert_eq!(std::fs::read_dir(other.path().join("workspaces")).unwrap().count(), 0);
}

#[test]
fn carries_what_is_asked_for_and_never_through_a_link() {
    let bench = Bench::new();
    for file in
        ["node_modules/m/i.js", "node_modules/.bin/tool", ".venv/bin/python", "sub/.env", "other/x", ".git/x"]
    {
        bench.write(file, file);
    }
    bench.chmod("node_modules/.bin/tool", 0o755);
    symlink("../m/i.js", bench.at("node_modules/.bin/in")).unwrap();
    symlink("/etc/passwd", bench.at("node_modules/out")).unwrap();
    symlink("../../up", bench.at("node_modules/up")).unwrap();
    symlink("/etc", bench.at(".venv/etc")).unwrap();
    bench.fifo("node_modules/pipe");
    let to = tempfile::tempdir().unwrap();
    std::fs::create_dir(to.path().join("sub")).unwrap();
    std::fs::write(to.path().join("sub/.env"), "there already").unwrap();
    let patterns = ["node_modules".to_owned(), ".env".to_owned(), "/.venv/bin".to_owned()];
    let carried = carry(&bench.root(), &Root::open(to.path()).unwrap(), &patterns).unwrap();
    assert_eq!((carried.copied, carried.skipped_count), (4, 4), "{carried:?}");
    let paths: Vec<_> =
        plain(to.path()).into_iter().filter(|(_, (m, _))| m & 0o170_000 != 0o040_000).collect();
    let expected = [
        (".venv/bin/python", 0o100_644, ".venv/bin/python"),
        ("node_modules/.bin/in", 0o120_777, "../m/i.js"),
        ("node_modules/.bin/tool", 0o100_755, "node_modules/.bin/tool"),
        ("node_modules/m/i.js", 0o100_644, "node_modules/m/i.js"),
        ("sub/.env", 0o100_644, "there already"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(p, m, c)| (p.as_bytes().to_vec(), (*m, c.as_bytes().to_vec()))).collect();
    assert_eq!(paths, expected);
    let none = carry(&bench.root(), &Root::open(to.path()).unwrap(), &[]).unwrap();
    assert_eq!((none.copied, none.skipped_count), (0, 0));
}

#[test]
fn zones_are_the_same_after_a_restart() {
    let bench = repository();
    let zones = bench.zones();
    let text = serde_json::to_string(&zones).unwrap();
    let again: ZoneMap = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}
