//! The machine: events in, effects out.

use std::cmp::Reverse;

use jiff::Timestamp;
use triphammer_model::event::{PreflightFacts, Started};
use triphammer_model::movement::MovementFacts;
use triphammer_model::policy::FlakyPolicy;
use triphammer_model::report::{GateKind, ReportFacts};
use triphammer_model::{
    AcceptedAs, AgentName, Attempt, Effect, Event, FailReason, Outcome, RejectReason, Stamp, SuspendReason,
    TakeOver, TreeId,
};

use crate::breaker::{Breaker, Entry, Proof};
use crate::fault::{FaultAction, action_for};
use crate::spending::Spending;

/// The version of the decisions. A journal written by another version may be decided otherwise.
pub const MACHINE_VERSION: u32 = 1;

/// A reason to park the run that waits until the attempt's movement is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Park {
    reason: SuspendReason,
    until: Option<Timestamp>,
    detail: Option<String>,
    /// Why the next agent may take over instead, where it may.
    take_over: Option<TakeOver>,
}

/// Where an attempt's observation leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AfterLook {
    /// To the gates.
    Judge,
    /// To the gates if something moved, else to parking.
    Park(Park),
    /// To the end of this process's work: a signal came.
    Interrupt,
    /// To the next attempt: the process died while the agent worked.
    Killed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Preflight,
    Looking,
    Implementing { try_no: u32 },
    Waiting { try_no: u32 },
    Observing(AfterLook),
    Judging { park: Option<Park> },
    Ended { outcome: Outcome, resume: Resume },
}

/// Where `resume` takes the run up.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Resume {
    Never,
    /// Where it was.
    At(Box<Phase>),
    NextAttempt,
}

/// What the last observation said.
#[derive(Clone, Debug)]
struct LastLook {
    touched: bool,
    movement: MovementFacts,
    tree: TreeId,
    offences: u32,
    moved_since_start: bool,
}

/// The forge loop's decisions for one run.
///
/// An event that does not fit where the machine stands changes nothing and causes nothing; [`Machine::expects`]
/// tells beforehand.
#[derive(Clone, Debug)]
pub struct Machine {
    start: Option<Box<Started>>,
    phase: Phase,
    attempt: Attempt,
    agent: usize,
    /// The attempt (0: the start) whose tree the agent at hand takes over, and why, until it has looked at it.
    from: Option<(u32, TakeOver)>,
    breaker: Breaker,
    best: Option<(Merit, Attempt)>,
    spending: Spending,
    checked: bool,
    interrupted: bool,
    unverifiable_spent: bool,
    offence_named: bool,
    errors_in_a_row: u32,
    last: Option<LastLook>,
}

/// How far an attempt got: the rank it reached, then fewer failing findings. Larger is better.
type Merit = (u8, Reverse<u64>);

