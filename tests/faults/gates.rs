//! Gates: pass, fail and error are three things, and what judges the work is not the agent's to change.

use std::os::unix::fs::PermissionsExt as _;

use triphammer_model::report::VerdictWord;

use crate::fake::{Fake, assert_verdict, verdict};

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
