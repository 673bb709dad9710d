//! Runs a command gate and decides from its exit status and its report.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Take};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use triphammer_model::process::WaitStatus;
use triphammer_model::report::Findings;
use triphammer_model::text::stripped;
use triphammer_model::{
    Cancel, Counts, Ended, Finding, GateName, GateVerdict, Judgement, Launch, Severity, Supervisor,
};

use crate::beneath;
use crate::files::WorkFiles;
use crate::gate::{CommandGate, ReportKind};
use crate::locate::{self, Places};
use crate::readers::{self, Lines, REPORT_CAP, Reading, TestReport};
use crate::stable::tail;
use crate::tool;

/// Bytes of a gate's output kept in memory.
const TAIL_CAP: usize = 64 << 10;

/// Characters of a gate's output in a finding's detail.
const DETAIL_CHARS: usize = 2_000;

/// Bytes of each log in which places are looked for; what comes after them is rarely the first error.
const SCAN: u64 = 2 << 20;

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// Where gates run and with what.
pub struct GateContext<'a> {
    /// The workspace, absolute.
    pub workspace: &'a Path,
    /// The attempt's folder in the run directory; logs go to its `gates/`.
    pub dir: &'a Path,
    /// The environment that agent and gates share, `.local/bin` first in its `PATH`. `CI=1` is added here.
    pub env: &'a [(OsString, OsString)],
    /// Runs processes.
    pub supervisor: &'a dyn Supervisor,
    /// Ends everything when raised.
    pub cancel: &'a Cancel,
    /// Bytes of a log kept on disk.
    pub log_cap: u64,
    /// Where the supervisor writes what a later process would have to end.
    pub pid_file: Option<&'a Path>,
    /// The workspace's files, for gates that read them.
    pub files: &'a WorkFiles,
}

/// The run was interrupted; there is no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gates were interrupted")]
pub struct Interrupted;

/// Runs the gate, again where it fails and is to be confirmed.
pub(crate) fn run(ctx: &GateContext<'_>, gate: &CommandGate) -> Result<GateVerdict, Interrupted> {
    let mut verdict = once(ctx, gate, 1)?;
    if gate.confirm == 0 || !matches!(verdict.judgement, Judgement::Fail(_)) {
        return Ok(verdict);
    }
    let same = |a: &GateVerdict, b: &GateVerdict| {
        let lines =
            |v: &GateVerdict| triphammer_model::report::identity_lines(std::slice::from_ref(v), false);
        lines(a) == lines(b)
    };
    let mut duration_ms = verdict.duration_ms;
    for nth in 0..gate.confirm {
        let again = once(ctx, gate, nth + 2)?;
        duration_ms += again.duration_ms;
        if matches!(again.judgement, Judgement::Pass(_)) {
            let runs = nth + 2;
            let mut findings = again.findings().to_vec();
            let note = format!("`{}` failed and then passed without a change", gate.name);
            findings.push(
                Finding::error("gate/flaky", note).with_severity(Severity::Warning).with_detail(format!(
                    "it passed on run {runs}; the first failure was: {}",
                    first(&verdict)
                )),
            );
            return Ok(GateVerdict {
                judgement: Judgement::Pass(findings),
                flaky: true,
                duration_ms,
                ..again
            });
        }
        verdict.flaky |= !same(&verdict, &again);
    }
    verdict.duration_ms = duration_ms;
    Ok(verdict)
}

fn first(verdict: &GateVerdict) -> &str {
    verdict.failing().next().map_or("unknown", |f| f.message.as_str())
}

/// What one run came to, before it is folded into a verdict.
enum Outcome {
    Findings(Vec<Finding>, Option<Counts>),
    Error(Finding),
}

fn once(ctx: &GateContext<'_>, gate: &CommandGate, run: u32) -> Result<GateVerdict, Interrupted> {
    if ctx.cancel.is_raised() {
        return Err(Interrupted);
    }
    let (result, duration) = attempt(ctx, gate, run)?;
    let mut verdict = match result {
        Outcome::Findings(list, counts) => {
            let mut verdict = GateVerdict::from_findings(gate.name.clone(), gate.kind, list);
            verdict.counts = counts;
            verdict
        }
        Outcome::Error(finding) => {
            let mut verdict = GateVerdict::from_findings(gate.name.clone(), gate.kind, Vec::new());
            verdict.judgement = Judgement::Error(Findings::one(finding));
            verdict
        }
    };
    verdict.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Ok(verdict)
}

