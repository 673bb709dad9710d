//! A journal fed through the machine once more: as it was recorded, or under another policy.

use triphammer_model::{Effect, Event, JournalLine, Outcome, Policy};

use crate::machine::Machine;

/// The first line at which the machine decides otherwise than it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Number of the line, from 0.
    pub seq: u64,
    /// The event's word.
    pub event: &'static str,
    /// Whether the event fitted where the machine stood.
    pub expected: bool,
    /// What is recorded.
    pub recorded: Vec<Effect>,
    /// What the machine wants now.
    pub now: Vec<Effect>,
}

/// Feeds a journal through the machine and compares each line's effects.
///
/// # Errors
/// The first [`Divergence`].
pub fn replay(lines: &[JournalLine]) -> Result<Machine, Box<Divergence>> {
    let mut machine = Machine::new();
    for line in lines {
        let expected = machine.expects(&line.event);
        let now = machine.handle(line.stamp(), &line.event);
        if !expected || !same(&now, &line.effects) {
            let (seq, event, recorded) = (line.seq, line.event.word(), line.effects.clone());
            return Err(Box::new(Divergence { seq, event, expected, recorded, now }));
        }
    }
    Ok(machine)
}

/// How a run would have gone under another policy, as far as its record can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Would {
    /// As it went.
    AsRecorded,
    /// It would have ended here, with this outcome.
    Ended(Outcome),
    /// It would have gone another way here, and what would have come of that nobody recorded.
    Unknown(Beyond),
}

/// Where the record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The run would have gone on where it ended.
    GoesOn,
    /// Another agent would have worked, or from another tree.
    OtherWork,
}

/// A run under another policy.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// The lines up to where the two part, the effects as decided now.
    pub lines: Vec<JournalLine>,
    /// What would have become of it.
    pub would: Would,
}

/// Decides a recorded run's events under another policy. Beyond what was recorded nothing is guessed.
pub fn what_if(lines: &[JournalLine], policy: Policy) -> WhatIf {
    let mut machine = Machine::new();
    let mut decided = Vec::with_capacity(lines.len());
    for line in lines {
        let event = match &line.event {
            Event::Started(started) => {
                let mut started = started.clone();
                started.policy = policy;
                Event::Started(started)
            }
            event => event.clone(),
        };
        let effects = machine.handle(line.stamp(), &event);
        let would = compare(&effects, &line.effects);
        decided.push(JournalLine { event, effects, ..line.clone() });
        if let Some(would) = would {
            return WhatIf { lines: decided, would };
        }
    }
    WhatIf { lines: decided, would: Would::AsRecorded }
}

/// Whether two decisions are the same. Older journals do not say why another agent takes over.
fn same(now: &[Effect], recorded: &[Effect]) -> bool {
    now.len() == recorded.len()
        && now.iter().zip(recorded).all(|(now, recorded)| match (now, recorded) {
            (
                Effect::Look { attempt, agent, from, .. },
                Effect::Look { attempt: then, agent: worker, from: tree @ Some(_), why: None },
            ) => (attempt, agent, from) == (then, worker, tree),
            _ => now == recorded,
        })
}

/// What two decisions about the same event mean; `None` where both lead to the same next step.
fn compare(now: &[Effect], recorded: &[Effect]) -> Option<Would> {
    // That a proof was held is told to people; the run goes on in the same way.
    let steps = |effects: &[Effect]| -> Vec<Effect> {
        effects.iter().filter(|effect| !matches!(effect, Effect::Hold { .. })).cloned().collect()
    };
    if same(&steps(now), &steps(recorded)) {
        return None;
    }
    let end = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::End { outcome } => Some(outcome.clone()),
            _ => None,
        })
    };
    Some(match (end(now), end(recorded)) {
        (Some(outcome), _) => Would::Ended(outcome),
        (None, Some(_)) => Would::Unknown(Beyond::GoesOn),
        (None, None) => Would::Unknown(Beyond::OtherWork),
    })
}
