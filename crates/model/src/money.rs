//! Money as integers, so that live and replay add up to the same cent.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

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

impl MicroUsd {
    /// The exact amount in dollars with at least two decimals, such as `5.00`: what [`FromStr`] reads.
    pub fn to_decimal(self) -> String {
        let micros = format!("{:06}", self.0 % 1_000_000);
        let short = micros.trim_end_matches('0').len().max(2);
        format!("{}.{}", self.0 / 1_000_000, &micros[..short])
    }
}

/// A text is no amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMoney {
    /// Not digits with at most one point.
    #[error("`{0}` is no amount of dollars: write digits and a point, such as 5.00")]
    Shape(String),
    /// Too fine.
    #[error("`{0}` is finer than a micro-dollar: write at most 6 decimals")]
    TooFine(String),
    /// Too large.
    #[error("`{0}` is more money than can be counted")]
    TooLarge(String),
}

impl BadMoney {
    /// What is wrong, without the cure.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Shape(text) => format!("{} is no amount of dollars", crate::suggest::quote(text)),
            Self::TooFine(text) => format!("{} is finer than a micro-dollar", crate::suggest::quote(text)),
            Self::TooLarge(text) => format!("{} is more than can be counted", crate::suggest::quote(text)),
        }
    }
}

impl FromStr for MicroUsd {
    type Err = BadMoney;

    /// Reads dollars such as `5`, `5.00` or `0.000125`, exactly.
    fn from_str(text: &str) -> Result<Self, BadMoney> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) {
            return Err(BadMoney::Shape(text.to_owned()));
        }
        let part = part.trim_end_matches('0');
        if part.len() > 6 {
            return Err(BadMoney::TooFine(text.to_owned()));
        }
        let micros = format!("{whole}{part:0<6}").parse().map_err(|_| BadMoney::TooLarge(text.to_owned()))?;
        Ok(Self(micros))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_decimals_exactly() {
        for (text, micros, printed) in [
            ("5", 5_000_000, "5.00"),
            ("5.00", 5_000_000, "5.00"),
            ("0.000125", 125, "0.000125"),
            ("0.10", 100_000, "0.10"),
            ("007.5", 7_500_000, "7.50"),
            ("1.00000000", 1_000_000, "1.00"),
        ] {
            let money: MicroUsd = text.parse().unwrap();
            assert_eq!((money.micros(), money.to_decimal().as_str()), (micros, printed), "{text}");
        }
        for bad in ["", ".", "5.", ".5", "-1", "+1", "1e3", "$5", "1,5", "0.0000001", "99999999999999", "1_0"]
        {
            assert!(bad.parse::<MicroUsd>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn decimals_round_trip(micros: u64) {
            prop_assert_eq!(MicroUsd::new(micros).to_decimal().parse(), Ok(MicroUsd::new(micros)));
        }
    }
}
