//! What a run was allowed to do and how the breaker reads its proof. Pinned at the start of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;
use crate::span::Span;

/// What counts as movement of an observed path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovementPolicy {
    /// Bytes, mode or link target differ.
    #[default]
    Content,
    /// Any difference of the signature, a `touch` included.
    Stat,
}

/// Which identity of a report the breaker compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityPolicy {
    /// Byte-identical findings.
    #[default]
    Bytes,
    /// Findings with numbers, addresses, times and temporary paths masked.
    Normalised,
}

/// Which claims count as touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimPolicy {
    /// Corroborated ones, and unverifiable ones in one attempt of a run.
    #[default]
    NotDisproved,
    /// Corroborated ones only.
    Corroborated,
    /// Every claim, phantoms included.
    All,
}

/// Whether work in infrastructure holds the breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InfrastructurePolicy {
    /// It holds the breaker for one extra attempt and is named.
    #[default]
    HoldOnce,
    /// It is recorded and decides nothing.
    Ignore,
}

/// `[breaker]`: when a run is proven immobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Policy {
    /// How many identical reports in a row are a proof; all but the first attempt of them touched nothing.
    #[serde(default = "Policy::default_proofs")]
    #[schemars(range(min = 2, max = 50))]
    pub proofs: u32,
    /// What counts as movement.
    #[serde(default)]
    pub movement: MovementPolicy,
    /// Which identity is compared.
    #[serde(default)]
    pub identity: IdentityPolicy,
    /// Which claims count.
    #[serde(default)]
    pub claims: ClaimPolicy,
    /// Whether infrastructure holds.
    #[serde(default)]
    pub infrastructure: InfrastructurePolicy,
}

/// Fewer than two equal reports prove nothing; more than a run may have attempts can never be reached.
pub(crate) const PROOFS: std::ops::RangeInclusive<u32> = 2..=50;

impl Policy {
    const fn default_proofs() -> u32 {
        3
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            proofs: Self::default_proofs(),
            movement: MovementPolicy::default(),
            identity: IdentityPolicy::default(),
            claims: ClaimPolicy::default(),
            infrastructure: InfrastructurePolicy::default(),
        }
    }
}

/// What to do with an attempt whose cost is unknown while a money or token cap is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownCost {
    /// Suspend the run: unknown is not zero.
    #[default]
    Suspend,
    /// Go on; the known part alone is held against the cap.
    Ignore,
}

/// What to do when acceptance rests on a gate whose re-runs differed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlakyPolicy {
    /// Suspend the run as `needs-review`; a person decides.
    #[default]
    Review,
    /// Accept, and say so.
    Accept,
}

/// In which order gates run, and when the pipeline stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PipelinePolicy {
    /// All gates of a rank; the next rank only if all of them passed.
    #[default]
    Staged,
    /// Stop at the first gate that does not pass.
    FailFast,
    /// All gates, whatever they say.
    CollectAll,
}

/// What a run may spend. Durable: a resumed run has what it had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many attempts are charged at most.
    pub attempts: u32,
    /// Wall clock, checked at attempt boundaries; time while suspended does not count.
    pub budget: Span,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<MicroUsd>,
    /// Input, cached and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What an unknown cost does under a cap.
    #[serde(default)]
    pub unknown_cost: UnknownCost,
    /// What a flaky pass does.
    #[serde(default)]
    pub flaky: FlakyPolicy,
    /// How often a transient failure of the agent is tried again within an attempt, not charged.
    pub retries: u32,
    /// Pause before the first retry; doubled each time.
    pub backoff: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts: 5,
            budget: Span::minutes(240),
            max_cost: None,
            max_tokens: None,
            unknown_cost: UnknownCost::default(),
            flaky: FlakyPolicy::default(),
            retries: 2,
            backoff: Span::secs(1),
        }
    }
}
