//! An opened workspace folder. Everything below it is reached through its descriptor, never through a link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use triphammer_model::WorkPath;

/// A workspace folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Nothing is there.
    #[error("workspace `{}` does not exist: create the folder or name another one", path.display())]
    NotFound {
        /// The folder as it was named.
        path: PathBuf,
    },
    /// It is no folder.
    #[error("workspace `{}` is not a folder: name the folder that the agent shall change", path.display())]
    NotADirectory {
        /// The path as it was named.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("workspace `{}` cannot be read ({source}): give yourself read and search permission on it", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be written.
    #[error(
        "workspace `{}` is read-only ({source}): make it writable, or use --isolate copy",
        path.display()
    )]
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// An opened workspace folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    given: PathBuf,
    fd: Arc<OwnedFd>,
}

impl Root {
    /// Opens the folder at `path`. A link at `path` itself is followed once, here: the person named it.
    ///
    /// # Errors
    /// [`WorkspaceError`] with what to do.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let named = || path.to_path_buf();
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => WorkspaceError::NotFound { path: named() },
            io::ErrorKind::NotADirectory => WorkspaceError::NotADirectory { path: named() },
            _ => WorkspaceError::Unreadable { path: named(), source: error },
        };
        let canonical = std::fs::canonicalize(path).map_err(fail)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::open(&canonical, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        if let Err(error) =
            rustix::fs::accessat(&fd, ".", Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS)
        {
            return Err(fail(error.into()));
        }
        let given = std::path::absolute(path).unwrap_or_else(|_| canonical.clone());
        Ok(Self { path: canonical, given, fd: Arc::new(fd) })
    }

    /// Asks whether files can be made in the folder, without making one.
    ///
    /// # Errors
    /// [`WorkspaceError::ReadOnly`].
    pub fn check_writable(&self) -> Result<(), WorkspaceError> {
        rustix::fs::accessat(&*self.fd, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|e| WorkspaceError::ReadOnly { path: self.path.clone(), source: e.into() })
    }

    /// Whether the folder still is what lies at its path: somebody may have put another one there.
    pub(crate) fn is_in_place(&self) -> bool {
        let there = rustix::fs::lstat(&self.path);
        let open = rustix::fs::fstat(&*self.fd);
        there.is_ok_and(|there| open.is_ok_and(|o| (o.st_dev, o.st_ino) == (there.st_dev, there.st_ino)))
    }

    /// The folder, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder as it was named, made absolute; it may lead through links.
    pub fn given(&self) -> &Path {
        &self.given
    }

    /// The folder's descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The name of the network or user-space file system that the folder lies on; its change times are not the
    /// local clock's, so they prove nothing.
    pub fn foreign_file_system(&self) -> Option<&'static str> {
        #[cfg(target_os = "linux")]
        {
            foreign(rustix::fs::fstatfs(&*self.fd).ok()?.f_type & 0xFFFF_FFFF)
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The name of the file system that the open directory `fd` lies on, where times do not prove that content stood
    /// still: a network or user-space one, or one in memory, on which a store through a mapping that was read
    /// before moves neither time.
    pub(crate) fn weak_times(fd: BorrowedFd<'_>) -> Option<&'static str> {
        #[cfg(target_os = "linux")]
        {
            let magic = rustix::fs::fstatfs(fd).ok()?.f_type & 0xFFFF_FFFF;
            if magic == TMPFS { Some("tmpfs") } else { foreign(magic) }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = fd;
            None
        }
    }

    /// `path` relative to the folder, when it lies inside by its spelling; both spellings of the folder count.
    pub fn relative(&self, path: &Path) -> Option<PathBuf> {
        [&self.path, &self.given].iter().find_map(|root| path.strip_prefix(root).ok()).map(Path::to_path_buf)
    }

    /// What is at `path`, itself and not what it points at; `None` when nothing is.
    ///
    /// # Errors
    /// Whatever else the system says; `ELOOP` or `ENOTDIR` when a part of the way is no directory.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<Option<Stat>, Errno> {
        let (dir, name) = split(path);
        let found = if dir.is_empty() {
            stat_at(self.fd(), name)
        } else {
            match self.open_dir(dir) {
                Ok(dir) => stat_at(dir.as_fd(), name),
                Err(error) => Err(error),
            }
        };
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the directory at `path`, with no link on the way; the empty path is the folder itself.
    pub(crate) fn open_dir(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens the regular file at `path` for reading, with no link on the way. A FIFO in its place does not
    /// block, and is refused like everything that is not a regular file (`EINVAL`).
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
        // A device or FIFO must not even be opened where that can be avoided: opening can have effects.
        match self.stat(path)? {
            None => return Err(Errno::NOENT),
            Some(stat) if kind_of(&stat) != FileType::RegularFile => return Err(Errno::INVAL),
            Some(_) => {}
        }
        let fd = self.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = rustix::fs::fstat(&fd)?;
        if kind_of(&stat) == FileType::RegularFile { Ok((fd, stat)) } else { Err(Errno::INVAL) }
    }

    /// The target of the link at `path`.
    pub(crate) fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let (dir, name) = split(path);
        let dir = self.open_dir(dir)?;
        Ok(rustix::fs::readlinkat(&dir, OsStr::from_bytes(name), Vec::new())?.into_bytes())
    }

    pub(crate) fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if path.is_empty() {
            return rustix::fs::openat(self.fd(), ".", flags, Mode::empty());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(self.fd(), OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
                // An old kernel, a sandbox that does not know the call, or a path too long for one call.
                Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {}
                other => return other,
            }
        }
        let (dir, name) = split(path);
        let parent = self.step_into(dir)?;
        rustix::fs::openat(
            parent.as_ref().map_or(self.fd(), AsFd::as_fd),
            OsStr::from_bytes(name),
            flags,
            Mode::empty(),
        )
    }

    /// Opens directory after directory, each without following a link.
    fn step_into(&self, dir: &[u8]) -> Result<Option<OwnedFd>, Errno> {
        let mut current: Option<OwnedFd> = None;
        for part in dir.split(|b| *b == b'/').filter(|part| !part.is_empty()) {
            if part == b".." {
                return Err(Errno::XDEV);
            }
            let from = current.as_ref().map_or(self.fd(), AsFd::as_fd);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            current = Some(rustix::fs::openat(from, OsStr::from_bytes(part), flags, Mode::empty())?);
        }
        Ok(current)
    }
}

