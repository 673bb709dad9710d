//! What a fault on the agent's side does to the run.

use triphammer_model::{FaultKind, SuspendReason, TakeOver};

/// What to do about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// Transient: the same attempt again after a pause, not charged. When the retries are used up, go on as if
    /// the attempt had ended normally.
    RetryThenCount,
    /// Transient: the same attempt again after a pause, not charged. When the retries are used up, park the run.
    RetryThenPark(SuspendReason),
    /// Park the run; with another agent in the chain, let that one take over.
    ParkOrTakeOver(SuspendReason, TakeOver),
    /// Park the run until the limit resets.
    Park(SuspendReason),
    /// The attempt counts like any other.
    Count,
}

/// The table of faults. `reset_known` says whether the agent's side named a reset time.
pub const fn action_for(kind: FaultKind, reset_known: bool) -> FaultAction {
    match kind {
        FaultKind::Authentication => {
            FaultAction::ParkOrTakeOver(SuspendReason::Authentication, TakeOver::Authentication)
        }
        FaultKind::Quota => FaultAction::ParkOrTakeOver(SuspendReason::Quota, TakeOver::Quota),
        FaultKind::RateLimit if reset_known => FaultAction::Park(SuspendReason::RateLimit),
        FaultKind::RateLimit => FaultAction::RetryThenPark(SuspendReason::RateLimit),
        FaultKind::Overloaded => FaultAction::RetryThenPark(SuspendReason::Overloaded),
        FaultKind::Crashed | FaultKind::Protocol => FaultAction::RetryThenCount,
        FaultKind::ContextOverflow | FaultKind::Refused | FaultKind::TimedOut | FaultKind::Idle => {
            FaultAction::Count
        }
    }
}
