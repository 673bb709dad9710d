//! A server that speaks the Agent Client Protocol, version 1, over its standard streams: an editor's agent, driven by us
//! in the editor's place.
//!
//! # Theory of operation
//!
//! A small program of ours lies between the supervisor and the server. It reads its [task](AcpTask) from standard input,
//! starts the server as its child, holds the conversation, and prints an event a line on standard output as every agent
//! does (see [`OwnEvent`](crate::dialects::OwnEvent)), each message that was sent or received among them. So a server is
//! limited, fenced and killed like any other agent, and what it leaves behind dies with it.
//!
//! The [session](session) does one thing after the other on one thread; two threads beside it read and write for it
//! ([server](server)), so that no server can hold it up. The handshake has a bound of its own; the turn has those of every
//! agent's process.
//!
//! Three things are done for a server. Files below the workspace are [read and written](files), no link followed.
//! [Permissions](permission) are given unless a command cannot be undone or an edit lies outside of the workspace. And
//! when everything is asked to end, the turn is cancelled first. Claims come from [calls of tools](calls) and from what
//! was written through us; tokens and money from [where they are sums](usage) and from nowhere else.

mod adapter;
mod calls;
mod failure;
mod files;
mod lines;
mod permission;
mod print;
mod server;
mod session;
mod strays;
mod task;
mod usage;
mod wire;
mod words;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{BufWriter, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use triphammer_model::FaultKind;

use crate::dialects::OwnEvent;
use files::Files;
use print::Printer;
use server::Server;
use session::{Session, Stop};

pub use adapter::{AcpAgent, AcpConfig};
pub use task::AcpTask;

/// The hidden subcommand under which the binary calls [`main`].
pub const COMMAND: &str = "__acp";

/// Bytes of a task, at most.
const LARGEST_TASK: u64 = 64 << 20;

/// What a server has to end by itself after its input was closed.
const LEAVE: Duration = Duration::from_secs(2);

/// The program. There are no arguments.
///
/// Exit status: 0 when the turn came to its end or was cancelled, 1 when it failed, 2 when there is no usable task.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let mut printer = Printer::new(&mut out);
    let done = match args.next() {
        Some(arg) => {
            let arg = arg.to_string_lossy();
            Err(format!("`{arg}` is no argument of it: the task comes on standard input"))
        }
        None => work(&mut std::io::stdin().lock(), &mut printer),
    };
    ExitCode::from(done.unwrap_or_else(|message| {
        printer.event(&OwnEvent::Fault { kind: FaultKind::Crashed, message, reset_at: None });
        printer.event(&OwnEvent::End { stop_reason: "fault".to_owned() });
        printer.flush();
        2
    }))
}

/// Reads the task and works on it; the exit status, or why nothing could be done.
fn work(input: &mut dyn Read, printer: &mut Printer<'_>) -> Result<u8, String> {
    let mut text = Vec::new();
    let read = input.take(LARGEST_TASK + 1).read_to_end(&mut text);
    read.map_err(|error| format!("reading the task from standard input: {error}"))?;
    if text.len() as u64 > LARGEST_TASK {
        return Err(format!("the task on standard input is larger than {LARGEST_TASK} bytes"));
    }
    let task = AcpTask::read(&text)?;
    let here = || std::env::current_dir().map_err(|error| format!("finding the current folder: {error}"));
    let workspace = task.workspace.clone().map_or_else(here, Ok)?;
    let folder = workspace.to_str().ok_or_else(|| not_utf8(&workspace))?;
    let files = Files::new(&workspace)?;
    let (mut server, link) =
        Server::start(&task.argv).map_err(|error| format!("starting `{}`: {error}", task.argv[0]))?;
    let mut session = Session::new(&task, folder, &files, link, printer);
    let stop = session.run();
    let mut status = None;
    let ended = session.see_off(LEAVE, &mut || {
        status = server.ended_within(Duration::ZERO);
        status.is_some()
    });
    if !ended {
        server.kill();
    }
    session.end(&stop, status.map(|status| status.to_string()).as_deref());
    Ok(u8::from(matches!(stop, Stop::Failed(_) | Stop::Closed(_))))
}

fn not_utf8(workspace: &Path) -> String {
    format!(
        "the workspace {} has a name that is not UTF-8, which the protocol cannot tell a server: rename the folder",
        workspace.display()
    )
}
