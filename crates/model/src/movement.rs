//! What the workspace shows, and what became of what was claimed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::path::WorkPath;
use crate::policy::{ClaimPolicy, MovementPolicy, Policy};

/// How a path moved between two fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It was not there before.
    Added,
    /// It is there with another signature, inode, mode or link target.
    Changed,
    /// It is gone.
    Deleted,
}

/// Whether a path's bytes, mode or link target moved, beyond its timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// They differ.
    Changed,
    /// Touched, but the same bytes, mode and link target.
    Same,
    /// It could not be read; counts as moved, since sameness is not shown.
    Unknown,
}

/// One path that moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The path.
    pub path: WorkPath,
    /// How it moved.
    pub change: Change,
    /// Signature before, `size:mtime_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Signature after, `size:mtime_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether more than its timestamps moved.
    pub content: Content,
    /// For an added path: the deleted path whose bytes (or inode) it carries. A label only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<WorkPath>,
}

/// What the world says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The diff shows it.
    Observed,
    /// Not in the diff, but it exists, its ctime lies inside the attempt, and it is no cache.
    Corroborated,
    /// The clock cannot be trusted.
    Unverifiable,
    /// A phantom, a cache, a path older than the attempt, a deletion of what was not there or still is.
    Disproved,
}

/// A claimed path and its standing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The path as the receipt names it, relative to the workspace where it lies inside.
    pub path: WorkPath,
    /// What the world says.
    pub standing: Standing,
    /// Why, in a few words, where the standing is not `observed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What was not looked at, and why. Absence of a path from an observation means nothing inside these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Caches pruned before descent: directory path to the reason (`skip-set`, `cachedir-tag`, `runs`).
    #[serde(default)]
    pub pruned: BTreeMap<WorkPath, String>,
    /// How many directories were pruned; larger than `pruned` when that list was cut.
    #[serde(default)]
    pub pruned_count: u64,
    /// Directories of the infrastructure zone, not part of the deliverable.
    #[serde(default)]
    pub infrastructure: Vec<WorkPath>,
    /// How many directories of the infrastructure zone there are; larger than `infrastructure` when that list
    /// was cut.
    #[serde(default)]
    pub infrastructure_count: u64,
    /// Places that could not be read: path to the error.
    #[serde(default)]
    pub unreadable: BTreeMap<WorkPath, String>,
    /// How many places could not be read; larger than `unreadable` when that list was cut.
    #[serde(default)]
    pub unreadable_count: u64,
    /// FIFOs, sockets and devices: seen by name and kind, their content is not observed.
    #[serde(default)]
    pub special: Vec<WorkPath>,
    /// How many of them there are; larger than `special` when that list was cut.
    #[serde(default)]
    pub special_count: u64,
    /// Plain-language notes, such as a file system whose timestamps cannot be trusted.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What infrastructure did while the deliverable stood still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Infrastructure {
    /// How many paths moved.
    pub moved: u64,
    /// The first of them, sorted; at most 20.
    pub sample: Vec<WorkPath>,
}

/// `movement.json`: what the workspace shows between two fingerprints, and what was claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Movement {
    /// Schema version of this file.
    pub schema: u32,
    /// Paths of the deliverable that moved, sorted.
    pub observed: Vec<Observed>,
    /// Claimed paths, sorted.
    pub claimed: Vec<Claim>,
    /// What counts as touched: the sorted union under the run's policy.
    pub touched: Vec<WorkPath>,
    /// What infrastructure did; present when the deliverable did not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<Infrastructure>,
    /// What was not looked at.
    pub bounds: Bounds,
}

impl Movement {
    /// Whether an observed path counts as movement under `policy`.
    pub fn counts(policy: MovementPolicy, observed: &Observed) -> bool {
        policy == MovementPolicy::Stat || observed.content != Content::Same
    }

    /// Fills [`Movement::touched`] by `policy`. `unverifiable` says whether an unverifiable claim still counts:
    /// it does in one attempt of a run.
    pub fn settle(&mut self, policy: &Policy, unverifiable: bool) {
        let mut touched: Vec<WorkPath> = self
            .observed
            .iter()
            .filter(|o| Self::counts(policy.movement, o))
            .map(|o| o.path.clone())
            .collect();
        touched.extend(
            self.claimed
                .iter()
                .filter(|c| match c.standing {
                    // What the diff shows has been counted, or not, above.
                    Standing::Observed => false,
                    Standing::Corroborated => true,
                    Standing::Unverifiable => match policy.claims {
                        ClaimPolicy::NotDisproved => unverifiable,
                        ClaimPolicy::Corroborated => false,
                        ClaimPolicy::All => true,
                    },
                    Standing::Disproved => policy.claims == ClaimPolicy::All,
                })
                .map(|c| c.path.clone()),
        );
        touched.sort();
        touched.dedup();
        self.touched = touched;
    }

    /// The counts that the machine decides from, complete enough for any policy.
    pub fn facts(&self) -> MovementFacts {
        let standing = |s: Standing| {
            let mut paths: Vec<&WorkPath> =
                self.claimed.iter().filter(|c| c.standing == s).map(|c| &c.path).collect();
            paths.sort();
            paths.dedup();
            paths.len() as u64
        };
        MovementFacts {
            content: self.observed.iter().filter(|o| o.content != Content::Same).count() as u64,
            stat: self.observed.len() as u64,
            corroborated: standing(Standing::Corroborated),
            unverifiable: standing(Standing::Unverifiable),
            disproved: standing(Standing::Disproved),
            infrastructure: self.infrastructure.as_ref().map(|i| i.moved),
        }
    }
}

/// How much moved, counted so that any policy can decide from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovementFacts {
    /// Observed paths whose content moved or is unknown.
    pub content: u64,
    /// Observed paths, touched-but-same included.
    pub stat: u64,
    /// Claims that the diff does not show but the world corroborates.
    pub corroborated: u64,
    /// Claims that cannot be verified.
    pub unverifiable: u64,
    /// Claims that the world disproves.
    pub disproved: u64,
    /// Infrastructure paths that moved; `None` when it was not observed, because the deliverable moved.
    pub infrastructure: Option<u64>,
}

impl MovementFacts {
    /// Whether anything counts as touched under `policy`; agrees with [`Movement::settle`].
    pub fn touched(&self, policy: &Policy, unverifiable: bool) -> bool {
        let observed = match policy.movement {
            MovementPolicy::Content => self.content,
            MovementPolicy::Stat => self.stat,
        };
        let claimed = match policy.claims {
            ClaimPolicy::NotDisproved => self.corroborated + if unverifiable { self.unverifiable } else { 0 },
            ClaimPolicy::Corroborated => self.corroborated,
            ClaimPolicy::All => self.corroborated + self.unverifiable + self.disproved,
        };
        observed + claimed > 0
    }
}
