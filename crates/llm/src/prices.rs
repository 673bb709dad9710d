//! What tokens cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use triphammer_model::{MicroUsd, Price, Tokens};

/// A table of prices cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table of prices: {0}")]
pub struct BadPrices(String);

/// Prices by the name of the model. A pattern is a name in which `*` stands for any characters; of several that match,
/// the user's come first, then the one with the most characters of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    #[serde(default)]
    user: BTreeMap<String, Price>,
    #[serde(default)]
    table: BTreeMap<String, Price>,
    /// The day of the table.
    #[serde(default)]
    as_of: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    as_of: String,
    prices: BTreeMap<String, Price>,
}

impl Prices {
    /// Knows nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// The table that comes with the program.
    ///
    /// # Panics
    /// Never: a test reads the same table.
    pub fn built_in() -> Self {
        Self::from_toml(include_str!("prices.toml")).expect("the table of prices is tested")
    }

    /// Reads a table like the built-in one: `as_of` and `[prices]`.
    pub fn from_toml(text: &str) -> Result<Self, BadPrices> {
        let table: Table = toml::from_str(text).map_err(|error| BadPrices(error.to_string()))?;
        Ok(Self { user: BTreeMap::new(), table: table.prices, as_of: table.as_of })
    }

    /// With the user's own, which come first.
    #[must_use]
    pub fn with(mut self, user: impl IntoIterator<Item = (String, Price)>) -> Self {
        self.user.extend(user);
        self
    }

    /// The day on which the table was right, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// The user's own price of a model.
    pub fn own(&self, model: &str) -> Option<Price> {
        of(&self.user, model)
    }

    /// The price of a model in the table that comes with the program.
    pub fn listed(&self, model: &str) -> Option<Price> {
        of(&self.table, model)
    }

    /// A model's price; `None` where it is not known.
    pub fn price(&self, model: &str) -> Option<Price> {
        self.own(model).or_else(|| self.listed(model))
    }

    /// What a call cost; `None` where it is not known, never zero.
    pub fn cost(&self, model: &str, tokens: Tokens) -> Option<MicroUsd> {
        Some(self.price(model)?.of(tokens))
    }
}

fn of(prices: &BTreeMap<String, Price>, model: &str) -> Option<Price> {
    let matching = prices.iter().filter(|(pattern, _)| matches(pattern, model));
    let own = |(pattern, _): &(&String, &Price)| pattern.bytes().filter(|b| *b != b'*').count();
    matching.max_by_key(own).map(|(_, price)| *price)
}

/// Whether a name fits a pattern: each piece between stars is found as early as possible, the last one at the end.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = name.find(piece) else { return false };
        name = &name[at + piece.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, cached: u64, output: u64) -> Tokens {
        Tokens { input, cached, output }
    }

    #[test]
    fn the_built_in_table_is_readable_and_dated() {
        let prices = Prices::built_in();
        assert!(prices.as_of().parse::<jiff::civil::Date>().is_ok(), "{}", prices.as_of());
        assert!(prices.table.len() >= 15);
        for (pattern, price) in &prices.table {
            assert!(price.cached <= price.input && price.input < price.output, "{pattern}");
            assert!(price.cached > MicroUsd::ZERO, "{pattern}");
        }
    }

    #[test]
    fn a_model_has_its_own_price() {
        let prices = Prices::built_in();
        for (model, million) in [
            ("claude-sonnet-4-5-20250929", Some(15_000_000)),
            ("claude-opus-4-20250514", Some(75_000_000)),
            ("claude-opus-4-5", Some(25_000_000)),
            ("gpt-4o", Some(10_000_000)),
            ("gpt-4o-mini", Some(600_000)),
            ("gpt-5-mini-2025-08-07", Some(2_000_000)),
            ("gpt-5-2025-08-07", Some(10_000_000)),
            ("gpt-5-pro", None),
            ("vendor/gpt-4o", None),
            ("fake-1", None),
            ("", None),
        ] {
            let cost = prices.cost(model, tokens(0, 0, 1_000_000));
            assert_eq!(cost.map(MicroUsd::micros), million, "{model}");
        }
    }

    #[test]
    fn the_users_prices_come_first() {
        let own: BTreeMap<String, Price> =
            toml::from_str("\"gpt-*\" = { input = 1, output = 2 }\n\"local*\" = { input = 0, output = 0 }\n")
                .unwrap();
        let prices = Prices::built_in().with(own);
        assert_eq!(prices.cost("gpt-4o", tokens(0, 1_000_000, 1_000_000)), Some(MicroUsd::new(3_000_000)));
        assert_eq!(prices.cost("local-7b", tokens(5, 5, 5)), Some(MicroUsd::ZERO));
        let text = serde_json::to_string(&prices).unwrap();
        assert_eq!(serde_json::from_str::<Prices>(&text).unwrap(), prices);
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*b", "abc", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
