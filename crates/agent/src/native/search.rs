//! Lines of the workspace that fit a pattern.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use regex::bytes::RegexBuilder;

use super::inside::Inside;
use super::listing::{below, walk};
use super::shown::{self, Lines};

/// A larger file is not searched.
const LARGEST: u64 = 8 << 20;
/// Bytes of a line that are shown.
const LINE: usize = 300;
/// Memory that a pattern may take.
const PATTERN: usize = 4 << 20;
/// A zero byte among so many first ones makes a file a binary one.
const PEEK: usize = 8_000;

/// Shows matching lines.
pub(super) fn search(
    inside: &Inside,
    pattern: &str,
    target: &Path,
    timeout: Duration,
    room: usize,
) -> Result<String, String> {
    let start = Instant::now();
    let pattern = RegexBuilder::new(pattern)
        .size_limit(PATTERN)
        .dfa_size_limit(PATTERN)
        .build()
        .map_err(|error| format!("the pattern is none: {error}"))?;
    let mut lines = Lines::new(room.saturating_sub(300));
    let (mut files, mut searched, mut large, mut binary, mut unread, mut late) =
        (0_u64, 0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    for entry in walk(inside, target, None)? {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if start.elapsed() >= timeout {
            late += 1;
            continue;
        }
        let path = below(inside, entry.path());
        let mut text = Vec::new();
        let read = inside.open(&path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut text));
        if read.is_err() {
            unread += 1;
            continue;
        }
        if text.len() as u64 > LARGEST {
            large += 1;
            continue;
        }
        if text[..text.len().min(PEEK)].contains(&0) {
            binary += 1;
            continue;
        }
        searched += 1;
        let mut hit = false;
        for (number, line) in text.split(|b| *b == b'\n').enumerate() {
            if pattern.is_match(line) {
                hit = true;
                let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
                lines.push(&format!("{}:{}: {}", shown::path(&path), number + 1, shown::head(&line, LINE)));
            }
        }
        files += u64::from(hit);
    }
    let (kept, left_out) = (lines.kept, lines.left_out);
    let mut text = lines.text();
    let _ = write!(text, "[{} lines fit, in {files} of {searched} files that were searched", kept + left_out);
    if left_out > 0 {
        let _ = write!(text, "; {left_out} of these lines are left out, narrow the pattern or name a path");
    }
    for (count, why) in [
        (large, "larger than 8 MiB"),
        (binary, "binary"),
        (unread, "not readable"),
        (late, "not reached in time"),
    ] {
        if count > 0 {
            let _ = write!(text, "; not searched: {count} {why}");
        }
    }
    text.push(']');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn workspace() -> (tempfile::TempDir, Inside) {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("sub")).expect("a folder");
        let large = vec![b'a'; usize::try_from(LARGEST).expect("a size") + 1];
        for (path, text) in [
            (".gitignore", &b"ignored\n"[..]),
            ("a.txt", b"one\ntwo\r\none more\n"),
            ("sub/b.txt", b"none\n\xff one\n"),
            ("ignored", b"one\n"),
            ("binary", b"one\0\n"),
            ("large", &large),
        ] {
            std::fs::write(dir.path().join(path), text).expect("a file");
        }
        let inside = Inside::new(dir.path()).expect("a workspace");
        (dir, inside)
    }

    #[test]
    fn lines_with_their_places() {
        let (_dir, inside) = workspace();
        let text = search(&inside, r"\bone\b", Path::new(""), LONG, 10_000).expect("a search");
        assert_eq!(
            text,
            "a.txt:1: one\na.txt:3: one more\nsub/b.txt:2: \u{fffd} one\n\
             [3 lines fit, in 2 of 3 files that were searched; not searched: 1 larger than 8 MiB; not searched: 1 binary]"
        );
        let text = search(&inside, "^two$", Path::new("a.txt"), LONG, 10_000).expect("a search");
        assert_eq!(
            text, "[0 lines fit, in 0 of 1 files that were searched]",
            "a carriage return is a character"
        );
        let text = search(&inside, "none", Path::new("sub"), LONG, 10_000).expect("a search");
        assert!(text.starts_with("sub/b.txt:1: none\n[1 lines fit"), "{text}");
    }

    #[test]
    fn bounds_say_so() {
        let (_dir, inside) = workspace();
        let text = search(&inside, "o", Path::new(""), LONG, 330).expect("a search");
        assert!(
            text.starts_with("a.txt:1: one\na.txt:2: two\n[6 lines fit")
                || text.contains("of these lines are left out"),
            "{text}"
        );
        let text = search(&inside, "o", Path::new(""), Duration::ZERO, 1000).expect("a search");
        assert_eq!(
            text,
            "[0 lines fit, in 0 of 0 files that were searched; not searched: 5 not reached in time]"
        );
        for bad in ["(", "(a{500}){500}{500}", "(?<x"] {
            assert!(search(&inside, bad, Path::new(""), LONG, 1000).is_err(), "{bad}");
        }
        assert!(search(&inside, "x", Path::new("none"), LONG, 1000).is_err());
    }
}
