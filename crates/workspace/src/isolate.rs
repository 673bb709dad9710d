//! Isolation: a folder of a run's own, in the user's state folder, outside any repository.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use triphammer_model::event::Isolation;
use triphammer_model::{RunId, WorkPath};

use crate::git::{arg, complaint, git, git_in, output_within};
use crate::placing::{InTheWay, Thing};
use crate::restore::{Onto, RestoreError, Restored, restore};
use crate::root::{Root, WorkspaceError, join, kind_of, split, work_path};
use crate::store_objects::Store;
use crate::trees::Kept;
use crate::zones::{ZoneMap, globs};

/// How long a clone may take.
const PATIENCE: Duration = Duration::from_mins(30);

/// The largest `info/exclude` that is carried over.
const MAX_EXCLUDE: u64 = 1 << 20;

/// A run could not be given a folder of its own.
#[derive(Debug, thiserror::Error)]
pub enum IsolateError {
    /// `worktree` needs a repository.
    #[error("workspace `{}` is no git repository, so there is no worktree of it: use --isolate copy", path.display())]
    NotARepository {
        /// The workspace.
        path: PathBuf,
    },
    /// The state folder lies where a run's folder must not lie.
    #[error(
        "state folder `{}` lies inside {what} `{}`: set XDG_STATE_HOME to a folder outside of it",
        state.display(),
        outer.display()
    )]
    Inside {
        /// The state folder.
        state: PathBuf,
        /// `the git repository`, `the home`, `the workspace`.
        what: &'static str,
        /// That folder.
        outer: PathBuf,
    },
    /// The run has a folder already.
    #[error("`{}` exists already: remove it, or start the run anew", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A folder or file could not be made.
    #[error("`{}` could not be made ({source}): check the permissions of the state folder and the disk", path.display())]
    Make {
        /// What.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Git failed.
    #[error("git could not {what}: {said}; use --isolate copy")]
    Git {
        /// What was attempted.
        what: &'static str,
        /// What git said.
        said: String,
    },
    /// The kind of isolation needs a workspace and its tree 0.
    #[error("this isolation starts from a workspace and its tree 0, and none was given")]
    NoOrigin,
    /// The deliverable could not be put there.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A folder cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A pattern is no glob.
    #[error("`{pattern}` in [workspace] carry is no glob ({source}): use a path or `*.ext`")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
}

/// What an isolated workspace starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The person's workspace.
    pub origin: &'a Root,
    /// Its zones. They hold for the isolated workspace as well, since they are told by relative paths.
    pub zones: &'a ZoneMap,
    /// The store that holds tree 0.
    pub store: &'a Store,
    /// Tree 0: uncommitted and untracked work included.
    pub tree: &'a Kept,
}

/// Where an isolated workspace is made.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The user's state folder, see [`state_folder`].
    pub state: &'a Path,
    /// The home.
    pub home: &'a Path,
    /// The run.
    pub run: &'a RunId,
}

/// An isolated workspace.
#[derive(Clone, Debug)]
pub struct Isolated {
    /// The workspace: where the agent works.
    pub root: PathBuf,
    /// The folder that was made for the run; the workspace itself, or above it where only a part of a repository is
    /// the workspace.
    pub folder: PathBuf,
    /// What is not as in the origin.
    pub notes: Vec<String>,
}

/// The user's state folder by the XDG rules: `$XDG_STATE_HOME/triphammer`, or `~/.local/state/triphammer`.
pub fn state_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("triphammer"))
}

