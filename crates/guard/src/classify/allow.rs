//! Commands that a person has allowed.

use super::arg::Arg;
use crate::parse::{Node, Piece, parse};

/// Simple commands that are not judged, by the words they begin with.
///
/// An entry exempts exactly the commands that begin with its words: not the line that they stand in, not what their
/// arguments run, not where their output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(Vec<Vec<String>>);

/// An entry that allows nothing in particular.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` allows no command: {reason}; write the words that the command begins with, such as `npm publish`"
)]
pub struct AllowError {
    /// The entry as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Allow {
    /// Reads entries as a person writes them: one simple command each, or its beginning.
    pub fn read<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, AllowError> {
        let mut read = Vec::new();
        for entry in entries {
            let entry = entry.as_ref();
            read.push(words(entry).map_err(|reason| AllowError { entry: entry.to_owned(), reason })?);
        }
        Ok(Self(read))
    }

    /// Whether a command is allowed.
    pub(super) fn covers(&self, command: &[Arg]) -> bool {
        self.0.iter().any(|words| {
            words.len() <= command.len() && words.iter().zip(command).all(|(word, arg)| arg.is(word))
        })
    }
}

fn words(entry: &str) -> Result<Vec<String>, &'static str> {
    let parsed = parse(entry);
    if parsed.trouble.is_some() {
        return Err("it is no shell syntax");
    }
    let [Node::Simple(simple)] = parsed.script.nodes.as_slice() else {
        return Err("it is not one simple command");
    };
    if simple.words.is_empty() || !simple.assignments.is_empty() || !simple.redirections.is_empty() {
        return Err("it is more or less than a name with its arguments");
    }
    let mut words = Vec::new();
    for word in &simple.words {
        let mut text = String::new();
        for piece in &word.pieces {
            match piece {
                Piece::Bare(part) | Piece::Quoted(part) => text.push_str(part),
                _ => return Err("it holds an expansion"),
            }
        }
        words.push(text);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_simple_command() {
        let allow = Allow::read(["npm publish", r#"git push "--force""#]).expect("both are commands");
        assert_eq!(allow.0, [vec!["npm", "publish"], vec!["git", "push", "--force"]]);
        for entry in ["", "  ", "a; b", "a | b", "A=1 b", "a > b", "a $b", "a 'b", "# a", "(a)"] {
            assert!(Allow::read([entry]).is_err(), "{entry}");
        }
        let error = Allow::read(["a; b"]).expect_err("two commands");
        assert_eq!(
            error.to_string(),
            "`a; b` allows no command: it is not one simple command; write the words that the command begins with, \
             such as `npm publish`"
        );
    }
}