/// From linux/magic.h.
#[cfg(target_os = "linux")]
const TMPFS: i64 = 0x0102_1994;

/// The name of a network or user-space file system, by its number in linux/magic.h or in its own headers.
#[cfg(target_os = "linux")]
fn foreign(magic: i64) -> Option<&'static str> {
    const FOREIGN: &[(i64, &str)] = &[
        (0x6969, "nfs"),
        (0x517B, "smb"),
        (0xFF53_4D42, "cifs"),
        (0xFE53_4D42, "smb2"),
        (0x6573_5546, "fuse"),
        (0x0102_1997, "9p"),
        (0x00C3_6400, "ceph"),
        (0x5346_414F, "afs"),
        (0x786F_4256, "vboxsf"),
    ];
    FOREIGN.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// What is named `name` in `dir`, itself and not what it points at.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(dir, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)
}

/// A path's directory (empty for the folder itself) and last part.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(i) => (&path[..i], &path[i + 1..]),
        None => (&[], path),
    }
}

/// `dir` and `name` as one path.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + name.len() + 1);
    if !dir.is_empty() {
        path.extend_from_slice(dir);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The directories that a path leads through, outermost first, without the path itself.
pub(crate) fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| &path[..i])
}

/// The kind of what a stat describes.
pub(crate) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode)
}

/// A byte path as a workspace path.
pub(crate) fn work_path(path: &[u8]) -> WorkPath {
    WorkPath::from_bytes(path.to_vec())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn opens_only_folders() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert!(matches!(Root::open(&dir.path().join("none")), Err(WorkspaceError::NotFound { .. })));
        assert!(matches!(Root::open(&dir.path().join("file")), Err(WorkspaceError::NotADirectory { .. })));
        assert!(matches!(Root::open(&dir.path().join("file/x")), Err(WorkspaceError::NotADirectory { .. })));
        let root = Root::open(dir.path()).unwrap();
        root.check_writable().unwrap();
    }

    #[test]
    fn never_goes_through_a_link() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let dir = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("way")).unwrap();
        symlink(outside.path().join("secret"), dir.path().join("leaf")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(root.open_file(b"way/secret").is_err());
        assert!(root.open_file(b"leaf").is_err());
        assert!(root.open_file(b"../x").is_err());
        assert!(root.stat(b"way/secret").is_err());
        assert!(root.step_into(b"way").is_err());
        assert_eq!(kind_of(&root.stat(b"leaf").unwrap().unwrap()), FileType::Symlink);
        assert!(root.stat(b"nothing").unwrap().is_none());
    }

    #[test]
    fn a_fifo_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        assert!(made.success());
        assert_eq!(Root::open(dir.path()).unwrap().open_file(b"pipe").unwrap_err(), Errno::INVAL);
    }

    #[test]
    fn takes_paths_apart() {
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
        assert_eq!(join(b"", b"c"), b"c");
        assert_eq!(ancestors(b"a/b/c").collect::<Vec<_>>(), [&b"a"[..], b"a/b"]);
    }
}
