//! A server as an agent among others: a process of our own binary, supervised and fenced like any other's, with the server
//! below it.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use triphammer_model::agent::AgentPlan;
use triphammer_model::{
    Agent, AgentError, AgentName, Cancel, Continuation, Performance, Redactor, Supervisor, Task,
};

use super::{AcpTask, COMMAND};
use crate::command::{contract_env, find_program, launch};
use crate::dialects::Own;
use crate::limits::ProcessLimits;
use crate::stream::Stream;
use crate::transcript::Transcript;
use crate::vendor::settled;

/// What an agent is made of that is a server.
#[derive(Clone, Debug)]
pub struct AcpConfig {
    /// Its name.
    pub name: AgentName,
    /// The server's program and arguments.
    pub argv: Vec<String>,
    /// Its bounds.
    pub limits: ProcessLimits,
    /// Names of variables that it gets beyond the shared environment; the values are in the task.
    pub env_names: Vec<String>,
    /// Takes secrets out of what it says.
    pub redactor: Redactor,
}

/// A server that speaks the Agent Client Protocol.
#[derive(Clone, Debug)]
pub struct AcpAgent(AcpConfig);

impl AcpAgent {
    /// An agent by its configuration; [`Agent::check`] says whether it can work.
    pub const fn new(config: AcpConfig) -> Self {
        Self(config)
    }

    fn file_error(&self, what: String) -> impl FnOnce(std::io::Error) -> AgentError {
        let agent = self.0.name.clone();
        move |source| AgentError::File { agent, what, source }
    }
}

impl Agent for AcpAgent {
    fn name(&self) -> &AgentName {
        &self.0.name
    }

    fn plan(&self, _fenced: bool) -> AgentPlan {
        AgentPlan {
            kind: "acp".to_owned(),
            argv: self.0.argv.iter().map(|arg| self.0.redactor.text(arg)).collect(),
            prompt: "session/prompt".to_owned(),
            env: self.0.env_names.clone(),
            unknowns: vec![
                "its tokens, unless the server sums them up over a turn".to_owned(),
                "its cost, unless the server knows its prices".to_owned(),
            ],
        }
    }

    fn check(&self, path_var: &OsStr, workspace: &Path) -> Result<(), AgentError> {
        let program = self.0.argv.first().map_or("", String::as_str);
        if find_program(program, path_var, workspace).is_some() {
            return Ok(());
        }
        let what =
            format!("its server `{program}` is not found or cannot be executed: install it, or correct argv");
        Err(AgentError::Config { agent: self.0.name.clone(), what })
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let AcpConfig { argv, limits, redactor, .. } = &self.0;
        let file = task.scratch.join("task.json");
        std::fs::create_dir_all(&task.scratch)
            .map_err(self.file_error(format!("making its folder {}", task.scratch.display())))?;
        let told = AcpTask {
            // JSON does not carry a name that is not UTF-8; the program finds itself in that folder.
            workspace: task.workspace.to_str().map(Into::into),
            session: task.session.clone(),
            ..AcpTask::new(task.brief.clone(), argv.clone())
        };
        std::fs::write(&file, serde_json::to_vec(&told).unwrap_or_default())
            .map_err(self.file_error(format!("writing its task {}", file.display())))?;
        // The shim that starts it is a copy of us, and so is what this names.
        let program = if cfg!(target_os = "linux") {
            "/proc/self/exe".into()
        } else {
            std::env::current_exe().map_err(self.file_error("finding our own binary".to_owned()))?
        };
        let own = vec![program.into_os_string(), COMMAND.into()];
        let launch = launch(task, own, contract_env(task), Some(file), limits);
        let transcript_error =
            || self.file_error(format!("writing its transcript in {}", task.dir.display()));
        let mut transcript = Transcript::create(&task.dir, redactor).map_err(transcript_error())?;
        let start = json!({
            "agent": self.0.name,
            "kind": "acp",
            "argv": self.plan(task.fenced).argv,
            "session": task.session,
            "attempt": task.attempt,
            "try": task.try_no,
        });
        transcript.line("start", start).map_err(transcript_error())?;
        let mut stream = Stream::new(Box::new(Own::default()));
        let ended = supervisor.run_heard(&launch, cancel, &mut |piece| stream.push(piece))?;
        let heard = stream.end();
        let duration_ms = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        let end = json!({
            "wait": ended.wait,
            "duration_ms": duration_ms,
            "events": heard.events(),
            "stdout_bytes": ended.stdout.bytes,
            "stderr_bytes": ended.stderr.bytes,
            "killed": ended.killed,
        });
        transcript.line("end", end).map_err(transcript_error())?;
        let mut receipt = settled(heard, ended.wait).into_receipt(self.0.name.as_str());
        // A server that could not go on with the session has begun another one.
        let continued = task.session.as_ref().filter(|id| receipt.session.as_ref() == Some(id));
        receipt.continuation = Some(match continued {
            Some(id) => Continuation::Session { id: id.clone() },
            None => Continuation::Fresh,
        });
        Ok(Performance { receipt, wait: ended.wait, duration_ms })
    }
}
