//! Where else work is: what stands at its path, now or in what git keeps, and what does not.

use std::path::Path;

use triphammer_workspace::{Deed, Kept, Store};

use crate::common::{Bench, chmod, git, run};

fn keep(bench: &Bench, name: &str) -> Kept {
    let eyes = bench.eyes();
    eyes.keep(&eyes.look(None).unwrap(), &run(), name).unwrap()
}

/// What is not found in the workspace, a line each.
#[track_caller]
fn missing(store: &Store, folder: &Path, work: &[Deed]) -> Vec<String> {
    store.not_found_in(folder, work.to_vec()).unwrap().iter().map(ToString::to_string).collect()
}

/// A workspace and what was done to it.
struct Scene {
    bench: Bench,
    store: Store,
    start: Kept,
    work: Vec<Deed>,
}

impl Scene {
    /// Files `a` to `e`, and the work: what `act` does.
    fn of(act: impl Fn(&Bench)) -> Self {
        let bench = Bench::new();
        for name in ["a", "b", "deep/c", "new\nline", "-d", ":(top)e"] {
            bench.write(name, format!("content of {name}\n"));
        }
        let start = keep(&bench, "0");
        act(&bench);
        let store = bench.store();
        let work = store.deeds(&[&start], &keep(&bench, "001")).unwrap();
        Self { bench, store, start, work }
    }

    fn missing(&self) -> Vec<String> {
        missing(&self.store, &self.bench.work(), &self.work)
    }

