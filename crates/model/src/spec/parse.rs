//! Reading a spec. All errors are collected, so that one look at the file mends them.

use super::fault::{Faults, SpecErrors, SpecFault};
use super::front::{self, Extent};
use super::{Spec, body};

/// A line with its number from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl Spec {
    /// Reads a spec. `file` is its name in errors. A byte-order mark and CRLF line ends are accepted; a draft is
    /// no error, since whether it may run is the run's question.
    ///
    /// # Errors
    /// [`SpecErrors`]: everything that is wrong, each with its line and its cure.
    pub fn parse(file: &str, text: impl AsRef<[u8]>) -> Result<Self, SpecErrors> {
        let mut faults = Faults::new(file);
        let bytes = text.as_ref();
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => {
                faults.push(line_at(bytes, error.valid_up_to()), SpecFault::NotUtf8);
                return faults.or(Self::default());
            }
        };
        if let Some(at) = bytes.iter().position(|b| *b == 0) {
            faults.push(line_at(bytes, at), SpecFault::Nul);
            return faults.or(Self::default());
        }
        let lines: Vec<Line<'_>> = text
            .split('\n')
            .enumerate()
            .map(|(i, text)| Line { number: i + 1, text: text.trim_end_matches('\r') })
            .collect();
        let mut spec = Self::default();
        let body = match front::extent(lines.iter().map(|l| l.text)) {
            Extent::Between(open, close) => {
                front::read(&lines[open + 1..close], &mut spec, &mut faults);
                &lines[close + 1..]
            }
            Extent::Unterminated(open) => {
                // What follows may be keys or body; guessing would bury this error below others.
                faults.push(lines[open].number, SpecFault::UnterminatedFrontmatter);
                return faults.or(spec);
            }
            Extent::Missing(at) => {
                faults.push(lines[at].number, SpecFault::NoFrontmatter);
                &lines[at..]
            }
        };
        body::read(body, &mut spec, &mut faults);
        faults.or(spec)
    }
}

fn line_at(bytes: &[u8], offset: usize) -> usize {
    bytes[..offset].split(|b| *b == b'\n').count()
}
