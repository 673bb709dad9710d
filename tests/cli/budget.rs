//! Money, tokens and time: caps, and what is unknown under one.

use triphammer_testkit::TestHome;

use crate::common::{resume, spec, strike};

fn red() -> TestHome {
    TestHome::with_gates(&[("never", "false")])
}

/// Works a little and says what it cost.
fn costing(usd: &str) -> String {
    format!("echo $TRIPHAMMER_ATTEMPT > notes.txt; echo '{{\"cost_usd\": {usd}}}' > \"$TRIPHAMMER_RECEIPT\"")
}

#[test]
fn a_money_cap_ends_the_run() {
    let home = red();
    strike(&home, &costing("0.40"), &["--max-cost", "1.00"]).expect("rejected", "budget-exhausted", 3, 4);
    assert_eq!(home.only_run().summary()["spent"]["cost"], 1_200_000, "{}", home.only_run().summary());
}

#[test]
fn a_token_cap_ends_the_run() {
    let agent = "echo $TRIPHAMMER_ATTEMPT > notes.txt
        echo '{\"tokens\": {\"input\": 300, \"cached\": 100, \"output\": 200}}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&red(), agent, &["--max-tokens", "1000"]).expect("rejected", "budget-exhausted", 2, 4);
}

#[test]
fn the_first_attempt_always_completes_and_the_time_cap_holds_at_the_boundary() {
    strike(&red(), "echo $TRIPHAMMER_ATTEMPT > notes.txt", &["--budget", "1ms"]).expect(
        "rejected",
        "budget-exhausted",
        1,
        4,
    );
}

#[test]
fn an_unknown_cost_under_a_cap_suspends_and_resume_is_consent() {
    let home = red();
    spec(&home, "attempts: 3\nmax_cost: 1.00\n", "");
    strike(&home, "echo $TRIPHAMMER_ATTEMPT > notes.txt", &[]).expect("suspended", "cost-unknown", 1, 5);
    let run = home.only_run().id();
    resume(&home, &run).expect("suspended", "cost-unknown", 2, 5);
    resume(&home, "latest").expect("rejected", "attempts-exhausted", 3, 1);
    let again = resume(&home, &run);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("is over"), "{}", again.stderr);
}

#[test]
fn unknown_tokens_under_a_cap_suspend() {
    strike(&red(), "echo $TRIPHAMMER_ATTEMPT > notes.txt", &["--max-tokens", "1000"]).expect(
        "suspended",
        "tokens-unknown",
        1,
        5,
    );
}

#[test]
fn an_unknown_cost_can_be_ignored() {
    let home = red();
    home.write("triphammer.toml", "[run]\nunknown_cost = \"ignore\"\nmax_cost = 1.00\nattempts = 2\n");
    strike(&home, "echo $TRIPHAMMER_ATTEMPT > notes.txt", &[]).expect("rejected", "attempts-exhausted", 2, 1);
}

#[test]
fn without_a_cap_an_unknown_cost_is_only_counted() {
    let home = red();
    strike(&home, "echo $TRIPHAMMER_ATTEMPT > notes.txt", &["--attempts", "2"]).expect(
        "rejected",
        "attempts-exhausted",
        2,
        1,
    );
    assert_eq!(home.only_run().summary()["spent"]["cost_unknown"], 2);
}

#[test]
fn accepted_work_is_accepted_whatever_it_cost() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    let agent = "touch done.txt; echo '{\"cost_usd\": 9}' > \"$TRIPHAMMER_RECEIPT\"";
    strike(&home, agent, &["--max-cost", "1.00"]).expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn a_resumed_run_has_the_money_it_had_left() {
    let home = red();
    let agent = format!(
        "{}; [ $TRIPHAMMER_ATTEMPT != 2 ] || echo '{{\"cost_usd\": 0.4, \"fault\": {{\"kind\": \"quota\"}}}}' > \"$TRIPHAMMER_RECEIPT\"",
        costing("0.40")
    );
    // Attempt 2 reports a spent quota after it worked: parked, not charged, but its money is spent.
    strike(&home, &agent, &["--max-cost", "1.00"]).expect("suspended", "quota", 1, 5);
    // Resumed, attempt 2 spends again and parks again: by then 1.20 of 1.00 are gone.
    let ran = resume(&home, "latest");
    let done = ran.done();
    assert!(done["reason"] == "quota" || done["reason"] == "budget-exhausted", "{done}");
    assert_eq!(home.only_run().summary()["spent"]["cost"], 1_200_000);
}
