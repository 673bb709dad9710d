//! A value of each stored type from thrown dice. No struct is filled up by a default, so that a new field must be
//! thrown too.

use jiff::Timestamp;
use triphammer_model::event::{AgentFacts, Isolation, PreflightFacts, Started};
use triphammer_model::finding::Excuse;
use triphammer_model::movement::{Infrastructure, MovementFacts};
use triphammer_model::policy::{
    ClaimPolicy, FlakyPolicy, IdentityPolicy, InfrastructurePolicy, MovementPolicy, UnknownCost,
};
use triphammer_model::process::WaitStatus;
use triphammer_model::receipt::ClaimedCommand;
use triphammer_model::report::{Findings, ReportFacts};
use triphammer_model::summary::{AttemptSummary, Spent};
use triphammer_model::{
    AcceptedAs, AgentName, Attempt, Bounds, Change, Claim, ClaimedFile, Content, Continuation, CostBy,
    Counts, Digest, Effect, Event, FailReason, Fault, FaultKind, Finding, GateKind, GateName, GateVerdict,
    GuardReport, JournalLine, Judgement, Limits, Location, MicroUsd, Movement, Observed, Outcome, Policy,
    Receipt, RejectReason, Report, Reported, RunId, RunSummary, Severity, Span, Standing, SuspendReason,
    TakeOver, Tokens, TreeId, WorkPath,
};

use crate::dice::Dice;

/// How many kinds of events there are.
pub(crate) const EVENTS: usize = 17;
/// How many kinds of effects there are.
pub(crate) const EFFECTS: usize = 8;

fn time(d: &mut Dice) -> Timestamp {
    let seconds = 1_700_000_000 + i64::from(d.u32());
    Timestamp::new(seconds, d.pick(&[0, 1, 999_999_999, 500_000_000])).unwrap()
}

fn path(d: &mut Dice) -> WorkPath {
    const PATHS: [&[u8]; 5] = [b"src/lib.rs", b"a b", b"caf\xe9\xff", b"back\\slash\n", "größe".as_bytes()];
    WorkPath::from_bytes(d.pick(&PATHS))
}

fn digest(d: &mut Dice) -> Digest {
    Digest::of([d.byte()])
}

fn tree(d: &mut Dice) -> TreeId {
    TreeId::new(&digest(d).as_str()[..40])
}

fn attempt(d: &mut Dice) -> Attempt {
    Attempt::new(d.u32())
}

fn agent(d: &mut Dice) -> AgentName {
    AgentName::new(d.word())
}

fn gate(d: &mut Dice) -> GateName {
    GateName::new(d.word())
}

fn tokens(d: &mut Dice) -> Tokens {
    Tokens { input: d.u64(), cached: d.u64(), output: d.u64() }
}

fn money(d: &mut Dice) -> MicroUsd {
    MicroUsd::new(d.u64())
}

fn cost_by(d: &mut Dice) -> CostBy {
    match d.below(3) {
        0 => CostBy::Reported,
        1 => CostBy::OwnPrices,
        _ => CostBy::Prices { as_of: d.text() },
    }
}

fn continuation(d: &mut Dice) -> Continuation {
    match d.below(3) {
        0 => Continuation::Fresh,
        1 => Continuation::Session { id: d.text() },
        _ => Continuation::Digest { attempt: attempt(d) },
    }
}

fn wait(d: &mut Dice) -> WaitStatus {
    let (code, signal) = (d.opt(Dice::i32), d.opt(Dice::i32));
    match d.below(7) {
        0 => WaitStatus::Exited { code: d.i32() },
        1 => WaitStatus::Signalled { signal: d.i32() },
        2 => WaitStatus::TimedOut { code, signal },
        3 => WaitStatus::Idle { code, signal },
        4 => WaitStatus::Cancelled { code, signal },
        5 => WaitStatus::NotStarted { errno: code },
        _ => WaitStatus::Unknown,
    }
}

fn fault(d: &mut Dice) -> Fault {
    let kind = d.pick(&[
        FaultKind::Authentication,
        FaultKind::RateLimit,
        FaultKind::Quota,
        FaultKind::Overloaded,
        FaultKind::ContextOverflow,
        FaultKind::Refused,
        FaultKind::Crashed,
        FaultKind::TimedOut,
        FaultKind::Idle,
        FaultKind::Protocol,
    ]);
    Fault { kind, reset_at: d.opt(time), message: d.opt(Dice::text) }
}

