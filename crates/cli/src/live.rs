//! The live line below a run's output on a terminal: attempt, phase, elapsed time, files that move, tokens and money.
//!
//! Files come from the operating system's change notifications. They are a hint for a person and nothing else: what
//! counts as movement is only ever what two fingerprints show.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use triphammer_gate::GateProgress;
use triphammer_model::{Effect, Event, MicroUsd};
use triphammer_runner::Notice;

use crate::say;

/// Folders whose changes are not worth a person's eye.
const NOISE: &[&str] = &["target", "node_modules", "runs", "__pycache__"];

/// What the live line says.
#[derive(Default)]
struct State {
    attempts: u32,
    head: String,
    phase: String,
    moving: Arc<Mutex<Moving>>,
    watcher: Arc<Mutex<Option<RecommendedWatcher>>>,
    tokens: u64,
    cost: MicroUsd,
    unknown: bool,
}

/// Paths that were seen to change.
#[derive(Default)]
struct Moving {
    paths: BTreeSet<PathBuf>,
    last: Option<PathBuf>,
}

/// The live line.
pub(crate) struct Live {
    bar: ProgressBar,
    state: Arc<Mutex<State>>,
}

impl Live {
    /// A live line, or none where stderr is no terminal.
    pub(crate) fn on_terminal() -> Option<Self> {
        if !std::io::IsTerminal::is_terminal(&std::io::stderr())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb")
        {
            return None;
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} [{elapsed_precise}] {wide_msg}").ok()?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let state: Arc<Mutex<State>> = Arc::default();
        refresh(&bar, &state);
        Some(Self { bar, state })
    }

    /// Prints a line above the live one.
    pub(crate) fn println(&self, line: &str) {
        self.bar.println(line);
    }

    /// Takes a notice in and shows what it changes.
    pub(crate) fn notice(&self, notice: &Notice<'_>) {
        let mut state = lock(&self.state);
        match notice {
            Notice::Recorded(line) => state.recorded(&line.event, &line.effects),
            Notice::Working { workspace, .. } => state.watch(workspace),
            Notice::Gate(GateProgress::Started { gate, .. }) => state.phase = format!("gate {gate}"),
            Notice::Done { .. } => {
                drop(state);
                self.bar.finish_and_clear();
                return;
            }
            _ => {}
        }
        let message = state.message();
        drop(state);
        self.bar.set_message(say::marked(&message).into_owned());
    }
}

/// Files move without a notice: the line is refreshed as long as the run is shown.
fn refresh(bar: &ProgressBar, state: &Arc<Mutex<State>>) {
    let bar = bar.clone();
    let state = Arc::downgrade(state);
    let spawned = std::thread::Builder::new().name("live".to_owned()).spawn(move || {
        while let Some(state) = state.upgrade() {
            if bar.is_finished() {
                break;
            }
            let message = lock(&state).message();
            drop(state);
            bar.set_message(say::marked(&message).into_owned());
            std::thread::sleep(Duration::from_millis(250));
        }
    });
    drop(spawned);
}

impl State {
    fn recorded(&mut self, event: &Event, effects: &[Effect]) {
        match event {
            Event::Started(started) => self.attempts = started.limits.attempts,
            Event::AgentEnded { facts, .. } => {
                *lock(&self.watcher) = None;
                self.tokens += facts.tokens.map_or(0, triphammer_model::Tokens::total);
                self.cost += facts.cost.unwrap_or_default();
                self.unknown |= facts.cost.is_none();
            }
            _ => {}
        }
        for effect in effects {
            match effect {
                Effect::Preflight => "preflight".clone_into(&mut self.phase),
                Effect::Look { attempt, agent, .. } => {
                    self.head = format!("attempt {attempt} of {} · {agent} · ", self.attempts);
                    "looking".clone_into(&mut self.phase);
                    *lock(&self.moving) = Moving::default();
                }
                Effect::Implement { .. } => "implementing".clone_into(&mut self.phase),
                Effect::Wait { .. } => "waiting to try again".clone_into(&mut self.phase),
                Effect::Observe { .. } => "observing".clone_into(&mut self.phase),
                Effect::Judge { .. } => "judging".clone_into(&mut self.phase),
                Effect::Hold { .. } | Effect::End { .. } => {}
            }
        }
    }

    /// Watches the workspace from a thread of its own: setting up the watches of a large tree takes a while, and the
    /// agent does not wait for it.
    fn watch(&self, workspace: &Path) {
        let root = workspace.to_owned();
        let moving = Arc::clone(&self.moving);
        let slot = Arc::clone(&self.watcher);
        let spawned = std::thread::Builder::new().name("live".to_owned()).spawn(move || {
            let below = root.clone();
            let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let Ok(event) = event else { return };
                if matches!(event.kind, EventKind::Access(_)) {
                    return;
                }
                let mut moving = lock(&moving);
                for path in event.paths {
                    if let Ok(path) = path.strip_prefix(&below)
                        && worth_showing(path)
                        && moving.paths.len() < 10_000
                    {
                        moving.paths.insert(path.to_owned());
                        moving.last = Some(path.to_owned());
                    }
                }
            });
            if let Ok(mut watcher) = watcher
                && watcher.watch(&root, RecursiveMode::Recursive).is_ok()
            {
                *lock(&slot) = Some(watcher);
            }
        });
        // Without the hint everything else goes on.
        drop(spawned);
    }

    fn message(&self) -> String {
        use std::fmt::Write as _;
        let mut message = format!("{}{}", self.head, self.phase);
        let moving = lock(&self.moving);
        if let Some(last) = &moving.last {
            let _ = write!(message, " · {} path(s) moving, last {}", moving.paths.len(), last.display());
        }
        if self.tokens > 0 {
            let _ = write!(message, " · {} tokens", self.tokens);
        }
        if self.cost > MicroUsd::ZERO {
            let _ = write!(message, " · {}{}", self.cost, if self.unknown { " known" } else { "" });
        }
        message
    }
}

fn worth_showing(path: &Path) -> bool {
    let mut parts = path.components().map(std::path::Component::as_os_str).peekable();
    if parts.peek().is_none() {
        return false;
    }
    !parts.any(|part: &OsStr| NOISE.iter().any(|n| part == *n) || part.as_encoded_bytes().starts_with(b"."))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn noise_is_not_shown() {
        assert!(super::worth_showing(Path::new("src/lib.rs")));
        for noise in ["", "target/debug/x", ".git/index", "a/node_modules/b", "src/.lib.rs.swp"] {
            assert!(!super::worth_showing(Path::new(noise)), "{noise}");
        }
    }
}
