//! `proof.json` of an accepted run: an in-toto statement about the accepted tree.
//!
//! Statement v1: <https://in-toto.io/Statement/v1>; the subject's digest is a git tree, as in-toto names it. It is derived from
//! the journal and from artifacts that are sealed, so that `verify` can derive it again. Nobody signs it here.

use serde_json::{Value, json};
use triphammer_model::{Event, JournalLine, Receipt, Report, RunSummary};
use triphammer_store::RunDir;

use crate::settings::Settings;

/// Its file in a run directory.
pub(crate) const PROOF: &str = "proof.json";

/// What the predicate's shape is called.
const PREDICATE: &str = "urn:triphammer:accepted-run:v1";

/// The statement; `None` where nothing was accepted.
pub(crate) fn statement(dir: &RunDir, lines: &[JournalLine]) -> Option<Value> {
    let summary = RunSummary::fold(lines)?;
    let tree = summary.tree.as_ref().filter(|_| summary.outcome == "accepted")?;
    let Event::Started(started) = &lines.first()?.event else { return None };
    let attempts: Vec<Value> = summary
        .history
        .iter()
        .map(|attempt| {
            let folder = dir.attempt(attempt.attempt);
            let report: Option<Report> = dir.read_json(folder.join("report.json")).ok();
            let receipt: Option<Receipt> = dir.read_json(folder.join("receipt.json")).ok();
            let verdicts = report.filter(|_| attempt.ok.is_some()).map(|report| {
                let verdicts = report.verdicts.iter().map(|verdict| {
                    json!({
                        "gate": verdict.gate, "kind": verdict.kind, "verdict": verdict.word(),
                        "counts": verdict.counts, "flaky": verdict.flaky,
                    })
                });
                verdicts.collect::<Vec<Value>>()
            });
            json!({
                "attempt": attempt.attempt,
                "agent": attempt.agent,
                "model": receipt.and_then(|receipt| receipt.model),
                "tree": attempt.tree,
                "charged": attempt.charged,
                "ok": attempt.ok,
                "verdicts": verdicts,
            })
        })
        .collect();
    let versions: Vec<&str> = lines
        .iter()
        .filter_map(|line| match &line.event {
            Event::Started(started) => Some(started.version.as_str()),
            Event::Resumed { version, .. } => Some(version.as_str()),
            _ => None,
        })
        .collect();
    Some(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "accepted tree", "digest": {"gitTree": tree}}],
        "predicateType": PREDICATE,
        "predicate": {
            "run": summary.run,
            "spec": {"name": summary.spec, "sha256": started.pins.get("spec.md")},
            "goal": summary.goal,
            "baseTree": summary.start_tree,
            "pins": started.pins,
            "policy": started.policy,
            "limits": started.limits,
            "agents": agents(dir),
            "attempts": attempts,
            "acceptedAttempt": summary.accepted_attempt,
            "outcome": summary.outcome,
            "reason": summary.reason,
            "decided": summary.decided,
            "spent": summary.spent,
            "triphammer": {"versions": versions, "machine": started.machine},
            "startedOn": summary.started,
        },
    }))
}

/// What stands behind each agent's name, as it is pinned. Which version it has, nobody observes.
fn agents(dir: &RunDir) -> Vec<Value> {
    let policy = dir.read("pinned/policy.toml").unwrap_or_default();
    let settings = toml::from_str::<Settings>(&String::from_utf8_lossy(&policy));
    let chain = settings.map(|settings| settings.chain).unwrap_or_default();
    chain.iter().map(|agent| json!({"name": agent.name, "kind": agent.kind})).collect()
}

/// Whether a recorded statement is this one; the first of them did not name the agents.
pub(crate) fn says(recorded: &Value, mut statement: Value) -> bool {
    if recorded["predicate"].get("agents").is_none()
        && let Some(predicate) = statement["predicate"].as_object_mut()
    {
        predicate.remove("agents");
    }
    *recorded == statement
}
