//! Takes a run up again from its directory: the journal through the same machine, the rest from what is pinned.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Instant;

use triphammer_agent::end_left_over;
use triphammer_forge::{MACHINE_VERSION, Machine};
use triphammer_gate::Packs;
use triphammer_llm::Prices;
use triphammer_model::event::{Isolation, Stamp};
use triphammer_model::{
    Attempt, Cancel, Content, Digest, Event, Movement, Outcome, Report, RunId, RunSummary, Spec, WorkPath,
};
use triphammer_store::{Journal, RunDir, Runs};
use triphammer_workspace::{Eyes, Kept, Lease, Look, Protected, Root, Store, ZoneMap, fingerprint_file};

use crate::agents;
use crate::attempt::tells;
use crate::containment::{self, Keep};
use crate::environment;
use crate::error::StartError;
use crate::folder;
use crate::gates::{DISCOVERED, GRANDFATHERED};
use crate::notice::{Notice, Watcher};
use crate::observe::GUARDED;
use crate::pins::Pins;
use crate::prepare::redactor;
use crate::run::{Bench, Briefing, Guarded, Run, Sight, Timings, seal, standing_seal};
use crate::settings::Settings;

/// Takes run `id` up again. Processes that the dead run left behind are ended first.
///
/// # Errors
/// [`StartError`] when the run is over for good, is being worked on, is damaged, or its workspace is gone.
pub fn reopen<'w>(
    runs_path: &Path,
    state: PathBuf,
    id: &RunId,
    cancel: Cancel,
    watcher: &'w dyn Watcher,
) -> Result<Run<'w>, StartError> {
    let runs = Runs::new(runs_path.to_owned());
    // Settings name the secrets, and are pinned themselves: first the journal, then the pins, then what they say.
    let careful = environment::redactor(&[], &[]);
    let dir = runs.open(id, careful.clone());
    let (mut journal, torn) = Journal::reopen(&dir.journal(), careful).map_err(StartError::infrastructure)?;
    let machine = replay(&journal, id)?;
    let started = machine
        .start()
        .cloned()
        .ok_or_else(|| StartError::Infrastructure(format!("run {id} has no start")))?;
    let ended = end_leftovers(&dir)?;
    let resumed = Event::Resumed {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ended,
        torn_bytes: torn.as_ref().map_or(0, |t| t.bytes),
    };
    let (pins, broken) = Pins::read(&dir, &started.pins);
    if !broken.is_empty() {
        return Err(tampered(journal, machine, &dir, &resumed, broken, watcher));
    }
    let settings_text = pins.get("policy.toml").unwrap_or_default();
    let settings: Settings = toml::from_str(&String::from_utf8_lossy(settings_text)).map_err(|e| {
        StartError::Infrastructure(format!("run {id}: pinned/policy.toml cannot be read: {e}"))
    })?;
    let redactor = redactor(&settings);
    journal.redact_with(redactor.clone());
    let dir = runs.open(id, redactor.clone());

    let workspace = folder::read(&started.workspace).map_err(StartError::infrastructure)?;
    let lease = Lease::acquire(&workspace, &state, id).map_err(StartError::infrastructure)?;
    let parts = Parts { dir: &dir, runs_path, settings: &settings, pins: &pins };
    let spec = parts.spec()?;
    let packs =
        Packs::parse(&pins.below("gates"), settings.gates.as_deref()).map_err(StartError::infrastructure)?;
    let eyes = parts.eyes(&workspace)?;
    let sight = parts.sight(&eyes, &journal)?;
    let (protected, edited) = parts.protected(&eyes, &spec, &journal, &machine, &sight.latest)?;
    let built = agents::build(&settings, &redactor, |name| {
        pins.get(&agents::script_pin(name)).map(|text| String::from_utf8_lossy(text).into_owned())
    });
    let mut env = environment::shared(&workspace, &settings.env);
    let fence = containment::Ground {
        run: id,
        sandbox: &settings.sandbox,
        home: runs_path.parent().unwrap_or(runs_path),
        runs: runs_path,
        workspace: &workspace,
        state: &state,
        chain: &settings.chain,
        scratch: dir.path(),
    };
    let keep = Keep::new(&fence, redactor, &mut env)?;
    // Runs that were begun before prices were pinned have those of this triphammer.
    let prices = match pins.get("prices.json") {
        Some(_) => parts.pinned("prices.json")?,
        None => Prices::built_in().with(settings.prices.clone()),
    };
    let origin = match (&started.origin, settings.isolation) {
        (Some(origin), isolation) if isolation != Isolation::InPlace => {
            folder::read(origin).ok().and_then(|path| Root::open(&path).ok())
        }
        _ => None,
    };
    let bench = Bench {
        packs,
        discovered: dir.read_json(DISCOVERED).unwrap_or_default(),
        grandfathered: dir.read_json(GRANDFATHERED).unwrap_or_default(),
        census: parts.pinned("tests.json")?,
        tools: parts.pinned("tools.json")?,
        guarded: parts.guarded(machine.attempt())?,
    };
    let briefing = Briefing {
        lessons: parts.pinned("lessons.json")?,
        previous: parts.last_report(),
        notes: notes(machine.outcome(), machine.attempt()),
        tells: tells(journal.lines()),
    };
    let mut run = Run {
        journal,
        machine,
        pending: VecDeque::new(),
        began: Instant::now(),
        spec,
        pins,
        prices,
        env,
        agents: built,
        keep,
        cancel,
        watcher,
        state,
        sight,
        eyes,
        protected,
        bench,
        briefing,
        origin,
        settings,
        dir,
        timings: Timings::default(),
        _lease: lease,
    };
    watcher.notice(&Notice::Launched { run: run.dir.id(), dir: run.dir.path() });
    for note in run.keep.notes() {
        watcher.notice(&Notice::Remark(note));
    }
    if !edited.is_empty() {
        watcher.notice(&Notice::Remark(&format!(
            "protected files were edited while the run rested and are taken as they are now: {}",
            edited.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )));
    }
    if let Some(torn) = &torn {
        watcher.notice(&Notice::Remark(&format!(
            "journal line {} was not finished ({} bytes); it was cut off, what it would have said did not happen",
            torn.line, torn.bytes
        )));
    }
    run.record(&resumed).map_err(StartError::infrastructure)?;
    Ok(run)
}

