//! `triphammer doctor`: what this machine has, and what is missing before a run could go well.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use triphammer_agent::{
    Containment, Fence, Hold, Login, ProcessSupervisor, TreeLimits, Vendor, bubblewrap_program,
};
use triphammer_gate::{Discovered, Gate, Packs, WorkFiles};
use triphammer_model::config::{AgentConfig, FenceChoice, NetworkChoice, VendorName};
use triphammer_model::{AgentName, Redactor, Size};
use triphammer_runner::AgentKind;

use crate::args::HomeArgs;
use crate::commands::run::configured;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

/// Less free space than this is worth a warning: trees, logs and builds need it.
const LITTLE_SPACE: u64 = 1 << 30;

/// How long a tool may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ok,
    /// Worth knowing; nothing fails for it.
    Note,
    /// Needed, and not there.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Look {
    area: &'static str,
    name: String,
    state: State,
    detail: String,
}

/// Everything that was looked at, in order.
#[derive(Default)]
struct Chart(Vec<Look>);

impl Chart {
    fn add(&mut self, area: &'static str, name: impl Into<String>, state: State, detail: impl Into<String>) {
        self.0.push(Look { area, name: name.into(), state, detail: detail.into() });
    }
}

pub(crate) fn doctor(args: &HomeArgs) -> Outcome {
    let home = Home::look_for(args.home.as_deref())?;
    let mut chart = Chart::default();
    tools(&mut chart);
    match &home {
        Some(home) => {
            chart.add("home", "home", State::Ok, home.path.display().to_string());
            agents(&mut chart, home);
        }
        None => chart.add("home", "home", State::Note, "none here or above; `triphammer init` makes one"),
    }
    known_agents(&mut chart);
    if let Some(home) = &home {
        gates(&mut chart, home);
    }
    sandbox(&mut chart, home.as_ref());
    if let Some(home) = &home {
        space(&mut chart, "runs", &home.path.join("runs"));
    }
    match home::state() {
        Ok(state) => {
            space(&mut chart, "state", &state);
            let ancestor = existing(&state);
            let writable = rustix::fs::access(ancestor, rustix::fs::Access::WRITE_OK).is_ok();
            let shown = state.display();
            if writable {
                chart.add("disk", "state folder", State::Ok, format!("`{shown}` can be written"));
            } else {
                chart.add(
                    "disk",
                    "state folder",
                    State::Missing,
                    format!("`{shown}` cannot be written: set XDG_STATE_HOME to a folder of yours"),
                );
            }
        }
        Err(Failure { message, .. }) => chart.add("disk", "state folder", State::Missing, message),
    }
    let ok = chart.0.iter().all(|l| l.state != State::Missing);
    if args.json {
        let home = home.as_ref().map(|h| h.path.display().to_string());
        say::data(&json!({"schema": 1, "ok": ok, "home": home, "checks": chart.0}).to_string());
    } else {
        print(&chart);
    }
    Ok(if ok { Exit::Done } else { Exit::Refused })
}

fn print(chart: &Chart) {
    let width = chart.0.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).min(30);
    let mut area = "";
    for look in &chart.0 {
        if look.area != area {
            area = look.area;
            say::text(area);
        }
        let state = match look.state {
            State::Ok => "ok",
            State::Note => "-",
            State::Missing => "MISSING",
        };
        say::text(&format!("  {state:7} {:width$}  {}", look.name, look.detail));
    }
}

fn tools(chart: &mut Chart) {
    for (tool, arg, needed) in [
        ("git", Some("--version"), true),
        ("sh", None, true),
        ("cargo", Some("--version"), false),
        ("python3", Some("--version"), false),
        ("node", Some("--version"), false),
        ("go", Some("version"), false),
        ("zig", Some("version"), false),
    ] {
        let Some(path) = on_path(tool) else {
            if needed {
                chart.add("tools", tool, State::Missing, format!("not on PATH; install {tool}"));
            } else {
                chart.add("tools", tool, State::Note, "not on PATH; needed only where a gate calls it");
            }
            continue;
        };
        let version = arg.and_then(|arg| version(&path, arg));
        let version = version.map_or_else(String::new, |v| format!("{v}, "));
        chart.add("tools", tool, State::Ok, format!("{version}{}", path.display()));
    }
}

/// The first line that a tool says about itself; nothing where it takes too long.
fn version(path: &Path, arg: &str) -> Option<String> {
    let mut command = Command::new(path);
    // Away from the workspace: a toolchain file there may make a tool fetch another version of itself.
    command.arg(arg).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let said = [first_line(child.stdout.take()), first_line(child.stderr.take())];
    said.into_iter().flatten().next().filter(|_| status.success())
}

