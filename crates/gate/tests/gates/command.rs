//! Command gates: the exit status and the report decide together.

use triphammer_model::process::WaitStatus;
use triphammer_model::report::VerdictWord;

use crate::bench::{Bench, Real, Scripted, gate, shown, word};

/// What a gate comes to.
fn tried(bench: &Bench, script: &str, more: &str) -> String {
    shown(&bench.judge(&Real, &gate("g", "test", script, more)))
}

#[test]
fn without_a_report_the_exit_code_decides() {
    let bench = Bench::new();
    bench.put("src/a.c", "x\n");
    for (script, want) in [
        ("true", "g: pass\n"),
        ("echo 0 passed; echo error:", "g: pass\n"),
        ("exit 3", "g: fail\n  error gate/exit-nonzero: `g` exited with code 3\n"),
        (
            "echo src/a.c:4:2: error: no; echo took 3ms >&2; exit 1",
            "g: fail\n  error g/error: error: no @ src/a.c:4:2\n  error gate/exit-nonzero: `g` exited with code 1\n",
        ),
        ("kill -9 $$", "g: fail\n  error gate/killed: `g` was killed by signal 9\n"),
        ("test \"$CI\" = 1", "g: pass\n"),
        ("cat", "g: pass\n"),
    ] {
        assert_eq!(tried(&bench, script, ""), want, "{script}");
    }
}

#[test]
fn output_goes_to_the_detail_and_the_log() {
    let bench = Bench::new();
    let report = bench.judge(&Real, &gate("g", "test", "printf '\\033[31mred\\n'; seq 1 5000; exit 1", ""));
    let detail = report.verdicts[0].findings()[0].detail.clone().unwrap();
    assert!(
        detail.starts_with('[') && detail.ends_with("5000") && detail.chars().count() < 2_100,
        "{detail}"
    );
    assert!(bench.log("g.log").starts_with("\u{1b}[31mred\n1\n2\n"));
}

#[test]
fn reports_and_exit_codes_must_agree() {
    let bench = Bench::new();
    let ok = "echo 1..1; echo ok 1";
    for (script, more, want) in [
        (ok, "", "g: pass 1/0/0\n"),
        ("echo 1..0", "", "g: fail 0/0/0\n  error test/none-collected: `g` found no test to execute\n"),
        ("echo 1..0", "min_tests = 0", "g: pass 0/0/0\n"),
        (
            "echo 1..2; echo 'ok 1 # SKIP'; echo 'ok 2 # SKIP'",
            "",
            "g: fail 0/0/2\n  error test/none-collected: `g` executed no test: all 2 are skipped\n",
        ),
        (
            ok,
            "min_tests = 2",
            "g: fail 1/0/0\n  error test/too-few: `g` executed 1 tests and at least 2 are required\n",
        ),
        ("echo 1..1; echo not ok 1 - two", "", "g: fail 0/1/0\n  error test/failed: two failed\n"),
        (
            "echo 1..2; echo ok 1",
            "",
            "g: fail 1/0/0\n  error test/incomplete: `g`: not every test has a result: 2 tests were planned and 1 reported\n",
        ),
        (
            "echo all 7 tests passed",
            "",
            "g: error\n  error gate/no-report: `g` exited with code 0 without the tap report that it promised\n",
        ),
        ("echo boom; exit 2", "", "g: fail\n  error gate/exit-nonzero: `g` exited with code 2\n"),
        (
            "echo 1..1; echo ok 1; exit 2",
            "",
            "g: fail 1/0/0\n  error gate/exit-nonzero: `g` exited with code 2\n",
        ),
        // The other stream does not get between the lines of the report.
        ("echo 1..1; printf 'ok ' ; echo noise >&2; echo '1 - a'", "", "g: pass 1/0/0\n"),
    ] {
        assert_eq!(tried(&bench, script, &format!("report = \"tap\"\n{more}")), want, "{script} {more}");
    }
}

