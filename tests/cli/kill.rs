//! `kill -9` at fifty random moments: each leaves a run that can be read and that `resume` finishes.

use std::collections::BTreeSet;
use std::time::Duration;

use triphammer_model::{Effect, Event};
use triphammer_testkit::{RunFiles, TestHome};

use crate::common::{Live, SPEC, effects, resume, wait_for_silence};

/// Moments a test tries; there are five tests.
const MOMENTS: usize = 10;

fn seed() -> u64 {
    let given = std::env::var("TRIPHAMMER_TEST_SEED").ok();
    given.map_or_else(|| fastrand::u64(..), |s| s.parse().expect("TRIPHAMMER_TEST_SEED is a number"))
}

/// A home whose run takes a preflight and three attempts, each with an agent and two gates that take a moment.
fn home() -> (TestHome, String) {
    let home = TestHome::new();
    home.write("specs/it.md", SPEC);
    home.write(
        "gates/check.toml",
        "[[gate]]\nname = \"slow\"\nkind = \"build\"\nrun = [\"sh\", \"-c\", \"sleep 0.05\"]\n\
         [[gate]]\nname = \"thrice\"\nkind = \"test\"\n\
         run = [\"sh\", \"-c\", \"sleep 0.05; test $(cat work.txt 2>/dev/null | wc -l) -ge 3\"]\n",
    );
    // A descendant that leaves its group and outlives its parent, unless somebody ends it.
    let agent = format!(
        "echo $TRIPHAMMER_ATTEMPT >> {}; setsid sleep 1000 & sleep 0.05; echo $TRIPHAMMER_ATTEMPT >> work.txt; sleep 0.05",
        home.beside("starts").display()
    );
    (home, agent)
}

fn start(home: &TestHome, agent: &str, more: &[&str]) -> Live {
    let mut args = vec!["run", "--json", "specs/it.md", "--agent-cmd", agent, "--attempts", "12"];
    args.extend(more);
    Live::start(home.command(args))
}

/// What must hold of a run after every kill and at its end.
fn check(home: &TestHome, run: &RunFiles) {
    let journal = run.journal();
    let mut charged = BTreeSet::new();
    for effect in effects(&journal) {
        if let Effect::Implement { attempt, .. } = effect {
            assert!(charged.insert(attempt), "attempt {attempt} was begun twice");
        }
    }
    let starts = std::fs::read_to_string(home.beside("starts")).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for line in starts.lines() {
        assert!(seen.insert(line.to_owned()), "the agent was started twice for attempt {line}: {starts}");
    }
    assert!(seen.len() <= charged.len(), "the agent started before its journal line: {starts}");
    let listed = home.run(["runs", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
}

fn moments(salt: u64, more: &[&str]) {
    let seed = seed();
    println!("TRIPHAMMER_TEST_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed ^ salt);
    let total = {
        let (home, agent) = home();
        let mut live = start(&home, &agent, more);
        let mut lines = 0;
        while live.line().is_some() {
            lines += 1;
        }
        let (code, _) = live.end();
        assert_eq!(code, Some(0));
        assert_eq!(home.only_run().summary()["attempts"], 3);
        lines
    };
    let mut interrupted = 0;
    for moment in 0..MOMENTS {
        let (home, agent) = home();
        let mut live = start(&home, &agent, more);
        let after = rng.usize(0..=total);
        let pause = Duration::from_micros(rng.u64(0..70_000));
        for _ in 0..after {
            if live.line().is_none() {
                break;
            }
        }
        std::thread::sleep(pause);
        live.kill();
        let what = format!("seed {seed}, moment {moment}: after {after} of {total} lines and {pause:?}");
        println!("{what}");
        wait_for_silence(&home);
        let Some(run) = begun(&home) else {
            // Killed before the run's first line: nothing to resume, and nothing in the way of the next.
            let mut live = start(&home, &agent, more);
            live.until("launch");
            let (code, _) = live.end();
            assert_eq!(code, Some(0), "{what}");
            continue;
        };
        check(&home, &run);
        let mut kills = 1;
        loop {
            let over =
                run.journal().iter().any(|l| l.effects.iter().any(|e| matches!(e, Effect::End { .. })));
            if over {
                break;
            }
            interrupted += usize::from(kills == 1);
            // Now and then the one that resumes is killed as well.
            if kills < 3 && rng.u8(..) < 80 {
                let mut live = Live::start(home.command(["resume", &run.id(), "--json"]));
                for _ in 0..rng.usize(0..total) {
                    if live.line().is_none() {
                        break;
                    }
                }
                std::thread::sleep(Duration::from_micros(rng.u64(0..70_000)));
                live.kill();
                kills += 1;
                wait_for_silence(&home);
                check(&home, &run);
                continue;
            }
            let ran = resume(&home, &run.id());
            assert_eq!(ran.code, Some(0), "{what}\n{}\n{}", ran.stdout, ran.stderr);
            break;
        }
        finish(&home, &run, &what);
    }
    assert!(interrupted > 0, "seed {seed}: no kill hit a run that was under way");
}

/// The run that has a journal, if the process got that far.
fn begun(home: &TestHome) -> Option<RunFiles> {
    let mut runs: Vec<RunFiles> = home.runs();
    assert!(runs.len() <= 1);
    let run = runs.pop()?;
    let text = std::fs::read(run.path().join("journal.jsonl")).unwrap_or_default();
    text.contains(&b'\n').then_some(run)
}

fn finish(home: &TestHome, run: &RunFiles, what: &str) {
    // Killed between its end and its seal, a run is over; the summary is derived.
    let shown = home.run(["show", &run.id(), "--json"]);
    assert_eq!(shown.code, Some(0), "{what}: {}", shown.stderr);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let summary = &shown["run"];
    assert_eq!(summary["outcome"], "accepted", "{what}: {summary}");
    let journal = run.journal();
    let begun = effects(&journal).iter().filter(|e| matches!(e, Effect::Implement { .. })).count();
    assert_eq!(summary["attempts"], begun, "{what}: every attempt is charged once");
    assert_eq!(summary["accepted_attempt"], begun, "{what}");
    let judged = journal.iter().filter(|l| matches!(l.event, Event::Judged { .. })).count();
    assert!(judged >= 1 && judged <= begun, "{what}: {judged} of {begun} judged");
    let workspace = std::path::Path::new(summary["workspace"].as_str().unwrap());
    let work = std::fs::read_to_string(workspace.join("work.txt")).unwrap();
    assert!(work.lines().count() >= 3, "{what}: {work}");
    check(home, run);
    wait_for_silence(home);
    let checkouts = std::fs::read_dir(home.state().join("triphammer/confirm")).map_or(0, Iterator::count);
    assert_eq!(checkouts, 0, "{what}: a fresh checkout was left behind");
}

#[test]
fn ten_moments() {
    moments(1, &[]);
}

#[test]
fn ten_more_moments() {
    moments(2, &[]);
}

#[test]
fn ten_moments_again() {
    moments(3, &[]);
}

#[test]
fn ten_moments_yet_again() {
    moments(4, &[]);
}

#[test]
fn ten_moments_apart() {
    // Apart, where acceptance is confirmed on a fresh checkout as well.
    moments(5, &["--isolate", "copy"]);
}
