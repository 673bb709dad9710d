//! Cleaning up: old runs go with everything that is theirs, and no work goes whose only copy is here.
//!
//! First every run is judged without touching anything; then those that go are renamed, their refs removed, their
//! folders deleted. The store's objects come last, when nothing refers to them any more.

mod apart;
mod past;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use jiff::Timestamp;
use triphammer_model::RunId;
use triphammer_store::{
    Aged, Choice, Fate, FileError, Going, Limits, Runs, RunsError, bytes_on_disk, choose, is_live, marked,
    marked_for_removal, read_journal, remove_folder,
};
use triphammer_workspace::{Deed, Holdings, PruneError, Pruned, Store, StoreError};

use crate::containment;

use apart::{Apart, remove_checkouts};
use past::Past;
use work::{Work, places};

/// What to clean up.
#[derive(Clone, Debug)]
pub struct GcRequest {
    /// The home's `runs/`.
    pub runs: PathBuf,
    /// The user's state folder.
    pub state: PathBuf,
    /// Which runs go.
    pub limits: Limits,
    /// Whether trees go whose run's folder somebody deleted.
    pub orphans: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// A run that went or stayed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcRow {
    /// The run.
    pub run: RunId,
    /// When it ended, or was last heard of.
    pub ended: Option<Timestamp>,
    /// What its folder takes on disk, with the objects that it alone keeps where that had to be known.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

/// What became of the store's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// What nothing refers to is dropped, or would be.
    Pruned(Pruned),
    /// There is no store.
    None,
    /// They were left alone.
    Left {
        /// Why.
        why: String,
        /// Whether it will be better by itself: somebody only uses the store now.
        in_use: bool,
    },
}

/// What was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcReport {
    /// When it was done: ages count up to here.
    pub at: Timestamp,
    /// Runs that went.
    pub removed: Vec<GcRow>,
    /// Runs that a limit would have removed, those that cannot be read, and those that cannot be removed to the end.
    pub kept: Vec<GcRow>,
    /// What else a person should know, a line each.
    pub notes: Vec<String>,
    /// What `runs/` took on disk before.
    pub before: u64,
    /// What it takes now, or would about take.
    pub after: u64,
    /// The objects.
    pub objects: Objects,
    /// Whether nothing was done.
    pub dry_run: bool,
}

/// Nothing was cleaned up.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of runs cannot be used.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Cleans a home's runs up.
///
/// # Errors
/// [`GcError`]; what fails for one run alone is in the report.
pub fn gc(request: &GcRequest) -> Result<GcReport, GcError> {
    let runs = Runs::new(request.runs.clone());
    let place = request.runs.join(".store.git");
    let store = match std::fs::symlink_metadata(&place) {
        Ok(_) => Some(Store::open(&place)?),
        Err(_) => None,
    };
    if let Some(store) = &store {
        store.check_unlocked()?;
    }
    let before = bytes_on_disk(runs.path());
    let mut cleaner = Cleaner {
        request,
        store: store.as_ref(),
        past: Past::default(),
        holdings: None,
        works: HashMap::new(),
        gone: HashSet::new(),
        report: GcReport {
            at: Timestamp::now(),
            removed: Vec::new(),
            kept: Vec::new(),
            notes: Vec::new(),
            before,
            after: before,
            objects: Objects::None,
            dry_run: request.dry_run,
        },
    };
    cleaner.finish_begun(&runs)?;
    // Refs first: a new run makes its folder before its refs, so what has none by then never will.
    let with_refs = match &store {
        Some(store) => store.runs_with_refs()?,
        None => BTreeMap::new(),
    };
    cleaner.past = Past::read(&runs)?;
    cleaner.quarantined();
    let choices = cleaner.choose(before);
    for choice in choices {
        cleaner.carry_out(&runs, &choice);
    }
    if !request.dry_run {
        for run in cleaner
            .past
            .runs
            .keys()
            .filter(|run| !is_live(&runs.path().join(run.as_str()).join("journal.jsonl")))
        {
            containment::remove_temp(run);
        }
    }
    cleaner.orphans(with_refs.keys());
    cleaner.objects();
    if !request.dry_run {
        if !cleaner.report.removed.is_empty() {
            // Derived from the runs, and made anew when it is missing.
            let _ = std::fs::remove_file(request.runs.join(".index"));
        }
        cleaner.report.after = bytes_on_disk(runs.path());
    }
    Ok(cleaner.report)
}

