//! What a run is judged against: copied, hashed, held in memory, and checked before each use.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use triphammer_model::{Digest, Redactor};
use triphammer_store::{FileError, RunDir};

/// Pinned inputs by their path below `pinned/`.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    texts: BTreeMap<String, Vec<u8>>,
    /// The stat under which a copy on disk was last found to be what is held in memory. A copy is read again only
    /// when its stat moved; ctime cannot be set back.
    seen: RefCell<BTreeMap<String, Stat>>,
}

/// Inode, size, modification and change time of a file.
type Stat = (u64, u64, i64, i64, i64, i64);

impl Pins {
    pub(crate) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.texts.insert(path.into(), bytes.into());
    }

    pub(crate) fn add_json(&mut self, path: &str, value: &impl serde::Serialize) {
        let bytes = serde_json::to_vec_pretty(value).expect("plain data always serialises");
        self.add(path, bytes);
    }

    pub(crate) fn get(&self, path: &str) -> Option<&[u8]> {
        self.texts.get(path).map(Vec::as_slice)
    }

    /// The pins below a folder, by their path inside it.
    pub(crate) fn below(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        self.texts
            .iter()
            .filter_map(|(path, bytes)| {
                Some((path.strip_prefix(folder)?.strip_prefix('/')?.to_owned(), bytes.clone()))
            })
            .collect()
    }

    /// The first of the texts that the run is judged by in which a secret's value stands, with the secret's name.
    /// Secrets are never written down, so a copy of it would say something else.
    pub(crate) fn holding_a_secret(&self, redactor: &Redactor) -> Option<(&str, String)> {
        const TEXTS: [&str; 4] = ["spec.md", "policy.toml", "gates/", "scripts/"];
        const MARK: &str = "[redacted:";
        let of_the_run =
            |path: &str| TEXTS.iter().any(|t| path == *t || t.ends_with('/') && path.starts_with(t));
        self.texts.iter().filter(|(path, _)| of_the_run(path)).find_map(|(path, bytes)| {
            let redacted = redactor.bytes(bytes);
            if redacted == *bytes {
                return None;
            }
            let (before, after) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&redacted));
            let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            // A value may begin as its mark does.
            let from = same.saturating_sub(MARK.len());
            let rest = after.get(from..).and_then(|rest| rest.split_once(MARK)).map_or("", |(_, rest)| rest);
            Some((path.as_str(), rest.split(']').next().unwrap_or_default().to_owned()))
        })
    }

    /// Writes them out and takes in what was written (a secret in them is redacted on disk).
    pub(crate) fn write(&mut self, dir: &RunDir) -> Result<BTreeMap<String, Digest>, FileError> {
        let mut digests = BTreeMap::new();
        for (path, bytes) in &mut self.texts {
            let relative = format!("pinned/{path}");
            dir.write(&relative, bytes)?;
            let written = dir.read(&relative)?;
            digests.insert(path.clone(), Digest::of(&written));
            // Whoever resumes the run has only what is on disk; both must judge against the same.
            *bytes = written;
        }
        Ok(digests)
    }

    /// Reads pins back; those whose digest is not the recorded one are returned beside.
    pub(crate) fn read(dir: &RunDir, digests: &BTreeMap<String, Digest>) -> (Self, Vec<String>) {
        let mut pins = Self::default();
        let mut broken = Vec::new();
        for (path, digest) in digests {
            match dir.read(format!("pinned/{path}")) {
                Ok(bytes) if Digest::of(&bytes) == *digest => pins.add(path.clone(), bytes),
                _ => broken.push(path.clone()),
            }
        }
        (pins, broken)
    }

    /// Pins whose copy on disk is no longer what is held in memory.
    pub(crate) fn broken(&self, dir: &RunDir) -> Vec<String> {
        let mut seen = self.seen.borrow_mut();
        self.texts
            .iter()
            .filter(|(path, bytes)| {
                let relative = format!("pinned/{path}");
                let now = stat(&dir.path().join(&relative));
                if now.is_some() && now == seen.get(*path).copied() {
                    return false;
                }
                let same = dir.read(&relative).ok().as_ref() == Some(*bytes);
                if let Some(now) = now.filter(|_| same) {
                    seen.insert((*path).clone(), now);
                }
                !same
            })
            .map(|(path, _)| path.clone())
            .collect()
    }
}

fn stat(path: &Path) -> Option<Stat> {
    let m = std::fs::symlink_metadata(path).ok()?;
    m.is_file().then(|| (m.ino(), m.size(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()))
}
