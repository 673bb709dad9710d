//! The stored types: what is written is read back as it was, and what an older version wrote is still read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dice;
mod golden;
mod values;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use dice::Dice;

/// Writes a value as a file would hold it, and reads it back.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    value: &T,
) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let read: T = serde_json::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
    prop_assert_eq!(&read, value, "{}", text);
    // A journal line is one line, whatever an agent's text holds.
    prop_assert!(!text.contains('\n'));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn events(mut dice in Dice::any(), variant in 0..values::EVENTS) {
        round_trip(&values::event(&mut dice, variant))?;
    }

    #[test]
    fn effects(mut dice in Dice::any(), variant in 0..values::EFFECTS) {
        round_trip(&values::effect(&mut dice, variant))?;
    }

    #[test]
    fn journal_lines(mut dice in Dice::any(), variant in 0..values::EVENTS) {
        round_trip(&values::journal_line(&mut dice, variant))?;
    }

    #[test]
    fn reports(mut dice in Dice::any()) {
        round_trip(&values::report(&mut dice))?;
    }

    #[test]
    fn movements(mut dice in Dice::any()) {
        round_trip(&values::movement(&mut dice))?;
    }

    #[test]
    fn receipts(mut dice in Dice::any()) {
        round_trip(&values::receipt(&mut dice))?;
    }

    #[test]
    fn guard_reports(mut dice in Dice::any()) {
        round_trip(&values::guard_report(&mut dice))?;
    }

    #[test]
    fn run_summaries(mut dice in Dice::any()) {
        round_trip(&values::run_summary(&mut dice))?;
    }
}

#[test]
fn every_variant_is_thrown() {
    let words = |all: Vec<String>| {
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len(), "{all:?}");
    };
    let mut dice = Dice::fixed();
    words((0..values::EVENTS).map(|v| values::event(&mut dice, v).word().to_owned()).collect());
    words((0..values::EFFECTS).map(|v| values::effect(&mut dice, v).word().to_owned()).collect());
}
