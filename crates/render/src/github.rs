//! A run for GitHub's runner: workflow commands that become annotations, and a step summary in Markdown.
//!
//! The runner obeys lines that begin with `::`. So each command is one line that we begin; what others wrote stands
//! behind it with line ends, percent signs and, in properties, colons and commas quoted. In Markdown all marks that
//! could be punctuation of the language are quoted, so that no finding makes a link, an image or a cell.

use std::fmt::Write as _;

use triphammer_model::report::VerdictWord;
use triphammer_model::{Finding, GateVerdict, Report, Severity};

use crate::attempt::Artifact;
use crate::bounded::Bounded;
use crate::clean::Clean;
use crate::exported::{ExportView, ExportedAttempt, place, weight};
use crate::text::{count, seconds, word};
use crate::verdict::report_line;

/// Findings that are annotated; the service shows ten errors and ten warnings of a step, and fifty of a job.
const ANNOTATIONS: usize = 50;
/// Findings, and gates, in the summary: the service takes a MiB and drops what is larger as a whole.
const LISTED: usize = 100;
/// Characters of one text in it.
const CELL: usize = 600;

/// The annotations: the findings of the report that stands for the run, then how the run stands.
pub fn github_commands(view: &ExportView<'_>, clean: &Clean<'_>) -> String {
    let mut out = String::new();
    let findings = view.standing().map_or_else(Vec::new, |(_, report)| weighed(report));
    let list = Bounded::new(&findings, ANNOTATIONS);
    for (verdict, finding) in list.shown {
        annotation(&mut out, verdict, finding, clean);
    }
    if let Some(marker) = list.marker("finding", "triphammer show, or the step summary") {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "::notice::{}", data(&marker));
    }
    let (outcome, reason) = view.outcome();
    let command = match outcome.as_str() {
        "accepted" | "nothing-to-do" | "in-flight" => "notice",
        "suspended" | "interrupted" => "warning",
        _ => "error",
    };
    let title = format!("triphammer: {}", clean.line(&view.summary.spec, 100));
    let text = format!("run {}: {}", view.summary.run, standing(&outcome, &reason));
    let _ = writeln!(out, "::{command} title={}::{}", property(&title), data(&text));
    out
}

/// Errors first: the service shows only so many.
fn weighed(report: &Report) -> Vec<(&GateVerdict, &Finding)> {
    let mut all: Vec<(&GateVerdict, &Finding)> =
        report.verdicts.iter().flat_map(|v| v.findings().iter().map(move |f| (v, f))).collect();
    all.sort_by_key(|(verdict, finding)| (!counts(verdict, finding), finding.severity));
    all
}

/// Whether the gate did not pass because of it.
fn counts(verdict: &GateVerdict, finding: &Finding) -> bool {
    verdict.word() == VerdictWord::Error || finding.fails()
}

fn annotation(out: &mut String, verdict: &GateVerdict, finding: &Finding, clean: &Clean<'_>) {
    let command = match finding.severity {
        _ if counts(verdict, finding) => "error",
        Severity::Warning => "warning",
        Severity::Error | Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(location) = &finding.location {
        // Without line and column, which are properties of their own.
        properties.push(format!("file={}", property(&clean.line(&location.path.to_string(), 4_096))));
        let line = location.line.filter(|n| *n > 0);
        properties.extend(line.map(|n| format!("line={n}")));
        properties.extend(location.column.filter(|n| *n > 0 && line.is_some()).map(|n| format!("col={n}")));
    }
    let title = format!("{}: {}", clean.line(verdict.gate.as_str(), 80), clean.line(&finding.rule, 120));
    properties.push(format!("title={}", property(&title)));
    let mut text = clean.cut(&finding.message, 4_000);
    if let Some(fix) = &finding.fix {
        let _ = write!(text, "\nfix: {}", clean.cut(fix, 1_000));
    }
    let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&text));
}

/// A command's message.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A command's property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn standing(outcome: &str, reason: &str) -> String {
    if reason.is_empty() { outcome.to_owned() } else { format!("{outcome} ({reason})") }
}

