//! A person's part: tell, decide, apply, undo, restore. Each is recorded in the run's journal.

use std::path::{Path, PathBuf};

use triphammer_forge::Machine;
use triphammer_model::event::{Isolation, Stamp};
use triphammer_model::{Attempt, Effect, Event, Outcome, Redactor, RunId, RunSummary};
use triphammer_store::{Journal, JournalError, RunDir, Runs};
use triphammer_workspace::{
    ApplyReport, Eyes, Kept, Lease, Onto, Restored, Root, Store, ZoneConfig, ZoneMap, restore as put,
    restore_infrastructure,
};

use crate::folder;
use crate::prepare::redactor;
use crate::run::{Finished, seal, standing_seal};
use crate::settings::Settings;

/// An act could not be carried out; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// It does not fit the run as it is.
    #[error("{0}")]
    Refused(String),
    /// A file, the store or the journal failed.
    #[error("{0}")]
    Failed(String),
}

impl ActError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A run at rest, open for an act.
struct Desk {
    dir: RunDir,
    runs: PathBuf,
    journal: Journal,
    machine: Machine,
    settings: Settings,
}

impl Desk {
    fn open(runs: &Runs, id: &RunId) -> Result<Self, ActError> {
        let plain = runs.open(id, Redactor::default());
        let text = plain.read("pinned/policy.toml").map_err(ActError::failed)?;
        let settings: Settings = toml::from_str(&String::from_utf8_lossy(&text)).map_err(ActError::failed)?;
        let redactor = redactor(&settings);
        let dir = runs.open(id, redactor.clone());
        let (journal, _) = Journal::reopen(&dir.journal(), redactor).map_err(|e| match e {
            JournalError::Busy { .. } => ActError::Refused(format!(
                "run {id} is being worked on; wait for its end or interrupt it first"
            )),
            other => ActError::failed(other),
        })?;
        let mut machine = Machine::new();
        for line in journal.lines() {
            machine.handle(line.stamp(), &line.event);
        }
        Ok(Self { dir, runs: runs.path().to_owned(), journal, machine, settings })
    }

    fn record(&mut self, event: &Event) -> Result<Vec<Effect>, ActError> {
        if !self.machine.expects(event) {
            return Err(ActError::Refused(format!("run {} does not wait for that", self.dir.id())));
        }
        let stamp = Stamp { at: jiff::Timestamp::now(), elapsed_ms: 0 };
        let effects = self.machine.handle(stamp, event);
        let standing = standing_seal(self.journal.lines());
        self.journal.append(stamp, event, &effects).map_err(ActError::failed)?;
        seal(&mut self.journal, &self.dir, stamp, standing).map_err(ActError::failed)?;
        if let Some(summary) = RunSummary::fold(self.journal.lines()) {
            self.dir.write_summary(&summary).map_err(ActError::failed)?;
        }
        Ok(effects)
    }

    fn store(&self) -> Result<Store, ActError> {
        Store::open(&self.runs.join(".store.git")).map_err(ActError::failed)
    }

    fn kept(&self, name: &str) -> Result<Kept, ActError> {
        self.store()?.kept(self.dir.id(), name).map_err(ActError::failed)
    }

    fn zone_config(&self) -> ZoneConfig {
        ZoneConfig { skip: self.settings.skip.clone(), runs: Some(self.runs.clone()) }
    }

    fn accepted(&self) -> Option<Attempt> {
        match self.machine.outcome() {
            Some(Outcome::Accepted { attempt, .. }) => Some(*attempt),
            _ => None,
        }
    }
}

/// Records what a person tells a run: it goes into the next brief, verbatim and attributed. A run that is being
/// worked on takes it in before its next attempt. Returns whether it was put into the journal at once.
///
/// # Errors
/// [`ActError::Refused`] when the run is over for good.
pub fn tell(runs: &Runs, id: &RunId, by: &str, text: &str) -> Result<bool, ActError> {
    let event = Event::Told { by: by.to_owned(), text: text.to_owned() };
    if triphammer_store::is_live(&runs.open(id, Redactor::default()).journal()) {
        let dir = runs.open(id, Redactor::default());
        let stamp = jiff::Timestamp::now().as_nanosecond();
        let file = dir.live().join("inbox").join(format!("{stamp}.json"));
        dir.write_json(file, &event).map_err(ActError::failed)?;
        return Ok(false);
    }
    let mut desk = Desk::open(runs, id)?;
    if let Some(outcome) = desk.machine.outcome()
        && !outcome.is_resumable()
    {
        return Err(ActError::Refused(format!(
            "run {id} is over ({}, {}); nobody would read it",
            outcome.word(),
            outcome.reason()
        )));
    }
    desk.record(&event)?;
    Ok(true)
}

