//! The breaker's proof, read back from a journal for a person who wants to see it.

use std::fmt::Write as _;

use triphammer_model::movement::MovementFacts;
use triphammer_model::policy::IdentityPolicy;
use triphammer_model::report::ReportFacts;
use triphammer_model::{
    AgentName, Attempt, Effect, Event, JournalLine, Outcome, Policy, RejectReason, RunId,
};

use crate::story::movement_line;
use crate::text::{count, short};
use crate::verdict::report_line;

/// One judged attempt, as far as the proof is about it.
#[derive(Clone, Debug)]
struct Strike {
    attempt: Attempt,
    agent: AgentName,
    movement: MovementFacts,
    touched: bool,
    report: ReportFacts,
}

impl Strike {
    const fn identity(&self, policy: IdentityPolicy) -> &triphammer_model::Digest {
        match policy {
            IdentityPolicy::Bytes => &self.report.identity,
            IdentityPolicy::Normalised => &self.report.identity_normalised,
        }
    }
}

/// What a stalled run rests on.
#[derive(Clone, Debug)]
pub struct StallProof {
    policy: Policy,
    window: Vec<Strike>,
    held: Vec<(Attempt, u64)>,
    /// The attempt after which the proof would have stood with the other identity.
    other_identity: Option<Attempt>,
}

impl StallProof {
    /// The proof of a run that ended as stalled; `None` for every other run.
    pub fn read(lines: &[JournalLine]) -> Option<Self> {
        let Event::Started(start) = &lines.first()?.event else { return None };
        let stalled = lines.iter().rev().flat_map(|l| &l.effects).find_map(|e| match e {
            Effect::End { outcome } => {
                Some(matches!(outcome, Outcome::Rejected { reason: RejectReason::Stalled }))
            }
            _ => None,
        });
        if stalled != Some(true) {
            return None;
        }
        let strikes = strikes(lines, start.policy);
        let proofs = start.policy.proofs.max(2) as usize;
        let window = strikes[strikes.len().checked_sub(proofs)?..].to_vec();
        let other = match start.policy.identity {
            IdentityPolicy::Bytes => IdentityPolicy::Normalised,
            IdentityPolicy::Normalised => IdentityPolicy::Bytes,
        };
        let held = lines
            .iter()
            .flat_map(|l| &l.effects)
            .filter_map(|e| match e {
                Effect::Hold { attempt, infrastructure } => Some((*attempt, *infrastructure)),
                _ => None,
            })
            .collect();
        Some(Self {
            policy: start.policy,
            held,
            other_identity: first_proof(&strikes, proofs, other),
            window,
        })
    }

    /// The last attempt of the proof.
    pub fn last(&self) -> Option<Attempt> {
        self.window.last().map(|s| s.attempt)
    }

    /// The proof in words, with what may help.
    pub fn show(&self, run: &RunId) -> String {
        let mut out = String::from("why it is stalled: three things hold at once\n");
        // Writing to a String cannot fail.
        if let Some(last) = self.window.last() {
            let _ = writeln!(out, "  1. attempt {} is not ok: {}", last.attempt, report_line(&last.report));
        }
        let _ = writeln!(
            out,
            "  2. the last {} reports are identical, compared {}:",
            self.window.len(),
            how(self.policy.identity)
        );
        for strike in &self.window {
            let id = short(strike.identity(self.policy.identity).as_str());
            let _ = writeln!(out, "       attempt {}  identity {id}", strike.attempt);
        }
        let repeats = self.window.get(1..).unwrap_or_default();
        let _ = writeln!(
            out,
            "  3. the {} between them touched nothing:",
            count(repeats.len() as u64, "attempt")
        );
        for strike in repeats {
            let _ = writeln!(out, "       attempt {}  {}", strike.attempt, movement_line(&strike.movement));
        }
        for (attempt, infrastructure) in &self.held {
            let _ = writeln!(
                out,
                "  held open once after attempt {attempt}: {} moved in hidden tool folders; the attempt after it had \
                 to move the deliverable and did not",
                count(*infrastructure, "path")
            );
        }
        let other = match self.policy.identity {
            IdentityPolicy::Bytes => IdentityPolicy::Normalised,
            IdentityPolicy::Normalised => IdentityPolicy::Bytes,
        };
        let _ = match self.other_identity {
            Some(attempt) => writeln!(
                out,
                "  compared {} the same would have been proven after attempt {attempt}, holds aside",
                how(other)
            ),
            None => writeln!(out, "  compared {} it would not have been proven", how(other)),
        };
        if let Some(last) = self.window.last() {
            let n = last.attempt;
            let _ = writeln!(out, "what may help:");
            let _ =
                writeln!(out, "  triphammer show {run} {n}   the brief that moved nothing, and the findings");
            let _ = writeln!(
                out,
                "  triphammer logs {run} {n}   what the agent said; it may have asked something"
            );
            let _ = writeln!(out, "  triphammer diff {run} 0 {n} what there is so far");
            let _ = writeln!(
                out,
                "  a clearer spec, a gate that says what it wants, or another agent behind this one: --agent {},OTHER",
                last.agent
            );
        }
        out
    }
}

