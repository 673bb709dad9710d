//! Interrupts, and going on with what was left.

use rustix::process::Signal;
use triphammer_model::Event;
use triphammer_testkit::{TestHome, wait_until};

use crate::common::{Live, SPEC, resume, spec, strike, wait_for_silence, words};

use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

/// A home whose agent works, marks that it is at work, and hangs as long as a file `hang` lies beside the home.
fn hanging(gate: &str, attempts: u32, more: &str) -> (TestHome, String) {
    let home = TestHome::with_gates(&[("done", gate)]);
    spec(&home, &format!("attempts: {attempts}\n"), "");
    std::fs::write(home.beside("hang"), "").unwrap();
    let agent = format!(
        "{more} echo $TRIPHAMMER_ATTEMPT >> work.txt; echo $$ > {at}
         while test -e {hang}; do sleep 0.02; done",
        at = home.beside("at-work").display(),
        hang = home.beside("hang").display()
    );
    (home, agent)
}

fn start(home: &TestHome, agent: &str) -> Live {
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", agent]));
    wait_until("the agent at work", LONG, || {
        std::fs::read_to_string(home.beside("at-work")).is_ok_and(|t| t.ends_with('\n'))
    });
    live
}

#[test]
fn one_interrupt_ends_the_attempt_and_keeps_its_work() {
    for signal in [Signal::INT, Signal::TERM] {
        let (home, agent) = hanging("false", 3, "");
        let live = start(&home, &agent);
        live.signal(signal);
        let (code, last) = live.end();
        assert_eq!(code, Some(130));
        let last = last.expect("a last line");
        assert_eq!((&last["type"], &last["outcome"]), (&"done".into(), &"interrupted".into()), "{last}");
        wait_for_silence(&home);
        let run = home.only_run();
        let moved: Vec<String> = run.movement(1).observed.iter().map(|o| o.path.to_string()).collect();
        assert_eq!(moved, ["work.txt"], "its work is seen and kept");
        assert!(!run.path().join("attempts/001/report.json").exists(), "an interrupt skips the gates");
        let restored = home.beside("restored");
        let ran = home.run(["restore", "latest", "1", "--to", restored.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(restored.join("work.txt")).unwrap(), "1\n");

        // Two attempts are left; the interrupted one was charged.
        std::fs::remove_file(home.beside("hang")).unwrap();
        resume(&home, "latest").expect("rejected", "attempts-exhausted", 3, 1);
        assert_eq!(home.read("work.txt"), "1\n2\n3\n");
        assert!(run.brief(2).contains("interrupted"), "{}", run.brief(2));
    }
}

#[test]
fn a_resumed_run_is_accepted_when_its_work_gets_there() {
    let (home, agent) = hanging("test $(wc -l < work.txt) -ge 2", 5, "");
    home.write("work.txt", "");
    let live = start(&home, &agent);
    live.signal(Signal::INT);
    assert_eq!(live.end().0, Some(130));
    std::fs::remove_file(home.beside("hang")).unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 2, 0);
}

