//! `triphammer gc`: removes old runs and what nothing refers to.

use serde_json::{Value, json};
use triphammer_model::Size;
use triphammer_render::count;
use triphammer_runner::{GcReport, GcRequest, GcRow, Objects};
use triphammer_store::Limits;

use crate::args::GcArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

pub(crate) fn gc(args: &GcArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let request = GcRequest {
        runs: home.runs().path().to_owned(),
        state: home::state()?,
        limits: Limits { keep_days: args.keep_days, max_runs: args.max_runs, max_size: args.max_size },
        orphans: args.orphans,
        dry_run: args.dry_run,
    };
    let report = triphammer_runner::gc(&request).map_err(Failure::refused)?;
    if args.home.json {
        say::data(&as_json(&report).to_string());
    } else {
        let rows = rows(&report);
        if rows.len() > 1 {
            say::text(&table(&rows));
        }
        for line in totals(&report, &request.limits) {
            say::text(&line);
        }
    }
    for note in &report.notes {
        say::talk(&say::marked(&format!("note: {note}")));
    }
    Ok(match &report.objects {
        Objects::Left { why, in_use } => {
            say::talk(&say::marked(&format!("objects are left: {why}")));
            if *in_use { Exit::Done } else { Exit::Refused }
        }
        Objects::Pruned(_) | Objects::None => Exit::Done,
    })
}

fn as_json(report: &GcReport) -> Value {
    let removed = |row: &GcRow| json!({"run": row.run, "bytes": row.bytes, "reason": row.reason});
    let kept = |row: &GcRow| json!({"run": row.run, "reason": row.reason});
    json!({
        "schema": 1,
        "removed": report.removed.iter().map(removed).collect::<Vec<_>>(),
        "kept": report.kept.iter().map(kept).collect::<Vec<_>>(),
        "bytes": {"before": report.before, "after": report.after},
        "dry_run": report.dry_run,
        "objects": match &report.objects {
            Objects::Pruned(_) => "pruned".to_owned(),
            Objects::None => "none".to_owned(),
            Objects::Left { why, .. } => format!("left: {why}"),
        },
        "notes": report.notes,
    })
}

fn rows(report: &GcReport) -> Vec<[String; 5]> {
    let mut rows = vec![["run", "age", "size", "what", "why"].map(str::to_owned)];
    let removed = if report.dry_run { "would go" } else { "removed" };
    let kept = report.kept.iter().map(|row| (row, "kept"));
    for (row, what) in report.removed.iter().map(|row| (row, removed)).chain(kept) {
        rows.push([
            row.run.to_string(),
            age(report, row),
            Size::new(row.bytes).to_string(),
            what.to_owned(),
            row.reason.clone(),
        ]);
    }
    rows
}

fn age(report: &GcReport, row: &GcRow) -> String {
    let Some(ended) = row.ended else { return "-".to_owned() };
    let seconds = report.at.as_second().saturating_sub(ended.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Columns as wide as their widest cell; the last one as it comes.
fn table(rows: &[[String; 5]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  "));
        cells.collect::<String>() + &row[4]
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn totals(report: &GcReport, limits: &Limits) -> Vec<String> {
    let (would, about) = if report.dry_run { ("would be ", "about ") } else { ("", "") };
    // Only those are listed that a limit would have removed, or that cannot be read.
    let kept = if report.kept.is_empty() {
        String::new()
    } else {
        format!(", {} kept for the reasons above", report.kept.len())
    };
    let mut lines = vec![format!(
        "{} {would}removed{kept}; runs/ takes {}, {about}{} after",
        count(report.removed.len() as u64, "run"),
        Size::new(report.before),
        Size::new(report.after),
    )];
    if let Objects::Pruned(pruned) = &report.objects {
        lines.push(format!(
            "{} that nothing refers to {would}dropped, {} kept",
            count(pruned.dropped, "object"),
            pruned.kept
        ));
    }
    if *limits == Limits::default() {
        lines.push("no run goes without a limit: --keep-days, --max-runs or --max-size".to_owned());
    }
    if report.dry_run {
        lines.push("nothing was touched".to_owned());
    }
    lines
}
