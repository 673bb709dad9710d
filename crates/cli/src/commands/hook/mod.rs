//! `triphammer hook`: the guard for agents that ask before they run a tool, and its installation.

mod agents;
mod call;
mod install;
mod json_text;
mod pre_tool;
mod settings;
mod write;

use crate::args::HookCommand;
use crate::exit::Outcome;

pub(crate) fn hook(command: &HookCommand) -> Outcome {
    match command {
        HookCommand::PreTool => Ok(pre_tool::pre_tool()),
        HookCommand::Install(args) => install::install(args),
    }
}
