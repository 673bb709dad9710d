//! `triphammer undo`: puts an in-place workspace back to how it was before the run.

use serde_json::json;

use crate::args::UndoArgs;
use crate::commands::diff::open_store;
use crate::commands::restore::{restored_json, talk_restored};
use crate::exit::{Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

pub(crate) fn undo(args: &UndoArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    // Asked for first: acting would make an empty store where the real one is gone.
    open_store(&runs)?;
    let restored =
        triphammer_runner::undo(&runs, &home::state()?, &id, args.force).map_err(Failure::refused)?;
    if args.home.json {
        let mut object = restored_json(&restored);
        object["run"] = json!(id);
        say::data(&object.to_string());
    }
    say::talk(&format!("run {id}: put back to how it was before the run:"));
    Ok(talk_restored(&restored))
}
