//! Takes the gates through their ranks; every gate gets a verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use triphammer_model::report::Findings;
use triphammer_model::{Finding, GateKind, GateName, GateVerdict, Judgement, Report};

use triphammer_model::policy::PipelinePolicy;

use crate::command::{self, GateContext, Interrupted};
use crate::gate::Gate;
use crate::ratchet::{Known, excuse};

/// What to run.
pub struct Plan<'a> {
    /// The gates that apply, in pack order.
    pub gates: &'a [Gate],
    /// The integrity gate's verdict, which comes first.
    pub integrity: Option<GateVerdict>,
    /// What the untouched workspace showed.
    pub grandfathered: &'a Known,
    /// The committed baseline.
    pub baseline: Option<&'a Known>,
    /// When to stop.
    pub policy: PipelinePolicy,
}

/// What is told while the gates run.
#[derive(Debug)]
pub enum GateProgress<'a> {
    /// A gate begins.
    Started {
        /// Which.
        gate: &'a GateName,
        /// Its kind.
        kind: GateKind,
    },
    /// A gate has its verdict; skipped ones are told too.
    Finished {
        /// The verdict.
        verdict: &'a GateVerdict,
    },
}

/// Runs the gates and folds their verdicts into a report, in pack order.
///
/// Where no gate applies at all, the report holds one failing verdict by `forge`: an attempt that nothing judges is
/// not done.
///
/// # Errors
/// [`Interrupted`] when the run was asked to stop; there is no report then.
pub fn run(
    ctx: &GateContext<'_>,
    plan: Plan<'_>,
    progress: &dyn Fn(GateProgress<'_>),
) -> Result<Report, Interrupted> {
    let mut slots: Vec<Option<GateVerdict>> = plan.gates.iter().map(|_| None).collect();
    let mut first: Vec<GateVerdict> = Vec::new();
    // The blocker of what comes later: the first gate of the blocking rank that did not pass, in pack order.
    let mut blocker: Option<GateName> = None;
    let blocks = |v: &GateVerdict| !matches!(v.judgement, Judgement::Pass(_));
    if let Some(integrity) = plan.integrity {
        progress(GateProgress::Started { gate: &integrity.gate, kind: integrity.kind });
        progress(GateProgress::Finished { verdict: &integrity });
        if blocks(&integrity) {
            blocker = Some(integrity.gate.clone());
        }
        first.push(integrity);
    }
    if plan.gates.is_empty() {
        let verdict = no_gates();
        progress(GateProgress::Finished { verdict: &verdict });
        first.push(verdict);
    }
    let mut blocked_rank = blocker.as_ref().map(|_| GateKind::Static);
    let ranks = [GateKind::Static, GateKind::Build, GateKind::Test, GateKind::Eval, GateKind::Judge];
    for rank in ranks {
        for (gate, slot) in plan.gates.iter().zip(&mut slots).filter(|(g, _)| g.kind() == rank) {
            if ctx.cancel.is_raised() {
                return Err(Interrupted);
            }
            let stopped = match plan.policy {
                PipelinePolicy::Staged => blocked_rank.is_some_and(|r| r < rank),
                PipelinePolicy::FailFast => blocked_rank.is_some(),
                PipelinePolicy::CollectAll => false,
            };
            let verdict = if let Some(by) = blocker.as_ref().filter(|_| stopped) {
                skipped(gate, by)
            } else {
                progress(GateProgress::Started { gate: gate.name(), kind: rank });
                let verdict = guarded(ctx, gate)?;
                if gate.enumerates() {
                    excused(verdict, ctx, plan.baseline, plan.grandfathered)
                } else {
                    verdict
                }
            };
            progress(GateProgress::Finished { verdict: &verdict });
            if blocks(&verdict) && blocked_rank.is_none() {
                blocked_rank = Some(rank);
                blocker = Some(verdict.gate.clone());
            }
            *slot = Some(verdict);
        }
    }
    // Every kind is a rank, so that every gate has its verdict.
    Ok(Report::new(first.into_iter().chain(slots.into_iter().flatten()).collect()))
}

/// The verdict on an attempt that nothing judged.
fn no_gates() -> GateVerdict {
    let finding = Finding::error("forge/no-gates", "no gate applies, so that nothing could judge the work")
        .with_fix(
            "the workspace must hold something that can be built or tested, such as a Cargo.toml with tests",
        );
    GateVerdict::from_findings(GateName::new("forge"), GateKind::Static, vec![finding])
}

fn skipped(gate: &Gate, by: &GateName) -> GateVerdict {
    GateVerdict {
        gate: gate.name().clone(),
        kind: gate.kind(),
        judgement: Judgement::Skip(by.clone()),
        duration_ms: 0,
        counts: None,
        flaky: false,
    }
}

/// Runs one gate; a crash of ours is the gate's error and never a pass.
fn guarded(ctx: &GateContext<'_>, gate: &Gate) -> Result<GateVerdict, Interrupted> {
    let begun = Instant::now();
    let ran = catch_unwind(AssertUnwindSafe(|| match gate {
        Gate::Command(gate) => command::run(ctx, gate),
        Gate::Rules(rules) => {
            let mut verdict = rules.check(ctx.files);
            verdict.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            Ok(verdict)
        }
    }));
    ran.unwrap_or_else(|_| {
        let finding = Finding::error("gate/crashed", format!("`{}` crashed inside triphammer", gate.name()));
        let mut verdict = GateVerdict::from_findings(gate.name().clone(), gate.kind(), Vec::new());
        verdict.judgement = Judgement::Error(Findings::one(finding));
        Ok(verdict)
    })
}

fn excused(
    verdict: GateVerdict,
    ctx: &GateContext<'_>,
    baseline: Option<&Known>,
    grandfathered: &Known,
) -> GateVerdict {
    let Judgement::Fail(findings) = &verdict.judgement else { return verdict };
    let mut findings = findings.as_slice().to_vec();
    excuse(&mut findings, ctx.files, baseline, grandfathered);
    let (duration_ms, counts, flaky) = (verdict.duration_ms, verdict.counts, verdict.flaky);
    let again = GateVerdict::from_findings(verdict.gate, verdict.kind, findings);
    GateVerdict { duration_ms, counts, flaky, ..again }
}
