//! How a run ended, and what to type next.

use std::fmt::Write as _;

use triphammer_model::event::Isolation;
use triphammer_model::{AcceptedAs, FailReason, Outcome, RejectReason, RunId, SuspendReason};

use crate::text::{count, one_line, short};

/// The outcome in one line: word, reason, what it means.
pub fn done_line(outcome: &Outcome, attempts: u32) -> String {
    let mut line = format!("{} ({})", outcome.word(), outcome.reason());
    // Writing to a String cannot fail.
    let _ = match outcome {
        Outcome::Accepted { attempt, tree, .. } => {
            let tree = tree.as_ref().map_or_else(String::new, |t| format!(", tree {}", short(t.as_str())));
            write!(line, " at attempt {attempt}{tree},")
        }
        Outcome::Suspended { until: Some(until), .. } => write!(line, " until {until}"),
        _ => Ok(()),
    };
    let _ = write!(line, " after {}: {}", count(u64::from(attempts), "attempt"), meaning(outcome));
    if let Outcome::Suspended { detail: Some(detail), .. } | Outcome::Failed { detail: Some(detail), .. } =
        outcome
    {
        let _ = write!(line, ": {}", one_line(detail, 500));
    }
    line
}

/// What an outcome means, in a few words.
pub(crate) const fn meaning(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted { reason, .. } => match reason {
            AcceptedAs::GatesPassed => "every gate passed and a red check turned green",
            AcceptedAs::Unchecked => {
                "every gate passed, but no check was red at the start: nothing proves the goal"
            }
            AcceptedAs::Flaky => "every gate passed, one of them only when it was run again",
            AcceptedAs::Decided => "a person accepted it",
        },
        Outcome::Rejected { reason } => match reason {
            RejectReason::AttemptsExhausted => "the gates never passed and the attempts are used up",
            RejectReason::Tampered => "what the work is judged by was altered",
            RejectReason::Stalled => "proven immobile: the same findings, and nothing moves any more",
            RejectReason::BudgetExhausted => "time, money or tokens are used up",
            RejectReason::Decided => "a person rejected it",
        },
        Outcome::Suspended { reason, .. } => match reason {
            SuspendReason::RateLimit => "the agent's service limits the rate",
            SuspendReason::Quota => "the agent's quota is spent",
            SuspendReason::Authentication => "the agent's login is missing or expired",
            SuspendReason::Overloaded => "the agent's service is overloaded",
            SuspendReason::GateError => "gates could not do their job twice in a row",
            SuspendReason::CostUnknown => {
                "there is a cap on money and the agent does not say what it spent; let it write a receipt, or set \
                 unknown_cost = \"ignore\" under [run]"
            }
            SuspendReason::TokensUnknown => {
                "there is a cap on tokens and the agent does not say what it used; let it write a receipt, or set \
                 unknown_cost = \"ignore\" under [run]"
            }
            SuspendReason::DiskFull => "the disk is full",
            SuspendReason::NeedsReview => "the gates passed only when run again; a person must decide",
            SuspendReason::Infrastructure => "something that the run needs failed",
        },
        Outcome::Failed { reason, .. } => match reason {
            FailReason::NoGates => "there is no gate: an empty pipeline proves nothing",
            FailReason::KeepGreenRed => "what must stay green is red before any work",
            FailReason::GateToolMissing => "a gate's tool is not installed",
            FailReason::SetupFailed => "a set-up command failed",
            FailReason::Infrastructure => "something that the run needs failed before the first attempt",
        },
        Outcome::Interrupted => "stopped by a signal or a person; nothing is lost",
        Outcome::NothingToDo => "every gate is green before any work; --allow-green goes on all the same",
    }
}

