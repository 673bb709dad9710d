//! A snapshot: what one zone of a workspace looks like, by names and stats, compactly.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::FileType;
use triphammer_model::{Bounds, WorkPath};

use crate::descend::Start;
use crate::facts::Facts;
use crate::git::IgnoreAsker;
use crate::lister::{Origin, Scene, Want};
use crate::listing::{Listing, ListingBuilder, by_parts, is_in};
use crate::look::LookError;
use crate::root::{Root, ancestors, join, split};
use crate::walk::{Earlier, infrastructure_starts, walk};
use crate::zones::{Zone, ZoneMap};

/// What kind of thing an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A FIFO, socket or device: seen, its content is not.
    Special,
}

impl EntryKind {
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Symlink,
            FileType::Directory => Self::Directory,
            _ => Self::Special,
        }
    }
}

/// One entry of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its directory's path from the workspace, as bytes; empty for the workspace itself.
    pub dir: &'a [u8],
    /// Its name, as bytes.
    pub name: &'a [u8],
    pub(crate) facts: Facts,
}

impl Entry<'_> {
    /// Its path from the workspace, as bytes.
    pub fn path(&self) -> Vec<u8> {
        join(self.dir, self.name)
    }

    /// Its path from the workspace.
    pub fn work_path(&self) -> WorkPath {
        WorkPath::from_bytes(self.path())
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> EntryKind {
        EntryKind::of(self.facts.kind())
    }

    /// Its size in bytes; of a link, the length of its target.
    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// When its content changed, in nanoseconds since 1970; anyone can set it.
    pub fn mtime_ns(&self) -> i64 {
        self.facts.mtime
    }

    /// When it changed in any way, in nanoseconds since 1970; nobody can set it but by the clock.
    pub fn ctime_ns(&self) -> i64 {
        self.facts.ctime
    }

    /// Its permission bits, set-user-id and the like included.
    pub fn permissions(&self) -> u32 {
        self.facts.mode & 0o7777
    }

    /// The published signature, `size:mtime_ns`.
    pub fn signature(&self) -> String {
        format!("{}:{}", self.facts.size, self.facts.mtime)
    }
}

/// What one zone of a workspace looks like: its directories, each with the names and stats of what lies in it.
/// Entries come directory by directory, each directory before those below it, and by name within one. Snapshots
/// share the directories that did not move. About 75 bytes an entry.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    listings: Vec<Arc<Listing>>,
    /// The number of entries in the directories before each one, and at the end of all.
    starts: Vec<usize>,
    /// Directories that were met and not listed.
    outside: Vec<Vec<u8>>,
    /// Places that could not be looked at, sorted: nothing is known of them and of what is below.
    unseen: Vec<(Vec<u8>, String)>,
    /// It was written down: what it says of directories is not enough to look again by.
    remembered: bool,
    bounds: Bounds,
    waited: Duration,
}

impl Snapshot {
    /// Looks at the deliverable.
    ///
    /// # Errors
    /// [`LookError`] when the workspace folder itself cannot be listed.
    pub fn deliverable(root: &Root, zones: &ZoneMap) -> Result<Self, LookError> {
        Self::take(root, zones, Want::DELIVERABLE, &top(), None)
    }

    /// Looks at the deliverable again: what `last` saw is asked for its stats, and only directories that moved
    /// since are listed. The answer is that of [`Snapshot::deliverable`].
    ///
    /// # Errors
    /// [`LookError`] when the workspace folder itself cannot be listed.
    pub fn deliverable_since(root: &Root, zones: &ZoneMap, last: &Self) -> Result<Self, LookError> {
        Self::take(root, zones, Want::DELIVERABLE, &top(), Some(last))
    }

    /// Looks at the infrastructure by a walk of its own, wherever it lies: what [`Self::infrastructure_beside`] is held
    /// against.
    #[cfg(test)]
    pub(crate) fn infrastructure(root: &Root, zones: &ZoneMap) -> Result<Self, LookError> {
        let mut seen = Self::take(root, zones, Want::INFRASTRUCTURE, &top(), None)?;
        seen.listings.retain(|listing| listing.zone == Zone::Infrastructure);
        seen.count();
        Ok(seen)
    }

