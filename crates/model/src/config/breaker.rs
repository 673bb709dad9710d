//! `[breaker]`, and single policies set by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{IntoDeserializer, value::StrDeserializer};

use crate::policy::{ClaimPolicy, IdentityPolicy, InfrastructurePolicy, MovementPolicy, PROOFS, Policy};
use crate::suggest::{closest, hint, quote};

/// `[breaker]`: when a run is proven immobile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "a section `[breaker]`")]
#[schemars(deny_unknown_fields)]
pub struct BreakerConfig {
    /// How many identical reports in a row are a proof, 2 to 50; 3 by default.
    #[serde(default, deserialize_with = "super::value::proofs")]
    #[schemars(range(min = 2, max = 50))]
    pub proofs: Option<u32>,
    /// What counts as movement.
    #[serde(default)]
    pub movement: Option<MovementPolicy>,
    /// Which identity of a report is compared.
    #[serde(default)]
    pub identity: Option<IdentityPolicy>,
    /// Which claims count.
    #[serde(default)]
    pub claims: Option<ClaimPolicy>,
    /// Whether work in infrastructure holds the breaker.
    #[serde(default)]
    pub infrastructure: Option<InfrastructurePolicy>,
}

impl BreakerConfig {
    /// The policy, defaults filled in.
    pub fn policy(self) -> Policy {
        let default = Policy::default();
        Policy {
            proofs: self.proofs.unwrap_or(default.proofs),
            movement: self.movement.unwrap_or(default.movement),
            identity: self.identity.unwrap_or(default.identity),
            claims: self.claims.unwrap_or(default.claims),
            infrastructure: self.infrastructure.unwrap_or(default.infrastructure),
        }
    }

    pub(super) fn over(self, lower: Self) -> Self {
        Self {
            proofs: self.proofs.or(lower.proofs),
            movement: self.movement.or(lower.movement),
            identity: self.identity.or(lower.identity),
            claims: self.claims.or(lower.claims),
            infrastructure: self.infrastructure.or(lower.infrastructure),
        }
    }
}

/// A policy could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    /// No policy has this name.
    #[error(
        "unknown policy {}{}; known are {} of `breaker`",
        quote(.key), hint(.meant.as_deref()), KEYS.join(", ")
    )]
    UnknownKey {
        /// The name as given.
        key: String,
        /// The name that was probably meant.
        meant: Option<String>,
    },
    /// The policy does not take this value.
    #[error("policy `{key}`: {} does not fit; {cure}", quote(.value))]
    BadValue {
        /// The policy.
        key: String,
        /// The value as given.
        value: String,
        /// What it takes.
        cure: String,
    },
}

const KEYS: [&str; 5] = ["proofs", "movement", "identity", "claims", "infrastructure"];

/// Sets one policy by its name, with or without `breaker.` before it, such as `breaker.proofs` to `2`.
///
/// # Errors
/// [`BadPolicy`] when there is no such policy or it does not take the value; the policy is then as it was.
pub fn set_policy(policy: &mut Policy, key: &str, value: &str) -> Result<(), BadPolicy> {
    let name = key.strip_prefix("breaker.").unwrap_or(key);
    let refuse = |cure: String| BadPolicy::BadValue { key: key.to_owned(), value: value.to_owned(), cure };
    match name {
        "proofs" => {
            let proofs = value.parse().ok().filter(|n| PROOFS.contains(n));
            policy.proofs = proofs.ok_or_else(|| refuse("write a whole number from 2 to 50".to_owned()))?;
        }
        "movement" => policy.movement = word(value, &["content", "stat"]).map_err(refuse)?,
        "identity" => policy.identity = word(value, &["bytes", "normalised"]).map_err(refuse)?,
        "claims" => policy.claims = word(value, &["not-disproved", "corroborated", "all"]).map_err(refuse)?,
        "infrastructure" => policy.infrastructure = word(value, &["hold-once", "ignore"]).map_err(refuse)?,
        _ => {
            let meant = closest(name, KEYS).map(|key| format!("breaker.{key}"));
            return Err(BadPolicy::UnknownKey { key: key.to_owned(), meant });
        }
    }
    Ok(())
}

/// Reads one of an enum's words; `known` is what an error lists.
pub(super) fn word<'de, T: Deserialize<'de>>(value: &'de str, known: &[&str]) -> Result<T, String> {
    let deserializer: StrDeserializer<'de, serde::de::value::Error> = value.into_deserializer();
    T::deserialize(deserializer).map_err(|_| format!("write {}", super::value::choice(known)))
}
