//! Makes a new run ready: everything is checked and pinned before its first journal line.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use triphammer_agent::Vendor;
use triphammer_forge::{MACHINE_VERSION, Machine};
use triphammer_gate::{Discovered, Known, Packs, Resolution, TestCensus};
use triphammer_llm::Prices;
use triphammer_model::config::FILE;
use triphammer_model::environment::looks_secret;
use triphammer_model::event::{Isolation, Started};
use triphammer_model::{Cancel, Digest, Event, Redactor, RunId, Spec, WorkPath};
use triphammer_store::{Journal, Runs};
use triphammer_workspace::{
    Eyes, Kept, Lease, Look, Protected, Root, Start, Store, ZoneConfig, ZoneMap, carry, fingerprint_file,
    isolate,
};

use crate::agents::{self, Agents};
use crate::containment::{self, Keep};
use crate::environment::{self, Variables};
use crate::error::StartError;
use crate::folder::shown;
use crate::gates::files_of;
use crate::lessons::learn;
use crate::notice::{Notice, Watcher};
use crate::pins::Pins;
use crate::plan::plan_of;
use crate::run::{Bench, Briefing, Guarded, Run, Sight, Timings};
use crate::settings::{AgentKind, Settings};

/// The folder that the work is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An existing folder, absolute.
    Folder(PathBuf),
    /// An empty one, made for the run.
    New,
}

/// A run to begin, with every default filled in.
#[derive(Clone, Debug)]
pub struct Request {
    /// The home.
    pub home: PathBuf,
    /// The home's `runs/`.
    pub runs: PathBuf,
    /// The user's state folder for Triphammer; isolated workspaces lie below it.
    pub state: PathBuf,
    /// The spec.
    pub spec: Spec,
    /// The spec's text, as pinned.
    pub spec_text: Vec<u8>,
    /// The spec's name.
    pub spec_name: String,
    /// Where it came from.
    pub spec_path: Option<String>,
    /// Where the work is.
    pub place: Place,
    /// Everything else.
    pub settings: Settings,
}

/// Removes what a failed start made.
struct Undo {
    paths: Vec<PathBuf>,
}

impl Drop for Undo {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Checks and pins everything and writes the first journal line. On an error nothing of the run is left behind.
///
/// # Errors
/// [`StartError`] in one line that says what, where and what to do.
pub fn prepare(request: Request, cancel: Cancel, watcher: &dyn Watcher) -> Result<Run<'_>, StartError> {
    let Request { home, runs: runs_path, state, spec, spec_text, spec_name, spec_path, place, settings } =
        request;
    refuse_written_secrets(&settings)?;
    let redactor = redactor(&settings);
    let texts = triphammer_gate::collect(settings.gates.as_deref(), &home.join("gates"))
        .map_err(StartError::config)?;
    let packs = Packs::parse(&texts, settings.gates.as_deref()).map_err(StartError::config)?;
    let scripts = agents::read_scripts(&settings, &home)
        .map_err(|(file, e)| StartError::Config(format!("reading the session file `{file}`: {e}")))?;
    let agents = agents::build(&settings, &redactor, |name| {
        scripts.get(name).map(|text| String::from_utf8_lossy(text).into_owned())
    });

    let origin = match &place {
        Place::Folder(folder) => Some(Root::open(folder).map_err(StartError::config)?),
        Place::New => None,
    };
    let base = origin.as_ref().map_or(home.as_path(), Root::path);
    check_agents(&agents, &settings, base)?;
    let in_place = settings.isolation == Isolation::InPlace;
    if in_place && let Some(root) = &origin {
        root.check_writable().map_err(StartError::infrastructure)?;
    }

    let runs = Runs::new(runs_path.clone());
    let id = new_id(&spec_name);
    let early_lease = match &origin {
        Some(root) if in_place => {
            Some(Lease::acquire(root.path(), &state, &id).map_err(StartError::infrastructure)?)
        }
        _ => None,
    };
    runs.prepare().map_err(StartError::infrastructure)?;
    let dir = runs.create(&id, redactor.clone()).map_err(StartError::infrastructure)?;
    let mut undo = Undo { paths: vec![dir.path().to_owned()] };

    let store = Store::open(&runs_path.join(".store.git")).map_err(StartError::infrastructure)?;
    let zone_config = ZoneConfig { skip: settings.skip.clone(), runs: Some(runs_path.clone()) };
    let ground = Ground { origin: origin.as_ref(), store: &store, state: &state, home: &home, id: &id };
    let (root, zones) = ground.workspace(&settings, &zone_config, &mut undo, watcher)?;
    let lease = match early_lease {
        Some(lease) => lease,
        None => Lease::acquire(root.path(), &state, &id).map_err(StartError::infrastructure)?,
    };
    let eyes = Eyes::new(root, zones, store);
    let start = eyes.look(None).map_err(StartError::infrastructure)?;
    let kept = eyes.keep(&start, &id, "0").map_err(StartError::infrastructure)?;
    fingerprint_file::write(start.snapshot(), &dir.path().join("start.fp"))
        .map_err(StartError::infrastructure)?;

