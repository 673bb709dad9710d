//! `runs/.store.git`: a bare git repository of our own, written object by object, without any filter. It borrows
//! nothing from the user's repositories, and any git tool can read it.
//!
//! Runs share it safely: an object's name is its content's hash, it is written beside its place and renamed into
//! it, and nothing is ever changed. Nothing is synced: what a crash of the machine takes is found out by the hash.
//! Whoever has it open shares a lock, so that a clean-up takes no object from under them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};
use triphammer_model::TreeId;

use crate::git::{complaint, git, output_within};
use crate::packs::{Batch, Index, deflate};
pub use crate::store_error::StoreError;
use crate::store_format::{self, Found, open_plain};
use crate::store_lock::StoreLock;

/// Files up to this size are hashed in memory before anything is compressed.
const IN_MEMORY: u64 = 1 << 20;

/// A git object's id (SHA-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// The raw bytes, as they stand in a tree object.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    pub(crate) const fn from_raw(raw: [u8; 20]) -> Self {
        Self(raw)
    }

    fn from_hasher(hasher: Sha1) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string is no object id.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no object id (40 hexadecimal digits)")]
pub struct BadObjectId(String);

impl FromStr for ObjectId {
    type Err = BadObjectId;

    fn from_str(text: &str) -> Result<Self, BadObjectId> {
        let bad = || BadObjectId(text.to_owned());
        if text.len() != 40 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut raw = [0; 20];
        for (i, byte) in raw.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(raw))
    }
}

impl From<ObjectId> for TreeId {
    fn from(id: ObjectId) -> Self {
        Self::new(id.to_string())
    }
}

/// A kind of git object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Tree,
}

impl ObjectKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
        }
    }

    /// The id of an object of this kind with this content.
    pub(crate) fn id_of(self, content: &[u8]) -> ObjectId {
        hash(format!("{} {}\0", self.word(), content.len()).as_bytes(), content)
    }
}

/// The store of one home. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    dir: Arc<PathBuf>,
    packs: Arc<Mutex<Packs>>,
    lock: Arc<StoreLock>,
}

/// The packs that are known; looked up once, and again when an object is not found.
#[derive(Debug, Default)]
struct Packs {
    listed: bool,
    known: Vec<Arc<Index>>,
    /// Index files that are damaged: what their packs hold is not found.
    broken: Vec<PathBuf>,
}

/// A file did not hold what its stat said when it was read.
#[derive(Debug)]
pub(crate) enum PutError {
    Store(StoreError),
    Read(io::Error),
}

