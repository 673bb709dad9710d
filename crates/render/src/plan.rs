//! What is going to happen: in short before every run, in full for `run --plan`.

use std::fmt::Write as _;

use serde_json::{Value, json};
use triphammer_model::event::Isolation;
use triphammer_model::plan::{PlannedAgent, PlannedGate};
use triphammer_model::text::marked;
use triphammer_model::{Limits, Plan};

use crate::bounded::Bounded;
use crate::preflight::preflight_line;
use crate::text::{count, one_line, word};
use crate::verdict::verdict_line;

/// The short form, one line: spec, workspace and isolation, agents, gates, budgets, what will not be observed.
pub fn plan_line(plan: &Plan) -> String {
    let agents: Vec<&str> = plan.agents.iter().map(|a| a.name.as_str()).collect();
    let gates = if plan.gates.is_empty() {
        "no gate yet".to_owned()
    } else {
        let list = Bounded::new(&plan.gates, 6).on_one_line(|g| g.name.to_string());
        format!("{} {list}", if plan.gates.len() == 1 { "gate" } else { "gates" })
    };
    let unseen = Bounded::new(&plan.not_observed, 3).on_one_line(|n| one_line(n, 120));
    marked(&format!(
        "plan: {}; {} ({}); agent {}; {gates}; {}; not observed: {unseen}",
        one_line(&plan.spec, 60),
        place(plan),
        count(plan.files, "file"),
        if agents.is_empty() { "none".to_owned() } else { agents.join(", then ") },
        budgets(&plan.limits),
    ))
    .replace('\n', " ")
}

fn place(plan: &Plan) -> String {
    let at = one_line(&plan.workspace, 200);
    match (plan.isolation, &plan.origin) {
        (Isolation::InPlace, _) => format!("in place in {at}"),
        (Isolation::New, _) => format!("in a new folder {at}"),
        (apart, Some(origin)) => format!("in a {} {at} of {}", word(&apart), one_line(origin, 200)),
        (apart, None) => format!("in a {} {at}", word(&apart)),
    }
}

fn budgets(limits: &Limits) -> String {
    let cost = limits.max_cost.map_or_else(|| "no cap on money".to_owned(), |c| format!("at most {c}"));
    let tokens =
        limits.max_tokens.map_or_else(|| "no cap on tokens".to_owned(), |t| format!("at most {t} tokens"));
    format!("{}, {}, {cost}, {tokens}", count(u64::from(limits.attempts), "attempt"), limits.budget)
}

/// The full form.
pub fn plan_text(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "spec       {}: {}", one_line(&plan.spec, 60), one_line(&plan.goal, 300));
    let _ = writeln!(out, "workspace  {} ({})", place(plan), count(plan.files, "file"));
    for (n, agent) in plan.agents.iter().enumerate() {
        let label = if n == 0 { "agent     " } else { "then      " };
        show_agent(&mut out, label, agent);
    }
    show_gates(&mut out, plan);
    let _ = writeln!(out, "budgets    {}", budgets(&plan.limits));
    let _ = writeln!(
        out,
        "           unknown cost under a cap: {}; flaky pass: {}; {} of a transient failure, first after {}",
        word(&plan.limits.unknown_cost),
        word(&plan.limits.flaky),
        count(u64::from(plan.limits.retries), "retry"),
        plan.limits.backoff
    );
    let policy = &plan.policy;
    let _ = writeln!(
        out,
        "breaker    {} equal reports; movement by {}, identity by {}, claims {}, infrastructure {}",
        policy.proofs,
        word(&policy.movement),
        word(&policy.identity),
        word(&policy.claims),
        word(&policy.infrastructure)
    );
    let _ = writeln!(
        out,
        "variables  {} shared by agent and gates, by name: {}",
        plan.environment.len(),
        marked(&plan.environment.join(" "))
    );
    let _ = writeln!(out, "held by    {}", one_line(&plan.containment, 600));
    let _ = writeln!(out, "not observed:");
    for line in &plan.not_observed {
        let _ = writeln!(out, "  - {}", one_line(line, 600));
    }
    if let Some((facts, report)) = &plan.preflight {
        let _ = writeln!(out, "{}", preflight_line(facts));
        for verdict in &report.verdicts {
            let _ = writeln!(out, "{}", verdict_line(verdict));
        }
    }
    out
}

fn show_agent(out: &mut String, label: &str, agent: &PlannedAgent) {
    let argv: Vec<String> = agent.plan.argv.iter().map(|a| one_line(a, 300)).collect();
    let _ = writeln!(
        out,
        "{label} {} ({}): {}",
        agent.name,
        marked(&agent.plan.kind),
        if argv.is_empty() { "nothing is run".to_owned() } else { argv.join(" ") }
    );
    let env = if agent.plan.env.is_empty() { "none".to_owned() } else { agent.plan.env.join(" ") };
    let _ = writeln!(
        out,
        "           brief by {}; deadline {}, longest silence {}; variables of its own: {}",
        marked(&agent.plan.prompt),
        agent.timeout,
        agent.idle_timeout,
        marked(&env)
    );
    if !agent.plan.unknowns.is_empty() {
        let _ = writeln!(out, "           not known beforehand: {}", marked(&agent.plan.unknowns.join("; ")));
    }
}

