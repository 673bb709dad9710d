//! A server as an agent among others: a process of our own binary, supervised and fenced like any other's, with the server
//! below it.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use triphammer_model::agent::AgentPlan;
use triphammer_model::{Agent, AgentError, AgentName, Cancel, Continuation, Performance, Supervisor, Task};

use super::{AcpTask, COMMAND};
use crate::adapter::Adapter;
use crate::command::find_program;
use crate::dialects::Own;
use crate::own_program::OwnProgram;

/// What an agent is made of that is a server.
#[derive(Clone, Debug)]
pub struct AcpConfig {
    /// What it has in common with others.
    pub adapter: Adapter,
    /// The server's program and arguments.
    pub argv: Vec<String>,
}

/// A server that speaks the Agent Client Protocol.
#[derive(Clone, Debug)]
pub struct AcpAgent(AcpConfig);

impl AcpAgent {
    /// An agent by its configuration; [`Agent::check`] says whether it can work.
    pub const fn new(config: AcpConfig) -> Self {
        Self(config)
    }
}

impl Agent for AcpAgent {
    fn name(&self) -> &AgentName {
        &self.0.adapter.name
    }

    fn plan(&self, _fenced: bool) -> AgentPlan {
        AgentPlan {
            kind: "acp".to_owned(),
            argv: self.0.argv.iter().map(|arg| self.0.adapter.redactor.text(arg)).collect(),
            prompt: "session/prompt".to_owned(),
            env: self.0.adapter.env_names.clone(),
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
        Err(AgentError::Config { agent: self.0.adapter.name.clone(), what })
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let AcpConfig { argv, adapter } = &self.0;
        let told = AcpTask {
            // JSON does not carry a name that is not UTF-8; the program finds itself in that folder.
            workspace: task.workspace.to_str().map(Into::into),
            session: task.session.clone(),
            ..AcpTask::new(task.brief.clone(), argv.clone())
        };
        let start = json!({ "kind": "acp", "argv": self.plan(task.fenced).argv, "session": task.session });
        let program = OwnProgram { adapter, command: COMMAND };
        let worked = program.run(task, &told, start, Box::<Own>::default(), supervisor, cancel)?;
        Ok(worked.performance(&adapter.name, |receipt| {
            // A server that could not go on with the session has begun another one.
            let continued = task.session.clone().filter(|id| receipt.session.as_ref() == Some(id));
            continued.map_or(Continuation::Fresh, |id| Continuation::Session { id })
        }))
    }
}
