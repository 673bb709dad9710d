//! One pass over a workspace: names and stats, zone by zone, with everything that was not seen.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use triphammer_model::{Bounds, WorkPath};

use crate::look::LookError;
use crate::root::{Root, ancestors, join, kind_of, stat_at, work_path};
use crate::tick::{self, Freshness, nanos};
use crate::zones::{CacheReason, Zone, ZoneMap};

/// How many entries a list in `bounds` shows; its count is exact beyond.
pub(crate) const SHOWN: usize = 200;

/// Directories nested deeper than this are not entered: nobody works there, and resolving such paths costs
/// quadratic time.
const MAX_DEPTH: usize = 1_000;

/// How often fresh entries are looked at again before they are marked as uncertain.
const MAX_ROUNDS: u32 = 4;

/// The first 43 bytes of a valid `CACHEDIR.TAG`, see <https://bford.info/cachedir/>.
const TAG_SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// What a look keeps of one stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
    pub(crate) mode: u32,
    /// Equal facts do not prove equal content.
    pub(crate) uncertain: bool,
}

impl Facts {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the widths of these fields differ between platforms, and sizes are never negative"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        let directory = kind_of(stat) == FileType::Directory;
        Self {
            // A directory's size says how its file system stores it, nothing more.
            size: if directory { 0 } else { stat.st_size as u64 },
            mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            uncertain: false,
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode as rustix::fs::RawMode)
    }
}

/// Which zones a pass lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    deliverable: bool,
    infrastructure: bool,
}

impl Want {
    pub(crate) const DELIVERABLE: Self = Self { deliverable: true, infrastructure: false };
    pub(crate) const INFRASTRUCTURE: Self = Self { deliverable: false, infrastructure: true };
    pub(crate) const BOTH: Self = Self { deliverable: true, infrastructure: true };

    /// Whether directories of `zone` are entered: infrastructure may lie anywhere below the deliverable.
    fn enters(self, zone: Zone) -> bool {
        zone == Zone::Deliverable || self.lists(zone)
    }

    pub(crate) fn lists(self, zone: Zone) -> bool {
        match zone {
            Zone::Deliverable => self.deliverable,
            Zone::Infrastructure => self.infrastructure,
            Zone::Cache(_) => false,
        }
    }
}

/// One directory as it was listed.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) zone: Zone,
    pub(crate) facts: Facts,
    /// Names and facts of what is no directory, sorted; empty where the zone is not wanted.
    pub(crate) files: Vec<(Box<[u8]>, Facts)>,
    /// Names and zones of directories below that are no caches.
    dirs: Vec<(Box<[u8]>, Zone)>,
    pruned: Vec<(Vec<u8>, CacheReason)>,
    unreadable: Vec<(Vec<u8>, String)>,
    vanished: u64,
    fresh: Option<i64>,
}

/// What a pass found.
#[derive(Debug)]
pub(crate) struct Found {
    want: Want,
    pub(crate) listings: BTreeMap<Vec<u8>, Listing>,
    /// Directories that could not be listed.
    unreadable: BTreeMap<Vec<u8>, String>,
    /// Directories that carry a believed tag.
    tagged: Vec<Vec<u8>>,
    vanished: u64,
    ahead: u64,
    restless: u64,
    foreign: Option<&'static str>,
    pub(crate) waited: Duration,
}

/// Answers whether the valid tag in a directory is believed.
pub(crate) type TagJudge<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// Lists the wanted zones of a workspace and waits out what is too fresh to trust.
///
/// # Errors
/// [`LookError`] when the workspace folder itself cannot be listed, or the system ran out of something.
pub(crate) fn walk(
    root: &Root,
    zones: &ZoneMap,
    want: Want,
    judge: TagJudge<'_>,
) -> Result<Found, LookError> {
    let mut found = Found {
        want,
        listings: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        tagged: Vec::new(),
        vanished: 0,
        ahead: 0,
        restless: 0,
        foreign: root.foreign_file_system(),
        waited: Duration::ZERO,
    };
    found.descend(root, zones, judge, vec![(Vec::new(), Zone::Deliverable)])?;
    if !found.listings.contains_key(&[][..]) {
        let what = found.unreadable.remove(&[][..]).unwrap_or_else(|| "it vanished".to_owned());
        return Err(LookError::Folder { path: root.path().to_path_buf(), what });
    }
    found.settle(root, zones, judge)?;
    Ok(found)
}