fn suspend_reason(d: &mut Dice) -> SuspendReason {
    d.pick(&[
        SuspendReason::RateLimit,
        SuspendReason::Quota,
        SuspendReason::Authentication,
        SuspendReason::Overloaded,
        SuspendReason::GateError,
        SuspendReason::CostUnknown,
        SuspendReason::TokensUnknown,
        SuspendReason::DiskFull,
        SuspendReason::NeedsReview,
        SuspendReason::Infrastructure,
    ])
}

fn fail_reason(d: &mut Dice) -> FailReason {
    d.pick(&[
        FailReason::NoGates,
        FailReason::KeepGreenRed,
        FailReason::GateToolMissing,
        FailReason::SetupFailed,
        FailReason::Infrastructure,
    ])
}

fn outcome(d: &mut Dice) -> Outcome {
    match d.below(6) {
        0 => Outcome::Accepted {
            reason: d.pick(&[
                AcceptedAs::GatesPassed,
                AcceptedAs::Unchecked,
                AcceptedAs::Flaky,
                AcceptedAs::Decided,
            ]),
            attempt: attempt(d),
            tree: d.opt(tree),
        },
        1 => Outcome::Rejected {
            reason: d.pick(&[
                RejectReason::AttemptsExhausted,
                RejectReason::Tampered,
                RejectReason::Stalled,
                RejectReason::BudgetExhausted,
                RejectReason::Decided,
            ]),
        },
        2 => Outcome::Suspended { reason: suspend_reason(d), until: d.opt(time), detail: d.opt(Dice::text) },
        3 => Outcome::Failed { reason: fail_reason(d), detail: d.opt(Dice::text) },
        4 => Outcome::Interrupted,
        _ => Outcome::NothingToDo,
    }
}

fn isolation(d: &mut Dice) -> Isolation {
    d.pick(&[Isolation::InPlace, Isolation::Worktree, Isolation::Copy, Isolation::New])
}

fn policy(d: &mut Dice) -> Policy {
    Policy {
        proofs: d.u32(),
        movement: d.pick(&[MovementPolicy::Content, MovementPolicy::Stat]),
        identity: d.pick(&[IdentityPolicy::Bytes, IdentityPolicy::Normalised]),
        claims: d.pick(&[ClaimPolicy::NotDisproved, ClaimPolicy::Corroborated, ClaimPolicy::All]),
        infrastructure: d.pick(&[InfrastructurePolicy::HoldOnce, InfrastructurePolicy::Ignore]),
    }
}

fn limits(d: &mut Dice) -> Limits {
    Limits {
        attempts: d.u32(),
        budget: Span::millis(d.u64()),
        max_cost: d.opt(money),
        max_tokens: d.opt(Dice::u64),
        unknown_cost: d.pick(&[UnknownCost::Suspend, UnknownCost::Ignore]),
        flaky: d.pick(&[FlakyPolicy::Review, FlakyPolicy::Accept]),
        retries: d.u32(),
        backoff: Span::millis(d.u64()),
    }
}

fn started(d: &mut Dice) -> Started {
    Started {
        run: RunId::new("20261130-170601-roman-3fa9"),
        spec: d.word(),
        goal: d.text(),
        spec_path: d.opt(Dice::text),
        pins: d.list(|d| (d.word(), digest(d))).into_iter().collect(),
        version: d.text(),
        machine: d.u32(),
        policy: policy(d),
        limits: limits(d),
        agents: d.list(agent),
        allow_green: d.flag(),
        workspace: d.text(),
        isolation: isolation(d),
        origin: d.opt(Dice::text),
        tree: tree(d),
        empty: d.flag(),
        parent: d.opt(|d| RunId::new(d.word())),
    }
}

fn kind(d: &mut Dice) -> GateKind {
    d.pick(&[GateKind::Static, GateKind::Build, GateKind::Test, GateKind::Eval, GateKind::Judge])
}

fn report_facts(d: &mut Dice) -> ReportFacts {
    ReportFacts {
        ok: d.flag(),
        identity: digest(d),
        identity_normalised: digest(d),
        passed: d.u32(),
        failed: d.u32(),
        errors: d.u32(),
        skipped: d.u32(),
        findings: d.u64(),
        flaky: d.flag(),
        rank: d.opt(kind),
    }
}

fn movement_facts(d: &mut Dice) -> MovementFacts {
    MovementFacts {
        content: d.u64(),
        stat: d.u64(),
        corroborated: d.u64(),
        unverifiable: d.u64(),
        disproved: d.u64(),
        infrastructure: d.opt(Dice::u64),
    }
}

