//! Stored values for the tests of this crate.

use std::collections::BTreeMap;

use triphammer_model::agent::AgentPlan;
use triphammer_model::event::{AgentFacts, Isolation, PreflightFacts, Started};
use triphammer_model::movement::{Infrastructure, MovementFacts};
use triphammer_model::plan::{PlannedAgent, PlannedGate};
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    AcceptedAs, Attempt, Bounds, Change, Claim, ClaimedFile, Content, Counts, Digest, Effect, Event, Finding,
    GateKind, GateVerdict, JournalLine, Judgement, Limits, Location, MicroUsd, Movement, Observed, Outcome,
    Plan, Policy, Receipt, RejectReason, Report, RunId, Span, Standing, Tokens,
};

pub(crate) fn run_id() -> RunId {
    RunId::new("20261130-170601-roman-3fa9")
}

pub(crate) fn attempt(n: u32) -> Attempt {
    Attempt::new(n)
}

pub(crate) fn passing(gate: &str) -> GateVerdict {
    GateVerdict { duration_ms: 1_234, ..GateVerdict::from_findings(gate.into(), GateKind::Build, Vec::new()) }
}

pub(crate) fn failing(gate: &str) -> GateVerdict {
    let place = Location { path: "tests/roman.rs".into(), line: Some(12), column: None };
    let findings = vec![
        Finding::error("test/failed", "test `nine` failed: expected \"IX\",\nfound \"VIIII\"")
            .at(place)
            .with_fix("subtract")
            .with_detail("assertion failed\n  left: \"VIIII\"\n right: \"IX\"\n"),
        Finding::error("test/failed", "test `four` failed"),
    ];
    GateVerdict {
        duration_ms: 61_500,
        counts: Some(Counts { passed: 3, failed: 2, skipped: 0 }),
        ..GateVerdict::from_findings(gate.into(), GateKind::Test, findings)
    }
}

pub(crate) fn skipped(gate: &str, by: &str) -> GateVerdict {
    GateVerdict { judgement: Judgement::Skip(by.into()), ..passing(gate) }
}

pub(crate) fn plan() -> Plan {
    let gate = |name: &str, kind, command: &str| PlannedGate {
        name: name.into(),
        kind,
        command: command.to_owned(),
    };
    let report = Report::new(vec![passing("rust-build"), failing("rust-test")]);
    Plan {
        spec: "roman".to_owned(),
        goal: "Convert numbers to Roman numerals.".to_owned(),
        workspace: "/home/ann/roman".to_owned(),
        isolation: Isolation::InPlace,
        origin: None,
        gates: vec![
            gate("rust-build", GateKind::Build, "cargo build"),
            gate("rust-test", GateKind::Test, "cargo test"),
        ],
        packs_named: false,
        stages: triphammer_model::policy::PipelinePolicy::Staged,
        confirm_clean: false,
        agents: vec![PlannedAgent {
            name: "claude".into(),
            plan: AgentPlan {
                kind: "command".to_owned(),
                argv: vec!["claude".to_owned(), "-p".to_owned()],
                prompt: "stdin".to_owned(),
                env: vec!["ANTHROPIC_API_KEY".to_owned()],
                unknowns: vec!["its cost".to_owned()],
            },
            timeout: Span::minutes(45),
            idle_timeout: Span::minutes(15),
        }],
        environment: vec!["HOME".to_owned(), "PATH".to_owned()],
        containment: "write fence by Landlock; network not held".to_owned(),
        limits: Limits { max_cost: Some(MicroUsd::new(5_000_000)), ..Limits::default() },
        policy: Policy::default(),
        files: 12,
        not_observed: vec!["caches: target".to_owned(), "what happens outside the workspace".to_owned()],
        preflight: Some((
            PreflightFacts { gates: 2, red_checks: vec!["rust-test".into()], ..PreflightFacts::default() },
            report,
        )),
    }
}

pub(crate) fn movement() -> Movement {
    let observed = |path: &str, change, content| Observed {
        path: path.into(),
        change,
        before: None,
        after: None,
        content,
        renamed_from: None,
    };
    let claim = |path: &str, standing, why: Option<&str>| Claim {
        path: path.into(),
        standing,
        why: why.map(str::to_owned),
    };
    let mut moved = observed("src/b\u{1b}.rs", Change::Added, Content::Changed);
    moved.renamed_from = Some("src/old.rs".into());
    Movement {
        schema: 1,
        observed: vec![
            observed("src/a.rs", Change::Changed, Content::Changed),
            moved,
            observed("src/c.rs", Change::Changed, Content::Same),
            observed("src/old.rs", Change::Deleted, Content::Changed),
        ],
        claimed: vec![
            claim("src/a.rs", Standing::Observed, None),
            claim("src/ghost.rs", Standing::Disproved, Some("there is no such file")),
        ],
        touched: vec!["src/a.rs".into(), "src/b\u{1b}.rs".into(), "src/old.rs".into()],
        infrastructure: Some(Infrastructure {
            moved: 15_000,
            sample: vec![".local/bin/zig".into(), ".local/lib/zig".into()],
        }),
        bounds: Bounds {
            pruned: BTreeMap::from([("target".into(), "cachedir-tag".to_owned())]),
            pruned_count: 3,
            special: vec!["pipe".into()],
            ..Bounds::default()
        },
    }
}

