//! Agents, gates and surroundings at their worst; whatever they do, the verdict and the record stay true.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::process::Signal;
use triphammer_model::report::VerdictWord;
use triphammer_testkit::{Ran, TestHome, wait_until};

use crate::common::{
    Live, SPEC, failing_crate, failing_rules, git, pack, resume, spec, strike, wait_for_silence, words,
};

fn wants_done() -> TestHome {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", SPEC);
    home
}

#[test]
fn a_fake_tool_in_local_bin_passes_no_gate() {
    let agent = "mkdir -p .local/bin; printf '#!/bin/sh\\nexit 0\\n' > .local/bin/$TOOL; chmod +x .local/bin/$TOOL; date > x";
    for tool in ["sh", "test"] {
        let home = wants_done();
        home.write(
            "gates/check.toml",
            "[[gate]]\nname = \"done\"\nkind = \"test\"\nrun = [\"test\", \"-f\", \"done.txt\"]\n",
        );
        let ran = strike(&home, &agent.replace("$TOOL", tool), &["--attempts", "1"]);
        let rules = failing_rules(&home.only_run(), 1);
        assert_ne!(ran.done()["outcome"], "accepted", "{tool}");
        assert!(rules.iter().any(|r| r == "integrity/shadowed-tool"), "{tool}: {rules:?}");
    }
}

