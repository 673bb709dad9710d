//! `triphammer diff`: what differs between two attempts' trees.

use serde_json::json;
use triphammer_model::{Attempt, RunId};
use triphammer_render::{Bounded, count};
use triphammer_store::Runs;
use triphammer_workspace::{Kept, Store};

use crate::args::DiffArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

pub(crate) fn diff(args: &DiffArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let store = open_store(&runs)?;
    let from = tree(&store, &id, args.from)?;
    let to = tree(&store, &id, args.to)?;
    for (number, kept) in [(args.from, &from), (args.to, &to)] {
        tell_unstored(number, kept);
    }
    if args.home.json {
        let changes: Vec<_> = store
            .diff(&from.tree, &to.tree)
            .map_err(Failure::refused)?
            .into_iter()
            .map(|c| json!({"path": c.path, "change": c.change, "renamed_from": c.renamed_from}))
            .collect();
        let object = json!({"schema": 1, "run": id, "from": args.from, "to": args.to, "changes": changes});
        say::data(&object.to_string());
    } else {
        let patch = store.diff_patch(&from.tree, &to.tree).map_err(Failure::refused)?;
        // A reader that went away has seen what it wanted.
        let _ = say::raw(&patch);
    }
    Ok(Exit::Done)
}

/// The store of a home that has runs; it is not made here.
pub(crate) fn open_store(runs: &Runs) -> Result<Store, Failure> {
    let dir = runs.path().join(".store.git");
    if !dir.is_dir() {
        return Err(Failure::refused(format!(
            "`{}` is missing: the trees of these runs are gone",
            dir.display()
        )));
    }
    Store::open(&dir).map_err(Failure::refused)
}

/// The tree after attempt `number`; 0 is the start.
pub(crate) fn tree(store: &Store, id: &RunId, number: u32) -> Result<Kept, Failure> {
    let name = if number == 0 { "0".to_owned() } else { Attempt::new(number).dir_name() };
    let names = store.names(id).map_err(Failure::refused)?;
    if !names.contains(&name) {
        let mut known: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
        known.sort_unstable();
        let known = Bounded::new(&known, 20).on_one_line(ToString::to_string);
        let known = if known.is_empty() { "none".to_owned() } else { known };
        return Err(Failure::refused(format!(
            "run {id} has no tree {number} (0 is the start); it has: {known}"
        )));
    }
    store.kept(id, &name).map_err(Failure::refused)
}

fn tell_unstored(number: u32, kept: &Kept) {
    let unstored = &kept.manifest.not_stored;
    if !unstored.is_empty() {
        let list = Bounded::new(unstored, 5).on_one_line(|n| format!("{} ({})", n.path, n.why));
        let files = count(unstored.len() as u64, "file");
        say::talk(&say::marked(&format!("note: tree {number} does not hold the content of {files}: {list}")));
    }
}
