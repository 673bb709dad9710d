//! A run directory as a test reads it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use triphammer_model::{JournalLine, Movement, Receipt, Report};

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunFiles(PathBuf);

impl RunFiles {
    /// The directory at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The run's id.
    pub fn id(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A file's text.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn text(&self, path: &str) -> String {
        let path = self.0.join(path);
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("reading {}: {e}", path.display()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn json<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        let text = self.text(path);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path} does not parse: {e}\n{text}"))
    }

    /// `run.json`.
    pub fn summary(&self) -> Value {
        self.json("run.json")
    }

    /// An attempt's `movement.json`.
    pub fn movement(&self, attempt: u32) -> Movement {
        self.json(&format!("attempts/{attempt:03}/movement.json"))
    }

    /// An attempt's `report.json`.
    pub fn report(&self, attempt: u32) -> Report {
        self.json(&format!("attempts/{attempt:03}/report.json"))
    }

    /// An attempt's `receipt.json`.
    pub fn receipt(&self, attempt: u32) -> Receipt {
        self.json(&format!("attempts/{attempt:03}/receipt.json"))
    }

    /// An attempt's brief.
    pub fn brief(&self, attempt: u32) -> String {
        self.text(&format!("attempts/{attempt:03}/brief.md"))
    }

    /// The journal, with its chain checked.
    ///
    /// # Panics
    /// When it is damaged.
    pub fn journal(&self) -> Vec<JournalLine> {
        let read = triphammer_store::read_journal(&self.0.join("journal.jsonl"));
        read.unwrap_or_else(|e| panic!("{e}")).lines
    }
}
