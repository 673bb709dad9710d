//! The commands that make a folder usable: for an isolated workspace, a fresh checkout, or a tree whose gates run again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use triphammer_model::process::{LaunchError, WaitStatus};
use triphammer_model::{Cancel, Launch, Supervisor};

use crate::environment::Variables;

/// Deadline of one command.
const TIMEOUT: Duration = Duration::from_mins(30);

/// What is to be run, where and with what.
pub(crate) struct SetUp<'a> {
    pub(crate) commands: &'a [String],
    pub(crate) folder: &'a Path,
    pub(crate) env: &'a Variables,
    /// A folder for their logs; it is there.
    pub(crate) logs: &'a Path,
    pub(crate) log_cap: u64,
    pub(crate) pid_file: Option<&'a Path>,
}

/// The first command that did not succeed.
pub(crate) struct Failed {
    pub(crate) command: String,
    pub(crate) wait: WaitStatus,
    pub(crate) log: PathBuf,
    /// The end of what it printed.
    pub(crate) said: String,
}

impl SetUp<'_> {
    /// Runs the commands one after the other until one fails or `cancel` is raised.
    pub(crate) fn run(
        &self,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Option<Failed>, LaunchError> {
        for (number, command) in self.commands.iter().enumerate() {
            let log = self.logs.join(format!("{:02}.log", number + 1));
            let launch = Launch {
                argv: ["sh", "-c", command].map(Into::into).to_vec(),
                dir: self.folder.to_owned(),
                env: self.env.clone(),
                stdin: None,
                stdout: log.clone(),
                stderr: log.clone(),
                log_cap: self.log_cap,
                tail_cap: 2_000,
                timeout: Some(TIMEOUT),
                idle: None,
                grace: Duration::from_secs(5),
                pid_file: self.pid_file.map(Path::to_owned),
            };
            let ended = supervisor.run(&launch, cancel)?;
            if cancel.is_raised() {
                return Ok(None);
            }
            if !ended.wait.is_success() {
                let said = String::from_utf8_lossy(&ended.stdout.tail).trim().to_owned();
                return Ok(Some(Failed { command: command.clone(), wait: ended.wait, log, said }));
            }
        }
        Ok(None)
    }
}