/// What was pinned has been altered: the run is rejected, with nothing of it judged any more.
fn tampered(
    mut journal: Journal,
    mut machine: Machine,
    dir: &RunDir,
    resumed: &Event,
    pins: Vec<String>,
    watcher: &dyn Watcher,
) -> StartError {
    let message =
        format!("run {}: what was pinned at its start has been altered: {}", dir.id(), pins.join(", "));
    watcher.notice(&Notice::Launched { run: dir.id(), dir: dir.path() });
    let stamp = Stamp { at: jiff::Timestamp::now(), elapsed_ms: 0 };
    let standing = standing_seal(journal.lines());
    for event in [resumed.clone(), Event::PinsBroken { pins }] {
        let effects = machine.handle(stamp, &event);
        if let Err(error) = journal.append(stamp, &event, &effects) {
            return StartError::infrastructure(error);
        }
    }
    if let Err(error) = seal(&mut journal, dir, stamp, standing) {
        return StartError::infrastructure(error);
    }
    if let (Some(outcome), Some(summary)) = (machine.outcome(), RunSummary::fold(journal.lines())) {
        // Derived: it is rebuilt from the journal when it is missing.
        let _ = dir.write_summary(&summary);
        watcher.notice(&Notice::Done { outcome, summary: &summary });
    }
    StartError::Tampered(message)
}

