//! What a run has spent, and whether that is too much.

use triphammer_model::event::AgentFacts;
use triphammer_model::policy::UnknownCost;
use triphammer_model::process::WaitStatus;
use triphammer_model::{Limits, MicroUsd, SuspendReason};

/// What was spent so far. Durable: it is folded from the journal, so a resumed run has what it had left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    earlier_ms: u64,
    current_ms: u64,
    tokens: u64,
    cost: MicroUsd,
    /// Agent calls since the last consent whose cost is unknown.
    cost_unknown: u32,
    /// Agent calls since the last consent whose tokens are unknown.
    tokens_unknown: u32,
}

impl Spending {
    /// Time passed: `elapsed_ms` since the current process took the run up.
    pub fn tick(&mut self, elapsed_ms: u64) {
        self.current_ms = self.current_ms.max(elapsed_ms);
    }

    /// Another process takes the run up; time between does not count. Going on is consent to what could not be
    /// known so far.
    pub fn resume(&mut self) {
        self.earlier_ms += self.current_ms;
        self.current_ms = 0;
        self.cost_unknown = 0;
        self.tokens_unknown = 0;
    }

    /// An agent call ended.
    pub fn add(&mut self, facts: &AgentFacts) {
        // A process that never ran has spent nothing.
        let never_ran = matches!(facts.wait, WaitStatus::NotStarted { .. });
        match facts.tokens {
            Some(tokens) => self.tokens = self.tokens.saturating_add(tokens.total()),
            None if never_ran => {}
            None => self.tokens_unknown += 1,
        }
        match facts.cost {
            Some(cost) => self.cost += cost,
            None if never_ran => {}
            None => self.cost_unknown += 1,
        }
    }

    /// An agent call whose end nobody saw.
    pub fn add_unseen(&mut self) {
        self.tokens_unknown += 1;
        self.cost_unknown += 1;
    }

    /// Time at work, in milliseconds.
    pub const fn active_ms(&self) -> u64 {
        self.earlier_ms + self.current_ms
    }

    /// Tokens reported.
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Money reported.
    pub const fn cost(&self) -> MicroUsd {
        self.cost
    }

    /// Whether time, money or tokens are used up.
    pub fn is_exhausted(&self, limits: &Limits) -> bool {
        self.active_ms() >= limits.budget.as_millis()
            || limits.max_cost.is_some_and(|cap| self.cost >= cap)
            || limits.max_tokens.is_some_and(|cap| self.tokens >= cap)
    }

    /// Whether a cap cannot be held because something spent is unknown.
    pub fn unknown_under_cap(&self, limits: &Limits) -> Option<SuspendReason> {
        if limits.unknown_cost == UnknownCost::Ignore {
            return None;
        }
        if limits.max_cost.is_some() && self.cost_unknown > 0 {
            return Some(SuspendReason::CostUnknown);
        }
        if limits.max_tokens.is_some() && self.tokens_unknown > 0 {
            return Some(SuspendReason::TokensUnknown);
        }
        None
    }
}
