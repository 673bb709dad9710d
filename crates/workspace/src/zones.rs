//! The three zones of a workspace: deliverable, infrastructure, cache. They are captured once, at a run's start,
//! so that nothing an agent does can move its earlier work out of sight.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use triphammer_model::WorkPath;

use crate::git::{IgnoreAsker, tracked_directories};
use crate::lister::{Origin, Scene, Want, tagged};
use crate::look::LookError;
use crate::root::{Root, ancestors, split, work_path};
use crate::skip_set::{self, Force};
use crate::walk::walk;

/// What a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// What the agent is asked to produce: its movement counts, and it is kept in trees.
    Deliverable,
    /// Toolchains and other hidden directories: observed only when the deliverable did not move.
    Infrastructure,
    /// What tools make again; never looked into.
    Cache(CacheReason),
}

/// Why something is a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheReason {
    /// Its name is in the shipped skip set.
    SkipSet,
    /// It carries a valid `CACHEDIR.TAG` that is believed.
    CachedirTag,
    /// It is the home's `runs/`.
    Runs,
    /// The configuration says so.
    Configured,
}

impl CacheReason {
    /// The word used in `bounds`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::SkipSet => "skip-set",
            Self::CachedirTag => "cachedir-tag",
            Self::Runs => "runs",
            Self::Configured => "configured",
        }
    }
}

/// What the configuration adds to the shipped rules.
#[derive(Clone, Debug, Default)]
pub struct ZoneConfig {
    /// Globs of further caches. Without a slash a glob is matched with every name, with one against the path from
    /// the workspace.
    pub skip: Vec<String>,
    /// The home's `runs/`, absolute; it is a cache where it lies inside the workspace.
    pub runs: Option<PathBuf>,
}

/// The zones of one workspace as they were fixed at a run's start. Serialisable, so that a process that resumes
/// the run sees the same ones; directories that came later are classified by the same rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ZoneMap {
    stored: Stored,
    skip: GlobSet,
}

/// The written form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    /// Schema version.
    schema: u32,
    /// Configured globs.
    skip: Vec<String>,
    /// The home's `runs/`, from the workspace.
    runs: Option<WorkPath>,
    /// Directories with files tracked by git, as far as a rule depends on that.
    tracked: BTreeSet<WorkPath>,
    /// Directories that had a valid tag and no tracked file at the start.
    tagged: BTreeSet<WorkPath>,
    /// Directories that held files of the deliverable at the start, at any depth.
    held: BTreeSet<WorkPath>,
    /// Which directories those are, by inode number.
    #[serde(default)]
    inodes: BTreeSet<u64>,
    /// When that was, in nanoseconds since 1970.
    #[serde(default)]
    captured: i64,
    /// What could not be asked.
    notes: Vec<String>,
}

/// A configured skip is no glob.
#[derive(Debug, thiserror::Error)]
#[error("`{glob}` in [workspace] skip is no glob ({source}): use `name`, `dir/name` or `*.ext`")]
pub struct BadSkip {
    glob: String,
    source: globset::Error,
}

impl TryFrom<Stored> for ZoneMap {
    type Error = BadSkip;

    fn try_from(stored: Stored) -> Result<Self, BadSkip> {
        let skip = globs(&stored.skip).map_err(|(glob, source)| BadSkip { glob, source })?;
        Ok(Self { stored, skip })
    }
}

impl From<ZoneMap> for Stored {
    fn from(map: ZoneMap) -> Self {
        map.stored
    }
}

/// Compiles globs in which `*` stays within one part; one without a slash is matched with every name.
pub(crate) fn globs(patterns: &[String]) -> Result<GlobSet, (String, globset::Error)> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let trimmed = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
        let anchored = trimmed.trim_start_matches('/');
        let text = if trimmed.contains('/') { anchored.to_owned() } else { format!("**/{trimmed}") };
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
        set.add(glob.map_err(|e| (pattern.clone(), e))?);
    }
    set.build().map_err(|e| (patterns.join(", "), e))
}

