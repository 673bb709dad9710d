//! Text for people and for identities: what varies between two runs of the same failure is masked, what is
//! long is cut with exact counts.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What varies from run to run although the failure is the same.
static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
          (?P<thread>thread\s'[^']*')\s\(\d+\)
        | (?P<time>\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)
        | (?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)
        | (?P<addr>\b0x[0-9a-fA-F]{6,}\b)
        | (?P<dur>\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|milliseconds)\b)
        | (?P<tmp>(?:/private)?(?:/var)?/tmp/[^\s'\x22`:,;()\[\]<>]+)
        | (?P<pid>\b(?:pid|PID|process)[\s=:]+\d+\b)",
    )
    .expect("the pattern is fixed")
});

/// Masks volatile parts; paths below `workspace` become relative.
pub(crate) fn stable(text: &str, workspace: &Path) -> String {
    let mut text = text.to_owned();
    if let Some(root) = workspace.to_str()
        && root.len() > 1
    {
        text = text.replace(&format!("{}/", root.trim_end_matches('/')), "");
    }
    VOLATILE
        .replace_all(&text, |found: &Captures<'_>| {
            if let Some(thread) = found.name("thread") {
                thread.as_str().to_owned()
            } else if found.name("time").is_some() {
                "<time>".to_owned()
            } else if found.name("uuid").is_some() {
                "<uuid>".to_owned()
            } else if found.name("addr").is_some() {
                "<address>".to_owned()
            } else if found.name("dur").is_some() {
                "<duration>".to_owned()
            } else if found.name("tmp").is_some() {
                "<temporary path>".to_owned()
            } else {
                "<process>".to_owned()
            }
        })
        .into_owned()
}

/// The last `max` characters, with a marker that says exactly how many were left out before them.
pub(crate) fn tail(text: &str, max: usize) -> String {
    let total = text.chars().count();
    if total <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(total - max).collect();
    format!("[{} characters before this are not shown]\n{kept}", total - max)
}

/// The first `max` characters, with a marker that says exactly how many were left out after them.
pub(crate) fn head(text: &str, max: usize) -> String {
    let total = text.chars().count();
    if total <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max).collect();
    format!("{kept}\n[{} characters after this are not shown]", total - max)
}

/// One line of at most `max` characters for a message; a cut is marked by an ellipsis.
pub(crate) fn short(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line;
    }
    let kept: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_what_varies_and_keeps_what_tells() {
        for (raw, masked) in [
            (
                "thread 'a::b' (81234) panicked at src/lib.rs:5:9:",
                "thread 'a::b' panicked at src/lib.rs:5:9:",
            ),
            ("left: 41, right: 42", "left: 41, right: 42"),
            ("took 12ms and 0.03s", "took <duration> and <duration>"),
            ("at 0x7ffdeadbeef0 not 0xff", "at <address> not 0xff"),
            ("in /tmp/abc.XyZ/file.rs: no", "in <temporary path>: no"),
            ("2026-11-30T17:05:00.1Z x", "<time> x"),
            ("/ws/app/src/a.rs:3: bad", "src/a.rs:3: bad"),
            ("pid=4711 died", "<process> died"),
        ] {
            assert_eq!(stable(raw, Path::new("/ws/app")), masked, "{raw}");
        }
    }

    #[test]
    fn cuts_with_exact_counts() {
        assert_eq!(tail("abcdef", 4), "[2 characters before this are not shown]\ncdef");
        assert_eq!(head("abcdef", 4), "abcd\n[2 characters after this are not shown]");
        assert_eq!(short("a  b\nc", 9), "a b c");
        assert_eq!(short("abcdef", 4), "abc…");
    }
}
