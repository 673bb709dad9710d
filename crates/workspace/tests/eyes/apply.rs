//! Landing accepted work in a person's folder.

use std::os::unix::fs::symlink;

use triphammer_workspace::{ApplyReport, apply};

use crate::common::{Bench, plain, run};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// Runs `agent` on a copy of what `start` makes, then `person` on the original, and applies. Returns the person's
/// bench and the report of the real application.
fn land(start: impl Fn(&Bench), agent: impl Fn(&Bench), person: impl Fn(&Bench)) -> (Bench, ApplyReport) {
    let theirs = Bench::new();
    start(&theirs);
    let ours = Bench::new();
    start(&ours);
    let store = ours.store();
    let eyes = triphammer_workspace::Eyes::new(theirs.root(), theirs.zones(), store.clone());
    let base = eyes.keep(&eyes.look(None).unwrap(), &run(), "0").unwrap();
    agent(&theirs);
    let accepted = eyes.keep(&eyes.look(None).unwrap(), &run(), "001").unwrap();
    let zones = ours.zones();
    person(&ours);
    let before = plain(&ours.work());
    let dry = apply(&store, &base, &accepted, &ours.root(), &zones, true).unwrap();
    assert_eq!(plain(&ours.work()), before, "a dry run writes nothing");
    let report = apply(&store, &base, &accepted, &ours.root(), &zones, false).unwrap();
    assert_eq!(report, dry);
    (ours, report)
}

fn start(bench: &Bench) {
    for file in ["a", "b", "gone", "dir/x"] {
        bench.write(file, LINES);
    }
    bench.write("binary", b"\0\x01\x02");
    symlink("a", bench.at("link")).unwrap();
}

fn texts(paths: &[triphammer_model::WorkPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn conflicts(report: &ApplyReport) -> Vec<(String, bool)> {
    report.conflicts.iter().map(|c| (c.path.to_string(), c.marked)).collect()
}

#[test]
fn untouched_folders_become_equal() {
    let agent = |b: &Bench| {
        b.write("a", "new\n");
        b.chmod("b", 0o755);
        std::fs::remove_file(b.at("gone")).unwrap();
        std::fs::remove_file(b.at("link")).unwrap();
        symlink("b", b.at("link")).unwrap();
        std::fs::remove_dir_all(b.at("dir")).unwrap();
        b.write("dir", "a file now");
        std::fs::remove_file(b.at("binary")).unwrap();
        b.write("binary/x", "a directory now");
        b.write("deep/er/new", "n");
    };
    let (ours, report) = land(start, agent, |_| {});
    let theirs = Bench::new();
    start(&theirs);
    agent(&theirs);
    assert_eq!(plain(&ours.work()), plain(&theirs.work()));
    assert_eq!(conflicts(&report), []);
    assert_eq!(
        texts(&report.applied),
        ["a", "b", "binary", "binary/x", "deep/er/new", "dir", "dir/x", "gone", "link"]
    );
}

#[test]
fn both_sides_are_merged() {
    let (ours, report) = land(
        start,
        |b| {
            b.write("a", LINES.replace('2', "two"));
            b.write("b", LINES.replace('5', "theirs"));
            b.write("same", "same");
            b.write("added", "theirs\n");
        },
        |b| {
            b.write("a", LINES.replace('8', "eight"));
            b.chmod("a", 0o600);
            b.write("b", LINES.replace('5', "ours"));
            b.write("same", "same");
            b.write("added", "ours\n");
            b.write("mine", "mine");
        },
    );
    let read = |file: &str| std::fs::read_to_string(ours.at(file)).unwrap();
    assert_eq!(read("a"), LINES.replace('2', "two").replace('8', "eight"));
    assert_eq!(plain(&ours.work())[&b"a"[..]].0 & 0o777, 0o600);
    let marked = read("b");
    assert!(
        marked.contains("<<<<<<< yours\nours\n=======\ntheirs\n>>>>>>> accepted\n"),
        "conflicts are left as git leaves them: {marked}"
    );
    assert!(read("added").contains("<<<<<<< yours\nours\n"));
    assert_eq!(read("mine"), "mine");
    assert_eq!(conflicts(&report), [("added".to_owned(), true), ("b".to_owned(), true)]);
    assert_eq!(texts(&report.already), ["same"]);
}

#[test]
fn nothing_of_the_persons_is_overwritten() {
    let person = |b: &Bench| {
        b.write("binary", b"\0ours");
        b.write("gone", "still wanted\n");
        std::fs::remove_file(b.at("a")).unwrap();
        std::fs::remove_file(b.at("link")).unwrap();
        symlink("dir", b.at("link")).unwrap();
        b.write("new", "a file of the person's");
        b.write("taken/mine", "mine");
        std::fs::remove_file(b.at("b")).unwrap();
        b.fifo("b");
    };
    let (ours, report) = land(
        start,
        |b| {
            b.write("binary", b"\0theirs");
            std::fs::remove_file(b.at("gone")).unwrap();
            b.write("a", "changed\n");
            std::fs::remove_file(b.at("link")).unwrap();
            symlink("b", b.at("link")).unwrap();
            b.write("new/in/a/directory", "x");
            b.write("taken", "a file");
            b.write("b", "changed\n");
        },
        person,
    );
    let expected = Bench::new();
    start(&expected);
    person(&expected);
    assert_eq!(plain(&ours.work()), plain(&expected.work()));
    assert!(report.applied.is_empty());
    let paths: Vec<_> = report.conflicts.iter().map(|c| c.path.to_string()).collect();
    assert_eq!(paths, ["a", "b", "binary", "gone", "link", "new/in/a/directory", "taken"]);
    assert!(report.conflicts.iter().all(|c| !c.marked && !c.why.is_empty()));
}

#[test]
fn a_planted_link_is_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let (_ours, report) =
        land(start, |b| b.write("way/x", "x"), |b| symlink(outside.path(), b.at("way")).unwrap());
    assert_eq!(conflicts(&report), [("way/x".to_owned(), false)]);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}
