//! The agent that is a command: any program, told by a brief, judged by what it leaves behind.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use triphammer_model::agent::AgentPlan;
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    Agent, AgentError, AgentName, Cancel, Ended, Fault, FaultKind, Launch, Performance, Receipt, SCHEMA,
    Supervisor, Task,
};

use crate::adapter::Adapter;
use crate::last_words::last_words;
use crate::limits::ProcessLimits;
use crate::pid_file::PID_FILE;
use crate::receipt_file;
use crate::transcript::Transcript;

/// The kernel's limit of a single argument, its closing zero included (`MAX_ARG_STRLEN`).
const LONGEST_ARGUMENT: usize = 128 * 1024;
/// In an argument: the path of the brief's file.
const BRIEF: &str = "{brief}";
/// In an argument: the brief itself.
const PROMPT: &str = "{prompt}";

/// What a command agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A line for `sh -c`. What [`PromptBy`] appends is its `$1`.
    Shell(String),
}

/// How the brief reaches a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptBy {
    /// As standard input.
    Stdin,
    /// As a file's path, in place of `{brief}` or as the last argument.
    File,
    /// As text, in place of `{prompt}` or as the last argument.
    Argument,
}

impl PromptBy {
    const fn name(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::File => "file",
            Self::Argument => "argument",
        }
    }
}

/// What a command agent is made of.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    /// What it has in common with others.
    pub adapter: Adapter,
    /// What it runs.
    pub program: Program,
    /// How the brief reaches it.
    pub prompt: PromptBy,
}

/// An agent that is a command.
#[derive(Clone, Debug)]
pub struct CommandAgent(CommandConfig);

impl CommandAgent {
    /// An agent by its configuration; [`Agent::check`] says whether it can work.
    pub const fn new(config: CommandConfig) -> Self {
        Self(config)
    }

    fn config_error(&self, what: String) -> AgentError {
        AgentError::Config { agent: self.0.adapter.name.clone(), what }
    }

    fn file_error(&self, what: String) -> impl FnOnce(io::Error) -> AgentError {
        let agent = self.0.adapter.name.clone();
        move |source| AgentError::File { agent, what, source }
    }

    /// The arguments before the prompt is put in, and where appended ones go.
    fn base(&self) -> Vec<OsString> {
        match &self.0.program {
            Program::Argv(argv) => argv.iter().map(OsString::from).collect(),
            Program::Shell(line) => vec!["sh".into(), "-c".into(), line.into()],
        }
    }

    /// The arguments with `value` in place of `placeholder`, or at the end.
    fn argv_with(&self, placeholder: &str, value: &OsStr) -> Vec<OsString> {
        let mut argv = self.base();
        match &self.0.program {
            // The line is a program, not a template: text put into it would be run.
            Program::Shell(_) => argv.extend(["sh".into(), value.to_owned()]),
            Program::Argv(parts) if parts.iter().any(|arg| arg.contains(placeholder)) => {
                argv = parts
                    .iter()
                    .map(|arg| {
                        let mut out = OsString::new();
                        for (i, piece) in arg.split(placeholder).enumerate() {
                            if i > 0 {
                                out.push(value);
                            }
                            out.push(piece);
                        }
                        out
                    })
                    .collect();
            }
            Program::Argv(_) => argv.push(value.to_owned()),
        }
        argv
    }

    fn argv(&self, task: &Task) -> Result<Vec<OsString>, AgentError> {
        let argv = match self.0.prompt {
            PromptBy::Stdin => self.base(),
            PromptBy::File => self.argv_with(BRIEF, task.brief_file.as_os_str()),
            PromptBy::Argument => {
                if task.brief.contains('\0') {
                    return Err(self.config_error(
                        "the brief holds a zero byte, which no argument can: set prompt = \"stdin\" or \"file\""
                            .to_owned(),
                    ));
                }
                let argv = self.argv_with(PROMPT, OsStr::new(&task.brief));
                if argv.iter().any(|arg| arg.len() >= LONGEST_ARGUMENT) {
                    return Err(self.config_error(format!(
                        "the brief of {} bytes is too long for an argument, which the system limits to {} bytes: \
                         set prompt = \"stdin\" or \"file\"",
                        task.brief.len(),
                        LONGEST_ARGUMENT - 1
                    )));
                }
                argv
            }
        };
        Ok(argv)
    }

    fn receipt(&self, ended: &Ended, file: &Path) -> Receipt {
        let mut receipt = Receipt {
            schema: SCHEMA,
            agent: self.0.adapter.name.to_string(),
            last_words: last_words(&ended.stdout, self.0.adapter.limits.tail_cap),
            ..Receipt::default()
        };
        receipt_file::read_into(file, &self.0.adapter.redactor, &mut receipt);
        if ended.wait == WaitStatus::Unknown {
            receipt.troubles.push("its end was not seen: its supervising shim was killed".to_owned());
        }
        // What the agent says about itself is more precise than how it had to be ended.
        if receipt.fault.is_none() {
            receipt.fault = fault_of(ended.wait);
        }
        receipt
    }
}

/// What the way a process ended says about its agent. A failing exit status alone says nothing.
pub(crate) fn fault_of(wait: WaitStatus) -> Option<Fault> {
    let (kind, message) = match wait {
        WaitStatus::TimedOut { .. } => (FaultKind::TimedOut, None),
        WaitStatus::Idle { .. } => (FaultKind::Idle, None),
        WaitStatus::NotStarted { .. } => (FaultKind::Crashed, Some(wait.to_string())),
        WaitStatus::Exited { .. }
        | WaitStatus::Signalled { .. }
        | WaitStatus::Cancelled { .. }
        | WaitStatus::Unknown => return None,
    };
    Some(Fault { kind, reset_at: None, message })
}

