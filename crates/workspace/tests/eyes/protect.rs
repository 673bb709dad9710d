//! Protected files are compared and put back, whatever was planted in their place.

use std::os::unix::fs::symlink;

use triphammer_model::{Change, WorkPath};
use triphammer_workspace::{Checked, ProtectError, Protected};

use crate::common::{Bench, plain, run};

fn bench() -> Bench {
    let bench = Bench::new();
    for file in ["tests/a.rs", "tests/deep/b.rs", "src/lib.rs", "Cargo.lock", "gates/rust.toml"] {
        bench.write(file, file);
    }
    bench.write("tests/run.sh", "#!/bin/sh\n");
    bench.chmod("tests/run.sh", 0o750);
    symlink("a.rs", bench.at("tests/link")).unwrap();
    bench
}

fn globs() -> Vec<String> {
    vec!["tests/**".to_owned(), "*.lock".to_owned()]
}

fn extra() -> Vec<WorkPath> {
    vec![WorkPath::from("gates")]
}

#[test]
fn everything_that_is_done_to_them_is_undone() {
    type Act = fn(&Bench);
    type Seen = &'static [(&'static str, &'static str)];
    let table: &[(&str, Act, Seen)] = &[
        ("emptied", |b| b.write("tests/a.rs", ""), &[("tests/a.rs", "changed")]),
        ("deleted", |b| std::fs::remove_file(b.at("Cargo.lock")).unwrap(), &[("Cargo.lock", "deleted")]),
        ("mode", |b| b.chmod("tests/run.sh", 0o640), &[("tests/run.sh", "mode changed")]),
        (
            "retargeted",
            |b| {
                std::fs::remove_file(b.at("tests/link")).unwrap();
                symlink("run.sh", b.at("tests/link")).unwrap();
            },
            &[("tests/link", "changed")],
        ),
        (
            "replaced by a link to outside",
            |b| {
                std::fs::remove_file(b.at("tests/a.rs")).unwrap();
                symlink(b.dir.path().join("outside/x"), b.at("tests/a.rs")).unwrap();
            },
            &[("tests/a.rs", "replaced by a link")],
        ),
        (
            "replaced by a directory",
            |b| {
                std::fs::remove_file(b.at("tests/a.rs")).unwrap();
                b.write("tests/a.rs/node_modules/x", "x");
                symlink(b.dir.path().join("outside"), b.at("tests/a.rs/out")).unwrap();
            },
            &[("tests/a.rs", "replaced by a directory")],
        ),
        (
            "replaced by a FIFO",
            |b| {
                std::fs::remove_file(b.at("tests/a.rs")).unwrap();
                b.fifo("tests/a.rs");
            },
            &[("tests/a.rs", "replaced by a special file")],
        ),
        (
            "their folder replaced by a link to outside",
            |b| {
                std::fs::remove_dir_all(b.at("tests")).unwrap();
                symlink(b.dir.path().join("outside"), b.at("tests")).unwrap();
            },
            &[
                ("tests/a.rs", "deleted"),
                ("tests/deep/b.rs", "deleted"),
                ("tests/link", "deleted"),
                ("tests/run.sh", "deleted"),
            ],
        ),
        (
            "their folder replaced by a file",
            |b| {
                std::fs::remove_dir_all(b.at("gates")).unwrap();
                b.write("gates", "x");
            },
            &[("gates/rust.toml", "deleted")],
        ),
        (
            "hidden",
            |b| std::fs::rename(b.at("tests/deep"), b.at("tests/.deep")).unwrap(),
            &[("tests/deep/b.rs", "deleted")],
        ),
        ("touched", |b| b.write("tests/a.rs", "tests/a.rs"), &[]),
        ("other files", |b| b.write("src/lib.rs", "new"), &[]),
    ];
    for (what, act, expected) in table {
        let bench = bench();
        let outside = bench.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("x"), "outside").unwrap();
        let eyes = bench.eyes();
        let before = eyes.look(None).unwrap();
        let kept = eyes.keep(&before, &run(), "0").unwrap();
        let protected = Protected::take(&before, &globs(), &extra()).unwrap();
        assert_eq!(protected, Protected::from_tree(&bench.store(), &kept, &globs(), &extra()).unwrap());
        let protected: Protected = serde_json::from_str(&serde_json::to_string(&protected).unwrap()).unwrap();
        assert_eq!(protected.paths().count(), 6);
        let mut truth = plain(&bench.work());

        act(&bench);
        let after = eyes.look(Some(&before)).unwrap();
        let checked = protected.check(&after).unwrap();
        let seen: Vec<_> = checked.offences.iter().map(|o| (o.path.to_string(), o.what)).collect();
        let expected: Vec<_> = expected.iter().map(|(p, w)| ((*p).to_owned(), *w)).collect();
        assert_eq!(seen, expected, "{what}");
        assert_eq!(protected.restore(&eyes, &checked.offences).unwrap(), [], "{what}");
        let restored = eyes.look(Some(&after)).unwrap();
        assert_eq!(protected.check(&restored).unwrap().offences, [], "{what}");
        let mut now = plain(&bench.work());
        for map in [&mut truth, &mut now] {
            map.retain(|path, (mode, _)| {
                *mode & 0o170_000 != 0o040_000 && path != b"src/lib.rs" && !path.starts_with(b"tests/.deep")
            });
        }
        assert_eq!(now, truth, "{what}");
        assert_eq!(plain(&outside).len(), 1, "{what}");
    }
}

#[test]
fn additions_are_reported_and_stay() {
    let bench = bench();
    let eyes = bench.eyes();
    let before = eyes.look(None).unwrap();
    let protected = Protected::take(&before, &globs(), &[]).unwrap();
    bench.write("tests/new.rs", "new");
    bench.write("sub/other.lock", "new");
    let checked = protected.check(&eyes.look(Some(&before)).unwrap()).unwrap();
    let additions = vec![WorkPath::from("sub/other.lock"), WorkPath::from("tests/new.rs")];
    assert_eq!(checked, Checked { offences: Vec::new(), additions });
}

#[test]
fn what_is_not_in_the_store_is_named() {
    let bench = bench();
    let eyes = bench.eyes().with_limit(4);
    let before = eyes.look(None).unwrap();
    let protected = Protected::take(&before, &globs(), &[]).unwrap();
    bench.write("Cargo.lock", "weakened!!");
    let checked = protected.check(&eyes.look(Some(&before)).unwrap()).unwrap();
    assert_eq!((checked.offences.len(), checked.offences[0].change), (1, Change::Changed));
    let failed = protected.restore(&eyes, &checked.offences).unwrap();
    assert_eq!(failed[0].0.to_string(), "Cargo.lock");
    let error = Protected::take(&before, &["[".to_owned()], &[]).unwrap_err();
    assert!(matches!(error, ProtectError::Glob { .. }) && error.to_string().contains("`[`"));
}