pub(crate) fn receipt() -> Receipt {
    Receipt {
        schema: 1,
        agent: "claude".to_owned(),
        files: vec![ClaimedFile { path: "src/a.rs".to_owned(), kind: Change::Changed, tool: None }],
        last_words: Some("Shall I\nuse a table?".to_owned()),
        stop_reason: Some("end_turn".to_owned()),
        troubles: vec!["line 3 is no JSON".to_owned()],
        ..Receipt::default()
    }
}

fn started() -> Event {
    Event::Started(Box::new(Started {
        run: run_id(),
        spec: "roman".to_owned(),
        goal: "Convert numbers to Roman numerals.".to_owned(),
        spec_path: Some("specs/roman.md".to_owned()),
        pins: BTreeMap::new(),
        version: "0.1.0".to_owned(),
        machine: 1,
        policy: Policy::default(),
        limits: Limits::default(),
        agents: vec!["claude".into()],
        allow_green: false,
        workspace: "/home/ann/roman".to_owned(),
        isolation: Isolation::InPlace,
        origin: None,
        tree: "0000000000000000000000000000000000000000".into(),
        empty: false,
        parent: None,
    }))
}

/// A journal of these events, ten seconds apart. Its chain is not made: nothing here reads it.
pub(crate) fn lines_of(events: Vec<(Event, Vec<Effect>)>) -> Vec<JournalLine> {
    let start: jiff::Timestamp = "2026-11-30T17:06:01Z".parse().unwrap();
    events
        .into_iter()
        .enumerate()
        .map(|(n, (event, effects))| JournalLine {
            schema: 1,
            seq: n as u64,
            prev: Digest::zero(),
            at: start + jiff::SignedDuration::from_secs(10 * i64::try_from(n).unwrap()),
            elapsed_ms: 10_000 * n as u64,
            event,
            effects,
            sha256: None,
        })
        .collect()
}

fn strike(n: u32, movement: MovementFacts, report: &Report, then: Vec<Effect>) -> Vec<(Event, Vec<Effect>)> {
    let attempt = attempt(n);
    let tree = || format!("{n:040}").as_str().into();
    let known = n != 2;
    let facts = AgentFacts {
        wait: WaitStatus::Exited { code: 0 },
        duration_ms: 12_300,
        tokens: known.then_some(Tokens { input: 1_000, cached: 200, output: 30 }),
        cost: known.then_some(MicroUsd::new(1_250_000)),
        cost_by: None,
        fault: None,
    };
    let observed = Event::Observed {
        attempt,
        movement,
        left: tree(),
        tree: tree(),
        offences: u32::from(n == 2),
        moved_since_start: true,
    };
    vec![
        (Event::Looked { attempt }, vec![Effect::Implement { attempt, agent: "claude".into(), try_no: 1 }]),
        (
            Event::AgentEnded { attempt, agent: "claude".into(), try_no: 1, facts },
            vec![Effect::Observe { attempt, unverifiable: true }],
        ),
        (observed, vec![Effect::Judge { attempt }]),
        (Event::Judged { attempt, report: report.facts() }, then),
    ]
}

fn look(n: u32) -> Effect {
    Effect::Look { attempt: attempt(n), agent: "claude".into(), from: None, why: None }
}

fn red_at_start() -> Event {
    Event::Preflighted(PreflightFacts {
        gates: 2,
        red_checks: vec!["rust-test".into()],
        ..PreflightFacts::default()
    })
}

/// Accepted at attempt 2.
pub(crate) fn journal() -> Vec<JournalLine> {
    let red = Report::new(vec![passing("rust-build"), failing("rust-test"), skipped("eval", "rust-test")]);
    let green = Report::new(vec![passing("rust-build"), passing("rust-test"), passing("eval")]);
    let mut events = vec![(started(), vec![Effect::Preflight]), (red_at_start(), vec![look(1)])];
    let moved = MovementFacts { content: 3, stat: 4, disproved: 1, ..MovementFacts::default() };
    events.extend(strike(1, moved, &red, vec![look(2)]));
    let outcome = Outcome::Accepted {
        reason: AcceptedAs::GatesPassed,
        attempt: attempt(2),
        tree: Some("0000000000000000000000000000000000000002".into()),
    };
    events.extend(strike(2, moved, &green, vec![Effect::End { outcome }]));
    events.push((Event::Sealed { artifacts: BTreeMap::new() }, vec![]));
    lines_of(events)
}

/// Held after attempt 3, stalled at attempt 4.
pub(crate) fn stalled_journal() -> Vec<JournalLine> {
    let red = Report::new(vec![passing("rust-build"), failing("rust-test")]);
    let mut events = vec![(started(), vec![Effect::Preflight]), (red_at_start(), vec![look(1)])];
    let moved = MovementFacts { content: 1, stat: 1, ..MovementFacts::default() };
    let still = |infrastructure| MovementFacts {
        infrastructure: Some(infrastructure),
        disproved: 1,
        ..MovementFacts::default()
    };
    events.extend(strike(1, moved, &red, vec![look(2)]));
    events.extend(strike(2, still(7), &red, vec![look(3)]));
    let hold = Effect::Hold { attempt: attempt(3), infrastructure: 7 };
    events.extend(strike(3, still(0), &red, vec![hold, look(4)]));
    let outcome = Outcome::Rejected { reason: RejectReason::Stalled };
    events.extend(strike(4, still(0), &red, vec![Effect::End { outcome }]));
    lines_of(events)
}
