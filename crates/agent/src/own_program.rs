//! A program of our own below the supervisor, as what lies between us and a model or a server: it is given its task as
//! JSON on standard input, prints our own events, and leaves a transcript.

use std::io;

use serde::Serialize;
use serde_json::{Value, json};
use triphammer_model::process::WaitStatus;
use triphammer_model::{AgentError, AgentName, Cancel, Continuation, Performance, Receipt, Supervisor, Task};

use crate::adapter::Adapter;
use crate::command::{contract_env, launch};
use crate::heard::Heard;
use crate::stream::{Dialect, Stream};
use crate::transcript::Transcript;
use crate::vendor::settled;

/// The program.
pub(crate) struct OwnProgram<'a> {
    /// The agent that it is a part of.
    pub(crate) adapter: &'a Adapter,
    /// The hidden subcommand of our binary.
    pub(crate) command: &'static str,
}

/// What came of it.
pub(crate) struct Worked {
    pub(crate) heard: Heard,
    wait: WaitStatus,
    duration_ms: u64,
}

impl OwnProgram<'_> {
    /// Something could not be done with a file.
    pub(crate) fn file_error(&self, what: String) -> impl FnOnce(io::Error) -> AgentError {
        let agent = self.adapter.name.clone();
        move |source| AgentError::File { agent, what, source }
    }

    /// Lets it work on a task, told in its own way. The transcript begins with what is the same for all, and `start`.
    pub(crate) fn run(
        &self,
        task: &Task,
        told: &impl Serialize,
        start: Value,
        dialect: Box<dyn Dialect>,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Worked, AgentError> {
        let file = task.scratch.join("task.json");
        std::fs::create_dir_all(&task.scratch)
            .map_err(self.file_error(format!("making its folder {}", task.scratch.display())))?;
        serde_json::to_vec(told)
            .map_err(io::Error::from)
            .and_then(|text| std::fs::write(&file, text))
            .map_err(self.file_error(format!("writing its task {}", file.display())))?;
        // The shim that starts it is a copy of us, and so is what this names.
        let program = if cfg!(target_os = "linux") {
            "/proc/self/exe".into()
        } else {
            std::env::current_exe().map_err(self.file_error("finding our own binary".to_owned()))?
        };
        let argv = vec![program.into_os_string(), self.command.into()];
        let launch = launch(task, argv, contract_env(task), Some(file), &self.adapter.limits);
        let transcript_error =
            || self.file_error(format!("writing its transcript in {}", task.dir.display()));
        let mut transcript =
            Transcript::create(&task.dir, &self.adapter.redactor).map_err(transcript_error())?;
        let mut begun = json!({ "agent": self.adapter.name, "attempt": task.attempt, "try": task.try_no });
        if let (Value::Object(begun), Value::Object(start)) = (&mut begun, start) {
            begun.extend(start);
        }
        transcript.line("start", begun).map_err(transcript_error())?;
        let mut stream = Stream::new(dialect);
        let ended = supervisor.run_heard(&launch, cancel, &mut |piece| stream.push(piece))?;
        let heard = stream.end();
        let duration_ms = transcript.end(&ended, Some(heard.events())).map_err(transcript_error())?;
        Ok(Worked { heard, wait: ended.wait, duration_ms })
    }
}

impl Worked {
    /// It as an attempt of this agent, which went on from what `continuation` says of its receipt.
    pub(crate) fn performance(
        self,
        agent: &AgentName,
        continuation: impl FnOnce(&Receipt) -> Continuation,
    ) -> Performance {
        let mut receipt = settled(self.heard, self.wait).into_receipt(agent.as_str());
        receipt.continuation = Some(continuation(&receipt));
        Performance { receipt, wait: self.wait, duration_ms: self.duration_ms }
    }
}