/// The step summary.
pub fn github_summary(view: &ExportView<'_>, clean: &Clean<'_>) -> String {
    let summary = view.summary;
    let (outcome, reason) = view.outcome();
    let cell = |text: &str| quoted(&clean.line(text, CELL));
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ =
        writeln!(out, "## Triphammer: {}: {}\n", cell(&summary.spec), quoted(&standing(&outcome, &reason)));
    let _ = writeln!(out, "Goal: {}\n", cell(&summary.goal));
    let _ = writeln!(
        out,
        "Run {}, {}.\n",
        quoted(summary.run.as_str()),
        count(u64::from(summary.attempts), "attempt")
    );
    out.push_str("| attempt | agent | moved | report |\n| --- | --- | --- | --- |\n");
    for attempt in view.attempts {
        let short = summary.history.iter().find(|a| a.attempt == attempt.attempt);
        let agent = short.map_or_else(String::new, |a| cell(a.agent.as_str()));
        let moved =
            short.and_then(|a| a.moved).map_or_else(|| "not observed".to_owned(), |n| count(n, "path"));
        let report = judged(view, attempt, clean);
        let _ = writeln!(out, "| {} | {agent} | {moved} | {report} |", attempt.attempt);
    }
    if let Some((attempt, report)) = view.standing() {
        gates(&mut out, attempt, report, clean);
        findings(&mut out, report, clean);
    }
    out
}

fn judged(view: &ExportView<'_>, attempt: &ExportedAttempt, clean: &Clean<'_>) -> String {
    match &attempt.report {
        Artifact::Read(report) => quoted(report_line(&report.facts()).trim_start_matches("report: ")),
        Artifact::Missing(_) if view.is_pending(attempt.attempt) => "not judged yet".to_owned(),
        Artifact::Missing(why) => format!("not judged: {}", quoted(&clean.line(why, CELL))),
    }
}

fn gates(out: &mut String, attempt: &ExportedAttempt, report: &Report, clean: &Clean<'_>) {
    let _ = writeln!(out, "\n### Gates of attempt {}\n", attempt.attempt);
    out.push_str("| gate | kind | verdict | tests | took |\n| --- | --- | --- | --- | --- |\n");
    let list = Bounded::new(&report.verdicts, LISTED);
    for verdict in list.shown {
        let tests = verdict.counts.map_or_else(String::new, |c| {
            format!("{} passed, {} failed, {} skipped", c.passed, c.failed, c.skipped)
        });
        let _ = writeln!(
            out,
            "| {} | {} | {}{} | {tests} | {} |",
            quoted(&clean.line(verdict.gate.as_str(), 200)),
            word(&verdict.kind),
            word(&verdict.word()),
            if verdict.flaky { " (flaky)" } else { "" },
            seconds(verdict.duration_ms),
        );
    }
    if let Some(marker) = list.marker("gate", "") {
        let _ = writeln!(out, "\n{marker}");
    }
}

fn findings(out: &mut String, report: &Report, clean: &Clean<'_>) {
    let all = weighed(report);
    if all.is_empty() {
        return;
    }
    out.push_str("\n### Findings\n\n");
    let list = Bounded::new(&all, LISTED);
    for (_, finding) in list.shown {
        let at = finding
            .location
            .as_ref()
            .map_or_else(String::new, |l| format!(" at {}", quoted(&clip(&place(clean, l)))));
        let _ = writeln!(
            out,
            "- **{}** {}{at}: {}",
            weight(finding),
            quoted(&clean.line(&finding.rule, 200)),
            quoted(&clean.line(&finding.message, CELL)),
        );
        if let Some(fix) = &finding.fix {
            let _ = writeln!(out, "  fix: {}", quoted(&clean.line(fix, CELL)));
        }
    }
    if let Some(marker) = list.marker("finding", "triphammer show") {
        let _ = writeln!(out, "\n{marker}");
    }
}

/// A path may be long, but not in a list of a hundred.
fn clip(text: &str) -> String {
    crate::text::one_line(text, CELL)
}

