//! An attempt as a trajectory in ATIF, the Agent Trajectory Interchange Format, version 1.8.
//!
//! Three steps: the brief is what the user said, the receipt is what the agent did by its own account, and the report
//! is what the world answered. A step of the agent stands for all of its turns, which is why nothing is said of the
//! number of calls: its stream is kept in `stdout.log`, as its maker writes it. What is unknown is not there: no 0
//! stands for tokens or money that nobody counted.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use triphammer_model::process::WaitStatus;
use triphammer_model::{Event, MicroUsd, Receipt, Report, Tokens};

use crate::attempt::Artifact;
use crate::clean::Clean;
use crate::exported::{ExportView, ExportedAttempt, finding_text};
use crate::text::word;
use crate::verdict::report_line;

/// The version of the format.
const VERSION: &str = "ATIF-v1.8";

/// The document of one attempt.
pub fn atif(view: &ExportView<'_>, attempt: &ExportedAttempt, clean: &Clean<'_>) -> Value {
    let mut steps = Vec::new();
    let began = view.began(attempt.attempt);
    match &attempt.brief {
        Artifact::Read(brief) => push(&mut steps, "user", began, &clean.text(brief)),
        Artifact::Missing(why) => push(&mut steps, "system", began, &missing("brief", why, clean)),
    }
    match &attempt.receipt {
        Artifact::Read(receipt) => {
            let words = receipt.last_words.as_deref().unwrap_or_default();
            push(&mut steps, "agent", ended(attempt), &clean.text(words));
            if let Some(step) = steps.last_mut() {
                work(step, receipt, clean);
            }
        }
        Artifact::Missing(why) => push(&mut steps, "system", None, &missing("receipt", why, clean)),
    }
    match &attempt.report {
        Artifact::Read(report) => {
            push(&mut steps, "system", view.judged_at(attempt.attempt), &report_line(&report.facts()));
            if let Some(step) = steps.last_mut() {
                step["observation"] = json!({"results": verdicts(report, clean)});
            }
        }
        Artifact::Missing(_) if view.is_pending(attempt.attempt) => {
            push(&mut steps, "system", None, "not judged yet: the run is not over");
        }
        Artifact::Missing(why) => push(&mut steps, "system", None, &missing("report", why, clean)),
    }
    let id = &view.summary.run;
    json!({
        "schema_version": VERSION,
        "session_id": id,
        "trajectory_id": format!("{id}/{}", attempt.attempt.dir_name()),
        "agent": agent(view, attempt, clean),
        "notes": "The agent's step is what it claims of the whole attempt; the report is what gates observed.",
        "final_metrics": totals(view, attempt, steps.len()),
        "extra": {"triphammer": facts(view, attempt, clean)},
        "steps": steps,
    })
}

fn push(steps: &mut Vec<Value>, source: &str, at: Option<Timestamp>, message: &str) {
    let mut step = json!({"step_id": steps.len() + 1, "source": source, "message": message});
    if let Some(at) = at {
        step["timestamp"] = json!(at);
    }
    steps.push(step);
}

fn missing(what: &str, why: &str, clean: &Clean<'_>) -> String {
    format!("no {what}: {}", clean.line(why, 1_000))
}

/// When the agent's last try ended.
fn ended(attempt: &ExportedAttempt) -> Option<Timestamp> {
    let end = attempt.transcript.iter().rev().find(|line| line["type"] == "end")?;
    end["at"].as_str()?.parse().ok()
}

fn agent(view: &ExportView<'_>, attempt: &ExportedAttempt, clean: &Clean<'_>) -> Value {
    let short = view.summary.history.iter().find(|a| a.attempt == attempt.attempt);
    let name = short.map_or("unknown", |a| a.agent.as_str());
    // A version must be there; which one an agent had is not observed.
    let mut agent = json!({"name": clean.line(name, 200), "version": "unknown"});
    if let Artifact::Read(Receipt { model: Some(model), .. }) = &attempt.receipt {
        agent["model_name"] = json!(clean.line(model, 200));
    }
    agent
}

