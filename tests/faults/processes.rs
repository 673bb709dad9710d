//! Processes and clocks: however an agent ends or has to be ended, its whole tree is dead and its work is judged.

use rustix::process::Signal;
use triphammer_model::process::WaitStatus;
use triphammer_model::{Event, FaultKind};

use crate::fake::{Fake, GIT, agent_ends, end, git, signal, start, touched};

const WAIT_FOR_WORK: &[(&str, &str)] = &[("works", "test -f work.txt")];

/// Children of all kinds, each with its process id in `$BESIDE/pids`: in the background, deaf to signals, in a session
/// of its own, an orphan, and one in a shell below.
const CHILDREN: &str = r#"
sleep 9999 & echo $! >> "$BESIDE/pids"
sh -c 'trap "" TERM HUP INT; echo $$ >> "$BESIDE/pids"; while :; do sleep 1; done' &
setsid sh -c 'echo $$ >> "$BESIDE/pids"; exec sleep 9999' &
(setsid sh -c 'trap "" TERM; echo $$ >> "$BESIDE/pids"; exec sleep 9999' >/dev/null 2>&1 </dev/null &)
nohup sh -c 'sh -c "echo \$\$ >> \"$BESIDE/pids\"; exec sleep 9999"' >/dev/null 2>&1 &
while test $(wc -l < "$BESIDE/pids") -lt 5; do sleep 0.05; done
"#;

#[test]
fn an_agent_deaf_to_term_is_killed_with_its_whole_tree() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "timeout = \"1s\"",
        &format!(
            "trap '' TERM; echo $$ >> \"$BESIDE/pids\"; touch work.txt\n{CHILDREN}\nwhile :; do sleep 1; done"
        ),
    );
    // It was done before it hung: its work is accepted.
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    assert_eq!(fake.pids("pids").len(), 5 + 1);
    fake.assert_dead("pids");
    let (_, facts) = agent_ends(&fake.run()).remove(0);
    assert_eq!(facts.wait, WaitStatus::TimedOut { code: None, signal: Some(9) });
}

/// An agent that is done does not hold the run up by what it leaves running, even where that holds its output open.
#[test]
fn what_an_agent_leaves_running_is_ended_and_not_waited_for() {
    let fake = Fake::new(WAIT_FOR_WORK).agent("fa", "", &format!("{CHILDREN}\ntouch work.txt\necho ready"));
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    assert_eq!(fake.pids("pids").len(), 5);
    fake.assert_dead("pids");
    assert_eq!(agent_ends(&fake.run())[0].1.wait, WaitStatus::Exited { code: 0 });
}

/// What an agent leaves running cannot go on writing while the gates judge.
#[test]
fn nothing_writes_after_the_look() {
    let fake = Fake::new(&[(
        "works",
        "a=$(cat work.txt); sleep 1; test \"$a\" = \"$(cat work.txt)\"; test -f never",
    )])
    .agent(
        "fa",
        "",
        "(setsid sh -c 'echo $$ >> \"$BESIDE/pids\"; while :; do date +%s%N > work.txt; done' &)\n\
             while ! test -s \"$BESIDE/pids\" || ! test -s work.txt; do sleep 0.05; done",
    );
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    fake.assert_dead("pids");
    // The tree that was judged is what lies there: nothing moved since.
    let restored = fake.beside("restored");
    let ran = fake.home.run(["restore", "latest", "1", "--to", restored.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(restored.join("work.txt")).unwrap(), fake.home.read("work.txt"));
}

/// Quiet is not hung: silence ends nobody before the time that was set for it.
#[test]
fn a_silent_agent_is_left_alone() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "idle_timeout = \"60s\"",
        "touch work.txt; sleep 8; echo '{\"type\": \"result\", \"result\": \"done\"}'",
    );
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    let run = fake.run();
    assert_eq!(agent_ends(&run)[0].1.wait, WaitStatus::Exited { code: 0 });
    assert!(run.text("attempts/001/stdout.log").contains("\"type\": \"result\""));
}

/// The silence counts on both streams together.
#[test]
fn words_on_either_stream_are_a_sign_of_life() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "idle_timeout = \"2s\"",
        "for i in 1 2 3 4 5 6; do sleep 0.5; echo . >&2; sleep 0.5; echo .; done; touch work.txt",
    );
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
}