#[test]
fn removing_a_test_is_a_finding_unless_the_spec_allows_it() {
    let agent = "rm tests/sum.rs";
    let two_tests = || {
        let home = TestHome::new();
        failing_crate(&home);
        home.write("tests/name.rs", "#[test]\nfn has_a_name() {}\n");
        home
    };
    let home = two_tests();
    strike(&home, agent, &["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let rules = failing_rules(&home.only_run(), 1);
    assert!(rules.iter().any(|r| r.starts_with("integrity/")), "{rules:?}");

    let home = two_tests();
    spec(&home, "allow: [tests-removed]\n", "");
    strike(&home, agent, &["--attempts", "1"]).expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn a_report_that_the_agent_left_is_not_the_gates() {
    let home = TestHome::new();
    home.write("gates/check.toml", &pack("lazy", "test -f ok.txt", "report = \"junit:out.xml\"\n"));
    let agent = r#"touch ok.txt; echo '<testsuite tests="3" failures="0"><testcase name="a"/><testcase name="b"/>
        <testcase name="c"/></testsuite>' > out.xml"#;
    let ran = strike(&home, agent, &["--attempts", "1"]);
    assert_ne!(ran.done()["outcome"], "accepted", "{}", ran.stdout);
    let report = home.only_run().report(1);
    let lazy = report.verdicts.iter().find(|v| v.gate.as_str() == "lazy").unwrap();
    assert_eq!(lazy.word(), VerdictWord::Error, "exit 0 without the report that was promised");
}

#[test]
fn what_an_agent_left_running_is_ended_before_anything_is_judged() {
    let home = wants_done();
    let agent = "(setsid sh -c 'while :; do date +%N > churn.txt; sleep 0.01; done' >/dev/null 2>&1 &)
        while ! test -f churn.txt; do sleep 0.01; done; touch done.txt";
    strike(&home, agent, &[]).expect("accepted", "gates-passed", 1, 0);
    wait_for_silence(&home);
}

#[test]
fn what_a_gate_left_running_is_ended() {
    let home = TestHome::with_gates(&[("leaves", "(setsid sleep 1000 &) ; test -f done.txt")]);
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
    wait_for_silence(&home);
}

#[test]
fn an_agent_that_removes_its_workspace_is_never_accepted() {
    let home = wants_done();
    let work = home.beside("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("a.txt"), "a").unwrap();
    let agent = "rm -rf \"$TRIPHAMMER_WORKSPACE\"";
    let ran = strike(&home, agent, &["--workspace", work.to_str().unwrap(), "--attempts", "2"]);
    assert_ne!(ran.done()["outcome"], "accepted", "{}", ran.stdout);
    assert_eq!(home.run(["show", "latest"]).code, Some(0));
}

#[test]
fn a_run_whose_record_is_destroyed_does_not_end_well() {
    let acts = [
        "rm -rf runs",
        "rm -rf runs/.store.git",
        ": > $(echo runs/2*/journal.jsonl)",
        "rm $(echo runs/2*/journal.jsonl)",
        "echo '{}' >> $(echo runs/2*/journal.jsonl)",
    ];
    for act in acts {
        let home = wants_done();
        let ran = strike(&home, &format!("touch done.txt; {act}"), &[]);
        assert!(
            matches!(ran.code, Some(1 | 5)),
            "`{act}` ended with {:?}: {}\n{}",
            ran.code,
            ran.stdout,
            ran.stderr
        );
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        // The home stays usable.
        assert_eq!(home.run(["runs", "--json"]).code, Some(0), "{act}");
        std::fs::remove_file(home.path().join("done.txt")).unwrap();
        let again = strike(&home, "touch done.txt", &[]);
        again.expect("accepted", "gates-passed", 1, 0);
    }
}

#[test]
fn pins_that_are_altered_while_a_run_is_parked_end_it() {
    let home = wants_done();
    strike(&home, "echo '{\"fault\": {\"kind\": \"authentication\"}}' > \"$TRIPHAMMER_RECEIPT\"", &[])
        .expect("suspended", "authentication", 0, 5);
    let run = home.only_run();
    let pinned = run.path().join("pinned/spec.md");
    std::fs::write(&pinned, run.text("pinned/spec.md") + "\n## Non-goals\n- nothing\n").unwrap();
    let ran = resume(&home, "latest");
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(run.summary()["reason"], "tampered");
    assert!(words(&run).contains(&"pins-broken"));
}

#[test]
fn a_person_may_edit_what_is_protected_while_a_run_is_parked() {
    let home = wants_done();
    home.write("tests/a.txt", "first\n");
    spec(&home, "protect: [\"tests/**\"]\n", "");
    let agent = "[ -e ../paid ] && touch done.txt || echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &[]).expect("suspended", "quota", 0, 5);
    // A person's edit is no offence of the agent's, and is not undone.
    home.write("tests/a.txt", "mine\n");
    home.write("triphammer.toml", "[run]\nattempts = 9\n");
    // Nor is it forgotten over another pause.
    resume(&home, "latest").expect("suspended", "quota", 0, 5);
    home.write("tests/b.txt", "also mine\n");
    std::fs::write(home.beside("paid"), "").unwrap();
    let ran = resume(&home, "latest");
    assert_eq!(home.read("tests/a.txt"), "mine\n", "{}", ran.stdout);
    assert_eq!(home.read("tests/b.txt"), "also mine\n");
    assert_eq!(home.read("triphammer.toml"), "[run]\nattempts = 9\n");
    ran.expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn packs_that_change_while_a_run_is_parked_change_nothing() {
    let home = wants_done();
    let work = home.beside("work");
    std::fs::create_dir(&work).unwrap();
    let agent = "[ -e ../paid ] && touch done.txt || echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &["--workspace", work.to_str().unwrap()]).expect("suspended", "quota", 0, 5);
    home.write("gates/check.toml", &pack("other", "false", ""));
    home.write("specs/it.md", "no spec any more");
    home.write("triphammer.toml", "no config any more");
    home.write("triphammer.toml", "");
    std::fs::write(home.beside("paid"), "").unwrap();
    resume(&home, "latest").expect("accepted", "unchecked", 1, 0);
}

#[test]
fn runs_side_by_side_in_one_home_do_not_disturb_each_other() {
    let home = wants_done();
    home.write("data/a.txt", "a");
    let agent = "echo $TRIPHAMMER_RUN > mine.txt; sleep 0.05; [ $TRIPHAMMER_ATTEMPT != 2 ] || touch done.txt";
    let runs: Vec<Live> = (0..6)
        .map(|_| {
            Live::start(home.command([
                "run",
                "--json",
                "specs/it.md",
                "--agent-cmd",
                agent,
                "--isolate",
                "copy",
            ]))
        })
        .collect();
    for run in runs {
        let (code, last) = run.end();
        assert_eq!(code, Some(0), "{last:?}");
    }
    let runs = home.runs();
    assert_eq!(runs.len(), 6);
    for run in runs {
        assert_eq!(run.summary()["outcome"], "accepted");
        let tree = run.summary()["tree"].as_str().unwrap().to_owned();
        let mine = git(&home.path(), &["--git-dir=runs/.store.git", "show", &format!("{tree}:mine.txt")]);
        assert_eq!(mine.trim(), run.id());
    }
    git(&home.path(), &["--git-dir=runs/.store.git", "fsck", "--full", "--strict"]);
}

#[test]
fn nobody_reads_the_output_and_the_run_goes_on() {
    for json in [true, false] {
        let home = wants_done();
        let mut args =
            vec!["run", "specs/it.md", "--agent-cmd", "[ $TRIPHAMMER_ATTEMPT = 1 ] || touch done.txt"];
        args.extend(json.then_some("--json"));
        let mut child = home
            .command(args)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(home.only_run().summary()["outcome"], "accepted");
    }
}

#[test]
fn names_that_are_no_text_and_files_that_are_no_files() {
    let home = wants_done();
    let odd = OsStr::from_bytes(b"w\xffrk \\ \n here");
    let work = home.beside("x").with_file_name(odd);
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join(OsStr::from_bytes(b"\xfe.txt")), "x").unwrap();
    let agent = "if [ -e ../paid ]; then touch done.txt; else
        mkfifo pipe; ln -s pipe link; ln -s nowhere dangling; ln -s . loop; printf x > \"$(printf 'new\\nline')\"
        printf 'a' > \"$(printf '\\377')\"; echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"; fi";
    let mut command = home.command(["run", "--json", "specs/it.md", "--agent-cmd", agent, "--workspace"]);
    let ran = Ran::of(command.arg(&work).output().unwrap());
    // It worked and its quota is spent: the gates judge the work, then the run is parked.
    ran.expect("suspended", "quota", 0, 5);
    let run = home.only_run();
    let moved: Vec<String> = run.movement(1).observed.iter().map(|o| o.path.to_string()).collect();
    for path in [r"\xff", "new\nline", "link", "dangling", "loop"] {
        let shown = path.replace('\n', "\\x0a");
        assert!(moved.iter().any(|m| m == path || *m == shown), "{path:?} is missing: {moved:?}");
    }
    std::fs::write(home.beside("paid"), "").unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
    let restored = home.beside("restored");
    let ran = home.run(["restore", "latest", "1", "--to", restored.to_str().unwrap()]);
    assert!(restored.join(OsStr::from_bytes(b"\xfe.txt")).is_file(), "{}", ran.stderr);
    assert!(std::fs::symlink_metadata(restored.join("loop")).unwrap().is_symlink());
    assert_eq!(home.run(["undo", "latest"]).code, Some(0));
    assert!(!work.join("done.txt").exists() && work.join(OsStr::from_bytes(b"\xfe.txt")).exists());
}

#[test]
fn an_interrupt_while_waiting_for_a_retry_is_resumed_there() {
    let home = wants_done();
    home.write("triphammer.toml", "[run]\nretry_backoff = \"1h\"\n");
    let agent = "[ -e ../paid ] && touch done.txt || echo '{\"fault\": {\"kind\": \"overloaded\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    let mut live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", agent]));
    let ended = live.until("agent-ended");
    assert_eq!(ended["effects"][0]["type"], "wait", "{ended}");
    live.signal(Signal::INT);
    assert_eq!(live.end().0, Some(130));
    std::fs::write(home.beside("paid"), "").unwrap();
    // The attempt goes on with its second try; it is charged once.
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
    assert_eq!(home.only_run().summary()["history"][0]["tries"], 2);
}

#[test]
fn retries_are_not_charged_and_end_in_a_suspension() {
    let home = wants_done();
    home.write("triphammer.toml", "[run]\nretry_backoff = \"1ms\"\n");
    let agent =
        "echo x >> ../tries; echo '{\"fault\": {\"kind\": \"overloaded\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &[]).expect("suspended", "overloaded", 0, 5);
    assert_eq!(std::fs::read_to_string(home.beside("tries")).unwrap().lines().count(), 3);
    assert!(home.only_run().path().join("attempts/001/tries/2/receipt.json").is_file());
}

#[test]
fn a_failing_receipt_never_hangs_or_crashes() {
    for act in [
        "mkfifo \"$TRIPHAMMER_RECEIPT\"",
        "ln -s /etc/passwd \"$TRIPHAMMER_RECEIPT\"",
        "mkdir \"$TRIPHAMMER_RECEIPT\"",
        "head -c 9000000 /dev/zero > \"$TRIPHAMMER_RECEIPT\"",
        "printf '[1, 2' > \"$TRIPHAMMER_RECEIPT\"",
        "printf '{\"cost_usd\": -5, \"tokens\": {\"input\": -1}}' > \"$TRIPHAMMER_RECEIPT\"",
    ] {
        let home = wants_done();
        strike(&home, &format!("touch done.txt; {act}"), &[]).expect("accepted", "gates-passed", 1, 0);
        let receipt = home.only_run().receipt(1);
        assert!(!receipt.troubles.is_empty(), "`{act}` is noted");
        assert!(receipt.cost.is_none() && receipt.tokens.is_none(), "unknown is not zero: {act}");
    }
}

#[test]
fn settings_go_flag_over_environment_over_home_over_user() {
    let attempts = |home: &TestHome, env: Option<&str>, flag: Option<&str>| {
        let mut args = vec!["run", "--json", "specs/it.md", "--agent-cmd", "date +%s%N > x"];
        args.extend(flag.iter().flat_map(|f| ["--attempts", *f]));
        let mut command = home.command(args);
        command.envs(env.map(|e| ("TRIPHAMMER_ATTEMPTS", e)));
        Ran::of(command.output().unwrap()).done()["attempts"].as_u64()
    };
    let home = TestHome::with_gates(&[("never", "false")]);
    home.write("specs/it.md", SPEC);
    let user = home.beside("user").join(".config/triphammer");
    std::fs::create_dir_all(&user).unwrap();
    home.set_user_config("[run]\nattempts = 4\n");
    assert_eq!(attempts(&home, None, None), Some(4));
    home.write("triphammer.toml", "[run]\nattempts = 3\n");
    assert_eq!(attempts(&home, None, None), Some(3));
    assert_eq!(attempts(&home, Some("2"), None), Some(2));
    assert_eq!(attempts(&home, Some("2"), Some("1")), Some(1));
}

#[test]
fn a_hung_gate_is_ended_at_its_deadline_and_stdin_is_closed() {
    let home = TestHome::new();
    home.write(
        "gates/check.toml",
        &pack("hangs", "cat; [ \"$CI\" = 1 ] && sleep 1000", "timeout = \"200ms\"\n"),
    );
    strike(&home, "true", &[]).expect("rejected", "stalled", 3, 3);
    wait_for_silence(&home);
}

#[test]
fn an_agent_that_overruns_is_ended_and_its_work_is_judged() {
    let home = wants_done();
    home.write(
        "triphammer.toml",
        "[agents.slow]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"touch done.txt; exec sleep 1000\"]\ntimeout = \"300ms\"\n",
    );
    home.forge(["specs/it.md", "--agent", "slow"]).expect("accepted", "gates-passed", 1, 0);
    wait_until("its death", Duration::from_mins(1), || crate::common::left_over(&home).is_empty());
}

#[test]
fn what_an_agent_did_to_protected_files_is_no_persons_edit() {
    // The agent weakens a test and is killed with the run: it is put back, however the run is taken up.
    let home = wants_done();
    home.write("tests/a.txt", "first\n");
    spec(&home, "protect: [\"tests/**\"]\nattempts: 2\n", "");
    let agent =
        "[ $TRIPHAMMER_ATTEMPT = 2 ] && exit 0; echo weak > tests/a.txt; touch ../at-work; exec sleep 1000";
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", agent]));
    wait_until("the agent at work", Duration::from_mins(1), || home.beside("at-work").exists());
    live.kill();
    wait_for_silence(&home);
    resume(&home, "latest").expect("rejected", "attempts-exhausted", 2, 1);
    assert_eq!(home.read("tests/a.txt"), "first\n");
}

#[test]
fn an_agent_may_use_the_binary_itself() {
    let home = wants_done();
    let agent =
        format!("{} runs --json > ../inner.json && touch done.txt", triphammer_testkit::binary().display());
    strike(&home, &agent, &[]).expect("accepted", "gates-passed", 1, 0);
    let inner = std::fs::read_to_string(home.beside("inner.json")).unwrap();
    assert!(inner.contains(&home.only_run().id()), "{inner}");
}

/// A folder of the record that becomes a link would take what is written next somewhere else.
#[test]
fn a_record_that_is_turned_into_a_link_ends_the_run() {
    for folder in ["attempts/001/gates", "attempts"] {
        let home = wants_done();
        let elsewhere = home.beside("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let agent = format!(
            "touch done.txt; cd runs/2*/; mkdir -p $(dirname {folder}); rm -rf {folder}; ln -s {} {folder}",
            elsewhere.display()
        );
        let ran = home.forge(["--task", "x", "--agent-cmd", &agent]);
        assert_eq!(ran.code, Some(1), "{folder}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.done()["reason"], "tampered", "{folder}");
        assert_eq!(
            std::fs::read_dir(&elsewhere).unwrap().count(),
            0,
            "{folder}: something was written through it"
        );
    }
}