    let mut env = environment::shared(eyes.root().path(), &settings.env);
    let fence = containment::Ground {
        run: &id,
        sandbox: &settings.sandbox,
        home: &home,
        runs: &runs_path,
        workspace: eyes.root().path(),
        state: &state,
        chain: &settings.chain,
        scratch: dir.path(),
    };
    let keep = Keep::new(&fence, redactor.clone(), &mut env)?;
    let files = files_of(&start, eyes.root().path());
    let census = TestCensus::of(&files);
    let tools = Resolution::take(&env, eyes.root().path());
    let lessons = learn(&runs);
    let mut pins = Pins::default();
    pins.add("spec.md", spec_text);
    for (name, text) in &texts {
        pins.add(format!("gates/{name}"), text.clone());
    }
    for (name, text) in scripts {
        pins.add(agents::script_pin(&name), text);
    }
    pins.add("policy.toml", toml::to_string_pretty(&settings).map_err(StartError::config)?);
    let prices = Prices::built_in().with(settings.prices.clone());
    pins.add_json("prices.json", &prices);
    pins.add_json("environment.json", &environment::names(&env));
    pins.add_json("lessons.json", &lessons);
    pins.add_json("zones.json", eyes.zones());
    pins.add_json("tests.json", &census);
    pins.add_json("tools.json", &tools);
    let extra = extra_protected(&home, origin.as_ref(), texts.keys());
    pins.add_json("protected.json", &extra);
    if let Some((path, name)) = pins.holding_a_secret(&redactor) {
        return Err(StartError::Config(format!(
            "the value of the secret variable `{name}` stands in what the run is pinned to ({path}), and secrets are \
             never written down: pass the variable by name, or unset it for this run"
        )));
    }
    let digests = pins.write(&dir).map_err(StartError::infrastructure)?;
    let protected = Protected::take(&start, &spec.protect, &extra).map_err(StartError::config)?;

    let started = Started {
        run: id.clone(),
        spec: spec_name,
        goal: spec.goal_line(),
        spec_path,
        pins: digests,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: MACHINE_VERSION,
        policy: settings.policy,
        limits: settings.limits,
        agents: settings.chain.iter().map(|a| a.name.clone()).collect(),
        allow_green: settings.allow_green,
        workspace: shown(eyes.root().path()),
        isolation: settings.isolation,
        origin: origin.as_ref().filter(|_| !in_place).map(|o| shown(o.path())),
        tree: kept.tree.clone(),
        empty: start.is_empty(),
        parent: None,
    };
    let journal = Journal::create(&dir.journal(), redactor.clone()).map_err(StartError::infrastructure)?;
    let mut run = Run {
        journal,
        machine: Machine::new(),
        pending: VecDeque::new(),
        began: Instant::now(),
        spec,
        pins,
        prices,
        env,
        agents,
        keep,
        cancel,
        watcher,
        state,
        sight: Sight {
            latest: start.clone(),
            before: None,
            infrastructure: None,
            start,
            moved_by_agents: std::collections::BTreeSet::new(),
        },
        eyes,
        protected,
        bench: Bench {
            packs,
            discovered: Discovered::default(),
            grandfathered: Known::default(),
            census,
            tools,
            guarded: Guarded::default(),
        },
        briefing: Briefing { lessons, ..Briefing::default() },
        origin: origin.filter(|_| !in_place),
        settings,
        dir,
        timings: Timings::default(),
        _lease: lease,
    };
    watcher.notice(&Notice::Launched { run: run.dir.id(), dir: run.dir.path() });
    run.record(&Event::Started(Box::new(started))).map_err(StartError::infrastructure)?;
    undo.paths.clear();
    for note in run.keep.notes() {
        watcher.notice(&Notice::Remark(note));
    }
    let plan = plan_of(&mut run);
    watcher.notice(&Notice::Planned(&plan));
    Ok(run)
}

/// What a workspace is made from.
struct Ground<'a> {
    origin: Option<&'a Root>,
    store: &'a Store,
    state: &'a Path,
    home: &'a Path,
    id: &'a RunId,
}

