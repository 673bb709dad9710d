//! An event stream of JSON lines, read as it comes in bounded memory. What cannot be read is counted and named, and
//! never ends the reading: the raw stream lies in the log.

use crate::event::{self, Json};
use crate::heard::Heard;

/// A longer line is not parsed. Agents put whole files and images (of at most 5 MB) into one line, but not larger ones.
const LONGEST: usize = 6 << 20;
/// Memory for a line that is kept from one to the next.
const KEPT: usize = 1 << 20;

/// Understands the events of one vendor. Every field of an event may be missing or of another type than it should.
pub(crate) trait Dialect: Send {
    /// Whether the rest of an event of this kind is of no interest, so that its line is not parsed. It is asked only
    /// for lines that begin with their kind; `event` gets the others whole.
    fn passes(&mut self, _kind: &str) -> bool {
        false
    }

    /// Takes one event in. What is of a kind that it does not know is let pass.
    fn event(&mut self, event: &Json<'_>, heard: &mut Heard);

    /// The process ended with this exit status, which is told before the end. It decides nothing, but some agents put
    /// more into it than into their stream.
    fn exited(&mut self, _status: i32, _heard: &mut Heard) {}

    /// The stream is over: says what follows from its end, such as a missing result.
    fn end(&mut self, heard: &mut Heard);
}

/// Cuts a stream into lines and hands each event to a dialect.
pub(crate) struct Stream {
    dialect: Box<dyn Dialect>,
    heard: Heard,
    /// The beginning of a line whose end has not come yet.
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
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if self.line.is_empty() && self.passed == 0 && line.len() <= LONGEST {
                self.number += 1;
                self.read(line);
            } else {
                self.hold(line);
                self.end_line();
            }
            piece = rest;
        }
        self.hold(piece);
    }

    fn hold(&mut self, part: &[u8]) {
        if self.passed > 0 || self.line.len() + part.len() > LONGEST {
            self.passed += (self.line.len() + part.len()) as u64;
            self.line = Vec::new();
        } else {
            let needed = self.line.len() + part.len();
            if needed > self.line.capacity() {
                // Twice as much as before, but never more than a line may have.
                let room = (2 * self.line.capacity()).clamp(needed, LONGEST);
                self.line.reserve_exact(room - self.line.len());
            }
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
        let mut line = std::mem::take(&mut self.line);
        self.read(&line);
        if line.capacity() <= KEPT {
            line.clear();
            self.line = line;
        }
    }

    fn read(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if event::kind_of(line).is_some_and(|kind| self.dialect.passes(kind)) {
            self.heard.event();
            return;
        }
        match event::read(line) {
            Some(event) => {
                self.heard.event();
                self.dialect.event(&event, &mut self.heard);
            }
            None => self.not_json += 1,
        }
    }

    /// Tells the exit status of the process, before [`Stream::end`].
    pub(crate) fn exited(&mut self, status: i32) {
        if !self.line.is_empty() || self.passed > 0 {
            self.end_line();
        }
        self.dialect.exited(status, &mut self.heard);
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
        fn passes(&mut self, kind: &str) -> bool {
            kind == "dull"
        }

        fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
            heard.says(&serde_json::to_string(event).expect("JSON"));
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
        let text =
            b"{\"a\":1}\n\n  {\"b\":\"\xc3\xbc\"}\r\n{\"type\":\"dull\",\"x\":0}\nplain\n[1]\n{\"cut\":";
        for step in [1, 3, 1000] {
            let receipt = read(text, step).into_receipt("x");
            assert_eq!(receipt.last_words.as_deref(), Some("{\"b\":\"ü\"}"));
            assert_eq!(receipt.troubles, ["3 of 7 lines are no JSON objects", "3 events"], "{step}");
        }
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let mut text = vec![b'x'; LONGEST + 10];
        text.extend_from_slice(b"\n{\"a\":1}\n");
        for step in [1 << 16, 1 << 30] {
            let receipt = read(&text, step).into_receipt("x");
            assert_eq!(receipt.last_words.as_deref(), Some("{\"a\":1}"));
            let trouble = format!("line 1 of {} bytes is too long to be read", LONGEST + 10);
            assert_eq!(receipt.troubles[0], trouble, "{step}");
        }
    }
}
