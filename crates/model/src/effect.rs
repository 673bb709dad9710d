//! What the machine wants done. The runner carries effects out; replay compares them.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentName, Attempt};
use crate::outcome::Outcome;

/// Why the next agent of the chain takes over from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TakeOver {
    /// It is proven that nothing moves any more.
    Stalled,
    /// Its login is missing or expired.
    Authentication,
    /// Its quota is spent.
    Quota,
}

impl TakeOver {
    /// What became of the one before, as half a sentence for people and agents.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Stalled => "it stalled: its attempts moved nothing any more",
            Self::Authentication => "its login is missing or expired",
            Self::Quota => "its quota is spent",
        }
    }
}

/// Something to do next. At most one attempt is live at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Effect {
    /// Run the gates on the untouched workspace; answer with `preflighted`.
    Preflight,
    /// Begin an attempt: take and write down the fingerprint; answer with `looked`.
    Look {
        /// The attempt.
        attempt: Attempt,
        /// Who will work.
        agent: AgentName,
        /// The agent takes over: first put the workspace to this attempt's tree (0 is the start).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<u32>,
        /// Why it takes over; older journals do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<TakeOver>,
    },
    /// Give the agent its brief and wait for its end; answer with `agent-ended`.
    Implement {
        /// The attempt.
        attempt: Attempt,
        /// Who works.
        agent: AgentName,
        /// Which try within the attempt, from 1.
        try_no: u32,
    },
    /// Pause before a retry; answer with `waited`.
    Wait {
        /// The attempt.
        attempt: Attempt,
        /// How long, in milliseconds.
        ms: u64,
    },
    /// Fingerprint, claims, trees, protected bytes; answer with `observed`.
    Observe {
        /// The attempt.
        attempt: Attempt,
        /// Whether an unverifiable claim still counts.
        unverifiable: bool,
    },
    /// Run the gates on the attempt's tree; answer with `judged`.
    Judge {
        /// The attempt.
        attempt: Attempt,
    },
    /// The breaker's proof holds but is held once, because infrastructure moved. Told to people.
    Hold {
        /// The attempt at which it was held.
        attempt: Attempt,
        /// How many infrastructure paths moved.
        infrastructure: u64,
    },
    /// The run is over, for now or for good.
    End {
        /// How.
        outcome: Outcome,
    },
}

impl Effect {
    /// The effect's word in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::Look { .. } => "look",
            Self::Implement { .. } => "implement",
            Self::Wait { .. } => "wait",
            Self::Observe { .. } => "observe",
            Self::Judge { .. } => "judge",
            Self::Hold { .. } => "hold",
            Self::End { .. } => "end",
        }
    }
}
