//! The digests that a `sealed` line lists.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use triphammer_model::{Digest, path};

use crate::file::{FileError, open_regular};

/// An artifact could not be hashed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ArtifactError(#[from] pub FileError);

/// Files at the top of a run directory that are no artifacts: the journal itself and what is derived or passing.
const NOT_ARTIFACTS: &[&str] = &["journal.jsonl", "run.json", "live"];

/// Hashes every file of a run directory, keyed by its escaped path below it. Links and special files are left out:
/// nothing in a run directory is one unless somebody planted it.
pub fn digest_artifacts(dir: &Path) -> Result<BTreeMap<String, Digest>, ArtifactError> {
    let mut found = BTreeMap::new();
    let mut pending = vec![(dir.to_owned(), Vec::new())];
    let mut buffer = vec![0; 1 << 16];
    while let Some((folder, prefix)) = pending.pop() {
        let failed = |e| FileError::new("listing", &folder, e);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if prefix.is_empty() && NOT_ARTIFACTS.iter().any(|n| name == *n) {
                continue;
            }
            let mut relative: Vec<u8> = prefix.clone();
            if !relative.is_empty() {
                relative.push(b'/');
            }
            relative.extend_from_slice(std::os::unix::ffi::OsStrExt::as_bytes(name.as_os_str()));
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                pending.push((entry.path(), relative));
            } else if kind.is_file() {
                let file = entry.path();
                let read = |e| FileError::new("hashing", &file, e);
                let mut reader = open_regular(&file).map_err(read)?;
                let mut hasher = Sha256::new();
                loop {
                    let n = reader.read(&mut buffer).map_err(read)?;
                    if n == 0 {
                        break;
                    }
                    hasher.update(&buffer[..n]);
                }
                found.insert(path::escape(&relative).into_owned(), Digest::from_hasher(hasher));
            }
        }
    }
    Ok(found)
}
