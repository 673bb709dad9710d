//! One file per command.

mod resume;
mod run;

use crate::args::Command;
use crate::exit::{Exit, Outcome};
use crate::say;

/// Runs a command; a failure is one line on stderr.
pub(crate) fn dispatch(command: Command) -> Exit {
    let outcome: Outcome = match command {
        Command::Run(args) => run::run(*args),
        Command::Resume(args) => resume::resume(&args),
        _ => Err(crate::exit::Failure::usage("not built yet")),
    };
    outcome.unwrap_or_else(|failure| {
        say::talk(&format!("error: {}", say::plain(&failure.message)));
        failure.exit
    })
}
