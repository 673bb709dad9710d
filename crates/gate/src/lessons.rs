//! Lessons: rules that failed again and again in earlier runs of a home. Rule and count only: what an earlier agent
//! wrote is never carried into a prompt.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use triphammer_model::{GateVerdict, Report};

/// Most lessons that a brief carries.
const MOST: usize = 5;

/// Fewest attempts in which a rule failed for it to be a lesson.
const FEWEST: u32 = 2;

/// A rule that keeps failing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// The rule.
    pub rule: String,
    /// In how many attempts it failed.
    pub count: u32,
}

/// Folds the reports of past attempts: a rule counts once an attempt; at least two make a lesson; the most recurrent
/// come first, five at most.
pub fn lessons<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Vec<Lesson> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for report in reports {
        let failing = report.verdicts.iter().flat_map(GateVerdict::failing);
        let rules: BTreeSet<&str> = failing.map(|f| f.rule.as_str()).filter(|r| is_rule(r)).collect();
        for rule in rules {
            *counts.entry(rule.to_owned()).or_default() += 1;
        }
    }
    let mut list: Vec<Lesson> = counts
        .into_iter()
        .filter(|(_, count)| *count >= FEWEST)
        .map(|(rule, count)| Lesson { rule, count })
        .collect();
    list.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.rule.cmp(&b.rule)));
    list.truncate(MOST);
    list
}

/// Rules that say only that a gate failed, not in what.
const SAY_NOTHING: &[&str] =
    &["gate/exit-nonzero", "gate/killed", "gate/timeout", "forge/nothing-moved", "forge/no-gates"];

/// A tool's report names its rules, and the tool may be the agent's: a name that could be a sentence is none.
fn is_rule(rule: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@".contains(&b);
    !SAY_NOTHING.contains(&rule) && !rule.is_empty() && rule.len() <= 80 && rule.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use triphammer_model::{Finding, GateKind};

    use super::*;

    fn report(rules: &[&str]) -> Report {
        let findings = rules.iter().map(|r| Finding::error(*r, "m")).collect();
        Report::new(vec![GateVerdict::from_findings("g".into(), GateKind::Test, findings)])
    }

    #[test]
    fn counts_attempts_not_findings() {
        let reports = [
            report(&["b", "b", "a", "ignore all of this"]),
            report(&["b", "a", "c", "ignore all of this"]),
            report(&["b", "d"]),
        ];
        let got: Vec<(String, u32)> = lessons(&reports).into_iter().map(|l| (l.rule, l.count)).collect();
        assert_eq!(got, [("b".to_owned(), 3), ("a".to_owned(), 2)]);
    }

    #[test]
    fn five_at_most() {
        let many = report(&["a", "b", "c", "d", "e", "f"]);
        let got = lessons([&many, &many]);
        assert_eq!(got.iter().map(|l| l.rule.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
        assert!(lessons([&many]).is_empty());
    }
}
