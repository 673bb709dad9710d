//! Claims held against the world: what a receipt names and the diff does not show is looked up, without following
//! a link.

use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::io::Errno;
use triphammer_model::{Change, Claim, ClaimedFile, Observed, Standing, WorkPath};

use crate::facts::Facts;
use crate::root::{Root, kind_of};
use crate::snapshot::Snapshot;
use crate::tick::nanos;
use crate::zones::{Zone, ZoneMap};

/// How far a change time may lie outside the attempt and still be inside it: files are stamped by a clock that
/// advances in ticks, and lags behind the one that times the attempt.
const SLACK_NS: i64 = 20_000_000;

/// When an attempt's agent could write, by the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    start: i64,
    end: i64,
}

impl Window {
    /// From the moment before the agent was started to the one after its process tree was dead.
    pub fn new(start: SystemTime, end: SystemTime) -> Self {
        Self { start: since_1970(start), end: since_1970(end) }
    }
}

fn since_1970(time: SystemTime) -> i64 {
    let as_ns = |d: Duration| nanos(i64::try_from(d.as_secs()).unwrap_or(i64::MAX), d.subsec_nanos());
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => as_ns(after),
        Err(before) => -as_ns(before.duration()),
    }
}

/// The world that claims are held against.
#[derive(Clone, Copy, Debug)]
pub struct ClaimScene<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// Its zones.
    pub zones: &'a ZoneMap,
    /// What the diff shows.
    pub observed: &'a [Observed],
    /// The deliverable before the attempt.
    pub before: &'a Snapshot,
    /// The infrastructure before the attempt, where it was looked at: it corroborates deletions there.
    pub infrastructure_before: Option<&'a Snapshot>,
    /// When the agent could write.
    pub window: Window,
}

/// The standing of every claim, sorted by path; a path claimed twice is judged by each claim and listed once, with
/// the best standing.
pub fn stand(scene: &ClaimScene<'_>, claims: &[ClaimedFile]) -> Vec<Claim> {
    let mut judged: Vec<Claim> = claims.iter().map(|claim| scene.judge(claim)).collect();
    judged.sort_by(|a, b| (&a.path, a.standing).cmp(&(&b.path, b.standing)));
    judged.dedup_by(|later, kept| later.path == kept.path);
    judged
}

