//! A listing: one directory with the names and stats of what lies in it, compact and never changed, so that looks
//! share what did not move.

use std::cmp::Ordering;
use std::ffi::CStr;

use rustix::fs::FileType;

use crate::facts::Facts;
use crate::zones::{CacheReason, Zone};

/// Bytes of one entry's facts: size with its flag, times and inode number. A tree of a million files holds a
/// million of these.
const RECORD: usize = 32;

/// In the word of the size, whose upper 16 bits are the mode: the facts are uncertain.
const UNCERTAIN: u64 = 1 << 47;
/// In the same word: the size, up to 128 TiB.
const SIZE: u64 = UNCERTAIN - 1;

fn pack(facts: &Facts) -> [u8; RECORD] {
    let flag = if facts.uncertain { UNCERTAIN } else { 0 };
    // A larger size than any file has reads as the largest; its times still tell when it moves.
    let first = facts.size.min(SIZE) | flag | u64::from(facts.mode & 0xFFFF) << 48;
    let words = [first, facts.mtime.cast_unsigned(), facts.ctime.cast_unsigned(), facts.ino];
    let mut record = [0; RECORD];
    for (bytes, word) in record.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    record
}

fn unpack(record: &[u8]) -> Facts {
    let word = |i: usize| {
        let bytes = record.get(8 * i..8 * i + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let first = word(0);
    Facts {
        size: first & SIZE,
        mtime: word(1).cast_signed(),
        ctime: word(2).cast_signed(),
        ino: word(3),
        mode: u32::try_from(first >> 48).unwrap_or(0),
        uncertain: first & UNCERTAIN != 0,
    }
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

/// One directory as it was listed. All that it holds lies in one block, since a tree has a tenth as many of these as
/// it has files:
///
/// ```text
/// a record for each entry    32 bytes each
/// where its name starts      4 bytes each, from the start of the block, and once more for the end of the names
/// the directory's path
/// the entries' names         each with a NUL behind it
/// directories in it          a byte for the zone, the name, a NUL, each
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    block: Box<[u8]>,
    hidden: Option<Box<Hidden>>,
    mtime: i64,
    ctime: i64,
    ino: u64,
    /// The latest time that was too fresh to trust, or [`SETTLED`].
    fresh: i64,
    files: u32,
    path_len: u32,
    mode: u16,
    pub(crate) zone: Zone,
    /// The times of the directory itself prove nothing.
    own_uncertain: bool,
    /// Something in it is called `CACHEDIR.TAG`.
    pub(crate) tag: bool,
    /// It holds FIFOs, sockets or devices.
    pub(crate) special: bool,
    /// Some of its facts, or its own, are uncertain.
    pub(crate) uncertain: bool,
}

/// Nothing is too fresh to trust.
const SETTLED: i64 = i64::MIN;

impl Listing {
    fn files_len(&self) -> usize {
        self.files as usize
    }

    /// Where the path starts: behind the records and the starts of the names.
    fn path_at(&self) -> usize {
        self.files_len() * (RECORD + 4) + 4
    }

    fn start(&self, index: usize) -> usize {
        let at = self.files_len() * RECORD + 4 * index;
        let bytes = self.block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes) as usize
    }

    /// The directory's path from the workspace; empty for the workspace itself.
    pub(crate) fn path(&self) -> &[u8] {
        let at = self.path_at();
        &self.block[at..at + self.path_len as usize]
    }

    /// The directory's own facts.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            size: 0,
            mtime: self.mtime,
            ctime: self.ctime,
            ino: self.ino,
            mode: u32::from(self.mode),
            uncertain: self.own_uncertain,
        }
    }

    /// The latest time that was too fresh to trust.
    pub(crate) fn fresh(&self) -> Option<i64> {
        (self.fresh != SETTLED).then_some(self.fresh)
    }

    /// How many entries it holds that are no directories.
    pub(crate) fn len(&self) -> usize {
        self.files_len()
    }

    fn name(&self, index: usize) -> &[u8] {
        &self.block[self.start(index)..self.start(index + 1) - 1]
    }

    fn facts_at(&self, index: usize) -> Facts {
        unpack(&self.block[index * RECORD..(index + 1) * RECORD])
    }

    /// The name and facts of an entry.
    pub(crate) fn file(&self, index: usize) -> (&[u8], Facts) {
        (self.name(index), self.facts_at(index))
    }

    /// The entry's name as the system wants it.
    pub(crate) fn file_name(&self, index: usize) -> &CStr {
        CStr::from_bytes_with_nul(&self.block[self.start(index)..self.start(index + 1)]).unwrap_or(c"")
    }

    /// Entries that are no directories, sorted by name.
    pub(crate) fn files(&self) -> impl ExactSizeIterator<Item = (&[u8], Facts)> {
        (0..self.len()).map(|index| self.file(index))
    }

    /// Where the entry called `name` stands.
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name(middle).cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Directories in it that are no caches by name, sorted by name, with their zones.
    pub(crate) fn dirs(&self) -> impl Iterator<Item = (&[u8], Zone)> {
        let part = &self.block[self.start(self.len())..];
        part.split(|b| *b == 0).filter_map(|dir| {
            let (zone, name) = dir.split_first()?;
            Some((name, if *zone == DELIVERABLE { Zone::Deliverable } else { Zone::Infrastructure }))
        })
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
        let mut again = self.clone();
        again.set_own(own, fresh);
        again.special = false;
        again.uncertain = own.uncertain;
        let records = again.block.chunks_exact_mut(RECORD).take(self.len());
        for (record, facts) in records.zip(facts) {
            record.copy_from_slice(&pack(&facts));
            again.special |= is_special(&facts);
            again.uncertain |= facts.uncertain;
        }
        again
    }

    fn set_own(&mut self, own: Facts, fresh: Option<i64>) {
        self.mtime = own.mtime;
        self.ctime = own.ctime;
        self.ino = own.ino;
        self.mode = u16::try_from(own.mode & 0xFFFF).unwrap_or(0);
        self.own_uncertain = own.uncertain;
        self.fresh = fresh.unwrap_or(SETTLED);
    }

    /// The same directory, its times not to be trusted.
    pub(crate) fn distrusted(&self) -> Self {
        let facts = self.files().map(|(_, facts)| Facts { uncertain: true, ..facts });
        self.with_facts(Facts { uncertain: true, ..self.facts() }, facts, None)
    }
}

