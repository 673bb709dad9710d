//! A listing: one directory with the names and stats of what lies in it, compact and never changed, so that looks
//! share what did not move.

use std::cmp::Ordering;
use std::ffi::CStr;

use rustix::fs::FileType;

use crate::facts::Facts;
use crate::zones::{CacheReason, Zone};

/// One entry that is no directory. A tree of a million files holds a million of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    size: u64,
    mtime: i64,
    ctime: i64,
    ino: u64,
    /// Where the name starts in the listing's block of names.
    at: u32,
    mode: u16,
    /// The name's length; the top bit says that the facts are uncertain.
    len: u16,
}

const UNCERTAIN: u16 = 1 << 15;

impl Record {
    fn new(at: usize, len: usize, facts: &Facts) -> Self {
        Self {
            size: facts.size,
            mtime: facts.mtime,
            ctime: facts.ctime,
            ino: facts.ino,
            // A directory's names never come near 4 GiB, no name near 32 KiB; a mode has 16 bits.
            at: u32::try_from(at).unwrap_or(u32::MAX),
            mode: u16::try_from(facts.mode & 0xFFFF).unwrap_or(0),
            len: u16::try_from(len).unwrap_or(0) | if facts.uncertain { UNCERTAIN } else { 0 },
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            size: self.size,
            mtime: self.mtime,
            ctime: self.ctime,
            ino: self.ino,
            mode: u32::from(self.mode),
            uncertain: self.len & UNCERTAIN != 0,
        }
    }
}

/// A directory in a directory, caches by their name left out.
#[derive(Clone, Copy, Debug)]
struct Subdir {
    at: u32,
    len: u16,
    zone: Zone,
}

/// What was met in a directory and is not shown. Most directories hold nothing of the kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hidden {
    pub(crate) pruned: Vec<(Vec<u8>, CacheReason)>,
    pub(crate) unreadable: Vec<(Vec<u8>, String)>,
    pub(crate) vanished: u64,
}

impl Hidden {
    fn is_empty(&self) -> bool {
        self.pruned.is_empty() && self.unreadable.is_empty() && self.vanished == 0
    }
}

/// One directory as it was listed.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) facts: Facts,
    /// The latest time that was too fresh to trust.
    pub(crate) fresh: Option<i64>,
    /// The directory's path, then a name after the other, each with a NUL behind it.
    names: Box<[u8]>,
    files: Box<[Record]>,
    dirs: Box<[Subdir]>,
    hidden: Option<Box<Hidden>>,
    path_len: u32,
    pub(crate) zone: Zone,
    /// Something in it is called `CACHEDIR.TAG`.
    pub(crate) tag: bool,
    /// It holds FIFOs, sockets or devices.
    pub(crate) special: bool,
    /// Some of its facts, or its own, are uncertain.
    pub(crate) uncertain: bool,
}

impl Listing {
    /// The directory's path from the workspace; empty for the workspace itself.
    pub(crate) fn path(&self) -> &[u8] {
        &self.names[..self.path_len as usize]
    }

    fn name(&self, at: u32, len: u16) -> &[u8] {
        &self.names[at as usize..at as usize + usize::from(len & !UNCERTAIN)]
    }

    /// How many entries it holds that are no directories.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The name and facts of an entry.
    pub(crate) fn file(&self, index: usize) -> (&[u8], Facts) {
        let record = &self.files[index];
        (self.name(record.at, record.len), record.facts())
    }

    /// The entry's name as the system wants it.
    pub(crate) fn file_name(&self, index: usize) -> &CStr {
        let record = &self.files[index];
        let start = record.at as usize;
        let end = start + usize::from(record.len & !UNCERTAIN) + 1;
        CStr::from_bytes_with_nul(&self.names[start..end]).unwrap_or(c"")
    }

    /// Entries that are no directories, sorted by name.
    pub(crate) fn files(&self) -> impl ExactSizeIterator<Item = (&[u8], Facts)> {
        self.files.iter().map(|record| (self.name(record.at, record.len), record.facts()))
    }