/// Makes the folder `workspaces/<run>` in the state folder and fills it as `isolation` says. `in-place` needs no
/// folder and answers with the origin. What was made is removed again when it cannot be completed.
///
/// # Errors
/// [`IsolateError`] with what to do.
pub fn isolate(
    isolation: Isolation,
    start: Option<&Start<'_>>,
    place: &Place<'_>,
) -> Result<Isolated, IsolateError> {
    if isolation == Isolation::InPlace {
        let root = start.ok_or(IsolateError::NoOrigin)?.origin.path().to_path_buf();
        return Ok(Isolated { folder: root.clone(), root, notes: Vec::new() });
    }
    let folder = make_folder(start, place)?;
    let made = match isolation {
        Isolation::Worktree => start.ok_or(IsolateError::NoOrigin).and_then(|start| clone(start, &folder)),
        Isolation::Copy => start.ok_or(IsolateError::NoOrigin).and_then(|start| copy(start, &folder)),
        Isolation::New | Isolation::InPlace => {
            Ok(Isolated { root: folder.clone(), folder: folder.clone(), notes: Vec::new() })
        }
    };
    if made.is_err() {
        // The reason why it is not complete matters more than a leftover.
        let _ = std::fs::remove_dir_all(&folder);
    }
    made
}

fn make_folder(start: Option<&Start<'_>>, place: &Place<'_>) -> Result<PathBuf, IsolateError> {
    let fail = |path: &Path| {
        let path = path.to_path_buf();
        move |source| IsolateError::Make { path, source }
    };
    std::fs::create_dir_all(place.state).map_err(fail(place.state))?;
    let state = std::fs::canonicalize(place.state).map_err(fail(place.state))?;
    let inside =
        |what, outer: &Path| IsolateError::Inside { state: state.clone(), what, outer: outer.to_path_buf() };
    if let Some(outer) = state.ancestors().find(|dir| std::fs::symlink_metadata(dir.join(".git")).is_ok()) {
        return Err(inside("the git repository", outer));
    }
    let home = std::fs::canonicalize(place.home).unwrap_or_else(|_| place.home.to_path_buf());
    if state.starts_with(&home) {
        return Err(inside("the home", &home));
    }
    if let Some(origin) = start.map(|s| s.origin.path()).filter(|origin| state.starts_with(origin)) {
        return Err(inside("the workspace", origin));
    }
    let all = state.join("workspaces");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&all).map_err(fail(&all))?;
    let folder = all.join(place.run.as_str());
    match std::fs::create_dir(&folder) {
        Ok(()) => Ok(folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(IsolateError::Exists { path: folder })
        }
        Err(source) => Err(IsolateError::Make { path: folder, source }),
    }
}

fn copy(start: &Start<'_>, folder: &Path) -> Result<Isolated, IsolateError> {
    let restored = restore(start.store, start.tree, folder, Onto::Exact(start.zones))?;
    let notes = complete(start, folder, restored)?;
    Ok(Isolated { root: folder.to_path_buf(), folder: folder.to_path_buf(), notes })
}

/// Copies what is too large for the store from the origin, and says what is missing.
fn complete(start: &Start<'_>, to: &Path, restored: Restored) -> Result<Vec<String>, IsolateError> {
    let to = Root::open(to)?;
    let mut notes: Vec<String> =
        restored.blocked.into_iter().map(|(path, why)| format!("`{path}` is not there: {why}")).collect();
    for left_out in restored.not_restored {
        let path = &left_out.path;
        // What is named like a repository stays out everywhere.
        let copied = if left_out.sha1.is_some() && !path.as_bytes().ends_with(b".git") {
            copy_file(start.origin, &to, path.as_bytes())
        } else {
            Err(Errno::INVAL)
        };
        if copied.is_err() {
            notes.push(format!("`{path}` is not there: {}", left_out.why));
        }
    }
    Ok(notes)
}

fn copy_file(from: &Root, to: &Root, path: &[u8]) -> Result<(), Errno> {
    let (fd, stat) = from.open_file(path)?;
    let mode = crate::facts::Facts::of(&stat).mode;
    to.stage(path, Thing::Copy(&File::from(fd), mode), InTheWay::Stays)?.commit()
}