impl ZoneMap {
    /// Looks at the workspace once and fixes its zones. Asks git which files it tracks.
    ///
    /// # Errors
    /// [`LookError`] when the workspace cannot be walked or a configured glob is none.
    pub fn capture(root: &Root, config: &ZoneConfig) -> Result<Self, LookError> {
        let runs = config.runs.as_deref().and_then(|runs| runs_below(root, runs));
        let mut map =
            Self::try_from(Stored { schema: 1, skip: config.skip.clone(), runs, ..Stored::default() })?;
        let (tracked, note) = tracked_directories(root.path());
        map.stored.notes.extend(note);
        let hidden = |dir: &[u8]| dir.split(|b| *b == b'/').any(|part| part.starts_with(b"."));
        let depends = |dir: &[u8]| hidden(dir) || skip_set::directory(split(dir).1).is_some();
        map.stored.tracked = tracked.iter().filter(|dir| depends(dir)).map(|dir| work_path(dir)).collect();
        let tagged = Mutex::new(BTreeSet::new());
        let judge = |dir: &[u8], _: &Origin| {
            let cache = !tracked.contains(dir);
            if cache {
                tagged.lock().unwrap_or_else(PoisonError::into_inner).insert(work_path(dir));
            }
            cache
        };
        let scene = Scene::new(root, &map, Want::BOTH, &judge);
        let found = walk(&scene, &[(Vec::new(), Zone::Deliverable)], None)?;
        map.stored.tagged = tagged.into_inner().unwrap_or_else(PoisonError::into_inner);
        let held_now = held(found.directories_with_files(Zone::Deliverable));
        let inodes = found.inodes_with_files();
        map.stored.held = held_now;
        (map.stored.inodes, map.stored.captured) = (inodes, crate::tick::coarse_ns());
        Ok(map)
    }

    /// The zone of a path, as far as its name and what is on disk now tell. The path need not exist.
    pub fn zone_of(&self, root: &Root, path: &WorkPath) -> Zone {
        let path = path.as_bytes();
        let mut zone = Zone::Deliverable;
        let mut asker = IgnoreAsker::new(root.path());
        let is_dir = root
            .stat(path)
            .is_ok_and(|s| s.is_some_and(|s| crate::root::kind_of(&s) == rustix::fs::FileType::Directory));
        for dir in ancestors(path).chain(is_dir.then_some(path)) {
            zone = self.directory(zone, dir);
            if let Zone::Cache(_) = zone {
                return zone;
            }
            if tagged(root, dir).is_some_and(|origin| self.believes_tag(dir, origin, &mut asker)) {
                return Zone::Cache(CacheReason::CachedirTag);
            }
        }
        if !is_dir && let Some(reason) = self.file(path) {
            return Zone::Cache(reason);
        }
        zone
    }

    /// What could not be asked when the zones were fixed.
    pub fn notes(&self) -> &[String] {
        &self.stored.notes
    }

    /// The zone of the directory `path` by its name, below a directory of zone `parent`.
    pub(crate) fn directory(&self, parent: Zone, path: &[u8]) -> Zone {
        let name = split(path).1;
        if self.stored.runs.as_ref().is_some_and(|runs| runs.as_bytes() == path) {
            return Zone::Cache(CacheReason::Runs);
        }
        if self.is_configured(path) {
            return Zone::Cache(CacheReason::Configured);
        }
        match skip_set::directory(name) {
            Some(Force::Always) => return Zone::Cache(CacheReason::SkipSet),
            Some(Force::UnlessTracked) if !self.is_tracked(path) => {
                return Zone::Cache(CacheReason::SkipSet);
            }
            _ => {}
        }
        match parent {
            Zone::Deliverable if !name.starts_with(b".") => Zone::Deliverable,
            Zone::Deliverable if skip_set::is_configuration(name) || self.is_tracked(path) => {
                Zone::Deliverable
            }
            Zone::Deliverable | Zone::Infrastructure => Zone::Infrastructure,
            cache @ Zone::Cache(_) => cache,
        }
    }

    /// Whether [`Self::file`] depends on more than the name; else only names that begin with a dot are no work.
    pub(crate) fn asks_for_paths(&self) -> bool {
        !self.skip.is_empty()
    }