/// Whether the directory `dir` carries a `CACHEDIR.TAG` with the published signature.
pub(crate) fn has_valid_tag(root: &Root, dir: &[u8]) -> bool {
    root.open_dir(dir).is_ok_and(|fd| is_tagged(&fd))
}

fn is_tagged(dir: &OwnedFd) -> bool {
    let name = c"CACHEDIR.TAG";
    if !stat_at(dir.as_fd(), name.to_bytes()).is_ok_and(|s| kind_of(&s) == FileType::RegularFile) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(fd) = rustix::fs::openat(dir, name, flags, Mode::empty()) else { return false };
    if !rustix::fs::fstat(&fd).is_ok_and(|s| kind_of(&s) == FileType::RegularFile) {
        return false;
    }
    let mut start = [0; TAG_SIGNATURE.len()];
    std::fs::File::from(fd).read_exact(&mut start).is_ok() && start == *TAG_SIGNATURE
}

impl Found {
    /// Directories of `zone` that hold files.
    pub(crate) fn directories_with_files(&self, zone: Zone) -> impl Iterator<Item = &[u8]> {
        self.listings
            .iter()
            .filter(move |(_, listing)| listing.zone == zone && !listing.files.is_empty())
            .map(|(dir, _)| dir.as_slice())
    }