fn merit(report: &ReportFacts) -> Merit {
    // Nothing short of passing: everything passed but the run's own conditions.
    let rank = report.rank.map_or(u8::MAX, |kind| match kind {
        GateKind::Static => 0,
        GateKind::Build => 1,
        GateKind::Test => 2,
        GateKind::Eval => 3,
        GateKind::Judge => 4,
    });
    (rank, Reverse(report.findings))
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// A machine before its first event.
    pub fn new() -> Self {
        Self {
            start: None,
            phase: Phase::New,
            attempt: Attempt::FIRST,
            agent: 0,
            from: None,
            breaker: Breaker::default(),
            best: None,
            spending: Spending::default(),
            checked: false,
            interrupted: false,
            unverifiable_spent: false,
            offence_named: false,
            errors_in_a_row: 0,
            last: None,
        }
    }

    /// How the run ended, once it has.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// What was spent so far.
    pub const fn spending(&self) -> &Spending {
        &self.spending
    }

    /// The attempt at hand, or the last one.
    pub const fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// What the run was started with.
    pub fn start(&self) -> Option<&Started> {
        self.start.as_deref()
    }

    /// Whether `event` fits where the machine stands.
    pub fn expects(&self, event: &Event) -> bool {
        let live = !matches!(self.phase, Phase::New | Phase::Ended { .. });
        match event {
            Event::Started(_) => self.phase == Phase::New,
            Event::Preflighted(_) | Event::SetupFailed { .. } => self.phase == Phase::Preflight,
            Event::Looked { attempt } => self.phase == Phase::Looking && *attempt == self.attempt,
            Event::AgentEnded { attempt, try_no, .. } => {
                matches!(self.phase, Phase::Implementing { try_no: t } if t == *try_no)
                    && *attempt == self.attempt
            }
            Event::Waited { attempt } => {
                matches!(self.phase, Phase::Waiting { .. }) && *attempt == self.attempt
            }
            Event::Observed { attempt, .. } => {
                matches!(self.phase, Phase::Observing(_)) && *attempt == self.attempt
            }
            Event::Judged { attempt, .. } => {
                matches!(self.phase, Phase::Judging { .. }) && *attempt == self.attempt
            }
            Event::Interrupted { .. } | Event::Hindered { .. } | Event::PinsBroken { .. } => live,
            Event::Resumed { .. } => match &self.phase {
                Phase::New => false,
                Phase::Ended { resume, .. } => *resume != Resume::Never,
                _ => true,
            },
            Event::Decided { .. } => matches!(
                &self.phase,
                Phase::Ended { outcome: Outcome::Suspended { reason: SuspendReason::NeedsReview, .. }, .. }
            ),
            Event::Told { .. } | Event::Applied { .. } | Event::Undone { .. } | Event::Sealed { .. } => {
                self.phase != Phase::New
            }
        }
    }

    /// Takes in what happened and says what to do next.
    pub fn handle(&mut self, stamp: Stamp, event: &Event) -> Vec<Effect> {
        if !self.expects(event) {
            return Vec::new();
        }
        if !matches!(event, Event::Resumed { .. }) && self.outcome().is_none() {
            self.spending.tick(stamp.elapsed_ms);
        }
        match event {
            Event::Started(started) => {
                self.start = Some(started.clone());
                self.phase = Phase::Preflight;
                vec![Effect::Preflight]
            }
            Event::Preflighted(facts) => self.preflighted(facts),
            Event::Looked { .. } => {
                self.from = None;
                self.implement(1)
            }
            Event::AgentEnded { facts, try_no, .. } => {
                self.spending.add(facts);
                self.agent_ended(facts.fault.as_ref(), *try_no)
            }
            Event::Waited { .. } => match self.phase {
                Phase::Waiting { try_no } => self.implement(try_no + 1),
                _ => Vec::new(),
            },
            Event::Observed { movement, tree, offences, moved_since_start, .. } => {
                self.observed(*movement, tree.clone(), *offences, *moved_since_start)
            }
            Event::Judged { report, .. } => self.judged(report),
            Event::Interrupted { .. } => self.interrupt(),
            Event::Hindered { reason, detail } => self.hindered(*reason, detail),
            Event::SetupFailed { reason, detail } => self.fail(*reason, Some(detail.clone())),
            Event::PinsBroken { .. } => self.reject(RejectReason::Tampered),
            Event::Resumed { .. } => self.resume(),
            Event::Decided { accept, .. } => self.decided(*accept),
            Event::Told { .. } | Event::Applied { .. } | Event::Undone { .. } | Event::Sealed { .. } => {
                Vec::new()
            }
        }
    }

    fn started(&self) -> &Started {
        self.start.as_deref().expect("bug: the machine acted before `started`")
    }

    fn agent_name(&self) -> AgentName {
        self.started().agents.get(self.agent).cloned().unwrap_or_else(|| AgentName::new("none"))
    }

    fn has_next_agent(&self) -> bool {
        self.agent + 1 < self.started().agents.len()
    }

    fn preflighted(&mut self, facts: &PreflightFacts) -> Vec<Effect> {
        let started = self.started();
        if facts.gates == 0 && !started.empty {
            return self.fail(FailReason::NoGates, None);
        }
        if !facts.tools_missing.is_empty() {
            let list: Vec<String> = facts
                .tools_missing
                .iter()
                .map(|(gate, tool)| format!("gate `{gate}` needs `{tool}`"))
                .collect();
            return self.fail(FailReason::GateToolMissing, Some(list.join("; ")));
        }
        if !facts.keep_green_red.is_empty() {
            let list: Vec<String> = facts.keep_green_red.iter().map(|g| format!("`{g}`")).collect();
            return self.fail(FailReason::KeepGreenRed, Some(list.join(", ")));
        }
        if facts.gates > 0 && facts.green && !started.allow_green {
            return self.end(Outcome::NothingToDo, Resume::Never);
        }
        self.checked = !facts.red_checks.is_empty();
        self.look()
    }

    fn look(&mut self) -> Vec<Effect> {
        self.phase = Phase::Looking;
        let (from, why) = self.from.unzip();
        vec![Effect::Look { attempt: self.attempt, agent: self.agent_name(), from, why }]
    }

    fn implement(&mut self, try_no: u32) -> Vec<Effect> {
        self.phase = Phase::Implementing { try_no };
        vec![Effect::Implement { attempt: self.attempt, agent: self.agent_name(), try_no }]
    }

    fn observe(&mut self, after: AfterLook) -> Vec<Effect> {
        self.phase = Phase::Observing(after);
        vec![Effect::Observe { attempt: self.attempt, unverifiable: !self.unverifiable_spent }]
    }

    fn judge(&mut self, park: Option<Park>) -> Vec<Effect> {
        self.phase = Phase::Judging { park };
        vec![Effect::Judge { attempt: self.attempt }]
    }

    fn agent_ended(&mut self, fault: Option<&triphammer_model::Fault>, try_no: u32) -> Vec<Effect> {
        if self.interrupted {
            return self.observe(AfterLook::Interrupt);
        }
        let Some(fault) = fault else { return self.observe(AfterLook::Judge) };
        let limits = self.started().limits;
        let park = |reason, take_over| Park {
            reason,
            until: fault.reset_at,
            detail: fault.message.clone(),
            take_over,
        };
        match action_for(fault.kind, fault.reset_at.is_some()) {
            FaultAction::RetryThenCount | FaultAction::RetryThenPark(_) if try_no <= limits.retries => {
                self.phase = Phase::Waiting { try_no };
                let doublings = (try_no - 1).min(16);
                let ms = limits.backoff.as_millis().saturating_mul(1 << doublings);
                vec![Effect::Wait { attempt: self.attempt, ms }]
            }
            FaultAction::RetryThenPark(reason) | FaultAction::Park(reason) => {
                self.observe(AfterLook::Park(park(reason, None)))
            }
            FaultAction::ParkOrTakeOver(reason, why) => {
                self.observe(AfterLook::Park(park(reason, Some(why))))
            }
            FaultAction::RetryThenCount | FaultAction::Count => self.observe(AfterLook::Judge),
        }
    }

    fn observed(
        &mut self,
        movement: MovementFacts,
        tree: TreeId,
        offences: u32,
        moved_since_start: bool,
    ) -> Vec<Effect> {
        let touched = movement.touched(&self.started().policy, !self.unverifiable_spent);
        if movement.unverifiable > 0 {
            self.unverifiable_spent = true;
        }
        self.last = Some(LastLook { touched, movement, tree, offences, moved_since_start });
        let Phase::Observing(after) = std::mem::replace(&mut self.phase, Phase::New) else {
            unreachable!("bug: `observed` outside of observing")
        };
        match after {
            AfterLook::Judge if self.interrupted => self.stop_at(Phase::Judging { park: None }),
            AfterLook::Judge => self.judge(None),
            AfterLook::Park(park) if touched => self.judge(Some(park)),
            AfterLook::Park(park) => self.park(park),
            AfterLook::Interrupt => {
                self.breaker.pass_over(touched);
                self.end(Outcome::Interrupted, Resume::NextAttempt)
            }
            AfterLook::Killed => {
                self.breaker.pass_over(touched);
                self.go_on()
            }
        }
    }

    /// After an attempt that the gates did not judge: the next one, or, when there is none, the gates after all.
    fn go_on(&mut self) -> Vec<Effect> {
        let limits = self.started().limits;
        if self.attempt.get() >= limits.attempts || self.spending.is_exhausted(&limits) {
            self.breaker.take_back();
            return self.judge(None);
        }
        self.attempt = self.attempt.next();
        self.look()
    }

    fn judged(&mut self, report: &ReportFacts) -> Vec<Effect> {
        let Phase::Judging { park } = std::mem::replace(&mut self.phase, Phase::New) else {
            unreachable!("bug: `judged` outside of judging")
        };
        let look = self.last.clone().expect("bug: judged before observed");
        let started = self.started();
        let (policy, limits) = (started.policy, started.limits);
        let ok = report.ok && look.moved_since_start;

        if ok {
            let reason = match (report.flaky, limits.flaky) {
                (true, FlakyPolicy::Review) => {
                    // Judged again on resume: this report is not kept.
                    return self.suspend(
                        SuspendReason::NeedsReview,
                        None,
                        Some("a gate passed only when it was run again".to_owned()),
                        Resume::At(Box::new(Phase::Judging { park: None })),
                    );
                }
                (true, FlakyPolicy::Accept) => AcceptedAs::Flaky,
                (false, _) if self.checked => AcceptedAs::GatesPassed,
                (false, _) => AcceptedAs::Unchecked,
            };
            return self.accept(reason);
        }
        if look.offences > 0 && self.offence_named {
            return self.reject(RejectReason::Tampered);
        }
        self.offence_named |= look.offences > 0;
        let merit = merit(report);
        if self.best.as_ref().is_none_or(|(best, _)| merit >= *best) {
            self.best = Some((merit, self.attempt));
        }
        if let Some(park) = park {
            // Work happened that no attempt is charged for: whatever is proven later must not rest on it.
            self.breaker.restart();
            return self.park(park);
        }
        if !report.errors_only() {
            self.errors_in_a_row = 0;
        } else if self.errors_in_a_row > 0 {
            // The verifier is broken, not the work: the same attempt is judged again on resume, and this report says
            // nothing about movement.
            let again = Resume::At(Box::new(Phase::Judging { park: None }));
            return self.suspend(SuspendReason::GateError, None, None, again);
        } else {
            self.errors_in_a_row = 1;
        }
        let infrastructure = look.movement.infrastructure.unwrap_or(0);
        let mut effects = Vec::new();
        let entry = Entry { ok, ..Entry::judged(look.touched, infrastructure, report) };
        match self.breaker.strike(entry, &policy) {
            Proof::Immobile if self.has_next_agent() => {
                self.hand_over(TakeOver::Stalled);
                return self.next_attempt();
            }
            Proof::Immobile => return self.reject(RejectReason::Stalled),
            Proof::Held { infrastructure } => {
                effects.push(Effect::Hold { attempt: self.attempt, infrastructure });
            }
            Proof::Moving => {}
        }
        effects.extend(self.next_attempt());
        effects
    }

    /// The next attempt, if anything is left to spend.
    fn next_attempt(&mut self) -> Vec<Effect> {
        if let Some(end) = self.spent_out() {
            return end;
        }
        self.attempt = self.attempt.next();
        self.look()
    }

    fn spent_out(&mut self) -> Option<Vec<Effect>> {
        let limits = self.started().limits;
        if self.attempt.get() >= limits.attempts {
            return Some(self.reject(RejectReason::AttemptsExhausted));
        }
        if self.spending.is_exhausted(&limits) {
            return Some(self.reject(RejectReason::BudgetExhausted));
        }
        let reason = self.spending.unknown_under_cap(&limits)?;
        Some(self.suspend(reason, None, None, Resume::NextAttempt))
    }

    /// The next agent of the chain takes over from the best tree so far; breaker history starts anew.
    fn hand_over(&mut self, why: TakeOver) {
        self.agent += 1;
        self.breaker.restart();
        self.errors_in_a_row = 0;
        // The next agent has read no brief that named an offence.
        self.offence_named = false;
        self.from = Some((self.best.as_ref().map_or(0, |(_, attempt)| attempt.get()), why));
    }

    fn park(&mut self, park: Park) -> Vec<Effect> {
        if let Some(why) = park.take_over.filter(|_| self.has_next_agent()) {
            // The attempt is not charged: the next agent gets the same number.
            self.hand_over(why);
            return self.look();
        }
        self.suspend(park.reason, park.until, park.detail, Resume::At(Box::new(Phase::Looking)))
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        self.interrupted = true;
        match &self.phase {
            // The agent is being ended; what it did is observed before the run stops.
            Phase::Implementing { .. } | Phase::Observing(_) => Vec::new(),
            phase => self.stop_at(phase.clone()),
        }
    }

    fn stop_at(&mut self, phase: Phase) -> Vec<Effect> {
        self.end(Outcome::Interrupted, Resume::At(Box::new(phase)))
    }

    fn hindered(&mut self, reason: SuspendReason, detail: &str) -> Vec<Effect> {
        let at = match self.phase.clone() {
            Phase::Preflight if reason != SuspendReason::DiskFull => {
                return self.fail(FailReason::Infrastructure, Some(detail.to_owned()));
            }
            // The attempt did not get its chance: it is not charged and begins anew.
            Phase::Implementing { .. } => Phase::Looking,
            phase => phase,
        };
        self.suspend(reason, None, Some(detail.to_owned()), Resume::At(Box::new(at)))
    }

    fn resume(&mut self) -> Vec<Effect> {
        self.spending.resume();
        self.interrupted = false;
        match std::mem::replace(&mut self.phase, Phase::New) {
            Phase::Ended { resume: Resume::At(phase), .. } => self.enter(*phase),
            Phase::Ended { resume: Resume::NextAttempt, .. } => self.go_on(),
            Phase::Ended { resume: Resume::Never, .. } => unreachable!("bug: resumed what is over for good"),
            // The process died while the agent worked: it is charged, looked at, and not judged.
            Phase::Implementing { .. } => {
                self.spending.add_unseen();
                self.observe(AfterLook::Killed)
            }
            phase => self.enter(phase),
        }
    }

    /// Does again what a phase began with.
    fn enter(&mut self, phase: Phase) -> Vec<Effect> {
        match phase {
            Phase::Preflight => {
                self.phase = Phase::Preflight;
                vec![Effect::Preflight]
            }
            Phase::Looking => self.look(),
            Phase::Implementing { try_no } => self.implement(try_no),
            Phase::Waiting { try_no } => self.implement(try_no + 1),
            Phase::Observing(AfterLook::Interrupt) => self.observe(AfterLook::Killed),
            Phase::Observing(after) => self.observe(after),
            Phase::Judging { park } => self.judge(park),
            Phase::New | Phase::Ended { .. } => unreachable!("bug: resumed at no place"),
        }
    }

    fn decided(&mut self, accept: bool) -> Vec<Effect> {
        if accept { self.accept(AcceptedAs::Decided) } else { self.reject(RejectReason::Decided) }
    }

    fn accept(&mut self, reason: AcceptedAs) -> Vec<Effect> {
        let tree = self.last.as_ref().map(|l| l.tree.clone());
        self.end(Outcome::Accepted { reason, attempt: self.attempt, tree }, Resume::Never)
    }

    fn reject(&mut self, reason: RejectReason) -> Vec<Effect> {
        self.end(Outcome::Rejected { reason }, Resume::Never)
    }

    fn fail(&mut self, reason: FailReason, detail: Option<String>) -> Vec<Effect> {
        self.end(Outcome::Failed { reason, detail }, Resume::Never)
    }

    fn suspend(
        &mut self,
        reason: SuspendReason,
        until: Option<Timestamp>,
        detail: Option<String>,
        resume: Resume,
    ) -> Vec<Effect> {
        self.end(Outcome::Suspended { reason, until, detail }, resume)
    }

    fn end(&mut self, outcome: Outcome, resume: Resume) -> Vec<Effect> {
        self.phase = Phase::Ended { outcome: outcome.clone(), resume };
        vec![Effect::End { outcome }]
    }
}
