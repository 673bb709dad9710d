//! What every export is made from.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use triphammer_model::finding::Excuse;
use triphammer_model::{
    Attempt, Effect, Event, Finding, JournalLine, Location, Receipt, Report, RunSummary, Severity,
};

use crate::attempt::Artifact;
use crate::clean::Clean;
use crate::table::RunRow;

/// A run as it is exported.
#[derive(Clone, Copy, Debug)]
pub struct ExportView<'a> {
    /// Its summary.
    pub summary: &'a RunSummary,
    /// Whether a process works on it now.
    pub live: bool,
    /// Its journal.
    pub lines: &'a [JournalLine],
    /// The attempts to export, in order.
    pub attempts: &'a [ExportedAttempt],
}

/// One attempt as it is exported.
#[derive(Clone, Debug)]
pub struct ExportedAttempt {
    /// Its number.
    pub attempt: Attempt,
    /// `brief.md`.
    pub brief: Artifact<String>,
    /// `receipt.json`.
    pub receipt: Artifact<Receipt>,
    /// `report.json`.
    pub report: Artifact<Report>,
    /// The lines of `transcript.jsonl` that are JSON.
    pub transcript: Vec<Value>,
}

impl ExportedAttempt {
    /// The report, where there is one.
    pub const fn judged(&self) -> Option<&Report> {
        match &self.report {
            Artifact::Read(report) => Some(report),
            Artifact::Missing(_) => None,
        }
    }
}

impl<'a> ExportView<'a> {
    /// The attempt whose findings stand for the run: the accepted one, else the last one that was judged.
    pub fn standing(&self) -> Option<(&'a ExportedAttempt, &'a Report)> {
        let accepted = self.summary.accepted_attempt;
        let judged = |a: &'a ExportedAttempt| a.judged().map(|report| (a, report));
        let of_accepted = self.attempts.iter().find(|a| Some(a.attempt) == accepted);
        of_accepted.and_then(judged).or_else(|| self.attempts.iter().rev().find_map(judged))
    }

    /// Whether the attempt has no report because it is still worked on.
    pub(crate) fn is_pending(&self, attempt: Attempt) -> bool {
        self.live && self.summary.history.last().is_some_and(|a| a.attempt == attempt)
    }

    /// Outcome and reason, as the list of runs says them.
    pub(crate) fn outcome(&self) -> (String, String) {
        let row = RunRow::of(self.summary, self.live);
        (row.outcome, row.reason)
    }

    /// Triphammer's version when the run began.
    pub(crate) fn version(&self) -> &'a str {
        match self.lines.first().map(|line| &line.event) {
            Some(Event::Started(started)) => &started.version,
            _ => "unknown",
        }
    }

    /// When the attempt was begun; of one that was taken up again, for the last time.
    pub(crate) fn began(&self, attempt: Attempt) -> Option<Timestamp> {
        self.time(|line| {
            line.effects.iter().any(|e| matches!(e, Effect::Look { attempt: n, .. } if *n == attempt))
        })
    }

    /// When its gates had spoken.
    pub(crate) fn judged_at(&self, attempt: Attempt) -> Option<Timestamp> {
        self.time(|line| matches!(&line.event, Event::Judged { attempt: n, .. } if *n == attempt))
    }

    fn time(&self, is_it: impl Fn(&JournalLine) -> bool) -> Option<Timestamp> {
        self.lines.iter().rev().find(|line| is_it(line)).map(|line| line.at)
    }
}

/// A finding's weight in one word; an error that fails nothing says why.
pub(crate) const fn weight(finding: &Finding) -> &'static str {
    match (finding.severity, finding.excuse) {
        (Severity::Error, None) => "error",
        (Severity::Error, Some(excuse)) => excused(excuse),
        (Severity::Warning, _) => "warning",
        (Severity::Note, _) => "note",
    }
}

/// Why an error fails nothing.
pub(crate) const fn excused(excuse: Excuse) -> &'static str {
    match excuse {
        Excuse::Grandfathered => "excused (there before any work)",
        Excuse::Baseline => "excused (in the baseline)",
    }
}

/// A place in words: `src/a.rs:3`.
pub(crate) fn place(clean: &Clean<'_>, location: &Location) -> String {
    clean.line(&location.to_string(), 4_096)
}

/// A finding with all that is known of it, over several lines.
pub(crate) fn finding_text(clean: &Clean<'_>, finding: &Finding) -> String {
    let at = finding.location.as_ref().map_or_else(String::new, |l| format!("{}: ", place(clean, l)));
    let (rule, message) = (clean.line(&finding.rule, 500), clean.text(&finding.message));
    let mut out = format!("{} {rule}: {at}{message}\n", weight(finding));
    if let Some(fix) = &finding.fix {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "fix: {}", clean.text(fix));
    }
    if let Some(detail) = &finding.detail {
        out.push_str(clean.text(detail).trim_end());
        out.push('\n');
    }
    out
}
