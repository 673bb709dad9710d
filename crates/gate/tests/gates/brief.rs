//! The brief, as the agent reads it.

use std::path::Path;

use triphammer_gate::{BriefInput, Gate, Lesson, Tell, spec_gates, write_brief};
use triphammer_model::report::Findings;
use triphammer_model::spec::Check;
use triphammer_model::{Attempt, Finding, GateKind, GateVerdict, Judgement, Location, Report, Spec};

use crate::bench::{gate, gates};

fn spec() -> Spec {
    Spec {
        goal: "Write a Roman numeral converter. Both ways.".into(),
        acceptance: vec!["to_roman(4) is IV".into()],
        constraints: vec!["no dependencies".into()],
        non_goals: vec!["lower case".into()],
        checks: vec![Check { name: "api".into(), command: "grep -q to_roman src/lib.rs".into() }],
        keep_green: vec![Check { name: "docs".into(), command: "cargo doc".into() }],
        protect: vec!["tests/**".into()],
        ..Spec::default()
    }
}

fn all_gates(spec: &Spec) -> Vec<Gate> {
    let mut all = gates(&gate("unit", "test", "cargo test", ""));
    all.extend(spec_gates(spec));
    all
}

fn at(path: &str, line: u32, message: &str) -> Finding {
    let location = Location { path: path.into(), line: Some(line), column: None };
    Finding::error("test/failed", message).at(location)
}

fn input<'a>(spec: &'a Spec, gates: &'a [Gate]) -> BriefInput<'a> {
    BriefInput {
        spec,
        attempt: Attempt::FIRST,
        attempts: 5,
        workspace: Path::new("/work/roman"),
        gates,
        protect: &spec.protect,
        tells: &[],
        lessons: &[],
        notes: &[],
        previous: None,
    }
}

fn other(gate: &str, judgement: Judgement) -> GateVerdict {
    GateVerdict {
        gate: gate.into(),
        kind: GateKind::Test,
        judgement,
        duration_ms: 1,
        counts: None,
        flaky: false,
    }
}

#[test]
fn first_attempt() {
    let spec = spec();
    insta::assert_snapshot!(write_brief(&input(&spec, &all_gates(&spec))));
}

#[test]
fn first_attempt_in_an_empty_folder() {
    let spec = Spec { goal: "Make something.".into(), ..Spec::default() };
    insta::assert_snapshot!(write_brief(&input(&spec, &[])));
}

fn report() -> Report {
    let mut many: Vec<Finding> = (1..=25).map(|n| at("src/b.rs", 26 - n, "later")).collect();
    many.push(
        at("src/a.rs", 3, "tests::four: left: IIII; right: IV")
            .with_fix("subtract")
            .with_detail("thread panicked\n\u{1b}[31mred\u{1b}[0m"),
    );
    let env = Finding::error("env/tool-missing", "`lint` needs `ruff`, which is not found");
    Report::new(vec![
        GateVerdict::from_findings("unit".into(), GateKind::Test, many),
        other("lint", Judgement::Error(Findings::one(env))),
        other("accept-api", Judgement::Skip("unit".into())),
        other("keep-docs", Judgement::Pass(vec![])),
    ])
}

#[test]
fn later_attempt() {
    let spec = spec();
    let report = report();
    let tells = [Tell { by: "ann".into(), text: "Use a table.\nNot a loop.\n".into() }];
    let lessons = [Lesson { rule: "honesty/stub-rust".into(), count: 3 }];
    let notes = ["Attempt 1 was interrupted; its work is in the workspace.".to_owned()];
    let gates = all_gates(&spec);
    let later = BriefInput {
        attempt: Attempt::new(2),
        tells: &tells,
        lessons: &lessons,
        notes: &notes,
        previous: Some((Attempt::FIRST, &report)),
        ..input(&spec, &gates)
    };
    let text = write_brief(&later);
    assert_eq!(text, write_brief(&later), "same input, same bytes");
    insta::assert_snapshot!(text);
}

#[test]
fn long_reports_are_cut_with_exact_counts() {
    let spec = spec();
    let gates = all_gates(&spec);
    let long = "x".repeat(2_500);
    let verdicts = (0..10).map(|g| {
        let findings = (1..=20).map(|n| at("src/a.rs", n, "m").with_detail(long.clone())).collect();
        GateVerdict::from_findings(format!("g{g}").as_str().into(), GateKind::Test, findings)
    });
    let report = Report::new(verdicts.collect());
    let brief =
        write_brief(&BriefInput { previous: Some((Attempt::FIRST, &report)), ..input(&spec, &gates) });
    assert!(brief.chars().count() < 60_100);
    assert!(brief.contains("[500 characters before this are not shown]"));
    let marker = brief.lines().last().unwrap();
    assert!(marker.starts_with('[') && marker.ends_with("characters after this are not shown]"), "{marker}");
}
