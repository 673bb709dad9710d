//! An agent that people know by name, run as it is and heard as it works.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::json;
use triphammer_model::agent::AgentPlan;
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    Agent, AgentError, AgentName, Cancel, Continuation, Ended, FaultKind, Performance, Receipt, Supervisor,
    Task,
};

use crate::adapter::Adapter;
use crate::command::{contract_env, fault_of, find_program, launch, remove_whatever};
use crate::heard::Heard;
use crate::stream::Stream;
use crate::transcript::Transcript;
use crate::vendors::{Ask, Prompt, Speaks, Vendor};

/// A longer prompt does not go into an argument, of which the system allows 128 KiB.
const LONGEST_PROMPT: usize = 100_000;

/// A larger file is not read as what an agent says of itself.
const LARGEST_FILE: u64 = 256 << 20;

/// What an agent that people know by name is made of.
#[derive(Clone, Debug)]
pub struct VendorConfig {
    /// What it has in common with others.
    pub adapter: Adapter,
    /// Which it is.
    pub vendor: &'static Vendor,
    /// Its program, and arguments that stand before ours; empty is the usual program.
    pub argv: Vec<String>,
    /// The model to ask for; its own choice where none is named.
    pub model: Option<String>,
}

/// An agent that people know by name.
#[derive(Clone, Debug)]
pub struct VendorAgent(VendorConfig);

impl VendorAgent {
    /// An agent by its configuration; [`Agent::check`] says whether it can work.
    pub const fn new(config: VendorConfig) -> Self {
        Self(config)
    }

    fn program(&self) -> &str {
        self.0.argv.first().map_or(self.0.vendor.program, String::as_str)
    }

    fn argv(&self, ask: &Ask<'_>) -> Vec<OsString> {
        let mut argv = vec![self.program().into()];
        argv.extend(self.0.argv.iter().skip(1).map(OsString::from));
        argv.extend((self.0.vendor.argv)(ask));
        argv
    }

    fn file_error(&self, what: String) -> impl FnOnce(std::io::Error) -> AgentError {
        let agent = self.0.adapter.name.clone();
        move |source| AgentError::File { agent, what, source }
    }

    /// What it is asked, where an argument has to carry it: the brief, or where the brief lies.
    fn prompt(task: &Task) -> String {
        if task.brief.len() <= LONGEST_PROMPT && !task.brief.contains('\0') {
            return task.brief.clone();
        }
        format!("Your task is in the file {}. Read it whole, then do it.", task.brief_file.display())
    }

    /// What it said: heard on its stream, or read from its file.
    fn heard(&self, stream: Option<Stream>, task: &Task, wait: WaitStatus) -> Heard {
        match (self.0.vendor.speaks, stream) {
            (Speaks::File(name, read), _) => {
                match crate::plain_file::read(&task.scratch.join(name), LARGEST_FILE) {
                    Ok(bytes) => read(&self.0.adapter.redactor.bytes(&bytes)),
                    Err(error) => {
                        let mut heard = Heard::default();
                        heard.trouble(format!("its file {name} was not read: {error}"));
                        heard
                    }
                }
            }
            (Speaks::Stream(_), Some(mut stream)) => {
                if let WaitStatus::Exited { code } = wait {
                    stream.exited(code);
                }
                let mut heard = stream.end();
                if let Some(record) = self.0.vendor.record {
                    record(task, &self.0.adapter.redactor, &mut heard);
                }
                heard
            }
            (Speaks::Stream(_), None) => Heard::default(),
        }
    }

    fn receipt(&self, ended: &Ended, heard: Heard) -> Receipt {
        settled(heard, ended.wait).into_receipt(self.0.adapter.name.as_str())
    }
}

/// What was heard of an agent, brought together with how it ended.
pub(crate) fn settled(mut heard: Heard, wait: WaitStatus) -> Heard {
    match wait {
        WaitStatus::Exited { .. } => {}
        WaitStatus::Cancelled { .. } => heard.was_ended(),
        WaitStatus::Unknown => {
            heard.was_ended();
            heard.trouble("its end was not seen: its supervising shim was killed".to_owned());
        }
        WaitStatus::Signalled { .. } => heard.fail(FaultKind::Crashed, &wait.to_string()),
        // What it said of itself is more precise than how it had to be ended.
        WaitStatus::TimedOut { .. } | WaitStatus::Idle { .. } | WaitStatus::NotStarted { .. } => {
            if let Some(fault) = fault_of(wait) {
                heard.fail(fault.kind, fault.message.as_deref().unwrap_or_default());
            }
        }
    }
    heard
}