    fn descend(
        &mut self,
        root: &Root,
        zones: &ZoneMap,
        judge: TagJudge<'_>,
        mut pending: Vec<(Vec<u8>, Zone)>,
    ) -> Result<(), LookError> {
        while let Some((dir, zone)) = pending.pop() {
            if ancestors(&dir).count() >= MAX_DEPTH {
                self.unreadable.insert(dir, format!("nested deeper than {MAX_DEPTH} directories"));
                continue;
            }
            let listing = match list(root, zones, self.want, judge, &dir, zone) {
                Ok(Some(listing)) => listing,
                Ok(None) => {
                    self.tagged.push(dir);
                    continue;
                }
                // Between being listed and being opened it went away or became something else.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !dir.is_empty() => {
                    self.vanished += 1;
                    continue;
                }
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                    return Err(LookError::System { path: root.path().to_path_buf(), source: error.into() });
                }
                Err(error) => {
                    self.unreadable.insert(dir, std::io::Error::from(error).to_string());
                    continue;
                }
            };
            for (name, zone) in listing.dirs.iter().rev().filter(|(_, zone)| self.want.enters(*zone)) {
                pending.push((join(&dir, name), *zone));
            }
            self.listings.insert(dir, listing);
        }
        Ok(())
    }

    /// Waits until the clock has passed what is fresh, and looks at it again.
    fn settle(&mut self, root: &Root, zones: &ZoneMap, judge: TagJudge<'_>) -> Result<(), LookError> {
        for round in 0.. {
            let fresh: Vec<(Vec<u8>, i64)> =
                self.listings.iter().filter_map(|(dir, l)| Some((dir.clone(), l.fresh?))).collect();
            let Some(latest) = fresh.iter().map(|(_, time)| *time).max() else { break };
            if round == MAX_ROUNDS {
                // Something writes all the time; content is compared instead of times.
                self.restless = fresh.len() as u64;
                for (dir, _) in &fresh {
                    if let Some(listing) = self.listings.get_mut(dir) {
                        listing.facts.uncertain = true;
                        listing.files.iter_mut().for_each(|(_, facts)| facts.uncertain = true);
                    }
                }
                break;
            }
            self.waited += tick::wait_past(latest);
            let again = fresh
                .iter()
                .filter_map(|(dir, _)| Some((dir.clone(), self.listings.remove(dir)?)))
                .collect::<Vec<_>>();
            for (dir, old) in again {
                self.look_again(root, zones, judge, dir, &old)?;
            }
        }
        if self.foreign.is_some() {
            for listing in self.listings.values_mut() {
                listing.files.iter_mut().for_each(|(_, facts)| facts.uncertain = true);
            }
        } else {
            let files = self.listings.values().flat_map(|l| &l.files);
            self.ahead = files.filter(|(_, facts)| facts.uncertain).count() as u64;
        }
        Ok(())
    }

    /// Lists one directory again and brings what lies below in line with its names.
    fn look_again(
        &mut self,
        root: &Root,
        zones: &ZoneMap,
        judge: TagJudge<'_>,
        dir: Vec<u8>,
        old: &Listing,
    ) -> Result<(), LookError> {
        let zone = old.zone;
        let mut only =
            Self { listings: BTreeMap::new(), unreadable: BTreeMap::new(), tagged: Vec::new(), ..*self };
        if let Ok(Some(listing)) = list(root, zones, self.want, judge, &dir, zone) {
            let came: Vec<_> = listing
                .dirs
                .iter()
                .filter(|(name, zone)| {
                    self.want.enters(*zone) && !old.dirs.iter().any(|(known, _)| known == name)
                })
                .map(|(name, zone)| (join(&dir, name), *zone))
                .collect();
            let gone = old.dirs.iter().filter(|(name, _)| !listing.dirs.iter().any(|(n, _)| n == name));
            for (name, _) in gone {
                self.forget(&join(&dir, name));
            }
            self.listings.insert(dir, listing);
            self.descend(root, zones, judge, came)?;
        } else {
            // It vanished, became a cache, or can no longer be read: say so as the first pass would have.
            self.forget(&dir);
            only.descend(root, zones, judge, vec![(dir, zone)])?;
            self.listings.append(&mut only.listings);
            self.unreadable.append(&mut only.unreadable);
            self.tagged.append(&mut only.tagged);
        }
        Ok(())
    }

    fn forget(&mut self, dir: &[u8]) {
        let below =
            |path: &[u8]| path.starts_with(dir) && (path.len() == dir.len() || path[dir.len()] == b'/');
        self.listings.retain(|path, _| !below(path));
        self.unreadable.retain(|path, _| !below(path));
        self.tagged.retain(|path| !below(path));
    }

    /// What was not looked at.
    pub(crate) fn bounds(&self, zones: &ZoneMap) -> Bounds {
        let mut bounds = Bounds::default();
        let mut prune = |path: &[u8], reason: CacheReason| {
            bounds.pruned_count += 1;
            if bounds.pruned.len() < SHOWN {
                bounds.pruned.insert(work_path(path), reason.word().to_owned());
            }
        };
        let mut vanished = self.vanished;
        for listing in self.listings.values() {
            listing.pruned.iter().for_each(|(path, reason)| prune(path, *reason));
            vanished += listing.vanished;
        }
        self.tagged.iter().for_each(|path| prune(path, CacheReason::CachedirTag));
        let unreadable = self.listings.values().flat_map(|l| l.unreadable.iter().map(|(p, w)| (p, w)));
        for (path, what) in self.unreadable.iter().chain(unreadable) {
            bounds.unreadable_count += 1;
            if bounds.unreadable.len() < SHOWN {
                bounds.unreadable.insert(work_path(path), what.clone());
            }
        }
        for (dir, listing) in &self.listings {
            if !self.want.lists(listing.zone) {
                continue;
            }
            let kinds = [FileType::RegularFile, FileType::Symlink];
            for (name, _) in listing.files.iter().filter(|(_, f)| !kinds.contains(&f.kind())) {
                shown(&mut bounds.special, &mut bounds.special_count, || work_path(&join(dir, name)));
            }
            let infrastructure =
                |zone: Zone| zone == Zone::Infrastructure && listing.zone == Zone::Deliverable;
            for (name, _) in listing.dirs.iter().filter(|(_, zone)| infrastructure(*zone)) {
                shown(&mut bounds.infrastructure, &mut bounds.infrastructure_count, || {
                    work_path(&join(dir, name))
                });
            }
        }
        bounds.notes = zones.notes().to_vec();
        let mut note = |condition: bool, text: String| {
            if condition {
                bounds.notes.push(text);
            }
        };
        note(vanished > 0, format!("{vanished} entries vanished while they were looked at"));
        note(
            self.restless > 0,
            format!(
                "{} directories kept changing while they were looked at; content is compared",
                self.restless
            ),
        );
        note(
            self.ahead > 0 && self.restless == 0,
            format!("{} entries carry a change time ahead of the clock; content is compared", self.ahead),
        );
        if let Some(name) = self.foreign {
            note(
                true,
                format!("the workspace lies on {name}, whose times prove nothing; content is compared"),
            );
        }
        bounds
    }
}

