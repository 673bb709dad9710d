//! What is going to happen: shown in short before every run, in full by `run --plan`.

use triphammer_model::plan::{Plan, PlannedAgent, PlannedGate};

use crate::environment;
use crate::run::Run;

/// The plan of a run that is ready to begin.
pub(crate) fn plan_of(run: &mut Run<'_>) -> Plan {
    let gates = run
        .gates_now()
        .iter()
        .map(|gate| PlannedGate {
            name: gate.name().clone(),
            kind: gate.kind(),
            command: gate.command_line(),
        })
        .collect();
    let agents = run
        .settings
        .chain
        .iter()
        .filter_map(|a| {
            Some(PlannedAgent {
                name: a.name.clone(),
                plan: run.agents.get(&a.name)?.plan(run.keep.is_fenced()),
                timeout: a.timeout,
                idle_timeout: a.idle_timeout,
            })
        })
        .collect();
    let bounds = run.sight.latest.bounds();
    let mut not_observed = Vec::new();
    if bounds.pruned_count > 0 {
        let first: Vec<String> = bounds.pruned.keys().take(5).map(ToString::to_string).collect();
        let more = bounds.pruned_count.saturating_sub(first.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        not_observed.push(format!("caches: {}{more}", first.join(", ")));
    }
    if bounds.infrastructure_count > 0 {
        let names: Vec<String> = bounds.infrastructure.iter().take(5).map(ToString::to_string).collect();
        let more = bounds.infrastructure_count.saturating_sub(names.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        not_observed.push(format!(
            "hidden tool folders, unless the deliverable stands still: {}{more}",
            names.join(", ")
        ));
    }
    if bounds.unreadable_count > 0 {
        not_observed.push(format!("{} unreadable place(s)", bounds.unreadable_count));
    }
    if bounds.special_count > 0 {
        not_observed.push(format!("the content of {} FIFO(s), socket(s) or device(s)", bounds.special_count));
    }
    not_observed.push(if run.keep.is_fenced() {
        "what agent and gates read, and what they ask of programs that run already, by sockets for instance".to_owned()
    } else {
        "what the agent does outside the workspace: no write fence holds it, run it as a user you trust it with"
            .to_owned()
    });
    let started = run.machine.start();
    Plan {
        spec: started.map(|s| s.spec.clone()).unwrap_or_default(),
        goal: started.map(|s| s.goal.clone()).unwrap_or_default(),
        workspace: run.eyes.root().path().display().to_string(),
        isolation: run.settings.isolation,
        origin: run.origin.as_ref().map(|o| o.path().display().to_string()),
        gates,
        packs_named: run.settings.gates.is_some(),
        stages: run.settings.stages,
        confirm_clean: run.settings.confirm_clean,
        agents,
        environment: environment::names(&run.env),
        containment: run.keep.words(),
        limits: run.settings.limits,
        policy: run.settings.policy,
        files: run.sight.latest.snapshot().len() as u64,
        not_observed,
        preflight: None,
    }
}

impl Run<'_> {
    /// The plan with the gates' word on the untouched workspace. Calls no agent.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn plan(&mut self) -> Result<Plan, String> {
        let mut plan = plan_of(self);
        let events = self.preflight().map_err(|trouble| trouble.detail)?;
        for event in events {
            match event {
                triphammer_model::Event::Preflighted(facts) => {
                    let report = self.dir.read_json("preflight/report.json").map_err(|e| e.to_string())?;
                    plan.preflight = Some((facts, report));
                }
                triphammer_model::Event::SetupFailed { detail, .. } => return Err(detail),
                _ => return Err("interrupted".to_owned()),
            }
        }
        Ok(plan)
    }
}
