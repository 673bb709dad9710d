//! What the model is told about its work.

use super::action;
use super::session::Way;
use std::fmt::Write as _;

const WORK: &str = "You are a coding agent. You work alone in one folder, the workspace, until the task is done. Nobody \
    answers questions: where something is open, decide as a careful colleague would, and go on.\n\
    \n\
    - Paths are relative to the workspace.\n\
    - Look before you write: list, search and read what is there.\n\
    - Make small changes, and check them by running the project's own builds and tests.\n\
    - What is too long is cut, and says so with exact counts.\n\
    - Your work is judged by checks that run after you: what was said does not count, only what is in the workspace.\n";

/// The system text.
pub(super) fn system(way: Way) -> String {
    match way {
        Way::Tools => format!(
            "{WORK}- Call a tool in every answer. When everything is done and checked, call `done`; a turn without a \
             call ends the work as well.\n"
        ),
        Way::Schema | Way::Plain => format!(
            "{WORK}\nEach of your answers is exactly one JSON object, one of these, and nothing else:\n\n{}\nYou are then \
             told what came of it. When everything is done and checked, answer with the action `done`.\n",
            action::described()
        ),
    }
}

/// The first message: the brief whole, then what is known beyond it.
pub(super) fn opening(brief: &str, before: Option<&str>, so_far: Option<&str>) -> String {
    let mut text = brief.to_owned();
    let mut section = |title: &str, inside: Option<&str>| {
        if let Some(inside) = inside.map(str::trim).filter(|inside| !inside.is_empty()) {
            let _ = write!(text, "\n\n# {title}\n\n{inside}\n");
        }
    };
    section("From an earlier attempt", before);
    section("What you have done so far, in place of the conversation that led here", so_far);
    text
}
