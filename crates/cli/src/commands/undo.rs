//! `triphammer undo`: puts an in-place workspace back to how it was before the run.

use serde_json::json;
use triphammer_runner::PutBack;

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
    let PutBack { restored, kept, is_repository } =
        triphammer_runner::undo(&runs, &home::state()?, &id, args.force).map_err(Failure::refused)?;
    if args.home.json {
        let mut object = restored_json(&restored);
        object["run"] = json!(id);
        object["kept"] = json!(kept);
        say::data(&object.to_string());
    }
    let Some(kept) = kept else {
        say::talk(&format!("run {id}: the workspace is as it was before the run already"));
        return Ok(talk_restored(&restored));
    };
    say::talk(&format!("run {id}: put back to how it was before the run:"));
    let done = talk_restored(&restored);
    if args.force {
        let store = runs.path().join(".store.git");
        say::talk(&format!(
            "what was there before is kept: git --git-dir='{}' archive refs/runs/{id}/{kept} | tar -x -C FOLDER",
            store.display()
        ));
    }
    if is_repository {
        say::talk(
            "note: only files were put back; commits made since the run began stay, and so do git's HEAD and index: see \
             git log",
        );
    }
    Ok(done)
}
