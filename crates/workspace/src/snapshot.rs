//! A snapshot: what one zone of a workspace looks like, by names and stats, compactly.

use std::cmp::Ordering;
use std::time::Duration;

use rustix::fs::FileType;
use triphammer_model::Bounds;

use crate::git::IgnoreAsker;
use crate::look::LookError;
use crate::root::{Root, join};
use crate::walk::{self, Facts, Want};
use crate::zones::ZoneMap;

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
    /// Its path from the workspace, as bytes.
    pub path: &'a [u8],
    pub(crate) facts: Facts,
}

impl Entry<'_> {
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

#[derive(Clone, Copy, Debug)]
struct Record {
    offset: usize,
    len: u32,
    facts: Facts,
}

/// What one zone of a workspace looks like. Paths lie in one block of memory, about 64 bytes an entry on top.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    names: Vec<u8>,
    files: Vec<Record>,
    dirs: Vec<Record>,
    bounds: Bounds,
    waited: Duration,
}

impl Snapshot {
    /// Looks at the deliverable.
    ///
    /// # Errors
    /// [`LookError`] when the workspace folder itself cannot be listed.
    pub fn deliverable(root: &Root, zones: &ZoneMap) -> Result<Self, LookError> {
        Self::take(root, zones, Want::DELIVERABLE)
    }

    /// Looks at the infrastructure.
    ///
    /// # Errors
    /// [`LookError`] when the workspace folder itself cannot be listed.
    pub fn infrastructure(root: &Root, zones: &ZoneMap) -> Result<Self, LookError> {
        Self::take(root, zones, Want::INFRASTRUCTURE)
    }

    fn take(root: &Root, zones: &ZoneMap, want: Want) -> Result<Self, LookError> {
        let mut asker = IgnoreAsker::new(root.path());
        let found = walk::walk(root, zones, want, &mut |dir| zones.believes_tag(dir, &mut asker))?;
        let mut snapshot = Self { bounds: found.bounds(zones), waited: found.waited, ..Self::default() };
        for (dir, listing) in found.listings {
            if !want.lists(listing.zone) {
                continue;
            }
            if !dir.is_empty() {
                snapshot.push_dir(&dir, listing.facts);
            }
            for (name, facts) in listing.files {
                snapshot.push_file(&join(&dir, &name), facts);
            }
        }
        snapshot.sort();
        Ok(snapshot)
    }

    pub(crate) fn push_file(&mut self, path: &[u8], facts: Facts) {
        let record = self.record(path, facts);
        self.files.push(record);
    }

    pub(crate) fn push_dir(&mut self, path: &[u8], facts: Facts) {
        let record = self.record(path, facts);
        self.dirs.push(record);
    }

    fn record(&mut self, path: &[u8], facts: Facts) -> Record {
        let offset = self.names.len();
        self.names.extend_from_slice(path);
        // Paths deeper than the walk goes are not entered, so none comes near 4 GiB.
        Record { offset, len: u32::try_from(path.len()).unwrap_or(u32::MAX), facts }
    }

    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        self.files.sort_unstable_by(|a, b| path_of(names, a).cmp(path_of(names, b)));
        self.dirs.sort_unstable_by(|a, b| path_of(names, a).cmp(path_of(names, b)));
        self.names.shrink_to_fit();
        self.files.shrink_to_fit();
        self.dirs.shrink_to_fit();
    }

    /// How many entries there are, directories not counted.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is nothing but directories.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Files, links and special files, sorted by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        self.files.iter().map(|record| self.entry(record))
    }

    /// Directories, sorted by path; the workspace folder itself is not among them.
    pub fn directories(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        self.dirs.iter().map(|record| self.entry(record))
    }

    /// The file, link or special file at `path`.
    pub fn get(&self, path: &[u8]) -> Option<Entry<'_>> {
        self.position(path).map(|i| self.at(i))
    }

    /// The directory at `path`.
    pub fn directory(&self, path: &[u8]) -> Option<Entry<'_>> {
        let found = self.dirs.binary_search_by(|record| path_of(&self.names, record).cmp(path));
        found.ok().map(|i| self.entry(&self.dirs[i]))
    }

    /// Whether anything below the directory `path` is there.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let start = join(path, b"");
        let i = self.files.partition_point(|record| path_of(&self.names, record) < start.as_slice());
        self.files.get(i).is_some_and(|record| path_of(&self.names, record).starts_with(&start))
    }

    /// What was not looked at.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How long fresh timestamps were waited out.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        self.files.binary_search_by(|record| path_of(&self.names, record).cmp(path)).ok()
    }

    pub(crate) fn at(&self, index: usize) -> Entry<'_> {
        self.entry(&self.files[index])
    }

    fn entry(&self, record: &Record) -> Entry<'_> {
        Entry { path: path_of(&self.names, record), facts: record.facts }
    }
}

fn path_of<'a>(names: &'a [u8], record: &Record) -> &'a [u8] {
    &names[record.offset..record.offset + record.len as usize]
}

/// One path in two snapshots, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Before(usize),
    After(usize),
    Both(usize, usize),
}

/// Every path of two snapshots, in order.
pub(crate) fn pairs<'a>(before: &'a Snapshot, after: &'a Snapshot) -> impl Iterator<Item = Pair> + 'a {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        let order = match (i < before.len(), j < after.len()) {
            (false, false) => return None,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => before.at(i).path.cmp(after.at(j).path),
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

/// Whether two looks at one path saw the same, as far as stats tell.
pub(crate) fn same_facts(before: &Facts, after: &Facts) -> bool {
    let plain = |f: &Facts| Facts { uncertain: false, ..*f };
    plain(before) == plain(after)
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

    fn paths(snapshot: &Snapshot) -> Vec<&[u8]> {
        snapshot.iter().map(|e| e.path).collect()
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
            snapshot.directories().map(|e| e.path).collect::<Vec<_>>(),
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
            let ours: BTreeMap<_, _> = snapshot.iter().map(|e| (e.path.to_vec(), e.size())).collect();
            assert_eq!(ours, oracle, "seed {seed}");
        }
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
        assert!(snapshot.at(0).path.len() > 4_096);
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
