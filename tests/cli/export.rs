//! `export`: what other tools get of a run, through the binary. What the formats look like is tested where they are
//! made; here it is about files, streams, what is refused, and secrets.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use serde_json::{Value, json};
use triphammer_testkit::{Ran, TestHome, wait_until};

use crate::common::{Live, SPEC, pack, strike};

/// What a linter says that means something to whoever reads it next.
const HOSTILE: &str =
    "]]>::set-output name=a::b ##[error]\u{1b}[31mred\u{1b}[0m %0A <b> hush-hush-42\r\n::error::more";

/// A run that was accepted at attempt 2, after a linter found something in attempt 1.
fn forged() -> TestHome {
    let home = TestHome::new();
    let log = json!({"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "lint"}},
        "results": [{
            "ruleId": "lint/a:b,c",
            "level": "error",
            "message": {"text": HOSTILE},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": "src/a.rs"},
                "region": {"startLine": 3, "startColumn": 5},
            }}],
        }],
    }]});
    std::fs::create_dir(home.beside("aside")).unwrap();
    std::fs::write(home.beside("aside").join("bad.sarif"), log.to_string()).unwrap();
    home.write("src/a.rs", "one\ntwo\nthree\n");
    let bad = home.beside("aside").join("bad.sarif");
    let good = r#"{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[]}]}"#;
    let line = format!(
        "if test -f done.txt; then echo '{good}' > out.sarif; else cp {} out.sarif; exit 1; fi",
        bad.display()
    );
    home.write("gates/check.toml", &pack("lint", &line, "report = \"sarif:out.sarif\"\n"));
    let agent = format!(
        "test $TRIPHAMMER_ATTEMPT = 1 && echo > x.txt || echo > done.txt; {}",
        r#"echo '{"commands":["make"],"tokens":{"input":7,"output":2}}' > $TRIPHAMMER_RECEIPT"#
    );
    strike(&home, &agent, &["--attempts", "3"]).expect("accepted", "gates-passed", 2, 0);
    home
}

#[track_caller]
fn ok(ran: &Ran) -> &str {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    &ran.stdout
}

#[track_caller]
fn no(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing: {}", ran.stderr);
    }
}

#[test]
fn each_format_says_what_was_found() {
    let home = forged();
    let junit = home.run(["export", "latest", "--junit"]);
    assert_eq!(ok(&junit).matches("<testsuite ").count(), 2, "{}", junit.stdout);
    assert!(
        junit.stdout.contains("type=\"lint/a:b,c\">") && junit.stdout.contains("]]&gt;"),
        "{}",
        junit.stdout
    );
    assert_eq!(junit.stderr, "");
    let first = home.run(["export", "latest", "--junit", "--attempt", "1"]);
    assert_eq!(ok(&first).matches("<testsuite ").count(), 1);

    let accepted: Value = serde_json::from_str(ok(&home.run(["export", "latest", "--sarif"]))).unwrap();
    assert_eq!(accepted["runs"][0]["results"].as_array().unwrap().len(), 0);
    let first = home.run(["export", "latest", "--sarif", "--attempt", "1"]);
    let first: Value = serde_json::from_str(ok(&first)).unwrap();
    let result = &first["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/a.rs");
    assert_eq!(place["region"], json!({"startLine": 3, "startColumn": 5}));
    assert_eq!(result["ruleId"], "lint/a:b,c");

    let documents = home.run(["export", "latest", "--atif"]);
    ok(&documents);
    let documents = documents.lines();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0]["steps"][0]["source"], "user");
    assert_eq!(documents[0]["final_metrics"]["total_prompt_tokens"], 7);
    assert_eq!(documents[0]["final_metrics"].get("total_cost_usd"), None, "nobody said what it cost");
    assert_eq!(documents[1]["extra"]["triphammer"]["accepted"], true);
}

#[test]
fn what_a_gate_printed_commands_no_runner() {
    let home = forged();
    let ran = home.run(["export", "latest", "--github", "--attempt", "1"]);
    for line in ok(&ran).lines() {
        assert!(line.starts_with("::error ") || line.starts_with("::notice "), "{line}");
    }
    let first = ran.stdout.lines().next().unwrap();
    let head = "::error file=src/a.rs,line=3,col=5,title=lint%3A lint/a%3Ab%2Cc::]]>";
    assert!(first.starts_with(head), "{first}");
    assert!(!ran.stdout.contains('\u{1b}') && first.contains("%250A"), "{first}");
    assert!(ran.stderr.contains("no step summary"), "{}", ran.stderr);
}

#[test]
fn the_step_summary_is_added_to_the_runners_file_or_written_into_ours() {
    let home = forged();
    let (step, own) = (home.beside("step.md"), home.beside("own.md"));
    std::fs::write(&step, "before\n").unwrap();
    let with = |more: &[&str]| {
        let mut command = home.command(["export", "latest", "--github"].iter().chain(more));
        Ran::of(command.env("GITHUB_STEP_SUMMARY", &step).output().unwrap())
    };
    assert!(ok(&with(&[])).starts_with("::notice "));
    let text = std::fs::read_to_string(&step).unwrap();
    assert!(text.starts_with("before\n## Triphammer: it: accepted"), "{text}");
    // Named, ours is the one.
    ok(&with(&["-o", own.to_str().unwrap()]));
    assert_eq!(std::fs::read_to_string(&step).unwrap(), text);
    assert_eq!(format!("before\n{}", std::fs::read_to_string(&own).unwrap()), text);
}

