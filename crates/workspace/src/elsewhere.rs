//! Whether work exists outside of the store: at its path in a folder, or as an object of the git repository there.

use std::collections::HashSet;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Dir, FileType};
use triphammer_model::WorkPath;

use crate::git::{complaint, exchange_within, git_in, is_repository, output_within};
use crate::root::{Root, WorkspaceError, join, kind_of, work_path};
use crate::store_objects::{ObjectId, ObjectKind, Store, StoreError, hash_file, id_lines};
use crate::trees::{Kept, TreeEntry};
use crate::zones::{Zone, ZoneMap};

/// How long a person's git may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);

/// It could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ElsewhereError {
    /// The folder is gone or cannot be read.
    #[error(transparent)]
    Folder(#[from] WorkspaceError),
    /// A tree cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository does not answer.
    #[error("the git repository at `{}` could not be asked: {said}", path.display())]
    Git {
        /// The folder.
        path: PathBuf,
        /// What git said.
        said: String,
    },
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
    /// The files and links of `work` whose content no tree of `bases` has. What the store does not hold of it cannot be
    /// lost with the store, and is left out.
    ///
    /// # Errors
    /// [`StoreError`] when a tree cannot be read.
    pub fn added(&self, bases: &[&Kept], work: &Kept) -> Result<Vec<TreeEntry>, StoreError> {
        let mut known = HashSet::new();
        for base in bases {
            known.extend(self.list(&base.tree)?.into_iter().map(|entry| entry.id));
        }
        let pointers: HashSet<&WorkPath> = work.manifest.not_stored.iter().map(|n| &n.path).collect();
        let mut added = self.list(&work.tree)?;
        added.retain(|entry| !known.contains(&entry.id) && !pointers.contains(&entry.path));
        Ok(added)
    }

    /// What of `work` is neither at its path below `folder` nor an object of the git repository there. Reads only.
    ///
    /// # Errors
    /// [`ElsewhereError`] when that cannot be asked.
    pub fn not_found_in(
        &self,
        folder: &Path,
        work: Vec<TreeEntry>,
    ) -> Result<Vec<TreeEntry>, ElsewhereError> {
        let root = Root::open(folder)?;
        let mut missing = work;
        missing.retain(|entry| !is_at_its_path(&root, entry));
        if missing.is_empty() || !is_repository(root.path()) {
            return Ok(missing);
        }
        self.check_own_objects(root.path())?;
        let git = |said| ElsewhereError::Git { path: root.path().to_path_buf(), said };
        let mut command = git_in(root.path());
        command.args(["cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer"]);
        let output = exchange_within(command, id_lines(missing.iter().map(|entry| &entry.id)), PATIENCE)
            .map_err(|e| git(e.to_string()))?;
        if !output.status.success() {
            return Err(git(complaint(&output)));
        }
        let there: HashSet<ObjectId> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.strip_suffix(" blob")?.parse().ok())
            .collect();
        missing.retain(|entry| !there.contains(&entry.id));
        Ok(missing)
    }

    /// A repository whose objects are those of this store, by a link or by borrowing, would lose them with it. An agent
    /// can arrange that.
    fn check_own_objects(&self, folder: &Path) -> Result<(), ElsewhereError> {
        let failed = |said| ElsewhereError::Git { path: folder.to_path_buf(), said };
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

fn is_at_its_path(root: &Root, entry: &TreeEntry) -> bool {
    let path = entry.path.as_bytes();
    let id = if entry.is_link() {
        root.read_link(path).ok().map(|target| ObjectKind::Blob.id_of(&target))
    } else {
        file_id(root, path).ok()
    };
    id == Some(entry.id)
}

fn file_id(root: &Root, path: &[u8]) -> io::Result<ObjectId> {
    let (fd, stat) = root.open_file(path)?;
    hash_file(&mut File::from(fd), u64::try_from(stat.st_size).unwrap_or(0))
}

/// How many commits the repository at `clone` has that the one at `origin` does not hold.
///
/// # Errors
/// [`ElsewhereError::Git`] when one of them does not answer.
pub fn commits_not_in(clone: &Path, origin: &Path) -> Result<usize, ElsewhereError> {
    let ask = |folder: &Path, args: &[&str], input: Vec<u8>| {
        let failed = |said| ElsewhereError::Git { path: folder.to_path_buf(), said };
        let mut command = git_in(folder);
        command.args(args);
        match exchange_within(command, input, PATIENCE) {
            Ok(output) if output.status.success() => Ok(output.stdout),
            Ok(output) => Err(failed(complaint(&output))),
            Err(error) => Err(failed(error.to_string())),
        }
    };
    let commits = ask(clone, &["rev-list", "--all", "--reflog"], Vec::new())?;
    let there = ask(origin, &["cat-file", "--batch-check=%(objecttype)", "--buffer"], commits)?;
    Ok(there.split(|b| *b == b'\n').filter(|line| !line.is_empty() && *line != b"commit").count())
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
    let mut unknown = Vec::new();
    let mut pending = vec![Vec::new()];
    while let Some(dir) = pending.pop() {
        let failed = |path: &[u8]| {
            let path = work_path(path);
            move |source: rustix::io::Errno| ElsewhereError::Read { path, source: source.into() }
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
                FileType::RegularFile => file_id(&root, &path)
                    .map_err(|source| ElsewhereError::Read { path: work_path(&path), source })?,
                FileType::Symlink => ObjectKind::Blob.id_of(&root.read_link(&path).map_err(failed(&path))?),
                _ => continue,
            };
            if !known.contains(&id) && zones.zone_of(&root, &work_path(&path)) == Zone::Deliverable {
                unknown.push(work_path(&path));
                if unknown.len() >= limit {
                    return Ok(unknown);
                }
            }
        }
    }
    Ok(unknown)
}