fn attempt(ctx: &GateContext<'_>, gate: &CommandGate, run: u32) -> Result<(Outcome, Duration), Interrupted> {
    let error =
        |rule: &str, message: String| Ok((Outcome::Error(Finding::error(rule, message)), Duration::ZERO));
    if !beneath::is_dir(ctx.workspace, gate.dir.as_bytes()) {
        // The folder is part of the work, not of the machine.
        let message = format!("`{}` runs in {}, which is no folder in the workspace", gate.name, gate.dir);
        return Ok((
            Outcome::Findings(vec![Finding::error("gate/dir-missing", message)], None),
            Duration::ZERO,
        ));
    }
    let report = gate
        .report
        .file()
        .map(|file| if gate.dir == "." { file.to_owned() } else { format!("{}/{file}", gate.dir) });
    if let Some(report) = &report
        && let Err(e) = beneath::remove(ctx.workspace, report.as_bytes())
    {
        // A folder or link stands in its way: the work's doing, and an old report must not speak.
        let message = format!("`{}`: {report} cannot be cleared before the gate runs", gate.name);
        let finding = Finding::error("gate/report-blocked", message)
            .with_fix("remove what lies at that path")
            .with_detail(e.to_string());
        return Ok((Outcome::Findings(vec![finding], None), Duration::ZERO));
    }
    let log = match log_files(ctx.dir, gate, run) {
        Ok(log) => log,
        Err(e) => return error("gate/supervision", format!("`{}`: its log cannot be made: {e}", gate.name)),
    };
    let mut env: Vec<(OsString, OsString)> = ctx.env.iter().filter(|(n, _)| n != "CI").cloned().collect();
    env.push(("CI".into(), "1".into()));
    let launch = Launch {
        argv: gate.run.iter().map(OsString::from).collect(),
        dir: ctx.workspace.join(&gate.dir),
        env,
        stdin: None,
        stdout: log.stdout.clone(),
        stderr: log.stderr.clone(),
        log_cap: ctx.log_cap,
        tail_cap: TAIL_CAP,
        timeout: Some(gate.timeout.as_duration()),
        idle: None,
        grace: GRACE,
        pid_file: ctx.pid_file.map(Path::to_owned),
    };
    let ended = match ctx.supervisor.run(&launch, ctx.cancel) {
        Ok(ended) => ended,
        Err(e) => {
            let source = std::error::Error::source(&e).map_or(String::new(), |s| format!(": {s}"));
            return error("gate/supervision", format!("`{}`: {e}{source}", gate.name));
        }
    };
    let ending = Ending { ctx, gate, launch: &launch, ended: &ended, log: &log, report: report.as_deref() };
    let result = ending.decide()?;
    Ok((result, ended.duration))
}

/// A gate's log files; both the same when its streams are merged.
struct Log {
    stdout: PathBuf,
    stderr: PathBuf,
}

fn log_files(dir: &Path, gate: &CommandGate, run: u32) -> std::io::Result<Log> {
    let dir = dir.join("gates");
    std::fs::create_dir_all(&dir)?;
    let stem = if run == 1 { gate.name.to_string() } else { format!("{}.run{run}", gate.name) };
    let stdout = dir.join(format!("{stem}.log"));
    // A report on standard output must not have lines of the other stream in the midst of its own.
    let stderr =
        if gate.report.on_stdout() { dir.join(format!("{stem}.stderr.log")) } else { stdout.clone() };
    Ok(Log { stdout, stderr })
}

/// Opens a log of a gate that has run. Its code may have put something else there: no link is followed, no FIFO
/// waited for.
fn open_log(path: &Path) -> std::io::Result<File> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    beneath::open(dir, name.as_bytes()).map(|(file, _)| file)
}

struct Ending<'a> {
    ctx: &'a GateContext<'a>,
    gate: &'a CommandGate,
    launch: &'a Launch,
    ended: &'a Ended,
    log: &'a Log,
    report: Option<&'a str>,
}

