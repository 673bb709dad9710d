//! Reading one directory: its names, and the stats of what lies in it.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::facts::Facts;
use crate::listing::{Listing, ListingBuilder};
use crate::root::Root;
use crate::tick::{self, Freshness};
use crate::zones::{Zone, ZoneMap};

/// The first 43 bytes of a valid `CACHEDIR.TAG`, see <https://bford.info/cachedir/>.
const TAG_SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Bytes of names that are asked for in one call.
#[cfg(target_os = "linux")]
const BUFFER: usize = 64 << 10;

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
    pub(crate) fn enters(self, zone: Zone) -> bool {
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

/// Answers whether the valid tag in a directory is believed, by its path and by which directory it is.
pub(crate) type TagJudge<'a> = &'a (dyn Fn(&[u8], &Origin) -> bool + Sync);

/// What a pass goes by; its threads share it.
pub(crate) struct Scene<'a> {
    pub(crate) root: &'a Root,
    pub(crate) zones: &'a ZoneMap,
    pub(crate) want: Want,
    /// The device that the workspace lies on, and the name of its file system where times are weak.
    pub(crate) device: u64,
    pub(crate) weak: Option<&'static str>,
    /// The same of file systems that are mounted below.
    pub(crate) weak_below: Mutex<BTreeSet<&'static str>>,
    /// Directories that lie on another device than the workspace.
    pub(crate) elsewhere: Mutex<BTreeSet<Vec<u8>>>,
    pub(crate) believes_tag: TagJudge<'a>,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(root: &'a Root, zones: &'a ZoneMap, want: Want, believes_tag: TagJudge<'a>) -> Self {
        let device = Facts::of_open(root.fd()).map_or(0, |(_, device)| device);
        let weak = Root::weak_times(root.fd());
        Self {
            root,
            zones,
            want,
            device,
            weak,
            weak_below: Mutex::default(),
            elsewhere: Mutex::default(),
            believes_tag,
        }
    }

    /// Whether times are weak in the open directory `fd`, which lies on `device`.
    fn is_weak(&self, fd: BorrowedFd<'_>, device: u64) -> bool {
        if device == self.device {
            return self.weak.is_some();
        }
        let name = Root::weak_times(fd);
        self.weak_below.lock().unwrap_or_else(PoisonError::into_inner).extend(name);
        name.is_some()
    }
}

/// Which directory it is, wherever it was moved to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) ino: u64,
    /// When it was made, in nanoseconds since 1970, where the file system knows.
    pub(crate) born: Option<i64>,
}

impl Origin {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Self {
        let ino = Facts::of_open(fd).map_or(0, |(facts, _)| facts.ino);
        #[cfg(target_os = "linux")]
        let born = {
            use rustix::fs::{AtFlags, StatxFlags, statx};
            let stat = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok();
            let known = stat.filter(|stat| stat.stx_mask & StatxFlags::BTIME.bits() != 0);
            known.map(|stat| tick::nanos(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
        };
        #[cfg(not(target_os = "linux"))]
        let born = None;
        Self { ino, born }
    }
}

/// Flags with which a directory is opened to be listed.
pub(crate) const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which directory `dir` is, if it carries a `CACHEDIR.TAG` with the published signature.
pub(crate) fn tagged(root: &Root, dir: &[u8]) -> Option<Origin> {
    let fd = root.open_dir(dir).ok()?;
    is_tagged(fd.as_fd()).then(|| Origin::of(fd.as_fd()))
}

fn is_tagged(dir: BorrowedFd<'_>) -> bool {
    let name = c"CACHEDIR.TAG";
    if !Facts::at(dir, name).is_ok_and(|facts| facts.kind() == FileType::RegularFile) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(fd) = rustix::fs::openat(dir, name, flags, Mode::empty()) else { return false };
    if !Facts::of_open(fd.as_fd()).is_ok_and(|(facts, _)| facts.kind() == FileType::RegularFile) {
        return false;
    }
    let mut start = [0; TAG_SIGNATURE.len()];
    std::fs::File::from(fd).read_exact(&mut start).is_ok() && start == *TAG_SIGNATURE
}

/// How a kept listing stands now.
pub(crate) enum Again {
    /// As it was, in every stat.
    Same,
    /// The same names with other stats.
    Restated(Listing),
    /// The names may be others.
    Stale,
}

/// Reads directories; a thread keeps one, so that its buffers are made once.
pub(crate) struct Lister {
    #[cfg(target_os = "linux")]
    buffer: Vec<u8>,
    names: Vec<u8>,
    entries: Vec<Name>,
    path: Vec<u8>,
    builder: ListingBuilder,
}

struct Name {
    start: usize,
    /// Where its NUL is.
    end: usize,
    kind: FileType,
    /// What its stat said, where it was asked for at once.
    facts: Option<Result<Facts, Errno>>,
}

impl Lister {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            buffer: Vec::with_capacity(BUFFER),
            names: Vec::new(),
            entries: Vec::new(),
            path: Vec::new(),
            builder: ListingBuilder::default(),
        }
    }

