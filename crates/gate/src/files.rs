//! The workspace's files, as rule gates and discovery see them.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use triphammer_model::WorkPath;

use crate::beneath;

/// Folders that hold no deliverable wherever they are.
const NEVER: [&[u8]; 4] = [b"node_modules", b"__pycache__", b"zig-cache", b"zig-out"];

/// Known names of build folders; a `CACHEDIR.TAG` makes them caches. Elsewhere a tag is a claim like any other.
const BUILD: [&[u8]; 5] = [b"target", b"build", b"dist", b"out", b"cmake-build-debug"];

/// The first bytes of a valid `CACHEDIR.TAG`, as the Cache Directory Tagging Specification gives them.
const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// A workspace's files by path, in byte order.
#[derive(Clone, Debug)]
pub struct WorkFiles {
    root: PathBuf,
    paths: Vec<WorkPath>,
    unread: u64,
}

impl WorkFiles {
    /// Looks at the disk: all regular files but those in hidden folders, dependency folders and caches.
    pub fn walk(workspace: &Path) -> Self {
        let mut files = Self { root: workspace.to_owned(), paths: Vec::new(), unread: 0 };
        files.descend(&[]);
        files.paths.sort();
        files
    }

    /// Takes a listing that was made elsewhere, such as the deliverable of a fingerprint.
    pub fn listed(workspace: &Path, mut paths: Vec<WorkPath>) -> Self {
        paths.sort();
        Self { root: workspace.to_owned(), paths, unread: 0 }
    }

    /// The workspace folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All paths, in byte order.
    pub fn paths(&self) -> &[WorkPath] {
        &self.paths
    }

    /// Folders that could not be listed.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Reads a file of at most `cap` bytes; no link is followed, nothing but a regular file is opened.
    ///
    /// # Errors
    /// When it is no regular file, is larger than `cap`, or cannot be read.
    pub fn read(&self, path: &WorkPath, cap: u64) -> io::Result<Vec<u8>> {
        beneath::read(&self.root, path.as_bytes(), cap)
    }

    fn descend(&mut self, rel: &[u8]) {
        let dir = self.root.join(WorkPath::from_bytes(rel).as_path());
        let Ok(entries) = std::fs::read_dir(&dir) else {
            self.unread += 1;
            return;
        };
        let mut dirs: BTreeSet<Vec<u8>> = BTreeSet::new();
        for entry in entries {
            let Ok((entry, kind)) = entry.and_then(|e| e.file_type().map(|k| (e, k))) else {
                self.unread += 1;
                continue;
            };
            let name = entry.file_name();
            let mut path = rel.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            if kind.is_file() {
                self.paths.push(WorkPath::from_bytes(path));
            } else if kind.is_dir() && !self.is_aside(name.as_bytes(), &path) {
                dirs.insert(path);
            }
        }
        for dir in dirs {
            self.descend(&dir);
        }
    }

    fn is_aside(&self, name: &[u8], path: &[u8]) -> bool {
        let has = |file: &[u8]| beneath::exists(&self.root, &[path, b"/", file].concat());
        name.starts_with(b".")
            || NEVER.contains(&name)
            || has(b"pyvenv.cfg")
            || (name == b"runs" && has(b".store.git"))
            || (BUILD.contains(&name)
                && beneath::read(&self.root, &[path, b"/CACHEDIR.TAG"].concat(), 4096)
                    .is_ok_and(|tag| tag.starts_with(TAG)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_what_is_deliverable() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("b.rs", "");
        put("src/a.rs", "");
        put(".env", "");
        put(".git/config", "");
        put("node_modules/x/y.js", "");
        put("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
        put("target/x.rs", "");
        put("build/x.rs", "");
        put("hidden/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
        put("hidden/x.rs", "");
        put("env/pyvenv.cfg", "");
        put("runs/.store.git/HEAD", "");
        put("runs/x.rs", "");
        std::os::unix::fs::symlink("/etc", dir.path().join("etc")).unwrap();
        let files = WorkFiles::walk(dir.path());
        let seen: Vec<String> = files.paths().iter().map(ToString::to_string).collect();
        assert_eq!(seen, [".env", "b.rs", "build/x.rs", "hidden/CACHEDIR.TAG", "hidden/x.rs", "src/a.rs"]);
        assert_eq!(files.unread(), 0);
    }
}
