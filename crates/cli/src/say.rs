//! Writing to the terminal: data to stdout, talk to stderr; a closed pipe is no error of ours, and what others wrote
//! carries no terminal escapes.

use std::borrow::Cow;
use std::io::Write;

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
        out.write_all(plain(&String::from_utf8_lossy(bytes)).as_bytes())?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// Writes text of one or more lines to stdout, without terminal escapes.
pub(crate) fn text(text: &str) {
    data(plain(text).trim_end_matches('\n'));
}

/// Writes a line of talk to stderr.
pub(crate) fn talk(line: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{line}");
}

/// Text that others wrote, without control characters but for newline and tab.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(bad) {
        Cow::Owned(text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes_do_not_pass() {
        assert_eq!(super::plain("a\u{1b}[31mb\nc\t"), "a\u{fffd}[31mb\nc\t");
        assert_eq!(super::plain("plain"), "plain");
    }
}
