//! Packs: many objects in one file, so that a large workspace does not cost a file for each of its files.
//!
//! We write packs without deltas, with an index of version 2, as git documents them (`gitformat-pack`). We read
//! those, and leave packs with deltas, which only a person's own `git gc` makes, to the `git` command.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flate2::read::ZlibDecoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use sha1::{Digest as _, Sha1};

use crate::object_id::{ObjectId, ObjectKind};
use crate::store_draft::Draft;
use crate::store_format::{open_plain, read_small};
use crate::store_objects::{LARGEST_OBJECT, Store, StoreError, too_large};

/// An index of some 38 million objects. What is larger is none of ours, and is not read into memory.
const LARGEST_INDEX: u64 = 1 << 30;

/// Up to this many new objects are written one file each; more go into a pack.
const FEW: usize = 64;

/// Up to this many bytes are held while it is not known whether the objects are few.
const HELD_BYTES: usize = 4 << 20;

const fn type_number(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
    }
}

/// Deflates `content`. The compressor's state is large, so each thread keeps one.
pub(crate) fn deflate(parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    thread_local! {
        static STATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), true));
    }
    STATE.with_borrow_mut(|state| {
        state.reset();
        let length: usize = parts.iter().map(|part| part.len()).sum();
        // Incompressible data grows by five bytes a block of 32 KiB, and there is a header and a checksum.
        let mut out = Vec::with_capacity(length + length / 1_000 + 64);
        for (i, part) in parts.iter().enumerate() {
            let last = i + 1 == parts.len();
            let flush = if last { FlushCompress::Finish } else { FlushCompress::None };
            let start = state.total_in();
            loop {
                let done = usize::try_from(state.total_in() - start).unwrap_or(usize::MAX);
                if out.capacity() - out.len() < 64 {
                    out.reserve(out.len() + 64);
                }
                let rest = part.get(done..).unwrap_or_default();
                match state.compress_vec(rest, &mut out, flush)? {
                    Status::StreamEnd => return Ok(out),
                    _ if !last && state.total_in() - start == part.len() as u64 => break,
                    _ => {}
                }
            }
        }
        Ok(out)
    })
}

/// New objects of one look or one tree: few become files of their own, many a pack. Threads share it. What was put
/// is in the store only after [`Batch::finish`].
pub(crate) struct Batch<'a> {
    store: &'a Store,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: HashSet<ObjectId>,
    held: Vec<(ObjectKind, Vec<u8>)>,
    held_bytes: usize,
    pack: Option<Pack>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, state: Mutex::new(State::default()) }
    }

    /// Puts one object and says its id.
    pub(crate) fn put(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, StoreError> {
        let id = kind.id_of(content);
        if self.store.has_quick(&id) {
            return Ok(id);
        }
        {
            let mut state = self.lock();
            if state.seen.contains(&id) {
                return Ok(id);
            }
            if state.pack.is_none() {
                if state.held.len() < FEW && state.held_bytes + content.len() <= HELD_BYTES {
                    state.seen.insert(id);
                    state.held_bytes += content.len();
                    state.held.push((kind, content.to_vec()));
                    return Ok(id);
                }
                let mut pack = self.check(Pack::begin(self.store))?;
                for (kind, content) in std::mem::take(&mut state.held) {
                    let entry = deflate(&[&content]);
                    let id = kind.id_of(&content);
                    self.check(entry.and_then(|data| pack.append(id, kind, content.len(), &data)))?;
                }
                state.pack = Some(pack);
            }
        }
        // Compressed outside the lock, so that threads do it side by side.
        let data = self.check(deflate(&[content]))?;
        let mut state = self.lock();
        if state.seen.insert(id)
            && let Some(pack) = &mut state.pack
        {
            self.check(pack.append(id, kind, content.len(), &data))?;
        }
        Ok(id)
    }

    /// Puts everything into the store.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (kind, content) in &state.held {
            self.store.put(*kind, content)?;
        }
        if let Some(pack) = state.pack {
            let dir = self.store.pack_dir();
            let name = pack.finish().map_err(|source| StoreError::File {
                path: dir.clone(),
                what: "written",
                source,
            })?;
            self.store.learn(&dir.join(name));
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check<T>(&self, result: io::Result<T>) -> Result<T, StoreError> {
        result.map_err(|source| StoreError::File { path: self.store.pack_dir(), what: "written", source })
    }
}

