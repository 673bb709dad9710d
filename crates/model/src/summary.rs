//! `run.json`: what became of a run, derived from its journal and from nothing else.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::{Event, Isolation};
use crate::ids::{AgentName, Attempt, RunId, TreeId};
use crate::journal::JournalLine;
use crate::money::MicroUsd;
use crate::outcome::{Outcome, SuspendReason};
use crate::process::WaitStatus;
use crate::receipt::{Fault, Tokens};

/// One attempt in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSummary {
    /// Its number.
    pub attempt: Attempt,
    /// Who worked.
    pub agent: AgentName,
    /// Tries, retries included.
    pub tries: u32,
    /// How the agent ended; `None` when that was not seen.
    pub wait: Option<WaitStatus>,
    /// A fault on the agent's side.
    pub fault: Option<Fault>,
    /// Observed paths whose content moved; `None` when not observed.
    pub moved: Option<u64>,
    /// The tree as judged.
    pub tree: Option<TreeId>,
    /// Whether the gates passed; `None` when they did not judge.
    pub ok: Option<bool>,
    /// Failing findings.
    pub findings: Option<u64>,
    /// The report's identity.
    pub identity: Option<crate::Digest>,
    /// Protected paths changed and restored.
    pub offences: u32,
    /// Whether it is charged against the attempts.
    pub charged: bool,
}

/// What was spent, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Wall clock at work, in milliseconds.
    pub active_ms: u64,
    /// Tokens that were reported.
    pub tokens: Tokens,
    /// Money that was reported.
    pub cost: MicroUsd,
    /// Agent calls whose cost is unknown.
    pub cost_unknown: u32,
    /// Agent calls whose tokens are unknown.
    pub tokens_unknown: u32,
}

/// `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Schema version of this file.
    pub schema: u32,
    /// The run.
    pub run: RunId,
    /// The spec's name.
    pub spec: String,
    /// The goal line.
    pub goal: String,
    /// `in-flight` until it ended; a run at rest that reads so was killed.
    pub outcome: String,
    /// The outcome's reason; empty while in flight.
    pub reason: String,
    /// What exactly, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When the cause of a suspension is expected to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Attempts charged.
    pub attempts: u32,
    /// The accepted attempt.
    pub accepted_attempt: Option<Attempt>,
    /// The accepted tree.
    pub tree: Option<TreeId>,
    /// The process exit code; `None` while in flight.
    pub exit_code: Option<u8>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended, or the last event's time.
    pub last: Timestamp,
    /// The workspace folder.
    pub workspace: String,
    /// How it is kept apart.
    pub isolation: Isolation,
    /// The tree before any work.
    pub start_tree: TreeId,
    /// The run that this one was branched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// What was spent.
    pub spent: Spent,
    /// Each attempt in short.
    pub history: Vec<AttemptSummary>,
    /// What a person decided after the machine ended, in short; the machine's verdict stays in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
}

