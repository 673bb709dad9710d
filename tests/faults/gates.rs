//! Gates: pass, fail and error are three things, and what judges the work is not the agent's to change.

use std::os::unix::fs::PermissionsExt as _;

use triphammer_model::report::VerdictWord;
use triphammer_model::{Event, Report};
use triphammer_testkit::RunFiles;

use crate::fake::{Fake, agent_ends, assert_verdict, touched, verdict};

/// A pack of gates with all their keys.
fn pack(gates: &[(&str, &str, &str)]) -> String {
    let tables: Vec<String> = gates
        .iter()
        .map(|(name, run, keys)| {
            format!("[[gate]]\nname = \"{name}\"\nkind = \"test\"\nrun = {run}\n{keys}\n")
        })
        .collect();
    tables.concat()
}

/// `run` of a gate that is a shell line.
fn sh(line: &str) -> String {
    serde_json::to_string(&["sh", "-c", line]).unwrap()
}

#[test]
fn a_missing_tool_is_named_before_anybody_is_launched() {
    for run in [
        r#"["no-such-tool", "--check"]"#,
        r#"["sh", "-c", "no-such-tool --check"]"#,
        r#"["env", "A=1", "no-such-tool"]"#,
        r#"["/usr/lib/no-such-tool"]"#,
    ] {
        let fake = Fake::new(&[]).agent("fa", "", "touch work.txt");
        fake.home.write("gates/check.toml", &pack(&[("lint", run, "")]));
        let ran = fake.forge([""; 0]);
        ran.expect("failed", "gate-tool-missing", 0, 5);
        assert_eq!(fake.launches("fa"), 0, "{run}: nobody repairs code that no gate has judged");
        let plain = fake.home.run(["run", "specs/work.md", "--agent", "fa"]);
        assert_eq!(plain.code, Some(5), "{run}");
        for wanted in ["lint", "no-such-tool"] {
            assert!(plain.stderr.contains(wanted), "{run}: no {wanted} in {}", plain.stderr);
        }
    }
}

/// A spec's check with a tool that is not there is the same thing.
#[test]
fn a_missing_tool_of_a_check_is_named_too() {
    let fake = Fake::new(&[]).agent("fa", "", "touch work.txt");
    fake.spec("", "## Checks\n- lint: no-such-tool --check\n");
    fake.forge([""; 0]).expect("failed", "gate-tool-missing", 0, 5);
    assert_eq!(fake.launches("fa"), 0);
}

