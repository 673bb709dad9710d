//! Money as integers, so that live and replay add up to the same cent.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Micro-dollars: 1 USD is 1,000,000. Never negative.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct MicroUsd(u64);

impl MicroUsd {
    /// Nothing spent.
    pub const ZERO: Self = Self(0);

    /// An amount of micro-dollars.
    pub const fn new(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in micro-dollars.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Dollars as a decimal number, rounded to the nearest micro-dollar (half away from zero).
    ///
    /// # Errors
    /// Returns `None` for a negative, infinite or not-a-number amount, and above 10^12 dollars.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        if !(0.0..=1e12).contains(&dollars) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "range checked above")]
        Some(Self((dollars * 1e6).round() as u64))
    }

    /// The amount in dollars, for display and for JSON that speaks in dollars.
    #[expect(clippy::cast_precision_loss, reason = "display only; exact below 9 billion dollars")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for MicroUsd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MicroUsd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for MicroUsd {
    /// `$1.25`; four decimals below ten cents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 != 0 && self.0 < 100_000 {
            write!(f, "${:.4}", self.dollars())
        } else {
            write!(f, "${:.2}", self.dollars())
        }
    }
}
