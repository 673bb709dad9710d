//! How much a launch may use, with all that it starts: control groups for processes and memory, a resource limit for the
//! size of files.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use triphammer_model::Size;

/// How much a launch may use. Nothing is limited by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeLimits {
    /// Most processes and threads at a time.
    pub processes: Option<u32>,
    /// Most memory.
    pub memory: Option<Size>,
    /// Largest file that can be written.
    pub file_size: Option<Size>,
}

impl TreeLimits {
    /// No limit at all.
    pub const NONE: Self = Self { processes: None, memory: None, file_size: None };
}

/// How a group's name begins; the process that made it follows.
pub(crate) const PREFIX: &str = "triphammer-";

/// The control groups of one launch; removed with this value, when nothing lives in them any more.
#[derive(Debug)]
pub(crate) struct Groups(Vec<PathBuf>);

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            // One that is not empty stays: the kernel knows, and says so.
            let _ = std::fs::remove_dir(group);
        }
    }
}

impl Groups {
    /// Makes what `limits` needs; `None` where that is nothing. `name` is nobody else's.
    ///
    /// # Errors
    /// This system, or this user, has no control groups for it.
    pub(crate) fn make(limits: &TreeLimits, name: &str) -> io::Result<Option<Self>> {
        Self::make_in(&Hierarchies::of_this_process()?, limits, name)
    }

    fn make_in(found: &Hierarchies, limits: &TreeLimits, name: &str) -> io::Result<Option<Self>> {
        let mut wanted: Vec<(&str, &'static str, &'static str, String)> = Vec::new();
        if let Some(processes) = limits.processes {
            wanted.push(("pids", "pids.max", "pids.max", processes.to_string()));
        }
        if let Some(memory) = limits.memory {
            wanted.push(("memory", "memory.limit_in_bytes", "memory.max", memory.bytes().to_string()));
        }
        let mut groups = Self(Vec::new());
        for (controller, old, new, value) in wanted {
            groups.limit(found, controller, (old, new), &value, name)?;
        }
        Ok((!groups.0.is_empty()).then_some(groups))
    }

    fn limit(
        &mut self,
        found: &Hierarchies,
        controller: &str,
        (old, new): (&'static str, &'static str),
        value: &str,
        name: &str,
    ) -> io::Result<()> {
        let mut refused = None;
        for (parent, file) in found.parents(controller, old, new) {
            sweep(&parent);
            let folder = parent.join(name);
            let made = match std::fs::create_dir(&folder) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            };
            let set = made.and_then(|()| {
                File::options().write(true).open(folder.join(file))?.write_all(value.as_bytes())
            });
            match set {
                Ok(()) => {
                    if !self.0.contains(&folder) {
                        self.0.push(folder);
                    }
                    return Ok(());
                }
                Err(error) => {
                    if !self.0.contains(&folder) {
                        let _ = std::fs::remove_dir(&folder);
                    }
                    refused = Some(error);
                }
            }
        }
        let why = refused.map_or_else(|| "there is no such controller".to_owned(), |e| e.to_string());
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("control group `{controller}`: {why}")))
    }

    /// Through which files a process joins.
    pub(super) fn doors(&self) -> impl Iterator<Item = PathBuf> {
        self.0.iter().map(|folder| folder.join("cgroup.procs"))
    }
}

/// Removes the groups of processes that are gone: one that was killed could not.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Where this process is in each hierarchy of control groups.
#[derive(Debug, Default)]
struct Hierarchies {
    /// Version 2.
    unified: Option<PathBuf>,
    /// Version 1: controller and folder.
    own: Vec<(String, PathBuf)>,
}

impl Hierarchies {
    fn of_this_process() -> io::Result<Self> {
        let text = std::fs::read_to_string("/proc/self/cgroup")?;
        Ok(Self::read(&text, Path::new("/sys/fs/cgroup")))
    }

    /// Reads lines of `number:controllers:path`.
    fn read(text: &str, root: &Path) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(number), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let path = path.trim_start_matches('/');
            if number == "0" && names.is_empty() {
                let root = if root.join("unified").is_dir() { root.join("unified") } else { root.to_owned() };
                found.unified = Some(below(&root, path));
            }
            for name in names.split(',').filter(|name| !name.is_empty()) {
                found.own.push((name.to_owned(), below(&root.join(name), path)));
            }
        }
        found
    }

    /// Where a group for a controller could be made, and the file that holds the limit. A group of version 2 that holds
    /// processes cannot have groups with limits below it; its parent can, where it was handed to us.
    fn parents(
        &self,
        controller: &str,
        old: &'static str,
        new: &'static str,
    ) -> Vec<(PathBuf, &'static str)> {
        let mut parents: Vec<(PathBuf, &'static str)> = self
            .own
            .iter()
            .filter(|(name, _)| name == controller)
            .map(|(_, folder)| (folder.clone(), old))
            .collect();
        if let Some(own) = &self.unified {
            parents.push((own.clone(), new));
            parents.extend(own.parent().map(|parent| (parent.to_owned(), new)));
        }
        parents
    }
}