/// What the receipt claims of the work.
fn work(step: &mut Value, receipt: &Receipt, clean: &Clean<'_>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for (n, command) in receipt.commands.iter().enumerate() {
        let id = format!("command-{}", n + 1);
        calls.push(json!({
            "tool_call_id": id,
            "function_name": "command",
            "arguments": {"command": clean.text(&command.command)},
            "extra": {"claimed": true},
        }));
        if let Some(code) = command.exit {
            results.push(json!({"source_call_id": id, "content": format!("exit code {code}")}));
        }
    }
    if !calls.is_empty() {
        step["tool_calls"] = json!(calls);
    }
    if !results.is_empty() {
        step["observation"] = json!({"results": results});
    }
    if let Some(model) = &receipt.model {
        step["model_name"] = json!(clean.line(model, 200));
    }
    let metrics = metrics("", receipt.tokens, receipt.cost);
    if !metrics.is_empty() {
        step["metrics"] = Value::Object(metrics);
    }
    let mut extra = Map::new();
    let mut fact = |name: &str, value: Value| extra.insert(name.to_owned(), value);
    fact("claimed", json!(true));
    if !receipt.files.is_empty() {
        let file =
            |f: &triphammer_model::ClaimedFile| json!({"path": clean.line(&f.path, 4_096), "kind": f.kind});
        fact("files", json!(receipt.files.iter().map(file).collect::<Vec<_>>()));
    }
    if !receipt.refused.is_empty() {
        fact("refused_commands", json!(receipt.refused.iter().map(|c| clean.text(c)).collect::<Vec<_>>()));
    }
    if let Some(fault) = &receipt.fault {
        fact("fault", json!(fault.kind.word()));
    }
    if let Some(reason) = &receipt.stop_reason {
        fact("stop_reason", json!(clean.line(reason, 500)));
    }
    if let Some(session) = &receipt.session {
        fact("agent_session", json!(clean.line(session, 500)));
    }
    step["extra"] = Value::Object(extra);
}

/// Tokens and money under the format's names, as far as they are known. Its prompt tokens include cached ones.
fn metrics(prefix: &str, tokens: Option<Tokens>, cost: Option<MicroUsd>) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(format!("{prefix}{name}"), value);
    if let Some(tokens) = tokens {
        put("prompt_tokens", json!(tokens.input.saturating_add(tokens.cached)));
        put("completion_tokens", json!(tokens.output));
        put("cached_tokens", json!(tokens.cached));
    }
    if let Some(cost) = cost {
        put("cost_usd", json!(cost.dollars()));
    }
    out
}

/// What all tries of the attempt used; unknown when it is of one of them.
fn totals(view: &ExportView<'_>, attempt: &ExportedAttempt, steps: usize) -> Value {
    let tries = view.lines.iter().filter_map(|line| match &line.event {
        Event::AgentEnded { attempt: n, facts, .. } if *n == attempt.attempt => Some(facts),
        _ => None,
    });
    // A process that never ran has used nothing.
    let ran: Vec<_> = tries.filter(|f| !matches!(f.wait, WaitStatus::NotStarted { .. })).collect();
    let (mut tokens, mut cost) =
        ((!ran.is_empty()).then(Tokens::default), (!ran.is_empty()).then_some(MicroUsd::ZERO));
    for facts in ran {
        tokens = tokens.zip(facts.tokens).map(|(sum, t)| Tokens {
            input: sum.input.saturating_add(t.input),
            cached: sum.cached.saturating_add(t.cached),
            output: sum.output.saturating_add(t.output),
        });
        cost = cost.zip(facts.cost).map(|(sum, c)| sum + c);
    }
    let mut out = metrics("total_", tokens, cost);
    out.insert("total_steps".to_owned(), json!(steps));
    Value::Object(out)
}

fn verdicts(report: &Report, clean: &Clean<'_>) -> Vec<Value> {
    let one = |verdict: &triphammer_model::GateVerdict| {
        let gate = clean.line(verdict.gate.as_str(), 200);
        let findings: Vec<String> = verdict.findings().iter().map(|f| finding_text(clean, f)).collect();
        let mut extra = json!({
            "gate": gate,
            "kind": word(&verdict.kind),
            "verdict": word(&verdict.word()),
            "duration_ms": verdict.duration_ms,
        });
        if let Some(counts) = verdict.counts {
            extra["counts"] = json!(counts);
        }
        if verdict.flaky {
            extra["flaky"] = json!(true);
        }
        let content = format!("{gate}: {}\n{}", word(&verdict.word()), findings.join("\n"));
        json!({"content": content.trim_end(), "extra": extra})
    };
    report.verdicts.iter().map(one).collect()
}

