//! What the tests of this room share.

use triphammer_model::{Effect, JournalLine};
use triphammer_testkit::{Ran, RunFiles, TestHome};

/// A spec with one goal and nothing else.
pub(crate) const SPEC: &str = "---\nstatus: locked\n---\n# Goal\nMake the gates pass.\n";

/// Writes `specs/it.md`: `front` goes into the frontmatter, `body` below the goal.
pub(crate) fn spec(home: &TestHome, front: &str, body: &str) {
    home.write(
        "specs/it.md",
        &format!("---\nstatus: locked\n{front}---\n# Goal\nMake the gates pass.\n{body}"),
    );
}

/// `run --json specs/it.md --agent-cmd AGENT` and more arguments; writes a plain spec where none is there.
pub(crate) fn strike(home: &TestHome, agent: &str, more: &[&str]) -> Ran {
    if !home.path().join("specs/it.md").exists() {
        home.write("specs/it.md", SPEC);
    }
    let mut args = vec!["specs/it.md", "--agent-cmd", agent];
    args.extend(more);
    home.forge(args)
}

/// `resume --json` of a run.
pub(crate) fn resume(home: &TestHome, run: &str) -> Ran {
    home.run(["resume", run, "--json"])
}

/// A Rust crate in the home whose only test fails.
pub(crate) fn failing_crate(home: &TestHome) {
    home.write("Cargo.toml", "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    home.write("src/lib.rs", "pub fn sum(a: i32, b: i32) -> i32 {\n    a - b\n}\n");
    home.write("tests/sum.rs", "#[test]\nfn adds() {\n    assert_eq!(sum::sum(2, 2), 4);\n}\n");
}

/// The effects of a journal, in order.
pub(crate) fn effects(lines: &[JournalLine]) -> Vec<Effect> {
    lines.iter().flat_map(|l| l.effects.clone()).collect()
}

/// How often the breaker was held.
pub(crate) fn holds(run: &RunFiles) -> usize {
    effects(&run.journal()).iter().filter(|e| matches!(e, Effect::Hold { .. })).count()
}

/// The words of a journal's events, in order.
pub(crate) fn words(run: &RunFiles) -> Vec<&'static str> {
    run.journal().iter().map(|l| l.event.word()).collect()
}

/// The rules of an attempt's failing findings.
pub(crate) fn failing_rules(run: &RunFiles, attempt: u32) -> Vec<String> {
    let report = run.report(attempt);
    let findings = report.verdicts.iter().flat_map(|v| v.findings().iter());
    findings.filter(|f| f.fails()).map(|f| f.rule.clone()).collect()
}

/// Runs git in a folder with nobody's configuration and returns what it prints.
#[track_caller]
pub(crate) fn git(dir: &std::path::Path, args: &[&str]) -> String {
    let out = std::process::Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "t")
        .env("GIT_AUTHOR_EMAIL", "t@localhost")
        .env("GIT_COMMITTER_NAME", "t")
        .env("GIT_COMMITTER_EMAIL", "t@localhost")
        .output()
        .expect("git starts");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}
