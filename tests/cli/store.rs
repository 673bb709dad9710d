//! A run whose store goes bad under it: it is parked with the reason, its other artifacts are whole, nothing outside is
//! touched, and once the store is put back it goes on.

use std::path::Path;
use std::process::Command;

use triphammer_testkit::TestHome;

use crate::common::{resume, strike};

/// What an agent that works in the home itself can do to the store, and how a person mends it. `$OUT` is a folder outside.
const DAMAGE: [(&str, &str, &str); 7] = [
    (
        "led elsewhere",
        "mv runs/.store.git \"$OUT/moved\"; mkdir \"$OUT/trap\"; ln -s \"$OUT/trap\" runs/.store.git",
        "rm runs/.store.git; mv \"$OUT/moved\" runs/.store.git",
    ),
    (
        "a part led elsewhere",
        "mv runs/.store.git/objects \"$OUT/moved\"; mkdir \"$OUT/trap\"; ln -s \"$OUT/trap\" runs/.store.git/objects",
        "rm runs/.store.git/objects; mv \"$OUT/moved\" runs/.store.git/objects",
    ),
    (
        "a file",
        "mv runs/.store.git \"$OUT/moved\"; mkdir \"$OUT/trap\"; echo x > runs/.store.git",
        "rm runs/.store.git; mv \"$OUT/moved\" runs/.store.git",
    ),
    (
        "gone",
        "mv runs/.store.git \"$OUT/moved\"; mkdir \"$OUT/trap\"",
        "rm -rf runs/.store.git; mv \"$OUT/moved\" runs/.store.git",
    ),
    (
        "exchanged",
        "mv runs/.store.git \"$OUT/moved\"; mkdir \"$OUT/trap\"; git init -q --bare runs/.store.git",
        "rm -rf runs/.store.git; mv \"$OUT/moved\" runs/.store.git",
    ),
    (
        "a list to borrow from that never ends",
        "mkdir \"$OUT/trap\"; mkfifo runs/.store.git/objects/info/alternates",
        "rm runs/.store.git/objects/info/alternates",
    ),
    (
        "a ref that is none",
        "mkdir \"$OUT/trap\"; for f in runs/.store.git/refs/runs/*/*; do cp \"$f\" \"$OUT/moved\"; echo junk > \"$f\"; done",
        "for f in runs/.store.git/refs/runs/*/*; do cp \"$OUT/moved\" \"$f\"; done",
    ),
];

fn sh(home: &TestHome, out: &Path, line: &str) {
    let status =
        Command::new("sh").args(["-c", line]).current_dir(home.path()).env("OUT", out).status().unwrap();
    assert!(status.success(), "{line}");
}

#[test]
fn a_store_that_goes_bad_parks_the_run_and_spoils_nothing() {
    for (what, damage, cure) in DAMAGE {
        let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
        let out = home.beside("out");
        std::fs::create_dir(&out).unwrap();
        let agent = format!(
            "echo attempt $TRIPHAMMER_ATTEMPT; export OUT={}; test -d \"$OUT/trap\" || {{ {damage}; }}; echo x > done.txt",
            out.display()
        );
        let ran = strike(&home, &agent, &[]);
        let done = ran.done();
        assert_eq!((done["outcome"].as_str(), ran.code), (Some("suspended"), Some(5)), "{what}: {ran:?}");
        let run = home.only_run();
        let why = run.summary()["detail"].as_str().unwrap().to_owned();
        assert!(why.contains(".store.git"), "{what}: {why}");
        assert_eq!(std::fs::read_dir(out.join("trap")).unwrap().count(), 0, "{what}: written outside");
        // The journal is whole and sealed, what the agent said is there, and the workspace is as the agent left it.
        assert_eq!(run.journal().last().unwrap().event.word(), "sealed", "{what}");
        assert_eq!(run.text("attempts/001/stdout.log").lines().next(), Some("attempt 1"), "{what}");
        assert_eq!(home.read("done.txt"), "x\n");
        assert_eq!(home.run(["show", "latest"]).code, Some(0), "{what}");
        sh(&home, &out, cure);
        let ran = resume(&home, &run.id());
        assert_eq!(
            (ran.done()["outcome"].as_str(), ran.code),
            (Some("accepted"), Some(0)),
            "{what}: {ran:?}"
        );
    }
}

/// A store that cannot be used stops a run before it begins: nothing of it is left, the workspace is untouched.
#[test]
fn a_store_that_cannot_be_used_stops_a_run_before_it_begins() {
    for (damage, named) in [
        ("printf '[core]\\n\\trepositoryformatversion = 2\\n' > runs/.store.git/config", "format 2"),
        ("printf '[extensions]\\n\\tobjectFormat = sha256\\n' >> runs/.store.git/config", "objectformat"),
        ("rm runs/.store.git/HEAD", "git init --bare"),
        ("rm -r runs/.store.git; ln -s \"$OUT\" runs/.store.git", "is a link"),
        ("rm -r runs/.store.git; echo x > runs/.store.git", "is no folder"),
        ("rm -r runs/.store.git/refs; ln -s \"$OUT\" runs/.store.git/refs", "refs"),
        ("mkfifo runs/.store.git/objects/info/alternates", "borrows nothing"),
    ] {
        let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
        let out = home.beside("out");
        std::fs::create_dir(&out).unwrap();
        strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
        std::fs::remove_file(home.path().join("done.txt")).unwrap();
        sh(&home, &out, damage);
        let ran = strike(&home, "touch done.txt", &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{damage}: {ran:?}");
        assert!(ran.stderr.contains(".store.git") && ran.stderr.contains(named), "{damage}: {}", ran.stderr);
        assert_eq!(home.runs().len(), 1, "{damage}: nothing of the new run is left");
        assert!(!home.path().join("done.txt").exists());
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "{damage}: written outside");
        // What needs no trees still works, and what needs them says why it does not.
        assert_eq!(home.run(["show", "latest"]).code, Some(0), "{damage}");
        for args in [&["restore", "latest", "1", "--to", "there"][..], &["diff", "latest", "0", "1"], &["gc"]]
        {
            let ran = home.run(args);
            assert!(ran.code == Some(1) && ran.stderr.contains(".store.git"), "{damage}: {args:?}: {ran:?}");
        }
    }
}

/// What an agent writes into the store's own configuration has no say in anything that git is asked there.
#[test]
fn the_configuration_of_the_store_has_no_say() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let pipe = home.beside("pipe");
    let agent = format!(
        "mkfifo '{0}'; printf '[include]\\n\\tpath = {0}\\n' >> runs/.store.git/config; touch done.txt",
        pipe.display()
    );
    strike(&home, &agent, &[]).expect("accepted", "gates-passed", 1, 0);
    assert!(pipe.exists() && home.read("runs/.store.git/config").contains("[include]"));
    assert!(home.only_run().text("attempts/001/diff.patch").contains("done.txt"));
    for args in [
        &["diff", "latest", "0", "1"][..],
        &["diff", "latest", "0", "1", "--json"],
        &["gc", "--keep-days", "0"],
    ] {
        let ran = home.run(args);
        assert!(ran.code == Some(0) && !ran.stdout.is_empty(), "{args:?}: {ran:?}");
    }
    assert_eq!(home.runs().len(), 0);
}
