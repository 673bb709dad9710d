//! Stored values for the tests of this crate.

use std::collections::BTreeMap;

use serde_json::json;
use triphammer_model::agent::AgentPlan;
use triphammer_model::event::{AgentFacts, Isolation, PreflightFacts, Started};
use triphammer_model::movement::{Infrastructure, MovementFacts};
use triphammer_model::plan::{PlannedAgent, PlannedGate};
use triphammer_model::process::WaitStatus;
use triphammer_model::receipt::ClaimedCommand;
use triphammer_model::{
    AcceptedAs, Attempt, Bounds, Change, Claim, ClaimedFile, Content, Counts, Digest, Effect, Event, Finding,
    GateKind, GateVerdict, JournalLine, Judgement, Limits, Location, MicroUsd, Movement, Observed, Outcome,
    Plan, Policy, Receipt, RejectReason, Report, RunId, RunSummary, Span, Standing, Tokens, WorkPath,
};

use crate::{Artifact, Clean, ExportView, ExportedAttempt};

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

/// What is exported of the attempts of [`journal`].
pub(crate) fn exported() -> Vec<ExportedAttempt> {
    let warning =
        Finding::error("style/long", "line is long").with_severity(triphammer_model::Severity::Warning);
    let lint = GateVerdict::from_findings("lint".into(), GateKind::Static, vec![warning]);
    let broken = Finding::error("gate/no-report", "it printed no report that libtest makes");
    let broken = triphammer_model::report::Findings::one(broken);
    let broken = GateVerdict { judgement: Judgement::Error(broken), ..passing("bench") };
    let red =
        vec![lint.clone(), passing("rust-build"), failing("rust-test"), broken, skipped("eval", "rust-test")];
    let mut receipt = receipt();
    receipt.commands = vec![
        ClaimedCommand { command: "cargo test".to_owned(), exit: Some(101) },
        ClaimedCommand { command: "ls".to_owned(), exit: None },
    ];
    receipt.tokens = Some(Tokens { input: 1_000, cached: 200, output: 30 });
    receipt.cost = Some(MicroUsd::new(1_250_000));
    receipt.model = Some("opus".to_owned());
    let unknown = Receipt { schema: 1, agent: "claude".to_owned(), ..Receipt::default() };
    vec![
        exported_attempt(1, receipt, Artifact::Read(Report::new(red))),
        exported_attempt(2, unknown, Artifact::Read(Report::new(vec![lint, passing("rust-test")]))),
    ]
}

pub(crate) fn exported_attempt(n: u32, receipt: Receipt, report: Artifact<Report>) -> ExportedAttempt {
    ExportedAttempt {
        attempt: attempt(n),
        brief: Artifact::Read("# Goal\nConvert numbers.\n".to_owned()),
        receipt: Artifact::Read(receipt),
        report,
        transcript: vec![
            json!({"at": "2026-11-30T17:06:11Z", "type": "start"}),
            json!({"at": "2026-11-30T17:06:30Z", "type": "end"}),
        ],
    }
}

/// Texts that mean something to a terminal, to XML, to JSON, to a runner or to Markdown.
pub(crate) const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;t\u{7}]]><x a='b\"&amp;%0A\r\n::set-output name=a::b\n##[error]\u{0}\u{fffe}\
                                  \u{202e}|`![l](http://e.example/)<img src=x>\n| @ann #1 \\ $x$ {0}";

/// A report of which every text is [`HOSTILE`], with a path that is no UTF-8, an absolute one, and a long message.
pub(crate) fn hostile() -> ExportedAttempt {
    let at = |path: &[u8], line| Location {
        path: WorkPath::from_bytes(path),
        line: Some(line),
        column: Some(line),
    };
    let findings = vec![
        Finding::error(HOSTILE, HOSTILE)
            .at(at(b"a:b/\xff,%\n::c<\"", 7))
            .with_fix(HOSTILE)
            .with_detail(HOSTILE),
        Finding::error("far", "far").at(at(b"//e.example/x", 0)),
        Finding::error("", "x".repeat(100_000)).at(at(b"/etc/x", 3)),
    ];
    let fail = GateVerdict::from_findings(HOSTILE.into(), GateKind::Static, findings.clone());
    let error = triphammer_model::report::Findings::new(findings).unwrap();
    let error = GateVerdict { judgement: Judgement::Error(error), ..passing(HOSTILE) };
    let report = Report::new(vec![fail, error, skipped(HOSTILE, HOSTILE)]);
    let receipt = Receipt {
        agent: HOSTILE.to_owned(),
        files: vec![ClaimedFile { path: HOSTILE.to_owned(), kind: Change::Added, tool: None }],
        commands: vec![ClaimedCommand { command: HOSTILE.to_owned(), exit: Some(0) }],
        refused: vec![HOSTILE.to_owned()],
        session: Some(HOSTILE.to_owned()),
        stop_reason: Some(HOSTILE.to_owned()),
        model: Some(HOSTILE.to_owned()),
        last_words: Some(HOSTILE.to_owned()),
        ..Receipt::default()
    };
    ExportedAttempt {
        brief: Artifact::Read(HOSTILE.to_owned()),
        ..exported_attempt(1, receipt, Artifact::Read(report))
    }
}

