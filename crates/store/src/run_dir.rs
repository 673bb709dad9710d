//! One run's folder.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use triphammer_model::{Attempt, Redactor, RunId, RunSummary};

use crate::file::{FileError, read_bounded, write_whole};

/// Larger artifacts are not read into memory as a whole.
const LARGEST: u64 = 256 << 20;

/// A run's folder and the redactor that everything written to it passes.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    id: RunId,
    redactor: Redactor,
}

impl RunDir {
    /// The folder of run `id` at `path`.
    pub fn new(path: PathBuf, id: RunId, redactor: Redactor) -> Self {
        Self { path, id, redactor }
    }

    /// The run.
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// An attempt's folder.
    pub fn attempt(&self, attempt: Attempt) -> PathBuf {
        self.path.join("attempts").join(attempt.dir_name())
    }

    /// Files that live only as long as a process works on the run: pid files, scratch. Never sealed.
    pub fn live(&self) -> PathBuf {
        self.path.join("live")
    }

    /// Makes a folder below the run directory.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn make(&self, folder: &Path) -> Result<(), FileError> {
        std::fs::create_dir_all(folder).map_err(|e| FileError::new("making folder", folder, e))
    }

    /// Writes an artifact whole, redacted; its folder is made when missing.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self, relative: impl AsRef<Path>, bytes: &[u8]) -> Result<(), FileError> {
        if self.redactor.is_empty() {
            self.put(relative.as_ref(), bytes)
        } else {
            self.put(relative.as_ref(), &self.redactor.bytes(bytes))
        }
    }

    /// Takes a stream in as an artifact, redacted, without holding it in memory. What goes beyond `cap` bytes is left
    /// out, and a last line says how much that is.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn take_in(
        &self,
        relative: impl AsRef<Path>,
        input: &mut dyn Read,
        cap: u64,
    ) -> Result<(), FileError> {
        let to = self.path.join(relative);
        let mut copy = || -> std::io::Result<()> {
            // Whatever lies there was left by a crash or planted; it is not written through.
            let _ = std::fs::remove_file(&to);
            let mut output = std::fs::OpenOptions::new().write(true).create_new(true).open(&to)?;
            let mut stream = self.redactor.stream();
            let mut chunk = vec![0; 1 << 16];
            let mut settled = Vec::new();
            let (mut kept, mut whole) = (0, 0);
            loop {
                let n = input.read(&mut chunk)?;
                if n == 0 {
                    stream.finish(&mut settled);
                } else {
                    stream.push(&chunk[..n], &mut settled);
                }
                whole += settled.len() as u64;
                let room = usize::try_from(cap - kept).unwrap_or(usize::MAX).min(settled.len());
                output.write_all(&settled[..room])?;
                kept += room as u64;
                settled.clear();
                if n == 0 {
                    break;
                }
            }
            if whole > kept {
                writeln!(output, "\n[triphammer: {} more bytes are left out here]", whole - kept)?;
            }
            Ok(())
        };
        copy().map_err(|e| FileError::new("writing", &to, e))
    }

    fn put(&self, relative: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.path.join(relative);
        match write_whole(&path, bytes) {
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent() {
                    self.make(parent)?;
                }
                write_whole(&path, bytes)
            }
            other => other,
        }
    }

    /// Writes an artifact as indented JSON.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write_json(
        &self,
        relative: impl AsRef<Path>,
        value: &impl serde::Serialize,
    ) -> Result<(), FileError> {
        let failed = |e| FileError::new("encoding", relative.as_ref(), std::io::Error::other(e));
        let mut bytes = if self.redactor.is_empty() {
            serde_json::to_vec_pretty(value).map_err(failed)?
        } else {
            let mut value = serde_json::to_value(value).map_err(failed)?;
            self.redactor.json(&mut value);
            serde_json::to_vec_pretty(&value).map_err(failed)?
        };
        bytes.push(b'\n');
        self.put(relative.as_ref(), &bytes)
    }

    /// Reads an artifact.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(&self, relative: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
        read_bounded(&self.path.join(relative), LARGEST)
    }

    /// Reads a JSON artifact.
    ///
    /// # Errors
    /// [`FileError`], also when it does not parse.
    pub fn read_json<T: serde::de::DeserializeOwned>(
        &self,
        relative: impl AsRef<Path>,
    ) -> Result<T, FileError> {
        let path = self.path.join(relative);
        let bytes = read_bounded(&path, LARGEST)?;
        serde_json::from_slice(&bytes).map_err(|e| {
            FileError::new("parsing", &path, std::io::Error::new(std::io::ErrorKind::InvalidData, e))
        })
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write_summary(&self, summary: &RunSummary) -> Result<(), FileError> {
        self.write_json("run.json", summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream is taken in up to its cap, redacted also across chunk borders, with the exact rest told.
    #[test]
    fn what_is_taken_in_is_redacted_and_capped() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::new([("KEY".to_owned(), b"sk-secret".to_vec())]);
        let dir = RunDir::new(folder.path().to_owned(), RunId::new("r"), redactor);
        let at_border = "x".repeat((1 << 16) - 4);
        for (text, cap, want) in [
            (String::new(), 9, String::new()),
            ("whole".to_owned(), 5, "whole".to_owned()),
            ("0123456789".to_owned(), 4, "0123\n[triphammer: 6 more bytes are left out here]\n".to_owned()),
            (format!("{at_border}sk-secret!"), u64::MAX, format!("{at_border}[redacted:KEY]!")),
        ] {
            dir.take_in("taken", &mut text.as_bytes(), cap).unwrap();
            assert!(dir.read("taken").unwrap() == want.as_bytes(), "{cap}");
        }
        // A planted link is replaced, not written through.
        std::fs::write(folder.path().join("victim"), "keep").unwrap();
        std::fs::remove_file(folder.path().join("taken")).unwrap();
        std::os::unix::fs::symlink("victim", folder.path().join("taken")).unwrap();
        dir.take_in("taken", &mut "new".as_bytes(), 9).unwrap();
        assert_eq!(dir.read("victim").unwrap(), b"keep");
    }
}