/// Removes a file, link or folder; nothing there is fine, and links are not followed.
pub(crate) fn remove_whatever(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// The variables that every agent of a task gets, after those of the environment.
pub(crate) fn contract_env(task: &Task) -> Vec<(OsString, OsString)> {
    let mut env = task.env.clone();
    env.extend([
        ("TRIPHAMMER_BRIEF".into(), task.brief_file.clone().into_os_string()),
        ("TRIPHAMMER_RUN".into(), task.run.as_str().into()),
        ("TRIPHAMMER_ATTEMPT".into(), task.attempt.to_string().into()),
        ("TRIPHAMMER_WORKSPACE".into(), task.workspace.clone().into_os_string()),
    ]);
    env
}

/// The launch of an agent: in its task's workspace, with its logs and pid file where its attempt keeps them.
pub(crate) fn launch(
    task: &Task,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
    limits: &ProcessLimits,
) -> Launch {
    Launch {
        argv,
        dir: task.workspace.clone(),
        env,
        stdin,
        stdout: task.dir.join("stdout.log"),
        stderr: task.dir.join("stderr.log"),
        log_cap: limits.log_cap,
        tail_cap: limits.tail_cap,
        timeout: limits.timeout,
        idle: limits.idle,
        grace: limits.grace,
        pid_file: Some(task.dir.join(PID_FILE)),
    }
}

/// Whether `program` can be executed: by its path, seen from `dir`, or by its name in `path_var`.
pub(crate) fn find_program(program: &str, path_var: &OsStr, dir: &Path) -> Option<PathBuf> {
    let can =
        |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(dir.join(program)).filter(can);
    }
    std::env::split_paths(path_var).map(|folder| dir.join(folder).join(program)).find(can)
}

impl Agent for CommandAgent {
    fn name(&self) -> &AgentName {
        &self.0.adapter.name
    }

    fn plan(&self, _fenced: bool) -> AgentPlan {
        let shown = |arg: &OsString| self.0.adapter.redactor.text(&arg.to_string_lossy());
        AgentPlan {
            kind: "command".to_owned(),
            argv: self.base().iter().map(shown).collect(),
            prompt: self.0.prompt.name().to_owned(),
            env: self.0.adapter.env_names.clone(),
            unknowns: vec!["its cost and tokens, unless it writes a receipt".to_owned()],
        }
    }

    fn check(&self, path_var: &OsStr, workspace: &Path) -> Result<(), AgentError> {
        let program = match &self.0.program {
            Program::Shell(line) if line.trim().is_empty() => {
                return Err(self.config_error("its command line is empty: give it one".to_owned()));
            }
            Program::Shell(_) => "sh",
            Program::Argv(argv) => {
                if let Some(arg) = argv.iter().find(|arg| arg.contains('\0')) {
                    return Err(self.config_error(format!("argument {arg:?} holds a zero byte: remove it")));
                }
                // A placeholder that nothing will fill would reach the program as it stands.
                for (placeholder, by) in [(BRIEF, PromptBy::File), (PROMPT, PromptBy::Argument)] {
                    if self.0.prompt != by && argv.iter().any(|arg| arg.contains(placeholder)) {
                        return Err(self.config_error(format!(
                            "`{placeholder}` in argv needs prompt = \"{}\", but it is \"{}\"",
                            if by == PromptBy::File { "file" } else { "arg" },
                            self.0.prompt.name(),
                        )));
                    }
                }
                argv.first()
                    .filter(|p| !p.is_empty())
                    .ok_or_else(|| self.config_error("its argv is empty: name a program".to_owned()))?
            }
        };
        match find_program(program, path_var, workspace) {
            Some(_) => Ok(()),
            None => Err(self.config_error(format!(
                "its program `{program}` is not found or cannot be executed: install it, or correct argv"
            ))),
        }
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let limits = self.0.adapter.limits;
        let argv = self.argv(task)?;
        let receipt_path = task.scratch.join("receipt.json");
        std::fs::create_dir_all(&task.scratch)
            .map_err(self.file_error(format!("making its folder {}", task.scratch.display())))?;
        // An earlier try's words are not this one's, whatever it left in their place.
        remove_whatever(&receipt_path)
            .map_err(self.file_error(format!("removing the earlier receipt {}", receipt_path.display())))?;
        let mut env = contract_env(task);
        env.push(("TRIPHAMMER_RECEIPT".into(), receipt_path.clone().into_os_string()));
        let stdin = (self.0.prompt == PromptBy::Stdin).then(|| task.brief_file.clone());
        let launch = launch(task, argv, env, stdin, &limits);
        let transcript_error =
            || self.file_error(format!("writing its transcript in {}", task.dir.display()));
        let mut transcript =
            Transcript::create(&task.dir, &self.0.adapter.redactor).map_err(transcript_error())?;
        let start = json!({
            "agent": self.0.adapter.name,
            "argv": self.plan(task.fenced).argv,
            "prompt": self.0.prompt.name(),
            "attempt": task.attempt,
            "try": task.try_no,
        });
        transcript.line("start", start).map_err(transcript_error())?;
        let ended = supervisor.run(&launch, cancel)?;
        let duration_ms = transcript.end(&ended, None).map_err(transcript_error())?;
        let receipt = self.receipt(&ended, &receipt_path);
        Ok(Performance { receipt, wait: ended.wait, duration_ms })
    }
}
