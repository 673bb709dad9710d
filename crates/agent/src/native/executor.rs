//! Carries actions out in the workspace, and says what came of them: to the model, in events, and in the record.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use triphammer_model::ClaimKind;

use super::action::Action;
use super::ask::Ask;
use super::files::{self, Written};
use super::inside::Inside;
use super::ledger::Ledger;
use super::shell::{self, End};
use super::{listing, search, shown};
use crate::dialects::OwnEvent;

/// Bytes of the model's own text in an event.
const ECHO: usize = 16 << 10;

/// What came of an action.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What the model is told.
    pub(super) told: String,
    /// Whether it worked. A command that failed did.
    pub(super) ok: bool,
    /// What is printed about it.
    pub(super) event: OwnEvent,
}

/// The hands.
pub(super) struct Executor<'a> {
    inside: Inside,
    ask: &'a dyn Ask,
    timeout: Duration,
    /// Variables that commands do not get.
    hidden: Vec<String>,
    /// The record.
    pub(super) ledger: Ledger,
}

impl<'a> Executor<'a> {
    pub(super) fn new(inside: Inside, ask: &'a dyn Ask, timeout: Duration, hidden: Vec<String>) -> Self {
        Self { inside, ask, timeout, hidden, ledger: Ledger::default() }
    }

    /// Does one thing; the model is shown at most about `room` bytes. To be done is nothing to do.
    pub(super) fn run(&mut self, action: &Action, room: usize) -> Outcome {
        let name = action.name();
        match action {
            Action::Read { path, from, to } => {
                let shown =
                    self.inside.path(path).and_then(|p| files::read(&self.inside, &p, *from, *to, room));
                looked(name, shown)
            }
            Action::List { path } => {
                looked(name, self.inside.path(path).and_then(|p| listing::list(&self.inside, &p, room)))
            }
            Action::Search { pattern, path } => {
                let found = |p: PathBuf| search::search(&self.inside, pattern, &p, self.timeout, room);
                looked(name, self.inside.path(path).and_then(found))
            }
            Action::Write { path, content } => {
                let written = |p: PathBuf| Ok((files::write(&self.inside, &p, content)?, p));
                let done = self.inside.path(path).and_then(written);
                self.moved(name, path, done)
            }
            Action::Edit { path, old, new } => {
                let written = |p: PathBuf| Ok((files::edit(&self.inside, &p, old, new)?, p));
                let done = self.inside.path(path).and_then(written);
                self.moved(name, path, done)
            }
            Action::Shell { command } => self.shell(command, room),
            Action::Done { .. } => looked(name, Ok(String::new())),
        }
    }

    fn moved(&mut self, tool: &str, asked: &str, done: Result<(Written, PathBuf), String>) -> Outcome {
        let event = |path: Option<String>, change: Option<ClaimKind>, ok: bool| OwnEvent::Tool {
            tool: tool.to_owned(),
            path,
            change,
            command: None,
            exit: None,
            ok,
        };
        match done {
            Ok((Written { told, change: Some(change) }, path)) => {
                let path = shown::path(&path);
                self.ledger.file(&path, change);
                Outcome { told, ok: true, event: event(Some(path), Some(change), true) }
            }
            // What had this content before is no claim.
            Ok((Written { told, change: None }, _)) => {
                Outcome { told, ok: true, event: event(None, None, true) }
            }
            Err(told) => {
                Outcome { told, ok: false, event: event(Some(shown::head(asked, ECHO)), None, false) }
            }
        }
    }

    fn shell(&mut self, command: &str, room: usize) -> Outcome {
        if let Err(why) = self.ask.allow(command) {
            self.ledger.command(command, "not allowed", &why, false);
            let told = format!("this command is not allowed and was not run: {why}");
            let event = OwnEvent::Refused { command: Some(shown::head(command, ECHO)), what: None, why };
            return Outcome { told, ok: false, event };
        }
        let event = |exit, ok| OwnEvent::Tool {
            tool: "shell".to_owned(),
            path: None,
            change: None,
            command: Some(shown::head(command, ECHO)),
            exit,
            ok,
        };
        let most = room.saturating_sub(300).max(200);
        let ran = match shell::run(self.inside.root(), command, self.timeout, most, &self.hidden) {
            Ok(ran) => ran,
            Err(error) => {
                let told = format!("the command could not be started: {error}");
                self.ledger.command(command, "not started", &told, false);
                return Outcome { told, ok: false, event: event(None, false) };
            }
        };
        let (end, exit) = match ran.end {
            End::Exit(status) => (format!("exit status {status}"), Some(status)),
            // As a shell says it.
            End::Signal(signal) => (format!("killed by signal {signal}"), Some(128 + signal)),
            End::TimedOut => (format!("killed: it ran longer than {} s", self.timeout.as_secs()), None),
        };
        let ok = exit == Some(0);
        self.ledger.command(command, &end, &ran.output, ok);
        let mut told = ran.output;
        if !told.is_empty() && !told.ends_with('\n') {
            told.push('\n');
        }
        let held = if ran.held { "; a process that it left behind still holds its output" } else { "" };
        let _ = write!(told, "[{end}{held}]");
        Outcome { told, ok: !matches!(ran.end, End::TimedOut), event: event(exit, ok) }
    }
}

/// Looking moves nothing.
fn looked(tool: &str, shown: Result<String, String>) -> Outcome {
    let ok = shown.is_ok();
    let told = shown.unwrap_or_else(|why| why);
    let tool = tool.to_owned();
    let event = OwnEvent::Tool { tool, path: None, change: None, command: None, exit: None, ok };
    Outcome { told, ok, event }
}
