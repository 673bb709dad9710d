//! One file per command.

mod apply;
mod auto;
mod completions;
mod decide;
mod diff;
mod doctor;
mod export;
mod gc;
mod hook;
mod init;
mod logs;
mod probe;
mod replay;
mod restore;
mod resume;
mod run;
mod runs;
mod show;
mod spec;
mod tell;
mod undo;
mod verify;

use crate::args::{Command, SpecCommand};
use crate::exit::{Exit, Outcome};
use crate::say;

/// Runs a command; a failure is one line on stderr.
pub(crate) fn dispatch(command: Command) -> Exit {
    let outcome: Outcome = match command {
        Command::Init(args) => init::init(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => Ok(completions::completions(shell)),
        Command::Spec { command: SpecCommand::New { spec, home } } => spec::new(&spec, &home),
        Command::Spec { command: SpecCommand::Check { spec, home } } => spec::check(&spec, &home),
        Command::Spec { command: SpecCommand::Lock { spec, home } } => spec::lock(&spec, &home),
        Command::Run(args) => run::run(&args),
        Command::Resume(args) => resume::resume(&args),
        Command::Tell(args) => tell::tell(&args),
        Command::Decide(args) => decide::decide(&args),
        Command::Apply(args) => apply::apply(&args),
        Command::Undo(args) => undo::undo(&args),
        Command::Restore(args) => restore::restore(&args),
        Command::Runs(args) => runs::runs(&args),
        Command::Show(args) => show::show(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Export(args) => export::export(&args),
        Command::Gc(args) => gc::gc(&args),
        Command::Hook { command } => hook::hook(&command),
    };
    outcome.unwrap_or_else(|failure| {
        say::talk(&format!("error: {}", say::marked(&failure.message)));
        failure.exit
    })
}
