//! What the agent's side claims. A claim decides nothing by itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::Attempt;
use crate::money::MicroUsd;
use crate::movement::Change;

/// How a file was claimed to have moved.
pub type ClaimKind = Change;

/// A file that the agent says it touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedFile {
    /// The path as the agent wrote it, absolute or relative.
    pub path: String,
    /// How.
    pub kind: ClaimKind,
    /// The tool that did it, where the stream says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A command that the agent says it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedCommand {
    /// The command line.
    pub command: String,
    /// Its exit status, where the stream says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
}

/// Tokens with one meaning for all agents: `cached` is apart from `input`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Input tokens that were not read from a cache.
    #[serde(default)]
    pub input: u64,
    /// Input tokens read from a cache.
    #[serde(default)]
    pub cached: u64,
    /// Output tokens, reasoning included.
    #[serde(default)]
    pub output: u64,
}

impl Tokens {
    /// All of them.
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.cached).saturating_add(self.output)
    }
}

/// What went wrong on the agent's side: a closed set, read from structured fields only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Login missing or expired.
    Authentication,
    /// Too many requests; passes by itself.
    RateLimit,
    /// The quota is spent.
    Quota,
    /// The service is overloaded.
    Overloaded,
    /// The context window is full.
    ContextOverflow,
    /// The model refused.
    Refused,
    /// The agent crashed or could not be started.
    Crashed,
    /// The agent ran past its deadline.
    TimedOut,
    /// The agent was silent for too long.
    Idle,
    /// Its stream broke its own protocol.
    Protocol,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Authentication,
        Self::Quota,
        Self::RateLimit,
        Self::Overloaded,
        Self::Crashed,
        Self::Protocol,
        Self::ContextOverflow,
        Self::Refused,
        Self::TimedOut,
        Self::Idle,
    ];

    /// Its word, as files have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::RateLimit => "rate-limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow => "context-overflow",
            Self::Refused => "refused",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed-out",
            Self::Idle => "idle",
            Self::Protocol => "protocol",
        }
    }
}

/// A fault with what is known about its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// When a limit resets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<Timestamp>,
    /// What the agent's side said about it; shown, never decided from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a cost was come by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum CostBy {
    /// The agent's side reported it: a sum of its own making.
    Reported,
    /// From the tokens, by the prices that the user named.
    OwnPrices,
    /// From the tokens, by the table of prices that comes with the program.
    Prices {
        /// The day on which the table was right, `YYYY-MM-DD`.
        as_of: String,
    },
}

/// What an agent began an attempt with beside its brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "with", rename_all = "kebab-case")]
pub enum Continuation {
    /// Nothing.
    Fresh,
    /// A session of its own of an earlier attempt.
    Session {
        /// Which.
        id: String,
    },
    /// A digest of what it did in an earlier attempt.
    Digest {
        /// Which.
        attempt: Attempt,
    },
}

/// `receipt.json`: what the agent's side claims about one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Schema version of this file.
    pub schema: u32,
    /// The agent's name.
    pub agent: String,
    /// Files it says it touched.
    #[serde(default)]
    pub files: Vec<ClaimedFile>,
    /// Commands it says it ran.
    #[serde(default)]
    pub commands: Vec<ClaimedCommand>,
    /// Commands that it asked for and was refused, by the guard or by a rule of its own: they were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Tokens used; `None` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Money spent in micro-dollars; `None` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// How the cost was come by; older receipts do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_by: Option<CostBy>,
    /// What went wrong on its side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What it began with; older receipts do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// A session to continue, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Why it says it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The model it says it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its last words, bounded: shown to a person (it may have asked a question), never decided from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    /// What could not be read of its stream or receipt file: kept, counted, never fatal.
    #[serde(default)]
    pub troubles: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faults_word_is_the_one_in_files() {
        for kind in FaultKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
        let mut words = FaultKind::ALL.map(FaultKind::word);
        words.sort_unstable();
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "each once: {words:?}");
    }
}
