//! Done, or not done: what an agent says, how it exits and what it writes about itself prove nothing.

use triphammer_model::process::WaitStatus;
use triphammer_model::{Event, Standing};

use crate::fake::{Fake, GIT, agent_ends, git, observed, touched};

/// Whatever an agent prints and however it exits: where nothing moved and the gates are red, nothing is done.
#[test]
fn words_and_exit_codes_prove_nothing() {
    for (what, script, code) in [
        ("a question", "echo 'Should I use tabs or spaces?'", 0),
        ("a promise", "echo 'I will now write the file.'", 0),
        (
            "a boast",
            "printf 'All tests pass.\\nDONE\\n<promise>COMPLETE</promise>\\ntest result: ok. 9 passed; 0 failed\\n'",
            0,
        ),
        ("a verdict", "echo '{\"ok\": true, \"verdict\": \"pass\", \"status\": \"completed\"}'", 0),
        ("silence", "", 0),
        ("a bad end", "echo DONE; exit 9", 9),
    ] {
        let fake =
            Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", &format!("{script}\nexit {code}"));
        fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
        let run = fake.run();
        for attempt in 1..=3 {
            assert!(touched(&run, attempt).is_empty(), "{what}");
            assert!(!run.report(attempt).ok, "{what}");
        }
        for (_, facts) in agent_ends(&run) {
            assert_eq!(facts.wait, WaitStatus::Exited { code }, "{what}");
            assert!(facts.fault.is_none(), "{what}: an exit code alone is no fault");
        }
    }
}

#[test]
fn a_question_is_shown_to_the_person() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        "echo working\necho 'Should I use tabs or spaces?'",
    );
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    let words = fake.run().receipt(1).last_words.unwrap();
    assert!(words.contains("tabs or spaces?"), "{words}");
    let shown = fake.home.run(["show", "latest", "3"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("Should I use tabs or spaces?"), "{}", shown.stdout);
    // Whoever watches the run reads it at once.
    let plain = fake.home.run(["run", "specs/work.md", "--agent", "fa"]);
    assert_eq!(plain.stderr.matches("Should I use tabs or spaces?").count(), 3, "{}", plain.stderr);
}

/// A receipt that claims everything is still only a claim.
#[test]
fn claims_of_work_are_held_against_the_world() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        r#"echo '{"files": [{"path": "work.txt", "kind": "added"}, {"path": "specs/work.md", "kind": "changed"},
                   {"path": "gone.txt", "kind": "deleted"}, {"path": "/etc/passwd", "kind": "changed"}],
                  "commands": ["cargo test"], "cost_usd": 0.1}' > "$TRIPHAMMER_RECEIPT""#,
    );
    // The phantoms hold the breaker back no more than silence does.
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    let run = fake.run();
    for attempt in 1..=3 {
        let movement = run.movement(attempt);
        assert!(movement.touched.is_empty() && movement.observed.is_empty());
        assert_eq!(movement.claimed.len(), 4);
        for claim in &movement.claimed {
            assert_eq!(claim.standing, Standing::Disproved, "{claim:?}");
            assert!(claim.why.is_some(), "{claim:?}");
        }
    }
}

/// Nothing to do is something else than done by nobody: with green gates an idle agent is not accepted.
#[test]
fn green_gates_without_work_are_no_acceptance() {
    let fake = Fake::new(&[("fine", "true")]).agent("fa", "", "echo done");
    let ran = fake.home.forge(["--task", "Tidy up.", "--agent", "fa"]);
    ran.expect("rejected", "stalled", 3, 3);
    assert!(!fake.run().report(1).ok);
    // Without a consent to green gates nobody is launched at all.
    let fake = Fake::new(&[("fine", "true")]).agent("fa", "", "echo done");
    fake.forge([""; 0]).expect("nothing-to-do", "all-green", 0, 6);
    assert_eq!(fake.launches("fa"), 0);
}

#[test]
fn an_idle_agent_is_rejected_again_the_second_time() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", "exit 0");
    for launches in [3, 6] {
        fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
        assert_eq!(fake.launches("fa"), launches);
    }
    assert_eq!(fake.home.runs().len(), 2);
}

/// The spec in the workspace is read once; what an agent makes of it changes neither this run nor a verdict.
#[test]
fn a_spec_that_the_agent_edits_changes_only_the_record() {
    for (what, edit) in [
        ("status", "sed -i 's/^status: .*/status: completed/' specs/work.md"),
        ("check", "sed -i 's/^- works: .*/- works: true/' specs/work.md"),
        ("attempts", "sed -i 's/^attempts: .*/attempts: 50/' specs/work.md"),
        ("all", "rm -r specs"),
    ] {
        let fake = Fake::new(&[]).agent("fa", "", edit);
        fake.spec("attempts: 4\n", "## Checks\n- works: test -f work.txt\n");
        // The first attempt edits, the others find nothing more to do.
        fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
        let run = fake.run();
        assert!(touched(&run, 1).iter().any(|p| p == "specs/work.md"), "{what}: the edit is on record");
        assert!(run.text("pinned/spec.md").contains("- works: test -f work.txt"), "{what}");
        let finished =
            run.journal().iter().any(|l| matches!(l.event, Event::Judged { ref report, .. } if report.ok));
        assert!(!finished, "{what}");
    }
}

