//! What scripts rely on: the lines of `run --json`, the journal, the run directory, the trees.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use triphammer_model::{Digest, Event, RunSummary};
use triphammer_testkit::{RunFiles, TestHome};

use crate::common::{SPEC, git, resume, spec, strike};

fn forged() -> (TestHome, triphammer_testkit::Ran) {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = "echo $TRIPHAMMER_ATTEMPT > work.txt; [ $TRIPHAMMER_ATTEMPT = 1 ] || touch done.txt";
    let ran = strike(&home, agent, &[]);
    ran.expect("accepted", "gates-passed", 2, 0);
    (home, ran)
}

#[test]
fn json_begins_with_launch_and_ends_with_done() {
    let (home, ran) = forged();
    let run = home.only_run();
    let lines = ran.lines();
    let dir = run.path().display().to_string();
    assert_eq!(lines[0], json!({"type": "launch", "schema": 1, "run": run.id(), "dir": dir}));
    let summary = run.summary();
    assert_eq!(
        lines[lines.len() - 1],
        json!({"type": "done", "run": run.id(), "outcome": "accepted", "reason": "gates-passed", "attempts": 2,
               "accepted_attempt": 2, "tree": summary["tree"], "exit_code": 0})
    );
    assert_eq!(lines.iter().filter(|l| l["type"] == "launch").count(), 1);
    assert_eq!(lines.iter().filter(|l| l["type"] == "done").count(), 1);
    assert!(lines.iter().all(|l| l["type"].is_string()));
    // Every journal line but the seal is printed as an event, in order, with its effects.
    let printed: Vec<(u64, Value, Value)> = lines
        .iter()
        .filter_map(|l| Some((l["seq"].as_u64()?, l["event"].clone(), l["effects"].clone())))
        .collect();
    let journal: Vec<(u64, Value, Value)> = run
        .journal()
        .iter()
        .filter(|l| !matches!(l.event, Event::Sealed { .. }))
        .map(|l| (l.seq, json!(l.event), json!(l.effects)))
        .collect();
    assert_eq!(printed, journal);
}

#[test]
fn done_of_a_run_that_is_not_accepted_has_nulls() {
    let home = TestHome::with_gates(&[("never", "false")]);
    let done = strike(&home, "true", &["--attempts", "1"]).done();
    let run = home.only_run().id();
    assert_eq!(
        done,
        json!({"type": "done", "run": run, "outcome": "rejected", "reason": "attempts-exhausted", "attempts": 1,
               "accepted_attempt": null, "tree": null, "exit_code": 1})
    );
}

#[test]
fn without_json_stdout_is_one_line_of_data_and_stderr_is_talk() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", SPEC);
    let ran = home.run(["run", "specs/it.md", "--agent-cmd", "touch done.txt"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, format!("{} accepted gates-passed\n", home.only_run().id()));
    let plan = ran.stderr.lines().find(|l| l.contains("plan:"));
    assert!(
        plan.is_some_and(|p| p.contains("in place") && p.contains("done") && p.contains("5 attempts")),
        "{}",
        ran.stderr
    );
}

/// Checks the chain by hand, apart from the reader in the product.
fn chain(run: &RunFiles) -> Vec<Value> {
    let text = run.text("journal.jsonl");
    assert!(text.ends_with('\n'));
    let mut prev = "0".repeat(64);
    let mut lines = Vec::new();
    for (number, raw) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(raw).unwrap();
        assert_eq!(line["schema"], 1);
        assert_eq!(line["seq"], number);
        assert_eq!(line["prev"], prev.as_str(), "line {number}");
        prev = Digest::of(raw.as_bytes()).to_string();
        if line["event"]["type"] == "sealed" {
            let own = line["sha256"].as_str().unwrap();
            let without = raw.replace(&format!(",\"sha256\":\"{own}\""), "");
            assert_ne!(without, raw);
            assert_eq!(Digest::of(without.as_bytes()).as_str(), own, "line {number}");
        } else {
            assert!(line.get("sha256").is_none());
        }
        lines.push(line);
    }
    lines
}

