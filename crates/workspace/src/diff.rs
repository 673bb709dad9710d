//! Differences between two trees of the store, told by the `git` command.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use triphammer_model::{Change, TreeId, WorkPath};

use crate::git::{PATIENCE, complaint, stream_within};
use crate::root::work_path;
use crate::store_objects::{Store, StoreError};

/// The largest file whose lines are compared in a text to be read.
pub const READABLE: u64 = 8 << 20;

/// What a difference is asked for with; nothing of the trees' own making is run.
const DIFF: [&str; 4] = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];

/// Two trees could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The `git` command could not be run.
    #[error("git could not be run to compare trees ({0}): install git")]
    Git(io::Error),
    /// It failed.
    #[error("git could not compare {a} and {b}: {said}")]
    Failed {
        /// One tree.
        a: TreeId,
        /// The other.
        b: TreeId,
        /// What git said.
        said: String,
    },
    /// It waits for something.
    #[error(
        "git was silent for {} s while it compared {a} and {b}, and was ended: something keeps it waiting; \
         `find '{}' ! -type f ! -type d` names what is no file",
        patience.as_secs(), objects.display()
    )]
    Silent {
        /// One tree.
        a: TreeId,
        /// The other.
        b: TreeId,
        /// How long it was waited for.
        patience: Duration,
        /// Where the objects are.
        objects: PathBuf,
    },
    /// A tree's id is none, or the store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// How.
    pub change: Change,
    /// The path.
    pub path: WorkPath,
    /// For an added path: the deleted path that git takes it for.
    pub renamed_from: Option<WorkPath>,
}

impl Store {
    /// The paths that differ from tree `a` to tree `b`, sorted.
    ///
    /// # Errors
    /// [`DiffError`].
    pub fn diff(&self, a: &TreeId, b: &TreeId) -> Result<Vec<TreeChange>, DiffError> {
        let how = ["diff-tree", "-r", "-z", "-M", "--name-status", "--no-ext-diff"].map(str::to_owned);
        let stdout = self.read(&how, a, b)?;
        let mut fields = stdout.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            match status.first() {
                Some(b'A') => changes.push(change(Change::Added, path, None)),
                Some(b'D') => changes.push(change(Change::Deleted, path, None)),
                Some(b'R') => {
                    let to = fields.next().unwrap_or_default();
                    changes.push(change(Change::Deleted, path, None));
                    changes.push(change(Change::Added, to, Some(path)));
                }
                _ => changes.push(change(Change::Changed, path, None)),
            }
        }
        changes.sort_by(|x, y| x.path.cmp(&y.path));
        Ok(changes)
    }

    /// The difference from tree `a` to tree `b` as a patch that `git apply` takes.
    ///
    /// # Errors
    /// [`DiffError`].
    pub fn diff_patch(&self, a: &TreeId, b: &TreeId) -> Result<Vec<u8>, DiffError> {
        self.read(&diff_with(&["--binary"]), a, b)
    }

    /// Hands the difference from tree `a` to tree `b` to `take` as it comes, to be read by somebody. Binary files, and
    /// those beyond [`READABLE`], are only named: encoded bytes tell a reader nothing, could hide from whoever looks
    /// for a secret in the text, and may be any number.
    ///
    /// # Errors
    /// [`DiffError`].
    pub fn diff_text<T>(
        &self,
        a: &TreeId,
        b: &TreeId,
        take: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<T, DiffError> {
        let mut how = vec!["-c".to_owned(), format!("core.bigFileThreshold={READABLE}")];
        how.extend(diff_with(&[]));
        self.compare(&how, a, b, PATIENCE, take)
    }

    fn read(&self, how: &[String], a: &TreeId, b: &TreeId) -> Result<Vec<u8>, DiffError> {
        let mut all = Vec::new();
        let read = self.compare(how, a, b, PATIENCE, |from| from.read_to_end(&mut all).map(drop))?;
        read.map_err(DiffError::Git)?;
        Ok(all)
    }

    fn compare<T>(
        &self,
        how: &[String],
        a: &TreeId,
        b: &TreeId,
        patience: Duration,
        take: impl FnOnce(&mut dyn Read) -> T,
    ) -> Result<T, DiffError> {
        let (x, y) = (self.tree_id(a)?, self.tree_id(b)?);
        let scratch = self.scratch()?;
        let mut command = scratch.git();
        command.args(how).arg(x.to_string()).arg(y.to_string()).arg("--");
        let (a, b) = (a.clone(), b.clone());
        match stream_within(command, patience, take) {
            Ok((taken, Output { status, .. })) if status.success() => Ok(taken),
            Ok((_, output)) => Err(DiffError::Failed { a, b, said: complaint(&output) }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(DiffError::Silent { a, b, patience, objects: self.dir().join("objects") })
            }
            Err(error) => Err(DiffError::Git(error)),
        }
    }
}

fn diff_with(more: &[&str]) -> Vec<String> {
    DIFF.iter().chain(more).chain(&["-M"]).map(|&word| word.to_owned()).collect()
}

fn change(change: Change, path: &[u8], from: Option<&[u8]>) -> TreeChange {
    TreeChange { change, path: work_path(path), renamed_from: from.map(work_path) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_objects::ObjectKind;

    /// A tree that cannot be read without waiting for ever.
    #[test]
    fn git_that_falls_silent_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs/.store.git")).unwrap();
        let tree = TreeId::from(store.put(ObjectKind::Tree, b"").unwrap());
        let other = TreeId::new("12".repeat(20));
        let place = store.loose(&store.tree_id(&other).unwrap());
        std::fs::create_dir(place.parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status().unwrap();
        assert!(made.success());
        let patience = Duration::from_millis(100);
        let error = store.compare(&diff_with(&[]), &tree, &other, patience, |_| ()).unwrap_err();
        assert!(matches!(error, DiffError::Silent { .. }), "{error}");
        assert!(error.to_string().contains(&format!("find '{}/objects'", store.dir().display())), "{error}");
    }
}
