//! A line as a shell would read it: POSIX `sh`, and `bash` as far as it is written by hand.
//!
//! The parser never gives up what it has read: at a syntax error it notes the first [`Trouble`], goes on behind it
//! and keeps the commands on both sides. Nesting is bounded by [`DEPTH`] and length by [`LENGTH`].
//!
//! A NUL cannot be part of a command's arguments. In a line it stands for text that is not known, which is how a
//! script put together from expansions (`sh -c "rm -rf $DIR"`) is read again.

mod commands;
mod cursor;
mod escapes;
mod heredocs;
mod tree;
mod words;

pub use tree::{Assignment, Compound, Link, Node, Piece, Redirection, Script, Simple, Word};

use cursor::Cursor;

/// Levels of nesting that are read.
pub const DEPTH: usize = 50;

/// Bytes of a line that are read.
pub const LENGTH: usize = 1 << 20;

/// Bytes of a simple command that are kept as its text.
pub const TEXT: usize = 240;

/// A line, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Its commands.
    pub script: Script,
    /// The bodies of its heredocs.
    pub heredocs: Vec<Word>,
    /// What could not be read, where something could not.
    pub trouble: Option<Trouble>,
}

/// Why a line, or a part of it, could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No shell reads it either, or it is syntax beyond this parser.
    #[error("no shell syntax that is known here: {what} in line {line}")]
    Syntax {
        /// What was missing or too much.
        what: &'static str,
        /// Counted from 1; within a nested script, from its start.
        line: usize,
    },
    /// Nested too deeply.
    #[error("nested deeper than {DEPTH} levels")]
    Deep,
    /// Too long.
    #[error("longer than {LENGTH} bytes")]
    Long,
}

/// Reads a line.
pub fn parse(line: &str) -> Parsed {
    let mut rest = line.len().min(LENGTH);
    while !line.is_char_boundary(rest) {
        rest -= 1;
    }
    let mut cursor = Cursor::new(&line[..rest]);
    let script = cursor.whole();
    let trouble = if rest < line.len() { Some(Trouble::Long) } else { cursor.trouble };
    Parsed { script, heredocs: cursor.heredocs, trouble }
}