/// A tool that was there at the start and goes away: the gates err, nobody is blamed, the run is parked.
#[test]
fn a_tool_that_vanishes_parks_the_run() {
    let fake = Fake::new(&[]).agent("fa", "", "rm -f \"$BESIDE/bin/checker\"; echo x >> work.txt");
    fake.home.write("gates/check.toml", &pack(&[("lint", r#"["checker"]"#, "")]));
    let checker = fake.beside("bin/checker");
    std::fs::create_dir(fake.beside("bin")).unwrap();
    let install = || {
        std::fs::write(&checker, "#!/bin/sh\ntest -f work.txt\n").unwrap();
        std::fs::set_permissions(&checker, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    install();
    let path = format!("{}:{}", fake.beside("bin").display(), std::env::var("PATH").unwrap());
    let mut command = fake.forge_command([""; 0]);
    command.env("PATH", &path);
    let ran = triphammer_testkit::Ran::of(command.output().unwrap());
    ran.expect("suspended", "gate-error", 2, 5);
    let run = fake.run();
    for attempt in [1, 2] {
        assert_verdict(&run.report(attempt), "lint", VerdictWord::Error, "env/tool-missing");
    }
    // The agent is not asked to mend what it did not break.
    assert!(!run.brief(2).contains("install `checker`"), "{}", run.brief(2));
    // With the tool back, the work that is there is judged as it is, without another attempt.
    install();
    let mut command = fake.home.command(["resume", "latest", "--json"]);
    command.env("PATH", &path);
    triphammer_testkit::Ran::of(command.output().unwrap()).expect("accepted", "gates-passed", 2, 0);
    assert_eq!(fake.launches("fa"), 2);
}

/// 127 and 126 are exit codes like others when the tool is there.
#[test]
fn an_exit_code_of_127_alone_is_a_failure() {
    for code in [126, 127] {
        let fake = Fake::new(&[("works", &format!("test -f work.txt || exit {code}"))]).agent(
            "fa",
            "",
            "test $TRIPHAMMER_ATTEMPT = 2 && touch work.txt; echo x >> other.txt",
        );
        fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
        assert_verdict(&fake.run().report(1), "works", VerdictWord::Fail, "gate/exit-nonzero");
    }
}

/// With `provision` the agent is asked for the tool, and its lack is then its finding.
#[test]
fn a_tool_that_the_agent_is_asked_for_is_a_finding() {
    let fake = Fake::new(&[]).agent(
        "fa",
        "",
        "test $TRIPHAMMER_ATTEMPT = 1 && { echo x > work.txt; exit; }
         mkdir -p .local/bin; printf '#!/bin/sh\\ntest -f work.txt\\n' > .local/bin/checker; chmod +x .local/bin/checker",
    );
    fake.home.write("gates/check.toml", &pack(&[("lint", r#"["checker"]"#, "provision = true")]));
    fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
    let run = fake.run();
    assert_verdict(&run.report(1), "lint", VerdictWord::Fail, "env/tool-missing");
    assert!(run.brief(2).contains("checker") && run.brief(2).contains(".local/bin"), "{}", run.brief(2));
}

const LIBTEST_NONE: &str = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
const LIBTEST_IGNORED: &str = "running 2 tests\ntest a ... ignored\ntest b ... ignored\n\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
const LIBTEST_FAILED: &str = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... FAILED\n\nfailures:\n    b\n    c\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
const LIBTEST_TORN: &str = "running 3 tests\ntest a ... ok\n";
const LIBTEST_GOOD: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

/// Every reader, with exit code 0 throughout: no tests, only skipped ones, failed ones, half a report and none at all.
#[test]
fn exit_0_is_not_green_without_the_counts() {
    let (fail, error) = (VerdictWord::Fail, VerdictWord::Error);
    let cases: &[(&str, &str, &str, VerdictWord, &str)] = &[
        ("libtest-none", "libtest", LIBTEST_NONE, fail, "test/none-collected"),
        ("libtest-skipped", "libtest", LIBTEST_IGNORED, fail, "test/none-collected"),
        ("libtest-failed", "libtest", LIBTEST_FAILED, fail, ""),
        ("libtest-torn", "libtest", LIBTEST_TORN, fail, "test/incomplete"),
        ("libtest-words", "libtest", "All 12 tests passed.\nOK\n", error, "gate/no-report"),
        ("libtest-silent", "libtest", "", error, "gate/no-report"),
        ("pytest-none", "pytest", "===== no tests ran in 0.01s =====\n", fail, "test/none-collected"),
        ("pytest-skipped", "pytest", "===== 5 skipped in 0.02s =====\n", fail, "test/none-collected"),
        ("pytest-failed", "pytest", "===== 2 failed, 3 passed in 0.02s =====\n", fail, "test/failed"),
        ("pytest-words", "pytest", "0 passed\n", error, "gate/no-report"),
        ("tap-none", "tap", "TAP version 13\n1..0 # SKIP nothing here\n", fail, "test/none-collected"),
        (
            "tap-skipped",
            "tap",
            "1..2\nok 1 - a # SKIP later\nok 2 - b # SKIP later\n",
            fail,
            "test/none-collected",
        ),
        ("tap-failed", "tap", "1..2\nok 1 - a\nnot ok 2 - b\n", fail, ""),
        ("tap-torn", "tap", "1..5\nok 1 - a\n", fail, "test/incomplete"),
        ("tap-words", "tap", "5 passed, 0 failed\n", error, "gate/no-report"),
        (
            "go-none",
            "go-json",
            "{\"Action\":\"start\",\"Package\":\"p\"}\n{\"Action\":\"output\",\"Package\":\"p\",\"Output\":\"testing: warning: no tests to run\\n\"}\n{\"Action\":\"pass\",\"Package\":\"p\",\"Elapsed\":0.1}\n",
            fail,
            "test/none-collected",
        ),
        (
            "go-failed",
            "go-json",
            "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"TestA\",\"Elapsed\":0}\n{\"Action\":\"fail\",\"Package\":\"p\",\"Elapsed\":0}\n",
            fail,
            "",
        ),
        ("go-words", "go-json", "ok  \tp\t0.1s\n", error, "gate/no-report"),
        ("junit-none", "junit:out.xml", "<testsuites></testsuites>", fail, "test/none-collected"),
        (
            "junit-skipped",
            "junit:out.xml",
            "<testsuite tests=\"1\"><testcase name=\"a\"><skipped/></testcase></testsuite>",
            fail,
            "test/none-collected",
        ),
        (
            "junit-failed",
            "junit:out.xml",
            "<testsuite tests=\"2\"><testcase name=\"a\"/><testcase name=\"b\"><failure message=\"no\"/></testcase></testsuite>",
            fail,
            "",
        ),
        (
            "junit-torn",
            "junit:out.xml",
            "<testsuite tests=\"2\"><testcase name=\"a\"/>",
            error,
            "gate/no-report",
        ),
        // The agent writes out.xml itself; the gate writes none.
        ("junit-planted", "junit:out.xml", "", error, "gate/no-report"),
    ];
    let fake = Fake::with_run(&[], "policy = \"collect-all\"").agent(
        "fa",
        "",
        "echo x >> work.txt; echo '<testsuite tests=\"1\"><testcase name=\"a\"/></testsuite>' > out.xml",
    );
    let mut text = String::new();
    for (name, report, output, _, _) in cases {
        let file = fake.beside(name);
        std::fs::write(&file, output).unwrap();
        let into = match report.strip_prefix("junit:") {
            Some(_) if output.is_empty() => String::new(),
            Some(path) => format!(" > {path}"),
            None => String::new(),
        };
        let line = format!("cat '{}'{into}; exit 0", file.display());
        text += &pack(&[(name, &sh(&line), &format!("report = \"{report}\""))]);
    }
    std::fs::write(fake.beside("good"), LIBTEST_GOOD).unwrap();
    let good = sh(&format!("cat '{}'", fake.beside("good").display()));
    text += &pack(&[
        ("good", &good, "report = \"libtest\""),
        ("too-few", &good, "report = \"libtest\"\nmin_tests = 2"),
        (
            "bad-exit",
            &sh(&format!("cat '{}'; exit 1", fake.beside("good").display())),
            "report = \"libtest\"",
        ),
    ]);
    fake.home.write("gates/check.toml", &text);
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let report = fake.run().report(1);
    for (name, _, _, word, rule) in cases {
        assert_verdict(&report, name, *word, rule);
    }
    assert_verdict(&report, "good", VerdictWord::Pass, "");
    assert_eq!(verdict(&report, "good").counts.map(|c| c.passed), Some(1));
    assert_verdict(&report, "too-few", VerdictWord::Fail, "test/too-few");
    assert_verdict(&report, "bad-exit", VerdictWord::Fail, "gate/exit-nonzero");
}

/// Gates that would wait for ever: for input, for time, in watch mode, for a child that holds their output.
#[test]
fn a_gate_that_hangs_is_ended_and_fails() {
    let fake = Fake::with_run(&[], "policy = \"collect-all\"").agent("fa", "", "touch work.txt");
    let deadline = "timeout = \"1s\"";
    // The mark is made anew, so that each run of the gate waits for its own child.
    let child = "rm -f \"$BESIDE/mark\"; (setsid sh -c 'echo $$ >> \"$BESIDE/pids\"; touch \"$BESIDE/mark\"; exec sleep 9999' &)
        until test -f \"$BESIDE/mark\"; do sleep 0.02; done";
    fake.home.write(
        "gates/check.toml",
        &pack(&[
            ("reads", r#"["cat"]"#, deadline),
            ("asks", &sh("printf 'Overwrite? [y/N] '; read answer || exit 3"), deadline),
            ("watches", &sh("test \"$CI\" = 1 || exec sleep 9999"), "timeout = \"60s\""),
            ("sleeps", r#"["sleep", "9999"]"#, deadline),
            ("deaf", &sh("trap '' TERM; echo $$ >> \"$BESIDE/pids\"; while :; do sleep 1; done"), deadline),
            ("leaves-children", &sh(child), "timeout = \"60s\""),
            ("loops", &sh("while :; do :; done"), deadline),
        ]),
    );
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let report = fake.run().report(1);
    for (gate, word, rule) in [
        ("reads", VerdictWord::Pass, ""),
        ("asks", VerdictWord::Fail, "gate/exit-nonzero"),
        ("watches", VerdictWord::Pass, ""),
        ("sleeps", VerdictWord::Fail, "gate/timeout"),
        ("deaf", VerdictWord::Fail, "gate/timeout"),
        ("leaves-children", VerdictWord::Pass, ""),
        ("loops", VerdictWord::Fail, "gate/timeout"),
    ] {
        assert_verdict(&report, gate, word, rule);
    }
    assert!(fake.pids("pids").len() >= 4, "preflight and attempt");
    fake.assert_dead("pids");
}

/// Killed gates fail too, whoever killed them.
#[test]
fn a_gate_that_dies_of_a_signal_fails() {
    let fake = Fake::new(&[("works", "kill -9 $$")]).agent("fa", "", "touch work.txt");
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    assert_verdict(&fake.run().report(1), "works", VerdictWord::Fail, "gate/killed");
}

/// The gate of the next tests lives in the workspace, as tests do.
fn guarded() -> Fake {
    let fake = Fake::new(&[("tests", "sh tests/check.sh")]);
    fake.home.write("tests/check.sh", "test -f work.txt\n");
    fake.home.write("tests/deep/more.sh", "true\n");
    fake.spec("protect: [\"tests/**\"]\nattempts: 4\n", "");
    fake
}

/// Attacks on what judges the work: each is undone and named, and honest work afterwards is accepted.
const ATTACKS: &[(&str, &str, &str)] = &[
    ("emptied", ": > tests/check.sh", "tests/check.sh"),
    ("rewritten", "echo true > tests/check.sh", "tests/check.sh"),
    (
        "same size, old time",
        "printf 'true             \\n' > .t; touch -r tests/check.sh .t; mv .t tests/check.sh",
        "tests/check.sh",
    ),
    ("deleted", "rm tests/check.sh", "tests/check.sh"),
    ("folder deleted", "rm -r tests", "tests/check.sh"),
    ("a link in its place", "ln -sf /bin/true tests/check.sh", "tests/check.sh"),
    ("a link for the folder", "mv tests t2; ln -s t2 tests; : > t2/check.sh", "tests/check.sh"),
    ("moved away", "mkdir -p x; mv tests x/; mkdir tests; echo true > tests/check.sh", "tests/check.sh"),
    ("a folder in its place", "rm tests/check.sh; mkdir tests/check.sh", "tests/check.sh"),
    ("a fifo in its place", "rm tests/check.sh; mkfifo tests/check.sh", "tests/check.sh"),
    ("unreadable", "chmod 000 tests/check.sh", "tests/check.sh"),
    (
        "the pack",
        "sed -i 's/tests.check.sh/x/; s/\"sh\", \"-c\", .*/\"true\"]/' gates/check.toml",
        "gates/check.toml",
    ),
    ("the pack deleted", "rm -r gates", "gates/check.toml"),
    ("the configuration", "echo '# mine' >> triphammer.toml", "triphammer.toml"),
    ("the configuration deleted", "rm triphammer.toml", "triphammer.toml"),
];

#[test]
fn what_judges_the_work_is_put_back_and_the_attack_is_named() {
    for (what, attack, path) in ATTACKS {
        let fake = guarded().agent(
            "fa",
            "",
            &format!("if test $TRIPHAMMER_ATTEMPT = 1; then {attack}\nelse touch work.txt; fi"),
        );
        let before = fake.home.read(path);
        let ran = fake.forge([""; 0]);
        assert_eq!(ran.code, Some(0), "{what}: {}\n{}", ran.stdout, ran.stderr);
        ran.expect("accepted", "gates-passed", 2, 0);
        let run = fake.run();
        assert_verdict(&run.report(1), "integrity", VerdictWord::Fail, "integrity/protected");
        assert_verdict(&run.report(2), "integrity", VerdictWord::Pass, "");
        assert!(touched(&run, 1).iter().any(|p| p == path), "{what}: {:?}", touched(&run, 1));
        assert!(run.brief(2).contains(path), "{what}: the brief names it");
        assert_eq!(fake.home.read(path), before, "{what}: put back byte for byte");
    }
}

#[test]
fn a_second_attack_after_it_was_named_ends_the_run() {
    for (what, attack) in
        [("test", ": > tests/check.sh"), ("pack", ": > gates/check.toml"), ("folder", "rm -rf tests")]
    {
        // Even when the work itself would be fine by then, it is not accepted from an agent that goes on like this.
        let fake = guarded().agent("fa", "", attack);
        let before = (fake.home.read("tests/check.sh"), fake.home.read("gates/check.toml"));
        fake.forge([""; 0]).expect("rejected", "tampered", 2, 1);
        assert_eq!((fake.home.read("tests/check.sh"), fake.home.read("gates/check.toml")), before, "{what}");
    }
}

/// An attack does not pass together with the work that it is to cover up.
#[test]
fn an_attack_with_work_is_not_accepted() {
    let fake =
        guarded().agent("fa", "", "touch work.txt; test $TRIPHAMMER_ATTEMPT = 1 && : > tests/check.sh; true");
    fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
    assert!(!fake.run().report(1).ok);
}

/// New files where files are protected are told, not held against anybody.
#[test]
fn new_tests_are_welcome() {
    let fake = guarded().agent("fa", "", "touch work.txt; echo true > tests/new.sh");
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    assert_verdict(&fake.run().report(1), "integrity", VerdictWord::Pass, "integrity/added");
}

/// What a run is judged by is pinned in its own folder; an agent that reaches it ends the run.
#[test]
fn pins_that_were_altered_end_the_run() {
    for (what, attack) in [
        ("spec", "sed -i 's/Do the work/Do nothing/' runs/*/pinned/spec.md"),
        ("pack", "echo > \"$(echo runs/*/pinned/gates/check.toml)\""),
        ("policy", "sed -i 's/attempts = .*/attempts = 50/' runs/*/pinned/policy.toml"),
        ("one deleted", "rm runs/*/pinned/spec.md"),
        ("all deleted", "rm -r runs/*/pinned"),
    ] {
        let fake =
            Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", &format!("{attack}; touch work.txt"));
        let ran = fake.forge([""; 0]);
        ran.expect("rejected", "tampered", 1, 1);
        let named = fake
            .run()
            .journal()
            .iter()
            .any(|l| matches!(&l.event, Event::PinsBroken { pins } if !pins.is_empty()));
        assert!(named, "{what}");
    }
}

/// Ways to spoil the run's own record.
const SPOILED: [(&str, &str); 5] = [
    ("cut", ": > \"$(echo runs/*/journal.jsonl)\""),
    ("appended to", "echo '{}' >> \"$(echo runs/*/journal.jsonl)\""),
    ("edited", "sed -i 's/looked/cooked/' runs/*/journal.jsonl"),
    ("deleted", "rm runs/*/journal.jsonl"),
    ("a folder", "j=$(echo runs/*/journal.jsonl); rm $j; mkdir -p $j/x"),
];

/// A journal that was altered while the run went on is put back, and the run ends on it.
#[test]
fn a_journal_that_the_agent_alters_is_put_back_and_ends_the_run() {
    for (what, attack) in SPOILED {
        let fake =
            Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", &format!("{attack}; touch work.txt"));
        fake.forge([""; 0]).expect("rejected", "tampered", 1, 1);
        let journal = fake.run().journal();
        let named = journal
            .iter()
            .any(|l| matches!(&l.event, Event::PinsBroken { pins } if pins == &["journal.jsonl"]));
        assert!(named, "{what}");
        assert!(matches!(journal[0].event, Event::Started(_)), "{what}: nothing of it is lost");
    }
}

/// Gates run the agent's code: what they alter is no better.
#[test]
fn what_gates_alter_ends_the_run_too() {
    let pins = ("pins", "echo >> \"$(echo runs/*/pinned/spec.md)\"");
    for (what, attack) in SPOILED.into_iter().chain([pins]) {
        let fake = Fake::new(&[("works", "sh ./check.sh")]).agent(
            "fa",
            "",
            &format!("cat > check.sh <<'CHECK'\n{attack}\nexit 0\nCHECK"),
        );
        fake.home.write("check.sh", "exit 1\n");
        fake.forge([""; 0]).expect("rejected", "tampered", 1, 1);
        assert!(fake.run().journal().iter().any(|l| matches!(l.event, Event::PinsBroken { .. })), "{what}");
    }
}

const TESTS: &str = "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n\n#[test]\nfn subtracts() {\n    assert_eq!(2 - 1, 1);\n}\n";

/// Tests that no glob protects: fewer, emptied and ignored ones are findings all the same.
#[test]
fn weakened_tests_are_findings() {
    let edit = |from: &str, to: &str| format!("sed -i 's/{from}/{to}/' tests/sums.rs");
    for (what, attack, rule) in [
        ("file deleted", "rm tests/sums.rs".to_owned(), "integrity/tests-removed"),
        ("file emptied", ": > tests/sums.rs".to_owned(), "integrity/tests-removed"),
        ("one removed", "sed -i '6,9d' tests/sums.rs".to_owned(), "integrity/tests-removed"),
        ("commented out", "sed -i '6,9s,^,// ,' tests/sums.rs".to_owned(), "integrity/tests-removed"),
        ("body emptied", "sed -i '/2 - 1/d' tests/sums.rs".to_owned(), "integrity/tests-emptied"),
        ("assertion removed", edit("assert_eq!(2 - 1, 1);", "let _ = 2 - 1;"), "integrity/tests-emptied"),
        ("ignored", "sed -i '6a #[ignore]' tests/sums.rs".to_owned(), "integrity/tests-ignored"),
    ] {
        let fake =
            Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", &format!("touch work.txt; {attack}"));
        fake.home.write("tests/sums.rs", TESTS);
        let ran = fake.forge(["--attempts", "1"]);
        ran.expect("rejected", "attempts-exhausted", 1, 1);
        let report: Report = fake.run().report(1);
        assert_verdict(&report, "integrity", VerdictWord::Fail, rule);
        assert_verdict(&report, "works", VerdictWord::Skip, "");
        let _ = what;
    }
    // Where the spec allows it, it is a note.
    let fake =
        Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", "touch work.txt; rm tests/sums.rs");
    fake.home.write("tests/sums.rs", TESTS);
    fake.spec("allow: [tests-removed]\n", "");
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    assert_verdict(&fake.run().report(1), "integrity", VerdictWord::Pass, "integrity/tests-removed");
}

/// A tool of the same name that comes first on the path judges nothing.
#[test]
fn a_planted_tool_is_a_finding() {
    let fake = Fake::new(&[("works", "grep -q right work.txt")]).agent(
        "fa",
        "",
        "mkdir -p .local/bin; printf '#!/bin/sh\\nexit 0\\n' > .local/bin/grep; chmod +x .local/bin/grep; touch work.txt",
    );
    fake.home.write("other.txt", "");
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let run: RunFiles = fake.run();
    assert_verdict(&run.report(1), "integrity", VerdictWord::Fail, "integrity/shadowed-tool");
    assert_eq!(agent_ends(&run).len(), 1);
}

/// Packs, spec and settings outside of the workspace are within an agent's reach too: what was pinned judges.
#[test]
fn packs_beside_the_workspace_judge_as_they_were_at_the_start() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        "echo x >> other.txt
         printf '[[gate]]\\nname = \"works\"\\nkind = \"test\"\\nrun = [\"true\"]\\n' > ../gates/check.toml
         sed -i 's/^- right: .*/- right: true/' ../specs/work.md
         echo '[run]' > ../triphammer.toml",
    );
    fake.home.write("code/other.txt", "x\n");
    fake.spec("workspace: code\nattempts: 3\n", "## Checks\n- right: test -f right.txt\n");
    fake.forge([""; 0]).expect("rejected", "attempts-exhausted", 3, 1);
    let report = fake.run().report(3);
    assert_verdict(&report, "works", VerdictWord::Fail, "gate/exit-nonzero");
    assert_verdict(&report, "accept-right", VerdictWord::Fail, "gate/exit-nonzero");
}

/// A pack that appears in the midst of a run judges nothing and excuses nothing.
#[test]
fn packs_that_an_agent_adds_are_not_asked() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        "echo x >> other.txt; printf '[[gate]]\\nname = \"mine\"\\nkind = \"test\"\\nrun = [\"true\"]\\n' > gates/mine.toml",
    );
    fake.forge(["--attempts", "2"]).expect("rejected", "attempts-exhausted", 2, 1);
    assert!(fake.run().report(2).verdicts.iter().all(|v| v.gate.as_str() != "mine"));
}
