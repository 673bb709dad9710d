//! The red-first probe: a spec's checks and keep-greens on the untouched workspace.

use std::path::Path;

use serde::Serialize;
use triphammer_gate::{GateProgress, Packs, spec_gates};
use triphammer_model::config::{DEFAULT_IDLE_TIMEOUT, DEFAULT_TIMEOUT, PromptWay};
use triphammer_model::report::VerdictWord;
use triphammer_model::{AgentName, Cancel, GateVerdict};
use triphammer_render::count;
use triphammer_runner::{AgentKind, AgentSettings, Notice, Place, Request, Watcher, prepare};

use crate::exit::Failure;
use crate::{say, signals};

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// Red before the work, green after it.
    Check,
    /// Green before the work and after it.
    KeepGreen,
}

/// How a check stands before any work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stand {
    Red,
    Green,
    /// It could not do its job.
    Error,
}

/// One check on the untouched workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Probed {
    /// Its name in the spec.
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    pub(crate) stand: Stand,
    /// What it said, where it is not green.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// The end of what it printed, where it is not green: a check that is red because it is broken shows it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
}

impl Probed {
    /// Whether it can prove something: a check must be red, a keep-green must be green.
    pub(crate) fn is_good(&self) -> bool {
        match self.purpose {
            Purpose::Check => self.stand == Stand::Red,
            Purpose::KeepGreen => self.stand == Stand::Green,
        }
    }

    /// One line for a person.
    pub(crate) fn line(&self) -> String {
        let said = self.message.as_deref().map_or_else(String::new, |m| format!(": {m}"));
        let (verdict, meaning) = match (self.purpose, self.stand) {
            (Purpose::Check, Stand::Red) => ("ok", "red, as it should be before the work"),
            (Purpose::Check, Stand::Green) => ("WARN", "green before any work: it proves nothing"),
            (Purpose::KeepGreen, Stand::Green) => ("ok", "green, as it must stay"),
            (Purpose::KeepGreen, Stand::Red) => ("FAIL", "red before any work: it cannot be kept green"),
            (_, Stand::Error) => ("ERROR", "could not do its job"),
        };
        let kind = if self.purpose == Purpose::Check { "check" } else { "keep green" };
        format!("{verdict:5} {kind} {}: {meaning}{said}", self.name)
    }

    /// The end of its output for a person.
    pub(crate) fn last_lines(&self) -> Option<String> {
        self.output.as_deref().map(last_lines)
    }
}

/// Lines of a check's output that a person is shown.
const LAST_LINES: usize = 4;
/// Characters of such a line.
const LONGEST_LINE: usize = 200;

/// The last lines of `output`, indented, below a line that says how many are left out.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let left_out = lines.len().saturating_sub(LAST_LINES);
    let marker = (left_out > 0).then(|| format!("... {} left out", count(left_out as u64, "line")));
    let shown = lines[left_out..].iter().map(|line| match line.char_indices().nth(LONGEST_LINE) {
        Some((cut, _)) => {
            format!("{} ... ({} left out)", &line[..cut], count((line.len() - cut) as u64, "byte"))
        }
        None => (*line).to_owned(),
    });
    let indented = marker.into_iter().chain(shown).map(|line| format!("      | {line}"));
    indented.collect::<Vec<_>>().join("\n")
}