impl RunSummary {
    /// Folds a journal's lines into the summary; `None` when the first is no `started`.
    pub fn fold<'a>(lines: impl IntoIterator<Item = &'a JournalLine>) -> Option<Self> {
        let mut lines = lines.into_iter();
        let first = lines.next()?;
        let Event::Started(start) = &first.event else { return None };
        let mut summary = Self {
            schema: 1,
            run: start.run.clone(),
            spec: start.spec.clone(),
            goal: start.goal.clone(),
            outcome: "in-flight".to_owned(),
            reason: String::new(),
            detail: None,
            until: None,
            attempts: 0,
            accepted_attempt: None,
            tree: None,
            exit_code: None,
            started: first.at,
            last: first.at,
            workspace: start.workspace.clone(),
            isolation: start.isolation,
            start_tree: start.tree.clone(),
            parent: start.parent.clone(),
            spent: Spent::default(),
            history: Vec::new(),
            decided: None,
        };
        let mut earlier_ms = 0;
        let mut segment_ms = first.elapsed_ms;
        summary.take_effects(&first.effects);
        for line in lines {
            if matches!(line.event, Event::Resumed { .. }) {
                earlier_ms += segment_ms;
                segment_ms = 0;
            }
            if !matches!(line.event, Event::Sealed { .. }) {
                // A person's act afterwards takes no time and carries none.
                segment_ms = segment_ms.max(line.elapsed_ms);
            }
            summary.last = line.at;
            summary.take_event(&line.event);
            summary.take_effects(&line.effects);
        }
        summary.spent.active_ms = earlier_ms + segment_ms;
        summary.attempts = summary.history.iter().map(|a| u32::from(a.charged)).sum();
        Some(summary)
    }

    fn current(&mut self, attempt: Attempt) -> Option<&mut AttemptSummary> {
        self.history.iter_mut().rev().find(|a| a.attempt == attempt)
    }

    fn take_event(&mut self, event: &Event) {
        match event {
            Event::Resumed { .. } => {
                "in-flight".clone_into(&mut self.outcome);
                self.reason.clear();
                self.detail = None;
                self.until = None;
                self.exit_code = None;
            }
            Event::AgentEnded { attempt, agent, try_no, facts } => {
                // A process that never ran has spent nothing.
                let never_ran = matches!(facts.wait, WaitStatus::NotStarted { .. });
                match facts.tokens {
                    Some(t) => {
                        self.spent.tokens.input += t.input;
                        self.spent.tokens.cached += t.cached;
                        self.spent.tokens.output += t.output;
                    }
                    None if never_ran => {}
                    None => self.spent.tokens_unknown += 1,
                }
                match facts.cost {
                    Some(cost) => self.spent.cost += cost,
                    None if never_ran => {}
                    None => self.spent.cost_unknown += 1,
                }
                if let Some(a) = self.current(*attempt) {
                    a.agent = agent.clone();
                    a.tries = *try_no;
                    a.wait = Some(facts.wait);
                    a.fault.clone_from(&facts.fault);
                }
            }
            Event::Observed { attempt, movement, tree, offences, .. } => {
                if let Some(a) = self.current(*attempt) {
                    a.moved = Some(movement.content);
                    a.tree = Some(tree.clone());
                    a.offences = *offences;
                }
            }
            Event::Judged { attempt, report } => {
                if let Some(a) = self.current(*attempt) {
                    a.ok = Some(report.ok);
                    // One that was parked before its gates could judge is charged once they have.
                    a.charged = true;
                    a.findings = Some(report.findings);
                    a.identity = Some(report.identity.clone());
                }
            }
            Event::Decided { accept, by, why } => {
                let verb = if *accept { "accepted" } else { "rejected" };
                self.decided = Some(format!("{verb} by {by}: {why}"));
            }
            _ => {}
        }
    }

    fn take_effects(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Look { attempt, agent, .. } => {
                    // A parked attempt is taken up under its own number; what it was before is in the journal.
                    self.history.retain(|a| a.attempt != *attempt);
                    self.history.push(AttemptSummary {
                        attempt: *attempt,
                        agent: agent.clone(),
                        tries: 0,
                        wait: None,
                        fault: None,
                        moved: None,
                        tree: None,
                        ok: None,
                        findings: None,
                        identity: None,
                        offences: 0,
                        charged: false,
                    });
                }
                Effect::Implement { attempt, .. } => {
                    if let Some(a) = self.current(*attempt) {
                        a.charged = true;
                    }
                }
                Effect::End { outcome } => self.end(outcome),
                _ => {}
            }
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        outcome.word().clone_into(&mut self.outcome);
        outcome.reason().clone_into(&mut self.reason);
        self.exit_code = Some(outcome.exit_code());
        match outcome {
            Outcome::Accepted { attempt, tree, .. } => {
                self.accepted_attempt = Some(*attempt);
                self.tree.clone_from(tree);
            }
            Outcome::Suspended { reason, until, detail } => {
                self.until = *until;
                self.detail.clone_from(detail);
                // Not charged is an attempt that never got to its gates, nor one that its agent could not do: it is
                // taken up again under its number.
                let agent_could_not = matches!(
                    reason,
                    SuspendReason::RateLimit
                        | SuspendReason::Quota
                        | SuspendReason::Authentication
                        | SuspendReason::Overloaded
                );
                if let Some(last) = self.history.last_mut()
                    && (last.ok.is_none() || agent_could_not)
                {
                    last.charged = false;
                }
            }
            Outcome::Failed { detail, .. } => self.detail.clone_from(detail),
            _ => {}
        }
    }
}