/// Records a person's decision about a run that is suspended as `needs-review`; the machine's verdict stays.
///
/// # Errors
/// [`ActError::Refused`] when the run is not suspended as `needs-review`.
pub fn decide(runs: &Runs, id: &RunId, accept: bool, by: &str, why: &str) -> Result<Finished, ActError> {
    let mut desk = Desk::open(runs, id)?;
    let event = Event::Decided { accept, by: by.to_owned(), why: why.to_owned() };
    if !desk.machine.expects(&event) {
        let now = desk.machine.outcome().map_or_else(
            || "interrupted; resume it".to_owned(),
            |o| format!("{} ({})", o.word(), o.reason()),
        );
        return Err(ActError::Refused(format!(
            "run {id} is {now}: a person decides only about a run that is suspended as needs-review"
        )));
    }
    let effects = desk.record(&event)?;
    let ended =
        effects.into_iter().find_map(|e| if let Effect::End { outcome } = e { Some(outcome) } else { None });
    match (ended, RunSummary::fold(desk.journal.lines())) {
        (Some(outcome), Some(summary)) => Ok(Finished { outcome, summary }),
        _ => Err(ActError::Failed("bug: a decision ended nothing".to_owned())),
    }
}

/// Lands accepted isolated work in a person's folder by a three-way merge. `attempt` lands that attempt's tree
/// instead; `to` is the folder, by default the one that the workspace was made from.
///
/// # Errors
/// [`ActError::Refused`] when there is nothing accepted, or the run worked in place.
pub fn apply(
    runs: &Runs,
    state: &Path,
    id: &RunId,
    attempt: Option<Attempt>,
    to: Option<&Path>,
) -> Result<ApplyReport, ActError> {
    let mut desk = Desk::open(runs, id)?;
    let Some(attempt) = attempt.or_else(|| desk.accepted()) else {
        return Err(ActError::Refused(format!(
            "run {id} is not accepted; name an attempt to apply it all the same"
        )));
    };
    let started = desk.machine.start().cloned().ok_or_else(|| ActError::failed("the run has no start"))?;
    if started.isolation == Isolation::InPlace && to.is_none() {
        return Err(ActError::Refused(format!(
            "run {id} worked in place: its work is in `{}` already",
            started.workspace
        )));
    }
    let target = match (to, &started.origin) {
        (Some(to), _) => to.to_owned(),
        (None, Some(origin)) => folder::read(origin).map_err(ActError::failed)?,
        (None, None) => {
            return Err(ActError::Refused(format!(
                "run {id} worked in a new folder; name the folder to apply to with --to DIR"
            )));
        }
    };
    let root = Root::open(&target).map_err(ActError::failed)?;
    let _lease = Lease::acquire(root.path(), state, id).map_err(ActError::failed)?;
    let zones = ZoneMap::capture(&root, &desk.zone_config()).map_err(ActError::failed)?;
    let base = desk.kept("0")?;
    let theirs = desk.kept(&attempt.dir_name())?;
    let store = desk.store()?;
    // Whatever would fail, fails before the first file is written.
    triphammer_workspace::apply(&store, &base, &theirs, &root, &zones, true).map_err(ActError::failed)?;
    let report = triphammer_workspace::apply(&store, &base, &theirs, &root, &zones, false)
        .map_err(ActError::failed)?;
    desk.record(&Event::Applied {
        attempt,
        to: target.display().to_string(),
        conflicts: report.conflicts.iter().map(|c| c.path.to_string()).collect(),
    })?;
    Ok(report)
}

/// Under this name, and with a number under further ones, a run keeps what an undo found.
pub(crate) const BEFORE_UNDO: &str = "before-undo";

/// What an undo did.
#[derive(Clone, Debug)]
pub struct PutBack {
    /// The files that were written and removed.
    pub restored: Restored,
    /// Under which name what was there before is kept; nothing is where it was put back already.
    pub kept: Option<String>,
    /// Whether the workspace is a repository: what git itself keeps, such as commits, is no part of a tree.
    pub is_repository: bool,
}