    /// Puts the start back.
    fn revert(&self) {
        for entry in std::fs::read_dir(self.bench.work()).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if entry.file_name() == ".git" => {}
                true => std::fs::remove_dir_all(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        for entry in self.store.list(&self.start.tree).unwrap() {
            self.bench.write(entry.path.as_bytes(), self.store.blob(&entry.id).unwrap());
        }
    }

    fn commit(&self, what: &str) {
        self.bench.git(&["add", "-A"]);
        self.bench.git(&["commit", "-q", "-m", what]);
    }
}

fn swap(bench: &Bench) {
    let odd = bench.at("new\nline");
    std::fs::rename(bench.at("a"), bench.at("t")).unwrap();
    std::fs::rename(&odd, bench.at("a")).unwrap();
    std::fs::rename(bench.at("t"), &odd).unwrap();
    bench.chmod("-d", 0o755);
    bench.chmod("deep/c", 0o755);
    std::fs::remove_file(bench.at("b")).unwrap();
    std::os::unix::fs::symlink("a", bench.at("link")).unwrap();
    bench.write(":(top)e", "content of b\n");
}

const ALL: [&str; 7] = ["`-d`", "`:(top)e`", "`a`", "`b` (deleted)", "`deep/c`", "`link`", "`new\nline`"];

#[test]
fn each_path_counts_where_it_stands() {
    let scene = Scene::of(swap);
    let named: Vec<String> = scene.work.iter().map(ToString::to_string).collect();
    assert_eq!(named, ALL);
    assert_eq!(scene.missing(), [""; 0]);
    scene.revert();
    assert_eq!(scene.missing(), ALL);
    // In a part, and with what looks alike in the way.
    std::fs::remove_file(scene.bench.at("b")).unwrap();
    std::fs::create_dir(scene.bench.at("b")).unwrap();
    scene.bench.write("link", "a");
    scene.bench.chmod("-d", 0o700);
    assert_eq!(scene.missing(), ["`:(top)e`", "`a`", "`deep/c`", "`link`", "`new\nline`"]);
    std::fs::remove_dir(scene.bench.at("b")).unwrap();
    std::os::unix::fs::symlink("a", scene.bench.at("b")).unwrap();
    assert!(scene.missing().contains(&"`b` (deleted)".to_owned()), "a link is there");
    std::fs::remove_dir_all(scene.bench.at("deep")).unwrap();
    std::os::unix::fs::symlink(scene.bench.dir.path(), scene.bench.at("deep")).unwrap();
    std::fs::write(scene.bench.dir.path().join("c"), "content of deep/c\n").unwrap();
    chmod(&scene.bench.dir.path().join("c"), 0o755);
    assert!(scene.missing().contains(&"`deep/c`".to_owned()), "no link is followed");
}

#[test]
fn git_counts_at_the_same_path_only() {
    for below in [false, true] {
        let scene = Scene::of(swap);
        let top = if below { scene.bench.dir.path().to_owned() } else { scene.bench.work() };
        git(&top, &["init", "-q"]);
        scene.revert();
        if below {
            std::fs::write(top.join(".gitignore"), "runs/\n").unwrap();
            std::fs::write(top.join("a"), "content of new\nline\n").unwrap();
        }
        scene.commit("start");
        assert_eq!(scene.missing(), ALL, "each content is there, at another path");
        swap(&scene.bench);
        scene.bench.git(&["add", "-A"]);
        scene.revert();
        std::fs::remove_file(scene.bench.at("b")).unwrap();
        assert_eq!(scene.missing(), [""; 0], "the index knows it");
        scene.commit("what is in between");
        assert_eq!(scene.missing().len(), 6, "now it knows nothing");
        scene.bench.write("b", "content of b\n");
        scene.commit("start again");
        assert_eq!(scene.missing(), ALL);
        // On a branch that is merged so that nothing of it is left.
        scene.bench.git(&["checkout", "-q", "-b", "side"]);
        swap(&scene.bench);
        scene.commit("work");
        scene.bench.git(&["checkout", "-q", "main"]);
        scene.bench.git(&["merge", "-q", "--no-edit", "-s", "ours", "side"]);
        scene.bench.git(&["branch", "-q", "-D", "side"]);
        assert_eq!(scene.missing(), ["`b` (deleted)"], "what is gone has to be gone from the folder");
    }
}

/// A merge that has what neither side had.
#[test]
fn work_that_only_a_merge_holds_is_known() {
    let scene = Scene::of(swap);
    scene.bench.git(&["init", "-q"]);
    scene.revert();
    scene.commit("start");
    scene.bench.git(&["checkout", "-q", "-b", "side"]);
    scene.bench.git(&["commit", "-q", "--allow-empty", "-m", "side"]);
    scene.bench.git(&["checkout", "-q", "main"]);
    scene.bench.git(&["commit", "-q", "--allow-empty", "-m", "main"]);
    scene.bench.git(&["merge", "-q", "--no-commit", "-s", "ours", "side"]);
    swap(&scene.bench);
    scene.commit("merge");
    scene.revert();
    scene.commit("start again");
    assert_eq!(scene.missing(), ["`b` (deleted)"]);
}

/// More paths than a command line takes.
#[test]
fn many_paths_are_asked_for_at_once() {
    let long = "x".repeat(200);
    let scene =
        Scene::of(|bench| (0..12_000).for_each(|n| bench.write(format!("{long}/{n}"), format!("{n}"))));
    scene.bench.git(&["init", "-q"]);
    scene.commit("work");
    scene.revert();
    scene.bench.git(&["rm", "-q", "-r", "--cached", &long]);
    scene.commit("start again");
    assert!(scene.work.len() == 12_000 && scene.missing().is_empty());
    scene.bench.git(&["checkout", "-q", "--orphan", "other"]);
    scene.commit("start without a past");
    scene.bench.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(scene.missing().len(), 12_000, "a reflog knows it still, and drops it one day");
}

/// Edits that overwrote an edit: only what neither side has.
#[test]
fn of_several_bases_none_may_have_it() {
    let scene = Scene::of(|bench| {
        bench.write("a", "changed\n");
        std::fs::remove_file(bench.at("b")).unwrap();
    });
    let other = keep(&scene.bench, "end");
    scene.bench.write("a", "content of a\n");
    scene.bench.write("more", "more\n");
    std::fs::remove_file(scene.bench.at("deep/c")).unwrap();
    let edits = scene.store.deeds(&[&scene.start, &other], &keep(&scene.bench, "edits")).unwrap();
    let named: Vec<String> = edits.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["`deep/c` (deleted)", "`more`"]);
}
