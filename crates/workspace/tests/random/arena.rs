//! Where sequences are carried out, one after the other: a workspace, a folder outside of it, a store.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Root, Store, ZoneConfig, ZoneMap};

/// A folder in memory.
pub(crate) const MEMORY: &str = "/dev/shm";

pub(crate) struct Arena {
    dir: tempfile::TempDir,
    /// Held until the end.
    _store: tempfile::TempDir,
    /// What it lies on.
    pub(crate) file_system: String,
    pub(crate) eyes: Eyes,
    pub(crate) run: RunId,
}

impl Arena {
    pub(crate) fn new(place: &Path) -> Self {
        let folder =
            |place: &Path| tempfile::Builder::new().prefix("triphammer-random-").tempdir_in(place).unwrap();
        let dir = folder(place);
        // The store is no part of what is looked at. ext4 makes new files slowly where many were deleted lately, and
        // sequences delete many, so it lies in memory where there is a folder for that.
        let store_folder = folder(Some(Path::new(MEMORY)).filter(|memory| memory.is_dir()).unwrap_or(place));
        for folder in ["work", "outside"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let root = Root::open(&dir.path().join("work")).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let store = Store::open(&store_folder.path().join(".store.git")).unwrap();
        Self {
            dir,
            _store: store_folder,
            file_system: file_system(place),
            eyes: Eyes::new(root, zones, store),
            run: RunId::new("20261130-170601-random-0000"),
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn at(&self, path: &[u8]) -> PathBuf {
        self.work().join(OsStr::from_bytes(path))
    }

    /// A place on the same file system that no look sees.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join("outside").join(name)
    }

    /// Makes all as it was when it was new. The workspace's folder itself stays, since eyes are on it.
    pub(crate) fn clear(&self) {
        for folder in [self.work(), self.dir.path().join("outside")] {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
            for entry in std::fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    std::fs::remove_dir_all(entry.path()).unwrap();
                } else {
                    std::fs::remove_file(entry.path()).unwrap();
                }
            }
        }
    }
}

/// What a folder lies on, by the numbers of `linux/magic.h`.
pub(crate) fn file_system(place: &Path) -> String {
    let magic = rustix::fs::statfs(place).unwrap().f_type & 0xFFFF_FFFF;
    let known = [
        (0xEF53, "ext4"),
        (0x0102_1994, "tmpfs"),
        (0x9123_683E, "btrfs"),
        (0x5846_5342, "xfs"),
        (0x794C_7630, "overlay"),
        (0x8584_58F6, "ramfs"),
    ];
    let found = known.iter().find(|(known, _)| *known == magic);
    found.map_or_else(|| format!("file system {magic:#x}"), |(_, name)| (*name).to_owned())
}
