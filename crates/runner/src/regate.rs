//! The gates once more, on the trees that a run kept: what would they say now, or what would others say?
//!
//! Each tree is written into a folder of its own outside of the run, set up as an isolated workspace is, and the gates run there
//! in the same fence as ever. The run, its record and its workspace are not touched. Trees hold no caches: what the gates lack
//! for that is told.

use std::path::{Path, PathBuf};

use triphammer_gate::{Discovered, GateContext, GateProgress, Known, PackTexts, Packs, Plan, WorkFiles};
use triphammer_model::event::Isolation;
use triphammer_model::{Attempt, Cancel, Event, Movement, Redactor, Report, RunId, RunSummary, Spec};
use triphammer_store::{RunDir, Runs, read_journal};
use triphammer_workspace::{Root, carry};

use crate::acts;
use crate::containment::{Ground, Keep};
use crate::environment;
use crate::error::StartError;
use crate::folder;
use crate::gates::{DISCOVERED, GRANDFATHERED};
use crate::pins::Pins;
use crate::prepare::redactor;
use crate::set_up::{Failed, SetUp};
use crate::settings::Settings;

/// Which gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichGates {
    /// Those that the run is pinned to.
    Pinned,
    /// A pack by its name: the home's, or a shipped one.
    Pack(String),
    /// A file with a pack.
    File(PathBuf),
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct RegateRequest {
    /// The home.
    pub home: PathBuf,
    /// The user's state folder; the trees are written below it.
    pub state: PathBuf,
    /// The run.
    pub run: RunId,
    /// Which gates.
    pub gates: WhichGates,
    /// One attempt; all that left a tree without it.
    pub attempt: Option<u32>,
}

/// What the gates said of an attempt then, and what they say now.
#[derive(Clone, Debug)]
pub struct Regated {
    /// The attempt; 0 is the start.
    pub attempt: u32,
    /// What is recorded; nothing where nobody judged it.
    pub recorded: Option<Report>,
    /// What they say now.
    pub now: Report,
}

/// Runs gates on the trees of a run. Returns what a person should know to read what they say.
///
/// # Errors
/// [`StartError`] when the run's record, a tree or a pack cannot be read, or the set-up fails; `told` gets each attempt as it is
/// done.
pub fn regate(
    runs: &Runs,
    request: &RegateRequest,
    cancel: &Cancel,
    told: &mut dyn FnMut(Regated),
) -> Result<Vec<String>, StartError> {
    let careful = runs.open(&request.run, Redactor::default());
    let lines = read_journal(&careful.journal()).map_err(StartError::infrastructure)?.lines;
    let summary = RunSummary::fold(&lines);
    let (Some(summary), Some(Event::Started(started))) = (summary, lines.first().map(|line| &line.event))
    else {
        return Err(StartError::Config(format!("run {} has no start", request.run)));
    };
    let (pins, broken) = Pins::read(&careful, &started.pins);
    if !broken.is_empty() {
        let broken = broken.join(", ");
        return Err(StartError::Config(format!(
            "what run {} is pinned to has been altered: {broken}",
            request.run
        )));
    }
    let policy = pins.get("policy.toml").unwrap_or_default();
    let settings: Settings =
        toml::from_str(&String::from_utf8_lossy(policy)).map_err(StartError::infrastructure)?;
    let spec = Spec::parse("pinned/spec.md", pins.get("spec.md").unwrap_or_default())
        .map_err(StartError::infrastructure)?;
    let dir = runs.open(&request.run, redactor(&settings));
    let bench = Bench::new(request, &settings, &pins, &dir, spec)?;
    let kept: Vec<u32> = summary
        .history
        .iter()
        .filter(|attempt| attempt.tree.is_some())
        .map(|attempt| attempt.attempt.get())
        .collect();
    let last = kept.last().copied();
    let wanted = match request.attempt {
        None => kept,
        Some(0) => vec![0],
        Some(attempt) if kept.contains(&attempt) => vec![attempt],
        Some(attempt) => {
            let all = kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(StartError::Config(format!(
                "attempt {attempt} of run {} left no tree; there are those of 0 (the start), {all}",
                request.run
            )));
        }
    };
    // What an isolated workspace was made from; in place the workspace itself.
    let from = match (started.isolation, &started.origin) {
        (Isolation::InPlace, _) => Some(&started.workspace),
        (_, origin) => origin.as_ref(),
    };
    let origin = from.and_then(|from| Root::open(&folder::read(from).ok()?).ok());
    let parent = request.state.join("regate");
    std::fs::create_dir_all(&parent)
        .map_err(|e| StartError::Infrastructure(format!("making a folder for trees: {e}")))?;
    remove_left_over(&parent);
    let mut notes = vec![absent(&dir, last, &settings)];
    for attempt in wanted {
        if cancel.is_raised() {
            return Err(StartError::Infrastructure("interrupted".to_owned()));
        }
        let now = bench.judge(runs, attempt, origin.as_ref(), cancel, &mut notes)?;
        let report = dir.attempt(Attempt::new(attempt)).join("report.json");
        let recorded = if attempt == 0 { dir.path().join("preflight/report.json") } else { report };
        told(Regated { attempt, recorded: dir.read_json(recorded).ok(), now });
    }
    Ok(notes)
}

