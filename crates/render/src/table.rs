//! The list of runs.

use jiff::Timestamp;
use serde::Serialize;
use triphammer_model::{RunId, RunSummary};

use crate::text::one_line;

/// A run in the list. The outcome of a run that has no end is `in-flight` while a process works on it, and
/// `interrupted` with the reason `killed` when none does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// Its spec's name.
    pub spec: String,
    /// How it stands.
    pub outcome: String,
    /// Why.
    pub reason: String,
    /// Attempts charged.
    pub attempts: u32,
    /// When it began.
    pub started: Timestamp,
    /// The run that it was branched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
}

impl RunRow {
    /// The row of a run. `live` says that a process works on it.
    pub fn of(summary: &RunSummary, live: bool) -> Self {
        let (outcome, reason) = standing(summary, live);
        Self {
            run: summary.run.clone(),
            spec: summary.spec.clone(),
            outcome,
            reason,
            attempts: summary.attempts,
            started: summary.started,
            parent: summary.parent.clone(),
        }
    }
}

/// Outcome and reason as a list says them.
fn standing(summary: &RunSummary, live: bool) -> (String, String) {
    match (live, summary.outcome.as_str()) {
        (true, _) => ("in-flight".to_owned(), String::new()),
        (false, "in-flight") => ("interrupted".to_owned(), "killed".to_owned()),
        (false, outcome) => (outcome.to_owned(), summary.reason.clone()),
    }
}

/// The runs as a table, in the order given.
pub fn runs_table(rows: &[RunRow]) -> String {
    let mut table =
        vec![["run", "outcome", "reason", "attempts", "started", "spec"].map(str::to_owned).to_vec()];
    for row in rows {
        table.push(vec![
            row.run.to_string(),
            row.outcome.clone(),
            if row.reason.is_empty() { "-".to_owned() } else { row.reason.clone() },
            row.attempts.to_string(),
            row.started.strftime("%Y-%m-%d %H:%M").to_string(),
            one_line(&row.spec, 40),
        ]);
    }
    columns(&table)
}

/// Rows as columns, two spaces apart; the last column is not padded.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len))
        .map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count().min(*width))))
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::journal;

    #[test]
    fn a_run_without_an_end_was_killed_unless_it_is_live() {
        let lines = journal();
        let whole = RunSummary::fold(&lines).unwrap();
        let part = RunSummary::fold(&lines[..4]).unwrap();
        let rows = [RunRow::of(&whole, false), RunRow::of(&part, false), RunRow::of(&part, true)];
        insta::assert_snapshot!(runs_table(&rows), @r"
        run                         outcome      reason        attempts  started           spec
        20261130-170601-roman-3fa9  accepted     gates-passed  2         2026-11-30 17:06  roman
        20261130-170601-roman-3fa9  interrupted  killed        1         2026-11-30 17:06  roman
        20261130-170601-roman-3fa9  in-flight    -             1         2026-11-30 17:06  roman
        ");
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert!(json.get("parent").is_none() && json["outcome"] == "accepted", "{json}");
    }
}
