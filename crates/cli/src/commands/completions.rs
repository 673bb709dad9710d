//! `triphammer completions`: a shell's completion script.

use clap::CommandFactory as _;

use crate::args::Args;
use crate::exit::Exit;
use crate::say;

pub(crate) fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "triphammer", &mut script);
    // A reader that went away has seen what it wanted.
    let _ = say::raw(&script);
    Exit::Done
}
