//! One run: the loop that does what the machine asks for and records what came of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use triphammer_forge::Machine;
use triphammer_gate::{Discovered, Known, Lesson, Offence, Packs, Resolution, Tell, TestCensus};
use triphammer_llm::Prices;
use triphammer_model::event::{AgentFacts, Isolation, Stamp};
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    AgentName, Attempt, Cancel, Digest, Effect, Event, JournalLine, Outcome, Report, RunSummary, Spec,
    WorkPath,
};
use triphammer_store::{Journal, RunDir, digest_artifacts};
use triphammer_workspace::{Eyes, Lease, Look, Protected, Root};

use crate::agents::Agents;
use crate::containment::Keep;
use crate::environment::Variables;
use crate::error::{Doing, RunError, Trouble};
use crate::notice::{Notice, Watcher};
use crate::pins::Pins;
use crate::proof;
use crate::settings::Settings;

/// What is remembered of the workspace between two effects.
pub(crate) struct Sight {
    /// The latest look; what comes next is compared incrementally with it.
    pub(crate) latest: Look,
    /// The look before the attempt at hand.
    pub(crate) before: Option<Look>,
    /// Infrastructure before the attempt at hand.
    pub(crate) infrastructure: Option<Look>,
    /// The start.
    pub(crate) start: Look,
    /// Paths that agents (not gates) moved since the start.
    pub(crate) moved_by_agents: BTreeSet<WorkPath>,
}

/// What the gates are told beside the workspace.
pub(crate) struct Bench {
    pub(crate) packs: Packs,
    pub(crate) discovered: Discovered,
    pub(crate) grandfathered: Known,
    pub(crate) census: TestCensus,
    pub(crate) tools: Resolution,
    /// What the attempt at hand did to protected paths.
    pub(crate) guarded: Guarded,
}

/// What an attempt did to protected paths. Its bytes are put back before the gates run, so that a process which
/// judges later must be told.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Guarded {
    /// Changed, and put back.
    pub(crate) offences: Vec<Offence>,
    /// New where the globs match.
    pub(crate) additions: Vec<WorkPath>,
}

/// What goes into the next brief beside the spec.
#[derive(Default)]
pub(crate) struct Briefing {
    pub(crate) lessons: Vec<Lesson>,
    pub(crate) previous: Option<(Attempt, Report)>,
    pub(crate) notes: Vec<String>,
    pub(crate) tells: Vec<Tell>,
}

/// How a process's work on a run ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// `run.json`.
    pub summary: RunSummary,
}

/// A run that this process works on.
pub struct Run<'w> {
    pub(crate) dir: RunDir,
    pub(crate) journal: Journal,
    pub(crate) machine: Machine,
    pub(crate) pending: VecDeque<Effect>,
    pub(crate) began: Instant,
    pub(crate) spec: Spec,
    pub(crate) settings: Settings,
    pub(crate) pins: Pins,
    pub(crate) prices: Prices,
    pub(crate) env: Variables,
    pub(crate) agents: Agents,
    pub(crate) keep: Keep,
    pub(crate) cancel: Cancel,
    pub(crate) watcher: &'w dyn Watcher,
    pub(crate) state: PathBuf,
    pub(crate) eyes: Eyes,
    pub(crate) sight: Sight,
    pub(crate) protected: Protected,
    pub(crate) bench: Bench,
    pub(crate) briefing: Briefing,
    pub(crate) origin: Option<Root>,
    pub(crate) timings: Timings,
    pub(crate) _lease: Lease,
}

/// Where the loop's own time goes; printed by the benchmark.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Waiting for timestamps to become trustworthy.
    pub tick_waits: Duration,
    /// Fingerprints and content, tick waits included.
    pub looks: Duration,
    /// Inside agents.
    pub agents: Duration,
    /// Inside the pipeline.
    pub gates: Duration,
    /// Writing and syncing the journal.
    pub journal: Duration,
    /// Journal lines written, each with one sync.
    pub lines: u32,
}

