//! The breaker: it fires on proof, holds once, and is not fooled either way.

use triphammer_model::{Content, Effect, Event, Standing, TakeOver};
use triphammer_testkit::{RunFiles, TestHome};

use crate::common::{effects, failing_crate, failing_rules, holds, pack, spec, strike};

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55";

fn red() -> TestHome {
    TestHome::with_gates(&[("never", "false")])
}

#[test]
fn an_agent_that_does_nothing_stalls_at_three_with_the_rust_pack() {
    let home = TestHome::new();
    failing_crate(&home);
    let ran = strike(&home, "true", &[]);
    ran.expect("rejected", "stalled", 3, 3);
    let run = home.only_run();
    let identities: Vec<_> = (1..=3).map(|n| run.report(n).identity.clone()).collect();
    assert!(identities.windows(2).all(|w| w[0] == w[1]), "{identities:?}");
    for attempt in 1..=3 {
        assert!(run.movement(attempt).observed.is_empty(), "{:?}", run.movement(attempt).observed);
        assert!(!failing_rules(&run, attempt).is_empty());
    }
}

#[test]
fn a_heredoc_each_time_runs_to_the_cap_with_the_rust_pack() {
    let home = TestHome::new();
    failing_crate(&home);
    let agent = "cat > src/lib.rs <<EOF\n// try $TRIPHAMMER_ATTEMPT\npub fn sum(a: i32, b: i32) -> i32 {\n    a - b\n}\nEOF\n";
    strike(&home, agent, &["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
    let run = home.only_run();
    for attempt in 1..=4 {
        let movement = run.movement(attempt);
        let moved: Vec<_> = movement.observed.iter().map(|o| o.path.to_string()).collect();
        assert_eq!(moved, ["src/lib.rs"], "attempt {attempt}");
        assert!(movement.claimed.is_empty(), "a heredoc is in no receipt");
    }
}

#[test]
fn the_same_bytes_again_are_no_movement_by_default() {
    let agent = "printf same > file.txt";
    let home = red();
    home.write("file.txt", "same");
    strike(&home, agent, &[]).expect("rejected", "stalled", 3, 3);
    let movement = home.only_run().movement(1);
    assert_eq!(movement.observed.len(), 1, "the touch is recorded all the same");
    assert_eq!(movement.observed[0].content, Content::Same);
    assert!(movement.touched.is_empty());

    let home = red();
    home.write("file.txt", "same");
    home.write("triphammer.toml", "[breaker]\nmovement = \"stat\"\n");
    strike(&home, agent, &["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
}

#[test]
fn what_a_gate_writes_saves_nobody() {
    let home = TestHome::with_gates(&[("writes", "date +%s.%N >> made-by-gate.txt; exit 1")]);
    strike(&home, "true", &[]).expect("rejected", "stalled", 3, 3);
    assert!(home.read("made-by-gate.txt").lines().count() >= 4, "preflight and three attempts");
}

#[test]
fn output_that_differs_each_time_hides_no_stall() {
    let home = TestHome::with_gates(&[("noisy", "echo took $(date +%N) ns in thread $$; exit 1")]);
    strike(&home, "true", &[]).expect("rejected", "stalled", 3, 3);
}

#[test]
fn churning_caches_stalls_at_three() {
    let churn = [
        "mkdir -p node_modules/left-pad && date +%s.%N > node_modules/left-pad/index.js".to_owned(),
        format!("mkdir -p target && printf '{TAG}' > target/CACHEDIR.TAG && date +%s.%N > target/out"),
        "mkdir -p .git .claude/todos __pycache__; date +%s.%N | tee .git/x .claude/todos/y __pycache__/z"
            .to_owned(),
    ];
    for agent in churn {
        let home = red();
        strike(&home, &agent, &[]).expect("rejected", "stalled", 3, 3);
        let run = home.only_run();
        assert_eq!(holds(&run), 0, "caches never hold: {agent}");
        assert!(run.movement(2).observed.is_empty());
        assert!(run.movement(2).bounds.pruned_count > 0, "what was pruned is disclosed: {agent}");
    }
}

#[test]
fn a_cache_tag_in_an_unknown_folder_is_a_claim_and_hides_nothing() {
    let agent = format!("mkdir -p work && printf '{TAG}' > work/CACHEDIR.TAG && date +%s.%N > work/out");
    strike(&red(), &agent, &["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
}

#[test]
fn a_cache_tag_in_a_folder_of_the_deliverable_hides_nothing() {
    let home = red();
    home.write("target/kept.txt", "a deliverable, whatever its name");
    let agent = format!("printf '{TAG}' > target/CACHEDIR.TAG; date +%s.%N > target/kept.txt");
    strike(&home, &agent, &["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
}

#[test]
fn tools_alone_hold_once_and_are_named() {
    let agent = "mkdir -p .local/bin && date +%s.%N > .local/bin/tool";
    let home = red();
    let ran = strike(&home, agent, &[]);
    ran.expect("rejected", "stalled", 4, 3);
    let run = home.only_run();
    assert_eq!(holds(&run), 1);
    let remark = ran.lines().into_iter().find(|l| {
        l["type"] == "remark"
            && l["text"].as_str().is_some_and(|t| t.contains("held") && t.contains("infrastructure"))
    });
    assert!(remark.is_some(), "{}", ran.stdout);
    assert!(run.brief(4).contains("held open once"), "{}", run.brief(4));
    assert!(run.movement(3).infrastructure.is_some_and(|i| i.moved > 0));

    // The same without --json: the reason is on stderr.
    let home = red();
    home.write("specs/it.md", crate::common::SPEC);
    let plain = home.run(["run", "specs/it.md", "--agent-cmd", agent]);
    assert_eq!(plain.code, Some(3), "{}", plain.stderr);
    assert!(plain.stderr.contains("breaker held once"), "{}", plain.stderr);

    let home = red();
    home.write("triphammer.toml", "[breaker]\ninfrastructure = \"ignore\"\n");
    strike(&home, agent, &[]).expect("rejected", "stalled", 3, 3);
}

#[test]
fn phantom_claims_do_not_hold() {
    let agent = r#"echo '{"files": [{"path": "src/ghost.rs", "kind": "added"}, {"path": "old.txt", "kind": "changed"},
        {"path": "gone.txt", "kind": "deleted"}]}' > "$TRIPHAMMER_RECEIPT""#;
    let home = red();
    home.write("old.txt", "older than the attempt");
    strike(&home, agent, &[]).expect("rejected", "stalled", 3, 3);
    let movement = home.only_run().movement(3);
    assert_eq!(movement.claimed.len(), 3);
    assert!(movement.claimed.iter().all(|c| c.standing == Standing::Disproved), "{:?}", movement.claimed);

    let home = red();
    home.write("triphammer.toml", "[breaker]\nclaims = \"all\"\n");
    strike(&home, agent, &["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
}

#[test]
fn a_claim_that_the_world_bears_out_counts_in_a_hidden_folder() {
    let agent = r#"mkdir -p .tools && date +%s.%N > .tools/plan.md
        echo '{"files": [{"path": ".tools/plan.md", "kind": "changed"}]}' > "$TRIPHAMMER_RECEIPT""#;
    let home = red();
    strike(&home, agent, &["--attempts", "5"]).expect("rejected", "attempts-exhausted", 5, 1);
    let run = home.only_run();
    assert_eq!(holds(&run), 0, "there was nothing to hold");
    for attempt in 1..=5 {
        let movement = run.movement(attempt);
        assert_eq!(movement.claimed[0].standing, Standing::Corroborated, "attempt {attempt}");
        assert_eq!(movement.touched.len(), 1);
    }
}

#[test]
fn work_that_is_already_seen_is_observed_not_corroborated() {
    let agent = r#"date +%N > notes.txt; echo '{"files": [{"path": "notes.txt", "kind": "added"}]}' > "$TRIPHAMMER_RECEIPT""#;
    let home = red();
    strike(&home, agent, &["--attempts", "1"]).expect("rejected", "attempts-exhausted", 1, 1);
    assert_eq!(home.only_run().movement(1).claimed[0].standing, Standing::Observed);
}

#[test]
fn one_idle_repeat_is_tolerated() {
    let agent = "[ $((TRIPHAMMER_ATTEMPT % 2)) = 0 ] || echo $TRIPHAMMER_ATTEMPT > notes.txt";
    strike(&red(), agent, &["--attempts", "6"]).expect("rejected", "attempts-exhausted", 6, 1);
}

#[test]
fn reports_that_differ_are_no_proof() {
    let home = TestHome::new();
    let counter = home.beside("counter");
    // Another complaint each time: part of the identity. It goes round, so it proves nothing either way.
    let line = format!(
        "n=$(cat {0} 2>/dev/null || echo 0); n=$(((n + 1) % 2)); echo $n > {0}
         [ $n = 0 ] && echo 'a.txt:1: odd' || echo 'a.txt:1: even'; exit 1",
        counter.display()
    );
    home.write("a.txt", "1\n");
    home.write("gates/check.toml", &pack("moves", &line, ""));
    strike(&home, "true", &["--attempts", "6"]).expect("rejected", "attempts-exhausted", 6, 1);
}

#[test]
fn numbers_that_differ_hide_no_stall_when_identities_are_normalised() {
    let stalls = |policy: &str| {
        let home = TestHome::new();
        let counter = home.beside("counter");
        let line = format!(
            "n=$(cat {0} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {0}; echo \"a.txt:1: seed $n\"; exit 1",
            counter.display()
        );
        home.write("a.txt", "1\n");
        home.write("gates/check.toml", &pack("moves", &line, ""));
        home.write("triphammer.toml", policy);
        let ran = strike(&home, "true", &["--attempts", "4"]);
        let run = home.only_run();
        let (first, second) = (run.report(1), run.report(2));
        assert_ne!(first.identity, second.identity);
        assert_eq!(first.identity_normalised, second.identity_normalised);
        ran
    };
    stalls("").expect("rejected", "attempts-exhausted", 4, 1);
    stalls("[breaker]\nidentity = \"normalised\"\n").expect("rejected", "stalled", 3, 3);
}

#[test]
fn stalled_wins_over_exhausted() {
    strike(&red(), "true", &["--attempts", "3"]).expect("rejected", "stalled", 3, 3);
    strike(&red(), "true", &["--attempts", "2"]).expect("rejected", "attempts-exhausted", 2, 1);
}

#[test]
fn more_proofs_take_longer() {
    let home = red();
    home.write("triphammer.toml", "[breaker]\nproofs = 4\n");
    strike(&home, "true", &["--attempts", "6"]).expect("rejected", "stalled", 4, 3);
}

/// Who took over at which attempt, from which attempt's tree, and why.
fn take_overs(run: &RunFiles) -> Vec<(u32, String, u32, Option<TakeOver>)> {
    let all = effects(&run.journal());
    let took = all.iter().filter_map(|effect| match effect {
        Effect::Look { attempt, agent, from: Some(from), why } => {
            Some((attempt.get(), agent.to_string(), *from, *why))
        }
        _ => None,
    });
    took.collect()
}

#[test]
fn the_next_of_a_chain_takes_over_on_a_stall_and_shares_the_attempts() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write(
        "triphammer.toml",
        "[agents.lazy]\nkind = \"command\"\nargv = [\"true\"]\n\
         [agents.able]\nkind = \"command\"\nargv = [\"touch\", \"done.txt\"]\n\
         [agents.idle]\nkind = \"command\"\nargv = [\"true\"]\n",
    );
    spec(&home, "agent: [lazy, able]\n", "");
    home.forge(["specs/it.md"]).expect("accepted", "gates-passed", 4, 0);
    let run = home.only_run();
    let agents: Vec<String> = run.summary()["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["agent"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(agents, ["lazy", "lazy", "lazy", "able"]);
    let note = "You take over from agent `lazy`: it stalled: its attempts moved nothing any more. The workspace is as it \
                was after attempt 3.";
    assert!(run.brief(4).contains(note), "{}", run.brief(4));
    assert_eq!(take_overs(&run), [(4, "able".to_owned(), 3, Some(TakeOver::Stalled))]);

    // Attempts are shared: nothing is left for the second.
    let home2 = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home2.write("triphammer.toml", &home.read("triphammer.toml"));
    spec(&home2, "agent: [lazy, able]\nattempts: 3\n", "");
    home2.forge(["specs/it.md"]).expect("rejected", "attempts-exhausted", 3, 1);

    // Stalled only when the last one stalls.
    let home3 = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home3.write("triphammer.toml", &home.read("triphammer.toml"));
    spec(&home3, "attempts: 8\n", "");
    home3.forge(["specs/it.md", "--agent", "lazy,idle"]).expect("rejected", "stalled", 6, 3);
}

#[test]
fn the_next_of_a_chain_starts_from_the_best_tree() {
    let home = TestHome::with_gates(&[("one", "test -f one.txt"), ("two", "test -f two.txt")]);
    home.write(
        "triphammer.toml",
        "[agents.half]\nkind = \"command\"\n\
         argv = [\"sh\", \"-c\", \"if [ $TRIPHAMMER_ATTEMPT = 1 ]; then touch one.txt; else rm -f one.txt; fi\"]\n\
         [agents.able]\nkind = \"command\"\nargv = [\"touch\", \"two.txt\"]\n",
    );
    spec(&home, "agent: [half, able]\nattempts: 9\n", "");
    // Attempt 1 reaches one of two; 2, 3 and 4 lose it and repeat.
    home.forge(["specs/it.md"]).expect("accepted", "gates-passed", 5, 0);
    assert!(home.path().join("one.txt").exists());
    let run = home.only_run();
    assert_eq!(take_overs(&run), [(5, "able".to_owned(), 1, Some(TakeOver::Stalled))]);
    // Its brief is about the tree that it gets, not about the one that was given up.
    let (brief, given_up) = (run.brief(5), run.brief(4));
    assert!(given_up.contains("# What the gates found in attempt 3"), "{given_up}");
    assert!(brief.contains("# What the gates found in attempt 1"), "{brief}");
}

#[test]
fn an_expired_login_hands_over_without_a_charge() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write(
        "triphammer.toml",
        "[agents.locked-out]\nkind = \"command\"\n\
         argv = [\"sh\", \"-c\", '''echo '{\"fault\": {\"kind\": \"authentication\"}}' > \"$TRIPHAMMER_RECEIPT\"; exit 1''']\n\
         [agents.able]\nkind = \"command\"\nargv = [\"touch\", \"done.txt\"]\n",
    );
    spec(&home, "agent: [locked-out, able]\n", "");
    home.forge(["specs/it.md"]).expect("accepted", "gates-passed", 1, 0);
    let journal = home.only_run().journal();
    let ended: Vec<String> = journal
        .iter()
        .filter_map(|l| match &l.event {
            Event::AgentEnded { agent, attempt, .. } => Some(format!("{agent} {attempt}")),
            _ => None,
        })
        .collect();
    assert_eq!(ended, ["locked-out 1", "able 1"]);
    let run = home.only_run();
    assert_eq!(take_overs(&run), [(1, "able".to_owned(), 0, Some(TakeOver::Authentication))]);
    let note = "You take over from agent `locked-out`: its login is missing or expired. The workspace is as it was at the \
                start.";
    assert!(run.brief(1).contains(note), "{}", run.brief(1));
    let shown = home.run(["show", "latest"]).stdout;
    let said = "able took over at attempt 1, from the tree of the start; the agent before: its login is missing or expired";
    assert!(shown.contains(said), "{shown}");

    // Alone it parks the run, and no attempt is charged.
    let home2 = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home2.write("triphammer.toml", &home.read("triphammer.toml"));
    spec(&home2, "agent: locked-out\n", "");
    home2.forge(["specs/it.md"]).expect("suspended", "authentication", 0, 5);
}

#[test]
fn a_spent_quota_hands_over_the_work_that_was_done() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write(
        "triphammer.toml",
        "[agents.half]\nkind = \"command\"\n\
         argv = [\"sh\", \"-c\", '''echo > half.txt; echo '{\"fault\": {\"kind\": \"quota\"}}' > \"$TRIPHAMMER_RECEIPT\"''']\n\
         [agents.able]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"test -f half.txt && touch done.txt\"]\n",
    );
    spec(&home, "agent: [half, able]\n", "");
    let ran = home.run(["run", "specs/it.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = "attempt 1 of 5: able, takes over from attempt 1 (the agent before: its quota is spent)";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let run = home.only_run();
    assert_eq!(take_overs(&run), [(1, "able".to_owned(), 1, Some(TakeOver::Quota))]);
    assert!(
        run.brief(1).contains("You take over from agent `half`: its quota is spent."),
        "{}",
        run.brief(1)
    );
}