/// A pack that is being written. Dropped unfinished it leaves nothing.
struct Pack {
    file: io::BufWriter<File>,
    draft: Draft,
    folder: OwnedFd,
    offset: u64,
    entries: Vec<(ObjectId, u32, u64)>,
}

impl Pack {
    fn begin(store: &Store) -> io::Result<Self> {
        store.check_place()?;
        let folder = store.lock().folder_made(store.dir(), "objects/pack")?;
        let (draft, file) = Draft::create(folder.try_clone()?, "pack")?;
        let file = io::BufWriter::with_capacity(1 << 16, file);
        let mut pack = Self { file, draft, folder, offset: 12, entries: Vec::new() };
        // The count is put in at the end.
        pack.file.write_all(b"PACK\0\0\0\x02\0\0\0\0")?;
        Ok(pack)
    }

    fn append(&mut self, id: ObjectId, kind: ObjectKind, size: usize, data: &[u8]) -> io::Result<()> {
        let mut header = Vec::with_capacity(10);
        let mut rest = size;
        let low = u8::try_from(rest & 0x0f).unwrap_or(0);
        rest >>= 4;
        header.push((type_number(kind) << 4) | low | if rest > 0 { 0x80 } else { 0 });
        while rest > 0 {
            let low = u8::try_from(rest & 0x7f).unwrap_or(0);
            rest >>= 7;
            header.push(low | if rest > 0 { 0x80 } else { 0 });
        }
        let mut crc = Crc::new();
        crc.update(&header);
        crc.update(data);
        self.file.write_all(&header)?;
        self.file.write_all(data)?;
        self.entries.push((id, crc.sum(), self.offset));
        self.offset += (header.len() + data.len()) as u64;
        Ok(())
    }

    /// Completes the pack and its index, and says the index's file name.
    fn finish(mut self) -> io::Result<String> {
        let too_many = |_| io::Error::other("a pack holds at most 4,294,967,295 objects");
        let count = u32::try_from(self.entries.len()).map_err(too_many)?;
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(8))?;
        file.write_all(&count.to_be_bytes())?;
        file.rewind()?;
        let mut hasher = Sha1::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
        let sum: [u8; 20] = hasher.finalize().into();
        file.write_all(&sum)?;
        self.entries.sort_unstable_by_key(|(id, ..)| *id);
        let mut index = Vec::with_capacity(1_100 + self.entries.len() * 28);
        index.extend_from_slice(b"\xfftOc\0\0\0\x02");
        for first in 0..=u8::MAX {
            let upto = self.entries.partition_point(|(id, ..)| id.as_bytes()[0] <= first);
            index.extend_from_slice(&u32::try_from(upto).map_err(too_many)?.to_be_bytes());
        }
        self.entries.iter().for_each(|(id, ..)| index.extend_from_slice(id.as_bytes()));
        self.entries.iter().for_each(|(_, crc, _)| index.extend_from_slice(&crc.to_be_bytes()));
        let mut far = Vec::new();
        for (_, _, offset) in &self.entries {
            let short = u32::try_from(*offset).ok().filter(|o| *o < 1 << 31);
            let short = short.unwrap_or_else(|| {
                far.extend_from_slice(&offset.to_be_bytes());
                // Fewer objects than fit into 31 bits lie that far.
                (1 << 31) | u32::try_from(far.len() / 8 - 1).unwrap_or(0)
            });
            index.extend_from_slice(&short.to_be_bytes());
        }
        index.extend_from_slice(&far);
        index.extend_from_slice(&sum);
        let own: [u8; 20] = Sha1::digest(&index).into();
        index.extend_from_slice(&own);

        let read_only = || std::os::unix::fs::PermissionsExt::from_mode(0o444);
        self.file.get_mut().set_permissions(read_only())?;
        let (beside, mut file) = Draft::create(self.folder.try_clone()?, "index")?;
        file.write_all(&index)?;
        file.set_permissions(read_only())?;
        // The index makes the pack known, so it comes last.
        let name = format!("pack-{}", ObjectId::from_raw(sum));
        self.draft.place(&self.folder, &format!("{name}.pack"))?;
        let name = format!("{name}.idx");
        beside.place(&self.folder, &name)?;
        Ok(name)
    }
}