    /// Lists the open directory `fd` at path `dir`; `None` when it is a cache by its tag.
    pub(crate) fn list(
        &mut self,
        scene: &Scene<'_>,
        fd: BorrowedFd<'_>,
        dir: &[u8],
        zone: Zone,
    ) -> Result<Option<Listing>, Errno> {
        let mut age = Age::now();
        let (facts, device) = Facts::of_open(fd)?;
        age.weak = scene.is_weak(fd, device);
        if device != scene.device {
            scene.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_vec());
        }
        let facts = age.judge(facts);
        self.names.clear();
        self.entries.clear();
        self.read_names(fd, scene.want.lists(zone))?;
        let listed = self.look_at(scene, fd, dir, zone, &mut age);
        Ok(listed.then(|| self.builder.finish(zone, facts, age.fresh)))
    }

    /// Asks for the stats of the names that were read; says no when the directory is a cache by its tag.
    fn look_at(
        &mut self,
        scene: &Scene<'_>,
        fd: BorrowedFd<'_>,
        dir: &[u8],
        zone: Zone,
        age: &mut Age,
    ) -> bool {
        let Self { names, entries, path, builder, .. } = self;
        builder.begin(dir);
        if entries.iter().any(|entry| &names[entry.start..entry.end] == b"CACHEDIR.TAG") {
            if !dir.is_empty() && is_tagged(fd) && (scene.believes_tag)(dir, &Origin::of(fd)) {
                return false;
            }
            builder.tag();
        }
        entries.sort_unstable_by(|a, b| names[a.start..a.end].cmp(&names[b.start..b.end]));
        let lists = scene.want.lists(zone);
        path.clear();
        path.extend_from_slice(dir);
        if !dir.is_empty() {
            path.push(b'/');
        }
        let base = path.len();
        // A path is put together only for what asks for it: most files do not.
        let full = |path: &mut Vec<u8>, name: &[u8]| {
            path.truncate(base);
            path.extend_from_slice(name);
        };
        let paths = scene.zones.asks_for_paths();
        for entry in entries.iter() {
            let name = &names[entry.start..entry.end];
            let unknown = entry.facts.is_none() && entry.kind == FileType::Unknown;
            let asked = || {
                let name = CStr::from_bytes_with_nul(&names[entry.start..=entry.end]).unwrap_or(c"");
                Facts::at(fd, name)
            };
            let facts = match if unknown { Some(asked()) } else { entry.facts } {
                Some(Ok(facts)) => Some(facts),
                None => None,
                Some(Err(Errno::NOENT)) => {
                    builder.hidden().vanished += 1;
                    continue;
                }
                Some(Err(error)) => {
                    let why = std::io::Error::from(error).to_string();
                    full(path, name);
                    builder.hidden().unreadable.push((path.clone(), why));
                    continue;
                }
            };
            let kind = facts.map_or(entry.kind, |facts| facts.kind());
            if kind == FileType::Directory || paths || name.starts_with(b".") {
                full(path, name);
            }
            if kind == FileType::Directory {
                match scene.zones.directory(zone, path) {
                    Zone::Cache(reason) => builder.hidden().pruned.push((path.clone(), reason)),
                    zone => builder.dir(name, zone),
                }
            } else if (paths || name.starts_with(b"."))
                && let Some(reason) = scene.zones.file(path)
            {
                builder.hidden().pruned.push((path.clone(), reason));
            } else if let (true, Some(facts)) = (lists, facts) {
                builder.file(name, &age.judge(facts));
            }
        }
        true
    }

    /// Reads the names; of those that are known to be no directories the stats are asked for at once where they are
    /// wanted.
    #[cfg(target_os = "linux")]
    fn read_names(&mut self, fd: BorrowedFd<'_>, stats: bool) -> Result<(), Errno> {
        let mut dir = rustix::fs::RawDir::new(fd, self.buffer.spare_capacity_mut());
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let start = self.names.len();
            let (name, kind) = (entry.file_name(), entry.file_type());
            let ask = stats && !matches!(kind, FileType::Directory | FileType::Unknown);
            let facts = ask.then(|| Facts::at(fd, name));
            self.names.extend_from_slice(name.to_bytes_with_nul());
            push(&mut self.entries, &mut self.names, start, kind, facts);
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn read_names(&mut self, fd: BorrowedFd<'_>, stats: bool) -> Result<(), Errno> {
        self.read_names_portably(fd, stats)
    }

    /// The same through the C library's way of reading directories, for systems without `getdents64`.
    #[cfg(any(test, not(target_os = "linux")))]
    fn read_names_portably(&mut self, fd: BorrowedFd<'_>, stats: bool) -> Result<(), Errno> {
        for entry in rustix::fs::Dir::read_from(fd)? {
            let entry = entry?;
            let start = self.names.len();
            let (name, kind) = (entry.file_name(), entry.file_type());
            let ask = stats && !matches!(kind, FileType::Directory | FileType::Unknown);
            let facts = ask.then(|| Facts::at(fd, name));
            self.names.extend_from_slice(name.to_bytes_with_nul());
            push(&mut self.entries, &mut self.names, start, kind, facts);
        }
        Ok(())
    }
}