impl Run<'_> {
    /// The run's folder.
    pub const fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Where the loop's time went so far.
    pub const fn timings(&self) -> Timings {
        self.timings
    }

    /// Time since this process took the run up.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Works until the run is over, for now or for good.
    ///
    /// # Errors
    /// [`RunError`] when the journal cannot be written. The run can then be resumed.
    pub fn drive(&mut self) -> Result<Finished, RunError> {
        let mut last = "nothing";
        loop {
            let Some(effect) = self.pending.pop_front() else { return Err(RunError::Stuck(last)) };
            let done = match effect {
                Effect::End { outcome } => return self.finish(outcome),
                Effect::Hold { attempt, infrastructure } => {
                    self.held(attempt, infrastructure);
                    continue;
                }
                effect => {
                    last = effect.word();
                    self.carry_out(&effect)
                }
            };
            match done {
                Ok(events) => {
                    for event in events {
                        self.record(&event)?;
                    }
                }
                Err(trouble) => {
                    self.record(&Event::Hindered { reason: trouble.reason, detail: trouble.detail })?;
                }
            }
        }
    }

    fn held(&mut self, attempt: Attempt, infrastructure: u64) {
        self.briefing.notes.push(format!(
            "After attempt {attempt} the run was held open once: the deliverable did not move, but {infrastructure} \
             path(s) in hidden tool folders did. If the next attempt changes nothing in the deliverable either, the \
             run ends as stalled."
        ));
        self.watcher.notice(&Notice::Remark(&format!(
            "breaker held once after attempt {attempt}: nothing moved in the deliverable, {infrastructure} path(s) \
             moved in infrastructure (hidden tool folders)"
        )));
    }

    fn carry_out(&mut self, effect: &Effect) -> Result<Vec<Event>, Trouble> {
        if self.cancel.is_raised() {
            match effect {
                Effect::Observe { .. } => {}
                // The machine waits for the agent's end before it stops: this one was never begun.
                Effect::Implement { attempt, agent, try_no } => {
                    return Ok(vec![interrupted(), never_begun(*attempt, agent, *try_no)]);
                }
                _ => return Ok(vec![interrupted()]),
            }
        }
        match effect {
            Effect::Preflight => self.preflight(),
            Effect::Look { attempt, agent, from, why } => self.look(*attempt, agent, from.zip(*why)),
            Effect::Implement { attempt, agent, try_no } => self.implement(*attempt, agent, *try_no),
            Effect::Wait { attempt, ms } => Ok(self.wait(*attempt, Duration::from_millis(*ms))),
            Effect::Observe { attempt, unverifiable } => self.observe(*attempt, *unverifiable),
            Effect::Judge { attempt } => self.judge(*attempt),
            Effect::Hold { .. } | Effect::End { .. } => Ok(Vec::new()),
        }
    }

    fn wait(&self, attempt: Attempt, pause: Duration) -> Vec<Event> {
        let until = Instant::now() + pause;
        while !self.cancel.is_raised() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return vec![Event::Waited { attempt }];
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        vec![interrupted()]
    }

    fn stamp(&self) -> Stamp {
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Stamp { at: jiff::Timestamp::now(), elapsed_ms }
    }

    /// Lets the machine decide, writes and syncs the line, and only then queues what is to be done.
    pub(crate) fn record(&mut self, event: &Event) -> Result<(), RunError> {
        let stamp = self.stamp();
        let effects = self.machine.handle(stamp, event);
        let writing = Instant::now();
        let line = self.journal.append(stamp, event, &effects)?;
        self.timings.journal += writing.elapsed();
        self.timings.lines += 1;
        self.watcher.notice(&Notice::Recorded(line));
        self.pending.extend(effects);
        Ok(())
    }

    fn finish(&mut self, outcome: Outcome) -> Result<Finished, RunError> {
        // What the workspace is like now is what `undo` compares later edits with.
        if let Err(trouble) = self.keep_end() {
            self.watcher.notice(&Notice::Remark(&trouble.detail));
        }
        // What a person said last is kept for the next brief.
        self.take_in_tells();
        let _ = std::fs::remove_dir_all(self.dir.live());
        let stamp = self.stamp();
        seal(&mut self.journal, &self.dir, stamp, None)?;
        let summary = RunSummary::fold(self.journal.lines()).ok_or(RunError::Stuck("started"))?;
        if let Err(error) = self.dir.write_summary(&summary) {
            // Derived: it is rebuilt from the journal when it is missing.
            self.watcher.notice(&Notice::Remark(&error.to_string()));
        }
        self.watcher.notice(&Notice::Done { outcome: &outcome, summary: &summary });
        Ok(Finished { outcome, summary })
    }

    fn keep_end(&mut self) -> Result<(), Trouble> {
        if self.settings.isolation == Isolation::InPlace {
            let look = self.take_look()?;
            self.eyes.keep(&look, self.dir.id(), "end").doing("keeping the end tree")?;
        }
        Ok(())
    }

    /// Looks at the workspace, hashing only what moved since the latest look.
    pub(crate) fn take_look(&mut self) -> Result<Look, Trouble> {
        let begun = Instant::now();
        let look = self.eyes.look(Some(&self.sight.latest)).doing("looking at the workspace")?;
        self.timings.tick_waits += look.waited();
        self.timings.looks += begun.elapsed();
        self.sight.latest = look.clone();
        Ok(look)
    }
}