/// What a pack holds and where.
pub(crate) struct Index {
    /// The index file.
    pub(crate) path: PathBuf,
    ids: Vec<u8>,
    offsets: Vec<u64>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} objects)", self.path.display(), self.offsets.len())
    }
}

impl Index {
    /// Reads an index of version 2; `None` for anything else, and for one that is cut short or longer than it says.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let data = read_small(path, LARGEST_INDEX).ok()?;
        let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
        if data.get(..8)? != b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let count = number(8 + 255 * 4)? as usize;
        let ids = 8 + 256 * 4;
        let offsets = ids + count.checked_mul(24)?;
        let far = offsets + count.checked_mul(4)?;
        if count > data.len() / 28 || far > data.len() {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        let mut last_far = far;
        for i in 0..count {
            let short = number(offsets + 4 * i)?;
            all.push(if short < 1 << 31 {
                u64::from(short)
            } else {
                let at = far + 8 * (short & 0x7fff_ffff) as usize;
                last_far = last_far.max(at + 8);
                u64::from_be_bytes(data.get(at..at + 8)?.try_into().ok()?)
            });
        }
        // After the offsets come the pack's checksum and the index's own.
        if data.len() != last_far + 40 {
            return None;
        }
        Some(Self { path: path.to_path_buf(), ids: data.get(ids..ids + 20 * count)?.to_vec(), offsets: all })
    }

    /// Whether the index is, byte for byte, what was written. One that cannot be read is not to blame for damage.
    pub(crate) fn is_sound(&self) -> bool {
        let Ok(data) = read_small(&self.path, LARGEST_INDEX) else { return true };
        let Some(end) = data.len().checked_sub(20) else { return false };
        <[u8; 20]>::from(Sha1::digest(&data[..end])) == data[end..]
    }

    /// Every object with the bytes that it takes in the pack.
    pub(crate) fn objects(&self) -> io::Result<Vec<(ObjectId, u64)>> {
        let length = std::fs::symlink_metadata(self.path.with_extension("pack"))?.len();
        let mut starts = self.offsets.clone();
        starts.sort_unstable();
        // The pack's checksum follows the last object.
        starts.push(length.saturating_sub(20));
        let id = |i: usize| {
            let raw = self.ids[20 * i..20 * i + 20].try_into().unwrap_or_default();
            ObjectId::from_raw(raw)
        };
        let size = |start: u64| {
            let next = starts.partition_point(|s| *s <= start);
            starts.get(next).map_or(0, |next| next.saturating_sub(start))
        };
        Ok(self.offsets.iter().enumerate().map(|(i, offset)| (id(i), size(*offset))).collect())
    }