const fn how(policy: IdentityPolicy) -> &'static str {
    match policy {
        IdentityPolicy::Bytes => "byte for byte",
        IdentityPolicy::Normalised => "with numbers, addresses and temporary paths masked",
    }
}

/// All judged attempts in order.
fn strikes(lines: &[JournalLine], policy: Policy) -> Vec<Strike> {
    let mut strikes: Vec<Strike> = Vec::new();
    let mut agent: Option<AgentName> = None;
    let mut unverifiable = false;
    let mut seen: Option<MovementFacts> = None;
    for line in lines {
        match &line.event {
            Event::Observed { movement, .. } => seen = Some(*movement),
            Event::Judged { attempt, report } => {
                // A run that was parked judges an attempt again: the later word counts.
                strikes.retain(|s| s.attempt != *attempt);
                let movement = seen.unwrap_or_default();
                strikes.push(Strike {
                    attempt: *attempt,
                    agent: agent.clone().unwrap_or_else(|| "unknown".into()),
                    touched: movement.touched(&policy, unverifiable),
                    movement,
                    report: report.clone(),
                });
            }
            _ => {}
        }
        for effect in &line.effects {
            match effect {
                Effect::Look { agent: worker, .. } => agent = Some(worker.clone()),
                Effect::Observe { unverifiable: counts, .. } => unverifiable = *counts,
                _ => {}
            }
        }
    }
    strikes
}

/// The first attempt after which the proof stands under `identity`, holds aside.
fn first_proof(strikes: &[Strike], proofs: usize, identity: IdentityPolicy) -> Option<Attempt> {
    strikes
        .windows(proofs)
        .find(|w| {
            let first = w[0].identity(identity);
            w.iter().all(|s| !s.report.ok && s.agent == w[0].agent)
                && w[1..].iter().all(|s| !s.touched && s.identity(identity) == first)
        })
        .and_then(|w| w.last())
        .map(|s| s.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{journal, run_id, stalled_journal};

    #[test]
    fn shows_the_triple_proof() {
        let proof = StallProof::read(&stalled_journal()).unwrap();
        assert_eq!(proof.last().map(Attempt::get), Some(4));
        insta::assert_snapshot!(proof.show(&run_id()), @r"
        why it is stalled: three things hold at once
          1. attempt 4 is not ok: report: 1 passed, 1 failed: 2 findings
          2. the last 3 reports are identical, compared byte for byte:
               attempt 2  identity cd36ed8388ab
               attempt 3  identity cd36ed8388ab
               attempt 4  identity cd36ed8388ab
          3. the 2 attempts between them touched nothing:
               attempt 3  moved nothing; claims that the diff does not show: 1 disproved; hidden tool folders stood still too
               attempt 4  moved nothing; claims that the diff does not show: 1 disproved; hidden tool folders stood still too
          held open once after attempt 3: 7 paths moved in hidden tool folders; the attempt after it had to move the deliverable and did not
          compared with numbers, addresses and temporary paths masked the same would have been proven after attempt 3, holds aside
        what may help:
          triphammer show 20261130-170601-roman-3fa9 4   the brief that moved nothing, and the findings
          triphammer logs 20261130-170601-roman-3fa9 4   what the agent said; it may have asked something
          triphammer diff 20261130-170601-roman-3fa9 0 4 what there is so far
          a clearer spec, a gate that says what it wants, or another agent behind this one: --agent claude,OTHER
        ");
    }

    #[test]
    fn only_a_stalled_run_has_one() {
        assert!(StallProof::read(&journal()).is_none());
        assert!(StallProof::read(&[]).is_none());
    }
}
