//! Verdicts: one line each while gates run, whole with their findings afterwards.

use std::fmt::Write as _;

use triphammer_model::finding::Excuse;
use triphammer_model::report::{ReportFacts, VerdictWord};
use triphammer_model::text::marked;
use triphammer_model::{Finding, GateVerdict, Judgement, Severity};

use crate::bounded::{Bounded, bounded_lines};
use crate::text::{count, indent, one_line, seconds, word};

/// Findings of one gate that are shown.
const FINDINGS: usize = 20;

/// A verdict on one line: `  ok rust-build (1.2 s)`, `  FAIL rust-test: 2 findings: ...`.
pub fn verdict_line(verdict: &GateVerdict) -> String {
    let gate = one_line(verdict.gate.as_str(), 80);
    let first =
        |findings: &[Finding]| findings.first().map_or_else(String::new, |f| one_line(&f.message, 160));
    let flaky = if verdict.flaky { ", flaky: its re-runs differed" } else { "" };
    let counts = verdict.counts.map_or_else(String::new, |c| {
        let skipped = if c.skipped > 0 { format!(", {} skipped", c.skipped) } else { String::new() };
        format!(", {} passed, {} failed{skipped}", c.passed, c.failed)
    });
    let took = format!("({}{counts}{flaky})", seconds(verdict.duration_ms));
    match &verdict.judgement {
        Judgement::Pass(findings) if findings.is_empty() => format!("  ok {gate} {took}"),
        Judgement::Pass(findings) => {
            format!("  ok {gate} {took}: {}, none failing", count(findings.len() as u64, "finding"))
        }
        Judgement::Fail(_) => {
            let failing: Vec<Finding> = verdict.failing().cloned().collect();
            format!("  FAIL {gate} {took}: {}: {}", count(failing.len() as u64, "finding"), first(&failing))
        }
        Judgement::Error(findings) => {
            format!("  ERROR {gate} {took}: it could not do its job: {}", first(findings.as_slice()))
        }
        Judgement::Skip(by) => format!("  skip {gate}: not run because of {}", one_line(by.as_str(), 80)),
    }
}

