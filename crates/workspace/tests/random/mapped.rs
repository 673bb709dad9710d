//! A file in memory, shared with whoever else has it.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A shared, writable mapping of a whole file.
pub(crate) struct Mapped {
    map: memmap2::MmapMut,
}

impl Mapped {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        #[expect(
            unsafe_code,
            reason = "a store into a shared page is what is tested; nobody cuts the file meanwhile"
        )]
        let map = unsafe { memmap2::MmapMut::map_mut(&file)? };
        Ok(Self { map })
    }

    /// Reads a byte through the mapping.
    pub(crate) fn load(&self, at: usize) -> u8 {
        std::hint::black_box(self.map[at])
    }

    /// Writes a byte through the mapping, without reading it.
    pub(crate) fn store(&mut self, at: usize, byte: u8) {
        self.map[at] = std::hint::black_box(byte);
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        self.map.flush()
    }
}

/// The byte at the end of a file, read without any mapping.
pub(crate) fn last_byte(path: &Path) -> io::Result<(usize, u8)> {
    let file = std::fs::File::open(path)?;
    let at = file.metadata()?.len().checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    Ok((usize::try_from(at).map_err(io::Error::other)?, byte[0]))
}
