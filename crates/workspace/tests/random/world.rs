//! The world, read plainly: every entry with its stat and every byte. It knows nothing of zones, but that whatever is
//! named `.git` is no work.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    /// Kind and permissions.
    pub(crate) mode: u32,
    /// A file's bytes, a link's target.
    pub(crate) bytes: Vec<u8>,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
}

impl Thing {
    /// Whether kind, permissions and bytes are the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.mode, &self.bytes) == (other.mode, &other.bytes)
    }

    pub(crate) fn signature(&self) -> String {
        format!("{}:{}", self.bytes.len(), self.mtime)
    }

    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(crate) fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// All there is below a folder, by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) things: BTreeMap<Vec<u8>, Thing>,
    /// Permissions.
    pub(crate) directories: BTreeMap<Vec<u8>, u32>,
}

impl World {
    /// Reads it; nothing may move meanwhile.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut world = Self::default();
        let all = walkdir::WalkDir::new(folder).min_depth(1).into_iter();
        for entry in all.filter_entry(|entry| entry.file_name() != ".git") {
            let entry = entry.unwrap();
            let path = entry.path().strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec();
            let stat = entry.path().symlink_metadata().unwrap();
            if stat.is_dir() {
                world.directories.insert(path, stat.mode() & 0o7777);
                continue;
            }
            let bytes = if stat.is_symlink() {
                std::fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                std::fs::read(entry.path()).unwrap()
            };
            let time = |seconds: i64, nanos: i64| seconds * 1_000_000_000 + nanos;
            let thing = Thing {
                mode: stat.mode(),
                bytes,
                mtime: time(stat.mtime(), stat.mtime_nsec()),
                ctime: time(stat.ctime(), stat.ctime_nsec()),
                ino: stat.ino(),
            };
            world.things.insert(path, thing);
        }
        world
    }

    /// Directories that hold no file or link at any depth.
    pub(crate) fn empty_directories(&self) -> impl Iterator<Item = &[u8]> {
        self.directories.keys().map(Vec::as_slice).filter(|directory| {
            let below = [directory, &b"/"[..]].concat();
            !self.things.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below))
        })
    }
}