/// A report on one line: `report: 2 passed, 1 failed, 1 skipped: 3 findings`.
pub fn report_line(report: &ReportFacts) -> String {
    let mut parts = Vec::new();
    for (n, what) in [
        (report.passed, "passed"),
        (report.failed, "failed"),
        (report.errors, "in error"),
        (report.skipped, "skipped"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if parts.is_empty() {
        parts.push("no gate spoke".to_owned());
    }
    let findings = if report.ok { String::new() } else { format!(": {}", count(report.findings, "finding")) };
    let flaky = if report.flaky { " (a pass is flaky)" } else { "" };
    format!("report: {}{findings}{flaky}", parts.join(", "))
}

/// A verdict with its findings. `all_in` names the file that holds all of them.
pub fn show_verdict(verdict: &GateVerdict, all_in: &str) -> String {
    let kind = word(&verdict.kind);
    let mut out = verdict_line(verdict);
    let _ = writeln!(out, " [{kind}]");
    let findings = match verdict.word() {
        // What fails comes first, so that it is not what the bound cuts off.
        VerdictWord::Fail => {
            let (failing, others): (Vec<_>, Vec<_>) = verdict.findings().iter().partition(|f| f.fails());
            failing.into_iter().chain(others).collect()
        }
        _ => verdict.findings().iter().collect::<Vec<_>>(),
    };
    let list = Bounded::new(&findings, FINDINGS);
    for finding in list.shown {
        show_finding(&mut out, finding, all_in);
    }
    if let Some(marker) = list.marker("finding", all_in) {
        let _ = writeln!(out, "    {marker}");
    }
    out
}

fn show_finding(out: &mut String, finding: &Finding, all_in: &str) {
    let weight = match (finding.severity, finding.excuse) {
        (Severity::Error, None) => "error",
        (Severity::Error, Some(Excuse::Grandfathered)) => "excused (there before any work)",
        (Severity::Error, Some(Excuse::Baseline)) => "excused (in the baseline)",
        (Severity::Warning, _) => "warning",
        (Severity::Note, _) => "note",
    };
    let place =
        finding.location.as_ref().map_or_else(String::new, |l| format!("{}: ", marked(&l.to_string())));
    let _ = writeln!(
        out,
        "    {weight} {}: {place}{}",
        one_line(&finding.rule, 120),
        one_line(&finding.message, 600)
    );
    if let Some(fix) = &finding.fix {
        let _ = writeln!(out, "      fix: {}", one_line(fix, 600));
    }
    if let Some(detail) = &finding.detail {
        indent(out, "      | ", &bounded_lines(detail, 12, 12, all_in));
    }
}

#[cfg(test)]
mod tests {
    use triphammer_model::report::Findings;
    use triphammer_model::{Counts, GateKind, Location, Report};

    use super::*;
    use crate::samples::{failing, passing, skipped};

    #[test]
    fn one_line_each() {
        let error = GateVerdict {
            judgement: Judgement::Error(Findings::one(Finding::error(
                "gate/no-report",
                "no report\u{1b}[1m",
            ))),
            ..passing("sarif")
        };
        let warned = GateVerdict {
            judgement: Judgement::Pass(vec![Finding::error("a", "b").with_severity(Severity::Warning)]),
            flaky: true,
            counts: Some(Counts { passed: 7, failed: 0, skipped: 1 }),
            ..passing("lint")
        };
        let verdicts =
            [passing("rust-build"), failing("rust-test"), error, warned, skipped("accept-x", "rust-test")];
        let lines: Vec<String> = verdicts.iter().map(verdict_line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        ok rust-build (1.2 s)
        FAIL rust-test (1m 01s, 3 passed, 2 failed): 2 findings: test `nine` failed: expected "IX", found "VIIII"
        ERROR sarif (1.2 s): it could not do its job: no report�[1m
        ok lint (1.2 s, 7 passed, 0 failed, 1 skipped, flaky: its re-runs differed): 1 finding, none failing
        skip accept-x: not run because of rust-test
        "#);
        insta::assert_snapshot!(report_line(&Report::new(verdicts.to_vec()).facts()), @"report: 2 passed, 1 failed, 1 in error, 1 skipped: 2 findings (a pass is flaky)");
        insta::assert_snapshot!(report_line(&Report::new(vec![passing("a")]).facts()), @"report: 1 passed");
        insta::assert_snapshot!(report_line(&Report::new(Vec::new()).facts()), @"report: no gate spoke: 0 findings");
    }

    #[test]
    fn findings_are_bounded_and_failing_ones_first() {
        let mut findings = vec![Finding::error("style", "only a hint").with_severity(Severity::Note)];
        findings.extend((1..=21).map(|n| {
            let place = Location { path: "src/lib.rs".into(), line: Some(n), column: None };
            Finding::error("E0308", format!("mismatch {n}")).at(place)
        }));
        findings[1] = findings[1].clone().with_fix("say i32").with_detail("raw\n".repeat(30));
        let verdict = GateVerdict::from_findings("rust-build".into(), GateKind::Build, findings);
        let text = show_verdict(&verdict, "attempts/001/report.json");
        assert!(!text.contains("only a hint"), "{text}");
        let head: Vec<&str> = text.lines().take(18).collect();
        insta::assert_snapshot!(head.join("\n"), @r"
        FAIL rust-build (0 ms): 21 findings: mismatch 1 [build]
          error E0308: src/lib.rs:1: mismatch 1
            fix: say i32
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | raw
            | ... 6 lines (24 bytes) left out here; the whole text: attempts/001/report.json
            | raw
            | raw
        ");
        insta::assert_snapshot!(text.lines().last().unwrap(), @"    ... and 2 findings more, not shown; all of them: attempts/001/report.json");
    }
}