/// An event of the kind `variant`, below [`EVENTS`].
pub(crate) fn event(d: &mut Dice, variant: usize) -> Event {
    match variant {
        0 => Event::Started(Box::new(started(d))),
        1 => Event::Preflighted(PreflightFacts {
            gates: d.u32(),
            green: d.flag(),
            tools_missing: d.list(|d| (gate(d), d.text())).into_iter().collect(),
            vacuous: d.list(gate),
            keep_green_red: d.list(gate),
            red_checks: d.list(gate),
        }),
        2 => Event::Looked { attempt: attempt(d) },
        3 => Event::AgentEnded {
            attempt: attempt(d),
            agent: agent(d),
            try_no: d.u32(),
            facts: AgentFacts {
                wait: wait(d),
                duration_ms: d.u64(),
                tokens: d.opt(tokens),
                cost: d.opt(money),
                cost_by: d.opt(cost_by),
                fault: d.opt(fault),
            },
        },
        4 => Event::Waited { attempt: attempt(d) },
        5 => Event::Observed {
            attempt: attempt(d),
            movement: movement_facts(d),
            left: tree(d),
            tree: tree(d),
            offences: d.u32(),
            moved_since_start: d.flag(),
        },
        6 => Event::Judged { attempt: attempt(d), report: report_facts(d) },
        7 => Event::Interrupted { by: d.word() },
        8 => Event::Hindered { reason: suspend_reason(d), detail: d.text() },
        9 => Event::SetupFailed { reason: fail_reason(d), detail: d.text() },
        10 => Event::PinsBroken { pins: d.list(Dice::word) },
        11 => Event::Resumed { version: d.word(), ended: d.list(Dice::u32), torn_bytes: d.u64() },
        12 => Event::Told { by: d.text(), text: d.text() },
        13 => Event::Decided { accept: d.flag(), by: d.text(), why: d.text() },
        14 => Event::Applied { attempt: attempt(d), to: d.text(), conflicts: d.list(Dice::text) },
        15 => Event::Undone { forced: d.flag() },
        _ => Event::Sealed { artifacts: d.list(|d| (d.text(), digest(d))).into_iter().collect() },
    }
}

fn take_over(d: &mut Dice) -> TakeOver {
    d.pick(&[TakeOver::Stalled, TakeOver::Authentication, TakeOver::Quota])
}

/// An effect of the kind `variant`, below [`EFFECTS`].
pub(crate) fn effect(d: &mut Dice, variant: usize) -> Effect {
    match variant {
        0 => Effect::Preflight,
        1 => Effect::Look {
            attempt: attempt(d),
            agent: agent(d),
            from: d.opt(Dice::u32),
            why: d.opt(take_over),
        },
        2 => Effect::Implement { attempt: attempt(d), agent: agent(d), try_no: d.u32() },
        3 => Effect::Wait { attempt: attempt(d), ms: d.u64() },
        4 => Effect::Observe { attempt: attempt(d), unverifiable: d.flag() },
        5 => Effect::Judge { attempt: attempt(d) },
        6 => Effect::Hold { attempt: attempt(d), infrastructure: d.u64() },
        _ => Effect::End { outcome: outcome(d) },
    }
}

/// A journal line with an event of the kind `variant`.
pub(crate) fn journal_line(d: &mut Dice, variant: usize) -> JournalLine {
    JournalLine {
        schema: d.u32(),
        seq: d.u64(),
        prev: digest(d),
        at: time(d),
        elapsed_ms: d.u64(),
        event: event(d, variant),
        effects: d.list(|d| {
            let variant = d.below(EFFECTS);
            effect(d, variant)
        }),
        sha256: d.opt(digest),
    }
}

fn finding(d: &mut Dice) -> Finding {
    Finding {
        rule: d.word(),
        severity: d.pick(&[Severity::Error, Severity::Warning, Severity::Note]),
        message: d.text(),
        location: d.opt(|d| Location { path: path(d), line: d.opt(Dice::u32), column: d.opt(Dice::u32) }),
        fix: d.opt(Dice::text),
        detail: d.opt(Dice::text),
        excuse: d.opt(|d| d.pick(&[Excuse::Grandfathered, Excuse::Baseline])),
    }
}

fn findings(d: &mut Dice) -> Findings {
    let mut all = vec![finding(d)];
    all.extend(d.list(finding));
    Findings::new(all).unwrap()
}