/// The first line that lies in a pipe. Whoever was left behind may hold it: nothing is waited for.
fn first_line(pipe: Option<impl Read + AsFd>) -> Option<String> {
    let mut pipe = pipe?;
    rustix::io::ioctl_fionbio(&pipe, true).ok()?;
    let mut text = [0; 4096];
    let got = pipe.read(&mut text).ok()?;
    let text = String::from_utf8_lossy(text.get(..got)?);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Where a program is found on this process's PATH.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn agents(chart: &mut Chart, home: &Home) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if home.config.agents.is_empty() {
        chart.add("agents", "configured", State::Note, "none; --agent-cmd 'SH LINE' works without");
    }
    for (name, config) in &home.config.agents {
        match check_agent(name, config, home, &path) {
            Ok(what) => chart.add("agents", name.as_str(), State::Ok, what),
            // Only a run that names it needs it; the default is needed by every run that names none.
            Err(why) => {
                let default = home.config.run.agent.as_ref().is_some_and(|chain| chain.contains(name));
                let state = if default { State::Missing } else { State::Note };
                chart.add("agents", name.as_str(), state, why);
            }
        }
    }
    for name in home.config.run.agent.iter().flatten().filter(|n| !home.config.agents.contains_key(n)) {
        let why = format!("named under [run], but there is no [agents.{name}]");
        chart.add("agents", name.as_str(), State::Missing, why);
    }
}

fn check_agent(name: &AgentName, config: &AgentConfig, home: &Home, path: &OsStr) -> Result<String, String> {
    let agent = configured(name.clone(), config).map_err(|failure| failure.message)?;
    triphammer_runner::check_agent(&agent, &home.path, path, &home.path).map_err(|e| e.to_string())?;
    Ok(match &agent.kind {
        AgentKind::Command { argv } => format!("command {}", argv.first().map_or("", String::as_str)),
        AgentKind::Shell { line } => format!("command {line}"),
        AgentKind::Native { model, .. } => format!("our own loop with {model}"),
        AgentKind::Acp { argv } => format!("protocol server {}", argv.join(" ")),
        AgentKind::Vendor { vendor, .. } => format!("agent {vendor}"),
        AgentKind::Scripted { script } => format!("recorded session {script}"),
    })
}

fn known_agents(chart: &mut Chart) {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    // Some take seconds to say who they are.
    let looks: Vec<(&str, State, String)> = std::thread::scope(|scope| {
        let home = home.as_deref();
        let asked = VendorName::ALL
            .map(Vendor::of)
            .map(|vendor| (vendor, scope.spawn(move || known_agent(vendor, home))));
        let lost = |_| (State::Note, "could not be looked at".to_owned());
        asked
            .into_iter()
            .map(|(vendor, look)| {
                let (state, detail) = look.join().unwrap_or_else(lost);
                (vendor.kind, state, detail)
            })
            .collect()
    });
    for (kind, state, detail) in looks {
        chart.add("agents", kind, state, detail);
    }
}

fn known_agent(vendor: &Vendor, home: Option<&Path>) -> (State, String) {
    let Some(path) = on_path(vendor.program) else {
        return (State::Note, format!("not found on PATH; `{}` installs it", vendor.install));
    };
    let (state, login) = match vendor.login(|name| std::env::var_os(name), home) {
        Login::Key(name) => (State::Ok, format!("its key is in {name}")),
        Login::File(file) => (State::Ok, format!("logged in, by {}", file.display())),
        Login::Nothing => (State::Note, format!("neither logged in nor a key in {}", vendor.keys.join(", "))),
    };
    let states: Vec<String> = vendor.state().map(|state| format!("~/{state}")).collect();
    let mut held = format!("its own state, which it may write: {}", states.join(", "));
    if vendor.kind == "codex" {
        held.push_str("; its own sandbox is off inside of ours");
    }
    let version = match version(&path, "--version") {
        Some(version) if version.contains(vendor.seen) => version,
        Some(version) => format!("{version} (seen here with {})", vendor.seen),
        None => format!("of unknown version (seen here with {})", vendor.seen),
    };
    (state, format!("{version}, {}; {login}; {held}", path.display()))
}