fn is_special(facts: &Facts) -> bool {
    !matches!(facts.kind(), FileType::RegularFile | FileType::Symlink | FileType::Directory)
}

/// Before a directory's name: it belongs to this zone, or else to the infrastructure.
const DELIVERABLE: u8 = 1;
const INFRASTRUCTURE: u8 = 2;

/// Makes listings, one after the other; its buffers are used again.
#[derive(Default)]
pub(crate) struct ListingBuilder {
    path: Vec<u8>,
    records: Vec<u8>,
    /// Ends of the names, NULs included.
    ends: Vec<usize>,
    names: Vec<u8>,
    dirs: Vec<u8>,
    hidden: Hidden,
    tag: bool,
    special: bool,
    uncertain: bool,
}

impl ListingBuilder {
    pub(crate) fn begin(&mut self, path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
        self.records.clear();
        self.ends.clear();
        self.names.clear();
        self.dirs.clear();
        self.hidden = Hidden::default();
        (self.tag, self.special, self.uncertain) = (false, false, false);
    }

    /// The next entry that is no directory; they come sorted by name.
    pub(crate) fn file(&mut self, name: &[u8], facts: &Facts) {
        self.records.extend_from_slice(&pack(facts));
        self.names.extend_from_slice(name);
        self.names.push(0);
        self.ends.push(self.names.len());
        self.special |= is_special(facts);
        self.uncertain |= facts.uncertain;
    }

    /// The next directory; they come sorted by name.
    pub(crate) fn dir(&mut self, name: &[u8], zone: Zone) {
        self.dirs.push(if zone == Zone::Deliverable { DELIVERABLE } else { INFRASTRUCTURE });
        self.dirs.extend_from_slice(name);
        self.dirs.push(0);
    }

    pub(crate) fn tag(&mut self) {
        self.tag = true;
    }