impl Agent for VendorAgent {
    fn name(&self) -> &AgentName {
        &self.0.adapter.name
    }

    fn plan(&self, fenced: bool) -> AgentPlan {
        let vendor = self.0.vendor;
        let ask = Ask {
            workspace: Path::new("{workspace}"),
            model: self.0.model.as_deref(),
            session: None,
            prompt: "{prompt}",
            scratch: Path::new("{scratch}"),
            fenced,
        };
        let shown = |arg: &OsString| self.0.adapter.redactor.text(&arg.to_string_lossy());
        let env = vendor.sets.iter().map(|(name, _)| (*name).to_owned());
        AgentPlan {
            kind: vendor.kind.to_owned(),
            argv: self.argv(&ask).iter().map(shown).collect(),
            prompt: if vendor.prompt == Prompt::Stdin { "stdin" } else { "argument" }.to_owned(),
            env: env.chain(self.0.adapter.env_names.iter().cloned()).collect(),
            unknowns: vendor.unknowns.iter().map(|what| (*what).to_owned()).collect(),
        }
    }

    fn check(&self, path_var: &OsStr, workspace: &Path) -> Result<(), AgentError> {
        if find_program(self.program(), path_var, workspace).is_some() {
            return Ok(());
        }
        let what = format!(
            "its program `{}` is not found or cannot be executed: install it (`{}`), or set argv",
            self.program(),
            self.0.vendor.install
        );
        Err(AgentError::Config { agent: self.0.adapter.name.clone(), what })
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let Self(VendorConfig { vendor, adapter: Adapter { limits, .. }, .. }) = self;
        std::fs::create_dir_all(&task.scratch)
            .map_err(self.file_error(format!("making its folder {}", task.scratch.display())))?;
        if let Speaks::File(name, _) = vendor.speaks {
            // An earlier try's words are not this one's.
            let file = task.scratch.join(name);
            remove_whatever(&file)
                .map_err(self.file_error(format!("removing the earlier {}", file.display())))?;
        }
        let prompt = Self::prompt(task);
        let session = task.session.as_deref().filter(|_| vendor.continues);
        let ask = Ask {
            workspace: &task.workspace,
            model: self.0.model.as_deref(),
            session,
            prompt: &prompt,
            scratch: &task.scratch,
            fenced: task.fenced,
        };
        let mut env = contract_env(task);
        let chosen = |name: &str| task.env.iter().any(|(known, _)| known == name);
        let fenced = if task.fenced { vendor.sets_fenced } else { &[] };
        let sets = vendor.sets.iter().chain(fenced).filter(|(name, _)| !chosen(name));
        env.extend(sets.map(|(name, value)| (name.into(), value.into())));
        let stdin = (vendor.prompt == Prompt::Stdin).then(|| task.brief_file.clone());
        let launch = launch(task, self.argv(&ask), env, stdin, limits);
        let transcript_error =
            || self.file_error(format!("writing its transcript in {}", task.dir.display()));
        let mut transcript =
            Transcript::create(&task.dir, &self.0.adapter.redactor).map_err(transcript_error())?;
        let start = json!({
            "agent": self.0.adapter.name,
            "kind": vendor.kind,
            "argv": self.plan(task.fenced).argv,
            "session": session,
            "attempt": task.attempt,
            "try": task.try_no,
        });
        transcript.line("start", start).map_err(transcript_error())?;
        let mut stream = match vendor.speaks {
            Speaks::Stream(dialect) => Some(Stream::new(dialect())),
            Speaks::File(..) => None,
        };
        let ended = supervisor.run_heard(&launch, cancel, &mut |piece| {
            if let Some(stream) = &mut stream {
                stream.push(piece);
            }
        })?;
        let heard = self.heard(stream, task, ended.wait);
        let duration_ms = transcript.end(&ended, Some(heard.events())).map_err(transcript_error())?;
        let mut receipt = self.receipt(&ended, heard);
        receipt.continuation = Some(match session {
            Some(id) => Continuation::Session { id: id.to_owned() },
            None => Continuation::Fresh,
        });
        Ok(Performance { receipt, wait: ended.wait, duration_ms })
    }
}
