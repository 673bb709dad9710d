//! An event stream of JSON lines, read as it comes in bounded memory. What cannot be read is counted and named, and
//! never ends the reading: the raw stream lies in the log.

use serde_json::Value;

use crate::heard::Heard;

/// A longer line is not parsed. Agents put whole files into one line, but not larger ones.
const LONGEST: usize = 8 << 20;

/// Understands the events of one vendor.
pub(crate) trait Dialect: Send {
    /// Takes one event in. What is of a kind that it does not know is let pass.
    fn event(&mut self, event: &Value, heard: &mut Heard);

    /// The stream is over: says what follows from its end, such as a missing result.
    fn end(&mut self, heard: &mut Heard);
}

/// Cuts a stream into lines and hands each event to a dialect.
pub(crate) struct Stream {
    dialect: Box<dyn Dialect>,
    heard: Heard,
    line: Vec<u8>,
    /// Bytes of the line at hand that are passed over because it is too long.
    passed: u64,
    not_json: u64,
    number: u64,
}

impl Stream {
    pub(crate) fn new(dialect: Box<dyn Dialect>) -> Self {
        Self { dialect, heard: Heard::default(), line: Vec::new(), passed: 0, not_json: 0, number: 0 }
    }

    /// Takes the next piece in.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|b| *b == b'\n') {
            self.hold(&piece[..end]);
            piece = &piece[end + 1..];
            self.end_line();
        }
        self.hold(piece);
    }

    fn hold(&mut self, part: &[u8]) {
        if self.passed > 0 || self.line.len() + part.len() > LONGEST {
            self.passed += (self.line.len() + part.len()) as u64;
            self.line.clear();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        self.number += 1;
        let passed = std::mem::take(&mut self.passed);
        if passed > 0 {
            let number = self.number;
            self.heard.trouble(format!("line {number} of {passed} bytes is too long to be read"));
            return;
        }
        let line = self.line.trim_ascii();
        if !line.is_empty() {
            match serde_json::from_slice::<Value>(line) {
                Ok(event) if event.is_object() => {
                    self.heard.event();
                    self.dialect.event(&event, &mut self.heard);
                }
                _ => self.not_json += 1,
            }
        }
        self.line.clear();
    }

    /// What was heard in all.
    pub(crate) fn end(mut self) -> Heard {
        if !self.line.is_empty() || self.passed > 0 {
            self.end_line();
        }
        if self.not_json > 0 {
            let (bad, all) = (self.not_json, self.number);
            self.heard.trouble(format!("{bad} of {all} lines are no JSON objects"));
        }
        self.dialect.end(&mut self.heard);
        self.heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counts;

    impl Dialect for Counts {
        fn event(&mut self, event: &Value, heard: &mut Heard) {
            heard.says(&event.to_string());
        }

        fn end(&mut self, heard: &mut Heard) {
            let events = heard.events();
            heard.trouble(format!("{events} events"));
        }
    }

    fn read(text: &[u8], step: usize) -> Heard {
        let mut stream = Stream::new(Box::new(Counts));
        text.chunks(step).for_each(|piece| stream.push(piece));
        stream.end()
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = b"{\"a\":1}\n\n  {\"b\":\"\xc3\xbc\"}\r\nplain\n[1]\n{\"cut\":";
        for step in [1, 3, 1000] {
            let receipt = read(text, step).into_receipt("x");
            assert_eq!(receipt.last_words.as_deref(), Some("{\"b\":\"ü\"}"));
            assert_eq!(receipt.troubles, ["3 of 6 lines are no JSON objects", "2 events"], "{step}");
        }
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let mut text = vec![b'x'; LONGEST + 10];
        text.extend_from_slice(b"\n{\"a\":1}\n");
        let receipt = read(&text, 1 << 16).into_receipt("x");
        assert_eq!(receipt.last_words.as_deref(), Some("{\"a\":1}"));
        assert_eq!(receipt.troubles[0], format!("line 1 of {} bytes is too long to be read", LONGEST + 10));
    }
}
