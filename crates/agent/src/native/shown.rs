//! Output in bounded memory: its head and its tail, with the exact number of bytes between them.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;

use triphammer_model::path::escape;

/// Keeps the first and the last bytes of what runs through it.
#[derive(Debug)]
pub(super) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps about `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: most / 2, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(&rest[rest.len().saturating_sub(self.half)..]);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
    }

    /// The text, with a line where something is missing.
    pub(super) fn text(&self) -> String {
        let (first, last) = self.tail.as_slices();
        let tail = [first, last].concat();
        let left_out = self.total - (self.head.len() + tail.len()) as u64;
        if left_out == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        let total = self.total;
        let _ = write!(
            text,
            "\n[{left_out} of {total} bytes are left out here; write the output to a file to see them]\n"
        );
        text.push_str(&String::from_utf8_lossy(&tail));
        text
    }
}

/// Lines as long as there is room; further ones are counted.
#[derive(Debug)]
pub(super) struct Lines {
    text: String,
    room: usize,
    pub(super) kept: u64,
    pub(super) left_out: u64,
}

impl Lines {
    pub(super) fn new(room: usize) -> Self {
        Self { text: String::new(), room, kept: 0, left_out: 0 }
    }

    pub(super) fn push(&mut self, line: &str) {
        if self.left_out == 0 && self.text.len() + line.len() < self.room {
            self.text.push_str(line);
            self.text.push('\n');
            self.kept += 1;
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// The first `most` bytes of a text, with the number of those left out.
pub(super) fn head(text: &str, most: usize) -> String {
    crate::heard::head(text, most).into_owned()
}

/// A path as one line of text that can be given back: a line break in a name is escaped as well.
pub(super) fn path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    escape(path.as_os_str().as_bytes()).replace('\n', "\\x0a").replace('\r', "\\x0d")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_with_exact_counts() {
        let feed = |most: usize, text: &str, step: usize| {
            let mut kept = HeadTail::new(most);
            text.as_bytes().chunks(step).for_each(|piece| kept.push(piece));
            kept.text()
        };
        for step in [1, 3, 100] {
            assert_eq!(feed(10, "0123456789", step), "0123456789");
            let text = feed(10, "0123456789abcdef", step);
            assert!(text.starts_with("01234\n[6 of 16 bytes are left out here;"), "{text}");
            assert!(text.ends_with("]\nbcdef"), "{text}");
            assert_eq!(feed(10, "", step), "");
        }
    }

    #[test]
    fn lines_are_kept_in_order_or_counted() {
        let mut lines = Lines::new(10);
        for line in ["abc", "def", "long line", "x"] {
            lines.push(line);
        }
        assert_eq!((lines.kept, lines.left_out), (2, 2), "nothing after the first that is left out");
        assert_eq!(lines.text(), "abc\ndef\n");
    }
}