/// Compares the open directory `fd` with how it was listed before. As long as a directory's own times stand
/// still so do the names in it, and only what they name is asked for.
pub(crate) fn again(scene: &Scene<'_>, fd: BorrowedFd<'_>, kept: &Listing) -> Result<Again, Errno> {
    let open_question =
        |hidden: &crate::listing::Hidden| hidden.vanished > 0 || !hidden.unreadable.is_empty();
    if kept.tag || kept.facts().uncertain || kept.hidden().is_some_and(open_question) {
        return Ok(Again::Stale);
    }
    let mut age = Age::now();
    let (own, device) = Facts::of_open(fd)?;
    // What is mounted below is always listed, and so named.
    if device != scene.device || scene.is_weak(fd, device) {
        return Ok(Again::Stale);
    }
    let own = age.judge(own);
    if !own.same_as(&kept.facts()) {
        return Ok(Again::Stale);
    }
    // Made at the first difference only: most directories have none.
    let mut moved: Option<Vec<Facts>> = None;
    for index in 0..kept.len() {
        let was = kept.file(index).1;
        let Ok(facts) = Facts::at(fd, kept.file_name(index)) else { return Ok(Again::Stale) };
        if facts.kind() == FileType::Directory {
            return Ok(Again::Stale);
        }
        let facts = age.judge(facts);
        if facts != was && moved.is_none() {
            let mut all = Vec::with_capacity(kept.len());
            all.extend((0..index).map(|i| kept.file(i).1));
            moved = Some(all);
        }
        if let Some(all) = &mut moved {
            all.push(facts);
        }
    }
    if moved.is_none() && age.fresh.is_none() && !own.uncertain && !kept.uncertain {
        return Ok(Again::Same);
    }
    Ok(Again::Restated(match moved {
        Some(all) => kept.with_facts(own, all.into_iter(), age.fresh),
        None => kept.with_facts(own, kept.files().map(|(_, facts)| facts), age.fresh),
    }))
}

