//! Writing to the terminal: data to stdout, talk to stderr; a closed pipe is no error of ours, and what others wrote
//! carries no terminal escapes.

use std::io::Write;

pub(crate) use triphammer_model::text::marked;

/// Writes a line of data to stdout.
pub(crate) fn data(line: &str) {
    let mut out = anstream::stdout().lock();
    let _ = writeln!(out, "{line}");
}

/// Writes bytes of data to stdout as they are, but for terminal escapes when stdout is a terminal. An error means
/// that nobody reads any more.
pub(crate) fn raw(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if std::io::IsTerminal::is_terminal(&out) {
        out.write_all(marked(&String::from_utf8_lossy(bytes)).as_bytes())?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// Writes text of one or more lines to stdout, without terminal escapes.
pub(crate) fn text(text: &str) {
    data(marked(text).trim_end_matches('\n'));
}

/// Writes a line of talk to stderr.
pub(crate) fn talk(line: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{line}");
}