impl Store {
    /// Opens the store at `dir`, and makes it when nothing is there. It is shared with every other process that has
    /// it open; one that cleans it up is waited for.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be made, was made by a newer version, or is not what a store must be. Nothing is
    /// changed then.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        if store_format::check(dir)? == Found::Nothing {
            let made = |source| StoreError::File { path: dir.to_path_buf(), what: "made", source };
            std::fs::create_dir_all(dir).map_err(made)?;
        }
        let lock = Arc::new(StoreLock::share(dir)?);
        let store = Self { dir: Arc::new(dir.to_path_buf()), packs: Arc::default(), lock };
        // Again, since now nobody may clean it up.
        if store_format::check(dir)? == Found::Nothing {
            store.make()?;
        }
        Ok(store)
    }

    /// The repository's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn make(&self) -> Result<(), StoreError> {
        for sub in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
            let path = self.dir.join(sub);
            std::fs::create_dir_all(&path).map_err(|source| StoreError::File {
                path,
                what: "made",
                source,
            })?;
        }
        self.write_beside("HEAD", b"ref: refs/heads/none\n")?;
        // Last, since it is what says that the store is whole.
        self.write_beside("config", store_format::configuration().as_bytes())
    }

    /// Writes a small file beside its place and renames it.
    pub(crate) fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.dir.join(name);
        let fail = |source| StoreError::File { path: path.clone(), what: "written", source };
        self.check_place().map_err(fail)?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
            no_link(parent).map_err(fail)?;
        }
        let beside = self.temporary();
        let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, &path));
        written.map_err(|error| {
            // The place is left as it was; the reason matters more than the leftover.
            let _ = std::fs::remove_file(&beside);
            fail(error)
        })
    }

    fn temporary(&self) -> PathBuf {
        self.dir.join("objects").join(temporary_name("obj"))
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Takes note of a pack that was just written.
    pub(crate) fn learn(&self, index: &Path) {
        let mut packs = self.lock_packs();
        if packs.listed
            && let Some(index) = Index::read(index)
        {
            packs.known.push(Arc::new(index));
        }
    }

    fn lock_packs(&self) -> std::sync::MutexGuard<'_, Packs> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pack that holds an object, and where. With `again` the folder is listed anew before it is said that
    /// there is none.
    fn in_packs(&self, id: &ObjectId, again: bool) -> Option<(Arc<Index>, u64)> {
        let mut packs = self.lock_packs();
        let find = |packs: &Packs| packs.known.iter().rev().find_map(|p| Some((Arc::clone(p), p.find(id)?)));
        if packs.listed
            && let Some(found) = find(&packs)
        {
            return Some(found);
        }
        if packs.listed && !again {
            return None;
        }
        self.list_packs(&mut packs);
        find(&packs)
    }

    fn list_packs(&self, packs: &mut Packs) {
        packs.listed = true;
        let entries = std::fs::read_dir(self.pack_dir()).into_iter().flatten();
        let present: Vec<PathBuf> = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "idx"))
            .collect();
        packs.known.retain(|pack| present.contains(&pack.path));
        packs.broken.clear();
        for path in present {
            if packs.known.iter().any(|pack| pack.path == path) {
                continue;
            }
            match Index::read(&path) {
                Some(index) => packs.known.push(Arc::new(index)),
                None => packs.broken.push(path),
            }
        }
    }

    /// All packs as they are on disk now, with their indexes checked as a whole.
    ///
    /// # Errors
    /// [`StoreError::Strange`] names an index that is damaged.
    pub(crate) fn packs(&self) -> Result<Vec<Arc<Index>>, StoreError> {
        let mut packs = self.lock_packs();
        *packs = Packs::default();
        self.list_packs(&mut packs);
        let damaged = packs.known.iter().find(|pack| !pack.is_sound()).map(|pack| &pack.path);
        match packs.broken.first().or(damaged) {
            None => Ok(packs.known.clone()),
            Some(path) => Err(StoreError::index(path)),
        }
    }

    /// Why an object that should be there is not: an index that is damaged hides what its pack holds. The indexes
    /// are read as a whole only here, since that takes its time.
    pub(crate) fn missing(&self, id: &ObjectId) -> StoreError {
        let packs = self.lock_packs();
        let damaged = packs.known.iter().find(|pack| !pack.is_sound()).map(|pack| pack.path.clone());
        match packs.broken.first().cloned().or(damaged) {
            Some(path) => StoreError::index(&path),
            None => StoreError::Missing { path: self.dir.to_path_buf(), id: id.to_string() },
        }
    }

    /// Refuses to write where the store's folders are not what was opened.
    pub(crate) fn check_place(&self) -> io::Result<()> {
        self.lock.check_place(&self.dir)
    }

    /// The lock that everybody who has the store open shares.
    pub(crate) fn lock(&self) -> &StoreLock {
        &self.lock
    }

    /// Whether an object is there, as far as its name tells and is known; saying no wrongly costs a copy.
    pub(crate) fn has_quick(&self, id: &ObjectId) -> bool {
        self.in_packs(id, false).is_some() || std::fs::symlink_metadata(self.loose(id)).is_ok()
    }

    pub(crate) fn loose(&self, id: &ObjectId) -> PathBuf {
        let hex = id.to_string();
        self.dir.join("objects").join(&hex[..2]).join(&hex[2..])
    }

    /// Stores `content` in a file of its own and says under which id.
    pub(crate) fn put(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, StoreError> {
        let header = format!("{} {}\0", kind.word(), content.len());
        let id = hash(header.as_bytes(), content);
        if self.has_quick(&id) {
            return Ok(id);
        }
        let path = self.temporary();
        let written =
            self.check_place().and_then(|()| deflate(&[header.as_bytes(), content])).and_then(|data| {
                let mut file = File::create_new(&path)?;
                file.write_all(&data)?;
                Ok(file)
            });
        Self::finish(written, &path, &self.loose(&id))?;
        Ok(id)
    }

    /// Stores what `file` holds, which must be `size` bytes; what is small goes through `batch`.
    pub(crate) fn put_file(
        &self,
        file: &mut (impl Read + Seek),
        size: u64,
        batch: &Batch<'_>,
    ) -> Result<ObjectId, PutError> {
        if size <= IN_MEMORY {
            let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
            file.take(size + 1).read_to_end(&mut content).map_err(PutError::Read)?;
            if content.len() as u64 != size {
                return Err(PutError::Read(changed()));
            }
            return batch.put(ObjectKind::Blob, &content).map_err(PutError::Store);
        }
        let id = hash_file(file, size).map_err(PutError::Read)?;
        if self.has_quick(&id) {
            return Ok(id);
        }
        file.rewind().map_err(PutError::Read)?;
        let path = self.temporary();
        let made = |source| PutError::Store(StoreError::File { path: path.clone(), what: "made", source });
        self.check_place().map_err(made)?;
        let mut writer = ZlibEncoder::new(File::create_new(&path).map_err(made)?, Compression::fast());
        let mut hasher = Sha1::new();
        let header = format!("blob {size}\0");
        hasher.update(header.as_bytes());
        let mut written = writer.write_all(header.as_bytes());
        let mut buffer = vec![0; 1 << 16];
        let discard = |error| {
            // The reason for giving up matters more than the leftover.
            let _ = std::fs::remove_file(&path);
            PutError::Read(error)
        };
        while written.is_ok() {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    written = writer.write_all(&buffer[..n]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(discard(error)),
            }
        }
        if written.is_ok() && ObjectId::from_hasher(hasher) != id {
            return Err(discard(changed()));
        }
        let finished = written.and_then(|()| writer.finish());
        Self::finish(finished, &path, &self.loose(&id)).map_err(PutError::Store)?;
        Ok(id)
    }

    /// Renames a complete object into its place.
    fn finish(written: io::Result<File>, path: &Path, place: &Path) -> Result<(), StoreError> {
        let moved = written.and_then(|file| {
            // Git makes objects read-only, and so do we: nothing should ever change one.
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
            if let Some(dir) = place.parent() {
                no_link(dir)?;
            }
            match std::fs::rename(path, place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if let Some(dir) = place.parent() {
                        std::fs::create_dir_all(dir)?;
                    }
                    std::fs::rename(path, place)
                }
                other => other,
            }
        });
        moved.map_err(|source| {
            // Whatever could not be written must not be left behind on a full disk.
            let _ = std::fs::remove_file(path);
            StoreError::File { path: place.to_path_buf(), what: "written", source }
        })
    }

    /// An object's content, checked against its name.
    pub(crate) fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        // Git knows the empty tree without storing it, and so do we.
        if kind == ObjectKind::Tree && *id == hash(b"tree 0\0", &[]) {
            return Ok(Vec::new());
        }
        let place = self.loose(id);
        let damaged = |what: &str| StoreError::Damaged {
            path: place.clone(),
            id: id.to_string(),
            what: what.to_owned(),
        };
        let file = match open_plain(&place) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.get_packed(kind, id),
            Err(source) => return Err(StoreError::File { path: place, what: "read", source }),
        };
        let mut all = Vec::new();
        ZlibDecoder::new(file).read_to_end(&mut all).map_err(|e| damaged(&e.to_string()))?;
        let end = all.iter().position(|b| *b == 0).ok_or_else(|| damaged("no header"))?;
        if hash(&[], &all) != *id {
            return Err(damaged("its content has another hash"));
        }
        let header = format!("{} {}", kind.word(), all.len() - end - 1);
        if all[..end] != *header.as_bytes() {
            return Err(damaged(&format!("it is no {}", kind.word())));
        }
        all.drain(..=end);
        Ok(all)
    }

    /// Reads an object from a pack.
    fn get_packed(&self, kind: ObjectKind, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let Some((pack, offset)) = self.in_packs(id, true) else { return Err(self.missing(id)) };
        let damaged = |what: String| {
            if !pack.is_sound() {
                return StoreError::index(&pack.path);
            }
            StoreError::Damaged { path: pack.path.with_extension("pack"), id: id.to_string(), what }
        };
        let content = match pack.object(offset, kind) {
            Ok(Some(content)) => content,
            // Somebody's own git has packed it with deltas.
            Ok(None) => {
                let mut command = self.git();
                command.args(["cat-file", kind.word(), &id.to_string()]);
                let output = output_within(command, crate::git::PATIENCE)
                    .map_err(|source| StoreError::File { path: self.pack_dir(), what: "read", source })?;
                if !output.status.success() {
                    return Err(damaged(complaint(&output)));
                }
                output.stdout
            }
            Err(error) => return Err(damaged(error.to_string())),
        };
        if kind.id_of(&content) == *id {
            return Ok(content);
        }
        Err(damaged("its content has another hash".to_owned()))
    }

    /// Whether an object is there, as far as its name tells.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.has_quick(id) || self.in_packs(id, true).is_some()
    }

    /// A blob's content.
    ///
    /// # Errors
    /// [`StoreError`] when it is not there or damaged.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.get(ObjectKind::Blob, id)
    }

    /// The `git` command on this repository.
    pub(crate) fn git(&self) -> std::process::Command {
        let mut command = git();
        command.arg("--git-dir").arg(&*self.dir);
        command
    }
}