fn files_below(dir: &Path, prefix: &str, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files_below(&entry.path(), &format!("{name}/"), into);
        } else {
            into.insert(name, Digest::of(std::fs::read(entry.path()).unwrap()).as_str().to_owned());
        }
    }
}

/// Checks that the last line seals every artifact.
fn sealed(run: &RunFiles) {
    let lines = chain(run);
    let last = &lines[lines.len() - 1];
    assert_eq!(last["event"]["type"], "sealed");
    let listed: BTreeMap<String, String> = last["event"]["artifacts"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, digest)| (path.clone(), digest.as_str().unwrap().to_owned()))
        .collect();
    let mut there = BTreeMap::new();
    files_below(run.path(), "", &mut there);
    there.remove("journal.jsonl");
    there.remove("run.json");
    assert_eq!(listed, there);
    for path in
        ["pinned/spec.md", "pinned/policy.toml", "pinned/environment.json", "pinned/lessons.json", "start.fp"]
    {
        assert!(listed.contains_key(path), "{path} is missing");
    }
}

#[test]
fn the_journal_is_chained_and_its_seal_lists_every_artifact() {
    let (home, _) = forged();
    let run = home.only_run();
    sealed(&run);
    for attempt in ["001", "002"] {
        for file in [
            "brief.md",
            "stdout.log",
            "stderr.log",
            "receipt.json",
            "before.fp",
            "movement.json",
            "report.json",
            "diff.patch",
        ] {
            assert!(run.path().join("attempts").join(attempt).join(file).is_file(), "{attempt}/{file}");
        }
    }
    assert!(!run.path().join("live").exists(), "what only lives while a process works is gone");
}

#[test]
fn every_end_is_sealed() {
    // Suspended, resumed, interrupted again by its cost, over: each time all of it is sealed.
    let home = TestHome::with_gates(&[("never", "false")]);
    spec(&home, "attempts: 2\nmax_cost: 1.00\n", "");
    strike(&home, "echo $TRIPHAMMER_ATTEMPT > work.txt", &[]).expect("suspended", "cost-unknown", 1, 5);
    sealed(&home.only_run());
    resume(&home, "latest").expect("rejected", "attempts-exhausted", 2, 1);
    sealed(&home.only_run());
    let seals = home.only_run().journal().iter().filter(|l| matches!(l.event, Event::Sealed { .. })).count();
    assert_eq!(seals, 2);

    for (gate, code) in [("true", 6), ("no-such-tool", 5)] {
        let home = TestHome::new();
        home.write(
            "gates/check.toml",
            &format!("[[gate]]\nname = \"g\"\nkind = \"test\"\nrun = [\"{gate}\"]\n"),
        );
        assert_eq!(strike(&home, "true", &[]).code, Some(code));
        sealed(&home.only_run());
    }
}

