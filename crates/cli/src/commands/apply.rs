//! `triphammer apply`: lands accepted isolated work in a person's own folder.

use serde_json::json;
use triphammer_model::{Attempt, Redactor, RunSummary};
use triphammer_render::{Bounded, count};
use triphammer_store::read_journal;

use crate::args::ApplyArgs;
use crate::commands::diff::open_store;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

pub(crate) fn apply(args: &ApplyArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    if args.attempt == Some(0) {
        return Err(Failure::usage("attempt 0 is the start: there is no work in it; attempts count from 1"));
    }
    let to = args.to.as_deref().map(home::absolute).transpose()?;
    let attempt = args.attempt.map(Attempt::new);
    // Asked for first: acting would make an empty store where the real one is gone.
    open_store(&runs)?;
    let report = triphammer_runner::apply(&runs, &home::state()?, &id, attempt, to.as_deref())
        .map_err(Failure::refused)?;
    if args.home.json {
        let conflicts: Vec<_> = report
            .conflicts
            .iter()
            .map(|c| json!({"path": c.path, "why": c.why, "marked": c.marked}))
            .collect();
        let object = json!({
            "schema": 1, "run": id, "applied": report.applied, "already": report.already, "conflicts": conflicts,
        });
        say::data(&object.to_string());
    } else {
        // A file that carries conflict markers is told once, as what it is.
        let conflict = |path: &triphammer_model::WorkPath| report.conflicts.iter().any(|c| c.path == *path);
        let applied: Vec<_> = report.applied.iter().filter(|path| !conflict(path)).collect();
        let applied = Bounded::new(&applied, 200);
        for path in applied.shown {
            say::text(&format!("applied  {path}"));
        }
        if let Some(marker) = applied.marker("path", "") {
            say::text(&marker);
        }
        for conflict in &report.conflicts {
            let how = if conflict.marked { "marked in the file" } else { "left as it is" };
            say::text(&format!("CONFLICT {}: {} ({how})", conflict.path, conflict.why));
        }
    }
    say::talk(&format!(
        "run {id}: {} applied, {} there already, {}",
        count(report.applied.len() as u64, "path"),
        report.already.len(),
        count(report.conflicts.len() as u64, "conflict"),
    ));
    if report.conflicts.iter().any(|c| c.marked) {
        say::talk("next: decide in each marked file, between the conflict markers, and take them out");
    }
    if report.conflicts.iter().any(|c| !c.marked) {
        let journal =
            read_journal(&runs.open(&id, Redactor::default()).journal()).map_err(Failure::refused)?;
        let accepted = RunSummary::fold(&journal.lines).and_then(|summary| summary.accepted_attempt);
        let number = attempt.or(accepted).map_or_else(|| "ATTEMPT".to_owned(), |number| number.to_string());
        say::talk(&format!(
            "next: for what was left as it is, have the run's version in a folder of its own: triphammer restore {id} \
             {number} --to DIR"
        ));
    }
    Ok(if report.conflicts.is_empty() { Exit::Done } else { Exit::Refused })
}