#[test]
fn report_files_are_cleared_and_never_followed() {
    let bench = Bench::new();
    let junit = "report = \"junit:out/r.xml\"";
    let fine = "<testsuite><testcase name='a'/></testsuite>";
    let none = "g: error\n  error gate/no-report: `g` exited with code 0 without the junit:out/r.xml report that it promised\n";
    bench.put("out/r.xml", fine);
    assert_eq!(tried(&bench, "true", junit), none, "an old report does not speak");
    assert_eq!(tried(&bench, &format!("echo \"{fine}\" > out/r.xml"), junit), "g: pass 1/0/0\n");
    std::fs::write(bench.ws().parent().unwrap().join("outside.xml"), fine).unwrap();
    assert_eq!(tried(&bench, "rm -f out/r.xml; ln -s ../../outside.xml out/r.xml", junit), none);
    assert_eq!(tried(&bench, "rm -f out/r.xml; mkfifo out/r.xml", junit), none);
    assert_eq!(tried(&bench, "rm -f out/r.xml; truncate -s 100G out/r.xml", junit), none);
    assert_eq!(tried(&bench, "echo '<html/>' > out/r.xml", junit), none);
    std::fs::remove_file(bench.ws().join("out/r.xml")).unwrap();
    std::fs::create_dir(bench.ws().join("out/r.xml")).unwrap();
    assert_eq!(
        tried(&bench, "true", junit),
        "g: fail\n  error gate/report-blocked: `g`: out/r.xml cannot be cleared before the gate runs\n"
    );
    assert!(bench.ws().parent().unwrap().join("outside.xml").exists());
}

#[test]
fn a_report_that_was_cut_is_none() {
    let mut bench = Bench::new();
    bench.log_cap = 20;
    let got = tried(&bench, "echo 1..1; echo ok 1 - and a long tail", "report = \"tap\"");
    assert!(got.starts_with("g: error\n  error gate/no-report"), "{got}");
}

#[test]
fn a_missing_tool_is_no_failing_gate() {
    let bench = Bench::new();
    let argv = |argv: &str, more: &str| {
        let text = format!("[[gate]]\nname = \"g\"\nkind = \"build\"\nrun = [{argv}]\n{more}\n");
        shown(&bench.judge(&Real, &text))
    };
    let gone = "g: error\n  error env/tool-missing: `g` needs `no-such-tool`, which is not found\n";
    assert_eq!(argv("\"no-such-tool\", \"--check\"", ""), gone);
    assert_eq!(argv("\"env\", \"A=1\", \"no-such-tool\"", ""), gone);
    assert_eq!(argv("\"sh\", \"-c\", \"no-such-tool --check\"", ""), gone);
    assert_eq!(argv("\"no-such-tool\"", "provision = true"), gone.replace("g: error", "g: fail"));
    // A tool that is there and says 127 says it of something else.
    assert!(
        argv("\"sh\", \"-c\", \"true && no-such-tool\"", "")
            .starts_with("g: fail\n  error gate/exit-nonzero")
    );
    assert!(argv("\"sh\", \"-c\", \"exit 127\"", "").starts_with("g: fail\n  error gate/exit-nonzero"));
    assert_eq!(
        argv("\"true\"", "dir = \"gone\""),
        "g: fail\n  error gate/dir-missing: `g` runs in gone, which is no folder in the workspace\n"
    );
    bench.put("plain", "no program");
    assert!(argv("\"./plain\"", "").starts_with("g: error\n  error env/tool-missing"));
}

#[test]
fn ends_that_are_no_exits() {
    let bench = Bench::new();
    for (wait, want) in [
        (
            WaitStatus::TimedOut { code: None, signal: Some(9) },
            "g: fail\n  error gate/timeout: `g` ran past its deadline of 5m and was ended\n",
        ),
        (
            WaitStatus::Unknown,
            "g: error\n  error gate/end-unknown: `g`: how it ended was not seen, so nothing is known\n",
        ),
        (
            WaitStatus::NotStarted { errno: Some(7) },
            "g: error\n  error env/not-started: `g` could not be started: Argument list too long (os error 7)\n",
        ),
    ] {
        let supervisor = Scripted::new(move |_, _, _| wait);
        assert_eq!(shown(&bench.judge(&supervisor, &gate("g", "test", "true", ""))), want);
    }
}

