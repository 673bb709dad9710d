//! What a run did, and where it should be found.

use std::path::{Path, PathBuf};

use triphammer_model::event::Isolation;
use triphammer_model::{RunId, TreeId};
use triphammer_workspace::{Deed, Kept, Store};

use super::past::Facts;
use crate::acts::BEFORE_UNDO;
use crate::folder;

/// What only a run's trees may know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// Where its accepted tree differs from its start.
    pub(crate) accepted: Vec<Deed>,
    /// Whether that is something and waits to be applied: wherever its parts may lie, nobody has taken it over.
    pub(crate) waits: bool,
    /// Edits of a person's that an undo overwrote.
    pub(crate) edits: Vec<Deed>,
}

impl Work {
    pub(crate) fn of(store: &Store, run: &RunId, facts: &Facts) -> Result<Self, String> {
        let kept = |name: &str| store.kept(run, name).map_err(|error| error.to_string());
        let deeds =
            |bases: &[&Kept], work: &Kept| store.deeds(bases, work).map_err(|error| error.to_string());
        let start = agreed("0", kept("0")?, Some(&facts.started.tree))?;
        let mut work = Self::default();
        if let Some(attempt) = facts.summary.accepted_attempt {
            let name = attempt.dir_name();
            let accepted = agreed(&name, kept(&name)?, facts.summary.tree.as_ref())?;
            work.accepted = deeds(&[&start], &accepted)?;
            let is_apart = facts.started.isolation != Isolation::InPlace;
            work.waits = is_apart && facts.applied.is_empty() && !start.same_files_as(&accepted);
        } else if facts.summary.outcome == "accepted" {
            return Err("its journal does not say which attempt was accepted".to_owned());
        }
        if facts.overwritten {
            let end = kept("end").unwrap_or_else(|_| start.clone());
            let names = store.names(run).map_err(|error| error.to_string())?;
            for name in names.iter().filter(|name| name.starts_with(BEFORE_UNDO)) {
                work.edits.extend(deeds(&[&start, &end], &kept(name)?)?);
            }
            if !names.iter().any(|name| name == BEFORE_UNDO) {
                return Err("what its undo overwrote is not kept".to_owned());
            }
        }
        Ok(work)
    }

    pub(crate) fn deeds(&self) -> impl Iterator<Item = &Deed> {
        self.accepted.iter().chain(&self.edits)
    }
}

/// Refs are files that an agent of an in-place home can write; the journal says which trees they must name.
fn agreed(name: &str, kept: Kept, journal: Option<&TreeId>) -> Result<Kept, String> {
    match journal {
        Some(tree) if *tree != kept.tree => {
            Err(format!("its tree `{name}` is {}, and its journal says {tree}", kept.tree))
        }
        _ => Ok(kept),
    }
}

/// The folders where a run's work should be; its own folder apart, which goes with it, is none.
pub(crate) fn places(state: &Path, run: &RunId, facts: &Facts) -> Vec<Result<PathBuf, String>> {
    let own = state.join("workspaces").join(run.as_str());
    let own = own.canonicalize().unwrap_or(own);
    let named = match facts.started.isolation {
        Isolation::InPlace => Some(&facts.started.workspace),
        _ => facts.started.origin.as_ref(),
    };
    let named = named.map(|text| folder::read(text).map_err(|error| error.to_string()));
    let all = named.into_iter().chain(facts.applied.iter().cloned().map(Ok));
    all.filter(|place| {
        let real = place.as_ref().ok().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        !real.is_some_and(|path| path.starts_with(&own))
    })
    .collect()
}