fn facts(view: &ExportView<'_>, attempt: &ExportedAttempt, clean: &Clean<'_>) -> Value {
    let (outcome, reason) = view.outcome();
    let short = view.summary.history.iter().find(|a| a.attempt == attempt.attempt);
    json!({
        "schema": 1,
        "run": view.summary.run,
        "spec": clean.line(&view.summary.spec, 200),
        "attempt": attempt.attempt,
        "version": view.version(),
        "run_outcome": outcome,
        "run_reason": reason,
        "accepted": view.summary.accepted_attempt == Some(attempt.attempt),
        "ok": short.and_then(|a| a.ok),
        "moved": short.and_then(|a| a.moved),
        "tries": short.map(|a| a.tries),
        "tree": short.and_then(|a| a.tree.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{
        export, export_hostile, export_secret, exported, exported_attempt, journal, receipt, stalled_journal,
    };

    fn first(view: &ExportView<'_>, clean: &Clean<'_>) -> Value {
        atif(view, &view.attempts[0], clean)
    }

    /// The rules of the format for what we write of it: which fields there are, and whose they are.
    fn check(document: &Value) {
        fn only(value: &Value, names: &[&str]) {
            for name in value.as_object().expect("an object").keys() {
                assert!(names.contains(&name.as_str()), "{name} in {value}");
            }
        }
        only(
            document,
            &[
                "schema_version",
                "session_id",
                "trajectory_id",
                "agent",
                "notes",
                "final_metrics",
                "extra",
                "steps",
            ],
        );
        assert_eq!(document["schema_version"], VERSION);
        only(&document["agent"], &["name", "version", "model_name"]);
        assert!(document["agent"]["name"].is_string() && document["agent"]["version"].is_string());
        only(
            &document["final_metrics"],
            &[
                "total_prompt_tokens",
                "total_completion_tokens",
                "total_cached_tokens",
                "total_cost_usd",
                "total_steps",
            ],
        );
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(document["final_metrics"]["total_steps"], steps.len());
        assert!(!steps.is_empty());
        for (n, step) in steps.iter().enumerate() {
            let agents: &[&str] = &["model_name", "tool_calls", "metrics"];
            let all: &[&str] = &["step_id", "timestamp", "source", "message", "observation", "extra"];
            let is_agent = step["source"] == "agent";
            only(step, &if is_agent { [all, agents].concat() } else { all.to_vec() });
            assert!(is_agent || step["source"] == "user" || step["source"] == "system");
            assert_eq!(step["step_id"], n + 1);
            assert!(step["message"].is_string());
            let empty = Vec::new();
            let calls = step["tool_calls"].as_array().unwrap_or(&empty);
            for call in calls {
                only(call, &["tool_call_id", "function_name", "arguments", "extra"]);
                assert!(call["arguments"].is_object());
            }
            for result in step["observation"]["results"].as_array().unwrap_or(&empty) {
                only(result, &["source_call_id", "content", "extra"]);
                let id = &result["source_call_id"];
                assert!(id.is_null() || calls.iter().any(|call| call["tool_call_id"] == *id), "{result}");
            }
            if let Some(metrics) = step.get("metrics") {
                only(metrics, &["prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"]);
            }
        }
    }

    #[test]
    fn an_attempt_is_a_trajectory() {
        let document = export(&journal(), &exported(), false, first);
        check(&document);
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }

    #[test]
    fn what_nobody_counted_is_not_there() {
        // Attempt 2 of the samples has neither tokens nor cost.
        let document = export(&journal(), &exported()[1..], false, first);
        check(&document);
        let text = document.to_string();
        assert!(!text.contains("tokens") && !text.contains("cost") && !text.contains("model_name"), "{text}");
    }

    #[test]
    fn of_an_agent_that_did_not_end_nothing_is_counted() {
        let document = export(&journal()[..3], &exported()[1..], true, first);
        check(&document);
        assert_eq!(document["final_metrics"], json!({"total_steps": 3}));
        let document = export(&journal()[..3], &exported()[..1], true, first);
        assert_eq!(document["final_metrics"], json!({"total_steps": 3}), "a receipt alone is no end");
    }

    #[test]
    fn of_tries_of_which_one_is_unknown_the_sum_is() {
        let mut lines = stalled_journal();
        let at = lines.iter().position(|l| matches!(l.event, Event::AgentEnded { .. })).unwrap();
        lines.insert(at, lines[at].clone());
        let sum = |lines: &[_]| export(lines, &exported(), false, first)["final_metrics"].clone();
        assert_eq!(sum(&lines)["total_prompt_tokens"], 2_400);
        assert_eq!(sum(&lines)["total_cost_usd"], 2.5);
        if let Event::AgentEnded { facts, .. } = &mut lines[at].event {
            facts.tokens = None;
        }
        assert_eq!(sum(&lines).get("total_prompt_tokens"), None);
        assert_eq!(sum(&lines)["total_cost_usd"], 2.5);
        if let Event::AgentEnded { facts, .. } = &mut lines[at].event {
            facts.wait = WaitStatus::NotStarted { errno: None };
        }
        assert_eq!(sum(&lines)["total_prompt_tokens"], 1_200);
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut gone = exported_attempt(2, receipt(), Artifact::Missing("gone\nreally".to_owned()));
        gone.brief = Artifact::Missing("no file".to_owned());
        gone.receipt = Artifact::Missing("no file".to_owned());
        for (live, last) in [(false, "no report: gone really"), (true, "not judged yet: the run is not over")]
        {
            let document = export(&journal(), std::slice::from_ref(&gone), live, first);
            check(&document);
            let said: Vec<&str> =
                document["steps"].as_array().unwrap().iter().filter_map(|s| s["message"].as_str()).collect();
            assert_eq!(said, ["no brief: no file", "no receipt: no file", last]);
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let document = export_hostile(first);
        check(&document);
        let text = document.to_string();
        assert!(!text.contains("\\u001b") && !text.contains('\u{202e}') && !text.contains("\\u0000"));
    }

    #[test]
    fn secrets_do_not_get_in() {
        let (document, replaced) = export_secret(first);
        check(&document);
        let text = document.to_string();
        assert!(!text.contains("s3<cr") && text.contains("[redacted:KEY]"), "{text}");
        assert!(replaced > 15, "{replaced}");
    }
}
