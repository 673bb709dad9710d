//! A small coder of our own, for whoever has nothing but a key or a local server: a program that asks a model what to
//! do, does it in the workspace, and tells the model what came of it.
//!
//! # Theory of operation
//!
//! The program reads its [task](NativeTask) from standard input and prints an event a line on standard output, as every
//! agent does (see [`OwnEvent`](crate::dialects::OwnEvent)). What it claims comes from its own executor: a file that it
//! wrote, a command that it ran with its exit status, and tokens.
//!
//! One step is one call of the model. What the model wants is an [action](action); the [executor](executor) carries it out
//! with bounded time and output, and the result goes back. How actions are said depends on the model ([`Actions`]): as calls
//! of tools, as JSON under a schema, or as plain JSON; where nothing is configured, the first way that works is taken.
//!
//! The chat does not grow beyond the model's context: old results are dropped first, then the whole history is replaced
//! by a digest made from the executor's record. The brief stands whole in every single request, so neither the goal nor
//! a finding is ever summed up.
//!
//! It ends when the model says so, when it ends its turn, when a bound is reached, or when the service fails; the last
//! event says which.

mod action;
mod adapter;
mod ask;
mod executor;
mod files;
mod handed_on;
mod history;
mod inside;
mod ledger;
mod listing;
mod print;
mod prompt;
mod search;
mod session;
mod shell;
mod shown;
mod task;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Read;
use std::process::ExitCode;

use triphammer_llm::{Endpoint, HttpClient, SetupError};
use triphammer_model::FaultKind;

use crate::dialects::OwnEvent;
use print::Printer;
use session::{Session, Stop};

pub use adapter::{Guarded, NativeAgent, NativeConfig, variables};
pub use ask::{AllowAll, Ask};
pub use task::{Actions, NativeLimits, NativeTask};

/// The hidden subcommand under which the binary calls [`main`].
pub const COMMAND: &str = "__native";

/// Bytes of a task, at most.
const LARGEST_TASK: u64 = 64 << 20;

/// The program. There are no arguments; `ask` is asked before each command.
///
/// Exit status: 0 when the loop ran to one of its ends, 1 when the service failed or the events could not be printed, 2
/// when there is no usable task.
pub fn main(mut args: impl Iterator<Item = OsString>, ask: &dyn Ask) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let mut printer = Printer::new(&mut out);
    if let Some(arg) = args.next() {
        let what =
            format!("`{}` is no argument of it: the task comes on standard input", arg.to_string_lossy());
        return ExitCode::from(no_task(&mut printer, FaultKind::Crashed, &what));
    }
    // Commands run as the same user; the key in our environment is none of their business.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let env = |name: &str| std::env::var(name).ok();
    ExitCode::from(start(&mut std::io::stdin().lock(), &env, ask, &mut printer))
}

/// Reads the task and works on it; the exit status.
fn start(
    input: &mut dyn Read,
    env: &dyn Fn(&str) -> Option<String>,
    ask: &dyn Ask,
    printer: &mut Printer<'_>,
) -> u8 {
    let mut text = Vec::new();
    let task = match input.take(LARGEST_TASK + 1).read_to_end(&mut text) {
        Ok(_) if text.len() as u64 > LARGEST_TASK => {
            Err(format!("the task on standard input is larger than {LARGEST_TASK} bytes"))
        }
        Ok(_) => NativeTask::read(&text),
        Err(error) => Err(format!("reading the task from standard input: {error}")),
    };
    let task = match task {
        Ok(task) => task,
        Err(what) => return no_task(printer, FaultKind::Crashed, &what),
    };
    let endpoint = Endpoint::resolve(task.api, task.base_url.as_deref(), task.key_env.as_deref(), env);
    let client = match endpoint {
        Ok(endpoint) => HttpClient::new(endpoint),
        Err(error) => {
            let kind = match error {
                SetupError::NoKey(_) | SetupError::Key { .. } => FaultKind::Authentication,
                SetupError::Url { .. } | SetupError::Exposed(_) => FaultKind::Crashed,
            };
            return no_task(printer, kind, &error.to_string());
        }
    };
    let session = match Session::new(&task, &client, ask, printer, &std::thread::sleep) {
        Ok(session) => session,
        Err(what) => return no_task(printer, FaultKind::Crashed, &what),
    };
    match session.run() {
        Stop::Fault | Stop::Unheard | Stop::Unreadable => 1,
        Stop::Done | Stop::TurnEnded | Stop::Steps | Stop::Tokens | Stop::Repeats => 0,
    }
}

fn no_task(printer: &mut Printer<'_>, kind: FaultKind, what: &str) -> u8 {
    printer.print(&OwnEvent::Fault { kind, message: what.to_owned(), reset_at: None });
    printer.print(&OwnEvent::End { stop_reason: Stop::Fault.name().to_owned() });
    2
}
