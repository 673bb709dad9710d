//! Differences between two trees of the store, told by the `git` command.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use triphammer_model::{Change, TreeId, WorkPath};

use crate::git::{complaint, drain, output_within};
use crate::root::work_path;
use crate::store_objects::{Store, StoreError};

/// How long git may think about a difference.
const PATIENCE: Duration = Duration::from_mins(10);

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
    /// A tree's id is none.
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
        let mut command = self.git();
        command.args(["diff-tree", "-r", "-z", "-M", "--name-status", "--no-ext-diff"]);
        let stdout = self.run(command, a, b)?;
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
        self.run(self.patch_command(), a, b)
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
        let (x, y) = (self.tree_id(a)?, self.tree_id(b)?);
        let mut command = self.git();
        command.arg("-c").arg(format!("core.bigFileThreshold={READABLE}")).args(DIFF).arg("-M");
        command.arg(x.to_string()).arg(y.to_string()).arg("--");
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(DiffError::Git)?;
        let stderr = drain(child.stderr.take());
        let mut stdout: Box<dyn Read> = match child.stdout.take() {
            Some(stdout) => Box::new(stdout),
            None => Box::new(io::empty()),
        };
        let taken = take(&mut stdout);
        // Whoever stopped reading has a reason of their own; git ends as it would have.
        io::copy(&mut stdout, &mut io::sink()).map_err(DiffError::Git)?;
        let status = child.wait().map_err(DiffError::Git)?;
        if status.success() {
            return Ok(taken);
        }
        let stderr = stderr.recv_timeout(PATIENCE).unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_default();
        let said = complaint(&Output { status, stdout: Vec::new(), stderr });
        Err(DiffError::Failed { a: a.clone(), b: b.clone(), said })
    }

    fn patch_command(&self) -> Command {
        let mut command = self.git();
        command.args(DIFF).args(["--binary", "-M"]);
        command
    }

    fn run(&self, mut command: Command, a: &TreeId, b: &TreeId) -> Result<Vec<u8>, DiffError> {
        let (x, y) = (self.tree_id(a)?, self.tree_id(b)?);
        command.arg(x.to_string()).arg(y.to_string()).arg("--");
        let output = output_within(command, PATIENCE).map_err(DiffError::Git)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(DiffError::Failed { a: a.clone(), b: b.clone(), said: complaint(&output) })
    }
}

fn change(change: Change, path: &[u8], from: Option<&[u8]>) -> TreeChange {
    TreeChange { change, path: work_path(path), renamed_from: from.map(work_path) }
}