/// The group's folder; where only a part of the hierarchy is mounted, as in a container, the mounted part's root.
fn below(root: &Path, path: &str) -> PathBuf {
    let folder = root.join(path);
    if folder.is_dir() { folder } else { root.to_owned() }
}

/// Puts this process into its groups.
pub(super) fn join(doors: &[PathBuf]) -> io::Result<()> {
    for door in doors {
        File::options().write(true).open(door)?.write_all(b"0")?;
    }
    Ok(())
}

/// Bounds the size of files for this process and what it starts, as far as they are not bounded more tightly already.
pub(super) fn file_size(bytes: Option<u64>) -> io::Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    let now = getrlimit(Resource::Fsize).maximum;
    let bound = Some(now.map_or(bytes, |now| now.min(bytes)));
    Ok(setrlimit(Resource::Fsize, Rlimit { current: bound, maximum: bound })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> TreeLimits {
        TreeLimits { processes: Some(50), memory: Some(Size::new(1 << 30)), file_size: None }
    }

    #[test]
    fn knows_where_it_is() {
        let room = tempfile::tempdir().unwrap();
        for folder in ["pids/a", "memory", "unified/user/x"] {
            std::fs::create_dir_all(room.path().join(folder)).unwrap();
        }
        let text = "9:name=systemd:/\n8:pids:/a\n4:memory:/elsewhere/b\n0::/user/x\nnonsense\n";
        let found = Hierarchies::read(text, room.path());
        let first = |controller: &str| found.parents(controller, "old", "new")[0].0.clone();
        assert_eq!(first("memory"), room.path().join("memory"), "only a part is mounted");
        assert_eq!(first("cpu"), room.path().join("unified/user/x"));
        let parents = found.parents("pids", "old", "new");
        let at = |folder: &str| room.path().join(folder);
        assert_eq!(
            parents,
            [(at("pids/a"), "old"), (at("unified/user/x"), "new"), (at("unified/user"), "new")]
        );
    }

    #[test]
    fn groups_of_the_dead_are_removed() {
        let room = tempfile::tempdir().unwrap();
        let names =
            [format!("{PREFIX}{}-0", std::process::id()), format!("{PREFIX}4194305-3"), "other-1".to_owned()];
        for name in &names {
            std::fs::create_dir(room.path().join(name)).unwrap();
        }
        sweep(room.path());
        let there = names.map(|name| room.path().join(name).exists());
        assert_eq!(there, [true, false, true]);
    }

    #[test]
    fn what_cannot_be_limited_is_an_error_that_names_it() {
        let room = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(room.path().join("pids")).unwrap();
        // A plain folder gives a new group no files of its own.
        let found = Hierarchies::read("8:pids:/\n", room.path());
        let error = Groups::make_in(&found, &limits(), "t").unwrap_err();
        assert!(error.to_string().starts_with("control group `pids`: "), "{error}");
        assert_eq!(std::fs::read_dir(room.path().join("pids")).unwrap().count(), 0, "nothing is left behind");
        let none = Groups::make_in(&Hierarchies::default(), &limits(), "t").unwrap_err();
        assert!(none.to_string().contains("no such controller"), "{none}");
        assert!(Groups::make_in(&found, &TreeLimits::default(), "t").unwrap().is_none());
    }

    #[test]
    fn one_group_of_version_2_holds_both_limits() {
        let room = tempfile::tempdir().unwrap();
        let group = room.path().join("t");
        std::fs::create_dir_all(&group).unwrap();
        for file in ["pids.max", "memory.max", "cgroup.procs"] {
            std::fs::write(group.join(file), "").unwrap();
        }
        let found = Hierarchies::read("0::/\n", room.path());
        let groups = Groups::make_in(&found, &limits(), "t").unwrap().unwrap();
        let doors: Vec<_> = groups.doors().collect();
        assert_eq!(doors, [group.join("cgroup.procs")]);
        assert_eq!(std::fs::read(group.join("pids.max")).unwrap(), b"50");
        assert_eq!(std::fs::read(group.join("memory.max")).unwrap(), (1 << 30).to_string().as_bytes());
    }
}
