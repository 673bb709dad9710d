//! What gates said of a tree then, and what they say now.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use triphammer_model::report::VerdictWord;
use triphammer_model::{GateName, GateVerdict, Report};

use crate::text::{count, one_line, word};

/// A gate's words, then and now.
struct Change<'a> {
    gate: &'a GateName,
    then: Option<VerdictWord>,
    now: Option<VerdictWord>,
    finding: Option<&'a str>,
}

fn changes<'a>(recorded: Option<&'a Report>, now: &'a Report) -> Vec<Change<'a>> {
    let words = |report: &'a Report| -> BTreeMap<&'a GateName, &'a GateVerdict> {
        report.verdicts.iter().map(|verdict| (&verdict.gate, verdict)).collect()
    };
    let (then, now) = (recorded.map(words).unwrap_or_default(), words(now));
    // Verdicts that the run adds itself are none of a gate's.
    let own = ["integrity", "forge", "confirm-clean"];
    let mut gates: Vec<&GateName> = then.keys().chain(now.keys()).copied().collect();
    gates.sort();
    gates.dedup();
    gates
        .into_iter()
        .filter(|gate| !own.contains(&gate.as_str()))
        .map(|gate| {
            let now = now.get(gate);
            Change {
                gate,
                then: then.get(gate).map(|verdict| verdict.word()),
                now: now.map(|verdict| verdict.word()),
                finding: now
                    .and_then(|verdict| verdict.failing().next())
                    .map(|finding| finding.message.as_str()),
            }
        })
        .collect()
}

/// One attempt in words.
pub fn regated_text(attempt: u32, recorded: Option<&Report>, now: &Report) -> String {
    let of = |ok: bool| if ok { "passes" } else { "does not pass" };
    let then = recorded.map_or("was not judged", |report| if report.ok { "passed" } else { "did not pass" });
    let changes = changes(recorded, now);
    let moved = changes.iter().filter(|change| change.then != change.now).count() as u64;
    let mut out = format!(
        "attempt {attempt}: recorded: {then}; now: it {} ({} changed)",
        of(now.ok),
        count(moved, "verdict")
    );
    for change in &changes {
        let words =
            |verdict: Option<VerdictWord>| verdict.map_or_else(|| "-".to_owned(), |verdict| word(&verdict));
        let mark = if change.then == change.now { " " } else { "*" };
        let finding =
            change.finding.map_or_else(String::new, |finding| format!(": {}", one_line(finding, 160)));
        let (then, now) = (words(change.then), words(change.now));
        // Writing to a String cannot fail.
        let _ = write!(out, "\n {mark} {}  {then} -> {now}{finding}", change.gate);
    }
    out
}

/// One attempt as JSON.
pub fn regated_json(attempt: u32, recorded: Option<&Report>, now: &Report) -> Value {
    let changed: Vec<Value> = changes(recorded, now)
        .iter()
        .filter(|change| change.then != change.now)
        .map(|change| json!({"gate": change.gate, "recorded": change.then, "now": change.now}))
        .collect();
    json!({"attempt": attempt, "recorded": recorded, "now": now, "changed": changed})
}
