//! `triphammer runs`: the runs of this home, oldest first.

use serde_json::json;
use triphammer_render::{RunRow, runs_table};

use crate::args::ListArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

pub(crate) fn runs(args: &ListArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let listing = runs.list().map_err(Failure::refused)?;
    for damaged in &listing.damaged {
        say::talk(&say::marked(&format!("damaged: run {}: {}", damaged.run, damaged.error)));
    }
    let rows: Vec<RunRow> = listing.runs.iter().map(|(summary, live)| RunRow::of(summary, *live)).collect();
    if args.home.json {
        let damaged: Vec<_> =
            listing.damaged.iter().map(|d| json!({"run": d.run, "error": d.error.to_string()})).collect();
        say::data(&json!({"schema": 1, "runs": rows, "damaged": damaged}).to_string());
    } else if rows.is_empty() {
        say::talk(&format!("no run in `{}` yet; `triphammer run <spec>` makes one", runs.path().display()));
    } else {
        say::text(&runs_table(&rows));
    }
    Ok(Exit::Done)
}
