//! Infrastructure is kept beside the deliverable, and comes back with it.

use std::os::unix::fs::symlink;

use crate::common::{Bench, git, plain, run};
use triphammer_workspace::{
    INFRASTRUCTURE_LIMIT, Onto, Root, ZoneConfig, ZoneMap, restore, restore_infrastructure,
};

#[test]
fn a_lost_workspace_comes_back_with_its_tools() {
    let bench = Bench::new();
    bench.write("src/main.rs", "fn main() {}");
    bench.write(".local/bin/tool", "#!/bin/sh\n");
    bench.chmod(".local/bin/tool", 0o755);
    symlink("tool", bench.at(".local/bin/alias")).unwrap();
    bench.write("deep/.venv/lib/x.py", "x = 1\n");
    bench.chmod("deep/.venv/lib/x.py", 0o600);
    // It leads to tools and holds work of its own: its mode is the work's affair.
    bench.write("deep/work", "w");
    bench.chmod("deep", 0o700);
    let (eyes, store) = (bench.eyes(), bench.store());
    let look = eyes.look(None).unwrap();
    let tools = eyes.infrastructure(&look, None).unwrap();
    assert_eq!(tools.snapshot().len(), 3);
    let kept = eyes.keep(&look, &run(), "001").unwrap();
    let kept_tools = eyes.keep_infrastructure(&tools, &run(), "001").unwrap();
    assert_eq!(store.kept_infrastructure(&run(), "001").unwrap(), Some(kept_tools.clone()));
    assert_eq!(store.kept_infrastructure(&run(), "002").unwrap(), None);
    git(store.dir(), &["fsck", "--full", "--strict"]);
    let before = plain(&bench.work());

    std::fs::remove_dir_all(bench.work()).unwrap();
    let to = bench.dir.path().join("back");
    assert!(restore(&store, &kept, &to, Onto::Fresh).unwrap().is_complete());
    let zones = ZoneMap::capture(&Root::open(&to).unwrap(), &ZoneConfig::default()).unwrap();
    let done = restore_infrastructure(&store, &kept_tools, &to, &zones).unwrap();
    assert!(done.is_complete());
    assert_eq!((done.written, done.deleted), (3, 0));
    assert_eq!(plain(&to), before);

    // What else is there stays, what is right is left alone.
    std::fs::write(to.join(".local/bin/own"), "mine").unwrap();
    std::fs::write(to.join(".local/bin/tool"), "spoilt").unwrap();
    let again = restore_infrastructure(&store, &kept_tools, &to, &zones).unwrap();
    assert_eq!((again.written, again.kept, again.deleted), (1, 2, 0));
    assert_eq!(std::fs::read(to.join(".local/bin/own")).unwrap(), b"mine");
}

#[test]
fn only_what_moved_is_read_again() {
    let bench = Bench::new();
    bench.write(".local/a", "one");
    bench.write(".local/sub/b", "two");
    let eyes = bench.eyes();
    let look = eyes.look(None).unwrap();
    let first = eyes.infrastructure(&look, None).unwrap();
    let tree = eyes.keep_infrastructure(&first, &run(), "001").unwrap().tree;
    bench.write(".local/a", "changed");
    let second = eyes.infrastructure(&look, Some(&first)).unwrap();
    let changed = eyes.keep_infrastructure(&second, &run(), "002").unwrap().tree;
    assert_ne!(tree, changed);
    let anew = eyes.infrastructure(&look, None).unwrap();
    assert_eq!(eyes.keep_infrastructure(&anew, &run(), "003").unwrap().tree, changed);
}

#[test]
fn too_much_is_recorded_by_name_and_size() {
    let bench = Bench::new();
    bench.write(".local/small", "s");
    bench.write(".local/huge", "");
    let huge = std::fs::OpenOptions::new().write(true).open(bench.at(".local/huge")).unwrap();
    huge.set_len(INFRASTRUCTURE_LIMIT).unwrap();
    let eyes = bench.eyes();
    let look = eyes.look(None).unwrap();
    let tools = eyes.infrastructure(&look, None).unwrap();
    let kept = eyes.keep_infrastructure(&tools, &run(), "001").unwrap();
    let left_out: Vec<_> =
        kept.manifest.unread.iter().map(|(path, size)| (path.to_string(), *size)).collect();
    let expected =
        [(".local/huge", INFRASTRUCTURE_LIMIT), (".local/small", 1)].map(|(p, n)| (p.to_owned(), n));
    assert_eq!(left_out, expected);
    // Once there is room it is read.
    huge.set_len(3).unwrap();
    let fewer = eyes.infrastructure(&look, Some(&tools)).unwrap();
    let kept = eyes.keep_infrastructure(&fewer, &run(), "002").unwrap();
    assert!(kept.manifest.unread.is_empty() && kept.manifest.not_stored.is_empty());
}