/// A private clone: an agent's commits stay in it, and nothing in it leads back to the person's repository.
fn clone(start: &Start<'_>, folder: &Path) -> Result<Isolated, IsolateError> {
    let origin = start.origin.path();
    let not_one = || IsolateError::NotARepository { path: origin.to_path_buf() };
    let inside = ask(origin, &["rev-parse", "--is-inside-work-tree"])?.ok_or_else(not_one)?;
    if inside.as_bytes() != b"true" {
        return Err(not_one());
    }
    let prefix = PathBuf::from(ask(origin, &["rev-parse", "--show-prefix"])?.unwrap_or_default());
    let depth = prefix.components().count();
    let top = origin.ancestors().nth(depth).ok_or_else(not_one)?;
    let branch = ask(origin, &["symbolic-ref", "-q", "HEAD"])?;
    let commit = ask(origin, &["rev-parse", "-q", "--verify", "HEAD^{commit}"])?;

    let git_dir = folder.join(".git");
    let mut command = git();
    // Objects are copied rather than linked, since a link lets one write into the other; what the origin borrows
    // from a third repository is copied too.
    command.args(["clone", "--quiet", "--bare", "--no-hardlinks", "--dissociate", "--template="]);
    command.arg("--").arg(top).arg(&git_dir);
    succeed(command, "clone the workspace's repository")?;
    let here = |args: &[&str]| {
        let mut command = git();
        command.arg("--git-dir").arg(&git_dir).arg("--work-tree").arg(folder).args(args);
        command
    };
    succeed(here(&["config", "core.bare", "false"]), "configure the clone")?;
    // Without a remote an agent cannot push into the person's repository by habit.
    let _ = output_within(here(&["config", "--remove-section", "remote.origin"]), PATIENCE);
    for key in ["user.name", "user.email"] {
        if let Some(value) = ask(origin, &["config", "--local", "--get", key])? {
            let mut command = here(&["config", key]);
            command.arg(value);
            succeed(command, "configure the clone")?;
        }
    }
    match (&branch, &commit) {
        (Some(branch), _) => {
            let mut command = here(&["symbolic-ref", "HEAD"]);
            command.arg(branch);
            succeed(command, "set the clone's branch")?;
        }
        (None, Some(commit)) => {
            let mut command = here(&["update-ref", "--no-deref", "HEAD"]);
            command.arg(commit);
            succeed(command, "set the clone's head")?;
        }
        (None, None) => {}
    }
    carry_excludes(origin, &git_dir)?;
    if commit.is_some() {
        succeed(here(&["reset", "--quiet", "--hard"]), "check the workspace's commit out")?;
    }
    let root = folder.join(&prefix);
    std::fs::create_dir_all(&root).map_err(|source| IsolateError::Make { path: root.clone(), source })?;
    let restored = restore(start.store, start.tree, &root, Onto::Exact(start.zones))?;
    let mut notes = complete(start, &root, restored)?;
    notes.push("a private clone: its commits stay in it, and it has no remote".to_owned());
    // So that the first `git status` in there need not read every file; only a hint.
    let _ = output_within(here(&["update-index", "-q", "--refresh"]), PATIENCE);
    Ok(Isolated { root, folder: folder.to_path_buf(), notes })
}

/// What git answers in one line; `None` when it says no.
fn ask(dir: &Path, args: &[&str]) -> Result<Option<OsString>, IsolateError> {
    let mut command = git_in(dir);
    command.args(args);
    let output = run(command, "read the workspace's repository")?;
    let mut answer = output.stdout;
    if answer.last() == Some(&b'\n') {
        answer.pop();
    }
    Ok((output.status.success() && !answer.is_empty()).then(|| arg(&answer).to_owned()))
}

fn run(command: std::process::Command, what: &'static str) -> Result<Output, IsolateError> {
    output_within(command, PATIENCE).map_err(|error| IsolateError::Git {
        what,
        said: match error.kind() {
            io::ErrorKind::NotFound => "git is not installed".to_owned(),
            _ => error.to_string(),
        },
    })
}

fn succeed(command: std::process::Command, what: &'static str) -> Result<(), IsolateError> {
    let output = run(command, what)?;
    if output.status.success() {
        return Ok(());
    }
    Err(IsolateError::Git { what, said: complaint(&output) })
}

