//! A person's part: tell, decide, apply, undo, restore, and what show, diff, runs and logs print.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use triphammer_model::Event;
use triphammer_testkit::{Ran, TestHome, wait_until};

use crate::common::{Live, git, resume, spec, strike};

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

#[track_caller]
fn ok(ran: &Ran) -> &Ran {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

#[track_caller]
fn no(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing: {}", ran.stderr);
    }
}

fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn get(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";

/// Accepted work in a copy of a folder: `a.txt` edited in its first line, `new.txt` added, `old.txt` deleted.
fn accepted_apart() -> (TestHome, PathBuf) {
    let home = TestHome::with_gates(&[("done", "test -f new.txt")]);
    let work = home.beside("work");
    put(&work, "a.txt", LINES);
    put(&work, "old.txt", "old\n");
    put(&work, "same.txt", "same\n");
    let agent = "sed -i 's/one/ONE/' a.txt; echo new > new.txt; rm old.txt";
    strike(&home, agent, &["--workspace", work.to_str().unwrap(), "--isolate", "copy"]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    assert_eq!(get(&work, "a.txt"), LINES, "nothing has landed yet");
    (home, work)
}

#[test]
fn apply_lands_accepted_work() {
    let (home, work) = accepted_apart();
    let report = json(&home.run(["apply", "latest", "--json"]));
    let applied: Vec<&str> = report["applied"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(applied, ["a.txt", "new.txt", "old.txt"]);
    assert_eq!(get(&work, "a.txt"), LINES.replace("one", "ONE"));
    assert_eq!(get(&work, "new.txt"), "new\n");
    assert!(!work.join("old.txt").exists());
    let run = home.only_run();
    assert!(
        run.journal()
            .iter()
            .any(|l| matches!(&l.event, Event::Applied { conflicts, .. } if conflicts.is_empty()))
    );
    // Again, it is there already.
    let again = json(&home.run(["apply", "latest", "--json"]));
    assert_eq!(again["applied"].as_array().unwrap().len(), 0, "{again}");
}

#[test]
fn apply_merges_with_what_the_person_did_meanwhile() {
    let (home, work) = accepted_apart();
    put(&work, "a.txt", &LINES.replace("nine", "NINE"));
    put(&work, "mine.txt", "mine\n");
    ok(&home.run(["apply", "latest"]));
    assert_eq!(get(&work, "a.txt"), LINES.replace("one", "ONE").replace("nine", "NINE"));
    assert_eq!(get(&work, "mine.txt"), "mine\n");
}

#[test]
fn apply_leaves_conflicts_and_overwrites_nothing() {
    let (home, work) = accepted_apart();
    put(&work, "a.txt", &LINES.replace("one", "uno"));
    put(&work, "new.txt", "already here\n");
    put(&work, "old.txt", "still needed\n");
    let ran = home.run(["apply", "latest", "--json"]);
    assert_eq!(ran.code, Some(1), "conflicts are no success: {}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut paths: Vec<&str> =
        report["conflicts"].as_array().unwrap().iter().filter_map(|c| c["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["a.txt", "new.txt", "old.txt"], "{report}");
    let merged = get(&work, "a.txt");
    assert!(merged.contains("<<<<<<<") && merged.contains("uno") && merged.contains("ONE"), "{merged}");
    assert!(get(&work, "new.txt").contains("already here"));
    assert_eq!(get(&work, "old.txt"), "still needed\n");
    let journal = home.only_run().journal();
    let recorded = journal.iter().find_map(|l| match &l.event {
        Event::Applied { conflicts, .. } => Some(conflicts.len()),
        _ => None,
    });
    assert_eq!(recorded, Some(3));
}

#[test]
fn apply_says_what_to_do_about_conflicts() {
    let (home, work) = accepted_apart();
    put(&work, "a.txt", &LINES.replace("one", "uno"));
    put(&work, "old.txt", "still needed\n");
    let ran = home.run(["apply", "latest"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("the same lines, in 1 place ("), "{}", ran.stdout);
    for words in ["next: ", "markers", &format!("triphammer restore {} 1 --to", home.only_run().id())] {
        assert!(ran.stderr.contains(words), "`{words}` is missing: {}", ran.stderr);
    }
}

#[test]
fn apply_into_a_repository_leaves_its_index_alone() {
    let home = TestHome::with_gates(&[("done", "test -f new.txt")]);
    let work = home.beside("work");
    put(&work, "a.txt", LINES);
    git(&work, &["init", "-q"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "-m", "start"]);
    strike(
        &home,
        "sed -i 's/one/ONE/' a.txt; echo new > new.txt; git add -A; git -c user.name=x -c user.email=x commit -qm agent",
        &["--workspace", work.to_str().unwrap(), "--isolate", "worktree"],
    )
    .expect("accepted", "gates-passed", 1, 0);
    ok(&home.run(["apply", "latest"]));
    assert_eq!(git(&work, &["status", "--porcelain"]), " M a.txt\n?? new.txt\n");
    assert_eq!(git(&work, &["log", "--format=%s"]), "start\n");
}

#[test]
fn apply_refuses_what_it_cannot_mean() {
    let home = TestHome::with_gates(&[("never", "false")]);
    strike(&home, "echo x > new.txt", &["--attempts", "1"]);
    no(&home.run(["apply", "latest"]), 1, &["not accepted"]);
    no(&home.run(["apply", "latest", "1"]), 1, &["in place"]);
    no(&home.run(["apply", "latest", "0"]), 2, &["attempt 0"]);
    no(&home.run(["apply", "nobody"]), 1, &["nobody"]);
    // A named attempt lands elsewhere all the same.
    let to = home.beside("to");
    std::fs::create_dir(&to).unwrap();
    ok(&home.run(["apply", "latest", "1", "--to", to.to_str().unwrap()]));
    assert_eq!(get(&to, "new.txt"), "x\n");
}

fn edited_in_place() -> TestHome {
    let home = TestHome::with_gates(&[("done", "test -f new.txt")]);
    home.write("a.txt", LINES);
    home.write("old.txt", "old\n");
    strike(&home, "sed -i 's/one/ONE/' a.txt; echo new > new.txt; rm old.txt", &[]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    home
}

#[test]
fn undo_puts_everything_back() {
    let home = edited_in_place();
    ok(&home.run(["undo", "latest"]));
    assert_eq!(home.read("a.txt"), LINES);
    assert_eq!(home.read("old.txt"), "old\n");
    assert!(!home.path().join("new.txt").exists());
    assert!(home.only_run().journal().iter().any(|l| matches!(l.event, Event::Undone { forced: false })));
}

#[test]
fn undo_says_that_commits_stay() {
    let home = edited_in_place();
    let plain = home.run(["undo", "latest"]);
    assert!(!ok(&plain).stderr.contains("commits"), "there is no repository: {}", plain.stderr);

    let home = TestHome::with_gates(&[("done", "test -f done")]);
    git(&home.path(), &["init", "-q"]);
    let commit = "git -c user.name=a -c user.email=a@b commit -qm all";
    strike(&home, &format!("touch done; git add done; {commit}"), &[]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    let ran = home.run(["undo", "latest"]);
    assert!(!home.path().join("done").exists());
    assert!(ok(&ran).stderr.contains("commits made since the run began stay"), "{}", ran.stderr);
    assert!(git(&home.path(), &["log", "--format=%s"]).contains("all"), "which is so");
}

#[test]
fn undo_refuses_over_later_edits_unless_forced_and_keeps_them() {
    let home = edited_in_place();
    home.write("a.txt", "mine now\n");
    home.write("extra.txt", "mine\n");
    no(&home.run(["undo", "latest"]), 1, &["a.txt", "extra.txt", "--force"]);
    assert_eq!(home.read("a.txt"), "mine now\n");
    assert!(home.path().join("new.txt").exists(), "nothing was touched");
    ok(&home.run(["undo", "latest", "--force"]));
    assert_eq!(home.read("a.txt"), LINES);
    assert_eq!(home.read("old.txt"), "old\n");
    let run = home.only_run().id();
    let refs = git(&home.path(), &["--git-dir=runs/.store.git", "for-each-ref", "--format=%(refname)"]);
    let kept = refs
        .lines()
        .find(|r| r.contains(&run) && r.ends_with("before-undo") && !r.contains("manifests"))
        .unwrap_or_else(|| panic!("{refs}"));
    let store = "--git-dir=runs/.store.git";
    let listed = git(&home.path(), &[store, "ls-tree", "-r", "--name-only", &format!("{kept}^{{tree}}")]);
    assert!(listed.contains("extra.txt"), "what was overwritten is kept: {listed}");
}

#[test]
fn edits_that_an_undo_kept_are_never_written_over() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    home.write("mine.txt", "start\n");
    strike(&home, "touch done", &[]).expect("accepted", "gates-passed", 1, 0);
    home.write("mine.txt", "precious\n");
    let forced = home.run(["undo", "latest", "--force"]);
    assert!(forced.code == Some(0) && forced.stderr.contains("/before-undo |"), "{}", forced.stderr);
    let shown = home.run(["show", "latest"]);
    assert!(ok(&shown).stdout.contains("next:"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("triphammer undo"), "it is undone already: {}", shown.stdout);
    // What the undo itself put back is no edit.
    for args in [&["undo", "latest"][..], &["undo", "latest", "--force"]] {
        let again = home.run(args);
        assert!(again.code == Some(0) && again.stderr.contains("already"), "{args:?}: {}", again.stderr);
    }
    let kept = |name: &str| {
        let id = home.only_run().id();
        let store = home.path().join("runs/.store.git");
        let shown = std::process::Command::new("git")
            .arg("--git-dir")
            .arg(store)
            .args(["show", &format!("refs/runs/{id}/{name}:mine.txt")])
            .output()
            .unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    assert_eq!(kept("before-undo"), "precious\n");
    home.write("mine.txt", "second\n");
    assert_eq!(home.run(["undo", "latest"]).code, Some(1), "that one is an edit");
    let forced = home.run(["undo", "latest", "--force"]);
    assert!(forced.stderr.contains("/before-undo-2 |"), "{}", forced.stderr);
    assert_eq!(home.run(["gc"]).code, Some(0));
    assert_eq!(
        (kept("before-undo"), kept("before-undo-2")),
        ("precious\n".to_owned(), "second\n".to_owned())
    );
}

#[test]
fn a_parked_run_can_be_undone_and_goes_on_from_there() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = "echo x >> work.txt; [ -e ../paid ] && touch done.txt || echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &[]).expect("suspended", "quota", 0, 5);
    ok(&home.run(["undo", "latest"]));
    assert!(!home.path().join("work.txt").exists());
    std::fs::write(home.beside("paid"), "").unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
    assert_eq!(home.read("work.txt"), "x\n");
}

#[test]
fn undo_of_isolated_work_is_refused() {
    let (home, _) = accepted_apart();
    no(&home.run(["undo", "latest"]), 1, &["isolated"]);
}

#[test]
fn restore_writes_any_tree_anywhere_but_over_something() {
    let home = edited_in_place();
    let to = home.beside("to");
    let path = to.to_str().unwrap();
    ok(&home.run(["restore", "latest", "0", "--to", path]));
    assert_eq!(get(&to, "a.txt"), LINES);
    assert!(!to.join("new.txt").exists());
    no(&home.run(["restore", "latest", "1", "--to", path]), 1, &[path]);
    ok(&home.run(["restore", "latest", "1", "--to", path, "--force"]));
    assert_eq!(get(&to, "a.txt"), LINES.replace("one", "ONE"));
    assert_eq!(get(&to, "new.txt"), "new\n");
    assert!(!to.join("old.txt").exists());
    no(&home.run(["restore", "latest", "7", "--to", path, "--force"]), 1, &["7"]);
}

#[test]
fn diff_shows_what_moved() {
    let home = edited_in_place();
    let ran = home.run(["diff", "latest", "0", "1"]);
    ok(&ran);
    assert!(ran.stdout.contains("-one") && ran.stdout.contains("+ONE"), "{}", ran.stdout);
    let changes = json(&home.run(["diff", "latest", "0", "1", "--json"]));
    let list: Vec<String> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{} {}", c["change"].as_str().unwrap(), c["path"].as_str().unwrap()))
        .collect();
    assert_eq!(list, ["changed a.txt", "added new.txt", "deleted old.txt"]);
    no(&home.run(["diff", "latest", "0", "9"]), 1, &["9"]);
}

#[test]
fn what_is_told_goes_into_the_next_brief_verbatim_and_attributed() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = "grep -q 'use `done.txt`' && touch done.txt || echo '{\"fault\": {\"kind\": \"authentication\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &[]).expect("suspended", "authentication", 0, 5);
    let mut command = home.command(["tell", "latest", "The name? use `done.txt`\nand nothing else"]);
    assert!(command.env("USER", "ann").output().unwrap().status.success());
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
    let run = home.only_run();
    let brief = run.brief(1);
    assert!(brief.contains("The name? use `done.txt`") && brief.contains("and nothing else"), "{brief}");
    assert!(brief.contains("ann"), "{brief}");
    assert!(run.journal().iter().any(|l| matches!(&l.event, Event::Told { by, .. } if by == "ann")));
    no(&home.run(["tell", "latest", "too late"]), 1, &["over"]);
    no(&home.run(["tell", "latest", " "]), 2, &["nothing to tell"]);
}

#[test]
fn a_run_at_work_is_told_before_its_next_attempt() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", crate::common::SPEC);
    let (at, hang) = (home.beside("at-work"), home.beside("hang"));
    std::fs::write(&hang, "").unwrap();
    let agent = format!(
        "grep -q MAGIC && touch done.txt; echo > {}; while test -e {}; do sleep 0.02; done",
        at.display(),
        hang.display()
    );
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", &agent]));
    wait_until("the agent at work", Duration::from_mins(1), || at.exists());
    ok(&home.run(["tell", "latest", "MAGIC"]));
    std::fs::remove_file(hang).unwrap();
    assert_eq!(live.end().0, Some(0));
    let run = home.only_run();
    assert_eq!(run.summary()["attempts"], 2);
    assert!(!run.brief(1).contains("MAGIC") && run.brief(2).contains("MAGIC"));
}

#[test]
fn runs_lists_every_run_of_the_home() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let empty = json(&home.run(["runs", "--json"]));
    assert_eq!(empty["runs"].as_array().unwrap().len(), 0);
    strike(&home, "true", &["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
    let listed = json(&home.run(["runs", "--json"]));
    assert_eq!(listed["schema"], 1);
    let rows: Vec<String> = listed["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            assert!(r["run"].is_string() && r["started"].is_string(), "{r}");
            assert!(r.get("parent").is_none_or(Value::is_null), "{r}");
            format!("{} {} {} {}", r["spec"], r["outcome"], r["reason"], r["attempts"])
        })
        .collect();
    assert_eq!(
        rows,
        ["\"it\" \"rejected\" \"attempts-exhausted\" 1", "\"it\" \"accepted\" \"gates-passed\" 1"]
    );
    let table = home.run(["runs"]);
    assert!(ok(&table).stdout.contains("accepted") && table.stdout.contains("rejected"), "{}", table.stdout);
}

#[test]
fn show_tells_an_attempt_whole() {
    let home =
        TestHome::with_gates(&[("done", "test -f done.txt || { echo 'done.txt is not there'; exit 1; }")]);
    spec(&home, "", "## Acceptance\n- The file done.txt exists.\n");
    let agent = r#"echo $TRIPHAMMER_ATTEMPT > seen.txt; [ $TRIPHAMMER_ATTEMPT = 1 ] || touch done.txt
        echo '{"files": [{"path": "ghost.txt", "kind": "added"}, {"path": "seen.txt", "kind": "added"}]}' > "$TRIPHAMMER_RECEIPT""#;
    strike(&home, agent, &[]).expect("accepted", "gates-passed", 2, 0);
    let whole = home.run(["show", "latest"]);
    for word in ["accepted", "gates-passed", &home.only_run().id()] {
        assert!(ok(&whole).stdout.contains(word), "`{word}`: {}", whole.stdout);
    }
    let one = home.run(["show", "latest", "1"]);
    for word in [
        "The file done.txt exists.",
        "seen.txt",
        "ghost.txt",
        "disproved",
        "observed",
        "done",
        "fail",
        "done.txt is not there",
    ] {
        assert!(ok(&one).stdout.contains(word), "`{word}`: {}", one.stdout);
    }
    let object = json(&home.run(["show", "latest", "1", "--json"]));
    assert_eq!(object["schema"], 1);
    let run = home.only_run();
    assert_eq!(object["attempt"]["movement"], serde_json::json!(run.movement(1)));
    assert_eq!(object["attempt"]["report"], serde_json::json!(run.report(1)));
    no(&home.run(["show", "latest", "3"]), 1, &["attempts 1 to 2"]);
    no(&home.run(["show", "0000"]), 1, &["0000"]);
}

#[test]
fn a_run_is_named_by_a_unique_prefix() {
    let home = edited_in_place();
    let id = home.only_run().id();
    ok(&home.run(["show", &id[..10]]));
    std::fs::remove_file(home.path().join("new.txt")).unwrap();
    let later = strike(&home, "touch new.txt", &[]);
    later.expect("accepted", "gates-passed", 1, 0);
    let ids: Vec<String> = home.runs().iter().map(triphammer_testkit::RunFiles::id).collect();
    no(&home.run(["show", "20"]), 1, &[&ids[0], &ids[1]]);
    let latest = json(&home.run(["show", "latest", "--json"]));
    assert_eq!(latest["run"]["run"], later.done()["run"], "also when both began in one second");
}

#[test]
fn logs_print_what_the_agent_said() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    strike(
        &home,
        "echo hello from attempt $TRIPHAMMER_ATTEMPT; [ $TRIPHAMMER_ATTEMPT = 1 ] || touch done.txt",
        &[],
    )
    .expect("accepted", "gates-passed", 2, 0);
    let last = home.run(["logs", "latest"]);
    assert!(ok(&last).stdout.contains("hello from attempt 2"), "{}", last.stdout);
    let first = home.run(["logs", "latest", "1"]);
    assert!(ok(&first).stdout.contains("hello from attempt 1"), "{}", first.stdout);
    let follow = home.run(["logs", "-f", "latest"]);
    assert!(ok(&follow).stdout.contains("hello from attempt 2"), "a run at rest is not followed for ever");
}

#[test]
fn init_spec_and_run_fit_together() {
    let home = TestHome::new();
    let fresh = home.beside("fresh");
    std::fs::create_dir(&fresh).unwrap();
    let at = |args: &[&str]| Ran::of(home.command(args).current_dir(&fresh).output().unwrap());
    let begun = at(&["init"]);
    assert!(ok(&begun).stderr.contains("fill in specs/example.md"), "{}", begun.stderr);
    assert!(fresh.join("triphammer.toml").is_file());
    ok(&at(&["spec", "new", "specs/mine.md"]));
    let draft = get(&fresh, "specs/mine.md");
    assert!(draft.contains("status: draft"), "{draft}");
    // A person fills it in.
    put(
        &fresh,
        "specs/mine.md",
        "---\nstatus: draft\n---\n# Goal\nMake the file.\n## Checks\n- made: test -f made.txt\n## Keep green\n- there: test -f triphammer.toml\n",
    );
    ok(&at(&["spec", "check", "specs/mine.md"]));
    ok(&at(&["spec", "lock", "specs/mine.md"]));
    assert!(get(&fresh, "specs/mine.md").contains("status: locked"));
    let ran = at(&["run", "specs/mine.md", "--agent-cmd", "touch made.txt"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ok(&at(&["doctor"]));

    put(
        &fresh,
        "specs/bad.md",
        "---\nstatus: draft\n---\n# Goal\nx\n## Checks\n- easy: true\n## Keep green\n- no: false\n",
    );
    // A check that is red because it is broken shows it.
    put(
        &fresh,
        "specs/broken.md",
        "---\nstatus: draft\n---\n# Goal\nx\n## Checks\n- made: seq 90; echo no-such-tool is missing; false\n",
    );
    let checked = at(&["spec", "check", "specs/broken.md"]);
    let said = &ok(&checked).stdout;
    assert!(said.contains("red, as it should be") && said.contains("no-such-tool is missing"), "{said}");
    assert!(said.contains("\n      | ... 87 lines left out\n      | 88\n"), "bounded: {said}");
    let told = json(&at(&["spec", "check", "specs/broken.md", "--json"]));
    assert!(told["checks"][0]["output"].as_str().unwrap().contains("no-such-tool is missing"), "{told}");

    // Nobody has said what to build.
    let unfilled = at(&["spec", "lock", "specs/example.md"]);
    assert!(ok(&unfilled).stderr.contains("still the draft's own sentence"), "{}", unfilled.stderr);

    let refused = at(&["spec", "lock", "specs/bad.md"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let talk = format!("{}{}", refused.stdout, refused.stderr);
    assert!(talk.contains("easy") && talk.contains("no"), "{talk}");
    assert!(get(&fresh, "specs/bad.md").contains("status: draft"), "it stays a draft");
}
