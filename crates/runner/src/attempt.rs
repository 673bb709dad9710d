//! Carries out look and implement: what is written down before the agent runs, and the agent itself.

use std::path::{Path, PathBuf};
use std::time::Instant;

use triphammer_agent::guard_report;
use triphammer_gate::{BriefInput, Tell, write_brief};
use triphammer_model::event::AgentFacts;
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    AgentName, Attempt, Content, Continuation, Event, Fault, FaultKind, JournalLine, Movement, Performance,
    Receipt, SuspendReason, TakeOver, Task,
};
use triphammer_workspace::{fingerprint_file, moved};

use crate::cost;
use crate::environment;
use crate::error::{Doing, Trouble};
use crate::notice::Notice;
use crate::run::{Run, interrupted};

/// The ref of the tree as the agent found it.
pub(crate) fn before_name(attempt: Attempt) -> String {
    format!("{}-before", attempt.dir_name())
}

/// The file that keeps infrastructure's fingerprint while an attempt is live.
pub(crate) const INFRASTRUCTURE_FILE: &str = "infrastructure.fp";

impl Run<'_> {
    /// Begins an attempt: takes the fingerprint and writes it and the brief down.
    ///
    /// `takes_over` is the attempt whose tree another agent takes over, 0 for the start, and why.
    pub(crate) fn look(
        &mut self,
        attempt: Attempt,
        agent: &AgentName,
        takes_over: Option<(u32, TakeOver)>,
    ) -> Result<Vec<Event>, Trouble> {
        let dir = self.dir.attempt(attempt);
        if dir.join("brief.md").exists() {
            // A parked attempt is taken up again under its number.
            self.credit_unseen(attempt)?;
            self.set_aside(&dir, |name| name != "tries")?;
        }
        if let Some((from, why)) = takes_over {
            self.put_back(from)?;
            // The findings that count are those of the tree that is taken over.
            let report = self.dir.attempt(Attempt::new(from)).join("report.json");
            self.briefing.previous = self.dir.read_json(report).ok().map(|r| (Attempt::new(from), r));
            let when = if from == 0 { "at the start".to_owned() } else { format!("after attempt {from}") };
            let chain = &self.settings.chain;
            let at = chain.iter().position(|a| a.name == *agent);
            let before = at.and_then(|at| chain.get(at.checked_sub(1)?));
            let before = before.map_or_else(|| "another agent".to_owned(), |a| format!("agent `{}`", a.name));
            self.briefing.notes.push(format!(
                "You take over from {before}: {}. The workspace is as it was {when}.",
                why.told()
            ));
        }
        let before = self.take_look()?;
        let infrastructure = self.look_at_infrastructure(&before)?;
        self.dir.make(&dir).doing("making the attempt's folder")?;
        fingerprint_file::write(before.snapshot(), &dir.join("before.fp"))
            .doing("writing the fingerprint")?;
        // Also where there is none, so that an earlier attempt's is not taken for this one's.
        self.dir.make(&self.dir.live()).doing("making a folder")?;
        fingerprint_file::write(infrastructure.snapshot(), &self.dir.live().join(INFRASTRUCTURE_FILE))
            .doing("writing the fingerprint of hidden tool folders")?;
        if attempt.get() == 1 {
            self.keep_infrastructure(&infrastructure, "0")?;
        }
        self.sight.infrastructure = Some(infrastructure);
        self.eyes
            .keep(&before, self.dir.id(), &before_name(attempt))
            .doing("keeping the tree before the attempt")?;
        self.sight.before = Some(before);

        self.take_in_tells();
        let gates = self.gates_now();
        let notes = std::mem::take(&mut self.briefing.notes);
        let brief = write_brief(&BriefInput {
            spec: &self.spec,
            attempt,
            attempts: self.settings.limits.attempts,
            workspace: self.eyes.root().path(),
            gates: &gates,
            protect: &self.spec.protect,
            tells: &self.briefing.tells,
            lessons: &self.briefing.lessons,
            notes: &notes,
            previous: self.briefing.previous.as_ref().map(|(n, report)| (*n, report)),
        });
        self.dir.write(dir.join("brief.md"), brief.as_bytes()).doing("writing the brief")?;
        Ok(vec![Event::Looked { attempt }])
    }

    /// An agent that was cut short before anybody looked, by a full disk for instance, has its work seen now: what
    /// moved since its start is an agent's, not nobody's.
    fn credit_unseen(&mut self, attempt: Attempt) -> Result<(), Trouble> {
        let dir = self.dir.attempt(attempt);
        if dir.join("movement.json").exists() || !dir.join("before.fp").exists() {
            return Ok(());
        }
        let earlier = self.remember_before(attempt)?;
        let now = self.take_look()?;
        let bounds = now.bounds().clone();
        let mut movement =
            Movement { schema: 1, observed: moved(&earlier, &now), bounds, ..Movement::default() };
        movement.settle(&self.settings.policy, false);
        for o in movement.observed.iter().filter(|o| o.content != Content::Same) {
            self.sight.moved_by_agents.insert(o.path.clone());
        }
        self.dir.write_json(dir.join("movement.json"), &movement).doing("writing the movement")
    }

    /// Takes in what a person told the run while it is being worked on.
    pub(crate) fn take_in_tells(&mut self) {
        let inbox = self.dir.live().join("inbox");
        let Ok(entries) = std::fs::read_dir(&inbox) else { return };
        let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "json"));
        files.sort();
        for file in files {
            let told = triphammer_store::read_bounded(&file, 1 << 20)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<Event>(&bytes).ok());
            if let Some(event @ Event::Told { .. }) = told
                && self.record(&event).is_ok()
                && let Event::Told { by, text } = event
            {
                self.briefing.tells.push(Tell { by, text });
            }
            // A file that says nothing readable would be asked again for ever.
            let _ = std::fs::remove_file(&file);
        }
    }

    /// Moves what an earlier try left to `tries/<n>/`.
    fn set_aside(&self, dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<(), Trouble> {
        let tries = dir.join("tries");
        let number = std::fs::read_dir(&tries).map_or(0, |entries| entries.flatten().count()) + 1;
        let to = tries.join(number.to_string());
        self.dir.make(&to).doing("making a folder for an earlier try")?;
        for entry in std::fs::read_dir(dir).doing("listing the attempt's folder")?.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(&wanted) {
                std::fs::rename(entry.path(), to.join(&name)).doing("setting an earlier try aside")?;
            }
        }
        Ok(())
    }

    /// Puts the deliverable to an attempt's tree; 0 is the start.
    fn put_back(&mut self, attempt: u32) -> Result<(), Trouble> {
        let name = if attempt == 0 { "0".to_owned() } else { Attempt::new(attempt).dir_name() };
        let kept = self.eyes.store().kept(self.dir.id(), &name).doing("finding an attempt's tree")?;
        let restored =
            self.eyes.restore(&kept, Some(&self.sight.latest)).doing("putting the workspace back")?;
        for (path, why) in restored.blocked {
            self.watcher.notice(&Notice::Remark(&format!("could not put back `{path}`: {why}")));
        }
        Ok(())
    }

    /// Lets the agent work until its process tree is dead.
    pub(crate) fn implement(
        &mut self,
        attempt: Attempt,
        agent: &AgentName,
        try_no: u32,
    ) -> Result<Vec<Event>, Trouble> {
        let broken = self.broken()?;
        if !broken.is_empty() {
            return Ok(vec![Event::PinsBroken { pins: broken }]);
        }
        let dir = self.dir.attempt(attempt);
        if try_no > 1 {
            self.set_aside(&dir, |name| {
                ["stdout.log", "stderr.log", "transcript.jsonl", "receipt.json", "guard.json", "digest.md"]
                    .contains(&name)
            })?;
        }
        let task = self.task(attempt, agent, try_no, &dir)?;
        self.watcher.notice(&Notice::Working { attempt, workspace: self.eyes.root().path() });
        let begun = Instant::now();
        let performed = match self.agents.get(agent) {
            Some(worker) => {
                let supervisor = self.keep.agent(self.eyes.root().path(), agent, &task.scratch);
                worker.implement(&task, &supervisor, &self.cancel)
            }
            None => {
                return Err(Trouble {
                    reason: SuspendReason::Infrastructure,
                    detail: format!("agent `{agent}` is not among those pinned"),
                });
            }
        };
        self.timings.agents += begun.elapsed();
        let links = self.planted_links();
        if !links.is_empty() {
            return Ok(vec![Event::PinsBroken { pins: links }]);
        }
        let performance = match performed {
            Ok(performance) => performance,
            Err(error) => {
                let trouble = Trouble::new("running the agent", &error);
                if trouble.reason == SuspendReason::DiskFull {
                    return Err(trouble);
                }
                unusable(agent, trouble.detail)
            }
        };
        let Performance { mut receipt, wait, duration_ms } = performance;
        let asked = self.settings.chain.iter().find(|a| a.name == *agent).and_then(|a| a.kind.model());
        cost::settle(&mut receipt, asked, &self.prices);
        receipt.continuation.get_or_insert(Continuation::Fresh);
        self.dir.write_json(dir.join("receipt.json"), &receipt).doing("writing the receipt")?;
        self.report_claims(&receipt, &task, &dir)?;
        let facts = AgentFacts {
            wait,
            duration_ms,
            tokens: receipt.tokens,
            cost: receipt.cost,
            cost_by: receipt.cost_by,
            fault: receipt.fault,
        };
        let ended = Event::AgentEnded { attempt, agent: agent.clone(), try_no, facts };
        Ok(if self.cancel.is_raised() { vec![interrupted(), ended] } else { vec![ended] })
    }

    /// Reports what the agent says it ran that cannot be undone: nobody was asked, and nobody saw it.
    fn report_claims(&self, receipt: &Receipt, task: &Task, dir: &Path) -> Result<(), Trouble> {
        let Some(report) = guard_report(receipt, &task.workspace, &task.env) else { return Ok(()) };
        self.dir.write_json(dir.join("guard.json"), &report).doing("writing what the guard says")?;
        let (refused, ran): (Vec<_>, Vec<_>) = report.reported.iter().partition(|one| one.refused);
        let more = |count: usize| match count.saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more: guard.json)"),
        };
        if let Some(one) = ran.first() {
            self.watcher.notice(&Notice::Remark(&format!(
                "the agent says that it ran `{}`, which cannot be undone: {}{}; nobody saw it",
                one.command,
                one.why,
                more(ran.len())
            )));
        }
        if let Some(one) = refused.first() {
            self.watcher.notice(&Notice::Remark(&format!(
                "the agent asked for `{}` and was refused: {}{}",
                one.command,
                one.why,
                more(refused.len())
            )));
        }
        Ok(())
    }

    fn task(&self, attempt: Attempt, agent: &AgentName, try_no: u32, dir: &Path) -> Result<Task, Trouble> {
        let brief_file = dir.join("brief.md");
        let brief = self.dir.read(&brief_file).doing("reading the brief")?;
        let scratch = self.dir.live().join(format!("scratch-{attempt}-{try_no}"));
        let _ = std::fs::remove_dir_all(&scratch);
        self.dir.make(&scratch).doing("making a scratch folder")?;
        let mut env = self.env.clone();
        if let Some(settings) = self.settings.chain.iter().find(|a| a.name == *agent) {
            environment::add(&mut env, &settings.env);
        }
        Ok(Task {
            run: self.dir.id().clone(),
            attempt,
            try_no,
            workspace: self.eyes.root().path().to_owned(),
            brief: String::from_utf8_lossy(&brief).into_owned(),
            brief_file,
            dir: dir.to_owned(),
            scratch,
            fenced: self.keep.is_fenced(),
            session: self.session(attempt, agent),
            env,
        })
    }

    /// The session that the agent goes on with: that of its latest attempt, where nobody else worked since.
    fn session(&self, attempt: Attempt, agent: &AgentName) -> Option<String> {
        let settings = self.settings.chain.iter().find(|a| a.name == *agent)?;
        let last = attempt.get().checked_sub(1).filter(|n| *n > 0 && settings.continue_session)?;
        let path = self.dir.attempt(Attempt::new(last)).join("receipt.json");
        let receipt = self.dir.read_json::<Receipt>(path).ok()?;
        receipt.session.filter(|_| receipt.agent == agent.as_str())
    }
}

/// An agent that cannot be used at all is a crash of its side, with the reason in the receipt.
fn unusable(agent: &AgentName, why: String) -> Performance {
    let fault = Fault { kind: FaultKind::Crashed, reset_at: None, message: Some(why) };
    let receipt = Receipt { schema: 1, agent: agent.to_string(), fault: Some(fault), ..Receipt::default() };
    Performance { receipt, wait: WaitStatus::NotStarted { errno: None }, duration_ms: 0 }
}

/// Tells from the journal, oldest first.
pub(crate) fn tells(lines: &[JournalLine]) -> Vec<Tell> {
    lines
        .iter()
        .filter_map(|line| match &line.event {
            Event::Told { by, text } => Some(Tell { by: by.clone(), text: text.clone() }),
            _ => None,
        })
        .collect()
}
