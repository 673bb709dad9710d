//! Events on standard output, and what was said to and fro between them: it is the only place where that is kept.

use std::io::Write;

use serde_json::json;

use super::lines::Line;
use crate::dialects::OwnEvent;

/// Bytes of a message that are kept.
const KEPT: usize = 1 << 20;
/// Bytes of a longer one, or of one that is none, that are kept.
const HEAD: usize = 4 << 10;

/// Prints to whoever reads it. That one is gone only when everything here is about to be killed, so errors are none.
pub(super) struct Printer<'a>(&'a mut dyn Write);

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self(out)
    }

    pub(super) fn event(&mut self, event: &OwnEvent) {
        let line = serde_json::to_vec(event).unwrap_or_default();
        self.line(&[&line]);
    }

    /// A message that was received, or what stood in its place.
    pub(super) fn received(&mut self, line: &Line, is_message: bool) {
        match line {
            Line::Whole(line) if is_message => self.message("received", line),
            Line::Whole(line) => self.head("received", line.len() as u64, line),
            Line::TooLong { bytes, head } => self.head("received", *bytes, head),
        }
    }

    /// A piece of a text that was received in a message of so many bytes; the text is printed as a whole.
    pub(super) fn chunk(&mut self, kind: &str, bytes: usize) {
        let line = json!({"type": "received", "chunk": kind, "bytes": bytes}).to_string();
        self.line(&[line.as_bytes()]);
    }

    /// A message that was sent, with the end of its line.
    pub(super) fn sent(&mut self, line: &[u8]) {
        self.message("sent", line.trim_ascii_end());
    }

    fn message(&mut self, kind: &str, line: &[u8]) {
        if line.len() > KEPT {
            return self.head(kind, line.len() as u64, line);
        }
        self.line(&[b"{\"type\":\"", kind.as_bytes(), b"\",\"message\":", line, b"}"]);
    }

    fn head(&mut self, kind: &str, bytes: u64, line: &[u8]) {
        let head = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
        let line = json!({"type": kind, "bytes": bytes, "head": head}).to_string();
        self.line(&[line.as_bytes()]);
    }

    fn line(&mut self, parts: &[&[u8]]) {
        for part in parts {
            let _ = self.0.write_all(part);
        }
        let _ = self.0.write_all(b"\n");
    }

    /// What was printed is on its way. Called whenever there is nothing to do but wait.
    pub(super) fn flush(&mut self) {
        let _ = self.0.flush();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_line_is_an_object_and_what_is_too_much_is_counted() {
        let mut out = Vec::new();
        let mut printer = Printer::new(&mut out);
        printer.received(&Line::Whole(b" {\"id\":1} ".to_vec()), true);
        printer.received(&Line::Whole(b"\xff\"".to_vec()), false);
        printer.received(&Line::TooLong { bytes: 7, head: b"x".to_vec() }, false);
        printer.sent(format!("\"{}\"\n", "y".repeat(KEPT)).as_bytes());
        let lines: Vec<Value> =
            out.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], json!({"type": "received", "message": {"id": 1}}));
        assert_eq!(lines[1], json!({"type": "received", "bytes": 2, "head": "\u{fffd}\""}));
        assert_eq!(lines[2], json!({"type": "received", "bytes": 7, "head": "x"}));
        assert_eq!((&lines[3]["type"], &lines[3]["bytes"]), (&json!("sent"), &json!(KEPT + 2)));
    }
}