#[test]
fn a_failure_is_confirmed() {
    let bench = Bench::new();
    let run = |codes: &'static [i32], confirm: u32| {
        let supervisor = Scripted::new(move |launch, call, _| {
            std::fs::write(&launch.stdout, format!("run {call}\n")).unwrap();
            WaitStatus::Exited { code: codes[call - 1] }
        });
        let report = bench.judge(&supervisor, &gate("g", "test", "x", &format!("confirm = {confirm}")));
        (shown(&report), supervisor.calls())
    };
    let fails = |code: i32, flaky: &str| {
        format!("g: fail{flaky}\n  error gate/exit-nonzero: `g` exited with code {code}\n")
    };
    assert_eq!(run(&[0], 2), ("g: pass\n".to_owned(), 1));
    assert_eq!(run(&[1, 1, 1], 2), (fails(1, ""), 3));
    assert_eq!(run(&[1, 2, 1], 2), (fails(1, " flaky"), 3));
    assert_eq!(
        run(&[1, 0, 1], 2),
        ("g: pass flaky\n  warning gate/flaky: `g` failed and then passed without a change\n".to_owned(), 2)
    );
    assert_eq!(bench.log("g.run2.log"), "run 2\n");
}

#[test]
fn linters_enumerate_and_their_exit_code_is_explained() {
    let bench = Bench::new();
    bench.put("a.py", "x\n");
    let result = |level: &str| {
        format!(
            r#"{{"runs":[{{"results":[{{"ruleId":"F1","level":"{level}","message":{{"text":"m"}},
               "locations":[{{"physicalLocation":{{"artifactLocation":{{"uri":"a.py"}},"region":{{"startLine":1}}}}}}]}}]}}]}}"#
        )
    };
    let lint = |level: &str, code: u8| {
        bench.put("saved.json", &result(level));
        let script = format!("cp saved.json r.sarif; exit {code}");
        shown(&bench.judge(&Real, &gate("g", "static", &script, "report = \"sarif:r.sarif\"")))
    };
    assert_eq!(lint("error", 1), "g: fail\n  error F1: m @ a.py:1\n");
    assert_eq!(lint("error", 0), "g: fail\n  error F1: m @ a.py:1\n");
    assert_eq!(lint("warning", 0), "g: pass\n  warning F1: m @ a.py:1\n");
    assert!(lint("warning", 1).contains("error gate/exit-nonzero: `g` exited with code 1"));
}

#[test]
fn identical_failures_have_one_identity() {
    let bench = Bench::new();
    let libtest = |thread: u32, took: &str, left: u32| {
        format!(
            "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' ({thread}) panicked at src/lib.rs:1:1:\nassertion failed\n  left: {left}\n\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in {took}s\n"
        )
    };
    let identity = |text: String| {
        let supervisor = Scripted::new(move |launch, _, _| {
            std::fs::write(&launch.stdout, &text).unwrap();
            WaitStatus::Exited { code: 101 }
        });
        let report = bench.judge(&supervisor, &gate("g", "test", "x", "report = \"libtest\""));
        assert_eq!(word(&report), VerdictWord::Fail);
        report.identity
    };
    assert_eq!(identity(libtest(1, "0.01", 2)), identity(libtest(77, "3.20", 2)));
    assert_ne!(identity(libtest(1, "0.01", 2)), identity(libtest(1, "0.01", 3)));
}