/// What the gates had in the workspace and do not have here.
fn absent(dir: &RunDir, last: Option<u32>, settings: &Settings) -> String {
    let movement: Option<Movement> =
        last.and_then(|last| dir.read_json(dir.attempt(Attempt::new(last)).join("movement.json")).ok());
    let pruned = movement.map(|movement| movement.bounds.pruned).unwrap_or_default();
    // The record of the runs is none of the work.
    let mut caches: Vec<String> =
        pruned.iter().filter(|(_, why)| *why != "runs").map(|(path, _)| format!("`{path}`")).collect();
    if caches.len() > 5 {
        let more = caches.len() - 5;
        caches.truncate(5);
        caches.push(format!("{more} more"));
    }
    let named = if caches.is_empty() { String::new() } else { format!(" (such as {})", caches.join(", ")) };
    let instead = match (settings.setup.is_empty(), settings.carry.is_empty()) {
        (true, true) => "neither `[workspace] setup` nor `carry` was set when the run began",
        (false, true) => "`[workspace] setup` was run",
        (true, false) => "what `[workspace] carry` names was copied",
        (false, false) => "what `[workspace] carry` names was copied, and `setup` was run",
    };
    format!(
        "what is not in a tree, caches above all{named}, was not there for the gates; {instead}: a gate that needs such things \
         fails here for want of them"
    )
}

/// Removes trees of processes that were killed here. Each is named by its process first.
fn remove_left_over(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split('-').next()?.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { continue };
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            // What cannot be removed is in nobody's way: each tree has a name of its own.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// What is the same for all trees.
struct Bench<'a> {
    request: &'a RegateRequest,
    settings: &'a Settings,
    spec: Spec,
    packs: Packs,
    /// Gates that the run had found; of other packs nothing is known yet.
    discovered: Discovered,
    grandfathered: Known,
}

impl<'a> Bench<'a> {
    fn new(
        request: &'a RegateRequest,
        settings: &'a Settings,
        pins: &Pins,
        dir: &RunDir,
        spec: Spec,
    ) -> Result<Self, StartError> {
        let (texts, names) = match &request.gates {
            WhichGates::Pinned => (pins.below("gates"), settings.gates.clone()),
            WhichGates::Pack(name) => {
                let names = vec![name.clone()];
                let texts = triphammer_gate::collect(Some(&names), &request.home.join("gates"));
                (texts.map_err(StartError::config)?, Some(names))
            }
            WhichGates::File(file) => {
                let text = triphammer_store::read_bounded(file, 1 << 20).map_err(StartError::config)?;
                let name = file
                    .file_stem()
                    .map_or_else(|| "given".into(), |stem| stem.to_string_lossy().into_owned());
                (PackTexts::from([(format!("{name}.toml"), text)]), Some(vec![name]))
            }
        };
        let packs = Packs::parse(&texts, names.as_deref()).map_err(StartError::config)?;
        let of_the_run = request.gates == WhichGates::Pinned;
        Ok(Self {
            request,
            settings,
            spec,
            packs,
            discovered: if of_the_run {
                dir.read_json(DISCOVERED).unwrap_or_default()
            } else {
                Discovered::default()
            },
            grandfathered: if of_the_run {
                dir.read_json(GRANDFATHERED).unwrap_or_default()
            } else {
                Known::default()
            },
        })
    }

