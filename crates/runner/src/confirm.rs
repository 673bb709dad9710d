//! The last proof: the gates pass once more on a fresh checkout of the accepted tree, without leftovers.

use std::time::Instant;

use triphammer_gate::{Gate, WorkFiles};
use triphammer_model::report::VerdictWord;
use triphammer_model::{Attempt, Event, Finding, GateKind, GateVerdict, Severity};
use triphammer_workspace::{Onto, Root, carry, restore};

use crate::error::{Doing, Trouble};
use crate::notice::Notice;
use crate::run::{Run, interrupted};

/// The gate's name in the report.
const NAME: &str = "confirm-clean";

impl Run<'_> {
    /// Checks the attempt's tree out into a fresh folder and runs `gates` there. The inner `Err` is an interrupt or
    /// a set-up failure.
    pub(crate) fn confirm_clean(
        &self,
        gates: &[Gate],
        attempt: Attempt,
    ) -> Result<Result<GateVerdict, Event>, Trouble> {
        let begun = Instant::now();
        self.watcher.notice(&Notice::Remark("every gate passed; confirming on a fresh checkout of the tree"));
        let parent = self.state.join("confirm");
        std::fs::create_dir_all(&parent).doing("making the folder for fresh checkouts")?;
        let fresh = tempfile::Builder::new()
            .prefix(&format!("{}-", self.dir.id()))
            .tempdir_in(&parent)
            .doing("making a fresh checkout")?;
        let kept =
            self.eyes.store().kept(self.dir.id(), &attempt.dir_name()).doing("finding the attempt's tree")?;
        let restored =
            restore(self.eyes.store(), &kept, fresh.path(), Onto::Fresh).doing("checking the tree out")?;
        if let Some(origin) = &self.origin {
            let root = Root::open(fresh.path()).doing("opening the fresh checkout")?;
            carry(origin, &root, &self.settings.carry).doing("carrying files over")?;
        }
        if let Some(event) = self.set_up(fresh.path())? {
            return Ok(Err(event));
        }
        let files = WorkFiles::walk(fresh.path());
        let dir = self.dir.attempt(attempt).join("confirm");
        self.dir.make(&dir).doing("making a folder")?;
        let run = self.run_gates(gates, fresh.path(), &files, &dir, None)?;
        let Ok(report) = run else { return Ok(Err(interrupted())) };
        let mut findings: Vec<Finding> = Vec::new();
        for verdict in report.verdicts.iter().filter(|v| v.word() != VerdictWord::Pass) {
            findings.extend(verdict.findings().iter().filter(|f| f.fails()).map(|f| {
                let message = format!("on a fresh checkout, gate {}: {}", verdict.gate, f.message);
                Finding { message, ..f.clone() }
            }));
        }
        findings.extend(restored.not_restored.iter().map(|lost| {
            Finding::error(
                "forge/not-stored",
                format!("`{}` is not kept in the tree: {}", lost.path, lost.why),
            )
            .with_severity(Severity::Warning)
        }));
        if !report.ok && !findings.iter().any(Finding::fails) {
            findings.push(Finding::error(
                "forge/not-clean",
                "the gates do not pass on a fresh checkout of the tree",
            ));
        }
        let mut verdict = GateVerdict::from_findings(NAME.into(), GateKind::Eval, findings);
        verdict.flaky = report.verdicts.iter().any(|v| v.flaky);
        verdict.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Ok(verdict))
    }
}
