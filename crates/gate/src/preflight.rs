//! The gates on the untouched workspace: what they can prove later, and what was there already.

use std::collections::BTreeMap;

use triphammer_model::event::PreflightFacts;
use triphammer_model::finding::Excuse;
use triphammer_model::report::VerdictWord;
use triphammer_model::{GateKind, GateVerdict, Judgement, Report};

use crate::command::{GateContext, Interrupted};
use crate::gate::{Gate, Origin};
use triphammer_model::policy::PipelinePolicy;

use crate::pipeline::{GateProgress, Plan, run};
use crate::ratchet::{Known, collect_known, is_own};
use crate::tool;

/// What the preflight found.
#[derive(Clone, Debug)]
pub struct Preflight {
    /// What the machine decides from.
    pub facts: PreflightFacts,
    /// All verdicts, with what was there already excused.
    pub report: Report,
    /// Findings that were there already; they excuse themselves for the rest of the run.
    pub grandfathered: Known,
}

/// Runs all gates on the untouched workspace. `empty` says that it holds no deliverable at all: a test gate that is
/// red there has nothing to test, and is no check that could turn green.
///
/// # Errors
/// [`Interrupted`] when the run was asked to stop.
pub fn preflight(
    ctx: &GateContext<'_>,
    gates: &[Gate],
    baseline: Option<&Known>,
    empty: bool,
    progress: &dyn Fn(GateProgress<'_>),
) -> Result<Preflight, Interrupted> {
    if gates.is_empty() {
        let report = Report::new(Vec::new());
        return Ok(Preflight { facts: PreflightFacts::default(), report, grandfathered: Known::default() });
    }
    let nothing = Known::default();
    let plan = Plan {
        gates,
        integrity: None,
        grandfathered: &nothing,
        baseline,
        policy: PipelinePolicy::CollectAll,
    };
    let first = run(ctx, plan, progress)?;
    let grandfathered = collect_known(&first, ctx.files, gates);
    let report = Report::new(first.verdicts.into_iter().map(|v| grandfather(v, gates)).collect());
    let facts = facts(&report, gates, empty);
    Ok(Preflight { facts, report, grandfathered })
}

/// Excuses every error that an enumerating gate found on the untouched workspace.
fn grandfather(verdict: GateVerdict, gates: &[Gate]) -> GateVerdict {
    let enumerates = gates.iter().any(|g| g.name() == &verdict.gate && g.enumerates());
    let Judgement::Fail(findings) = &verdict.judgement else { return verdict };
    if !enumerates {
        return verdict;
    }
    let mut findings = findings.as_slice().to_vec();
    for finding in findings.iter_mut().filter(|f| f.fails() && is_own(f)) {
        finding.excuse = Some(Excuse::Grandfathered);
    }
    let (duration_ms, counts, flaky) = (verdict.duration_ms, verdict.counts, verdict.flaky);
    let again = GateVerdict::from_findings(verdict.gate, verdict.kind, findings);
    GateVerdict { duration_ms, counts, flaky, ..again }
}

fn facts(report: &Report, gates: &[Gate], empty: bool) -> PreflightFacts {
    let mut facts = PreflightFacts {
        gates: u32::try_from(gates.len()).unwrap_or(u32::MAX),
        green: report.ok,
        tools_missing: BTreeMap::new(),
        vacuous: Vec::new(),
        keep_green_red: Vec::new(),
        red_checks: Vec::new(),
    };
    // Verdicts are in pack order, one a gate.
    for (gate, verdict) in gates.iter().zip(&report.verdicts) {
        let name = gate.name().clone();
        match (verdict.word(), gate.origin()) {
            (VerdictWord::Error, _) => {
                if verdict.findings().iter().any(|f| f.rule == "env/tool-missing")
                    && let Gate::Command(command) = gate
                {
                    let program = tool::program(&command.run).unwrap_or_default().to_owned();
                    facts.tools_missing.insert(name, program);
                }
            }
            (VerdictWord::Pass, Origin::Check) => facts.vacuous.push(name),
            (VerdictWord::Fail, Origin::KeepGreen) => facts.keep_green_red.push(name),
            (VerdictWord::Fail, Origin::Check) => facts.red_checks.push(name),
            (VerdictWord::Fail, Origin::Pack(_)) if gate.kind() == GateKind::Test && !empty => {
                facts.red_checks.push(name);
            }
            _ => {}
        }
    }
    facts
}