/// Text in which nothing means anything to Markdown: a backslash before all punctuation that could.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // A dash, a plus or a number would matter only where a line begins, and none begins with a text of others.
        if c.is_ascii_punctuation() && !"-+,;'\"/?=%^".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{any, export, export_hostile, export_secret, exported, journal};

    /// Every line is a command that we began, and the runner finds no second one in it.
    fn check(commands: &str) {
        assert!(!commands.is_empty());
        for line in commands.lines() {
            let rest = line.strip_prefix("::").expect(line);
            let (head, _) = rest.split_once("::").expect(line);
            let (command, properties) = head.split_once(' ').unwrap_or((head, ""));
            assert!(["error", "warning", "notice"].contains(&command), "{line}");
            for one in properties.split(',').filter(|p| !p.is_empty()) {
                let (name, _) = one.split_once('=').expect(line);
                assert!(["file", "line", "col", "title"].contains(&name), "{line}");
            }
        }
        assert_eq!(commands.chars().find(|c| c.is_control() && !"\n\t".contains(*c)), None);
    }

    #[test]
    fn findings_are_annotations() {
        let mut attempts = exported();
        attempts.truncate(1);
        let commands = export(&journal(), &attempts, false, github_commands);
        check(&commands);
        insta::assert_snapshot!(commands, @r#"
        ::error file=tests/roman.rs,line=12,title=rust-test%3A test/failed::test `nine` failed: expected "IX",%0Afound "VIIII"%0Afix: subtract
        ::error title=rust-test%3A test/failed::test `four` failed
        ::error title=bench%3A gate/no-report::it printed no report that libtest makes
        ::warning title=lint%3A style/long::line is long
        ::notice title=triphammer%3A roman::run 20261130-170601-roman-3fa9: accepted (gates-passed)
        "#);
    }

    #[test]
    fn a_run_is_summed_up() {
        insta::assert_snapshot!(export(&journal(), &exported(), false, github_summary));
        let mut attempts = exported();
        attempts.truncate(1);
        insta::assert_snapshot!(export(&journal()[..7], &attempts, true, github_summary));
    }

    #[test]
    fn hostile_texts_are_no_commands() {
        let commands = export_hostile(github_commands);
        check(&commands);
        let first = commands.lines().next().unwrap();
        insta::assert_snapshot!(first);
        assert!(commands.contains("[96000 characters more, not shown]"), "what is cut is counted");
    }

    #[test]
    fn hostile_texts_are_no_markdown() {
        let summary = export_hostile(github_summary);
        assert_eq!(summary.chars().find(|c| c.is_control() && *c != '\n'), None);
        for mark in ["<", "](", "`", "@", "#1", "$", "|", "::"] {
            let bare = summary.match_indices(mark).find(|(at, _)| {
                let line = summary[..*at].rsplit('\n').next().unwrap();
                // Our own: the edges of cells.
                let is_edge = mark == "|" && (line.is_empty() || summary[..*at].ends_with(' '));
                !is_edge && !summary[..*at].ends_with('\\')
            });
            assert_eq!(bare, None, "{summary}");
        }
        // A row has as many cells as its head, whatever is in them.
        for table in summary.split("\n\n").filter(|part| part.starts_with('|')) {
            let cells = |row: &str| row.replace("\\|", "").matches('|').count();
            let rows: Vec<usize> = table.lines().map(cells).collect();
            assert!(rows.iter().all(|n| *n == rows[0]), "{table}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_gets_out_of_its_command(text in r"(?s)(.|[:%,\r\n]|::error|##\[|%0A){0,60}", path: Vec<u8>) {
            let mut attempts = exported();
            attempts.truncate(1);
            attempts[0].report = Artifact::Read(Report::new(vec![any(&text, path)]));
            let commands = export(&journal(), &attempts, false, github_commands);
            check(&commands);
            proptest::prop_assert_eq!(commands.lines().count(), 2);
        }
    }

    #[test]
    fn the_summary_stays_far_below_a_mebibyte() {
        let many =
            vec![Finding::error("r".repeat(9_999), "ü|".repeat(9_999)).with_fix("x".repeat(9_999)); 2];
        let verdict = GateVerdict::from_findings("g".into(), triphammer_model::GateKind::Test, many);
        let mut attempts = exported();
        attempts.truncate(1);
        attempts[0].report = Artifact::Read(Report::new(vec![verdict; 150]));
        let (summary, commands) =
            export(&journal(), &attempts, false, |v, c| (github_summary(v, c), github_commands(v, c)));
        assert!(summary.len() < 700_000, "{}", summary.len());
        assert!(summary.contains("... and 200 findings more, not shown; all of them: triphammer show"));
        assert!(summary.contains("... and 50 gates more, not shown"));
        assert_eq!(commands.lines().count(), ANNOTATIONS + 2);
        check(&commands);
    }

    #[test]
    fn secrets_do_not_get_in() {
        let (all, replaced) =
            export_secret(|view, clean| github_commands(view, clean) + &github_summary(view, clean));
        assert!(!all.contains("cr>") && !all.contains("et%") && !all.contains("et\\%"), "{all}");
        assert!(replaced > 10, "{replaced}");
    }
}