    pub(crate) fn hidden(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    /// The listing of what came since [`Self::begin`].
    pub(crate) fn finish(&mut self, zone: Zone, own: Facts, fresh: Option<i64>) -> Listing {
        let Self { path, records, ends, names, dirs, .. } = self;
        let first = records.len() + 4 * (ends.len() + 1) + path.len();
        let mut block = Vec::with_capacity(first + names.len() + dirs.len());
        block.extend_from_slice(records);
        for end in std::iter::once(&0).chain(ends.iter()) {
            // The names of one directory never come near 4 GiB.
            block.extend_from_slice(&u32::try_from(first + end).unwrap_or(u32::MAX).to_le_bytes());
        }
        block.extend_from_slice(path);
        block.extend_from_slice(names);
        block.extend_from_slice(dirs);
        let hidden = std::mem::take(&mut self.hidden);
        let mut listing = Listing {
            block: block.into_boxed_slice(),
            hidden: (!hidden.is_empty()).then(|| Box::new(hidden)),
            mtime: 0,
            ctime: 0,
            ino: 0,
            fresh: SETTLED,
            files: u32::try_from(self.ends.len()).unwrap_or(u32::MAX),
            path_len: u32::try_from(self.path.len()).unwrap_or(u32::MAX),
            mode: 0,
            zone,
            own_uncertain: false,
            tag: self.tag,
            special: self.special,
            uncertain: self.uncertain || own.uncertain,
        };
        listing.set_own(own, fresh);
        listing
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

    fn listing(path: &[u8], files: &[(&[u8], Facts)], dirs: &[(&[u8], Zone)], own: Facts) -> Listing {
        let mut builder = ListingBuilder::default();
        // What came before leaves nothing behind.
        builder.begin(b"other");
        builder.file(b"left", &facts(9, true));
        builder.dir(b"over", Zone::Infrastructure);
        builder.begin(path);
        for (name, facts) in files {
            builder.file(name, facts);
        }
        for (name, zone) in dirs {
            builder.dir(name, *zone);
        }
        builder.finish(Zone::Deliverable, own, None)
    }

    #[test]
    fn keeps_what_it_was_given() {
        let huge =
            Facts { size: SIZE, mtime: i64::MIN, ctime: i64::MAX, ino: 0, mode: 0o107_777, uncertain: true };
        let files = [(&b"b\xff"[..], facts(2, false)), (b"z", facts(1, true)), (b"z0", huge)];
        let dirs = [(&b"a"[..], Zone::Infrastructure), (b"sub", Zone::Deliverable)];
        let own = Facts { mode: 0o040_755, ..facts(0, false) };
        let listing = listing(b"a/b", &files, &dirs, own);
        assert_eq!((listing.path(), listing.facts(), listing.fresh()), (&b"a/b"[..], own, None));
        assert_eq!(listing.files().collect::<Vec<_>>(), files);
        assert_eq!((listing.file_name(0), listing.file_name(2)), (c"b\xff", c"z0"));
        assert_eq!(
            (listing.position(b"z"), listing.position(b"y"), listing.position(b"")),
            (Some(1), None, None)
        );
        assert_eq!(listing.dirs().collect::<Vec<_>>(), dirs);
        assert!(listing.uncertain && !listing.special && listing.hidden().is_none());
    }

    #[test]
    fn nothing_in_it_is_fine() {
        let empty = listing(b"", &[], &[], facts(0, false));
        assert_eq!(
            (empty.path(), empty.len(), empty.files().count(), empty.dirs().count()),
            (&b""[..], 0, 0, 0)
        );
        assert_eq!(empty.position(b"a"), None);
    }

    #[test]
    fn other_facts_for_the_same_entries() {
        let files = [(&b"a"[..], facts(1, true)), (b"b", facts(1, false))];
        let dirs = [(&b"d"[..], Zone::Deliverable)];
        let pipe = Facts { mode: 0o010_644, ..facts(5, false) };
        let listing = listing(b"p", &files, &dirs, facts(0, false));
        let again = listing.with_facts(facts(0, false), [pipe, facts(6, false)].into_iter(), Some(3));
        assert_eq!(again.files().collect::<Vec<_>>(), [(&b"a"[..], pipe), (b"b", facts(6, false))]);
        assert_eq!((again.path(), again.dirs().collect::<Vec<_>>()), (&b"p"[..], dirs.to_vec()));
        assert!(again.special && !again.uncertain && again.fresh() == Some(3));
        let distrusted = again.distrusted();
        assert!(distrusted.uncertain && distrusted.facts().uncertain && distrusted.fresh().is_none());
        assert!(distrusted.files().all(|(_, f)| f.uncertain));
    }

    #[test]
    fn directories_come_before_what_is_below_them() {
        let mut dirs = [&b"a-b"[..], b"a/b/c", b"", b"a", b"a/b", b"a b", b"b"];
        dirs.sort_unstable_by(|a, b| by_parts(a, b));
        assert_eq!(dirs, [&b""[..], b"a", b"a/b", b"a/b/c", b"a b", b"a-b", b"b"]);
        assert!(is_in(b"a/b", b"a") && is_in(b"a", b"a") && is_in(b"a", b"") && !is_in(b"a-b", b"a"));
    }
}
