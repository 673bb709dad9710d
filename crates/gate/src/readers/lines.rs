//! Lines of a log that may hold anything: no line is longer than a bound, no byte stops the reading.

use std::io::{BufRead, BufReader, Read};

/// Longest part of a line that is looked at, in bytes.
const LINE_CAP: usize = 64 << 10;

/// An iterator over a log's lines as text. What is not UTF-8 becomes the replacement character.
pub(crate) struct Lines<R> {
    inner: BufReader<R>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner: BufReader::with_capacity(LINE_CAP, inner) }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line: Vec<u8> = Vec::new();
        let mut any = false;
        // A log that cannot be read further ends there; its gate's exit status still counts.
        while let Ok(chunk) = self.inner.fill_buf() {
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = chunk.iter().position(|b| *b == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = LINE_CAP - line.len().min(LINE_CAP);
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.inner.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return None;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_and_bounds() {
        let long = "x".repeat(3 * LINE_CAP);
        let text = format!("a\r\n\n{long}\n\u{fc}");
        let lines: Vec<String> = Lines::new(text.as_bytes()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[0].as_str(), lines[1].as_str(), lines[3].as_str()), ("a", "", "\u{fc}"));
        assert_eq!(lines[2].len(), LINE_CAP);
        assert_eq!(Lines::new(&b"\xff\n"[..]).collect::<Vec<_>>(), ["\u{fffd}"]);
        assert_eq!(Lines::new(&b""[..]).count(), 0);
    }
}
