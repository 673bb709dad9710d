//! A stream on disk that never grows beyond its cap: the head, the tail, and the exact number of bytes between.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The line between head and tail has this length whatever the number, so that its place can be kept.
const MARKER: usize = 96;
/// The smallest cap: both halves and the marker need room.
const SMALLEST: u64 = 512;
/// Block size for putting the tail in order.
const BLOCK: usize = 64 * 1024;

/// A log file with a cap.
///
/// The first half of the cap is written once; the second half is a ring over which the stream runs for as long as it
/// likes. [`CappedLog::finish`] puts the ring in order in place, so that the disk never holds more than the cap (and,
/// while the stream runs, a note for whoever reads the file after a crash).
#[derive(Debug)]
pub(crate) struct CappedLog {
    file: File,
    head: u64,
    ring: u64,
    total: u64,
}

/// Follows the unordered ring until the log is finished.
const UNFINISHED: &[u8] = b"\n[triphammer: this log was cut off before it was put in order: its second half is a ring that was written over and over]\n";

impl CappedLog {
    /// Makes or empties the file at `path`; at most `cap` bytes will be kept, 512 at the least.
    pub(crate) fn create(path: &Path, cap: u64) -> io::Result<Self> {
        let cap = cap.max(SMALLEST);
        let head = cap / 2;
        Ok(Self { file: crate::plain_file::create(path)?, head, ring: cap - head, total: 0 })
    }

    /// Appends to the stream.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.total < self.head {
            let fits = usize::try_from(self.head - self.total).unwrap_or(usize::MAX).min(bytes.len());
            self.file.write_all_at(&bytes[..fits], self.total)?;
            self.total += fits as u64;
            bytes = &bytes[fits..];
        }
        while !bytes.is_empty() {
            let cap = self.head + self.ring;
            if self.total == cap {
                self.file.write_all_at(UNFINISHED, cap)?;
            }
            let at = (self.total - self.head) % self.ring;
            let fits = usize::try_from(self.ring - at).unwrap_or(usize::MAX).min(bytes.len());
            self.file.write_all_at(&bytes[..fits], self.head + at)?;
            self.total += fits as u64;
            bytes = &bytes[fits..];
        }
        Ok(())
    }

    /// Puts the tail in order and returns how many bytes of the stream the file does not hold.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let cap = self.head + self.ring;
        if self.total <= cap {
            return Ok(0);
        }
        let oldest = (self.total - self.head) % self.ring;
        self.rotate(oldest)?;
        // The marker takes the place of the oldest bytes of the tail; they count as left out.
        let omitted = self.total - cap + MARKER as u64;
        let text = format!("\n[triphammer: {omitted} bytes of this stream are left out here");
        self.file.write_all_at(format!("{text:<width$}]\n", width = MARKER - 2).as_bytes(), self.head)?;
        self.file.set_len(cap)?;
        Ok(omitted)
    }

    /// Rotates the ring left by `by` bytes: three reversals, in blocks.
    fn rotate(&self, by: u64) -> io::Result<()> {
        if by == 0 {
            return Ok(());
        }
        let (start, end) = (self.head, self.head + self.ring);
        self.reverse(start, start + by)?;
        self.reverse(start + by, end)?;
        self.reverse(start, end)
    }

    /// Reverses the bytes from `low` to `high`.
    fn reverse(&self, mut low: u64, mut high: u64) -> io::Result<()> {
        let (mut front, mut back) = (vec![0; BLOCK], vec![0; BLOCK]);
        while high - low > 1 {
            let half = usize::try_from((high - low) / 2).unwrap_or(usize::MAX).min(BLOCK);
            let (front, back) = (&mut front[..half], &mut back[..half]);
            self.file.read_exact_at(front, low)?;
            self.file.read_exact_at(back, high - half as u64)?;
            front.reverse();
            back.reverse();
            self.file.write_all_at(back, low)?;
            self.file.write_all_at(front, high - half as u64)?;
            low += half as u64;
            high -= half as u64;
        }
        Ok(())
    }
}

/// The end of a stream, in memory.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    cap: usize,
}

impl Tail {
    pub(crate) const fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let chunk = &chunk[chunk.len().saturating_sub(self.cap)..];
        // Twice the cap before anything is moved, so that a stream of small chunks is not moved all the time.
        if self.bytes.len() + chunk.len() > self.cap * 2 {
            let keep = self.cap - chunk.len();
            self.bytes.drain(..self.bytes.len().saturating_sub(keep));
        }
        self.bytes.extend_from_slice(chunk);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.drain(..self.bytes.len().saturating_sub(self.cap));
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the file must hold for a stream.
    fn expected(stream: &[u8], cap: usize) -> Vec<u8> {
        if stream.len() <= cap {
            return stream.to_vec();
        }
        let (head, ring) = (cap / 2, cap - cap / 2);
        let kept = ring - MARKER;
        let omitted = stream.len() - head - kept;
        let mut out = stream[..head].to_vec();
        let text = format!("\n[triphammer: {omitted} bytes of this stream are left out here");
        out.extend_from_slice(format!("{text:<94}]\n").as_bytes());
        out.extend_from_slice(&stream[stream.len() - kept..]);
        out
    }

    proptest! {
        #[test]
        fn keeps_head_and_tail(
            len in 0usize..9000,
            cap in 512usize..2000,
            chunks in proptest::collection::vec(1usize..3000, 1..6),
        ) {
            let stream: Vec<u8> = (0..len).map(|i| u8::try_from(i % 251).unwrap()).collect();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let mut log = CappedLog::create(&path, cap as u64).unwrap();
            let mut tail = Tail::new(cap / 3);
            let mut rest = &stream[..];
            for n in chunks.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*n).min(rest.len()));
                log.write(now).unwrap();
                tail.push(now);
                prop_assert!(std::fs::metadata(&path).unwrap().len() <= (cap + UNFINISHED.len()) as u64);
                rest = later;
            }
            let omitted = log.finish().unwrap();
            let found = std::fs::read(&path).unwrap();
            prop_assert_eq!(&found, &expected(&stream, cap));
            if len > cap {
                prop_assert_eq!(omitted, (len - (found.len() - MARKER)) as u64);
            } else {
                prop_assert_eq!(omitted, 0);
            }
            prop_assert_eq!(tail.finish(), &stream[len.saturating_sub(cap / 3)..]);
        }
    }

    #[test]
    fn reverses_more_than_a_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let stream: Vec<u8> = (0..1_000_000u32).map(|i| u8::try_from(i % 253).unwrap()).collect();
        let mut log = CappedLog::create(&path, 600_001).unwrap();
        stream.chunks(70_000).for_each(|c| log.write(c).unwrap());
        log.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == expected(&stream, 600_001));
    }

    #[test]
    fn an_unfinished_log_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = CappedLog::create(&path, 600).unwrap();
        log.write(&[b'x'; 2000]).unwrap();
        drop(log);
        assert!(std::fs::read(&path).unwrap().ends_with(UNFINISHED));
    }

    #[test]
    fn a_marker_holds_the_largest_number() {
        let text = format!("\n[triphammer: {} bytes of this stream are left out here", u64::MAX);
        assert!(text.len() <= MARKER - 2);
    }

    #[test]
    fn refuses_links_and_fifos() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("victim"), "keep").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        std::fs::hard_link(at("victim"), at("hard")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        for name in ["link", "hard", "fifo"] {
            assert!(CappedLog::create(&at(name), 1000).is_err(), "{name}");
        }
        assert_eq!(std::fs::read(at("victim")).unwrap(), b"keep");
    }
}
