//! The agent that plays a recorded session: for examples, tests and demonstrations that need no model.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use triphammer_model::agent::AgentPlan;
use triphammer_model::process::WaitStatus;
use triphammer_model::receipt::{ClaimedCommand, ClaimedFile};
use triphammer_model::text::stripped;
use triphammer_model::{
    Agent, AgentError, AgentName, Cancel, Change, Launch, MicroUsd, Performance, Receipt, Redactor, SCHEMA,
    Supervisor, Task, Tokens,
};

use crate::capped_log::CappedLog;
use crate::command::{contract_env, fault_of, find_program};
use crate::limits::ProcessLimits;
use crate::pid_file::PID_FILE;
use crate::script::{Script, ScriptError, Step};
use crate::transcript::Transcript;

/// How often a sleeping step looks up.
const LOOK: Duration = Duration::from_millis(20);

/// An agent whose attempts are written down.
#[derive(Clone, Debug)]
pub struct ScriptedAgent {
    name: AgentName,
    file: PathBuf,
    script: Result<Script, ScriptError>,
    limits: ProcessLimits,
    redactor: Redactor,
}

impl ScriptedAgent {
    /// An agent that plays the script `text`, read from `file`. What is wrong with it is said by [`Agent::check`].
    pub fn new(
        name: AgentName,
        file: PathBuf,
        text: &str,
        limits: ProcessLimits,
        redactor: Redactor,
    ) -> Self {
        let script = Script::parse(&file.display().to_string(), text);
        Self { name, file, script, limits, redactor }
    }

    fn script(&self) -> Result<&Script, AgentError> {
        self.script.as_ref().map_err(|e| AgentError::Config { agent: self.name.clone(), what: e.to_string() })
    }

    fn file_error(&self, what: String) -> impl FnOnce(io::Error) -> AgentError {
        let agent = self.name.clone();
        move |source| AgentError::File { agent, what, source }
    }
}

impl Agent for ScriptedAgent {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn plan(&self, _fenced: bool) -> AgentPlan {
        let has_cost = self.script.as_ref().is_ok_and(Script::has_cost);
        AgentPlan {
            kind: "scripted".to_owned(),
            argv: vec![self.redactor.text(&self.file.to_string_lossy())],
            prompt: "none".to_owned(),
            env: Vec::new(),
            unknowns: if has_cost { Vec::new() } else { vec!["its cost".to_owned()] },
        }
    }

    fn check(&self, path_var: &OsStr, workspace: &Path) -> Result<(), AgentError> {
        self.script()?;
        if find_program("sh", path_var, workspace).is_none() {
            return Err(AgentError::Config {
                agent: self.name.clone(),
                what: "`sh`, which its steps need, is not in PATH: install it, or correct PATH".to_owned(),
            });
        }
        Ok(())
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let script = self.script()?;
        let begun = Instant::now();
        std::fs::create_dir_all(&task.scratch)
            .map_err(self.file_error(format!("making its folder {}", task.scratch.display())))?;
        let log = |name: &str| {
            let path = task.dir.join(name);
            CappedLog::create(&path, self.limits.log_cap)
                .map_err(self.file_error(format!("opening its log {}", path.display())))
        };
        let (stdout, stderr) = (log("stdout.log")?, log("stderr.log")?);
        let transcript = Transcript::create(&task.dir, &self.redactor)
            .map_err(self.file_error(format!("opening its transcript in {}", task.dir.display())))?;
        let receipt = Receipt { schema: SCHEMA, agent: self.name.to_string(), ..Receipt::default() };
        let deadline = self.limits.timeout.and_then(|d| begun.checked_add(d));
        let mut play =
            Play { agent: self, task, supervisor, cancel, deadline, stdout, stderr, transcript, receipt };
        let mut wait = WaitStatus::Exited { code: 0 };
        if let Some(strike) = script.strike(task.attempt.get()) {
            wait = WaitStatus::Exited { code: strike.exit };
            for (i, step) in strike.steps.iter().enumerate() {
                if let Some(cut_short) = play.step(i + 1, step)? {
                    wait = cut_short;
                    break;
                }
            }
        }
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let receipt = play.finish(wait, duration_ms)?;
        Ok(Performance { receipt, wait, duration_ms })
    }
}