#[test]
fn run_json_is_the_fold_of_the_journal_and_can_be_lost() {
    let (home, _) = forged();
    let run = home.only_run();
    let folded = json!(RunSummary::fold(&run.journal()).unwrap());
    assert_eq!(run.summary(), folded);
    assert_eq!(folded["outcome"], "accepted");
    assert_eq!(folded["history"].as_array().unwrap().len(), 2);

    std::fs::remove_file(run.path().join("run.json")).unwrap();
    let shown = home.run(["show", "latest", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["run"]["outcome"], "accepted");
    let listed = home.run(["runs", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["runs"][0]["outcome"], "accepted", "{listed}");
}

#[test]
fn any_git_can_read_the_trees() {
    let (home, _) = forged();
    let run = home.only_run();
    let summary = run.summary();
    let (start, accepted) = (summary["start_tree"].as_str().unwrap(), summary["tree"].as_str().unwrap());
    let first = summary["history"][0]["tree"].as_str().unwrap();
    let store = "--git-dir=runs/.store.git";
    let diff = |a: &str, b: &str| git(&home.path(), &[store, "diff", "--name-status", a, b]);
    assert_eq!(diff(start, first), "A\twork.txt\n");
    assert_eq!(diff(first, accepted), "A\tdone.txt\nM\twork.txt\n");
    assert_eq!(git(&home.path(), &[store, "show", &format!("{accepted}:work.txt")]), "2\n");
    git(&home.path(), &[store, "fsck", "--full", "--strict"]);
    let files = git(&home.path(), &[store, "ls-tree", "-r", "--name-only", start]);
    assert_eq!(files, "gates/check.toml\nspecs/it.md\ntriphammer.toml\n", "runs/ is no part of it");
}

#[test]
fn runs_keeps_itself_out_of_git_and_of_searches() {
    let (home, _) = forged();
    git(&home.path(), &["init", "-q"]);
    let status = git(&home.path(), &["status", "--porcelain", "-uall"]);
    assert!(!status.contains("runs/"), "{status}");
    assert!(home.path().join("runs/.ignore").is_file());
}

#[test]
fn the_agent_gets_what_is_promised_and_no_more() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", SPEC);
    let out = home.beside("env");
    let agent = format!(
        "cat > {out}.stdin; cat \"$TRIPHAMMER_BRIEF\" > {out}.brief; env > {out}.env; pwd > {out}.pwd; touch done.txt",
        out = out.display()
    );
    let mut command =
        home.command(["run", "--json", "specs/it.md", "--agent-cmd", &agent, "--agent-env", "WANTED"]);
    let ran = command
        .env("API_TOKEN", "sesame-open-0815")
        .env("WANTED", "yes")
        .env("UNWANTED", "no")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let read = |kind: &str| std::fs::read_to_string(format!("{}.{kind}", out.display())).unwrap();
    assert_eq!(read("stdin"), read("brief"));
    let run = home.only_run();
    assert_eq!(read("stdin"), run.brief(1));
    let env: BTreeMap<String, String> = read("env")
        .lines()
        .filter_map(|l| l.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())))
        .collect();
    assert_eq!(env["TRIPHAMMER_RUN"], run.id());
    assert_eq!(env["TRIPHAMMER_ATTEMPT"], "1");
    assert_eq!(env["TRIPHAMMER_WORKSPACE"], home.path().canonicalize().unwrap().display().to_string());
    assert!(
        env["PATH"].starts_with(&format!("{}/.local/bin:", env["TRIPHAMMER_WORKSPACE"])),
        "{}",
        env["PATH"]
    );
    assert_eq!(env["WANTED"], "yes");
    assert!(!env.contains_key("UNWANTED") && !env.contains_key("API_TOKEN"), "{env:?}");
    assert!(read("pwd").trim_end() == env["TRIPHAMMER_WORKSPACE"]);
    // Names are recorded, values are not.
    let names: Vec<String> = serde_json::from_str(&run.text("pinned/environment.json")).unwrap();
    assert!(names.contains(&"PATH".to_owned()));
}

#[test]
fn a_receipt_is_recorded_and_its_nonsense_is_named() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = r#"touch done.txt; echo '{"commands": ["make"], "tokens": {"input": 5, "cached": 1, "output": 2},
        "cost_usd": 0.25, "colour": "red", "files": [{"path": "done.txt", "kind": "painted"}]}' > "$TRIPHAMMER_RECEIPT""#;
    strike(&home, agent, &[]).expect("accepted", "gates-passed", 1, 0);
    let receipt = json!(home.only_run().receipt(1));
    assert_eq!(receipt["tokens"], json!({"input": 5, "cached": 1, "output": 2}));
    let troubles = receipt["troubles"].to_string();
    assert!(troubles.contains("colour") && troubles.contains("painted"), "{troubles}");
}

#[test]
fn a_later_act_is_appended_and_sealed_again() {
    let (home, _) = forged();
    let before = home.only_run().text("journal.jsonl");
    let ran = home.run(["undo", "latest"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = home.only_run();
    assert!(run.text("journal.jsonl").starts_with(&before), "append-only");
    sealed(&run);
    assert_eq!(run.summary()["outcome"], "accepted", "the verdict stays");
}