pub(crate) fn report(d: &mut Dice) -> Report {
    Report {
        schema: d.u32(),
        ok: d.flag(),
        identity: digest(d),
        identity_normalised: digest(d),
        verdicts: d.list(|d| GateVerdict {
            gate: gate(d),
            kind: kind(d),
            judgement: match d.below(4) {
                0 => Judgement::Pass(d.list(finding)),
                1 => Judgement::Fail(findings(d)),
                2 => Judgement::Error(findings(d)),
                _ => Judgement::Skip(gate(d)),
            },
            duration_ms: d.u64(),
            counts: d.opt(|d| Counts { passed: d.u64(), failed: d.u64(), skipped: d.u64() }),
            flaky: d.flag(),
        }),
    }
}

pub(crate) fn movement(d: &mut Dice) -> Movement {
    Movement {
        schema: d.u32(),
        observed: d.list(|d| Observed {
            path: path(d),
            change: d.pick(&[Change::Added, Change::Changed, Change::Deleted]),
            before: d.opt(Dice::text),
            after: d.opt(Dice::text),
            content: d.pick(&[Content::Changed, Content::Same, Content::Unknown]),
            renamed_from: d.opt(path),
        }),
        claimed: d.list(|d| Claim {
            path: path(d),
            standing: d.pick(&[
                Standing::Observed,
                Standing::Corroborated,
                Standing::Unverifiable,
                Standing::Disproved,
            ]),
            why: d.opt(Dice::text),
        }),
        touched: d.list(path),
        infrastructure: d.opt(|d| Infrastructure { moved: d.u64(), sample: d.list(path) }),
        bounds: Bounds {
            pruned: d.list(|d| (path(d), d.word())).into_iter().collect(),
            pruned_count: d.u64(),
            infrastructure: d.list(path),
            infrastructure_count: d.u64(),
            unreadable: d.list(|d| (path(d), d.text())).into_iter().collect(),
            unreadable_count: d.u64(),
            special: d.list(path),
            special_count: d.u64(),
            notes: d.list(Dice::text),
        },
    }
}

pub(crate) fn receipt(d: &mut Dice) -> Receipt {
    Receipt {
        schema: d.u32(),
        agent: d.word(),
        files: d.list(|d| ClaimedFile {
            path: d.text(),
            kind: d.pick(&[Change::Added, Change::Changed, Change::Deleted]),
            tool: d.opt(Dice::word),
        }),
        commands: d.list(|d| ClaimedCommand { command: d.text(), exit: d.opt(Dice::i32) }),
        refused: d.list(Dice::text),
        tokens: d.opt(tokens),
        cost: d.opt(money),
        cost_by: d.opt(cost_by),
        fault: d.opt(fault),
        continuation: d.opt(continuation),
        session: d.opt(Dice::text),
        stop_reason: d.opt(Dice::text),
        model: d.opt(Dice::text),
        last_words: d.opt(Dice::text),
        troubles: d.list(Dice::text),
    }
}

pub(crate) fn guard_report(d: &mut Dice) -> GuardReport {
    GuardReport {
        schema: d.u32(),
        reported: d.list(|d| Reported {
            command: d.text(),
            rule: d.word(),
            why: d.text(),
            sure: d.flag(),
            refused: d.flag(),
        }),
        left_out: d.u64(),
    }
}

pub(crate) fn run_summary(d: &mut Dice) -> RunSummary {
    RunSummary {
        schema: d.u32(),
        run: RunId::new(d.word()),
        spec: d.word(),
        goal: d.text(),
        outcome: d.word(),
        reason: d.text(),
        detail: d.opt(Dice::text),
        until: d.opt(time),
        attempts: d.u32(),
        accepted_attempt: d.opt(attempt),
        tree: d.opt(tree),
        exit_code: d.opt(Dice::byte),
        started: time(d),
        last: time(d),
        workspace: d.text(),
        isolation: isolation(d),
        start_tree: tree(d),
        parent: d.opt(|d| RunId::new(d.word())),
        spent: Spent {
            active_ms: d.u64(),
            tokens: tokens(d),
            cost: money(d),
            cost_unknown: d.u32(),
            tokens_unknown: d.u32(),
        },
        history: d.list(|d| AttemptSummary {
            attempt: attempt(d),
            agent: agent(d),
            tries: d.u32(),
            wait: d.opt(wait),
            fault: d.opt(fault),
            moved: d.opt(Dice::u64),
            tree: d.opt(tree),
            ok: d.opt(Dice::flag),
            findings: d.opt(Dice::u64),
            identity: d.opt(digest),
            offences: d.u32(),
            charged: d.flag(),
        }),
        decided: d.opt(Dice::text),
    }
}