pub(crate) fn interrupted() -> Event {
    Event::Interrupted { by: "signal".to_owned() }
}

fn never_begun(attempt: Attempt, agent: &AgentName, try_no: u32) -> Event {
    let facts = AgentFacts {
        wait: WaitStatus::NotStarted { errno: None },
        duration_ms: 0,
        tokens: None,
        cost: None,
        cost_by: None,
        fault: None,
    };
    Event::AgentEnded { attempt, agent: agent.clone(), try_no, facts }
}

/// What the last seal says, where no process has worked on the run since.
pub(crate) fn standing_seal(lines: &[JournalLine]) -> Option<BTreeMap<String, Digest>> {
    let since = lines.iter().rev().take_while(|line| !matches!(line.event, Event::Resumed { .. }));
    since.into_iter().find_map(|line| match &line.event {
        Event::Sealed { artifacts } => Some(artifacts.clone()),
        _ => None,
    })
}

/// Writes the proof of a run that was accepted, and the `sealed` line with every artifact's digest. What `standing` says of an
/// artifact goes on to hold: whoever only records an act has written none, and what lies there now may be damaged.
pub(crate) fn seal(
    journal: &mut Journal,
    dir: &RunDir,
    stamp: Stamp,
    standing: Option<BTreeMap<String, Digest>>,
) -> Result<(), RunError> {
    let failed =
        |e: triphammer_store::FileError| triphammer_store::WriteError { path: e.path, source: e.source };
    let is_decided = matches!(journal.lines().last().map(|line| &line.event), Some(Event::Decided { .. }));
    let statement =
        if standing.is_none() || is_decided { proof::statement(dir, journal.lines()) } else { None };
    if let Some(statement) = &statement {
        dir.write_json(proof::PROOF, statement).map_err(failed)?;
    }
    let artifacts = match standing {
        None => digest_artifacts(dir.path())
            .map_err(|e| triphammer_store::WriteError { path: e.0.path, source: e.0.source })?,
        Some(mut artifacts) => {
            if statement.is_some() {
                let written = dir.read(proof::PROOF).map_err(failed)?;
                artifacts.insert(proof::PROOF.to_owned(), Digest::of(&written));
            }
            artifacts
        }
    };
    journal.append(stamp, &Event::Sealed { artifacts }, &[])?;
    Ok(())
}