    fn judge(
        &self,
        runs: &Runs,
        attempt: u32,
        origin: Option<&Root>,
        cancel: &Cancel,
        notes: &mut Vec<String>,
    ) -> Result<Report, StartError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |e: std::io::Error| StartError::Infrastructure(format!("{what}: {e}"))
        };
        let place = tempfile::Builder::new()
            .prefix(&format!("{}-{}-{attempt}-", std::process::id(), self.request.run))
            .tempdir_in(self.request.state.join("regate"))
            .map_err(failed("making a folder for a tree"))?;
        let (folder, logs) = (place.path().join("tree"), place.path().join("logs"));
        std::fs::create_dir(&logs).map_err(failed("making a folder for logs"))?;
        acts::restore(runs, &self.request.run, attempt, &folder, false)
            .map_err(StartError::infrastructure)?;
        if let Some(origin) = origin {
            let root = Root::open(&folder).map_err(StartError::infrastructure)?;
            carry(origin, &root, &self.settings.carry).map_err(StartError::infrastructure)?;
        }
        let mut env = environment::shared(&folder, &self.settings.env);
        let name = place.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ground = Ground {
            run: &RunId::new(name),
            sandbox: &self.settings.sandbox,
            home: &self.request.home,
            runs: runs.path(),
            workspace: &folder,
            state: &self.request.state,
            chain: &[],
            scratch: &logs,
        };
        let keep = Keep::new(&ground, redactor(self.settings), &mut env)?;
        for note in keep.notes() {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let supervisor = keep.gates(&folder);
        let set_up = SetUp {
            commands: &self.settings.setup,
            folder: &folder,
            env: &env,
            logs: &logs,
            log_cap: self.settings.log_cap,
            pid_file: None,
        };
        if let Some(Failed { command, wait, said, .. }) =
            set_up.run(&supervisor, cancel).map_err(StartError::infrastructure)?
        {
            return Err(StartError::Infrastructure(format!(
                "on the tree of attempt {attempt}, set-up command `{command}`: {wait}; {said}"
            )));
        }
        let files = WorkFiles::walk(&folder);
        let mut discovered = self.discovered.clone();
        discovered.look(&self.packs, &files);
        let gates = triphammer_gate::applying(&self.packs, &discovered, &self.spec);
        if gates.is_empty() {
            return Err(StartError::Config(format!(
                "no gate applies to the tree of attempt {attempt}: name a pack"
            )));
        }
        let context = GateContext {
            workspace: &folder,
            dir: &logs,
            env: &env,
            supervisor: &supervisor,
            cancel,
            log_cap: self.settings.log_cap,
            pid_file: None,
            files: &files,
        };
        let plan = Plan {
            gates: &gates,
            integrity: None,
            grandfathered: &self.grandfathered,
            baseline: self.packs.baseline(),
            policy: self.settings.stages,
        };
        triphammer_gate::run(&context, plan, &|_: GateProgress<'_>| {})
            .map_err(|interrupted| StartError::Infrastructure(interrupted.to_string()))
    }
}

/// Whether a path names a pack's file rather than a pack.
pub fn which_gates(given: &str, from: &Path) -> WhichGates {
    if given.is_empty() {
        return WhichGates::Pinned;
    }
    let is_file = Path::new(given).extension().is_some_and(|e| e == "toml") || given.contains('/');
    if is_file { WhichGates::File(from.join(given)) } else { WhichGates::Pack(given.to_owned()) }
}
