//! Tool calls whose outcome has not come yet: only a call that succeeded is a claim to a file.

use std::collections::VecDeque;

use triphammer_model::ClaimKind;

use crate::heard::{Heard, head};

/// Calls that are kept open; agents run a handful at once.
const MOST: usize = 256;
/// Bytes of a path or command that are kept.
const LONGEST: usize = 16 << 10;

/// What a tool was asked to do, as far as a receipt speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// To touch a file.
    File(String, ClaimKind),
    /// To run a command.
    Command(String),
}

impl Act {
    pub(super) fn file(path: &str, kind: ClaimKind) -> Self {
        Self::File(head(path, LONGEST).into_owned(), kind)
    }

    pub(super) fn command(command: &str) -> Self {
        Self::Command(head(command, LONGEST).into_owned())
    }
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    id: String,
    pub(super) tool: String,
    pub(super) act: Act,
}

/// The calls that are open, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls(VecDeque<Call>);

impl Calls {
    pub(super) fn open(&mut self, id: &str, tool: &str, act: Act) {
        if self.0.iter().any(|call| call.id == id) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(Call { id: head(id, 500).into_owned(), tool: head(tool, 500).into_owned(), act });
    }

    pub(super) fn close(&mut self, id: &str) -> Option<Call> {
        let at = self.0.iter().rposition(|call| call.id == id)?;
        self.0.remove(at)
    }

    /// Closes the oldest one, where results come in order and without a name.
    pub(super) fn close_oldest(&mut self) -> Option<Call> {
        self.0.pop_front()
    }

    /// The stream is over: commands whose end was not told were begun all the same, and often one of them is why it is
    /// over.
    pub(super) fn end(&mut self, heard: &mut Heard) {
        for call in self.0.drain(..) {
            if let Act::Command(command) = call.act {
                heard.command(&command, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way_and_commands_are_told_at_the_end() {
        let mut calls = Calls::default();
        for n in 0..MOST + 2 {
            calls.open(&n.to_string(), "sh", Act::command(&format!("run {n}")));
        }
        calls.open("2", "sh", Act::command("again"));
        calls.open("f", "write", Act::file("a", ClaimKind::Changed));
        assert!(calls.close("0").is_none() && calls.close("1").is_none());
        assert_eq!(calls.close("5").map(|call| call.act), Some(Act::command("run 5")));
        assert!(calls.close("5").is_none());
        let mut heard = Heard::default();
        calls.end(&mut heard);
        assert_eq!(heard.commands.len(), MOST - 2);
        assert_eq!(heard.commands[0].command, "run 3");
        assert!(heard.files.is_empty());
    }
}