fn shown(list: &mut Vec<WorkPath>, count: &mut u64, path: impl FnOnce() -> WorkPath) {
    *count += 1;
    if list.len() < SHOWN {
        list.push(path());
    }
}

/// Lists one directory; `None` when it is a cache by its tag.
fn list(
    root: &Root,
    zones: &ZoneMap,
    want: Want,
    judge: TagJudge<'_>,
    dir: &[u8],
    zone: Zone,
) -> Result<Option<Listing>, Errno> {
    let fd = root.open_dir(dir)?;
    // Read before every stat below: what carries this time or a later one may change again without showing it.
    let clock = tick::coarse_ns();
    let mut listing = Listing {
        zone,
        facts: Facts::of(&rustix::fs::fstat(&fd)?),
        files: Vec::new(),
        dirs: Vec::new(),
        pruned: Vec::new(),
        unreadable: Vec::new(),
        vanished: 0,
        fresh: None,
    };
    listing.judge(clock, listing.facts);
    let lists = want.lists(zone);
    let mut tag = false;
    for entry in Dir::read_from(&fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        tag |= name == b"CACHEDIR.TAG";
        let path = join(dir, name);
        let mut kind = entry.file_type();
        let mut facts = None;
        if kind == FileType::Unknown || (kind != FileType::Directory && lists) {
            match stat_at(fd.as_fd(), name) {
                Ok(stat) => {
                    kind = kind_of(&stat);
                    facts = Some(Facts::of(&stat));
                }
                Err(Errno::NOENT) => {
                    listing.vanished += 1;
                    continue;
                }
                Err(error) => {
                    listing.unreadable.push((path, std::io::Error::from(error).to_string()));
                    continue;
                }
            }
        }
        if kind == FileType::Directory {
            match zones.directory(zone, &path) {
                Zone::Cache(reason) => listing.pruned.push((path, reason)),
                // Below infrastructure there is nothing but infrastructure.
                Zone::Infrastructure if !want.infrastructure => {
                    listing.dirs.push((name.into(), Zone::Infrastructure));
                }
                zone => listing.dirs.push((name.into(), zone)),
            }
        } else if let Some(reason) = zones.file(&path) {
            listing.pruned.push((path, reason));
        } else if let (true, Some(mut facts)) = (lists, facts) {
            facts.uncertain = listing.judge(clock, facts);
            listing.files.push((name.into(), facts));
        }
    }
    if tag && !dir.is_empty() && is_tagged(&fd) && judge(dir) {
        return Ok(None);
    }
    listing.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    listing.dirs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(Some(listing))
}

impl Listing {
    /// Notes how fresh `facts` are; says whether waiting cannot help.
    fn judge(&mut self, clock: i64, facts: Facts) -> bool {
        match tick::freshness(facts.mtime, facts.ctime, clock) {
            Freshness::Settled => false,
            Freshness::Ahead => true,
            Freshness::Fresh => {
                let time = if facts.mtime >= clock + 1_000_000_000 {
                    facts.ctime
                } else {
                    facts.mtime.max(facts.ctime)
                };
                self.fresh = Some(self.fresh.unwrap_or(i64::MIN).max(time));
                false
            }
        }
    }
}
