//! The breaker: proof in triplicate that a run is immobile.

use triphammer_model::policy::{IdentityPolicy, InfrastructurePolicy};
use triphammer_model::report::ReportFacts;
use triphammer_model::{Digest, Policy};

/// One charged attempt as the breaker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether anything counted as touched.
    pub touched: bool,
    /// Infrastructure paths that moved while the deliverable stood still.
    pub infrastructure: u64,
    /// The report's identities; `None` where the gates did not judge (an interrupted attempt).
    pub identities: Option<(Digest, Digest)>,
    /// Whether the report was ok.
    pub ok: bool,
}

impl Entry {
    /// An attempt that the gates judged.
    pub fn judged(touched: bool, infrastructure: u64, report: &ReportFacts) -> Self {
        Self {
            touched,
            infrastructure,
            identities: Some((report.identity.clone(), report.identity_normalised.clone())),
            ok: report.ok,
        }
    }

    fn identity(&self, policy: IdentityPolicy) -> Option<&Digest> {
        self.identities.as_ref().map(|(bytes, normalised)| match policy {
            IdentityPolicy::Bytes => bytes,
            IdentityPolicy::Normalised => normalised,
        })
    }
}

/// What the breaker has to say after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The run is not proven immobile.
    Moving,
    /// It would be, but infrastructure moved; held once.
    Held {
        /// How many infrastructure paths moved in the attempts of the proof.
        infrastructure: u64,
    },
    /// It is: the last reports are identical and the attempts between them touched nothing.
    Immobile,
}

/// Keeps the attempts since the current agent took over.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    entries: Vec<Entry>,
    held: bool,
}

impl Breaker {
    /// Takes an attempt in and says what is proven now.
    ///
    /// With `proofs = p` the run is immobile when the last `p` reports are identical and not ok, and the last
    /// `p - 1` attempts touched nothing: the first of the identical reports may follow real work, the others were
    /// repeats.
    pub fn strike(&mut self, entry: Entry, policy: &Policy) -> Proof {
        self.entries.push(entry);
        // Fewer than two reports cannot repeat each other, whatever a policy says.
        let wanted = policy.proofs.max(2) as usize;
        let Some(window) = self.entries.len().checked_sub(wanted).map(|from| &self.entries[from..]) else {
            return Proof::Moving;
        };
        let first = window[0].identity(policy.identity);
        let repeats = &window[1..];
        let immobile = first.is_some()
            && !window.iter().any(|e| e.ok)
            && repeats.iter().all(|e| !e.touched && e.identity(policy.identity) == first);
        if !immobile {
            return Proof::Moving;
        }
        let infrastructure = repeats.iter().map(|e| e.infrastructure).sum();
        if infrastructure > 0 && !self.held && policy.infrastructure == InfrastructurePolicy::HoldOnce {
            self.held = true;
            return Proof::Held { infrastructure };
        }
        Proof::Immobile
    }

    /// Takes an attempt in that was not judged; it can never be part of a proof.
    pub fn pass_over(&mut self, touched: bool) {
        self.entries.push(Entry { touched, infrastructure: 0, identities: None, ok: false });
    }

    /// Takes the last attempt back: it is going to be judged again.
    pub fn take_back(&mut self) {
        self.entries.pop();
    }

    /// Starts anew: another agent took over, or work happened that no attempt is charged for.
    pub fn restart(&mut self) {
        *self = Self::default();
    }
}
