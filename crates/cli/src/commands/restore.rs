//! `triphammer restore`: writes an attempt's tree into a folder.

use serde_json::{Value, json};
use triphammer_render::{Bounded, count};
use triphammer_workspace::Restored;

use crate::args::RestoreArgs;
use crate::commands::diff::{open_store, tree};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

pub(crate) fn restore(args: &RestoreArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    // Names the trees that there are when this one is not.
    tree(&open_store(&runs)?, &id, args.attempt)?;
    let to = home::absolute(&args.to)?;
    let restored =
        triphammer_runner::restore(&runs, &id, args.attempt, &to, args.force).map_err(Failure::refused)?;
    if args.home.json {
        let mut object = restored_json(&restored);
        object["run"] = json!(id);
        object["attempt"] = json!(args.attempt);
        say::data(&object.to_string());
    }
    say::talk(&format!("run {id}, tree {} in {}:", args.attempt, to.display()));
    Ok(talk_restored(&restored))
}

/// What was restored, as JSON.
pub(crate) fn restored_json(restored: &Restored) -> Value {
    let blocked: Vec<Value> =
        restored.blocked.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
    json!({
        "schema": 1,
        "written": restored.written,
        "deleted": restored.deleted,
        "kept": restored.kept,
        "not_restored": restored.not_restored,
        "blocked": blocked,
        "complete": restored.is_complete(),
    })
}

/// What was restored, for a person; what could not be is named, and is no success.
pub(crate) fn talk_restored(restored: &Restored) -> Exit {
    say::talk(&format!(
        "  {} written, {} deleted, {} right already",
        count(restored.written as u64, "file"),
        restored.deleted,
        restored.kept
    ));
    let missing: Vec<String> =
        restored.not_restored.iter().map(|n| format!("  NOT RESTORED {}: {}", n.path, n.why)).collect();
    let blocked: Vec<String> =
        restored.blocked.iter().map(|(path, why)| format!("  IN THE WAY {path}: {why}")).collect();
    for list in [missing, blocked] {
        let list = Bounded::new(&list, 20);
        for line in list.shown {
            say::talk(&say::marked(line));
        }
        if let Some(marker) = list.marker("path", "--json lists them") {
            say::talk(&format!("  {marker}"));
        }
    }
    if restored.is_complete() { Exit::Done } else { Exit::Refused }
}