fn show_gates(out: &mut String, plan: &Plan) {
    let how = if plan.packs_named {
        "packs as named"
    } else {
        "packs found from the files; asked again at each attempt"
    };
    let _ = writeln!(
        out,
        "gates      {}, {how}; {}{}",
        plan.gates.len(),
        word(&plan.stages),
        if plan.confirm_clean { "; once more on a fresh checkout before acceptance" } else { "" }
    );
    let width = plan.gates.iter().map(|g| g.name.as_str().len()).max().unwrap_or(0).min(40);
    for gate in &plan.gates {
        let PlannedGate { name, kind, command } = gate;
        let _ = writeln!(out, "  {:6} {:width$}  {}", word(kind), name.as_str(), one_line(command, 300));
    }
}

/// The plan as JSON.
pub fn plan_json(plan: &Plan) -> Value {
    let gates: Vec<Value> =
        plan.gates.iter().map(|g| json!({"name": g.name, "kind": g.kind, "command": g.command})).collect();
    let agents: Vec<Value> = plan
        .agents
        .iter()
        .map(|a| {
            json!({
                "name": a.name,
                "kind": a.plan.kind,
                "argv": a.plan.argv,
                "prompt": a.plan.prompt,
                "env": a.plan.env,
                "unknowns": a.plan.unknowns,
                "timeout": a.timeout,
                "idle_timeout": a.idle_timeout,
            })
        })
        .collect();
    json!({
        "schema": 1,
        "spec": plan.spec,
        "goal": plan.goal,
        "workspace": plan.workspace,
        "isolation": plan.isolation,
        "origin": plan.origin,
        "files": plan.files,
        "gates": gates,
        "packs_named": plan.packs_named,
        "stages": plan.stages,
        "confirm_clean": plan.confirm_clean,
        "agents": agents,
        "environment": plan.environment,
        "containment": plan.containment,
        "limits": plan.limits,
        "breaker": plan.policy,
        "not_observed": plan.not_observed,
        "preflight": plan.preflight.as_ref().map(|(facts, report)| json!({"facts": facts, "report": report})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::plan;

    #[test]
    fn short_form_is_one_line() {
        insta::assert_snapshot!(plan_line(&plan()), @"plan: roman; in place in /home/ann/roman (12 files); agent claude; gates rust-build, rust-test; 5 attempts, 4h, at most $5.00, no cap on tokens; not observed: caches: target, what happens outside the workspace");
        let mut hostile = plan();
        hostile.workspace = "/a\nb\u{1b}[2J".to_owned();
        assert!(!plan_line(&hostile).contains(['\n', '\u{1b}']));
    }

    #[test]
    fn full_form() {
        insta::assert_snapshot!(plan_text(&plan()), @r#"
        spec       roman: Convert numbers to Roman numerals.
        workspace  in place in /home/ann/roman (12 files)
        agent      claude (command): claude -p
                   brief by stdin; deadline 45m, longest silence 15m; variables of its own: ANTHROPIC_API_KEY
                   not known beforehand: its cost
        gates      2, packs found from the files; asked again at each attempt; staged
          build  rust-build  cargo build
          test   rust-test   cargo test
        budgets    5 attempts, 4h, at most $5.00, no cap on tokens
                   unknown cost under a cap: suspend; flaky pass: review; 2 retries of a transient failure, first after 1s
        breaker    3 equal reports; movement by content, identity by bytes, claims not-disproved, infrastructure hold-once
        variables  2 shared by agent and gates, by name: HOME PATH
        held by    write fence by Landlock; network not held
        not observed:
          - caches: target
          - what happens outside the workspace
        preflight: 2 gates; red, to turn green: rust-test
          ok rust-build (1.2 s)
          FAIL rust-test (1m 01s, 3 passed, 2 failed): 2 findings: test `nine` failed: expected "IX", found "VIIII"
        "#);
    }

    #[test]
    fn json_has_a_schema_and_every_part() {
        let value = plan_json(&plan());
        assert_eq!(value["schema"], 1);
        assert_eq!(value["agents"][0]["name"], "claude");
        assert_eq!(value["gates"][1]["kind"], "test");
        assert_eq!(value["limits"]["attempts"], 5);
        assert_eq!(value["preflight"]["facts"]["gates"], 2);
        assert_eq!(value["preflight"]["report"]["verdicts"][1]["verdict"], "fail");
    }
}
