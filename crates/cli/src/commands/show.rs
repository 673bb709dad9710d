//! `triphammer show`: a run, or one attempt of it, from what lies on disk. What is missing is said, never fatal.

use std::io::ErrorKind;

use serde_json::json;
use triphammer_model::{Attempt, JournalLine, Redactor, RunSummary};
use triphammer_render::{Artifact, AttemptView, RunRow, RunView, attempt_json, show_attempt, show_run};
use triphammer_store::{FileError, RunDir, is_live, read_journal};

use crate::args::ShowArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

pub(crate) fn show(args: &ShowArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let dir = runs.open(&id, Redactor::default());
    let Some(number) = args.attempt else { return whole(&dir, args.home.json) };
    let attempt = Attempt::new(number);
    let lines = lines_or_talk(&dir);
    if !dir.attempt(attempt).is_dir() {
        return Err(Failure::refused(no_such_attempt(&dir, number)));
    }
    let view = view(&dir, attempt, &lines);
    if args.home.json {
        let summary = RunSummary::fold(&lines).map(|s| summary_json(&s, is_live(&dir.journal())));
        say::data(&json!({"schema": 1, "run": summary, "attempt": attempt_json(&view)}).to_string());
    } else {
        say::text(&show_attempt(&view));
    }
    Ok(Exit::Done)
}

fn whole(dir: &RunDir, json: bool) -> Outcome {
    let live = is_live(&dir.journal());
    let text = read_journal(&dir.journal()).map_err(Failure::refused)?;
    let summary = RunSummary::fold(&text.lines).ok_or_else(|| {
        Failure::refused(format!("journal `{}` does not begin with `started`", dir.journal().display()))
    })?;
    if json {
        say::data(&json!({"schema": 1, "run": summary_json(&summary, live), "live": live}).to_string());
    } else {
        say::text(&show_run(&RunView {
            summary: &summary,
            live,
            lines: &text.lines,
            // A live run's last line may be just being written.
            torn_bytes: text.torn.filter(|_| !live).map_or(0, |t| t.bytes),
            folder: &dir.path().display().to_string(),
        }));
    }
    Ok(Exit::Done)
}

/// `run.json`, with the outcome as the list of runs has it: a run at rest without an end was killed.
fn summary_json(summary: &RunSummary, live: bool) -> serde_json::Value {
    let row = RunRow::of(summary, live);
    let mut summary = summary.clone();
    summary.outcome = row.outcome;
    summary.reason = row.reason;
    json!(summary)
}

/// The journal of a run whose attempt is shown: damage of the one does not hide the other.
fn lines_or_talk(dir: &RunDir) -> Vec<JournalLine> {
    match read_journal(&dir.journal()) {
        Ok(text) => text.lines,
        Err(error) => {
            say::talk(&say::marked(&format!("damaged: {error}")));
            Vec::new()
        }
    }
}

fn view<'a>(dir: &'a RunDir, attempt: Attempt, lines: &'a [JournalLine]) -> AttemptView<'a> {
    let folder = dir.attempt(attempt);
    let brief = dir.read(folder.join("brief.md")).map(|b| String::from_utf8_lossy(&b).into_owned());
    AttemptView {
        run: dir.id(),
        attempt,
        lines,
        brief: artifact(brief),
        movement: artifact(dir.read_json(folder.join("movement.json"))),
        receipt: artifact(dir.read_json(folder.join("receipt.json"))),
        // Most attempts have none.
        guard: match dir.read_json(folder.join("guard.json")) {
            Err(error) if error.source.kind() == ErrorKind::NotFound => None,
            read => Some(artifact(read)),
        },
        report: artifact(dir.read_json(folder.join("report.json"))),
    }
}

fn artifact<T>(read: Result<T, FileError>) -> Artifact<T> {
    match read {
        Ok(value) => Artifact::Read(value),
        Err(error) if error.source.kind() == ErrorKind::NotFound => Artifact::Missing(format!(
            "`{}` was not written: the attempt did not get that far, or the file was removed",
            error.path.display()
        )),
        Err(error) => Artifact::Missing(error.to_string()),
    }
}

/// The attempts that a run has on disk, in order.
pub(crate) fn attempts(dir: &RunDir) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(dir.path().join("attempts")) else { return Vec::new() };
    let mut numbers: Vec<u32> =
        entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Says which attempts there are instead.
pub(crate) fn no_such_attempt(dir: &RunDir, number: u32) -> String {
    let known = attempts(dir);
    match (known.first(), known.last()) {
        (Some(first), Some(last)) if first == last => {
            format!("run {} has no attempt {number}; it has attempt {first}", dir.id())
        }
        (Some(first), Some(last)) => {
            format!("run {} has no attempt {number}; it has attempts {first} to {last}", dir.id())
        }
        _ => format!("run {} has no attempt {number}: none was begun", dir.id()),
    }
}