    /// Looks at the infrastructure that a look at the deliverable met; what `last` saw of it is asked for its stats.
    ///
    /// # Errors
    /// [`LookError`] when the system ran out of something.
    pub fn infrastructure_beside(
        root: &Root,
        zones: &ZoneMap,
        deliverable: &Self,
        last: Option<&Self>,
    ) -> Result<Self, LookError> {
        let starts = infrastructure_starts(&deliverable.listings);
        Self::take(root, zones, Want::INFRASTRUCTURE, &starts, last)
    }

    fn take(
        root: &Root,
        zones: &ZoneMap,
        want: Want,
        starts: &[Start],
        last: Option<&Self>,
    ) -> Result<Self, LookError> {
        let asker = Mutex::new(IgnoreAsker::new(root.path()));
        let judge = |dir: &[u8], origin: &Origin| {
            zones.believes_tag(dir, *origin, &mut asker.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let scene = Scene::new(root, zones, want, &judge);
        let earlier = last
            .filter(|last| !last.remembered)
            .map(|last| Earlier { listings: &last.listings, outside: &last.outside });
        let found = walk(&scene, starts, earlier)?;
        let mut snapshot = Self {
            bounds: found.bounds(&scene),
            outside: found.unlisted(),
            unseen: found.unseen(),
            waited: found.waited,
            listings: found.listings,
            ..Self::default()
        };
        snapshot.count();
        Ok(snapshot)
    }

    /// A snapshot of entries that were written down, in any order: directories, and everything else.
    pub(crate) fn remembered(directories: Vec<(Vec<u8>, Facts)>, mut files: Vec<(Vec<u8>, Facts)>) -> Self {
        let unknown = Facts { size: 0, mtime: 0, ctime: 0, ino: 0, mode: 0o040_755, uncertain: true };
        let mut all: BTreeMap<Vec<u8>, (Facts, Vec<usize>)> =
            directories.into_iter().map(|(path, facts)| (path, (facts, Vec::new()))).collect();
        all.entry(Vec::new()).or_insert((unknown, Vec::new()));
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (index, (path, _)) in files.iter().enumerate() {
            let (_, held) = all.entry(split(path).0.to_vec()).or_insert((unknown, Vec::new()));
            held.push(index);
        }
        let mut builder = ListingBuilder::default();
        let finished = all.into_iter().map(|(path, (facts, held))| {
            builder.begin(&path);
            for index in held {
                builder.file(split(&files[index].0).1, &files[index].1);
            }
            Arc::new(builder.finish(Zone::Deliverable, facts, None))
        });
        let mut listings: Vec<_> = finished.collect();
        listings.sort_unstable_by(|a, b| by_parts(a.path(), b.path()));
        let mut snapshot = Self { listings, remembered: true, ..Self::default() };
        snapshot.count();
        snapshot
    }

    fn count(&mut self) {
        let mut sum = 0;
        self.starts = Vec::with_capacity(self.listings.len() + 1);
        self.starts.push(0);
        self.starts.extend(self.listings.iter().map(|listing| {
            sum += listing.len();
            sum
        }));
        self.listings.shrink_to_fit();
    }

    /// How many entries there are, directories not counted.
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there is nothing but directories.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Files, links and special files, in the order of the snapshot.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.listings.iter().flat_map(|listing| {
            listing.files().map(|(name, facts)| Entry { dir: listing.path(), name, facts })
        })
    }

    /// Directories, each before those below it; the workspace folder itself is not among them.
    pub fn directories(&self) -> impl Iterator<Item = Entry<'_>> {
        self.listings.iter().filter(|listing| !listing.path().is_empty()).map(|listing| {
            let (dir, name) = split(listing.path());
            Entry { dir, name, facts: listing.facts() }
        })
    }

