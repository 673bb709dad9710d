//! Paths of the workspace, and opening what they name without leaving it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use triphammer_model::path::unescape;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// NONBLOCK so that opening a FIFO returns.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The workspace.
#[derive(Debug)]
pub(super) struct Inside {
    root: PathBuf,
}

impl Inside {
    /// The error says why a folder cannot be worked in.
    pub(super) fn new(root: &Path) -> Result<Self, String> {
        let root =
            root.canonicalize().map_err(|error| format!("the workspace {}: {error}", root.display()))?;
        if !root.is_dir() {
            return Err(format!("the workspace {} is no folder", root.display()));
        }
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path below the workspace that a text names, relative or absolute. Empty for the workspace itself.
    pub(super) fn path(&self, text: &str) -> Result<PathBuf, String> {
        let bytes = unescape(text).map_err(|error| error.to_string())?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(bytes.into_vec()));
        let below = path.strip_prefix(&self.root).unwrap_or(&path);
        let mut clean = PathBuf::new();
        for part in below.components() {
            match part {
                Component::Normal(part) => clean.push(part),
                Component::CurDir => {}
                _ => return Err(format!("`{text}` is outside of the workspace; name a path below it")),
            }
        }
        Ok(clean)
    }

    /// Opens a plain file for reading. No link is followed on the way.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let (folder, name) = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => (self.folder(folder)?, name),
            _ => return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        };
        let file = File::from(openat(&folder, name, FILE, Mode::empty()).map_err(link)?);
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file")),
        }
    }

    /// Opens a folder. No link is followed on the way.
    pub(super) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut folder = openat(CWD, &self.root, FOLDER, Mode::empty())?;
        for part in path.components() {
            folder = openat(&folder, part.as_os_str(), FOLDER, Mode::empty()).map_err(link)?;
        }
        Ok(folder)
    }
}

/// The kernel's word for a link that is not followed says little.
fn link(error: rustix::io::Errno) -> io::Error {
    if error == rustix::io::Errno::LOOP {
        return io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a link, which is not followed; use the shell",
        );
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        let dir = tempfile::tempdir().expect("a folder");
        let inside = Inside::new(dir.path()).expect("a workspace");
        let root = inside.root().to_str().expect("UTF-8").to_owned();
        for (text, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            (".", ""),
            ("", ""),
            (&format!("{root}/a"), "a"),
            (&root, ""),
            ("a\\\\b", "a\\b"),
            ("a\\x41", "aA"),
        ] {
            assert_eq!(inside.path(text).as_deref(), Ok(Path::new(expected)), "{text}");
        }
        for text in ["..", "a/../../b", "/etc/passwd", "a/..", "a\\b", &format!("{root}/../x")] {
            assert!(inside.path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_plain_files_are_opened() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("w");
        std::fs::create_dir_all(root.join("sub")).expect("folders");
        std::fs::write(root.join("sub/plain"), "x").expect("a file");
        std::fs::write(dir.path().join("outside"), "x").expect("a file");
        std::os::unix::fs::symlink("../outside", root.join("link")).expect("a link");
        std::os::unix::fs::symlink("..", root.join("way")).expect("a link");
        let fifo = std::process::Command::new("mkfifo").arg(root.join("fifo")).status();
        assert!(fifo.is_ok_and(|status| status.success()));
        let inside = Inside::new(&root).expect("a workspace");
        assert!(inside.open(Path::new("sub/plain")).is_ok());
        for path in ["link", "way/outside", "fifo", "sub", "", "none"] {
            assert!(inside.open(Path::new(path)).is_err(), "{path}");
        }
        assert!(inside.folder(Path::new("way")).is_err());
        assert!(Inside::new(&root.join("none")).is_err() && Inside::new(&root.join("sub/plain")).is_err());
    }
}