#[test]
fn an_interrupt_of_the_last_attempt_leaves_its_gates_to_resume() {
    let (home, agent) = hanging("test -f work.txt", 1, "");
    let live = start(&home, &agent);
    live.signal(Signal::INT);
    assert_eq!(live.end().0, Some(130));
    std::fs::remove_file(home.beside("hang")).unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn a_second_interrupt_kills_at_once() {
    // The agent takes no notice of TERM and INT: after one signal it would be given its grace.
    let (home, agent) = hanging("false", 3, "trap '' TERM INT HUP;");
    let mut live = start(&home, &agent);
    live.signal(Signal::INT);
    live.wait_for_talk("interrupted");
    live.signal(Signal::INT);
    let (code, _) = live.end();
    assert_eq!(code, Some(130));
    wait_for_silence(&home);
    let run = home.only_run();
    assert!(run.journal().iter().any(|l| matches!(l.event, Event::Interrupted { .. })));
    assert!(run.movement(1).observed.iter().any(|o| o.path.to_string() == "work.txt"));
    std::fs::remove_file(home.beside("hang")).unwrap();
    resume(&home, "latest").expect("rejected", "attempts-exhausted", 3, 1);
}

#[test]
fn an_interrupt_while_a_gate_runs_takes_the_gates_up_again() {
    let home = TestHome::new();
    let (at, hang) = (home.beside("at-work"), home.beside("hang"));
    let line = format!(
        "test -f work.txt || exit 1; echo $$ > {}; while test -e {}; do sleep 0.02; done",
        at.display(),
        hang.display()
    );
    home.write("gates/check.toml", &crate::common::pack("slow", &line, ""));
    home.write("specs/it.md", SPEC);
    std::fs::write(&hang, "").unwrap();
    let run = start(&home, "echo $TRIPHAMMER_ATTEMPT >> work.txt");
    run.signal(Signal::INT);
    assert_eq!(run.end().0, Some(130));
    wait_for_silence(&home);
    std::fs::remove_file(hang).unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
    assert_eq!(home.read("work.txt"), "1\n", "the agent was not asked again");
}

#[test]
fn an_interrupt_during_the_preflight_is_resumed_there() {
    let home = TestHome::new();
    let (at, hang) = (home.beside("at-work"), home.beside("hang"));
    let line = format!(
        "echo $$ > {}; while test -e {}; do sleep 0.02; done; test -f work.txt",
        at.display(),
        hang.display()
    );
    home.write("gates/check.toml", &crate::common::pack("slow", &line, ""));
    home.write("specs/it.md", SPEC);
    std::fs::write(&hang, "").unwrap();
    let run = start(&home, "touch work.txt");
    run.signal(Signal::INT);
    assert_eq!(run.end().0, Some(130));
    wait_for_silence(&home);
    std::fs::remove_file(hang).unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn a_dead_run_leaves_nothing_that_works_on() {
    let (home, agent) = hanging("test $(wc -l < work.txt) -ge 2", 5, "setsid sleep 1000 &");
    home.write("work.txt", "");
    start(&home, &agent).kill();
    wait_for_silence(&home);
    std::fs::remove_file(home.beside("hang")).unwrap();
    // The attempt that was cut off is charged; its work is where the next one starts.
    resume(&home, "latest").expect("accepted", "gates-passed", 2, 0);
    let run = home.only_run();
    assert!(words(&run).contains(&"resumed"));
    assert_eq!(run.movement(1).observed.len(), 1);
}

#[test]
fn a_parked_attempt_is_taken_up_under_its_number() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = "[ -e ../paid ] && touch done.txt || echo '{\"fault\": {\"kind\": \"quota\", \"reset_at\":
        \"2031-01-01T00:00:00Z\"}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &[]).expect("suspended", "quota", 0, 5);
    assert_eq!(home.only_run().summary()["until"], "2031-01-01T00:00:00Z");
    resume(&home, "latest").expect("suspended", "quota", 0, 5);
    std::fs::write(home.beside("paid"), "").unwrap();
    resume(&home, "latest").expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn what_is_over_is_not_resumed_and_what_is_unknown_is_named() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let none = resume(&home, "latest");
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("no run"), "{}", none.stderr);
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
    let over = resume(&home, "latest");
    assert_eq!(over.code, Some(2), "{}", over.stderr);
    assert!(over.stderr.contains("is over: accepted"), "{}", over.stderr);
    let unknown = resume(&home, "19990101");
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("19990101"), "{}", unknown.stderr);
}

#[test]
fn a_run_at_work_cannot_be_resumed_or_decided() {
    let (home, agent) = hanging("false", 1, "");
    let live = start(&home, &agent);
    let ran = resume(&home, "latest");
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("being worked on"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    let ran = home.run(["undo", "latest"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    std::fs::remove_file(home.beside("hang")).unwrap();
    assert_eq!(live.end().0, Some(1));
}
