//! Changing a spec's status in its text, and nothing else.

use super::front::{Extent, extent, key_of};
use super::{Status, value};

/// A spec's status could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetStatusError {
    /// There is no frontmatter to hold it.
    #[error("setting the status: the spec has no frontmatter between two lines `---`; add it")]
    NoFrontmatter,
}

/// The same text with the status `status`; every other byte stays. A spec without a `status:` line gets one as
/// its first key.
///
/// # Errors
/// [`SetStatusError`] when the text has no frontmatter.
pub fn set_status(text: &str, status: Status) -> Result<String, SetStatusError> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let lines: Vec<&str> = text[start..].split('\n').collect();
    let Extent::Between(open, close) = extent(lines.iter().copied()) else {
        return Err(SetStatusError::NoFrontmatter);
    };
    let offset = |index: usize| start + lines[..index].iter().map(|l| l.len() + 1).sum::<usize>();
    for (i, line) in lines.iter().enumerate().take(close).skip(open + 1) {
        let line = line.trim_end();
        let Some(("status", rest)) = key_of(line) else { continue };
        let old = rest.trim_start();
        let len = value::plain_len(old, false);
        let begin = offset(i) + line.len() - old.len();
        let before = if old.len() == rest.len() { " " } else { "" };
        // Nothing but a comment: keep it one.
        let after = if len == 0 && !old.is_empty() { " " } else { "" };
        let word = status.as_str();
        return Ok(format!("{}{before}{word}{after}{}", &text[..begin], &text[begin + len..]));
    }
    let at = offset(open + 1);
    let end = if lines[open].ends_with('\r') { "\r\n" } else { "\n" };
    Ok(format!("{}status: {}{end}{}", &text[..at], status.as_str(), &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_the_line_and_no_more() {
        for (before, after) in [
            (
                "---\nstatus: draft\n---\n# Goal\nstatus: draft\n",
                "---\nstatus: locked\n---\n# Goal\nstatus: draft\n",
            ),
            (
                "---\r\na: b\r\nstatus:  draft   # not yet\r\n---\r\n",
                "---\r\na: b\r\nstatus:  locked   # not yet\r\n---\r\n",
            ),
            ("\u{feff}---\nstatus:draft\n---\n", "\u{feff}---\nstatus: locked\n---\n"),
            ("---\nstatus: \"draft\" # x\n---", "---\nstatus: locked # x\n---"),
            ("---\r\nattempts: 3\r\n---\r\n", "---\r\nstatus: locked\r\nattempts: 3\r\n---\r\n"),
            ("\n---\n---\n", "\n---\nstatus: locked\n---\n"),
            ("---\r\nstatus:\r\n---\r\n", "---\r\nstatus: locked\r\n---\r\n"),
            ("---\nstatus:\n---\n", "---\nstatus: locked\n---\n"),
            ("---\nstatus: # x\n---\n", "---\nstatus: locked # x\n---\n"),
            ("---\nstatus: locked\n---\n", "---\nstatus: locked\n---\n"),
        ] {
            assert_eq!(set_status(before, Status::Locked).as_deref(), Ok(after), "{before:?}");
        }
        for bad in ["", "# Goal\n", "---\nstatus: draft\n"] {
            assert_eq!(set_status(bad, Status::Locked), Err(SetStatusError::NoFrontmatter));
        }
    }
}
