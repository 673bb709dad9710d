//! What tokens cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;
use crate::receipt::Tokens;

/// Tokens that a price is for.
const PER: u128 = 1_000_000;

/// What a million tokens of each kind cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct Price {
    /// Read by the model.
    pub input: MicroUsd,
    /// Read from a cache.
    pub cached: MicroUsd,
    /// Written by it.
    pub output: MicroUsd,
}

/// A price as files have it: dollars per million tokens.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Price", deny_unknown_fields)]
struct Written {
    /// What it reads.
    #[schemars(range(min = 0.0))]
    input: f64,
    /// What it reads from a cache; as much as the input where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    cached: Option<f64>,
    /// What it writes.
    #[schemars(range(min = 0.0))]
    output: f64,
}

/// A price is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("`{0}` is no price; write dollars per million tokens, such as 2.50")]
pub struct BadPrice(f64);

impl TryFrom<Written> for Price {
    type Error = BadPrice;

    fn try_from(written: Written) -> Result<Self, BadPrice> {
        let amount = |dollars: f64| MicroUsd::from_dollars(dollars).ok_or(BadPrice(dollars));
        Ok(Self {
            input: amount(written.input)?,
            cached: amount(written.cached.unwrap_or(written.input))?,
            output: amount(written.output)?,
        })
    }
}

impl From<Price> for Written {
    fn from(price: Price) -> Self {
        Self {
            input: price.input.dollars(),
            cached: Some(price.cached.dollars()),
            output: price.output.dollars(),
        }
    }
}

impl Price {
    /// What these tokens cost, rounded up to a whole micro-dollar: a bound on money is never passed unseen.
    pub fn of(self, tokens: Tokens) -> MicroUsd {
        let part = |count: u64, price: MicroUsd| u128::from(count) * u128::from(price.micros());
        let sum = part(tokens.input, self.input)
            + part(tokens.cached, self.cached)
            + part(tokens.output, self.output);
        MicroUsd::new(u64::try_from(sum.div_ceil(PER)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn tokens(input: u64, cached: u64, output: u64) -> Tokens {
        Tokens { input, cached, output }
    }

    #[test]
    fn amounts_are_whole_and_never_too_low() {
        let price = Price {
            input: MicroUsd::new(2_500_000),
            cached: MicroUsd::new(1_250_000),
            output: MicroUsd::new(10_000_000),
        };
        assert_eq!(price.of(tokens(1, 0, 0)).micros(), 3);
        assert_eq!(price.of(tokens(2, 0, 0)).micros(), 5);
        assert_eq!(price.of(tokens(0, 0, 0)).micros(), 0);
        assert_eq!(price.of(tokens(u64::MAX, u64::MAX, u64::MAX)).micros(), u64::MAX);
        for bad in [
            "a = { input = -1, output = 2 }",
            "a = { input = nan, output = 2 }",
            "a = { input = 1 }",
            "a = 1",
        ] {
            assert!(toml::from_str::<BTreeMap<String, Price>>(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parts_cost_no_less_than_the_whole(a in 0u64..1 << 40, b in 0u64..1 << 40, price in 0u64..1 << 20) {
            let price = Price { input: MicroUsd::new(price), cached: MicroUsd::ZERO, output: MicroUsd::ZERO };
            let apart = price.of(tokens(a, 0, 0)) + price.of(tokens(b, 0, 0));
            let whole = price.of(tokens(a + b, 0, 0));
            prop_assert!(whole <= apart && apart.micros() <= whole.micros() + 1);
        }
    }
}