/// Puts an in-place workspace back to tree 0.
///
/// # Errors
/// [`ActError::Refused`] when the run was isolated, or the workspace was edited since the run's end and `force` is
/// not given.
pub fn undo(runs: &Runs, state: &Path, id: &RunId, force: bool) -> Result<PutBack, ActError> {
    let mut desk = Desk::open(runs, id)?;
    let started = desk.machine.start().cloned().ok_or_else(|| ActError::failed("the run has no start"))?;
    if started.isolation != Isolation::InPlace {
        return Err(ActError::Refused(format!("run {id} was isolated: your own folder was never touched")));
    }
    let workspace = folder::read(&started.workspace).map_err(ActError::failed)?;
    let is_repository = workspace.join(".git").symlink_metadata().is_ok();
    let root = Root::open(&workspace).map_err(ActError::failed)?;
    let _lease = Lease::acquire(root.path(), state, id).map_err(ActError::failed)?;
    let zones = desk.dir.read_json::<ZoneMap>("pinned/zones.json").map_err(ActError::failed)?;
    let eyes = Eyes::new(root, zones, desk.store()?);
    let now = eyes.look(None).map_err(ActError::failed)?;
    let start = desk.kept("0")?;
    // What an earlier undo has put back is no edit of anybody's.
    if eyes.differences(&start, Some(&now)).map_err(ActError::failed)?.is_empty() {
        let restored = eyes.restore(&start, Some(&now)).map_err(ActError::failed)?;
        return Ok(PutBack { restored, kept: None, is_repository });
    }
    if !force {
        let end = desk.kept("end").map_err(|_| {
            ActError::Refused(format!(
                "run {id} did not end by itself, so edits made since cannot be told from its work; resume it, or use \
                 --force (the workspace as it is now is kept as a tree)"
            ))
        })?;
        let changes = eyes.differences(&end, Some(&now)).map_err(ActError::failed)?;
        if !changes.is_empty() {
            let mut names: Vec<String> = changes.iter().take(5).map(ToString::to_string).collect();
            if changes.len() > 5 {
                names.push(format!("and {} more", changes.len() - 5));
            }
            return Err(ActError::Refused(format!(
                "the workspace was edited since run {id} ended ({}); --force overwrites these edits (they are kept \
                 as a tree)",
                names.join(", ")
            )));
        }
    }
    // What an earlier one kept is not written over.
    let taken = desk.store()?.names(id).map_err(ActError::failed)?;
    let numbered = (2..).map(|number| format!("{BEFORE_UNDO}-{number}"));
    let mut names = std::iter::once(BEFORE_UNDO.to_owned()).chain(numbered);
    let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
    eyes.keep(&now, id, &name).map_err(ActError::failed)?;
    let restored = eyes.restore(&start, Some(&now)).map_err(ActError::failed)?;
    desk.record(&Event::Undone { forced: force })?;
    Ok(PutBack { restored, kept: Some(name), is_repository })
}

/// Writes an attempt's tree (0 is the start) into a folder. Without `force` the folder must be absent or empty.
///
/// # Errors
/// [`ActError`].
pub fn restore(runs: &Runs, id: &RunId, attempt: u32, to: &Path, force: bool) -> Result<Restored, ActError> {
    let store = Store::open(&runs.path().join(".store.git")).map_err(ActError::failed)?;
    let name = if attempt == 0 { "0".to_owned() } else { Attempt::new(attempt).dir_name() };
    let kept = store.kept(id, &name).map_err(ActError::failed)?;
    // As far as the way there exists.
    let target = to.ancestors().find_map(|part| std::fs::canonicalize(part).ok());
    let record = std::fs::canonicalize(runs.path()).ok();
    if target.zip(record).is_some_and(|(target, record)| target.starts_with(record)) {
        return Err(ActError::Refused(format!(
            "`{}` lies in the records of runs, which a restore would destroy: name another folder",
            to.display()
        )));
    }
    let tools = store.kept_infrastructure(id, &name).map_err(ActError::failed)?;
    // What the run passed over was not its to keep, and is not this command's to remove.
    let config = ZoneConfig { skip: skipped(runs, id), runs: Some(runs.path().to_owned()) };
    let zones_of = || {
        let root = Root::open(to).map_err(ActError::failed)?;
        ZoneMap::capture(&root, &config).map_err(ActError::failed)
    };
    let mut restored = if force && to.exists() {
        put(&store, &kept, to, Onto::Exact(&zones_of()?)).map_err(ActError::failed)?
    } else {
        put(&store, &kept, to, Onto::Fresh).map_err(ActError::failed)?
    };
    if let Some(tools) = tools {
        let done = restore_infrastructure(&store, &tools, to, &zones_of()?).map_err(ActError::failed)?;
        restored.add(done);
    }
    Ok(restored)
}

/// What a run was told to pass over; nothing where its record cannot be read any more.
fn skipped(runs: &Runs, id: &RunId) -> Vec<String> {
    let text = runs.open(id, Redactor::default()).read("pinned/policy.toml").unwrap_or_default();
    let settings = toml::from_str::<Settings>(&String::from_utf8_lossy(&text));
    settings.map(|settings| settings.skip).unwrap_or_default()
}