    /// The file, link or special file at `path`.
    pub fn get(&self, path: &[u8]) -> Option<Entry<'_>> {
        self.position(path).map(|i| self.at(i))
    }

    /// The directory at `path`.
    pub fn directory(&self, path: &[u8]) -> Option<Entry<'_>> {
        let listing = self.listing_of(path).filter(|_| !path.is_empty()).map(|i| &self.listings[i])?;
        let (dir, name) = split(listing.path());
        Some(Entry { dir, name, facts: listing.facts() })
    }

    /// Whether anything below the directory `path` is there.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let from = self.listings.partition_point(|listing| by_parts(listing.path(), path).is_lt());
        self.listings[from..].iter().take_while(|l| is_in(l.path(), path)).any(|l| l.len() > 0)
    }

    /// What was not looked at.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Places that could not be looked at, with the reasons, sorted.
    pub(crate) fn unseen(&self) -> &[(Vec<u8>, String)] {
        &self.unseen
    }

    /// Whether `path` is or lies below a place that could not be looked at.
    pub(crate) fn is_unseen(&self, path: &[u8]) -> bool {
        let known = |at: &[u8]| self.unseen.binary_search_by(|(place, _)| place.as_slice().cmp(at)).is_ok();
        !self.unseen.is_empty() && (ancestors(path).any(known) || known(path))
    }

    /// How long fresh timestamps were waited out.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// All its directories, the workspace folder first.
    pub(crate) fn listings(&self) -> &[Arc<Listing>] {
        &self.listings
    }

    /// The number of the first entry in a directory.
    pub(crate) fn first_of(&self, listing: usize) -> usize {
        self.starts[listing]
    }

    /// Where the directory `path` stands.
    pub(crate) fn listing_of(&self, path: &[u8]) -> Option<usize> {
        self.listings.binary_search_by(|listing| by_parts(listing.path(), path)).ok()
    }

    /// The number of the entry at `path`.
    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        let (dir, name) = split(path);
        let listing = self.listing_of(dir)?;
        Some(self.starts[listing] + self.listings[listing].position(name)?)
    }

    /// The entry of this number.
    pub(crate) fn at(&self, index: usize) -> Entry<'_> {
        let listing = self.starts.partition_point(|start| *start <= index) - 1;
        let (name, facts) = self.listings[listing].file(index - self.starts[listing]);
        Entry { dir: self.listings[listing].path(), name, facts }
    }
}

fn top() -> [Start; 1] {
    [(Vec::new(), Zone::Deliverable)]
}

/// Two numbers, or one, of the same thing in two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Before(usize),
    After(usize),
    Both(usize, usize),
}

/// Pairs two sorted lists, given by their lengths and how their items compare.
fn merge(
    (before, after): (usize, usize),
    compare: impl Fn(usize, usize) -> Ordering,
) -> impl Iterator<Item = Pair> {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        let order = match (i < before, j < after) {
            (false, false) => return None,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => compare(i, j),
        };
        let pair = match order {
            Ordering::Less => Pair::Before(i),
            Ordering::Greater => Pair::After(j),
            Ordering::Equal => Pair::Both(i, j),
        };
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
        Some(pair)
    })
}

/// Every directory of two snapshots, in order.
pub(crate) fn directory_pairs<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
) -> impl Iterator<Item = Pair> + 'a {
    let (old, new) = (&before.listings, &after.listings);
    merge((old.len(), new.len()), |i, j| {
        if Arc::ptr_eq(&old[i], &new[j]) { Ordering::Equal } else { by_parts(old[i].path(), new[j].path()) }
    })
}

/// Every entry of one directory in two snapshots, in order; either may be missing.
pub(crate) fn entry_pairs<'a>(
    before: Option<(&'a Snapshot, usize)>,
    after: Option<(&'a Snapshot, usize)>,
) -> impl Iterator<Item = Pair> + 'a {
    let take = |side: Option<(&'a Snapshot, usize)>| {
        side.map(|(snapshot, at)| (&snapshot.listings[at], snapshot.starts[at]))
    };
    let (old, new) = (take(before), take(after));
    let len = |side: Option<(&Arc<Listing>, usize)>| side.map_or(0, |(listing, _)| listing.len());
    let first = |side: Option<(&Arc<Listing>, usize)>| side.map_or(0, |(_, first)| first);
    let (i0, j0) = (first(old), first(new));
    let order = move |i: usize, j: usize| match (old, new) {
        (Some((old, _)), Some((new, _))) => old.file(i).0.cmp(new.file(j).0),
        _ => Ordering::Equal,
    };
    merge((len(old), len(new)), order).map(move |pair| match pair {
        Pair::Before(i) => Pair::Before(i0 + i),
        Pair::After(j) => Pair::After(j0 + j),
        Pair::Both(i, j) => Pair::Both(i0 + i, j0 + j),
    })
}

