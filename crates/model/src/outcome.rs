//! How a run ends, and the exit code that says so.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{Attempt, TreeId};

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// The word used in JSON and on screen.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons! {
    /// What an acceptance rests on.
    AcceptedAs {
        /// Every gate passed, and at least one check that was red at the start turned green.
        GatesPassed = "gates-passed",
        /// Every gate passed, but there was no red check to turn green.
        Unchecked = "unchecked",
        /// Every gate passed, one of them only on a re-run, and the policy accepts that.
        Flaky = "flaky",
        /// A person decided.
        Decided = "decided",
    }
}

reasons! {
    /// Why a run was rejected.
    RejectReason {
        /// The attempts are used up.
        AttemptsExhausted = "attempts-exhausted",
        /// Protected files were changed again, or what was pinned was altered.
        Tampered = "tampered",
        /// Proven immobile by the breaker.
        Stalled = "stalled",
        /// Time, money or tokens are used up.
        BudgetExhausted = "budget-exhausted",
        /// A person decided.
        Decided = "decided",
    }
}

reasons! {
    /// Why a run is parked. `resume` continues it with the budgets it had left.
    SuspendReason {
        /// The agent's service limits the rate.
        RateLimit = "rate-limit",
        /// The agent's quota is spent.
        Quota = "quota",
        /// The agent's login is missing or expired.
        Authentication = "authentication",
        /// The agent's service is overloaded and stayed so over the retries.
        Overloaded = "overloaded",
        /// The gates could not do their job twice in a row.
        GateError = "gate-error",
        /// A money cap is set and the agent does not say what it spent.
        CostUnknown = "cost-unknown",
        /// A token cap is set and the agent does not say what it used.
        TokensUnknown = "tokens-unknown",
        /// The disk is full.
        DiskFull = "disk-full",
        /// A person must look: acceptance rests on a flaky gate.
        NeedsReview = "needs-review",
        /// Something the run needs failed: the workspace, the store, the file system.
        Infrastructure = "infrastructure",
    }
}

reasons! {
    /// Why a run could not be started or carried on.
    FailReason {
        /// There is no gate at all; an empty pipeline proves nothing.
        NoGates = "no-gates",
        /// A keep-green check is red on the untouched workspace.
        KeepGreenRed = "keep-green-red",
        /// A gate's tool is not installed.
        GateToolMissing = "gate-tool-missing",
        /// A set-up command failed.
        SetupFailed = "setup-failed",
        /// Something the run needs failed before the first attempt.
        Infrastructure = "infrastructure",
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The gates passed on a tree that moved.
    Accepted {
        /// What the acceptance rests on.
        reason: AcceptedAs,
        /// The accepted attempt.
        attempt: Attempt,
        /// Its tree, as judged.
        tree: Option<TreeId>,
    },
    /// A result: the work did not get there.
    Rejected {
        /// Why.
        reason: RejectReason,
    },
    /// Parked; `resume` continues it.
    Suspended {
        /// Why.
        reason: SuspendReason,
        /// When the cause is expected to pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// What exactly, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// It could not be started or carried on.
    Failed {
        /// Why.
        reason: FailReason,
        /// What exactly, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// A person or a signal stopped it; `resume` continues it.
    Interrupted,
    /// All gates were green before any work.
    NothingToDo,
}

impl Outcome {
    /// The outcome's word in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Rejected { .. } => "rejected",
            Self::Suspended { .. } => "suspended",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
            Self::NothingToDo => "nothing-to-do",
        }
    }

    /// The reason's word in JSON.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Accepted { reason, .. } => reason.as_str(),
            Self::Rejected { reason } => reason.as_str(),
            Self::Suspended { reason, .. } => reason.as_str(),
            Self::Failed { reason, .. } => reason.as_str(),
            Self::Interrupted => "interrupted",
            Self::NothingToDo => "all-green",
        }
    }

    /// The process exit code of `run`, `resume` and `rerun`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Accepted { .. } => 0,
            Self::Rejected { reason } => match reason {
                RejectReason::AttemptsExhausted | RejectReason::Tampered | RejectReason::Decided => 1,
                RejectReason::Stalled => 3,
                RejectReason::BudgetExhausted => 4,
            },
            Self::Failed { reason: FailReason::NoGates | FailReason::KeepGreenRed, .. } => 2,
            Self::Suspended { .. } | Self::Failed { .. } => 5,
            Self::NothingToDo => 6,
            Self::Interrupted => 130,
        }
    }

    /// Whether `resume` can carry the run on.
    pub const fn is_resumable(&self) -> bool {
        matches!(self, Self::Suspended { .. } | Self::Interrupted)
    }
}