impl Ending<'_> {
    fn name(&self) -> &GateName {
        &self.gate.name
    }

    fn places(&self) -> Places<'_> {
        Places::new(self.ctx.workspace, &self.gate.dir)
    }

    fn decide(&self) -> Result<Outcome, Interrupted> {
        let name = self.name();
        Ok(match self.ended.wait {
            WaitStatus::Cancelled { .. } => return Err(Interrupted),
            WaitStatus::NotStarted { errno } => self.not_started(errno),
            WaitStatus::Unknown => Outcome::Error(Finding::error(
                "gate/end-unknown",
                format!("`{name}`: how it ended was not seen, so nothing is known"),
            )),
            WaitStatus::TimedOut { .. } | WaitStatus::Idle { .. } => {
                let finding = Finding::error(
                    "gate/timeout",
                    format!("`{name}` ran past its deadline of {} and was ended", self.gate.timeout),
                )
                .with_fix(
                    "look for an endless loop, a watch mode or a wait for input; standard input is closed",
                );
                self.failed(finding)
            }
            WaitStatus::Signalled { signal } => {
                self.failed(Finding::error("gate/killed", format!("`{name}` was killed by signal {signal}")))
            }
            WaitStatus::Exited { code: 0 } => self.exited_well(),
            WaitStatus::Exited { code } => self.exited_badly(code),
        })
    }

    /// The program that could not be found, when that is certain.
    fn missing_tool(&self) -> Option<&str> {
        let program = tool::program(&self.gate.run)?;
        tool::resolve(program, &self.launch.env, &self.launch.dir).is_none().then_some(program)
    }

    fn tool_missing(&self, program: &str) -> Outcome {
        let name = self.name();
        let finding =
            Finding::error("env/tool-missing", format!("`{name}` needs `{program}`, which is not found"));
        if self.gate.provision {
            let hint = format!("provide `{program}` as an executable in .local/bin of the workspace");
            return Outcome::Findings(vec![finding.with_fix(hint)], None);
        }
        let hint = if program.contains('/') {
            format!("make {program} an executable file, or correct the gate's command")
        } else {
            format!("install `{program}` so that it is on PATH, or put it into .local/bin of the workspace")
        };
        Outcome::Error(finding.with_fix(hint))
    }

    fn not_started(&self, errno: Option<i32>) -> Outcome {
        if let Some(program) = self.missing_tool() {
            return self.tool_missing(program);
        }
        let why = errno
            .map_or("for an unknown reason".to_owned(), |e| std::io::Error::from_raw_os_error(e).to_string());
        Outcome::Error(Finding::error(
            "env/not-started",
            format!("`{}` could not be started: {why}", self.name()),
        ))
    }

    fn exited_well(&self) -> Outcome {
        if self.gate.report == ReportKind::None {
            return Outcome::Findings(Vec::new(), None);
        }
        match self.read() {
            Reading::Unrecognised(why) => Outcome::Error(
                Finding::error(
                    "gate/no-report",
                    format!(
                        "`{}` exited with code 0 without the {} report that it promised",
                        self.name(),
                        self.gate.report
                    ),
                )
                .with_detail(format!("{why}\n{}", self.output())),
            ),
            Reading::Report(report) => {
                let counts = report.counts;
                Outcome::Findings(self.counted(report), counts)
            }
        }
    }

    fn exited_badly(&self, code: i32) -> Outcome {
        // A shell or `env` says 127 or 126; whether the tool is missing is found out by looking.
        if matches!(code, 126 | 127)
            && let Some(program) = self.missing_tool()
        {
            return self.tool_missing(program);
        }
        let mut counts = None;
        let mut findings = Vec::new();
        if let Reading::Report(report) = self.read() {
            counts = report.counts;
            findings = self.counted(report);
        }
        if !findings.iter().any(Finding::fails) {
            let summary =
                Finding::error("gate/exit-nonzero", format!("`{}` exited with code {code}", self.name()));
            findings.extend(self.located(summary));
        }
        Outcome::Findings(findings, counts)
    }

    /// A failure that its report does not explain, with whatever failing tests the report has.
    fn failed(&self, summary: Finding) -> Outcome {
        let mut findings = Vec::new();
        let mut counts = None;
        if let Reading::Report(report) = self.read() {
            counts = report.counts;
            findings = report.findings;
        }
        findings.push(summary.with_detail(self.output()));
        Outcome::Findings(findings, counts)
    }

    /// What a report's counts and findings come to.
    fn counted(&self, report: TestReport) -> Vec<Finding> {
        let name = self.name();
        let mut findings = report.findings;
        let Some(counts) = report.counts else { return findings };
        if counts.failed > 0 && findings.is_empty() {
            findings.push(
                Finding::error("test/failed", format!("`{name}` reports {} failed tests", counts.failed))
                    .with_detail(self.output()),
            );
        }
        if let Some(why) = report.incomplete {
            findings.push(
                Finding::error("test/incomplete", format!("`{name}`: not every test has a result: {why}"))
                    .with_fix("look for a test that ends its process, and for a crash")
                    .with_detail(self.output()),
            );
            // How many there would have been is not known, so that too few cannot be said.
            return findings;
        }
        let executed = counts.passed.saturating_add(counts.failed);
        if executed == 0 && self.gate.min_tests > 0 {
            let message = if counts.skipped > 0 {
                format!("`{name}` executed no test: all {} are skipped", counts.skipped)
            } else {
                format!("`{name}` found no test to execute")
            };
            findings.push(
                Finding::error("test/none-collected", message)
                    .with_fix("write tests where the runner finds them; no tests prove nothing"),
            );
        } else if executed < self.gate.min_tests {
            findings.push(Finding::error(
                "test/too-few",
                format!(
                    "`{name}` executed {executed} tests and at least {} are required",
                    self.gate.min_tests
                ),
            ));
        }
        findings
    }

    fn read(&self) -> Reading {
        match self.report {
            Some(path) => {
                let label = self.gate.report.file().unwrap_or(path);
                match beneath::read(self.ctx.workspace, path.as_bytes(), REPORT_CAP) {
                    Ok(bytes) => readers::read_file(&self.gate.report, &bytes, &self.places()),
                    Err(e) if e.kind() == ErrorKind::NotFound => {
                        Reading::Unrecognised(format!("{label} was not written"))
                    }
                    Err(e) => Reading::Unrecognised(format!("{label} cannot be read: {e}")),
                }
            }
            None if self.gate.report.on_stdout() => {
                if self.ended.stdout.bytes > self.ctx.log_cap {
                    return Reading::Unrecognised(format!(
                        "standard output has {} bytes, of which only {} are kept, so that results may be missing",
                        self.ended.stdout.bytes, self.ctx.log_cap
                    ));
                }
                match open_log(&self.log.stdout) {
                    Ok(file) => {
                        readers::read_stdout(&self.gate.report, &mut Lines::new(file), &self.places())
                    }
                    Err(e) => Reading::Unrecognised(format!("the gate's log cannot be read: {e}")),
                }
            }
            None => Reading::Unrecognised("the gate promises no report".to_owned()),
        }
    }

    /// The places that the output names, then the summary.
    fn located(&self, mut summary: Finding) -> Vec<Finding> {
        let places = self.places();
        let mut lines: Vec<String> = Vec::new();
        let mut logs: Vec<Lines<Take<File>>> = [&self.log.stderr, &self.log.stdout]
            .into_iter()
            .take(if self.log.stderr == self.log.stdout { 1 } else { 2 })
            .filter_map(|path| open_log(path).ok().map(|file| Lines::new(file.take(SCAN))))
            .collect();
        let mut chained = logs.iter_mut().flat_map(|log| log.by_ref().chain(std::iter::once(String::new())));
        let (mut findings, more) = locate::findings(&mut chained, self.name().as_str(), &places);
        if more > 0 {
            lines.push(format!(
                "[{more} more places in the workspace are named in the output and not listed]"
            ));
        }
        for stream in [&self.ended.stdout, &self.ended.stderr] {
            if stream.bytes > SCAN {
                lines.push(format!("[places were looked for in the first {SCAN} of {} bytes]", stream.bytes));
            }
        }
        lines.push(self.output());
        summary = summary.with_detail(lines.join("\n"));
        findings.push(summary);
        findings
    }

    /// The end of what it printed, for a detail.
    fn output(&self) -> String {
        let text = |captured: &triphammer_model::process::Captured| {
            stripped(&String::from_utf8_lossy(&captured.tail)).trim_end().to_owned()
        };
        let (out, err) = (text(&self.ended.stdout), text(&self.ended.stderr));
        let whole = match (out.is_empty(), err.is_empty()) {
            (true, true) => "(no output)".to_owned(),
            (false, true) => out,
            (true, false) => err,
            (false, false) => format!("{out}\n--- standard error ---\n{err}"),
        };
        tail(&whole, DETAIL_CHARS)
    }
}