/// Every entry of two snapshots in the order of the snapshots, but for directories that both share: what lies in
/// those is the same.
pub(crate) fn differing_pairs<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
) -> impl Iterator<Item = Pair> + 'a {
    directory_pairs(before, after).flat_map(move |pair| {
        let (old, new) = match pair {
            Pair::Before(i) => (Some(i), None),
            Pair::After(j) => (None, Some(j)),
            Pair::Both(i, j) if Arc::ptr_eq(&before.listings[i], &after.listings[j]) => (None, None),
            Pair::Both(i, j) => (Some(i), Some(j)),
        };
        entry_pairs(old.map(|i| (before, i)), new.map(|j| (after, j)))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::zones::ZoneConfig;

    fn look(dir: &std::path::Path) -> Snapshot {
        let root = Root::open(dir).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        Snapshot::deliverable(&root, &zones).unwrap()
    }

    fn paths(snapshot: &Snapshot) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> = snapshot.iter().map(|e| e.path()).collect();
        paths.sort_unstable();
        paths
    }

    #[test]
    fn sees_every_kind_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| dir.path().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(at(b"a/b")).unwrap();
        for name in [&b"a-b"[..], b"a/b/c", b"a/\xff\xfe", b"new\nline", b".hidden", b" ", b"\\x41"] {
            std::fs::write(at(name), "x").unwrap();
        }
        symlink("/etc", at(b"a/link")).unwrap();
        symlink("nowhere", at(b"dangling")).unwrap();
        symlink(".", at(b"loop")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at(b"pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(at(b"socket")).unwrap();
        std::fs::create_dir_all(at(b".git/objects")).unwrap();
        std::fs::write(at(b".git/HEAD"), "x").unwrap();
        std::fs::create_dir_all(at(b".local/bin")).unwrap();
        std::fs::write(at(b".local/bin/zig"), "x").unwrap();
        std::fs::create_dir_all(at(b"empty/er")).unwrap();

        let snapshot = look(dir.path());
        let expected: Vec<&[u8]> = vec![
            b" ",
            b".hidden",
            b"\\x41",
            b"a-b",
            b"a/\xff\xfe",
            b"a/b/c",
            b"a/link",
            b"dangling",
            b"loop",
            b"new\nline",
            b"pipe",
            b"socket",
        ];
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(paths(&snapshot), expected);
        assert_eq!(
            snapshot.directories().map(|e| e.path()).collect::<Vec<_>>(),
            [&b"a"[..], b"a/b", b"empty", b"empty/er"]
        );
        let kind = |path: &[u8]| snapshot.get(path).unwrap().kind();
        assert_eq!((kind(b"pipe"), kind(b"socket")), (EntryKind::Special, EntryKind::Special));
        assert_eq!((kind(b"a/link"), kind(b"loop")), (EntryKind::Symlink, EntryKind::Symlink));
        let bounds = snapshot.bounds();
        assert_eq!((bounds.pruned_count, bounds.special_count, bounds.infrastructure_count), (1, 2, 1));
        assert_eq!(bounds.infrastructure, [triphammer_model::WorkPath::from(".local")]);
        assert!(snapshot.has_below(b"a") && !snapshot.has_below(b"empty") && !snapshot.has_below(b"a-"));
    }

    #[test]
    fn infrastructure_is_its_own_view() {
        let dir = tempfile::tempdir().unwrap();
        for file in [".local/bin/zig", "deep/.tool/x", "src/a", ".local/lib/node_modules/m/x"] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let snapshot = Snapshot::infrastructure(&root, &zones).unwrap();
        assert_eq!(paths(&snapshot), [&b".local/bin/zig"[..], b"deep/.tool/x"]);
        assert_eq!(paths(&Snapshot::deliverable(&root, &zones).unwrap()), [&b"src/a"[..]]);
    }

    #[test]
    fn agrees_with_walkdir() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let dir = tempfile::tempdir().unwrap();
            let mut dirs = vec![dir.path().to_path_buf()];
            for n in 0..120 {
                let parent = dirs[random.usize(..dirs.len())].clone();
                if random.u8(..) < 80 {
                    let new = parent.join(format!("d{n}"));
                    std::fs::create_dir(&new).unwrap();
                    dirs.push(new);
                } else {
                    std::fs::write(parent.join(format!("f{n}")), "x".repeat(random.usize(..50))).unwrap();
                }
            }
            let oracle: BTreeMap<Vec<u8>, u64> = walkdir::WalkDir::new(dir.path())
                .into_iter()
                .map(Result::unwrap)
                .filter(|e| !e.file_type().is_dir())
                .map(|e| {
                    let path = e.path().strip_prefix(dir.path()).unwrap();
                    (path.as_os_str().as_bytes().to_vec(), e.metadata().unwrap().len())
                })
                .collect();
            let snapshot = look(dir.path());
            let ours: BTreeMap<_, _> = snapshot.iter().map(|e| (e.path(), e.size())).collect();
            assert_eq!(ours, oracle, "seed {seed}");
        }
    }

    type Entries = Vec<(Vec<u8>, Facts)>;

    /// Everything that a snapshot says.
    fn all(snapshot: &Snapshot) -> (Entries, Entries, Bounds) {
        let own = |e: Entry<'_>| (e.path(), e.facts);
        let (files, dirs) = (snapshot.iter().map(own), snapshot.directories().map(own));
        (files.collect(), dirs.collect(), snapshot.bounds().clone())
    }

    const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55";

    #[test]
    fn looking_again_finds_what_a_walk_finds() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        for n in 0..300 {
            put(&format!("many/d{n}/e/f"), "x");
        }
        for path in
            ["a/b/c/f", "a/b/g", "a-b/f", "target/debug/out", "build/out", ".local/bin/tool", "deep/.tool/x"]
        {
            put(path, "x");
        }
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let mut last = Snapshot::deliverable(&root, &zones).unwrap();
        let mut beside = Snapshot::infrastructure_beside(&root, &zones, &last, None).unwrap();
        let steps: [(&str, &dyn Fn()); 17] = [
            ("nothing", &|| {}),
            ("a file", &|| put("a/b/g", "longer")),
            ("a tag comes", &|| put("target/CACHEDIR.TAG", TAG)),
            ("work in a cache", &|| put("target/debug/more", "x")),
            ("a tag is spoilt in place", &|| std::fs::write(at("target/CACHEDIR.TAG"), "none").unwrap()),
            ("a tag is mended in place", &|| std::fs::write(at("target/CACHEDIR.TAG"), TAG).unwrap()),
            ("a tag goes", &|| std::fs::remove_file(at("target/CACHEDIR.TAG")).unwrap()),
            ("a directory moves", &|| std::fs::rename(at("a"), at("z")).unwrap()),
            ("a directory becomes a file", &|| {
                std::fs::remove_dir_all(at("z/b/c")).unwrap();
                put("z/b/c", "x");
            }),
            ("a file becomes a directory", &|| {
                std::fs::remove_file(at("z/b/c")).unwrap();
                put("z/b/c/d/e", "x");
            }),
            ("a directory becomes a link", &|| {
                std::fs::remove_dir_all(at("z/b")).unwrap();
                symlink("../many", at("z/b")).unwrap();
            }),
            ("two directories change places", &|| {
                std::fs::rename(at("many/d1"), at("many/x")).unwrap();
                std::fs::rename(at("many/d2"), at("many/d1")).unwrap();
                std::fs::rename(at("many/x"), at("many/d2")).unwrap();
            }),
            ("a cache by name", &|| put("a-b/node_modules/m/i.js", "x")),
            ("a tool is changed", &|| put("deep/.tool/x", "longer")),
            ("a tool folder goes, another comes", &|| {
                std::fs::remove_dir_all(at(".local")).unwrap();
                put("many/d7/.other/deep/x", "x");
            }),
            ("much goes", &|| std::fs::remove_dir_all(at("many")).unwrap()),
            ("much comes", &|| (0..400).for_each(|n| put(&format!("new/{}/{n}/f", n % 9), "x"))),
        ];
        for (what, step) in steps {
            step();
            let again = Snapshot::deliverable_since(&root, &zones, &last).unwrap();
            let walked = Snapshot::deliverable(&root, &zones).unwrap();
            assert_eq!(all(&again), all(&walked), "{what}");
            let tools = Snapshot::infrastructure_beside(&root, &zones, &again, Some(&beside)).unwrap();
            let every = Snapshot::infrastructure(&root, &zones).unwrap();
            assert_eq!(all(&tools).0, all(&every).0, "{what}: infrastructure");
            (last, beside) = (again, tools);
        }
        assert!(last.len() > 400);
    }

    #[test]
    fn what_stands_still_is_shared() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a/f", "b/f"] {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), "x").unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        let zones = ZoneMap::capture(&root, &ZoneConfig::default()).unwrap();
        let first = Snapshot::deliverable(&root, &zones).unwrap();
        std::fs::write(dir.path().join("a/f"), "longer").unwrap();
        let second = Snapshot::deliverable_since(&root, &zones, &first).unwrap();
        let shared = |path: &[u8]| {
            let of = |s: &Snapshot| Arc::clone(&s.listings[s.listing_of(path).unwrap()]);
            Arc::ptr_eq(&of(&first), &of(&second))
        };
        assert!(shared(b"") && shared(b"b") && !shared(b"a"));
        let differing: Vec<_> = differing_pairs(&first, &second).collect();
        assert_eq!(differing, [Pair::Both(0, 0)]);
    }

    #[test]
    fn lists_in_bounds_are_cut_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..250 {
            std::fs::create_dir_all(dir.path().join(format!("m{n}/node_modules"))).unwrap();
            std::fs::create_dir_all(dir.path().join(format!("m{n}/.tool"))).unwrap();
        }
        let snapshot = look(dir.path());
        let bounds = snapshot.bounds();
        assert_eq!((bounds.pruned.len(), bounds.pruned_count), (200, 250));
        assert_eq!((bounds.infrastructure.len(), bounds.infrastructure_count), (200, 250));
    }

    #[test]
    fn very_deep_trees_end_in_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let name = "d".repeat(200);
        let mut fd: std::os::fd::OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        for _ in 0..30 {
            use rustix::fs::{Mode, OFlags};
            rustix::fs::mkdirat(&fd, &*name, Mode::RWXU).unwrap();
            fd = rustix::fs::openat(&fd, &*name, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
        }
        drop(rustix::fs::openat(&fd, "leaf", rustix::fs::OFlags::CREATE, rustix::fs::Mode::RWXU).unwrap());
        let snapshot = look(dir.path());
        assert_eq!((snapshot.len(), snapshot.bounds().unreadable_count), (1, 0));
        assert!(snapshot.at(0).path().len() > 4_096);
    }

    #[test]
    fn what_is_nested_too_deep_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let deep = vec!["d"; 1_005].join("/");
        drop(root.make_dir(deep.as_bytes(), crate::placing::InTheWay::Stays).unwrap());
        let snapshot = look(dir.path());
        assert_eq!(snapshot.bounds().unreadable_count, 1);
        let (_, why) = snapshot.bounds().unreadable.first_key_value().unwrap();
        assert!(why.contains("deeper than 1000"), "{why}");
        root.clear(b"d").unwrap();
    }

    #[test]
    fn a_hostile_tag_neither_blocks_nor_hides() {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["fifo", "linked", "empty"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
            std::fs::write(dir.path().join(sub).join("work"), "x").unwrap();
        }
        std::fs::write(dir.path().join("real"), "Signature: 8a477f597d28d172789f06886806bc55").unwrap();
        let made =
            std::process::Command::new("mkfifo").arg(dir.path().join("fifo/CACHEDIR.TAG")).status().unwrap();
        assert!(made.success());
        symlink("../real", dir.path().join("linked/CACHEDIR.TAG")).unwrap();
        std::fs::write(dir.path().join("empty/CACHEDIR.TAG"), "").unwrap();
        let snapshot = look(dir.path());
        for sub in ["fifo", "linked", "empty"] {
            assert!(snapshot.get(format!("{sub}/work").as_bytes()).is_some(), "{sub}");
        }
    }
}