    /// Why the file `path` is no work, if it is none; its directory is no cache.
    pub(crate) fn file(&self, path: &[u8]) -> Option<CacheReason> {
        if self.is_configured(path) {
            return Some(CacheReason::Configured);
        }
        skip_set::is_file(split(path).1).then_some(CacheReason::SkipSet)
    }

    /// Whether the valid tag in `dir` is believed: a tag is a claim like any other.
    ///
    /// A directory that held work at the start is none the less work under another name, however it is tagged.
    pub(crate) fn believes_tag(&self, dir: &[u8], origin: Origin, asker: &mut IgnoreAsker) -> bool {
        if dir.is_empty() {
            return false;
        }
        let path = work_path(dir);
        if self.stored.tagged.contains(&path) {
            return true;
        }
        if self.stored.held.contains(&path) || self.was_work(origin) {
            return false;
        }
        skip_set::is_build_name(split(dir).1) || asker.is_ignored(dir)
    }

    /// Whether the directory held work at the start. Inode numbers are used again, so one that was made since is
    /// another; where that is not known it is taken for the same.
    fn was_work(&self, origin: Origin) -> bool {
        self.stored.inodes.contains(&origin.ino)
            && origin.born.is_none_or(|born| born <= self.stored.captured)
    }

    /// The same zones for a copy of the workspace: its directories are others.
    ///
    /// # Errors
    /// [`LookError`] when the workspace cannot be walked.
    pub fn for_copy(mut self, copy: &Root) -> Result<Self, LookError> {
        let judge = |dir: &[u8], _: &Origin| self.stored.tagged.contains(&work_path(dir));
        let scene = Scene::new(copy, &self, Want::DELIVERABLE, &judge);
        let found = walk(&scene, &[(Vec::new(), Zone::Deliverable)], None)?;
        let inodes = found.inodes_with_files();
        (self.stored.inodes, self.stored.captured) = (inodes, crate::tick::coarse_ns());
        Ok(self)
    }

    fn is_configured(&self, path: &[u8]) -> bool {
        !self.skip.is_empty() && self.skip.is_match(Path::new(crate::git::arg(path)))
    }

    fn is_tracked(&self, path: &[u8]) -> bool {
        self.stored.tracked.contains(&work_path(path))
    }
}

fn runs_below(root: &Root, runs: &Path) -> Option<WorkPath> {
    use std::os::unix::ffi::OsStrExt;
    let canonical = std::fs::canonicalize(runs).unwrap_or_else(|_| runs.to_path_buf());
    let below = root.relative(&canonical).or_else(|| root.relative(runs))?;
    (!below.as_os_str().is_empty()).then(|| work_path(below.as_os_str().as_bytes()))
}