/// Every way to end, with finished work in the folder: the same evidence, the same verdict.
#[test]
fn every_end_takes_the_same_path() {
    let mut expected: Option<Vec<String>> = None;
    for (what, keys, tail) in [
        ("exit 0", "", ""),
        ("exit 3", "", "exit 3"),
        ("its own signal", "", "kill -9 $$"),
        ("deadline", "timeout = \"1s\"", "sleep 9999"),
        ("silence", "idle_timeout = \"1s\"", "sleep 9999"),
        ("a broken receipt", "", "echo '{' > \"$TRIPHAMMER_RECEIPT\""),
        (
            "a fault of its own",
            "",
            "echo '{\"fault\": {\"kind\": \"refused\"}}' > \"$TRIPHAMMER_RECEIPT\"; exit 1",
        ),
        (
            "a fault that parks",
            "",
            "echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"; exit 1",
        ),
    ] {
        let fake = Fake::new(WAIT_FOR_WORK).agent(
            "fa",
            keys,
            &format!("touch work.txt; git add work.txt; {GIT} commit -qm work; echo said\n{tail}"),
        );
        git(&fake.home.path(), &["init", "-q"]);
        let ran = fake.forge([""; 0]);
        assert_eq!(ran.code, Some(0), "{what}: {}\n{}", ran.stdout, ran.stderr);
        ran.expect("accepted", "gates-passed", 1, 0);
        let run = fake.run();
        assert_eq!(touched(&run, 1), ["work.txt"], "{what}");
        assert!(run.report(1).ok, "{what}");
        let mut files: Vec<String> = std::fs::read_dir(run.path().join("attempts/001"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        for wanted in [
            "brief.md",
            "movement.json",
            "receipt.json",
            "report.json",
            "stdout.log",
            "stderr.log",
            "diff.patch",
        ] {
            assert!(files.iter().any(|f| f == wanted), "{what}: no {wanted} in {files:?}");
        }
        assert_eq!(&files, expected.get_or_insert_with(|| files.clone()), "{what}");
        let events: Vec<&str> = run.journal().iter().map(|l| l.event.word()).collect();
        let wanted = ["started", "preflighted", "looked", "agent-ended", "observed", "judged", "sealed"];
        assert_eq!(events, wanted, "{what}");
    }
}

/// An agent whose program is gone: three tries, no charge for the first two, and a reason on record.
#[test]
fn an_agent_that_cannot_be_started_says_why() {
    let fake =
        Fake::new(WAIT_FOR_WORK).section("[agents.gone]\nkind = \"command\"\nargv = [\"./no-such-agent\"]");
    let ran = fake.forge(["--agent", "gone"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("./no-such-agent"), "{}", ran.stderr);

    // It was there at the start, and then it removed itself.
    let fake = Fake::new(WAIT_FOR_WORK).section("[agents.fa]\nkind = \"command\"\nargv = [\"./agent.sh\"]");
    fake.home.write("agent.sh", "#!/bin/sh\nrm agent.sh\n");
    std::fs::set_permissions(
        fake.home.path().join("agent.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    fake.forge(["--attempts", "2"]).expect("rejected", "attempts-exhausted", 2, 1);
    let run = fake.run();
    let second: Vec<_> = agent_ends(&run).into_iter().filter(|(n, _)| *n == 2).collect();
    assert_eq!(second.len(), 3, "two retries, then it counts");
    for (_, facts) in second {
        assert!(matches!(facts.wait, WaitStatus::NotStarted { .. }), "{facts:?}");
        assert_eq!(facts.fault.map(|f| f.kind), Some(FaultKind::Crashed));
    }
}

/// Interrupted by a signal: the agent is ended, what it did is looked at, the run can be resumed.
#[test]
fn an_interrupt_ends_the_attempt_and_keeps_its_work() {
    for (what, sent) in [("INT", Signal::INT), ("TERM", Signal::TERM)] {
        let fake = Fake::new(WAIT_FOR_WORK).agent(
            "fa",
            "",
            &format!("echo half > half.txt; test $TRIPHAMMER_ATTEMPT = 2 && touch work.txt && exit\n{CHILDREN}\ntouch \"$BESIDE/ready\"; sleep 9999"),
        );
        let child = start(fake.forge_command([""; 0]));
        fake.wait_for("ready");
        signal(&child, sent);
        end(child).expect("interrupted", "interrupted", 1, 130);
        fake.assert_dead("pids");
        let run = fake.run();
        assert_eq!(touched(&run, 1), ["half.txt"], "{what}");
        assert!(matches!(agent_ends(&run)[0].1.wait, WaitStatus::Cancelled { .. }), "{what}");
        fake.resume().expect("accepted", "gates-passed", 2, 0);
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_the_deaf() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "",
        "trap '' TERM INT; echo $$ >> \"$BESIDE/pids\"; touch \"$BESIDE/ready\"; while :; do sleep 1; done",
    );
    let child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    signal(&child, Signal::INT);
    signal(&child, Signal::INT);
    end(child).expect("interrupted", "interrupted", 1, 130);
    fake.assert_dead("pids");
    assert_eq!(agent_ends(&fake.run())[0].1.wait, WaitStatus::Cancelled { code: None, signal: Some(9) });
}

/// Killed without a chance to clean up: the agent dies with it, and the work that it left is resumed.
#[test]
fn an_agent_dies_with_a_killed_run() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "",
        &format!(
            "test $TRIPHAMMER_ATTEMPT = 2 && touch work.txt && exit
             echo half > half.txt; echo $$ >> \"$BESIDE/pids\"\n{CHILDREN}\ntouch \"$BESIDE/ready\"; sleep 9999"
        ),
    );
    let mut child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    fake.resume().expect("accepted", "gates-passed", 2, 0);
    let run = fake.run();
    assert_eq!(touched(&run, 1), ["half.txt"], "the killed attempt was looked at");
    assert!(run.journal().iter().any(|l| matches!(l.event, Event::Resumed { .. })));
}

/// Killed together with the shim that guards the agent, so that nobody is left to end it: `resume` does.
#[test]
fn resume_ends_what_a_killed_run_left_behind() {
    let fake = Fake::new(WAIT_FOR_WORK).agent(
        "fa",
        "",
        "test $TRIPHAMMER_ATTEMPT = 2 && touch work.txt && exit
         echo half > half.txt; echo $$ >> \"$BESIDE/pids\"
         setsid sh -c 'echo $$ >> \"$BESIDE/pids\"; exec sleep 9999' &
         while test $(wc -l < \"$BESIDE/pids\") -lt 2; do sleep 0.05; done
         echo $PPID > \"$BESIDE/shim\"; touch \"$BESIDE/ready\"; sleep 9999",
    );
    let mut child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    let shim = rustix::process::Pid::from_raw(i32::try_from(fake.pids("shim")[0]).unwrap()).unwrap();
    // Stopped first, so that it cannot see its parent's end.
    rustix::process::kill_process(shim, Signal::STOP).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = rustix::process::kill_process(shim, Signal::KILL);
    fake.resume().expect("accepted", "gates-passed", 2, 0);
    fake.assert_dead("pids");
    assert_eq!(touched(&fake.run(), 1), ["half.txt"]);
}

/// Ends what breeds on when a test fails half way.
struct Stop(std::path::PathBuf);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.0, "");
    }
}

/// A chain of processes in sessions of their own, each gone as soon as the next one lives, and one that begets another
/// when it is told to end.
const HYDRA: &str = r#"
cat > "$BESIDE/chain.sh" <<'CHAIN'
test -f "$BESIDE/stop" && exit
echo $$ >> "$BESIDE/pids"
setsid sh "$BESIDE/chain.sh" >/dev/null 2>&1 &
CHAIN
cat > "$BESIDE/heir.sh" <<'HEIR'
echo $$ >> "$BESIDE/pids"; exec sleep 9999
HEIR
cat > "$BESIDE/trapped.sh" <<'TRAPPED'
trap 'setsid sh "$BESIDE/heir.sh" & exit' TERM
echo $$ >> "$BESIDE/pids"; touch "$BESIDE/trapped"
while :; do sleep 0.1; done
TRAPPED
sh "$BESIDE/chain.sh"
setsid sh "$BESIDE/trapped.sh" &
while ! test -f "$BESIDE/trapped"; do sleep 0.05; done
touch work.txt
"#;

/// Processes that beget others while they are being ended: in new sessions, one after another, and out of a handler.
#[test]
fn a_tree_that_grows_while_it_is_ended_is_dead_in_the_end() {
    for (what, keys, tail) in
        [("at its own end", "", ""), ("at its deadline", "timeout = \"1s\"", "sleep 9999")]
    {
        let fake = Fake::new(WAIT_FOR_WORK).agent("fa", keys, &format!("{HYDRA}\n{tail}"));
        let _stop = Stop(fake.beside("stop"));
        fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
        let pids = fake.pids("pids");
        assert!(pids.len() > 3, "{what}: {pids:?}");
        fake.assert_dead("pids");
        // Nothing was born after the last look at the list either.
        assert_eq!(fake.pids("pids").len(), pids.len(), "{what}");
    }
}

/// A gate dies with a killed run as an agent does, and its attempt is judged again, not charged again.
#[test]
fn a_gate_dies_with_a_killed_run() {
    let gate = "test -f work.txt || exit 1; test -f \"$BESIDE/ready\" && exit 0
        setsid sh -c 'echo $$ >> \"$BESIDE/pids\"; exec sleep 9999' &
        while ! test -s \"$BESIDE/pids\"; do sleep 0.05; done
        echo $$ >> \"$BESIDE/pids\"; touch \"$BESIDE/ready\"; sleep 9999";
    let fake = Fake::new(&[("works", gate)]).agent("fa", "", "touch work.txt");
    let mut child = start(fake.forge_command(["--attempts", "1"]));
    fake.wait_for("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    assert_eq!(fake.pids("pids").len(), 2);
    fake.resume().expect("accepted", "gates-passed", 1, 0);
    assert_eq!(fake.launches("fa"), 1);
}

/// An agent that kills or stops the process that guards it gains nothing: its tree is ended, its work is judged.
#[test]
fn an_agent_that_attacks_its_guard_gains_nothing() {
    for (what, attack) in
        [("killed", "kill -9 $PPID; sleep 9999"), ("stopped", "kill -STOP $PPID; sleep 1; exit 3")]
    {
        let fake = Fake::new(WAIT_FOR_WORK).agent("fa", "", &format!("{CHILDREN}\ntouch work.txt\n{attack}"));
        fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
        fake.assert_dead("pids");
        let (_, facts) = agent_ends(&fake.run()).remove(0);
        // What was not seen is not made up.
        let seen = matches!(facts.wait, WaitStatus::Unknown | WaitStatus::Exited { code: 3 });
        assert!(seen, "{what}: {:?}", facts.wait);
        assert_eq!(facts.wait == WaitStatus::Unknown, what == "killed", "{what}: {:?}", facts.wait);
    }
}