/// The person's private ignore rules hold in the clone too.
fn carry_excludes(origin: &Path, git_dir: &Path) -> Result<(), IsolateError> {
    let Some(from) = ask(origin, &["rev-parse", "--git-path", "info/exclude"])? else { return Ok(()) };
    let from = origin.join(from);
    if !std::fs::symlink_metadata(&from).is_ok_and(|m| m.is_file() && m.len() <= MAX_EXCLUDE) {
        return Ok(());
    }
    let to = git_dir.join("info");
    std::fs::create_dir_all(&to)
        .and_then(|()| std::fs::copy(&from, to.join("exclude")))
        .map(|_| ())
        .map_err(|source| IsolateError::Make { path: to, source })
}

/// What was carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Files and links copied.
    pub copied: usize,
    /// What matched and was not copied, with the reason; at most 200.
    pub skipped: Vec<(WorkPath, String)>,
    /// How many were not copied.
    pub skipped_count: usize,
}

/// Copies files that trees leave out, such as installed dependencies, from one workspace to another: those that
/// match `patterns`, and everything below directories that match. A pattern without a slash is matched with every
/// name. What is there already stays; `.git` is never copied; a link is copied as a link, and only when it stays
/// inside the workspace.
///
/// # Errors
/// [`IsolateError`].
pub fn carry(from: &Root, to: &Root, patterns: &[String]) -> Result<Carried, IsolateError> {
    let set = globs(patterns).map_err(|(pattern, source)| IsolateError::Pattern { pattern, source })?;
    let mut carried = Carried::default();
    let mut pending = vec![(Vec::new(), false)];
    if patterns.is_empty() {
        pending.clear();
    }
    while let Some((dir, taken)) = pending.pop() {
        let listed = from.open_dir(&dir).and_then(|fd| Dir::read_from(&fd));
        let entries = match listed {
            Ok(entries) => entries,
            Err(error) => {
                carried.skip(&dir, &io::Error::from(error).to_string());
                continue;
            }
        };
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let path = join(&dir, name);
            let taken = taken || set.is_match(arg(&path));
            let Ok(Some(stat)) = from.stat(&path) else { continue };
            match kind_of(&stat) {
                FileType::Directory => pending.push((path, taken)),
                _ if !taken => {}
                FileType::RegularFile => carried.take(to, &path, || copy_file(from, to, &path)),
                FileType::Symlink => {
                    let Ok(target) = from.read_link(&path) else { continue };
                    if stays_inside(&path, &target) {
                        let place = || to.stage(&path, Thing::Link(&target), InTheWay::Stays)?.commit();
                        carried.take(to, &path, place);
                    } else {
                        carried.skip(&path, "it is a link that leads out of the workspace");
                    }
                }
                _ => carried.skip(&path, "it is a FIFO, socket or device"),
            }
        }
    }
    Ok(carried)
}

impl Carried {
    fn take(&mut self, to: &Root, path: &[u8], act: impl FnOnce() -> Result<(), Errno>) {
        if !matches!(to.stat(path), Ok(None)) {
            self.skip(path, "the workspace has it already");
            return;
        }
        match act() {
            Ok(()) => self.copied += 1,
            Err(error) => self.skip(path, &io::Error::from(error).to_string()),
        }
    }

    fn skip(&mut self, path: &[u8], why: &str) {
        self.skipped_count += 1;
        if self.skipped.len() < crate::walk::SHOWN {
            self.skipped.push((work_path(path), why.to_owned()));
        }
    }
}

fn stays_inside(link: &[u8], target: &[u8]) -> bool {
    let mut depth = split(link).0.split(|b| *b == b'/').filter(|part| !part.is_empty()).count();
    Path::new(arg(target)).components().all(|part| match part {
        Component::CurDir => true,
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::ParentDir => {
            let above = depth.checked_sub(1);
            depth = above.unwrap_or(0);
            above.is_some()
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}
