//! What a git repository knows of paths: a content that its refs lead to is worth nothing at another path.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use triphammer_model::WorkPath;

use crate::deeds::{Deed, Left};
use crate::git::{arg, complaint, git_in, take_within};
use crate::root::work_path;

/// More bytes of paths than this are not named on a command line; git then tells of all paths.
const MANY: usize = 32 << 10;

/// A git repository could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("the git repository at `{}` could not be asked: {said}", path.display())]
pub struct HistoryError {
    /// The folder.
    pub path: PathBuf,
    /// What git said.
    pub said: String,
}

/// Those of `wanted` that put something at a path below `folder` which the repository there has, or had, at this path:
/// in its index or in a commit that a ref leads to. Reflogs do not count.
pub(crate) fn known_to_git(
    folder: &Path,
    wanted: &HashSet<Deed>,
    patience: Duration,
) -> Result<HashSet<Deed>, HistoryError> {
    let asker = Asker { folder, wanted, patience };
    let mut known = asker.indexed()?;
    if known.len() < wanted.len() {
        known.extend(asker.committed()?);
    }
    Ok(known)
}

struct Asker<'a> {
    folder: &'a Path,
    wanted: &'a HashSet<Deed>,
    patience: Duration,
}

impl Asker<'_> {
    fn git(&self) -> Command {
        let mut command = git_in(self.folder);
        command.arg("--literal-pathspecs");
        command
    }

    /// Adds the paths that are asked for, unless they are too many.
    fn name_paths(&self, command: &mut Command) {
        command.arg("--");
        if self.wanted.iter().map(|deed| deed.path.as_bytes().len() + 1).sum::<usize>() <= MANY {
            command.args(self.wanted.iter().map(|deed| arg(deed.path.as_bytes())));
        }
    }

    fn indexed(&self) -> Result<HashSet<Deed>, HistoryError> {
        let mut command = self.git();
        command.args(["ls-files", "-s", "-z"]);
        self.name_paths(&mut command);
        // Mode, id, stage; a tab; the path. What is in conflict is not settled.
        self.sift(command, None, |field, _| {
            let tab = field.iter().position(|b| *b == b'\t')?;
            let text = std::str::from_utf8(&field[..tab]).ok()?;
            let (mode, id) = text.strip_suffix(" 0")?.split_once(' ')?;
            deed(mode, id, &field[tab + 1..])
        })
    }

    /// Each commit is compared with all its parents, so that whatever a path ever was comes up as what it became there.
    fn committed(&self) -> Result<HashSet<Deed>, HistoryError> {
        let mut command = self.git();
        command.args(["rev-list", "--all", "--full-history"]);
        self.name_paths(&mut command);
        let commits = self.answer(take_within(command, None, self.patience, |mut stdout| {
            let mut all = Vec::new();
            io::Read::read_to_end(&mut stdout, &mut all).map(|_| all)
        }))?;
        let mut command = self.git();
        command.args(["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "--no-abbrev", "-z"]);
        command.args(["--no-commit-id", "--no-renames", "--no-ext-diff", "--no-textconv", "--relative"]);
        self.name_paths(&mut command);
        // A colon, both modes, both ids, a letter; in the field after it the path.
        self.sift(command, Some(commits), |field, next| {
            let mut parts = std::str::from_utf8(field).ok()?.strip_prefix(':')?.split(' ');
            let (mode, id) = (parts.nth(1)?, parts.nth(1)?);
            deed(mode, id, &next()?)
        })
    }

    /// Of what a command tells, that which is wanted; `read` is handed a field and the way to the next one.
    fn sift(
        &self,
        command: Command,
        input: Option<Vec<u8>>,
        read: impl Fn(&[u8], &mut dyn FnMut() -> Option<Vec<u8>>) -> Option<Deed> + Send + 'static,
    ) -> Result<HashSet<Deed>, HistoryError> {
        let wanted = self.wanted.clone();
        self.answer(take_within(command, input, self.patience, move |stdout| {
            let mut found = HashSet::new();
            let mut fields = BufReader::new(stdout).split(0);
            while let Some(field) = fields.next() {
                let deed = read(&field?, &mut || fields.next()?.ok());
                found.extend(deed.filter(|deed| wanted.contains(deed)));
            }
            Ok(found)
        }))
    }

    fn answer<T>(&self, answer: io::Result<(T, Output)>) -> Result<T, HistoryError> {
        let said = match answer {
            Ok((taken, output)) if output.status.success() => return Ok(taken),
            Ok((_, output)) => complaint(&output),
            Err(error) => error.to_string(),
        };
        Err(HistoryError { path: self.folder.to_path_buf(), said })
    }
}

fn deed(mode: &str, id: &str, path: &[u8]) -> Option<Deed> {
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let id = id.parse().ok()?;
    let left = match mode & 0o170_000 {
        0o120_000 => Left::Link { id },
        0o100_000 => Left::file(id, mode),
        _ => return None,
    };
    let path: WorkPath = work_path(path);
    Some(Deed { path, left: Some(left) })
}
