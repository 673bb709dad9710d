//! Whether work exists outside of the store: at its path in a folder, or at its path in what the git repository there
//! keeps. What no ref and no index leads to, but for a reflog, is as good as gone: git drops it one day. And content
//! alone is not all: where it stood is a part of the work, and so is what was taken away.
//!
//! The folders are an agent's or a person's. Files that could not be what is looked for are not read, and no question
//! reads more than a bound; what was not read is not there, so that the store's copy stays.

use std::collections::HashSet;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use triphammer_model::WorkPath;

use crate::deeds::{Deed, Left};
use crate::git::{complaint, exchange_within, git_in, is_repository, output_within, sift_within};
use crate::history::{HistoryError, known_to_git};
use crate::infrastructure::INFRASTRUCTURE_LIMIT;
use crate::object_id::{ObjectId, ObjectKind, hash_file, id_lines};
use crate::root::{Root, WorkspaceError, join, kind_of, work_path};
use crate::store_objects::Store;
use crate::zones::{Zone, ZoneMap};

/// How long a person's git may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);

/// No larger file is ever stored, so the content of one is known nowhere.
const LARGEST_READ: u64 = INFRASTRUCTURE_LIMIT;

/// No question reads more than this, which takes a minute or so.
const MOST_READ: u64 = 32 << 30;

