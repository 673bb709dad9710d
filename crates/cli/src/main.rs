//! The binary `triphammer`: one file per command, exit codes, terminal output.
//!
//! Before anything else the hidden `__shim` command is looked for: every supervised process starts through it, so it
//! must not pay for parsing a command line.

mod args;
mod commands;
mod exit;
mod home;
mod live;
mod output;
mod say;
mod signals;

use std::process::ExitCode;

use clap::Parser as _;
use triphammer_agent::{acp, native};

fn main() -> ExitCode {
    let mut raw = std::env::args_os().skip(1);
    match raw.next() {
        Some(first) if first == triphammer_agent::shim::COMMAND => return triphammer_agent::shim::main(raw),
        Some(first) if first == native::COMMAND => return native::main(raw, &native::Guarded::here()),
        Some(first) if first == acp::COMMAND => return acp::main(raw),
        _ => {}
    }
    match args::Args::try_parse() {
        Ok(args) => commands::dispatch(args.command).into(),
        Err(error) => {
            // Help and version are no errors; clap sends them to stdout.
            let code = if error.use_stderr() { exit::Exit::Usage } else { exit::Exit::Done };
            let _ = error.print();
            code.into()
        }
    }
}