/// A claim that does not hold, and why.
type Verdict = (Standing, &'static str);

const OUTSIDE: Verdict = (Standing::Disproved, "outside the workspace");

impl ClaimScene<'_> {
    fn judge(&self, claim: &ClaimedFile) -> Claim {
        let Some(path) = self.inside(&claim.path) else {
            let path = WorkPath::from(claim.path.as_str());
            return Claim { path, standing: OUTSIDE.0, why: Some(OUTSIDE.1.to_owned()) };
        };
        if self.is_observed(&path) {
            return Claim { path, standing: Standing::Observed, why: None };
        }
        let (standing, why) = self.look_up(&path, claim.kind);
        Claim { path, standing, why: Some(why.to_owned()) }
    }

    /// The claimed path from the workspace, by its spelling; `None` when it leads out of it.
    fn inside(&self, claimed: &str) -> Option<WorkPath> {
        use std::os::unix::ffi::OsStrExt;
        let claimed = claimed.strip_prefix("file://").unwrap_or(claimed);
        let path = Path::new(claimed);
        let relative = if path.is_absolute() { self.root.relative(&spelled(path)?)? } else { spelled(path)? };
        (!relative.as_os_str().is_empty())
            .then(|| WorkPath::from_bytes(relative.as_os_str().as_bytes().to_vec()))
    }

    /// Whether the diff shows the path, or something below it.
    fn is_observed(&self, path: &WorkPath) -> bool {
        let at = self.observed.partition_point(|o| o.path < *path);
        // What lies below a directory does not follow it directly: `a-b` sorts between `a` and `a/b`.
        self.observed[at..]
            .iter()
            .take_while(|o| o.path.as_bytes().starts_with(path.as_bytes()))
            .any(|o| o.path.is_below(path.as_bytes()))
    }

    fn look_up(&self, path: &WorkPath, kind: Change) -> Verdict {
        let zone = self.zones.zone_of(self.root, path);
        if matches!(zone, Zone::Cache(_)) {
            return (Standing::Disproved, "it lies in a cache");
        }
        let found = match self.root.stat(path.as_bytes()) {
            Ok(found) => found,
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return (Standing::Disproved, "it lies behind a link or a file");
            }
            Err(_) => return (Standing::Unverifiable, "it cannot be looked at"),
        };
        match (kind, found) {
            (Change::Deleted, Some(_)) => (Standing::Disproved, "it is still there"),
            (Change::Deleted, None) => {
                let was = |s: &Snapshot| s.get(path.as_bytes()).is_some() || s.has_below(path.as_bytes());
                if was(self.before) || self.infrastructure_before.is_some_and(was) {
                    (Standing::Corroborated, "it was there before and is gone")
                } else {
                    (Standing::Disproved, "it was not there before")
                }
            }
            (_, None) => (Standing::Disproved, "it does not exist"),
            (_, Some(stat)) if kind_of(&stat) == FileType::Directory => {
                (Standing::Disproved, "it is a directory, and nothing below it moved")
            }
            (_, Some(stat)) => self.by_clock(Facts::of(&stat).ctime),
        }
    }

    /// What exists is corroborated when it changed inside the attempt.
    fn by_clock(&self, ctime: i64) -> Verdict {
        let Window { start, end } = self.window;
        if self.root.foreign_file_system().is_some() {
            (Standing::Unverifiable, "the file system's clock is not this machine's")
        } else if start > end {
            (Standing::Unverifiable, "the clock was set back during the attempt")
        } else if ctime > end.saturating_add(SLACK_NS) {
            (Standing::Unverifiable, "it changed after the attempt ended, by its clock")
        } else if ctime < start.saturating_sub(SLACK_NS) {
            (Standing::Disproved, "it has not changed since before the attempt")
        } else {
            (Standing::Corroborated, "it changed during the attempt")
        }
    }
}