struct Cleaner<'a> {
    request: &'a GcRequest,
    store: Option<&'a Store>,
    past: Past,
    /// What every run keeps; asked for where sizes have to be known.
    holdings: Option<Holdings>,
    /// What accepted runs did, and what therefore stays while they do.
    works: HashMap<RunId, HashSet<Deed>>,
    gone: HashSet<RunId>,
    report: GcReport,
}

impl Cleaner<'_> {
    /// Completes removals that were begun and killed.
    fn finish_begun(&mut self, runs: &Runs) -> Result<(), GcError> {
        for going in runs.going()? {
            // Whoever made that folder, a run that is there is not going.
            if std::fs::symlink_metadata(self.request.runs.join(going.run.as_str())).is_ok() {
                let note = format!("`{}` is left: the run itself is there", going.folder.display());
                self.report.notes.push(note);
                continue;
            }
            let bytes = bytes_on_disk(&going.folder);
            let done = if self.request.dry_run { Ok(()) } else { self.complete(&going) };
            let run = going.run;
            let row = |reason| GcRow { run: run.clone(), ended: None, bytes, reason };
            match done {
                Ok(()) => {
                    self.report.removed.push(row("its removal was begun earlier".to_owned()));
                    self.gone.insert(run);
                }
                // What is in the way of one is in nobody else's.
                Err(why) => {
                    let reason = format!(
                        "its removal was begun earlier and cannot be completed: {why}; the next gc tries again, or \
                         delete `{}`",
                        going.folder.display()
                    );
                    self.report.kept.push(row(reason));
                }
            }
        }
        if !self.request.dry_run {
            self.finish_workspaces();
        }
        Ok(())
    }

    fn complete(&self, going: &Going) -> Result<(), String> {
        if let Some(store) = self.store {
            store.forget(&going.run).map_err(|error| error.to_string())?;
        }
        remove_folder(&going.folder).map_err(|error| error.to_string())
    }

    /// Completes removals of folders apart that were begun and killed.
    fn finish_workspaces(&mut self) {
        let left = match marked(&self.request.state.join("workspaces")) {
            Ok(left) => left,
            Err(error) => {
                self.report.notes.push(format!("folders apart are not cleaned up: {error}"));
                return;
            }
        };
        for (_, folder) in left {
            if let Err(error) = remove_folder(&folder) {
                self.report.notes.push(format!("`{}` is left: {error}", folder.display()));
            }
        }
    }

    fn quarantined(&mut self) {
        for (run, why) in std::mem::take(&mut self.past.damaged) {
            let reason = format!("it cannot be read: {why}");
            let bytes = bytes_on_disk(&self.request.runs.join(run.as_str()));
            self.report.kept.push(GcRow { run, ended: None, bytes, reason });
        }
    }

    fn choose(&mut self, bytes: u64) -> Vec<Choice> {
        let aged: Vec<Aged> =
            self.past.runs.iter().map(|(run, facts)| Aged { run: run.clone(), ended: facts.ended }).collect();
        let limits = self.request.limits;
        let mut bytes = bytes;
        if (limits.max_size.is_some() || self.request.dry_run)
            && let Some(store) = self.store
            && let Ok(mut holdings) = store.holdings()
        {
            for run in &self.gone {
                holdings.give_up(run);
            }
            // What nothing keeps goes anyway.
            bytes = bytes.saturating_sub(holdings.unkept());
            self.holdings = Some(holdings);
        }
        choose(&limits, self.report.at, &aged, bytes, |run| self.fate(run))
    }

    fn fate(&mut self, run: &RunId) -> Fate {
        if let Some(why) = self.why_it_stays(run) {
            return Fate::Stays { why };
        }
        self.gone.insert(run.clone());
        let folder = self.bytes_of(run);
        let objects = self.holdings.as_mut().map_or(0, |holdings| holdings.give_up(run));
        Fate::Goes { frees: folder + objects }
    }

    /// What a run's folder and refs take.
    fn bytes_of(&self, run: &RunId) -> u64 {
        let folder = self.request.runs.join(run.as_str());
        let refs = std::fs::read_dir(self.request.runs.join(".store.git/refs"));
        let refs = refs.into_iter().flatten().flatten().map(|kind| kind.path().join(run.as_str()));
        let all = [marked_for_removal(&folder), folder].into_iter().chain(refs);
        all.map(|path| bytes_on_disk(&path)).sum()
    }

    fn why_it_stays(&mut self, run: &RunId) -> Option<String> {
        let facts = self.past.runs.get(run)?;
        if let Some(why) = &facts.unfinished {
            return Some(why.clone());
        }
        let child = self
            .past
            .runs
            .iter()
            .find(|(_, other)| other.started.parent.as_ref() == Some(run) && other.unfinished.is_some());
        if let Some((child, _)) = child {
            return Some(format!("run {child} was branched off it and is not finished"));
        }
        if facts.summary.outcome != "accepted" && !facts.overwritten {
            return None;
        }
        self.only_copy(run)
    }

    /// Why a run's work would be lost with it.
    fn only_copy(&mut self, run: &RunId) -> Option<String> {
        let facts = self.past.runs.get(run)?;
        let Some(store) = self.store else {
            return Some("its trees are gone with the store, so nobody knows where its work is".to_owned());
        };
        let work = match Work::of(store, run, facts) {
            Ok(work) => work,
            Err(error) => {
                return Some(format!("its work cannot be read, so nobody knows where else it is: {error}"));
            }
        };
        let all = work.deeds().count();
        if work.waits && work.accepted.is_empty() {
            let what = "permission bits, special files or content that is not stored";
            return Some(format!("its accepted tree differs from its start in {what}: it was never applied"));
        }
        let (mut missing, waiting) = if work.waits {
            (work.edits, work.accepted)
        } else {
            ([work.accepted, work.edits].concat(), Vec::new())
        };
        let mut unasked = Vec::new();
        for place in places(&self.request.state, run, facts) {
            let place = match place {
                Ok(place) => place,
                Err(error) => {
                    unasked.push(error);
                    continue;
                }
            };
            if missing.is_empty() {
                break;
            }
            match store.not_found_in(&place, missing.clone()) {
                Ok(left) => missing = left,
                Err(error) => unasked.push(error.to_string()),
            }
        }
        missing.extend(waiting);
        if !missing.is_empty() {
            let elsewhere = self.brought_by_others(run, store);
            missing.retain(|deed| !elsewhere.contains(deed));
        }
        let first = missing.first()?;
        let names = match missing.len() {
            1 => first.to_string(),
            n => format!("{first} and {} more", n - 1),
        };
        let mut why = format!("of the paths that it changed ({all}), this is the only copy of {names}");
        if work.waits {
            why.push_str(": it was never applied");
        }
        if !unasked.is_empty() {
            why.push_str("; ");
            why.push_str(&unasked.join("; "));
        }
        Some(why)
    }

    /// What accepted runs did which stay. What a run only found at its start does not count: nothing would keep it when
    /// that run is removed one day.
    fn brought_by_others(&mut self, run: &RunId, store: &Store) -> HashSet<Deed> {
        let mut all = HashSet::new();
        for (other, facts) in &self.past.runs {
            if other == run || self.gone.contains(other) || facts.summary.outcome != "accepted" {
                continue;
            }
            let brought = self.works.entry(other.clone()).or_insert_with(|| {
                let work = Work::of(store, other, facts).unwrap_or_default();
                work.deeds().cloned().collect()
            });
            all.extend(brought.iter().cloned());
        }
        all
    }

    fn carry_out(&mut self, runs: &Runs, choice: &Choice) {
        let run = &choice.run;
        let ended = self.past.runs.get(run).map(|facts| facts.ended);
        let row = |bytes, reason| GcRow { run: run.clone(), ended, bytes, reason };
        match &choice.fate {
            Fate::Stays { why } => {
                let bytes = bytes_on_disk(&self.request.runs.join(run.as_str()));
                self.report.kept.push(row(bytes, format!("{}, but: {why}", choice.beyond)));
            }
            Fate::Goes { frees } => match self.remove(runs, run) {
                Ok(()) => self.report.removed.push(row(*frees, choice.beyond.to_string())),
                Err(why) => {
                    self.gone.remove(run);
                    self.report.kept.push(row(*frees, format!("{}, but: {why}", choice.beyond)));
                }
            },
        }
    }

    fn remove(&mut self, runs: &Runs, run: &RunId) -> Result<(), String> {
        let Some(facts) = self.past.runs.get(run) else { return Ok(()) };
        let apart = Apart::of(&self.request.state, run, facts);
        let more = apart.as_ref().and_then(|apart| apart.why_it_stays(self.store, runs, run, facts));
        if self.request.dry_run {
            if let (Some(apart), Some(why)) = (&apart, more) {
                self.report.notes.push(apart.stays(&why));
            }
            return Ok(());
        }
        let claim = match runs.claim(run) {
            Ok(Some(claim)) => claim,
            Ok(None) => return Err("a process works on it".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let journal = self.request.runs.join(run.as_str()).join("journal.jsonl");
        if !read_journal(&journal).is_ok_and(|text| text.lines.len() == facts.lines && text.torn.is_none()) {
            return Err("it went on meanwhile".to_owned());
        }
        let going = runs.let_go(&claim).map_err(|e| e.to_string())?;
        // From here on it is no run; what fails now is completed by the next clean-up.
        let mut later = Vec::new();
        if let Some(store) = self.store
            && let Err(error) = store.forget(run)
        {
            later.push(error.to_string());
        }
        if let Some(apart) = &apart {
            let stays = more.or_else(|| apart.remove(&self.request.state, run).err());
            self.report.notes.extend(stays.map(|why| apart.stays(&why)));
        }
        later.extend(remove_checkouts(&self.request.state, run));
        if later.is_empty() {
            later.extend(remove_folder(&going.folder).err().map(|e| e.to_string()));
        }
        for error in later {
            self.report
                .notes
                .push(format!("run {run} is not removed completely: {error}; the next gc goes on"));
        }
        Ok(())
    }

    /// Refs of runs whose folder somebody deleted.
    fn orphans<'r>(&mut self, with_refs: impl Iterator<Item = &'r RunId>) {
        let known: BTreeSet<RunId> = self.report.kept.iter().map(|row| row.run.clone()).collect();
        for run in with_refs {
            let there = self.past.runs.contains_key(run) || self.gone.contains(run) || known.contains(run);
            if there || std::fs::symlink_metadata(self.request.runs.join(run.as_str())).is_ok() {
                continue;
            }
            let row = |bytes, reason: &str| GcRow {
                run: run.clone(),
                ended: None,
                bytes,
                reason: reason.to_owned(),
            };
            if !self.request.orphans {
                self.report.kept.push(row(
                    0,
                    &format!(
                        "its folder is gone and its trees are left, so nobody knows whether they are the only copy of \
                         accepted work: `git --git-dir='{}' archive -o FILE.tar refs/runs/{run}/001` saves one, \
                         `gc --orphans` drops them",
                        self.request.runs.join(".store.git").display()
                    ),
                ));
                continue;
            }
            let forgotten = match self.store {
                Some(store) if !self.request.dry_run => store.forget(run).map_err(|e| e.to_string()),
                _ => Ok(()),
            };
            match forgotten {
                Ok(()) => {
                    let bytes = self.holdings.as_mut().map_or(0, |holdings| holdings.give_up(run));
                    self.gone.insert(run.clone());
                    self.report.removed.push(row(bytes, "its folder is gone (--orphans)"));
                }
                Err(why) => self.report.kept.push(row(0, &why)),
            }
        }
    }

    fn objects(&mut self) {
        let Some(store) = self.store else { return };
        let pruned = if self.request.dry_run { self.would_prune(store) } else { store.prune() };
        self.report.objects = match pruned {
            Ok(pruned) => Objects::Pruned(pruned),
            Err(error) => {
                Objects::Left { in_use: matches!(error, PruneError::InUse { .. }), why: error.to_string() }
            }
        };
    }

    /// What a clean-up would leave, about: packs shrink by what their objects take, and files by whole blocks.
    fn would_prune(&mut self, store: &Store) -> Result<Pruned, PruneError> {
        let folders: u64 = self.gone.iter().map(|run| self.bytes_of(run)).sum();
        self.report.after = self.report.before.saturating_sub(folders);
        store.check_prunable()?;
        let mut holdings = match self.holdings.take() {
            Some(holdings) => holdings,
            None => store.holdings()?,
        };
        for run in &self.gone {
            holdings.give_up(run);
        }
        self.report.after = self.report.after.saturating_sub(holdings.unkept());
        Ok(holdings.would_prune())
    }
}
