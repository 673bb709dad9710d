//! What is going to happen: shown in short before every run, in full by `run --plan`.

use crate::agent::AgentPlan;
use crate::event::{Isolation, PreflightFacts};
use crate::policy::PipelinePolicy;
use crate::report::GateKind;
use crate::{AgentName, GateName, Limits, Policy, Report, Span};

/// One gate of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedGate {
    /// Its name.
    pub name: GateName,
    /// Its kind.
    pub kind: GateKind,
    /// What it runs.
    pub command: String,
}

/// One agent of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedAgent {
    /// Its name.
    pub name: AgentName,
    /// What would be run.
    pub plan: AgentPlan,
    /// Hard deadline of one try.
    pub timeout: Span,
    /// Longest silence.
    pub idle_timeout: Span,
}

/// What is going to happen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The spec's name.
    pub spec: String,
    /// Its goal line.
    pub goal: String,
    /// The folder that the agent works in.
    pub workspace: String,
    /// How it is kept apart.
    pub isolation: Isolation,
    /// The folder that it was made from.
    pub origin: Option<String>,
    /// The gates that apply now.
    pub gates: Vec<PlannedGate>,
    /// Whether packs were named; else they are discovered anew at each attempt.
    pub packs_named: bool,
    /// Order and stopping of gates.
    pub stages: PipelinePolicy,
    /// Whether acceptance is confirmed on a fresh checkout.
    pub confirm_clean: bool,
    /// The fallback chain.
    pub agents: Vec<PlannedAgent>,
    /// Names of the variables that agent and gates share.
    pub environment: Vec<String>,
    /// What holds agent and gates, in words.
    pub containment: String,
    /// What may be spent.
    pub limits: Limits,
    /// The breaker's policy.
    pub policy: Policy,
    /// How many files the deliverable holds now.
    pub files: u64,
    /// What will not be observed, and what no fence holds.
    pub not_observed: Vec<String>,
    /// What the gates said on the untouched workspace; only in `run --plan`.
    pub preflight: Option<(PreflightFacts, Report)>,
}