/// One attempt being played.
struct Play<'a> {
    agent: &'a ScriptedAgent,
    task: &'a Task,
    supervisor: &'a dyn Supervisor,
    cancel: &'a Cancel,
    deadline: Option<Instant>,
    stdout: CappedLog,
    stderr: CappedLog,
    transcript: Transcript,
    receipt: Receipt,
}

impl Play<'_> {
    /// Does one step; says how the agent ended where the step cut it short.
    fn step(&mut self, number: usize, step: &Step) -> Result<Option<WaitStatus>, AgentError> {
        if let Some(wait) = self.cut_short() {
            return Ok(Some(wait));
        }
        let (kind, mut facts, wait) = self.perform(step)?;
        if let Value::Object(facts) = &mut facts {
            facts.insert("step".to_owned(), number.into());
        }
        self.note(kind, facts)?;
        Ok(wait)
    }

    fn perform(&mut self, step: &Step) -> Result<(&'static str, Value, Option<WaitStatus>), AgentError> {
        Ok(match step {
            Step::Say(text) => {
                let text = self.agent.redactor.text(text);
                self.log(|play| &mut play.stdout, format!("{text}\n").as_bytes())?;
                self.receipt.last_words = Some(stripped(&text));
                ("say", json!({ "text": text }), None)
            }
            Step::Shell { line, claim } => {
                let (facts, wait) = self.shell(line, *claim)?;
                ("shell", facts, wait)
            }
            Step::Write { path, content, executable, claim } => {
                let written =
                    crate::beneath::write(&self.task.workspace, path, content.as_bytes(), *executable);
                let kind = match written {
                    Ok(true) => Change::Added,
                    Ok(false) => Change::Changed,
                    Err(e) => return Ok(self.failed("write", path, &e)),
                };
                self.claim("write", path, kind, *claim);
                ("write", json!({ "path": path.to_string_lossy(), "bytes": content.len() }), None)
            }
            Step::Delete { path, claim } => {
                if let Err(e) = crate::beneath::delete(&self.task.workspace, path) {
                    return Ok(self.failed("delete", path, &e));
                }
                self.claim("delete", path, Change::Deleted, *claim);
                ("delete", json!({ "path": path.to_string_lossy() }), None)
            }
            Step::Claim { path, kind } => {
                self.receipt.files.push(ClaimedFile { path: path.clone(), kind: *kind, tool: None });
                ("claim", json!({ "path": path, "kind": kind }), None)
            }
            Step::Usage(used) => {
                let sum = self.receipt.tokens.get_or_insert_default();
                *sum = Tokens {
                    input: sum.input.saturating_add(used.input),
                    cached: sum.cached.saturating_add(used.cached),
                    output: sum.output.saturating_add(used.output),
                };
                ("usage", json!({ "tokens": used }), None)
            }
            Step::Cost(cost) => {
                let sum = self.receipt.cost.get_or_insert(MicroUsd::ZERO);
                *sum += *cost;
                ("cost", json!({ "micro_usd": cost }), None)
            }
            Step::Fault(fault) => {
                self.receipt.fault = Some(fault.clone());
                ("fault", json!({ "fault": fault }), None)
            }
            Step::Sleep { millis } => {
                let (begun, length) = (Instant::now(), Duration::from_millis(*millis));
                while self.cut_short().is_none() {
                    let left = length.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        break;
                    }
                    std::thread::sleep(LOOK.min(left));
                }
                ("sleep", json!({ "millis": millis }), self.cut_short())
            }
        })
    }

    fn cut_short(&self) -> Option<WaitStatus> {
        if self.cancel.is_raised() {
            return Some(WaitStatus::Cancelled { code: None, signal: None });
        }
        let late = self.deadline.is_some_and(|at| Instant::now() >= at);
        late.then_some(WaitStatus::TimedOut { code: None, signal: None })
    }

    /// A step that the workspace does not allow ends the session as a failing agent would: what was done stays.
    fn failed(
        &mut self,
        verb: &'static str,
        path: &Path,
        error: &io::Error,
    ) -> (&'static str, Value, Option<WaitStatus>) {
        let message = format!("step `{verb}` of {} failed: {error}", path.display());
        self.receipt.troubles.push(message.clone());
        (verb, json!({ "error": message }), Some(WaitStatus::Exited { code: 1 }))
    }

    fn claim(&mut self, tool: &str, path: &Path, kind: Change, claim: bool) {
        if claim {
            let path = path.to_string_lossy().into_owned();
            self.receipt.files.push(ClaimedFile { path, kind, tool: Some(tool.to_owned()) });
        }
    }

    fn shell(&mut self, line: &str, claim: bool) -> Result<(Value, Option<WaitStatus>), AgentError> {
        let limits = self.agent.limits;
        let launch = Launch {
            argv: vec!["sh".into(), "-c".into(), line.into()],
            dir: self.task.workspace.clone(),
            env: contract_env(self.task),
            stdin: None,
            stdout: self.task.scratch.join("step.stdout"),
            stderr: self.task.scratch.join("step.stderr"),
            log_cap: limits.log_cap,
            tail_cap: limits.tail_cap,
            timeout: self.deadline.map(|at| at.saturating_duration_since(Instant::now())),
            idle: limits.idle,
            grace: limits.grace,
            pid_file: Some(self.task.dir.join(PID_FILE)),
        };
        let ended = self.supervisor.run(&launch, self.cancel)?;
        self.copy(&launch.stdout, |play| &mut play.stdout)?;
        self.copy(&launch.stderr, |play| &mut play.stderr)?;
        let exit = match ended.wait {
            WaitStatus::Exited { code } => Some(code),
            _ => None,
        };
        if claim {
            let command = self.agent.redactor.text(line);
            self.receipt.commands.push(ClaimedCommand { command, exit });
        }
        let facts = json!({
            "line": line,
            "wait": ended.wait,
            "duration_ms": u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            "stdout_bytes": ended.stdout.bytes,
            "stderr_bytes": ended.stderr.bytes,
            "killed": ended.killed,
        });
        let cut_short = match ended.wait {
            // A failing command is the session's business: an agent goes on after one.
            WaitStatus::Exited { .. } | WaitStatus::Signalled { .. } => None,
            wait => Some(wait),
        };
        Ok((facts, cut_short))
    }

    /// Appends a step's output, redacted already, to the attempt's log.
    fn copy(&mut self, from: &Path, log: impl Fn(&mut Self) -> &mut CappedLog) -> Result<(), AgentError> {
        use io::Read as _;
        let failed = || self.agent.file_error(format!("reading a step's output {}", from.display()));
        let mut file = crate::plain_file::open(from).map_err(failed())?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = file.read(&mut buffer).map_err(failed())?;
            if n == 0 {
                return Ok(());
            }
            self.log(&log, &buffer[..n])?;
        }
    }

    fn log(&mut self, log: impl Fn(&mut Self) -> &mut CappedLog, bytes: &[u8]) -> Result<(), AgentError> {
        let written = log(self).write(bytes);
        written.map_err(self.agent.file_error(format!("writing its log in {}", self.task.dir.display())))
    }

    fn note(&mut self, kind: &str, facts: Value) -> Result<(), AgentError> {
        let written = self.transcript.line(kind, facts);
        written
            .map_err(self.agent.file_error(format!("writing its transcript in {}", self.task.dir.display())))
    }

    fn finish(mut self, wait: WaitStatus, duration_ms: u64) -> Result<Receipt, AgentError> {
        self.note("end", json!({ "wait": wait, "duration_ms": duration_ms }))?;
        let failed = || self.agent.file_error(format!("writing its log in {}", self.task.dir.display()));
        self.stdout.finish().map_err(failed())?;
        self.stderr.finish().map_err(failed())?;
        let mut receipt = self.receipt;
        if receipt.fault.is_none() {
            receipt.fault = fault_of(wait);
        }
        Ok(receipt)
    }
}