/// The real thing, where cargo is: a crate that does not build, then fails, then passes.
#[test]
fn cargo_by_the_shipped_pack() {
    let bench = Bench::new();
    let names = vec!["rust".to_owned()];
    let texts = triphammer_gate::collect(Some(&names), &bench.ws().join("none")).unwrap();
    let packs = triphammer_gate::Packs::parse(&texts, Some(&names)).unwrap();
    let judge = |lib: &str| {
        bench.put("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        bench.put("src/lib.rs", lib);
        let supervisor = CargoHome;
        let known = triphammer_gate::Known::default();
        let policy = triphammer_gate::PipelinePolicy::Staged;
        shown(&bench.pipeline(&supervisor, packs.gates(), policy, &known).unwrap().0)
    };
    assert_eq!(
        judge("pub fn f() -> u8 { x }\n"),
        "rust-build: fail\n  error rust-build/error: error[E0425]: cannot find value `x` in this scope @ src/lib.rs:1:20\n  error gate/exit-nonzero: `rust-build` exited with code 101\nrust-test: skip by rust-build\n"
    );
    assert_eq!(
        judge("pub fn f() -> u8 { 1 }\n"),
        "rust-build: pass\nrust-test: fail 0/0/0\n  error test/none-collected: `rust-test` found no test to execute\n"
    );
    assert_eq!(
        judge("pub fn f() -> u8 { 1 }\n#[test]\nfn two() { assert_eq!(f(), 2) }\n"),
        "rust-build: pass\nrust-test: fail 0/1/0\n  error test/failed: two: assertion `left == right` failed; left: 1; right: 2 @ src/lib.rs:3:12\n"
    );
    assert_eq!(
        judge("pub fn f() -> u8 { 2 }\n#[test]\nfn two() { assert_eq!(f(), 2) }\n#[test]\nfn quits() { std::process::exit(0) }\n")
            .lines()
            .nth(1)
            .map(|l| l.split(' ').take(2).collect::<Vec<_>>().join(" ")),
        Some("rust-test: fail".to_owned())
    );
    assert_eq!(
        judge("pub fn f() -> u8 { 2 }\n#[test]\nfn two() { assert_eq!(f(), 2) }\n"),
        "rust-build: pass\nrust-test: pass 1/0/0\n"
    );
}

/// Runs commands with what cargo needs from the environment.
struct CargoHome;

impl triphammer_model::Supervisor for CargoHome {
    fn run_heard(
        &self,
        launch: &triphammer_model::Launch,
        cancel: &triphammer_model::Cancel,
        ear: triphammer_model::process::Ear<'_>,
    ) -> Result<triphammer_model::Ended, triphammer_model::process::LaunchError> {
        let mut launch = launch.clone();
        for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                launch.env.push((name.into(), value));
            }
        }
        Real.run_heard(&launch, cancel, ear)
    }
}

/// A gate that floods its log must neither hang nor be believed.
#[test]
fn hostile_logs_are_bounded() {
    let mut bench = Bench::new();
    bench.log_cap = 64 << 20;
    bench.put("a.c", "x\n");
    let flood = |report: &str, text: String| {
        let supervisor = Scripted::new(move |launch, _, _| {
            std::fs::write(&launch.stdout, &text).unwrap();
            WaitStatus::Exited { code: 1 }
        });
        bench.judge(&supervisor, &gate("g", "test", "x", report))
    };
    let many = |line: &dyn Fn(u32) -> String| (0..300_000).map(line).collect::<Vec<_>>().join("\n");
    let report = flood(
        "report = \"libtest\"",
        format!("running 300000 tests\n{}", many(&|n| format!("test t{n} ... FAILED"))),
    );
    let findings = report.verdicts[0].findings();
    assert_eq!(findings.len(), 1_002);
    assert_eq!(findings[1_000].message, "9000 more failing tests are not listed");
    assert_eq!(findings[1_001].rule, "test/incomplete");
    let report = flood("", many(&|n| format!("a.c:{n}: error: e{n}")));
    let findings = report.verdicts[0].findings();
    assert_eq!(findings.len(), 11);
    let detail = findings[10].detail.as_deref().unwrap();
    assert!(
        detail.contains("more places in the workspace") && detail.contains("first 2097152 of"),
        "{detail}"
    );
}