/// Runs the checks of `request`'s spec, and no pack, on its workspace as it is. The run that this takes lives in a
/// folder of its own that is removed again; no agent is called.
pub(crate) fn probe(mut request: Request, quiet: bool) -> Result<Vec<Probed>, Failure> {
    let home_gates = request.home.join("gates");
    let names = request.settings.gates.as_deref();
    let texts = triphammer_gate::collect(names, &home_gates).map_err(Failure::usage)?;
    Packs::parse(&texts, names).map_err(Failure::usage)?;
    let purposes: Vec<(String, Purpose)> = {
        let checks = request.spec.checks.iter().map(|c| (c.name.clone(), Purpose::Check));
        checks.chain(request.spec.keep_green.iter().map(|c| (c.name.clone(), Purpose::KeepGreen))).collect()
    };
    if purposes.is_empty() {
        return Ok(Vec::new());
    }
    let gates = spec_gates(&request.spec);

    let scratch = tempfile::tempdir()
        .map_err(|e| Failure::refused(format!("making a scratch folder for the checks: {e}")))?;
    set_aside(&mut request, scratch.path());
    // Packs are checked above; what runs here are the spec's own checks.
    request.settings.gates = Some(Vec::new());
    request.settings.chain = vec![nobody()];
    let cancel = Cancel::new();
    signals::watch(&cancel).map_err(|e| Failure::refused(format!("listening for signals: {e}")))?;
    let watcher = Progress { quiet };
    let code = |code: u8, message: String| {
        if code == 2 { Failure::usage(message) } else { Failure::refused(message) }
    };
    let mut run = prepare(request, cancel, &watcher).map_err(|e| code(e.exit_code(), e.to_string()))?;
    let _ = triphammer_agent::become_subreaper();
    let plan = run.plan().map_err(Failure::refused)?;
    let Some((_, report)) = plan.preflight else {
        return Err(Failure::refused("bug: the checks gave no report"));
    };
    purposes
        .into_iter()
        .zip(gates)
        .map(|((name, purpose), gate)| {
            let verdict = report.verdicts.iter().find(|v| v.gate == *gate.name());
            verdict
                .map(|verdict| probed(name, purpose, verdict))
                .ok_or_else(|| Failure::refused(format!("bug: check `{}` gave no verdict", gate.name())))
        })
        .collect()
}

fn probed(name: String, purpose: Purpose, verdict: &GateVerdict) -> Probed {
    let stand = match verdict.word() {
        VerdictWord::Pass => Stand::Green,
        VerdictWord::Fail => Stand::Red,
        VerdictWord::Error | VerdictWord::Skip => Stand::Error,
    };
    let finding = verdict.failing().next().or_else(|| verdict.findings().first());
    let finding = finding.filter(|_| stand != Stand::Green);
    let output = finding.and_then(|f| f.detail.clone()).filter(|detail| !detail.trim().is_empty());
    let message = finding.map(|f| match &f.fix {
        Some(fix) if stand == Stand::Error => format!("{}; {fix}", f.message),
        _ => f.message.clone(),
    });
    Probed { name, purpose, stand, message, output }
}

/// Keeps the record of a run that is only tried out in `scratch`; the home's own runs are no part of the workspace
/// all the same.
pub(crate) fn set_aside(request: &mut Request, scratch: &Path) {
    hide_real_runs(request);
    request.runs = scratch.join("runs");
    request.state = scratch.join("state");
}

fn hide_real_runs(request: &mut Request) {
    let Place::Folder(folder) = &request.place else { return };
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, runs) = (canonical(folder), canonical(&request.runs));
    if let Some(below) = runs.strip_prefix(&folder).ok().and_then(Path::to_str)
        && !below.is_empty()
    {
        let literal: String = below
            .chars()
            .flat_map(|c| "*?[]{}\\".contains(c).then_some('\\').into_iter().chain([c]))
            .collect();
        request.settings.skip.push(format!("/{literal}"));
    }
}

/// An agent for a run that never calls one.
fn nobody() -> AgentSettings {
    AgentSettings {
        name: AgentName::new("nobody"),
        prompt: PromptWay::Stdin,
        env: Vec::new(),
        timeout: DEFAULT_TIMEOUT,
        idle_timeout: DEFAULT_IDLE_TIMEOUT,
        continue_session: false,
        kind: AgentKind::Shell { line: "true".to_owned() },
    }
}

/// Says which check is running: some build for minutes.
struct Progress {
    quiet: bool,
}

impl Watcher for Progress {
    fn notice(&self, notice: &Notice<'_>) {
        if let Notice::Gate(GateProgress::Started { gate, .. }) = notice
            && !self.quiet
        {
            say::talk(&say::marked(&format!("running {gate} ...")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proves_something() {
        for (purpose, stand, good, starts) in [
            (Purpose::Check, Stand::Red, true, "ok"),
            (Purpose::Check, Stand::Green, false, "WARN"),
            (Purpose::Check, Stand::Error, false, "ERROR"),
            (Purpose::KeepGreen, Stand::Green, true, "ok"),
            (Purpose::KeepGreen, Stand::Red, false, "FAIL"),
            (Purpose::KeepGreen, Stand::Error, false, "ERROR"),
        ] {
            let probed = Probed { name: "a".to_owned(), purpose, stand, message: None, output: None };
            assert_eq!(probed.is_good(), good, "{purpose:?} {stand:?}");
            assert!(probed.line().starts_with(starts), "{}", probed.line());
        }
    }
}
