//! A workspace and a store for tests.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use triphammer_model::RunId;
use triphammer_workspace::{Eyes, Root, Store, ZoneConfig, ZoneMap};

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.work().join(OsStr::from_bytes(path.as_ref()))
    }

    pub(crate) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn chmod(&self, path: impl AsRef<[u8]>, mode: u32) {
        chmod(&self.at(path), mode);
    }

    pub(crate) fn fifo(&self, path: &str) {
        assert!(Command::new("mkfifo").arg(self.at(path)).status().unwrap().success());
    }

    pub(crate) fn git(&self, args: &[&str]) {
        git(&self.work(), args);
    }

    pub(crate) fn root(&self) -> Root {
        Root::open(&self.work()).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.dir.path().join("runs/.store.git")).unwrap()
    }

    pub(crate) fn zones(&self) -> ZoneMap {
        ZoneMap::capture(&self.root(), &ZoneConfig::default()).unwrap()
    }

    pub(crate) fn eyes(&self) -> Eyes {
        Eyes::new(self.root(), self.zones(), self.store())
    }
}

pub(crate) fn run() -> RunId {
    RunId::new("20261130-170601-test-0000")
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs git as a person would, with a name and without the machine's configuration.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Everything below a folder, read plainly: an oracle that knows nothing of zones or timestamps.
pub(crate) fn plain(dir: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    walkdir::WalkDir::new(dir)
        .min_depth(1)
        .into_iter()
        .filter_entry(|e| e.file_name() != ".git")
        .map(Result::unwrap)
        .map(|entry| {
            let path = entry.path().strip_prefix(dir).unwrap().as_os_str().as_bytes().to_vec();
            let mode = entry.path().symlink_metadata().unwrap().permissions().mode();
            let content = if entry.file_type().is_symlink() {
                std::fs::read_link(entry.path()).unwrap().into_os_string().as_bytes().to_vec()
            } else if entry.file_type().is_file() {
                std::fs::read(entry.path()).unwrap()
            } else {
                Vec::new()
            };
            (path, (mode, content))
        })
        .collect()
}