    /// Where the entry called `name` stands.
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        self.files.binary_search_by(|record| self.name(record.at, record.len).cmp(name)).ok()
    }

    /// Directories in it that are no caches by name, sorted by name.
    pub(crate) fn dirs(&self) -> impl DoubleEndedIterator<Item = (&[u8], Zone)> {
        self.dirs.iter().map(|dir| (self.name(dir.at, dir.len), dir.zone))
    }

    /// Whether a directory of this name and zone is in it.
    pub(crate) fn has_dir(&self, name: &[u8], zone: Zone) -> bool {
        let found = self.dirs.binary_search_by(|dir| self.name(dir.at, dir.len).cmp(name));
        found.is_ok_and(|i| self.dirs[i].zone == zone)
    }

    pub(crate) fn hidden(&self) -> Option<&Hidden> {
        self.hidden.as_deref()
    }

    /// The same directory with other facts, its own and those of its entries in their order.
    pub(crate) fn with_facts(
        &self,
        own: Facts,
        facts: impl Iterator<Item = Facts>,
        fresh: Option<i64>,
    ) -> Self {
        let mut again = Self { facts: own, fresh, special: false, uncertain: own.uncertain, ..self.clone() };
        for (record, facts) in again.files.iter_mut().zip(facts) {
            *record = Record::new(record.at as usize, usize::from(record.len & !UNCERTAIN), &facts);
            again.special |= is_special(&facts);
            again.uncertain |= facts.uncertain;
        }
        again
    }

    /// The same directory, its times not to be trusted.
    pub(crate) fn distrusted(&self) -> Self {
        let facts = self.files().map(|(_, facts)| Facts { uncertain: true, ..facts });
        self.with_facts(Facts { uncertain: true, ..self.facts }, facts, None)
    }
}

fn is_special(facts: &Facts) -> bool {
    !matches!(facts.kind(), FileType::RegularFile | FileType::Symlink | FileType::Directory)
}

/// Makes a listing, entry by entry.
pub(crate) struct ListingBuilder {
    path_len: usize,
    names: Vec<u8>,
    files: Vec<Record>,
    dirs: Vec<Subdir>,
    hidden: Hidden,
    tag: bool,
    special: bool,
    uncertain: bool,
}

impl ListingBuilder {
    pub(crate) fn new(path: &[u8]) -> Self {
        Self {
            path_len: path.len(),
            names: path.to_vec(),
            files: Vec::new(),
            dirs: Vec::new(),
            hidden: Hidden::default(),
            tag: false,
            special: false,
            uncertain: false,
        }
    }

    pub(crate) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.names.reserve_exact(bytes + entries);
        self.files.reserve_exact(entries);
    }

    fn push_name(&mut self, name: &[u8]) -> usize {
        let at = self.names.len();
        self.names.extend_from_slice(name);
        self.names.push(0);
        at
    }

    pub(crate) fn file(&mut self, name: &[u8], facts: &Facts) {
        let at = self.push_name(name);
        self.files.push(Record::new(at, name.len(), facts));
        self.special |= is_special(facts);
        self.uncertain |= facts.uncertain;
    }

    pub(crate) fn dir(&mut self, name: &[u8], zone: Zone) {
        let at = u32::try_from(self.push_name(name)).unwrap_or(u32::MAX);
        self.dirs.push(Subdir { at, len: u16::try_from(name.len()).unwrap_or(0), zone });
    }

    pub(crate) fn tag(&mut self) {
        self.tag = true;
    }

    pub(crate) fn hidden(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    /// The listing; entries are sorted where they were not given in order.
    pub(crate) fn finish(self, zone: Zone, facts: Facts, fresh: Option<i64>) -> Listing {
        let Self { path_len, names, mut files, mut dirs, hidden, tag, special, uncertain } = self;
        let name = |at: u32, len: u16| &names[at as usize..at as usize + usize::from(len & !UNCERTAIN)];
        if !files.is_sorted_by(|a, b| name(a.at, a.len) <= name(b.at, b.len)) {
            files.sort_unstable_by(|a, b| name(a.at, a.len).cmp(name(b.at, b.len)));
        }
        dirs.sort_unstable_by(|a, b| name(a.at, a.len).cmp(name(b.at, b.len)));
        Listing {
            facts,
            fresh,
            names: names.into_boxed_slice(),
            files: files.into_boxed_slice(),
            dirs: dirs.into_boxed_slice(),
            hidden: (!hidden.is_empty()).then(|| Box::new(hidden)),
            path_len: u32::try_from(path_len).unwrap_or(u32::MAX),
            zone,
            tag,
            special,
            uncertain: uncertain || facts.uncertain,
        }
    }
}