/// Takes the name that was just appended, unless it is the directory itself or the one above.
fn push(
    entries: &mut Vec<Name>,
    names: &mut Vec<u8>,
    start: usize,
    kind: FileType,
    facts: Option<Result<Facts, Errno>>,
) {
    if matches!(&names[start..], b".\0" | b"..\0") {
        names.truncate(start);
    } else {
        entries.push(Name { start, end: names.len() - 1, kind, facts });
    }
}

/// How old what is looked at is, by the clock that was read before.
struct Age {
    clock: i64,
    /// The latest time that is too fresh to trust.
    fresh: Option<i64>,
    /// The file system's times prove nothing.
    weak: bool,
}

impl Age {
    /// Read before every stat that is judged by it: what carries this time or a later one may change again without
    /// showing it.
    fn now() -> Self {
        Self { clock: tick::coarse_ns(), fresh: None, weak: false }
    }

    /// Notes how fresh `facts` are, and marks them where waiting cannot help.
    fn judge(&mut self, facts: Facts) -> Facts {
        let uncertain = match tick::freshness(facts.mtime, facts.ctime, self.clock) {
            Freshness::Settled => false,
            Freshness::Ahead => true,
            Freshness::Fresh(time) => {
                self.fresh = Some(self.fresh.map_or(time, |latest| latest.max(time)));
                false
            }
        };
        Facts { uncertain: uncertain || self.weak, ..facts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same_names() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3_000 {
            std::fs::write(dir.path().join(format!("{n}-{}", "x".repeat(n % 200))), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        let names = |portably: bool| {
            let fd = std::fs::File::open(dir.path()).unwrap();
            let mut lister = Lister::new();
            let read = if portably {
                lister.read_names_portably(fd.as_fd(), true)
            } else {
                lister.read_names(fd.as_fd(), true)
            };
            read.unwrap();
            let mut names: Vec<_> = lister
                .entries
                .iter()
                .map(|e| (lister.names[e.start..e.end].to_vec(), e.kind, e.facts))
                .collect();
            names.sort_by(|a, b| a.0.cmp(&b.0));
            names
        };
        assert_eq!(names(false).len(), 3_001);
        assert_eq!(names(false), names(true));
    }

    /// Some file systems do not say what is a directory.
    #[test]
    fn kinds_that_are_not_told_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::create_dir(dir.path().join("node_modules")).unwrap();
        std::os::unix::fs::symlink("sub", dir.path().join("link")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &crate::zones::ZoneConfig::default()).unwrap();
        for want in [Want::DELIVERABLE, Want::INFRASTRUCTURE] {
            let scene = Scene::new(&root, &zones, want, &|_, _| false);
            let mut lister = Lister::new();
            let fd = root.open_dir(b"").unwrap();
            let told = lister.list(&scene, fd.as_fd(), b"", Zone::Deliverable).unwrap().unwrap();
            let fd = root.open_dir(b"").unwrap();
            lister.names.clear();
            lister.entries.clear();
            lister.read_names(fd.as_fd(), false).unwrap();
            lister.entries.iter_mut().for_each(|entry| entry.kind = FileType::Unknown);
            let mut age = Age::now();
            assert!(lister.look_at(&scene, fd.as_fd(), b"", Zone::Deliverable, &mut age));
            let asked = lister.builder.finish(Zone::Deliverable, told.facts(), age.fresh);
            assert!(asked.files().eq(told.files()) && asked.dirs().eq(told.dirs()));
            assert_eq!(asked.dirs().collect::<Vec<_>>(), [(&b"sub"[..], Zone::Deliverable)]);
            assert_eq!(asked.hidden().unwrap().pruned.len(), 1);
        }
    }
}