/// It could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ElsewhereError {
    /// The folder is gone or cannot be read.
    #[error(transparent)]
    Folder(#[from] WorkspaceError),
    /// The repository does not answer.
    #[error(transparent)]
    Git(#[from] HistoryError),
    /// What the repository holds is what the store holds.
    #[error("the git repository at `{}` borrows its objects from this home's store", path.display())]
    Borrows {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder cannot be read.
    #[error("`{path}` could not be read ({source})")]
    Read {
        /// The path.
        path: WorkPath,
        /// What the system said.
        source: io::Error,
    },
}

impl Store {
    /// What of `work` neither stands so below `folder` nor is known to the git repository there at the same path. Reads
    /// only.
    ///
    /// # Errors
    /// [`ElsewhereError`] when that cannot be asked.
    pub fn not_found_in(&self, folder: &Path, work: Vec<Deed>) -> Result<Vec<Deed>, ElsewhereError> {
        let root = Root::open(folder)?;
        let mut reader = Reader::new(&root);
        let mut missing = work;
        missing.retain(|deed| !reader.shows(deed, self));
        let contents: Vec<&ObjectId> =
            missing.iter().filter_map(|deed| Some(deed.left.as_ref()?.id())).collect();
        if contents.is_empty() || !is_repository(root.path()) {
            return Ok(missing);
        }
        self.check_own_objects(root.path())?;
        // What is no object at all is in no commit, and that is told at once.
        let mut command = git_in(root.path());
        command.args(["cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"]);
        let output = exchange_within(command, id_lines(contents), PATIENCE)
            .map_err(|e| unanswered(root.path(), e.to_string()))?;
        if !output.status.success() {
            return Err(unanswered(root.path(), complaint(&output)));
        }
        let there: HashSet<ObjectId> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.strip_suffix(" blob")?.parse().ok())
            .collect();
        let is_there = |deed: &&Deed| deed.left.as_ref().is_some_and(|left| there.contains(left.id()));
        let wanted: HashSet<Deed> = missing.iter().filter(is_there).cloned().collect();
        if !wanted.is_empty() {
            let known = known_to_git(root.path(), &wanted, PATIENCE)?;
            missing.retain(|deed| !known.contains(deed));
        }
        Ok(missing)
    }

    /// A repository whose objects are those of this store, by a link or by borrowing, would lose them with it. An agent
    /// can arrange that.
    fn check_own_objects(&self, folder: &Path) -> Result<(), ElsewhereError> {
        let failed = |said| unanswered(folder, said);
        let ask = |args: &[&str]| {
            let mut command = git_in(folder);
            command.args(args);
            match output_within(command, PATIENCE) {
                Ok(output) if output.status.success() => Ok(output.stdout),
                Ok(output) => Err(failed(complaint(&output))),
                Err(error) => Err(failed(error.to_string())),
            }
        };
        let mut places = vec![ask(&["rev-parse", "--git-path", "objects"])?];
        places.extend(
            ask(&["count-objects", "-v"])?
                .split(|b| *b == b'\n')
                .filter_map(|line| line.strip_prefix(b"alternate: "))
                .map(<[u8]>::to_vec),
        );
        let own = std::fs::canonicalize(self.dir()).map_err(|e| failed(e.to_string()))?;
        for place in places {
            let place = place.strip_suffix(b"\n").unwrap_or(&place);
            let place = folder.join(crate::git::arg(place));
            for sub in ["", "pack"] {
                let real = std::fs::canonicalize(place.join(sub)).unwrap_or_else(|_| place.join(sub));
                if real.starts_with(&own) {
                    return Err(ElsewhereError::Borrows { path: folder.to_path_buf() });
                }
            }
        }
        Ok(())
    }
}

fn unanswered(folder: &Path, said: String) -> ElsewhereError {
    ElsewhereError::Git(HistoryError { path: folder.to_path_buf(), said })
}

/// Those of `commits` that the refs of the repository at `folder` lead to. Reflogs do not count.
fn reachable(folder: &Path, commits: HashSet<ObjectId>) -> Result<HashSet<ObjectId>, ElsewhereError> {
    let mut command = git_in(folder);
    command.args(["rev-list", "--all"]);
    let sifted =
        sift_within(command, PATIENCE, move |line| parse(line).is_some_and(|id| commits.contains(&id)));
    match sifted {
        Ok(output) if output.status.success() => {
            Ok(output.stdout.split(|b| *b == b'\n').filter_map(parse).collect())
        }
        Ok(output) => Err(unanswered(folder, complaint(&output))),
        Err(error) => Err(unanswered(folder, error.to_string())),
    }
}

fn parse(line: &[u8]) -> Option<ObjectId> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// Reads files of a folder to name their content, and never more than a bound in all: one that says that it is huge, or
/// many, must not hold a clean-up up.
struct Reader<'a> {
    root: &'a Root,
    left: u64,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Root) -> Self {
        Self { root, left: MOST_READ }
    }

    /// Whether what a run did at a path is what is there.
    fn shows(&mut self, deed: &Deed, store: &Store) -> bool {
        let path = deed.path.as_bytes();
        let stat = match self.root.stat(path) {
            Ok(stat) => stat,
            // A part of the way is no folder, so nothing is at this path.
            Err(Errno::NOTDIR | Errno::LOOP) => None,
            Err(_) => return false,
        };
        let kind = stat.as_ref().map(kind_of);
        match (deed.left, kind) {
            (None, None | Some(FileType::Directory)) => true,
            (Some(Left::Link { id }), Some(FileType::Symlink)) => {
                self.root.read_link(path).is_ok_and(|target| ObjectKind::Blob.id_of(&target) == id)
            }
            (Some(left @ Left::File { id, .. }), Some(FileType::RegularFile)) => {
                let mode = stat.map_or(0, |stat| stat.st_mode);
                left == Left::file(id, mode)
                    && self.file_id(path, store.size_of(&id)).ok().flatten() == Some(id)
            }
            _ => false,
        }
    }

    /// What a file's content is called; `None` when it is not `size` bytes, or more than is read.
    fn file_id(&mut self, path: &[u8], size: Option<u64>) -> io::Result<Option<ObjectId>> {
        let (fd, stat) = self.root.open_file(path)?;
        let has = u64::try_from(stat.st_size).unwrap_or(0);
        if size.is_some_and(|size| size != has) || has > LARGEST_READ || has > self.left {
            return Ok(None);
        }
        self.left -= has;
        hash_file(&mut File::from(fd), has).map(Some)
    }
}

