//! Seeing what happened: raw endings are kept, and what failed reaches whoever is to mend it.

use triphammer_model::FaultKind;
use triphammer_model::process::WaitStatus;

use crate::fake::{Fake, agent_ends};

/// Each end as the kernel said it: in the journal, in the summary, and for a person.
#[test]
fn the_raw_wait_status_is_recorded_and_shown() {
    let exited = |code| WaitStatus::Exited { code };
    let signalled = |signal| WaitStatus::Signalled { signal };
    for (script, keys, wait, fault, shown) in [
        ("exit 3", "", exited(3), None, "exit code 3"),
        // A number that a shell would use for a signal is still a number.
        ("exit 137", "", exited(137), None, "exit code 137"),
        ("exit 124", "", exited(124), None, "exit code 124"),
        ("exit 255", "", exited(255), None, "exit code 255"),
        ("kill -9 $$", "", signalled(9), None, "signal 9"),
        ("kill -TERM $$", "", signalled(15), None, "signal 15"),
        ("ulimit -c 0; kill -SEGV $$", "", signalled(11), None, "signal 11"),
        (
            "exec sleep 9999",
            "timeout = \"500ms\"",
            WaitStatus::TimedOut { code: None, signal: Some(15) },
            Some(FaultKind::TimedOut),
            "deadline",
        ),
        (
            "trap 'exit 7' TERM; sleep 9999 & wait",
            "timeout = \"500ms\"",
            WaitStatus::TimedOut { code: Some(7), signal: None },
            Some(FaultKind::TimedOut),
            "deadline",
        ),
        (
            "exec sleep 9999",
            "idle_timeout = \"500ms\"",
            WaitStatus::Idle { code: None, signal: Some(15) },
            Some(FaultKind::Idle),
            "silence",
        ),
    ] {
        let fake =
            Fake::new(&[("works", "false")]).agent("fa", keys, &format!("echo x > work.txt\n{script}"));
        fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
        let run = fake.run();
        let ends = agent_ends(&run);
        assert_eq!(ends.len(), 1, "{script}");
        assert_eq!(ends[0].1.wait, wait, "{script}");
        assert_eq!(ends[0].1.fault.as_ref().map(|f| f.kind), fault, "{script}");
        let history = run.summary()["history"][0]["wait"].clone();
        assert_eq!(serde_json::from_value::<WaitStatus>(history).unwrap(), wait, "{script}");
        assert!(run.text("attempts/001/transcript.jsonl").contains("\"how\""), "{script}");
        let show = fake.home.run(["show", "latest", "1"]);
        assert!(show.stdout.contains(shown), "{script}: no `{shown}` in {}", show.stdout);
    }
}

/// What agents said about themselves stands beside it, not in its place.
#[test]
fn a_claimed_fault_does_not_replace_the_raw_status() {
    let fake = Fake::new(&[("works", "false")]).agent(
        "fa",
        "",
        "echo x > work.txt; echo '{\"fault\": {\"kind\": \"timed-out\", \"message\": \"I was out of time\"}}' > \"$TRIPHAMMER_RECEIPT\"; exit 3",
    );
    fake.forge(["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    let (_, facts) = agent_ends(&fake.run()).remove(0);
    assert_eq!(facts.wait, WaitStatus::Exited { code: 3 });
    assert_eq!(facts.fault.map(|f| f.kind), Some(FaultKind::TimedOut));
    assert_eq!(fake.run().receipt(1).fault.unwrap().message.as_deref(), Some("I was out of time"));
}

/// What failed is in the next brief, whichever way the brief goes, and the same text is kept.
#[test]
fn the_next_brief_holds_the_findings() {
    for (way, read) in [
        ("stdin", "cat > \"$BESIDE/brief-$n\""),
        ("file", "for last; do :; done; cat \"$last\" > \"$BESIDE/brief-$n\""),
        ("arg", "for last; do :; done; printf %s \"$last\" > \"$BESIDE/brief-$n\""),
    ] {
        let fake = Fake::new(&[(
            "unit",
            // In pieces, since the brief shows the gate's command as well.
            "grep -q 2 sum.txt 2>/dev/null || { echo \"sum.txt:1: error: expected 2, found \"'nothing like it' >&2; exit 4; }",
        )])
        .agent(
            "fa",
            &format!("prompt = \"{way}\""),
            &format!("n=$TRIPHAMMER_ATTEMPT\n{read}\ncmp -s \"$TRIPHAMMER_BRIEF\" \"$BESIDE/brief-$n\" || echo differs >> \"$BESIDE/differs\"\necho $n > sum.txt"),
        );
        fake.spec("", "## Constraints\n- only whole numbers\n");
        fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
        let run = fake.run();
        for attempt in [1, 2] {
            let got = std::fs::read_to_string(fake.beside(&format!("brief-{attempt}"))).unwrap();
            assert_eq!(got, run.brief(attempt), "{way}: what the agent got is what is kept");
            assert!(got.contains("Do the work.") && got.contains("only whole numbers"), "{way}");
        }
        assert!(fake.lines("differs").is_empty(), "{way}");
        assert!(!run.brief(1).contains("expected 2, found nothing"), "{way}");
        for wanted in ["unit", "sum.txt:1", "expected 2, found nothing like it", "exited with code 4"] {
            assert!(run.brief(2).contains(wanted), "{way}: no `{wanted}` in {}", run.brief(2));
        }
    }
}

/// The end of a long output is what matters; the brief says how much is left out, and stays small.
#[test]
fn a_long_output_reaches_the_brief_by_its_end() {
    let fake = Fake::new(&[(
        "unit",
        "i=0; while test $i -lt 3000; do echo \"noise line $i of a very long build\"; i=$((i+1)); done; echo 'assertion failed: left 1, right 2'; test -f done.txt",
    )])
    .agent("fa", "", "echo x > work.txt; test $TRIPHAMMER_ATTEMPT = 2 && touch done.txt; true");
    fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
    let brief = fake.run().brief(2);
    assert!(brief.contains("assertion failed: left 1, right 2"), "{brief}");
    assert!(!brief.contains("noise line 5 of"), "{brief}");
    assert!(brief.len() < 32 << 10, "{}", brief.len());
    // The whole of it is on disk.
    assert!(fake.run().text("attempts/001/gates/unit.log").contains("noise line 5 of"));
}

/// Gates that were held back are named, so that the next attempt does not take them for passed.
#[test]
fn the_brief_names_what_has_not_been_judged_yet() {
    let fake = Fake::new(&[]).agent(
        "fa",
        "",
        "echo x >> work.txt; test $TRIPHAMMER_ATTEMPT = 2 && touch built; true",
    );
    fake.home.write(
        "gates/two.toml",
        "[[gate]]\nname = \"compiles\"\nkind = \"build\"\nrun = [\"sh\", \"-c\", \"test -f built\"]\n\
         [[gate]]\nname = \"behaves\"\nkind = \"test\"\nrun = [\"sh\", \"-c\", \"test -f built\"]\n",
    );
    fake.forge([""; 0]).expect("accepted", "gates-passed", 2, 0);
    let brief = fake.run().brief(2);
    assert!(brief.contains("compiles") && brief.contains("behaves"), "{brief}");
    let report = fake.run().text("attempts/001/report.json");
    assert!(report.contains("\"blocked_by\""), "{report}");
}