impl Ground<'_> {
    /// The folder that the agent will work in; made and filled when it is kept apart.
    fn workspace(
        &self,
        settings: &Settings,
        zone_config: &ZoneConfig,
        undo: &mut Undo,
        watcher: &dyn Watcher,
    ) -> Result<(Root, ZoneMap), StartError> {
        if settings.isolation == Isolation::InPlace {
            let path = self.origin.map_or(self.home, Root::path);
            let root = Root::open(path).map_err(StartError::config)?;
            let zones = ZoneMap::capture(&root, zone_config).map_err(StartError::infrastructure)?;
            return Ok((root, zones));
        }
        let kept = match self.origin {
            Some(origin) => Some((origin, self.keep_origin(origin, zone_config)?)),
            None => None,
        };
        let start =
            kept.as_ref().map(|(origin, (zones, tree))| Start { origin, zones, store: self.store, tree });
        let place = triphammer_workspace::Place { state: self.state, home: self.home, run: self.id };
        let apart =
            isolate(settings.isolation, start.as_ref(), &place).map_err(StartError::infrastructure)?;
        undo.paths.push(apart.folder.clone());
        for note in &apart.notes {
            watcher.notice(&Notice::Remark(note));
        }
        let root = Root::open(&apart.root).map_err(StartError::infrastructure)?;
        if let Some(origin) = self.origin {
            let carried = carry(origin, &root, &settings.carry).map_err(StartError::infrastructure)?;
            for (path, why) in carried.skipped {
                watcher.notice(&Notice::Remark(&format!("`{path}` was not carried over: {why}")));
            }
        }
        // What is a cache or a tool folder there is one here: zones are told by relative paths.
        if let Some((_, (zones, _))) = kept {
            let zones = zones.for_copy(&root).map_err(StartError::infrastructure)?;
            return Ok((root, zones));
        }
        let zones = ZoneMap::capture(&root, zone_config).map_err(StartError::infrastructure)?;
        Ok((root, zones))
    }

    fn keep_origin(&self, origin: &Root, zone_config: &ZoneConfig) -> Result<(ZoneMap, Kept), StartError> {
        let zones = ZoneMap::capture(origin, zone_config).map_err(StartError::infrastructure)?;
        let root = Root::open(origin.path()).map_err(StartError::infrastructure)?;
        let eyes = Eyes::new(root, zones, self.store.clone());
        let look: Look = eyes.look(None).map_err(StartError::infrastructure)?;
        let kept = eyes.keep(&look, self.id, "origin").map_err(StartError::infrastructure)?;
        Ok((eyes.zones().clone(), kept))
    }
}

/// A secret's value written into the configuration would have to lie in the run's record for `resume` to find it.
fn refuse_written_secrets(settings: &Settings) -> Result<(), StartError> {
    let entries = settings.env.iter().chain(settings.chain.iter().flat_map(|agent| &agent.env));
    for (name, _) in entries.filter_map(|entry| entry.split_once('=')) {
        if looks_secret(name) || settings.secrets.iter().any(|s| s == name) {
            return Err(StartError::Config(format!(
                "variable `{name}` is a secret and its value is written out; export it and pass it by name: `{name}`"
            )));
        }
    }
    Ok(())
}

/// The redactor for a run's settings.
pub(crate) fn redactor(settings: &Settings) -> Redactor {
    let mut entries = settings.env.clone();
    let mut named = settings.secrets.clone();
    for agent in &settings.chain {
        entries.extend(agent.env.iter().cloned());
        // What is handed to an agent by name beyond the shared list is treated as a secret of that agent.
        // What a known agent is known to read, such as the name of its model, is none by its purpose.
        let plain: &[&str] = match &agent.kind {
            AgentKind::Vendor { vendor, .. } => Vendor::of(*vendor).reads,
            _ => &[],
        };
        let secret = |entry: &&String| !entry.contains('=') && !plain.contains(&entry.as_str());
        named.extend(agent.env.iter().filter(secret).cloned());
    }
    environment::redactor(&named, &entries)
}

pub(crate) fn check_agents(agents: &Agents, settings: &Settings, base: &Path) -> Result<(), StartError> {
    let env: Variables = environment::shared(base, &settings.env);
    let path_var = environment::get(&env, "PATH").unwrap_or_default().to_owned();
    for agent in agents.values() {
        agent.check(&path_var, base).map_err(StartError::config)?;
    }
    Ok(())
}

/// Packs and configuration that lie in the workspace are protected whatever the spec says.
fn extra_protected<'a>(
    home: &Path,
    origin: Option<&Root>,
    packs: impl Iterator<Item = &'a String>,
) -> Vec<WorkPath> {
    let Some(origin) = origin else { return Vec::new() };
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let Ok(below) = home.strip_prefix(origin.path()) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = packs.map(|name| below.join("gates").join(name)).collect();
    paths.push(below.join(FILE));
    paths
        .into_iter()
        .map(|p| WorkPath::from_bytes(std::os::unix::ffi::OsStrExt::as_bytes(p.as_os_str())))
        .collect()
}

/// UTC start time, the spec's name, four random digits.
fn new_id(spec: &str) -> RunId {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let slug: String = spec
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(24)
        .collect();
    let random = Digest::of(format!("{:x}", fastrand::u128(..)));
    RunId::new(format!("{now}-{}-{}", slug.trim_matches('-'), &random.as_str()[..4]))
}
