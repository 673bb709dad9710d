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

/// A pack of one test gate that is a shell line; `more` is added to its table.
pub(crate) fn pack(name: &str, line: &str, more: &str) -> String {
    let line = serde_json::to_string(line).expect("text");
    format!("[[gate]]\nname = \"{name}\"\nkind = \"test\"\nrun = [\"sh\", \"-c\", {line}]\n{more}")
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

/// Writes a run's journal anew, each line as `altered` leaves it, with a chain that holds.
pub(crate) fn rewrite_journal(run: &RunFiles, mut altered: impl FnMut(&mut serde_json::Value)) {
    let mut head = "0".repeat(64);
    let mut all = String::new();
    for line in run.text("journal.jsonl").lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).expect("a journal line");
        altered(&mut value);
        value["prev"] = head.as_str().into();
        // As the journal itself writes it; a seal has a digest of its own.
        let mut line: JournalLine = serde_json::from_value(value).expect("a journal line");
        let is_sealed = line.sha256.take().is_some();
        let text = |line: &JournalLine| serde_json::to_string(line).expect("plain data");
        line.sha256 = is_sealed.then(|| triphammer_model::Digest::of(text(&line)));
        let text = text(&line);
        triphammer_model::Digest::of(&text).as_str().clone_into(&mut head);
        all.push_str(&text);
        all.push('\n');
    }
    std::fs::write(run.path().join("journal.jsonl"), all).expect("the journal");
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

/// A run in the background whose standard output is read line by line.
pub(crate) struct Live {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Live {
    pub(crate) fn start(mut command: std::process::Command) -> Self {
        use std::process::Stdio;
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let out = child.stdout.take().expect("a pipe");
        Self { child, lines: std::io::BufRead::lines(std::io::BufReader::new(out)) }
    }

    /// The next line; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<serde_json::Value> {
        let line = self.lines.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")))
    }

    /// Reads on until a line of that type comes.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> serde_json::Value {
        while let Some(line) = self.line() {
            if line["type"] == kind {
                return line;
            }
        }
        panic!("the run ended before `{kind}`")
    }

    /// Reads standard error until a text comes.
    #[track_caller]
    pub(crate) fn wait_for_talk(&mut self, text: &str) {
        let err = self.child.stderr.as_mut().expect("a pipe");
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = std::io::Read::read(err, &mut byte).expect("a pipe");
            assert!(read > 0, "standard error ended before `{text}`: {}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Waits for the end and returns the exit code and the last line.
    pub(crate) fn end(mut self) -> (Option<i32>, Option<serde_json::Value>) {
        let mut last = None;
        while let Some(line) = self.line() {
            last = Some(line);
        }
        let code = self.child.wait().expect("it can be waited for").code();
        let mut talk = String::new();
        let read = self.child.stderr.take().map(|mut err| std::io::Read::read_to_string(&mut err, &mut talk));
        // Shown when the test fails.
        println!("{code:?} {read:?}: {talk}");
        (code, last)
    }

    /// Kills it at once and waits for its death.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Living processes whose environment or folder shows that they belong to the home; the binary's shims among them.
pub(crate) fn left_over(home: &TestHome) -> Vec<u32> {
    let mark = home.beside("user").into_os_string().into_encoded_bytes();
    let path = home.path();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let by_home = environ.windows(mark.len()).any(|w| w == mark);
        let by_folder = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&path));
        if (by_home || by_folder) && triphammer_testkit::is_alive(pid) {
            found.push(pid);
        }
    }
    found
}

/// Waits until nothing that belongs to the home is alive.
#[track_caller]
pub(crate) fn wait_for_silence(home: &TestHome) {
    triphammer_testkit::wait_until(
        "the death of all that a run started",
        std::time::Duration::from_mins(1),
        || left_over(home).is_empty(),
    );
}
