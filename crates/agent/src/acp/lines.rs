//! Lines of a bounded length.

use std::io::{self, BufRead};

/// Bytes of a line that is passed over that are shown.
const HEAD: usize = 4 << 10;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It is here as it is.
    Whole(Vec<u8>),
    /// It is longer than what is read.
    TooLong {
        /// How long.
        bytes: u64,
        /// Its beginning.
        head: Vec<u8>,
    },
}

/// The next line; `None` at the end. One that breaks off there is a line, too.
pub(super) fn next(reader: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut bytes = 0_u64;
    loop {
        let part = match reader.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if part.is_empty() && bytes == 0 {
            return Ok(None);
        }
        let end = part.iter().position(|b| *b == b'\n');
        let taken = end.unwrap_or(part.len());
        bytes += taken as u64;
        let room = if bytes <= longest as u64 { taken } else { HEAD.saturating_sub(line.len()).min(taken) };
        line.extend_from_slice(&part[..room]);
        let over = end.is_some() || part.is_empty();
        reader.consume(taken + usize::from(end.is_some()));
        if over {
            if bytes <= longest as u64 {
                return Ok(Some(Line::Whole(line)));
            }
            line.truncate(HEAD);
            return Ok(Some(Line::TooLong { bytes, head: line }));
        }
        if bytes > longest as u64 {
            line.truncate(HEAD);
            line.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn all(text: &[u8], step: usize, longest: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(step, Cursor::new(text));
        std::iter::from_fn(|| next(&mut reader, longest).expect("no error")).collect()
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_no_longer_than_allowed() {
        let whole = |text: &str| Line::Whole(text.into());
        for step in [1, 3, 4096] {
            assert_eq!(all(b"ab\n\ncdefg\nh", step, 5), [whole("ab"), whole(""), whole("cdefg"), whole("h")]);
            let long = Line::TooLong { bytes: 6, head: b"abcdef".to_vec() };
            assert_eq!(all(b"abcdef\nx\n", step, 5), [long, whole("x")]);
            assert_eq!(all(b"", step, 5), []);
        }
        let mut text = vec![b'x'; 100_000];
        text.push(b'\n');
        let Some(Line::TooLong { bytes, head }) = all(&text, 1000, 50_000).pop() else { panic!("too long") };
        assert_eq!((bytes, head.len()), (100_000, HEAD));
    }
}