fn gates(chart: &mut Chart, home: &Home) {
    let texts = triphammer_gate::collect(None, &home.path.join("gates"));
    let packs = texts.and_then(|texts| Packs::parse(&texts, None));
    let packs = match packs {
        Ok(packs) => packs,
        Err(error) => return chart.add("gates", "packs", State::Missing, error.to_string()),
    };
    let mut discovered = Discovered::default();
    let found = discovered.look(&packs, &WorkFiles::walk(&home.path));
    if found.is_empty() {
        chart.add(
            "gates",
            "packs",
            State::Note,
            "no pack fits the home's folder; specs can bring checks of their own",
        );
    }
    for gate in packs.gates().iter().filter(|g| found.contains(g.name())) {
        let line = gate.command_line();
        let Gate::Command(command) = gate else {
            chart.add("gates", gate.name().as_str(), State::Ok, line);
            continue;
        };
        let program = command.run.iter().find(|word| *word != "env" && !word.contains('='));
        let program = program.map_or("", String::as_str);
        let there = if program.contains('/') {
            is_executable(&home.path.join(&command.dir).join(program))
        } else {
            is_executable(&home.path.join(".local/bin").join(program)) || on_path(program).is_some()
        };
        if there {
            chart.add("gates", gate.name().as_str(), State::Ok, line);
        } else {
            let why = format!(
                "`{program}` is not found; install it, or a run stops with gate-tool-missing: {line}"
            );
            let state = if command.provision { State::Note } else { State::Missing };
            chart.add("gates", gate.name().as_str(), state, why);
        }
    }
}

/// What can be held here, each part tried, and what `[sandbox]` makes of it.
fn sandbox(chart: &mut Chart, home: Option<&Home>) {
    let nothing = Fence { hold: Hold::Landlock, writable: Vec::new(), read_only: Vec::new() };
    let fence = |hold| Containment { fence: Some(Fence { hold, ..nothing.clone() }), ..Containment::NONE };
    let landlock = trial(fence(Hold::Landlock));
    chart.add("sandbox", "landlock", State::Note, word(&landlock));
    let bubblewrap = match bubblewrap_program() {
        None => Err("not on PATH: the package `bubblewrap` has it".to_owned()),
        Some(program) => trial(fence(Hold::Bubblewrap(program))),
    };
    chart.add("sandbox", "bubblewrap", State::Note, word(&bubblewrap));
    let network = trial(Containment { network: NetworkChoice::Loopback, ..Containment::NONE });
    chart.add("sandbox", "own network", State::Note, word(&network));
    for (name, limits) in [
        ("process limit", TreeLimits { processes: Some(10_000), ..TreeLimits::NONE }),
        ("memory limit", TreeLimits { memory: Some(Size::new(1 << 40)), ..TreeLimits::NONE }),
    ] {
        chart.add("sandbox", name, State::Note, word(&trial(Containment { limits, ..Containment::NONE })));
    }
    let choice = home.and_then(|home| home.config.sandbox.fence).unwrap_or_default();
    let (state, held) = match choice {
        FenceChoice::Off => {
            (State::Note, "off, as configured: agent and gates write whatever you can write".to_owned())
        }
        FenceChoice::Landlock | FenceChoice::Bubblewrap => {
            let works = if choice == FenceChoice::Landlock { &landlock } else { &bubblewrap };
            match works {
                Ok(()) => (State::Ok, HELD.to_owned()),
                Err(_) => {
                    (State::Missing, format!("`{}` is configured and does not work here", choice.as_str()))
                }
            }
        }
        FenceChoice::Auto if landlock.is_ok() => (State::Ok, HELD.to_owned()),
        FenceChoice::Auto => {
            (State::Note, "none works here: agent and gates write whatever you can write".to_owned())
        }
    };
    chart.add("sandbox", "write fence", state, held);
    chart.add(
        "sandbox",
        "not held",
        State::Note,
        "what agent and gates read, the network unless [sandbox] says so, and what they ask of programs that run already, \
         by sockets such as Docker's; the agent's own state may hold settings that run programs",
    );
}

const HELD: &str = "agent and gates write to the workspace, a temporary folder of the run, tool caches, and the agent to its \
                    own state";

fn word(tried: &Result<(), String>) -> String {
    match tried {
        Ok(()) => "works here".to_owned(),
        Err(why) => format!("does not work here: {}", why.replace('\n', "; ")),
    }
}

/// Whether something harmless can be started under it.
fn trial(containment: Containment) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
    let supervisor = ProcessSupervisor::of_this_binary(Redactor::default()).map_err(|e| e.to_string())?;
    let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
    let env: Vec<_> = path.into_iter().collect();
    supervisor.contained(containment).try_out(scratch.path(), &env, scratch.path())
}

/// Free space for a folder that may not exist yet.
fn space(chart: &mut Chart, name: &'static str, folder: &Path) {
    let shown = folder.display();
    match rustix::fs::statvfs(existing(folder)) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let little = free < LITTLE_SPACE;
            let warning = if little { ": little for builds, logs and trees" } else { "" };
            let state = if little { State::Note } else { State::Ok };
            let mib = free / (1 << 20);
            chart.add("disk", name, state, format!("{mib} MiB free in `{shown}`{warning}"));
        }
        Err(error) => {
            chart.add("disk", name, State::Note, format!("free space in `{shown}` not known: {error}"));
        }
    }
}

/// The nearest ancestor that exists.
fn existing(folder: &Path) -> &Path {
    folder.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"))
}
