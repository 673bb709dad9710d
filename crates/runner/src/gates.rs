//! Carries out preflight and judge.

use std::path::{Path, PathBuf};
use std::time::Instant;

use triphammer_gate::{Gate, GateContext, GateProgress, IntegrityInput, Interrupted, TestCensus, WorkFiles};
use triphammer_model::config::FILE;
use triphammer_model::event::Isolation;
use triphammer_model::{
    Attempt, Content, Event, FailReason, Finding, GateKind, GateVerdict, Report, Severity, Supervisor,
    WorkPath,
};
use triphammer_workspace::{EntryKind, Look, moved};

use crate::error::{Doing, Trouble};
use crate::notice::Notice;
use crate::run::{Run, interrupted};
use crate::set_up::{Failed, SetUp};

/// Where what was there before any work is kept.
pub(crate) const GRANDFATHERED: &str = "preflight/grandfathered.json";
/// Where discovered gates are kept.
pub(crate) const DISCOVERED: &str = "discovered.json";

impl Run<'_> {
    /// The workspace's files as the latest look saw them.
    pub(crate) fn work_files(&self) -> WorkFiles {
        files_of(&self.sight.latest, self.eyes.root().path())
    }

    /// The gates that apply to the workspace as it is.
    pub(crate) fn gates_now(&mut self) -> Vec<Gate> {
        let files = self.work_files();
        self.bench.discovered.look(&self.bench.packs, &files);
        triphammer_gate::applying(&self.bench.packs, &self.bench.discovered, &self.spec)
    }

    /// Makes an isolated workspace usable, then runs the gates on it as it is.
    pub(crate) fn preflight(&mut self) -> Result<Vec<Event>, Trouble> {
        if self.settings.isolation != Isolation::InPlace
            && let Some(event) = self.set_up(self.eyes.root().path())?
        {
            return Ok(vec![event]);
        }
        self.take_look()?;
        let gates = self.gates_now();
        let files = self.work_files();
        let dir = self.dir.path().join("preflight");
        self.dir.make(&dir).doing("making a folder for the preflight")?;
        let pid = self.gate_pid()?;
        let supervisor = self.keep.gates(self.eyes.root().path());
        let context = self.gate_context(self.eyes.root().path(), &dir, &files, &pid, &supervisor);
        let watcher = self.watcher;
        let progress = |p: GateProgress<'_>| watcher.notice(&Notice::Gate(p));
        let begun = Instant::now();
        let empty = self.machine.start().is_some_and(|s| s.empty);
        let found =
            triphammer_gate::preflight(&context, &gates, self.bench.packs.baseline(), empty, &progress);
        self.timings.gates += begun.elapsed();
        let Ok(found) = found else { return Ok(vec![interrupted()]) };
        for gate in &found.facts.vacuous {
            self.watcher.notice(&Notice::Remark(&format!(
                "check `{gate}` is green before any work: it proves nothing"
            )));
        }
        self.dir
            .write_json("preflight/report.json", &found.report)
            .doing("writing the preflight's report")?;
        self.dir.write_json(GRANDFATHERED, &found.grandfathered).doing("writing what was there already")?;
        self.dir.write_json(DISCOVERED, &self.bench.discovered).doing("writing the discovered gates")?;
        self.hint_at_fence(&found.report.verdicts);
        self.bench.grandfathered = found.grandfathered;
        Ok(vec![Event::Preflighted(found.facts)])
    }

    fn gate_context<'a>(
        &'a self,
        workspace: &'a Path,
        dir: &'a Path,
        files: &'a WorkFiles,
        pid_file: &'a Path,
        supervisor: &'a dyn Supervisor,
    ) -> GateContext<'a> {
        GateContext {
            workspace,
            dir,
            env: &self.env,
            supervisor,
            cancel: &self.cancel,
            log_cap: self.settings.log_cap,
            pid_file: Some(pid_file),
            files,
        }
    }

    fn gate_pid(&self) -> Result<PathBuf, Trouble> {
        self.dir.make(&self.dir.live()).doing("making a folder")?;
        Ok(self.dir.live().join("gate.pid"))
    }

    /// Runs the set-up commands in a folder. `Some` is the event of a failure or an interrupt.
    pub(crate) fn set_up(&self, folder: &Path) -> Result<Option<Event>, Trouble> {
        let logs = self.dir.path().join("setup");
        if self.settings.setup.is_empty() {
            return Ok(None);
        }
        self.dir.make(&logs).doing("making a folder for set-up logs")?;
        let pid = self.gate_pid()?;
        let set_up = SetUp {
            commands: &self.settings.setup,
            folder,
            env: &self.env,
            logs: &logs,
            log_cap: self.settings.log_cap,
            pid_file: Some(&pid),
        };
        let failed = set_up.run(&self.keep.gates(folder), &self.cancel).doing("running a set-up command")?;
        if self.cancel.is_raised() {
            return Ok(Some(interrupted()));
        }
        Ok(failed.map(|Failed { command, wait, log, .. }| Event::SetupFailed {
            reason: FailReason::SetupFailed,
            detail: format!("set-up command `{command}`: {wait}; see {}", log.display()),
        }))
    }

    /// Runs the gates on the attempt's tree.
    pub(crate) fn judge(&mut self, attempt: Attempt) -> Result<Vec<Event>, Trouble> {
        let broken = self.broken()?;
        if !broken.is_empty() {
            return Ok(vec![Event::PinsBroken { pins: broken }]);
        }
        let dir = self.dir.attempt(attempt);
        let gates = self.gates_now();
        self.dir.write_json(DISCOVERED, &self.bench.discovered).doing("writing the discovered gates")?;
        let files = self.work_files();
        let begun = Instant::now();
        let integrity = self.integrity(&files);
        let run = self.run_gates(&gates, self.eyes.root().path(), &files, &dir, Some(integrity))?;
        self.timings.gates += begun.elapsed();
        let Ok(report) = run else { return Ok(vec![interrupted()]) };
        // Gates run the agent's code, which reaches what the agent reaches.
        let broken = self.broken()?;
        if !broken.is_empty() {
            return Ok(vec![Event::PinsBroken { pins: broken }]);
        }
        let mut verdicts = report.verdicts;
        verdicts.extend(self.home_guard()?);
        self.hint_at_fence(&verdicts);
        let all_passed = Report::new(verdicts.clone()).ok;
        if all_passed && !self.moved_since_start(&self.sight.latest) {
            verdicts.push(nothing_moved());
        } else if all_passed && self.settings.confirm_clean {
            match self.confirm_clean(&gates, attempt)? {
                Ok(verdict) => verdicts.push(verdict),
                Err(event) => return Ok(vec![event]),
            }
        }
        let report = Report::new(verdicts);
        self.dir.write_json(dir.join("report.json"), &report).doing("writing the report")?;
        let facts = report.facts();
        self.briefing.previous = Some((attempt, report));
        Ok(vec![Event::Judged { attempt, report: facts }])
    }

    /// Where the home lies in the workspace, what judges later runs lies in the agent's reach, and in that of the gates, which
    /// run its code: after the gates nothing of it may have been changed, and nothing may have been added.
    /// What a person writes there meanwhile cannot be told apart, so that a spec is only a warning.
    fn home_guard(&mut self) -> Result<Option<GateVerdict>, Trouble> {
        if self.keep.keeps_home() {
            return Ok(None);
        }
        let extra: Vec<WorkPath> = match self.pins.get("protected.json") {
            Some(text) => serde_json::from_slice(text).unwrap_or_default(),
            None => Vec::new(),
        };
        // The configuration is always among them, and says where the home is.
        let Some(config) = extra.iter().find(|path| path.file_name() == FILE.as_bytes()) else {
            return Ok(None);
        };
        let home = config.as_bytes().strip_suffix(FILE.as_bytes()).unwrap_or_default().to_vec();
        let now = self.take_look()?;
        let mut findings = Vec::new();
        let checked = self.protected.check(&now).doing("checking protected files after the gates")?;
        let changed: Vec<_> =
            checked.offences.into_iter().filter(|offence| extra.contains(&offence.path)).collect();
        if !changed.is_empty() {
            self.protected.restore(&self.eyes, &changed).doing("putting protected files back")?;
            self.take_look()?;
        }
        findings.extend(changed.iter().map(|offence| {
            let message = format!("{} was changed while the gates ran; it has been restored", offence.path);
            Finding::error("integrity/protected", message).with_fix("what gates run must leave it alone")
        }));
        for (folder, severity) in [("gates/", Severity::Error), ("specs/", Severity::Warning)] {
            let folder = [home.as_slice(), folder.as_bytes()].concat();
            let there = moved(&self.sight.start, &now)
                .into_iter()
                .filter(|o| o.content != Content::Same && o.path.as_bytes().starts_with(&folder));
            findings.extend(there.filter(|o| changed.iter().all(|c| c.path != o.path)).map(|o| {
                let message =
                    format!("{} is not as it was at the start: it would decide about later runs", o.path);
                Finding::error("integrity/home", message)
                    .with_severity(severity)
                    .with_fix("put it back; a home's gates and specs are a person's to write")
            }));
        }
        if findings.is_empty() {
            return Ok(None);
        }
        Ok(Some(GateVerdict::from_findings("home".into(), GateKind::Static, findings)))
    }

    /// What a fence refuses looks like any other failure. Nothing is decided from it; a person is told where to look.
    fn hint_at_fence(&self, verdicts: &[GateVerdict]) {
        const WORDS: [&str; 2] = ["Read-only file system", "Permission denied"];
        if !self.keep.is_fenced() {
            return;
        }
        for verdict in verdicts {
            let said = verdict.failing().flat_map(|finding| finding.detail.iter().chain([&finding.message]));
            if let Some(word) =
                said.into_iter().find_map(|text| WORDS.iter().find(|word| text.contains(**word)))
            {
                self.watcher.notice(&Notice::Remark(&format!(
                    "gate `{}` says `{word}`: it may be the write fence; `[sandbox] writable = [\"...\"]` in triphammer.toml opens \
                     more",
                    verdict.gate
                )));
            }
        }
    }

    /// What was pinned and is not any more what it was, and the journal, where another hand wrote into it.
    pub(crate) fn broken(&mut self) -> Result<Vec<String>, Trouble> {
        let mut broken = self.pins.broken(&self.dir);
        if self.journal.stand_by().doing("putting the journal back")? {
            broken.push("journal.jsonl".to_owned());
        }
        broken.extend(self.planted_links());
        Ok(broken)
    }

    /// Folders of the run's record that became links: what is written next would land somewhere else.
    pub(crate) fn planted_links(&self) -> Vec<String> {
        let attempt = format!("attempts/{}", self.machine.attempt().dir_name());
        let mut folders: Vec<String> =
            ["attempts", "pinned", "pinned/gates", "preflight", "setup", "live"].map(str::to_owned).to_vec();
        folders.extend(["gates", "tries", "confirm"].map(|folder| format!("{attempt}/{folder}")));
        folders.push(attempt);
        folders.retain(|folder| {
            std::fs::symlink_metadata(self.dir.path().join(folder)).is_ok_and(|m| m.is_symlink())
        });
        folders.iter().map(|folder| format!("{folder} (a link)")).collect()
    }

    /// Runs gates in a folder; their logs go below `dir`.
    pub(crate) fn run_gates(
        &self,
        gates: &[Gate],
        workspace: &Path,
        files: &WorkFiles,
        dir: &Path,
        integrity: Option<GateVerdict>,
    ) -> Result<Result<Report, Interrupted>, Trouble> {
        let pid = self.gate_pid()?;
        let supervisor = self.keep.gates(workspace);
        let context = self.gate_context(workspace, dir, files, &pid, &supervisor);
        let plan = triphammer_gate::Plan {
            gates,
            integrity,
            grandfathered: &self.bench.grandfathered,
            baseline: self.bench.packs.baseline(),
            policy: self.settings.stages,
        };
        let watcher = self.watcher;
        let progress = |p: GateProgress<'_>| watcher.notice(&Notice::Gate(p));
        Ok(triphammer_gate::run(&context, plan, &progress))
    }

    fn integrity(&self, files: &WorkFiles) -> GateVerdict {
        let shadowed = triphammer_gate::shadowed(&self.bench.tools, self.eyes.root().path());
        triphammer_gate::integrity(&IntegrityInput {
            offences: &self.bench.guarded.offences,
            additions: &self.bench.guarded.additions,
            shadowed: &shadowed,
            census_start: &self.bench.census,
            census_now: &TestCensus::of(files),
            allow: &self.spec.allow,
        })
    }
}

/// The regular files of a look, for gates that read files.
pub(crate) fn files_of(look: &Look, root: &Path) -> WorkFiles {
    let files = look.snapshot().iter().filter(|e| e.kind() == EntryKind::File);
    WorkFiles::listed(root, files.map(|e| e.work_path()).collect())
}

fn nothing_moved() -> GateVerdict {
    let finding = Finding::error(
        "forge/nothing-moved",
        "the gates pass, but nothing differs from the start: there is no work to accept",
    )
    .with_fix("change the deliverable so that the goal is met; what gates write themselves does not count");
    GateVerdict::from_findings("forge".into(), GateKind::Static, vec![finding])
}