/// Feeds the journal through the machine and refuses what cannot be resumed.
fn replay(journal: &Journal, id: &RunId) -> Result<Machine, StartError> {
    let mut machine = Machine::new();
    for line in journal.lines() {
        machine.handle(line.stamp(), &line.event);
    }
    if let Some(started) = machine.start().filter(|s| s.machine != MACHINE_VERSION) {
        return Err(StartError::Config(format!(
            "run {id} was begun under rules of version {}, this triphammer decides by version {MACHINE_VERSION}; resume \
             it with triphammer {}",
            started.machine, started.version
        )));
    }
    match machine.outcome() {
        Some(outcome) if !outcome.is_resumable() => Err(StartError::Config(format!(
            "run {id} is over: {} ({}); start a new one",
            outcome.word(),
            outcome.reason()
        ))),
        _ => Ok(machine),
    }
}

/// Ends process trees whose pid files the dead run left behind.
fn end_leftovers(dir: &RunDir) -> Result<Vec<u32>, StartError> {
    let mut ended = Vec::new();
    let mut files = vec![dir.live().join("gate.pid")];
    if let Ok(attempts) = std::fs::read_dir(dir.path().join("attempts")) {
        files.extend(attempts.flatten().map(|a| a.path().join(triphammer_agent::PID_FILE)));
    }
    for file in files.iter().filter(|f| f.exists()) {
        if let Some(pid) = end_left_over(file).map_err(StartError::infrastructure)? {
            ended.push(pid);
        }
        let _ = std::fs::remove_file(file);
    }
    Ok(ended)
}

/// What the next brief should say about the break.
fn notes(outcome: Option<&Outcome>, attempt: Attempt) -> Vec<String> {
    match outcome {
        Some(Outcome::Interrupted) | None => {
            vec![format!(
                "The run was interrupted around attempt {attempt}; its work is still in the workspace."
            )]
        }
        _ => Vec::new(),
    }
}

/// Where it is kept what is protected, once a person edited some of it while the run rested.
const PROTECTED: &str = "protected.json";

/// What a resumed run is put together from.
struct Parts<'a> {
    dir: &'a RunDir,
    runs_path: &'a Path,
    settings: &'a Settings,
    pins: &'a Pins,
}