/// A verdict of one finding of which every text is this one.
pub(crate) fn any(text: &str, path: Vec<u8>) -> GateVerdict {
    let at = Location { path: WorkPath::from_bytes(path), line: Some(1), column: None };
    let finding = Finding::error(text, text).at(at).with_fix(text).with_detail(text);
    GateVerdict::from_findings(text.into(), GateKind::Test, vec![finding])
}

/// Exports these attempts of these lines with nothing to redact.
pub(crate) fn export<T>(
    lines: &[JournalLine],
    attempts: &[ExportedAttempt],
    live: bool,
    make: impl FnOnce(&ExportView<'_>, &Clean<'_>) -> T,
) -> T {
    let summary = RunSummary::fold(lines).unwrap();
    let none = triphammer_model::Redactor::default();
    make(&ExportView { summary: &summary, live, lines, attempts }, &Clean::new(&none))
}

/// [`hostile`] in a run of which every name is so as well.
pub(crate) fn export_hostile<T>(make: impl FnOnce(&ExportView<'_>, &Clean<'_>) -> T) -> T {
    let mut lines = stalled_journal();
    for line in &mut lines {
        if let Event::Started(started) = &mut line.event {
            started.spec = HOSTILE.to_owned();
            started.goal = HOSTILE.to_owned();
        }
        for effect in &mut line.effects {
            if let Effect::Look { agent, .. } = effect {
                *agent = HOSTILE.into();
            }
        }
        if let Event::AgentEnded { agent, .. } = &mut line.event {
            *agent = HOSTILE.into();
        }
    }
    export(&lines, &[hostile()], false, make)
}

/// The same with a secret in the place of each hostile text: the export, and how many values were replaced.
pub(crate) fn export_secret<T>(make: impl FnOnce(&ExportView<'_>, &Clean<'_>) -> T) -> (T, u64) {
    const SECRET: &str = "s3<cr>&et%:,\"[x](y)";
    let quoted_secret = serde_json::to_string(SECRET).unwrap();
    let swap = |text: &str| {
        let quoted = serde_json::to_string(HOSTILE).unwrap();
        text.replace(&quoted[1..quoted.len() - 1], &quoted_secret[1..quoted_secret.len() - 1])
    };
    let lines = stalled_journal();
    let mut summary = RunSummary::fold(&lines).unwrap();
    summary.spec = SECRET.to_owned();
    summary.goal = SECRET.to_owned();
    summary.history[0].agent = SECRET.into();
    let ExportedAttempt { receipt, report, .. } = hostile();
    let (Artifact::Read(receipt), Artifact::Read(report)) = (receipt, report) else { unreachable!() };
    let receipt = serde_json::from_str(&swap(&serde_json::to_string(&receipt).unwrap())).unwrap();
    let mut report: Report = serde_json::from_str(&swap(&serde_json::to_string(&report).unwrap())).unwrap();
    let path = Location { path: format!("dir/{SECRET}/f").as_str().into(), line: None, column: None };
    report.verdicts.push(GateVerdict::from_findings(
        "paths".into(),
        GateKind::Static,
        vec![Finding::error("r", "m").at(path)],
    ));
    let mut attempt = exported_attempt(1, receipt, Artifact::Read(report));
    attempt.brief = Artifact::Read(format!("Use {SECRET}."));
    let redactor = triphammer_model::Redactor::new([("KEY".to_owned(), SECRET.as_bytes().to_vec())]);
    let clean = Clean::new(&redactor);
    let document =
        make(&ExportView { summary: &summary, live: false, lines: &lines, attempts: &[attempt] }, &clean);
    (document, clean.replaced())
}