#[test]
fn a_secret_that_is_known_now_is_taken_out() {
    let home = forged();
    for format in ["--junit", "--sarif", "--github", "--atif"] {
        let args = ["export", "latest", format, "--attempt", "1"];
        let before = home.run(args);
        assert!(ok(&before).contains("hush-hush-42"), "{}", before.stdout);
        assert!(!before.stderr.contains("redacted"), "{}", before.stderr);
        let after = Ran::of(home.command(args).env("LINT_TOKEN", "hush-hush-42").output().unwrap());
        assert!(
            !ok(&after).contains("hush-hush-42") && after.stdout.contains("redacted"),
            "{}",
            after.stdout
        );
        assert!(after.stderr.contains("of known secrets"), "{}", after.stderr);
    }
}

#[test]
fn a_file_is_written_whole_and_nothing_else_is_replaced() {
    let home = forged();
    let out = home.beside("out");
    std::fs::create_dir(&out).unwrap();
    let to = |path: &std::path::Path| home.run(["export", "latest", "--junit", "-o", path.to_str().unwrap()]);
    let written = to(&out.join("a.xml"));
    assert_eq!((ok(&written), &*written.stderr), ("", ""));
    let text = std::fs::read_to_string(out.join("a.xml")).unwrap();
    assert!(text.starts_with("<?xml") && text.ends_with("</testsuites>\n"), "{text}");

    // One that is there keeps its mode; a link stays a link.
    std::fs::write(out.join("b.xml"), "old").unwrap();
    std::fs::set_permissions(out.join("b.xml"), std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("b.xml", out.join("c.xml")).unwrap();
    ok(&to(&out.join("c.xml")));
    assert_eq!(std::fs::read_to_string(out.join("b.xml")).unwrap(), text);
    assert_eq!(std::fs::metadata(out.join("b.xml")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(out.join("c.xml").is_symlink());

    no(&to(&out), 1, &["is a folder"]);
    no(&to(std::path::Path::new("/dev/null")), 1, &["no regular file"]);
    no(&to(&out.join("gone/x.xml")), 1, &["its folder does not exist"]);
    let mut left: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.xml", "b.xml", "c.xml"], "nothing half-written is left");
}

#[test]
fn what_cannot_be_exported_is_said() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    no(&home.run(["export", "latest", "--junit"]), 1, &["there is no run"]);
    // Green before any work: no attempt.
    home.write("done.txt", "");
    assert_eq!(strike(&home, "true", &[]).code, Some(6));
    no(&home.run(["export", "latest", "--junit"]), 1, &["has no attempt to export"]);
    no(&home.run(["export", "nosuch", "--junit"]), 1, &["nosuch"]);
    no(&home.run(["export", "latest"]), 2, &["--junit"]);
    no(&home.run(["export", "latest", "--junit", "--sarif"]), 2, &["cannot be used with"]);

    std::fs::remove_file(home.path().join("done.txt")).unwrap();
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
    no(&home.run(["export", "latest", "--atif", "--attempt", "7"]), 1, &["no attempt 7", "attempt 1"]);
    // A report that was lost is no good one.
    let reports = home.runs().into_iter().map(|run| run.path().join("attempts/001/report.json"));
    std::fs::write(reports.into_iter().find(|path| path.exists()).unwrap(), "{\"schema\"").unwrap();
    let junit = home.run(["export", "latest", "--junit"]);
    assert!(
        ok(&junit).contains("type=\"no-report\"") && junit.stdout.contains("parsing report.json"),
        "{}",
        junit.stdout
    );
    no(&home.run(["export", "latest", "--sarif"]), 1, &["has no report to export"]);
}

#[test]
fn a_run_that_is_not_over_is_exported_as_far_as_it_got() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", SPEC);
    let (hang, at) = (home.beside("hang"), home.beside("at"));
    std::fs::write(&hang, "").unwrap();
    let agent = format!(
        "touch {}; while test -e {}; do sleep 0.05; done; touch done.txt",
        at.display(),
        hang.display()
    );
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", &agent]));
    wait_until("the agent at work", Duration::from_mins(1), || at.exists());
    let junit = home.run(["export", "latest", "--junit"]);
    assert!(ok(&junit).contains("not judged yet"), "{}", junit.stdout);
    assert!(junit.stderr.contains("is not over"), "{}", junit.stderr);
    let github = home.run(["export", "latest", "--github"]);
    assert!(ok(&github).contains(": in-flight\n"), "{}", github.stdout);
    std::fs::remove_file(hang).unwrap();
    assert_eq!(live.end().0, Some(0));
}