/// A name that no other process and no other thread uses, such as git's own clean-up knows.
pub(crate) fn temporary_name(purpose: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("tmp_{purpose}_{}_{next}", std::process::id())
}

/// Refuses to write into a folder that is a link: an agent may have put it there.
fn no_link(dir: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(dir) {
        Ok(meta) if meta.is_symlink() => Err(io::Error::other(format!("`{}` is a link", dir.display()))),
        _ => Ok(()),
    }
}

/// Ids as git commands read them, one a line.
pub(crate) fn id_lines<'a>(ids: impl IntoIterator<Item = &'a ObjectId>) -> Vec<u8> {
    let mut lines = Vec::new();
    for id in ids {
        lines.extend_from_slice(id.to_string().as_bytes());
        lines.push(b'\n');
    }
    lines
}

fn changed() -> io::Error {
    io::Error::other("it changed while it was looked at")
}

fn hash(header: &[u8], content: &[u8]) -> ObjectId {
    let mut hasher = Sha1::new();
    hasher.update(header);
    hasher.update(content);
    ObjectId::from_hasher(hasher)
}

/// The id that `file`, which must hold `size` bytes, has as a blob.
pub(crate) fn hash_file(file: &mut impl Read, size: u64) -> io::Result<ObjectId> {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {size}\0").as_bytes());
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                total += n as u64;
                if total > size {
                    return Err(changed());
                }
                hasher.update(&buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if total == size { Ok(ObjectId::from_hasher(hasher)) } else { Err(changed()) }
}

#[cfg(test)]
mod tests {
    use triphammer_model::RunId;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs/.store.git")).unwrap();
        (dir, store)
    }

    #[test]
    fn git_reads_what_we_write() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"hello\n").unwrap();
        assert_eq!(id.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let big = vec![b'x'; 3 << 20];
        let batch = Batch::new(&store);
        let large = store.put_file(&mut io::Cursor::new(&big), big.len() as u64, &batch).unwrap();
        batch.finish().unwrap();
        let tree = store.put(ObjectKind::Tree, b"").unwrap();
        assert_eq!(tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        for (id, size) in [(id, "6"), (large, "3145728"), (tree, "0")] {
            let output = store.git().args(["cat-file", "-s", &id.to_string()]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), size);
        }
        assert_eq!(store.blob(&large).unwrap(), big);
        assert!(store.get(ObjectKind::Tree, &id).is_err());
    }

    #[test]
    fn reads_what_git_has_packed() {
        let (_dir, store) = store();
        let run = RunId::new("r1");
        let id = store.put(ObjectKind::Blob, b"packed\n").unwrap();
        store.set_ref("runs", &run, "0", &id).unwrap();
        assert!(store.git().args(["repack", "-q", "-a", "-d"]).status().unwrap().success());
        assert!(store.git().args(["pack-refs", "--all", "--prune"]).status().unwrap().success());
        assert!(!store.loose(&id).exists());
        assert_eq!(store.blob(&id).unwrap(), b"packed\n");
        assert_eq!(store.get_ref("runs", &run, "0").unwrap(), Some(id));
    }

    #[test]
    fn damage_and_newer_formats_are_errors() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"x").unwrap();
        std::fs::remove_file(store.loose(&id)).unwrap();
        assert!(matches!(store.blob(&id), Err(StoreError::Missing { .. })));
        std::fs::write(store.loose(&id), "junk").unwrap();
        assert!(matches!(store.blob(&id), Err(StoreError::Damaged { .. })));
        let config = store.dir().join("config");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("format = 1", "format = 2")).unwrap();
        assert!(matches!(Store::open(store.dir()), Err(StoreError::Newer { .. })));
    }

    #[test]
    fn many_writers_share_it() {
        let (_dir, store) = store();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store = Store::open(store.dir()).unwrap();
                    for n in 0..200 {
                        store.put(ObjectKind::Blob, format!("{n}").as_bytes()).unwrap();
                    }
                });
            }
        });
        let output = store.git().args(["fsck", "--full", "--strict"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let left = std::fs::read_dir(store.dir().join("objects")).unwrap();
        assert!(!left.flatten().any(|e| e.file_name().to_string_lossy().starts_with("tmp_")));
    }

    #[test]
    fn a_file_that_shrinks_or_grows_is_not_stored() {
        let (_dir, store) = store();
        for (bytes, size) in [(10, 11), (11, 10), (3 << 20, (3 << 20) + 1), ((3 << 20) + 1, 3 << 20)] {
            let content = vec![1; bytes];
            let put = store.put_file(&mut io::Cursor::new(content), size, &Batch::new(&store));
            assert!(matches!(put, Err(PutError::Read(_))), "{bytes} as {size}");
        }
    }
}