/// How many commits the repository at `clone` has that no ref of the one at `origin` leads to.
///
/// # Errors
/// [`ElsewhereError::Git`] when one of them does not answer.
pub fn commits_not_in(clone: &Path, origin: &Path) -> Result<usize, ElsewhereError> {
    let failed = |said| unanswered(clone, said);
    let mut command = git_in(clone);
    command.args(["rev-list", "--all", "--reflog"]);
    let output = output_within(command, PATIENCE).map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(complaint(&output)));
    }
    let commits: HashSet<ObjectId> = output.stdout.split(|b| *b == b'\n').filter_map(parse).collect();
    let all = commits.len();
    Ok(all - reachable(origin, commits)?.len())
}

/// The files and links of a folder's deliverable whose content is not among `known`, at most `limit` of them. Caches
/// and tool folders are not looked into; a repository is named, for nobody knows what it holds, but for one at the top
/// when `own_repository` says that it is accounted for.
///
/// # Errors
/// [`ElsewhereError`] when a part of it cannot be read.
pub fn unknown_content(
    folder: &Path,
    zones: &ZoneMap,
    known: &HashSet<ObjectId, impl BuildHasher>,
    own_repository: bool,
    limit: usize,
) -> Result<Vec<WorkPath>, ElsewhereError> {
    let root = Root::open(folder)?;
    let mut reader = Reader::new(&root);
    let mut unknown = Vec::new();
    let mut pending = vec![Vec::new()];
    while let Some(dir) = pending.pop() {
        let failed = |path: &[u8]| {
            let path = work_path(path);
            move |source: Errno| ElsewhereError::Read { path, source: source.into() }
        };
        let entries = root.open_dir(&dir).and_then(|fd| Dir::read_from(&fd)).map_err(failed(&dir))?;
        for entry in entries {
            let entry = entry.map_err(failed(&dir))?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let path = join(&dir, name);
            if name.eq_ignore_ascii_case(b".git") {
                if !(own_repository && dir.is_empty()) {
                    unknown.push(work_path(&path));
                }
                continue;
            }
            let Some(stat) = root.stat(&path).map_err(failed(&path))? else { continue };
            let id = match kind_of(&stat) {
                FileType::Directory => {
                    if zones.zone_of(&root, &work_path(&path)) == Zone::Deliverable {
                        pending.push(path);
                    }
                    continue;
                }
                FileType::RegularFile => reader
                    .file_id(&path, None)
                    .map_err(|source| ElsewhereError::Read { path: work_path(&path), source })?,
                FileType::Symlink => {
                    Some(ObjectKind::Blob.id_of(&root.read_link(&path).map_err(failed(&path))?))
                }
                _ => continue,
            };
            if !id.is_some_and(|id| known.contains(&id))
                && zones.zone_of(&root, &work_path(&path)) == Zone::Deliverable
            {
                unknown.push(work_path(&path));
                if unknown.len() >= limit {
                    return Ok(unknown);
                }
            }
        }
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "sixsix").unwrap();
        }
        std::fs::File::create(dir.path().join("huge")).unwrap().set_len(1 << 42).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let content = Some(ObjectKind::Blob.id_of(b"sixsix"));
        let mut reader = Reader { root: &root, left: 16 };
        let mut file_id = |name: &str, size| (reader.file_id(name.as_bytes(), size).unwrap(), reader.left);
        assert_eq!(file_id("a", Some(7)), (None, 16), "it is another size");
        assert_eq!(file_id("a", Some(6)), (content, 10));
        assert_eq!(file_id("huge", None), (None, 10), "it is larger than what is left");
        assert_eq!(file_id("b", None), (content, 4));
        assert_eq!(file_id("c", None), (None, 4));
        reader.left = u64::MAX;
        assert_eq!(reader.file_id(b"huge", None).unwrap(), None, "nothing of that size is ever stored");
    }
}
