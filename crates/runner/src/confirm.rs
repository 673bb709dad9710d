//! The last proof: the gates pass once more on a fresh checkout of the accepted tree, without leftovers.

use std::path::Path;
use std::time::Instant;

use triphammer_gate::{Gate, WorkFiles};
use triphammer_model::report::{Findings, VerdictWord};
use triphammer_model::{Attempt, Event, Finding, GateKind, GateVerdict, Judgement, Severity};
use triphammer_workspace::{Onto, Root, carry, restore};

use crate::error::{Doing, Trouble};
use crate::notice::Notice;
use crate::run::{Run, interrupted};

/// The gate's name in the report.
const NAME: &str = "confirm-clean";

impl Run<'_> {
    /// Checks the attempt's tree out into a fresh folder and runs `gates` there. The inner `Err` is an interrupt.
    pub(crate) fn confirm_clean(
        &self,
        gates: &[Gate],
        attempt: Attempt,
    ) -> Result<Result<GateVerdict, Event>, Trouble> {
        let begun = Instant::now();
        self.watcher.notice(&Notice::Remark("every gate passed; confirming on a fresh checkout of the tree"));
        let parent = self.state.join("confirm");
        std::fs::create_dir_all(&parent).doing("making the folder for fresh checkouts")?;
        remove_left_over(&parent, &format!("{}-", self.dir.id()));
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
        match self.set_up(fresh.path())? {
            None => {}
            // Set-up went well on what the tree was made from, so it is the work that does not stand by itself.
            Some(Event::SetupFailed { detail, .. }) => {
                let finding = Finding::error("forge/setup-failed", format!("on a fresh checkout, {detail}"))
                    .with_fix("what the set-up reads, such as a lock file, must fit the rest of the work");
                return Ok(Ok(verdict(begun, Judgement::Fail(Findings::one(finding)))));
            }
            Some(event) => return Ok(Err(event)),
        }
        let files = WorkFiles::walk(fresh.path());
        let dir = self.dir.attempt(attempt).join("confirm");
        self.dir.make(&dir).doing("making a folder")?;
        let run = self.run_gates(gates, fresh.path(), &files, &dir, None)?;
        let Ok(report) = run else { return Ok(Err(interrupted())) };
        let mut findings: Vec<Finding> = Vec::new();
        for gate in report.verdicts.iter().filter(|v| v.word() != VerdictWord::Pass) {
            findings.extend(gate.findings().iter().filter(|f| f.fails()).map(|f| {
                let message = format!("on a fresh checkout, gate {}: {}", gate.gate, f.message);
                Finding { message, ..f.clone() }
            }));
        }
        if !report.ok && findings.is_empty() {
            findings.push(Finding::error(
                "forge/not-clean",
                "the gates do not pass on a fresh checkout of the tree",
            ));
        }
        findings.extend(restored.not_restored.iter().map(|lost| {
            let message = format!("`{}` is not kept in the tree: {}", lost.path, lost.why);
            Finding::error("forge/not-stored", message).with_severity(Severity::Warning)
        }));
        let judgement = match Findings::new(findings) {
            // A gate that could not do its job says nothing about the work.
            Some(findings) if report.facts().errors_only() => Judgement::Error(findings),
            Some(findings) if !report.ok => Judgement::Fail(findings),
            findings => Judgement::Pass(findings.map_or_else(Vec::new, |f| f.as_slice().to_vec())),
        };
        let mut verdict = verdict(begun, judgement);
        verdict.flaky = report.verdicts.iter().any(|v| v.flaky);
        Ok(Ok(verdict))
    }
}

fn verdict(begun: Instant, judgement: Judgement) -> GateVerdict {
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    GateVerdict {
        gate: NAME.into(),
        kind: GateKind::Eval,
        judgement,
        duration_ms,
        counts: None,
        flaky: false,
    }
}

/// A process that was killed here could not take its checkout away.
fn remove_left_over(parent: &Path, prefix: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            // What cannot be removed is in nobody's way: each checkout has a name of its own.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