fn held<'a>(directories: impl Iterator<Item = &'a [u8]>) -> BTreeSet<WorkPath> {
    let mut held = BTreeSet::new();
    for mut dir in directories {
        while !dir.is_empty() && held.insert(work_path(dir)) {
            dir = split(dir).0;
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a test\n";

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for file in files {
                tree.put(file);
            }
            tree
        }

        fn put(&self, file: &str) {
            let path = self.0.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = if file.ends_with("CACHEDIR.TAG") { TAG } else { "x" };
            std::fs::write(path, text).unwrap();
        }

        fn root(&self) -> Root {
            Root::open(self.0.path()).unwrap()
        }

        fn git(&self, args: &[&str]) {
            let status = crate::git::git_in(self.0.path())
                .args(args)
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{args:?}");
        }

        fn capture(&self, config: &ZoneConfig) -> ZoneMap {
            let map = ZoneMap::capture(&self.root(), config).unwrap();
            // A resumed run sees what was written down.
            let json = serde_json::to_string(&map).unwrap();
            serde_json::from_str(&json).unwrap()
        }

        fn check(&self, map: &ZoneMap, expected: &[(&str, Zone)]) {
            for (path, zone) in expected {
                assert_eq!(map.zone_of(&self.root(), &WorkPath::from(*path)), *zone, "{path}");
            }
        }
    }

    use Zone::{Cache, Deliverable as D, Infrastructure as I};
    const SKIP: Zone = Cache(CacheReason::SkipSet);
    const TAGGED: Zone = Cache(CacheReason::CachedirTag);

    #[test]
    fn names_tell_zones() {
        let tree = Tree::new(&["src/a"]);
        let map = tree.capture(&ZoneConfig::default());
        tree.check(
            &map,
            &[
                ("src/a", D),
                (".env", D),
                (".github/workflows/ci.yml", D),
                (".config/nextest.toml", D),
                (".local/bin/zig", I),
                (".local/lib/node_modules/x", SKIP),
                (".venv/bin/python", I),
                ("deep/er/.hidden/x", I),
                ("deep/.github/.hidden/x", I),
                (".git/config", SKIP),
                ("vendor/repo/.git", SKIP),
                ("vendor/repo/src/a", D),
                ("a/node_modules/b/c", SKIP),
                (".claude/settings.json", SKIP),
                ("target/debug/x", D),
            ],
        );
    }

    #[test]
    fn git_tracking_makes_hidden_directories_deliverable() {
        let tree = Tree::new(&[
            ".claude/agents/a.md",
            ".tools/run.sh",
            ".other/x",
            ".codex/state",
            "node_modules/m/i.js",
        ]);
        tree.git(&["init", "-q"]);
        tree.git(&["add", "-f", ".claude", ".tools", "node_modules"]);
        let map = tree.capture(&ZoneConfig::default());
        tree.git(&["add", "-f", ".other"]);
        tree.check(
            &map,
            &[
                (".claude/agents/a.md", D),
                (".claude/new", D),
                (".tools/run.sh", D),
                (".tools/new/x", D),
                (".other/x", I),
                (".codex/state", SKIP),
                ("node_modules/m/i.js", SKIP),
            ],
        );
    }

    #[test]
    fn a_tag_is_a_claim() {
        let tree = Tree::new(&["old/CACHEDIR.TAG", "old/x", "src/a", "fixtures/CACHEDIR.TAG", "fake/a"]);
        tree.git(&["init", "-q"]);
        tree.git(&["add", "fixtures"]);
        std::fs::write(tree.0.path().join(".gitignore"), "made/\n").unwrap();
        let map = tree.capture(&ZoneConfig::default());
        for file in [
            "target/CACHEDIR.TAG",
            "made/CACHEDIR.TAG",
            "hidden/CACHEDIR.TAG",
            "src/CACHEDIR.TAG",
            "CACHEDIR.TAG",
        ] {
            tree.put(file);
        }
        // Ignoring its own work afterwards does not hide what was there.
        std::fs::write(tree.0.path().join(".gitignore"), "made/\nsrc/\n").unwrap();
        std::fs::create_dir(tree.0.path().join("build")).unwrap();
        std::fs::write(tree.0.path().join("build/CACHEDIR.TAG"), "Signature: wrong").unwrap();
        tree.check(
            &map,
            &[
                ("old/x", TAGGED),
                ("fixtures/x", D),
                ("target/debug/x", TAGGED),
                ("made/x", TAGGED),
                ("hidden/x", D),
                ("src/a", D),
                ("build/x", D),
                ("top", D),
            ],
        );
    }

    #[test]
    fn configured_skips_and_runs() {
        let tree = Tree::new(&["runs/r/x", "data/big/x", "a/gen/x", "a/x.log", "sub/runs/x"]);
        let config = ZoneConfig {
            skip: vec!["gen".into(), "data/big".into(), "*.log".into()],
            runs: Some(tree.0.path().join("runs")),
        };
        let map = tree.capture(&config);
        let configured = Cache(CacheReason::Configured);
        tree.check(
            &map,
            &[
                ("runs/r/x", Cache(CacheReason::Runs)),
                ("sub/runs/x", D),
                ("data/big/x", configured),
                ("data/x", D),
                ("a/gen/x", configured),
                ("a/x.log", configured),
            ],
        );
        let bad = ZoneConfig { skip: vec!["[".into()], runs: None };
        let error = ZoneMap::capture(&tree.root(), &bad).unwrap_err();
        assert!(error.to_string().contains("[workspace] skip"), "{error}");
    }
}
