//! Events on standard output.

use std::io::Write;

use serde::Serialize;

/// Prints events, a line each, at once.
pub(super) struct Printer<'a> {
    out: &'a mut dyn Write,
    broken: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, broken: false }
    }

    pub(super) fn print(&mut self, event: &impl Serialize) {
        let printed = serde_json::to_vec(event).map_err(std::io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.out.write_all(&line)?;
            self.out.flush()
        });
        self.broken |= printed.is_err();
    }

    /// Whether something could not be printed: whoever listened is gone, and work that nobody hears of is no use.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }
}