/// The order of directories in a look: each before what lies below it, and that before its next neighbour.
pub(crate) fn by_parts(one: &[u8], other: &[u8]) -> Ordering {
    match one.iter().zip(other).find(|(a, b)| a != b) {
        None => one.len().cmp(&other.len()),
        // The slash that ends a part sorts before everything that could go on with it.
        Some((b'/', _)) => Ordering::Less,
        Some((_, b'/')) => Ordering::Greater,
        Some((a, b)) => a.cmp(b),
    }
}

/// Whether `path` is `dir` or lies below it.
pub(crate) fn is_in(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(size: u64, uncertain: bool) -> Facts {
        Facts { size, mtime: -1, ctime: 2, ino: u64::MAX, mode: 0o100_644, uncertain }
    }

    #[test]
    fn keeps_what_it_was_given() {
        let mut builder = ListingBuilder::new(b"a/b");
        builder.file(b"z", &facts(1, true));
        builder.file(b"b\xff", &facts(2, false));
        builder.dir(b"sub", Zone::Deliverable);
        builder.dir(b"a", Zone::Infrastructure);
        let listing = builder.finish(Zone::Deliverable, facts(0, false), None);
        assert_eq!(listing.path(), b"a/b");
        assert_eq!(
            listing.files().collect::<Vec<_>>(),
            [(&b"b\xff"[..], facts(2, false)), (b"z", facts(1, true))]
        );
        assert_eq!(listing.file_name(0), c"b\xff");
        assert_eq!((listing.position(b"z"), listing.position(b"y")), (Some(1), None));
        assert_eq!(listing.dirs().map(|(name, _)| name).collect::<Vec<_>>(), [&b"a"[..], b"sub"]);
        assert!(listing.has_dir(b"a", Zone::Infrastructure) && !listing.has_dir(b"a", Zone::Deliverable));
        assert!(listing.uncertain && !listing.special && listing.hidden().is_none());
    }

    #[test]
    fn other_facts_for_the_same_entries() {
        let mut builder = ListingBuilder::new(b"");
        builder.file(b"a", &facts(1, true));
        builder.file(b"b", &facts(1, false));
        let listing = builder.finish(Zone::Deliverable, facts(0, false), Some(3));
        let pipe = Facts { mode: 0o010_644, ..facts(5, false) };
        let again = listing.with_facts(facts(0, false), [pipe, facts(6, false)].into_iter(), None);
        assert_eq!(again.files().collect::<Vec<_>>(), [(&b"a"[..], pipe), (b"b", facts(6, false))]);
        assert!(again.special && !again.uncertain && again.fresh.is_none());
        let distrusted = again.distrusted();
        assert!(
            distrusted.uncertain
                && distrusted.facts.uncertain
                && distrusted.files().all(|(_, f)| f.uncertain)
        );
    }

    #[test]
    fn directories_come_before_what_is_below_them() {
        let mut dirs = [&b"a-b"[..], b"a/b/c", b"", b"a", b"a/b", b"a b", b"b"];
        dirs.sort_unstable_by(|a, b| by_parts(a, b));
        assert_eq!(dirs, [&b""[..], b"a", b"a/b", b"a/b/c", b"a b", b"a-b", b"b"]);
        assert!(is_in(b"a/b", b"a") && is_in(b"a", b"a") && is_in(b"a", b"") && !is_in(b"a-b", b"a"));
    }
}