    /// Where in the pack an object begins.
    pub(crate) fn find(&self, id: &ObjectId) -> Option<u64> {
        let at = |i: usize| &self.ids[20 * i..20 * i + 20];
        let (mut low, mut high) = (0, self.offsets.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match at(middle).cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.offsets[middle]),
            }
        }
        None
    }

    /// The object at `offset`; `None` when it is a delta or of another kind.
    pub(crate) fn object(&self, offset: u64, kind: ObjectKind) -> io::Result<Option<Vec<u8>>> {
        let Some((size, data)) = self.begin(offset, kind)? else { return Ok(None) };
        if size > LARGEST_OBJECT {
            return Err(io::Error::other(too_large(size)));
        }
        let mut content = Vec::new();
        // One more than it says, so that a longer one is noticed and not inflated.
        ZlibDecoder::new(data).take(size + 1).read_to_end(&mut content)?;
        Ok((content.len() as u64 == size).then_some(content))
    }

    /// How many bytes the blob at `offset` says that it holds; `None` when it is a delta or no blob.
    pub(crate) fn blob_size(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(self.begin(offset, ObjectKind::Blob)?.map(|(size, _)| size))
    }

    /// The size of the object at `offset` and its data.
    fn begin(&self, offset: u64, kind: ObjectKind) -> io::Result<Option<(u64, BufReader<File>)>> {
        let mut file = open_plain(&self.path.with_extension("pack"))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut file = BufReader::with_capacity(1 << 13, file);
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        if (byte[0] >> 4) & 7 != type_number(kind) {
            return Ok(None);
        }
        let mut size = u64::from(byte[0] & 0x0f);
        let mut shift = 4;
        while byte[0] & 0x80 != 0 {
            file.read_exact(&mut byte)?;
            if shift > 56 {
                return Ok(None);
            }
            size |= u64::from(byte[0] & 0x7f) << shift;
            shift += 7;
        }
        Ok(Some((size, file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deflates_anything() {
        let mut random = fastrand::Rng::with_seed(7);
        for length in [0, 1, 63, 1_000, 70_000, 1 << 20] {
            let noise: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            for content in [noise, vec![b'a'; length]] {
                let (a, b) = content.split_at(length / 3);
                for parts in [&[&content[..]][..], &[a, b]] {
                    let mut back = Vec::new();
                    ZlibDecoder::new(&deflate(parts).unwrap()[..]).read_to_end(&mut back).unwrap();
                    assert_eq!(back, content);
                }
            }
        }
    }

    #[test]
    fn git_reads_packs_and_so_do_we() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.git")).unwrap();
        let contents: Vec<Vec<u8>> =
            (0_usize..1_000).map(|n| format!("{n} ").repeat(n % 90 * 7).into_bytes()).collect();
        let put_all = |batch: &Batch<'_>| {
            for content in &contents {
                batch.put(ObjectKind::Blob, content).unwrap();
            }
        };
        let batch = Batch::new(&store);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| put_all(&batch));
            }
        });
        batch.finish().unwrap();
        let packs = std::fs::read_dir(store.pack_dir()).unwrap().count();
        assert_eq!(packs, 2, "one pack and its index");
        let fsck = store.git().args(["fsck", "--full", "--strict"]).output().unwrap();
        assert!(fsck.status.success(), "{fsck:?}");
        // A second process finds them, and stores nothing twice.
        let again = Store::open(store.dir()).unwrap();
        for content in &contents {
            let id = ObjectKind::Blob.id_of(content);
            assert_eq!(&again.blob(&id).unwrap(), content);
            assert!(again.has_quick(&id));
        }
        let batch = Batch::new(&again);
        put_all(&batch);
        batch.finish().unwrap();
        assert_eq!(std::fs::read_dir(store.pack_dir()).unwrap().count(), 2);
        let objects = store.git().args(["count-objects", "-v"]).output().unwrap();
        let said = String::from_utf8_lossy(&objects.stdout).into_owned();
        assert!(said.contains("count: 0\n") && said.contains("packs: 1\n"), "{said}");
    }

    /// What a pack says of an object's size is not believed without limit.
    #[test]
    fn an_object_that_says_that_it_is_huge_is_not_inflated() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.git")).unwrap();
        let batch = Batch::new(&store);
        let ids: Vec<ObjectId> = (0..100)
            .map(|n| batch.put(ObjectKind::Blob, format!("content of {n}").as_bytes()).unwrap())
            .collect();
        batch.finish().unwrap();
        let (pack, offset) = store.in_packs(&ids[7], true).unwrap();
        assert_eq!(store.size_of(&ids[7]), Some(12));
        let path = pack.path.with_extension("pack");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = usize::try_from(offset).unwrap();
        // A blob of 2^39 bytes.
        bytes[at..at + 6].copy_from_slice(&[0xb0, 0x80, 0x80, 0x80, 0x80, 0x80]);
        bytes[at + 6] = 1;
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(store.size_of(&ids[7]), Some(1 << 39));
        let error = store.blob(&ids[7]).unwrap_err().to_string();
        assert!(error.contains("no object of ours is larger"), "{error}");
        store.blob(&ids[8]).unwrap();
    }

    #[test]
    fn an_unfinished_pack_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.git")).unwrap();
        let batch = Batch::new(&store);
        for n in 0..600 {
            batch.put(ObjectKind::Blob, format!("{n}").as_bytes()).unwrap();
        }
        drop(batch);
        assert_eq!(std::fs::read_dir(store.pack_dir()).unwrap().count(), 0);
    }
}
