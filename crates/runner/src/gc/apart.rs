//! The folder apart that a run worked in: it goes with the run, unless it holds more than the run's trees.

use std::path::{Path, PathBuf};

use triphammer_model::event::Isolation;
use triphammer_model::{Digest, Redactor, RunId};
use triphammer_store::{Runs, marked_for_removal, remove_folder};
use triphammer_workspace::{Lease, Store, ZoneMap, commits_not_in, unknown_content};

use super::past::Facts;
use crate::folder;

/// The folder apart that was made for a run.
pub(crate) struct Apart(PathBuf);

impl Apart {
    pub(crate) fn of(state: &Path, run: &RunId, facts: &Facts) -> Option<Self> {
        let folder = state.join("workspaces").join(run.as_str());
        let is_folder = std::fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir());
        (facts.started.isolation.is_apart() && is_folder).then_some(Self(folder))
    }

    pub(crate) fn stays(&self, why: &str) -> String {
        format!("workspace `{}` stays: {why}", self.0.display())
    }

    /// What it holds that its trees do not.
    pub(crate) fn why_it_stays(
        &self,
        store: Option<&Store>,
        runs: &Runs,
        run: &RunId,
        facts: &Facts,
    ) -> Option<String> {
        let unsure =
            |what: String| Some(format!("nobody knows whether it holds more than the run's trees: {what}"));
        let Some(store) = store else { return unsure("the store is gone".to_owned()) };
        let workspace = folder::read(&facts.started.workspace).ok();
        if workspace.and_then(|path| path.canonicalize().ok()) != self.0.canonicalize().ok() {
            return unsure("the workspace was a part of it".to_owned());
        }
        let dir = runs.open(run, Redactor::default());
        let pinned = dir.read("pinned/zones.json").ok();
        let pinned = pinned.filter(|text| facts.started.pins.get("zones.json") == Some(&Digest::of(text)));
        let Some(zones) = pinned.and_then(|text| serde_json::from_slice::<ZoneMap>(&text).ok()) else {
            return unsure("its zones cannot be read".to_owned());
        };
        let known = match store.objects_of(run) {
            Ok(known) => known,
            Err(error) => return unsure(error.to_string()),
        };
        let clone = facts.started.isolation == Isolation::Worktree;
        match unknown_content(&self.0, &zones, &known, clone, 3) {
            Ok(unknown) if unknown.is_empty() => {}
            Ok(unknown) => {
                let names: Vec<String> = unknown.iter().map(|path| format!("`{path}`")).collect();
                return Some(format!("it holds what no tree of the run has: {}", names.join(", ")));
            }
            Err(error) => return unsure(error.to_string()),
        }
        if !clone {
            return None;
        }
        let Some(origin) = facts.started.origin.as_ref().and_then(|text| folder::read(text).ok()) else {
            return unsure("its origin is not known".to_owned());
        };
        match commits_not_in(&self.0, &origin) {
            Ok(0) => None,
            Ok(n) => Some(format!("its clone has {n} commits that `{}` has not", origin.display())),
            Err(error) => unsure(error.to_string()),
        }
    }

    /// Removes it, unless another run works in it.
    pub(crate) fn remove(&self, state: &Path, run: &RunId) -> Result<(), String> {
        let lease = Lease::acquire(&self.0, state, run).map_err(|error| error.to_string())?;
        let going = marked_for_removal(&self.0);
        std::fs::rename(&self.0, &going)
            .map_err(|e| format!("`{}` could not be renamed: {e}", self.0.display()))?;
        drop(lease);
        remove_folder(&going).map_err(|error| error.to_string())
    }
}

/// Removes fresh checkouts that a killed process left behind.
pub(crate) fn remove_checkouts(state: &Path, run: &RunId) -> Vec<String> {
    let prefix = format!("{run}-");
    let entries = std::fs::read_dir(state.join("confirm")).into_iter().flatten().flatten();
    entries
        .filter(|e| e.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
        .filter_map(|e| remove_folder(&e.path()).err().map(|error| error.to_string()))
        .collect()
}
