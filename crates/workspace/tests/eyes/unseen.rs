//! What cannot be looked at is neither there nor gone: nothing follows from it, and nothing is lost by it. As root nothing
//! is unreadable, so the work is done as a user without rights where the tests run as root.

use std::os::unix::fs::PermissionsExt;

use triphammer_model::{Change, Content};
use triphammer_workspace::{Eyes, LookError, Onto, apply, moved, restore};

use crate::common::{Bench, git, run};

/// Runs the test `name` of this binary again without the rights of root, and says whether it was this process that did.
fn as_nobody(name: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return false;
    }
    let binary = tempfile::tempdir().unwrap();
    let copy = binary.path().join("eyes");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    for path in [binary.path(), &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let nobody = || {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command
    };
    if !nobody().arg("true").status().is_ok_and(|status| status.success()) {
        println!("{name}: not seen here, since root cannot become another user");
        return true;
    }
    let status =
        nobody().arg(&copy).args(["--exact", name, "--nocapture"]).env("TMPDIR", "/tmp").status().unwrap();
    assert!(status.success(), "{name} as a user without rights");
    true
}

fn opened(bench: &Bench) -> Eyes {
    bench.write("d/f", "f");
    bench.write("d/e/g", "g");
    bench.write("x", "x");
    bench.eyes()
}

#[test]
fn a_closed_directory_is_not_deleted() {
    if as_nobody("unseen::a_closed_directory_is_not_deleted") {
        return;
    }
    let bench = Bench::new();
    let eyes = opened(&bench);
    let before = eyes.look(None).unwrap();
    let base = eyes.keep(&before, &run(), "0").unwrap();
    bench.chmod("d", 0);
    bench.write("x", "changed");
    let closed = eyes.look(Some(&before)).unwrap();
    let observed = moved(&before, &closed);
    let told: Vec<_> = observed.iter().map(|o| (o.path.to_string(), o.change)).collect();
    assert_eq!(told, [("x".to_owned(), Change::Changed)]);
    assert_eq!(closed.bounds().unreadable_count, 1);
    let theirs = eyes.keep(&closed, &run(), "001").unwrap();
    git(bench.store().dir(), &["fsck", "--full", "--strict"]);

    // A restore names what it cannot know, an apply leaves it alone.
    let to = bench.dir.path().join("to");
    let done = restore(&bench.store(), &theirs, &to, Onto::Fresh).unwrap();
    let named: Vec<_> = done.not_restored.iter().map(|n| n.path.to_string()).collect();
    assert_eq!((named, done.is_complete()), (vec!["d".to_owned()], false));
    let person = Bench::new();
    opened(&person);
    let report = apply(&bench.store(), &base, &theirs, &person.root(), &person.zones(), false).unwrap();
    assert_eq!(std::fs::read(person.at("d/f")).unwrap(), b"f");
    assert_eq!(report.conflicts.len(), 2);

    // Open again: what is in it now cannot be compared, and is not called the same.
    bench.chmod("d", 0o755);
    bench.write("d/new", "n");
    let open = eyes.look(Some(&closed)).unwrap();
    assert!(moved(&closed, &open).iter().all(|o| o.content == Content::Unknown && o.change == Change::Added));
    assert_eq!(moved(&before, &open).len(), 2);
}

#[test]
fn a_closed_directory_is_opened_to_be_restored() {
    if as_nobody("unseen::a_closed_directory_is_opened_to_be_restored") {
        return;
    }
    let bench = Bench::new();
    let eyes = opened(&bench);
    let before = eyes.look(None).unwrap();
    let base = eyes.keep(&before, &run(), "0").unwrap();
    bench.write("d/e/g", "changed");
    bench.chmod("d/e", 0);
    bench.chmod("d", 0);
    assert!(eyes.restore(&base, Some(&before)).unwrap().is_complete());
    assert_eq!(std::fs::read(bench.at("d/e/g")).unwrap(), b"g");
    assert!(eyes.differences(&base, None).unwrap().is_empty());
}

#[test]
fn another_folder_in_its_place_is_not_the_workspace() {
    let bench = Bench::new();
    let eyes = opened(&bench);
    let look = eyes.look(None).unwrap();
    std::fs::rename(bench.work(), bench.dir.path().join("old")).unwrap();
    std::fs::create_dir(bench.work()).unwrap();
    assert!(matches!(eyes.look(Some(&look)), Err(LookError::Replaced { .. })));
    std::fs::remove_dir(bench.work()).unwrap();
    let error = eyes.look(None).unwrap_err().to_string();
    assert!(error.contains("restore"), "{error}");
    std::fs::rename(bench.dir.path().join("old"), bench.work()).unwrap();
    assert_eq!(moved(&look, &eyes.look(Some(&look)).unwrap()), []);
}

#[test]
fn work_under_a_build_name_and_a_tag_is_work() {
    let bench = Bench::new();
    bench.write("src/s", "s");
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    std::fs::rename(bench.at("src"), bench.at("build")).unwrap();
    bench.write("build/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    bench.write("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    bench.write("target/out", "o");
    let after = eyes.look(Some(&before)).unwrap();
    let told: Vec<_> = moved(&before, &after).iter().map(|o| (o.path.to_string(), o.change)).collect();
    let expected =
        [("build/CACHEDIR.TAG", Change::Added), ("build/s", Change::Added), ("src/s", Change::Deleted)];
    assert_eq!(told, expected.map(|(path, change)| (path.to_owned(), change)));
}

#[test]
fn a_slash_at_the_end_of_a_link_is_still_a_link() {
    let bench = Bench::new();
    let eyes = opened(&bench);
    let kept = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("mine"), "m").unwrap();
    let link = bench.dir.path().join("link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    for end in ["", "/", "/.", "//"] {
        let to = std::path::PathBuf::from(format!("{}{end}", link.display()));
        assert!(restore(&bench.store(), &kept, &to, Onto::Exact(&bench.zones())).is_err(), "{end}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}
