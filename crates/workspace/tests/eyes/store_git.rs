//! Git on the store: what an agent puts there neither makes it wait for ever nor has a say.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use triphammer_workspace::{DiffError, Kept, PruneError, Store, StoreError};

use crate::common::{Bench, git, run};
use crate::store_gc::prune;

/// A store of two trees that differ, and the store open.
fn scene() -> (Bench, Store, [Kept; 2]) {
    let bench = Bench::new();
    bench.write("same", "same\n");
    let eyes = bench.eyes();
    let keep = |name: &str| eyes.keep(&eyes.look(None).unwrap(), &run(), name).unwrap();
    let start = keep("0");
    bench.write("new", "new\n");
    let work = keep("001");
    let store = bench.store();
    (bench, store, [start, work])
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn patch(store: &Store, [a, b]: &[Kept; 2]) -> Result<String, DiffError> {
    store.diff_patch(&a.tree, &b.tree).map(|text| String::from_utf8(text).unwrap())
}

/// Each way in which git is asked about the store fails, and says this.
#[track_caller]
fn assert_refused(store: &Store, trees: &[Kept; 2], named: &Path, what: &str) {
    let [a, b] = trees;
    let named = format!("`{}`", named.display());
    let answers = [
        ("diff", store.diff(&a.tree, &b.tree).map(drop).map_err(|e| e.to_string())),
        ("patch", patch(store, trees).map(drop).map_err(|e| e.to_string())),
        ("text", store.diff_text(&a.tree, &b.tree, |_| ()).map_err(|e| e.to_string())),
        ("holdings", store.holdings().map(drop).map_err(|e| e.to_string())),
        ("objects", store.objects_of(&run()).map(drop).map_err(|e| e.to_string())),
        ("prune", prune(store).map(drop).map_err(|e| e.to_string())),
    ];
    for (way, answer) in answers {
        let error = answer.expect_err(way);
        assert!(error.contains(&named), "{what}: {way}: {error}");
    }
}

/// The configuration includes a file that never ends, and asks for what would run a program.
#[test]
fn the_configuration_of_the_store_has_no_say() {
    let (bench, store, trees) = scene();
    let plain = patch(&store, &trees).unwrap();
    assert!(plain.contains("+new"), "{plain}");
    let pipe = bench.dir.path().join("pipe");
    fifo(&pipe);
    let config = store.dir().join("config");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}[include]\n\tpath = {}\n", pipe.display())).unwrap();
    std::fs::create_dir_all(store.dir().join("info")).unwrap();
    std::fs::write(store.dir().join("info/attributes"), "* -diff\n").unwrap();
    drop(store);
    let store = bench.store();
    assert_eq!(patch(&store, &trees).unwrap(), plain);
    let [a, b] = &trees;
    assert_eq!(store.diff(&a.tree, &b.tree).unwrap().len(), 1);
    store.diff_text(&a.tree, &b.tree, |_| ()).unwrap();
    assert_eq!(store.holdings().unwrap().would_prune().dropped, 0);
    assert_eq!(prune(&store).unwrap().dropped, 0);
}

/// A list of stores to borrow from is refused when the store is opened, and where it was open already.
#[test]
fn nothing_is_borrowed() {
    for list in ["objects/info/alternates", "objects/info/http-alternates"] {
        type Plant = fn(&Path);
        let plants: [(&str, Plant); 4] = [
            ("a FIFO", fifo),
            ("a file", |path| std::fs::write(path, "/elsewhere/objects\n").unwrap()),
            ("a link to nothing", |path| symlink("nothing", path).unwrap()),
            ("a folder", |path| std::fs::create_dir(path).unwrap()),
        ];
        for (what, plant) in plants {
            let (_bench, store, trees) = scene();
            let path = store.dir().join(list);
            plant(&path);
            assert_refused(&store, &trees, &path, what);
            let error = Store::open(store.dir()).unwrap_err();
            assert!(
                matches!(&error, StoreError::Strange { path: named, .. } if *named == path),
                "{what}: {error}"
            );
        }
    }
}

/// What is no file among the objects is named before git meets it.
#[test]
fn a_clean_up_waits_for_no_fifo() {
    for place in ["pack/multi-pack-index", "info/commit-graph", "12/3456", "aa"] {
        let (_bench, store, _) = scene();
        let path = store.dir().join("objects").join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        fifo(&path);
        for answer in
            [store.holdings().map(drop), prune(&store).map(drop), store.objects_of(&run()).map(drop)]
        {
            let error = answer.expect_err(place);
            assert!(
                matches!(&error, PruneError::Store(StoreError::Strange { path: named, .. }) if *named == path),
                "{place}: {error}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        prune(&store).unwrap();
        assert_eq!(git(store.dir(), &["fsck", "--full", "--no-progress"]), "");
    }
}