/// What to type next, one command a line with what it does. `is_undone` says that the workspace was put back since.
pub fn next_commands(run: &RunId, outcome: &Outcome, isolation: Isolation, is_undone: bool) -> String {
    let in_place = isolation == Isolation::InPlace;
    let mut next: Vec<(String, &str)> = Vec::new();
    let see = (format!("triphammer show {run}"), "what happened");
    match outcome {
        Outcome::Accepted { attempt, .. } => {
            next.push((format!("triphammer diff {run} 0 {attempt}"), "the accepted work"));
            next.extend(match isolation {
                Isolation::InPlace if is_undone => None,
                Isolation::InPlace => Some((format!("triphammer undo {run}"), "take it back")),
                Isolation::New => {
                    Some((format!("triphammer apply {run} --to DIR"), "land it in a folder of yours"))
                }
                Isolation::Worktree | Isolation::Copy => {
                    Some((format!("triphammer apply {run}"), "land it in your own folder"))
                }
            });
        }
        Outcome::Rejected { reason } => {
            let stalled = *reason == RejectReason::Stalled;
            next.push(if stalled { (see.0, "the proof, and what may help") } else { see });
            if in_place && !is_undone {
                next.push((format!("triphammer undo {run}"), "put the workspace back"));
            }
        }
        Outcome::Suspended { reason: SuspendReason::NeedsReview, .. } => {
            next.push(see);
            next.push((format!("triphammer decide {run} accept --why TEXT"), "or reject"));
        }
        Outcome::Suspended { .. } | Outcome::Interrupted => {
            next.push((format!("triphammer resume {run}"), "go on with the budgets it has left"));
            next.push((format!("triphammer tell {run} TEXT"), "put a word into the next brief"));
            next.push(see);
        }
        Outcome::Failed { .. } | Outcome::NothingToDo => next.push(see),
    }
    let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let lines: Vec<String> = next.iter().map(|(command, why)| format!("  {command:width$}  {why}")).collect();
    format!("next:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{attempt, run_id};

    #[test]
    fn says_how_it_ended_and_what_next() {
        let accepted = Outcome::Accepted {
            reason: AcceptedAs::GatesPassed,
            attempt: attempt(3),
            tree: Some("0123456789abcdef0123456789abcdef01234567".into()),
        };
        insta::assert_snapshot!(done_line(&accepted, 3), @"accepted (gates-passed) at attempt 3, tree 0123456789ab, after 3 attempts: every gate passed and a red check turned green");
        insta::assert_snapshot!(next_commands(&run_id(), &accepted, Isolation::Copy, false), @r"
        next:
          triphammer diff 20261130-170601-roman-3fa9 0 3  the accepted work
          triphammer apply 20261130-170601-roman-3fa9     land it in your own folder
        ");
        let stalled = Outcome::Rejected { reason: RejectReason::Stalled };
        insta::assert_snapshot!(done_line(&stalled, 3), @"rejected (stalled) after 3 attempts: proven immobile: the same findings, and nothing moves any more");
        insta::assert_snapshot!(next_commands(&run_id(), &stalled, Isolation::InPlace, false), @r"
        next:
          triphammer show 20261130-170601-roman-3fa9  the proof, and what may help
          triphammer undo 20261130-170601-roman-3fa9  put the workspace back
        ");
        let parked = Outcome::Suspended {
            reason: SuspendReason::RateLimit,
            until: Some("2026-11-30T18:00:00Z".parse().unwrap()),
            detail: Some("try\nlater".to_owned()),
        };
        insta::assert_snapshot!(done_line(&parked, 1), @"suspended (rate-limit) until 2026-11-30T18:00:00Z after 1 attempt: the agent's service limits the rate: try later");
        insta::assert_snapshot!(next_commands(&run_id(), &parked, Isolation::New, false), @r"
        next:
          triphammer resume 20261130-170601-roman-3fa9     go on with the budgets it has left
          triphammer tell 20261130-170601-roman-3fa9 TEXT  put a word into the next brief
          triphammer show 20261130-170601-roman-3fa9       what happened
        ");
    }

    #[test]
    fn every_resumable_outcome_names_resume_or_decide() {
        for reason in [SuspendReason::DiskFull, SuspendReason::GateError, SuspendReason::NeedsReview] {
            let parked = Outcome::Suspended { reason, until: None, detail: None };
            let text = next_commands(&run_id(), &parked, Isolation::InPlace, false);
            assert!(text.contains("triphammer resume") || text.contains("triphammer decide"), "{text}");
        }
        assert!(
            next_commands(&run_id(), &Outcome::Interrupted, Isolation::Copy, false)
                .contains("triphammer resume")
        );
    }
}