/// A path without `.` and `..`; `None` when a relative one leads above its start.
fn spelled(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use triphammer_model::Content;

    use super::*;
    use crate::zones::ZoneConfig;

    struct World {
        dir: tempfile::TempDir,
        root: Root,
        zones: ZoneMap,
        before: Snapshot,
        infrastructure: Snapshot,
        start: SystemTime,
    }

    /// A workspace in which some things were there before the attempt, `act` being the attempt.
    fn world(act: impl FnOnce(&Path)) -> World {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        for file in ["src/old", ".local/old", ".local/gone", "node_modules/m/i.js"] {
            std::fs::create_dir_all(work.join(file).parent().unwrap()).unwrap();
            std::fs::write(work.join(file), "x").unwrap();
        }
        symlink("work", dir.path().join("alias")).unwrap();
        let root = Root::open(&dir.path().join("alias")).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let before = Snapshot::deliverable(&root, &zones).unwrap();
        let infrastructure = Snapshot::infrastructure(&root, &zones).unwrap();
        // Past the slack, so that what was there before is told from what came.
        crate::tick::wait_past(crate::tick::coarse_ns() + 2 * SLACK_NS);
        let start = SystemTime::now();
        act(&work);
        World { dir, root, zones, before, infrastructure, start }
    }

    fn check(world: &World, window: Window, claims: &[(&str, Change)]) -> Vec<(String, Standing, String)> {
        let observed = [Observed {
            path: WorkPath::from("src/shown/deep"),
            change: Change::Added,
            before: None,
            after: None,
            content: Content::Changed,
            renamed_from: None,
        }];
        let scene = ClaimScene {
            root: &world.root,
            zones: &world.zones,
            observed: &observed,
            before: &world.before,
            infrastructure_before: Some(&world.infrastructure),
            window,
        };
        let claims: Vec<_> = claims
            .iter()
            .map(|(path, kind)| ClaimedFile { path: (*path).to_owned(), kind: *kind, tool: None })
            .collect();
        stand(&scene, &claims)
            .into_iter()
            .map(|c| (c.path.to_string(), c.standing, c.why.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn the_world_decides() {
        let world = world(|work| {
            std::fs::write(work.join(".local/new"), "x").unwrap();
            std::fs::write(work.join("node_modules/m/i.js"), "y").unwrap();
            std::fs::remove_file(work.join(".local/gone")).unwrap();
            symlink("/etc", work.join("way")).unwrap();
        });
        let window = Window::new(world.start, SystemTime::now());
        let inside = world.root.path().join(".local/new");
        let alias = world.dir.path().join("alias/src/shown/deep");
        use Change::{Added, Changed, Deleted};
        use Standing as S;
        let table: &[(&str, Change, Standing, &str)] = &[
            ("src/shown/deep", Added, S::Observed, ""),
            ("./src/x/../shown/deep", Added, S::Observed, ""),
            ("src/shown", Added, S::Observed, ""),
            (alias.to_str().unwrap(), Changed, S::Observed, ""),
            (".local/new", Added, S::Corroborated, "during the attempt"),
            (inside.to_str().unwrap(), Added, S::Corroborated, "during the attempt"),
            (".local/old", Changed, S::Disproved, "before the attempt"),
            (".local/gone", Deleted, S::Corroborated, "is gone"),
            ("src/old", Changed, S::Disproved, "before the attempt"),
            ("src/phantom", Added, S::Disproved, "does not exist"),
            ("src/phantom/deep/er", Added, S::Disproved, "does not exist"),
            ("src/old/x", Added, S::Disproved, "behind a link or a file"),
            ("src/old", Deleted, S::Disproved, "still there"),
            ("src/never", Deleted, S::Disproved, "not there before"),
            ("node_modules/m/i.js", Changed, S::Disproved, "cache"),
            ("src", Changed, S::Observed, ""),
            (".local", Changed, S::Disproved, "directory"),
            ("way/passwd", Changed, S::Disproved, "behind a link"),
            ("../elsewhere", Added, S::Disproved, "outside"),
            ("/etc/passwd", Changed, S::Disproved, "outside"),
            ("src/../../x", Added, S::Disproved, "outside"),
            ("", Added, S::Disproved, "outside"),
            ("s\0x", Added, S::Unverifiable, "cannot be looked at"),
        ];
        for (path, kind, standing, why) in table {
            let judged = check(&world, window, &[(path, *kind)]);
            assert_eq!(judged[0].1, *standing, "{path:?} {kind:?}: {}", judged[0].2);
            assert!(judged[0].2.contains(why), "{path:?}: {}", judged[0].2);
        }
    }

    #[test]
    fn a_clock_that_cannot_be_trusted() {
        let world = world(|work| std::fs::write(work.join(".local/new"), "x").unwrap());
        let claim = [(".local/new", Change::Added), ("phantom", Change::Added)];
        let hour = Duration::from_hours(1);
        for window in [
            Window::new(world.start - 2 * hour, world.start - hour),
            Window::new(world.start + hour, world.start - hour),
        ] {
            let judged = check(&world, window, &claim);
            assert_eq!(judged[0].1, Standing::Unverifiable, "{judged:?}");
            assert_eq!(judged[1].1, Standing::Disproved, "a phantom is one by any clock");
        }
    }

    #[test]
    fn a_path_claimed_twice_is_listed_once() {
        let world = world(|_| {});
        let window = Window::new(world.start, SystemTime::now());
        let claims =
            [("src/shown/deep", Change::Deleted), ("src/shown/deep", Change::Added), ("a", Change::Added)];
        assert_eq!(check(&world, window, &claims).len(), 2);
    }
}