impl Parts<'_> {
    fn pinned<T: serde::de::DeserializeOwned + Default>(&self, name: &str) -> Result<T, StartError> {
        match self.pins.get(name) {
            None => Ok(T::default()),
            Some(bytes) => serde_json::from_slice(bytes)
                .map_err(|e| StartError::Infrastructure(format!("pinned/{name} cannot be read: {e}"))),
        }
    }

    fn spec(&self) -> Result<Spec, StartError> {
        let text = self.pins.get("spec.md").unwrap_or_default();
        Spec::parse("pinned/spec.md", text).map_err(StartError::infrastructure)
    }

    fn eyes(&self, workspace: &Path) -> Result<Eyes, StartError> {
        let root = Root::open(workspace).map_err(StartError::infrastructure)?;
        let zones: ZoneMap = match self.pins.get("zones.json") {
            Some(bytes) => serde_json::from_slice(bytes).map_err(StartError::infrastructure)?,
            None => return Err(StartError::Infrastructure("pinned/zones.json is missing".to_owned())),
        };
        let store = Store::open(&self.runs_path.join(".store.git")).map_err(StartError::infrastructure)?;
        Ok(Eyes::new(root, zones, store))
    }

    fn sight(&self, eyes: &Eyes, journal: &Journal) -> Result<Sight, StartError> {
        let snapshot =
            fingerprint_file::read(&self.dir.path().join("start.fp")).map_err(StartError::infrastructure)?;
        let kept = eyes.store().kept(self.dir.id(), "0").map_err(StartError::infrastructure)?;
        let start = eyes.remember(snapshot, &kept).map_err(StartError::infrastructure)?;
        let latest = eyes.look(Some(&start)).map_err(StartError::infrastructure)?;
        let mut moved_by_agents = BTreeSet::new();
        for folder in self.observed_in(journal) {
            if let Ok(movement) = self.dir.read_json::<Movement>(folder.join("movement.json")) {
                let moved = movement.observed.into_iter().filter(|o| o.content != Content::Same);
                moved_by_agents.extend(moved.map(|o| o.path));
            }
        }
        Ok(Sight { latest, before: None, infrastructure: None, start, moved_by_agents })
    }

    /// The folders of all tries that somebody looked at: a parked attempt's earlier ones were set aside.
    fn observed_in(&self, journal: &Journal) -> BTreeSet<PathBuf> {
        let mut folders = BTreeSet::new();
        for line in journal.lines() {
            let Event::Looked { attempt } = &line.event else { continue };
            let folder = self.dir.attempt(*attempt);
            let tries = std::fs::read_dir(folder.join("tries"));
            folders.extend(tries.into_iter().flatten().flatten().map(|entry| entry.path()));
            folders.insert(folder);
        }
        folders
    }

    /// What is protected, and what of it a person edited while the run rested: that is theirs, and neither an
    /// agent's offence nor to be put back.
    fn protected(
        &self,
        eyes: &Eyes,
        spec: &Spec,
        journal: &Journal,
        machine: &Machine,
        now: &Look,
    ) -> Result<(Protected, Vec<WorkPath>), StartError> {
        let extra: Vec<WorkPath> = self.pinned("protected.json")?;
        let (store, id) = (eyes.store(), self.dir.id());
        let of = |kept: &Kept| {
            Protected::from_tree(store, kept, &spec.protect, &extra).map_err(StartError::infrastructure)
        };
        let mut protected = match self.sealed_protected(journal) {
            Some(protected) => protected,
            None => of(&store.kept(id, "0").map_err(StartError::infrastructure)?)?,
        };
        // A run that was killed did not say how it left the workspace; then nothing can be told apart.
        let rested = machine.outcome().is_some() && self.settings.isolation == Isolation::InPlace;
        let Some(end) = store.kept(id, "end").ok().filter(|_| rested) else {
            return Ok((protected, Vec::new()));
        };
        let now = eyes.keep(now, id, "resumed").map_err(StartError::infrastructure)?;
        let edited = protected.adopt(&of(&end)?, &of(&now)?);
        if !edited.is_empty() {
            self.dir.write_json(PROTECTED, &protected).map_err(StartError::infrastructure)?;
        }
        Ok((protected, edited))
    }

    /// What an earlier resume wrote down, if it is what was sealed.
    fn sealed_protected(&self, journal: &Journal) -> Option<Protected> {
        let sealed = journal.lines().iter().rev().find_map(|line| match &line.event {
            Event::Sealed { artifacts } => Some(artifacts.get(PROTECTED)),
            _ => None,
        })??;
        let bytes = self.dir.read(PROTECTED).ok()?;
        if Digest::of(&bytes) != *sealed {
            return None;
        }
        serde_json::from_slice(&bytes).ok()
    }

    /// What the attempt at hand did to protected paths; one that was not looked at yet did nothing.
    fn guarded(&self, attempt: Attempt) -> Result<Guarded, StartError> {
        match self.dir.read_json(self.dir.attempt(attempt).join(GUARDED)) {
            Err(error) if error.source.kind() != std::io::ErrorKind::NotFound => {
                Err(StartError::infrastructure(error))
            }
            read => Ok(read.unwrap_or_default()),
        }
    }

    fn last_report(&self) -> Option<(Attempt, Report)> {
        let last = self.settings.limits.attempts;
        (1..=last).rev().map(Attempt::new).find_map(|attempt| {
            let report = self.dir.read_json(self.dir.attempt(attempt).join("report.json")).ok()?;
            Some((attempt, report))
        })
    }
}