/// A status that an agent wrote is not taken for a fact by the next run either: it is an error that names the line.
#[test]
fn a_status_left_by_an_agent_skips_nothing() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        "sed -i 's/^status: .*/status: completed/' specs/work.md",
    );
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    let again = fake.forge([""; 0]);
    assert_eq!(again.code, Some(2), "{}", again.stdout);
    assert!(again.stderr.contains("specs/work.md:2"), "{}", again.stderr);
    assert_eq!(fake.launches("fa"), 3, "nobody was launched on it");
    assert_eq!(fake.home.runs().len(), 1);
}

fn repository() -> Fake {
    let fake = Fake::new(&[("works", "grep -q right work.txt")]);
    let home = fake.home.path();
    git(&home, &["init", "-q"]);
    // Somebody's work in progress, not committed.
    fake.home.write("notes.txt", "mine\n");
    git(&home, &["add", "notes.txt"]);
    git(&home, &["commit", "-qm", "start"]);
    fake.home.write("notes.txt", "mine, edited\n");
    fake
}

/// The working tree counts, whether or not the agent commits.
#[test]
fn work_counts_without_and_with_a_commit() {
    for (what, tail) in [
        ("uncommitted", ""),
        ("staged", "git add -A"),
        ("committed", &format!("git add work.txt && {GIT} commit -qm work") as &str),
        ("committed with all else", &format!("git add -A && {GIT} commit -qam work")),
        ("stashed and back", &format!("git add -A && {GIT} stash -q && {GIT} stash pop -q")),
        ("on a branch", &format!("git checkout -qb side && git add work.txt && {GIT} commit -qm work")),
    ] {
        let fake = repository().agent("fa", "", &format!("echo right > work.txt\n{tail}"));
        let ran = fake.forge([""; 0]);
        ran.expect("accepted", "gates-passed", 1, 0);
        assert_eq!(ran.done()["accepted_attempt"], 1, "{what}");
        assert_eq!(touched(&fake.run(), 1), ["work.txt"], "{what}");
    }
}

/// A commit without work is no work.
#[test]
fn a_commit_alone_is_no_movement() {
    let fake = repository().agent("fa", "", &format!("{GIT} commit -q --allow-empty -m 'finish the work'"));
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    assert!((1..=3).all(|n| observed(&fake.run(), n).is_empty()));

    // Committing what was there before the run is none either.
    let fake = repository().agent("fa", "", &format!("git add -A; {GIT} commit -qm 'finish the work'; true"));
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
}

/// Nothing is unbounded unless somebody said so: what a run may spend is in its first event.
#[test]
fn an_agent_that_does_nothing_ends_by_itself() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", "true");
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    let journal = fake.run().journal();
    let Event::Started(started) = &journal[0].event else { panic!("{:?}", journal[0]) };
    assert_eq!(started.limits.attempts, 5);
    assert_eq!(started.limits.budget.as_millis(), 4 * 3_600_000);
    let policy = fake.run().text("pinned/policy.toml");
    assert!(policy.contains("timeout = \"45m\"") && policy.contains("idle_timeout = \"15m\""), "{policy}");
}

#[test]
fn an_agent_that_always_moves_ends_at_its_attempts() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", "echo x >> work.txt");
    fake.forge([""; 0]).expect("rejected", "attempts-exhausted", 5, 1);
    assert_eq!(fake.launches("fa"), 5);
}

#[test]
fn an_agent_that_never_ends_is_ended() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "timeout = \"500ms\"", "sleep 9999");
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    for (_, facts) in agent_ends(&fake.run()) {
        assert!(matches!(facts.wait, WaitStatus::TimedOut { .. }), "{facts:?}");
    }
}

#[test]
fn the_wall_clock_ends_a_run_at_an_attempts_border() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", "echo x >> work.txt; sleep 1");
    fake.forge(["--budget", "500ms"]).expect("rejected", "budget-exhausted", 1, 4);
}

/// No flag, no variable and no spec makes the attempts endless.
#[test]
fn attempts_are_bounded_however_they_are_asked_for() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", "true");
    for attempts in ["0", "51", "-1", "unlimited"] {
        let ran = fake.forge([format!("--attempts={attempts}")]);
        assert_eq!(ran.code, Some(2), "{attempts}: {}", ran.stdout);
        fake.spec(&format!("attempts: {attempts}\n"), "");
        let ran = fake.forge([""; 0]);
        assert_eq!(ran.code, Some(2), "{attempts}: {}", ran.stdout);
        assert!(ran.stderr.contains("specs/work.md:3"), "{}", ran.stderr);
        fake.spec("", "");
    }
    assert!(fake.home.runs().is_empty());
}
