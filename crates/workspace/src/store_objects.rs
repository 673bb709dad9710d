//! `runs/.store.git`: a bare git repository of our own, written object by object, without any filter. It borrows
//! nothing from the user's repositories, and any git tool can read it.
//!
//! Runs share it safely: an object's name is its content's hash, it is written beside its place and renamed into
//! it, and nothing is ever changed. Nothing is synced: what a loss of power takes is found out by the hash.
//! Whoever has it open shares a lock, so that a clean-up takes no object from under them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use crate::git::{complaint, output_within};
pub use crate::object_id::ObjectId;
use crate::object_id::changed;
pub(crate) use crate::object_id::{ObjectKind, hash_file};
use crate::packs::{Batch, deflate};
use crate::store_draft::Draft;
pub use crate::store_error::StoreError;
use crate::store_format::{self, Found, open_plain};
use crate::store_lock::StoreLock;
use crate::store_packs::Packs;

/// A kind, a size and a zero byte.
const LONGEST_HEADER: u64 = 32;

/// Files up to this size are hashed in memory before anything is compressed.
const IN_MEMORY: u64 = 1 << 20;

/// No object of ours is larger: files above the eyes' limits are not stored. What says that it is larger was planted, or
/// is damaged, and is not inflated into memory.
pub(crate) const LARGEST_OBJECT: u64 = 1 << 30;

/// The store of one home. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    dir: Arc<PathBuf>,
    pub(crate) packs: Arc<Mutex<Packs>>,
    lock: Arc<StoreLock>,
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

    /// Writes a small file, of which `name` is the place in the store, whole or not at all.
    pub(crate) fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.draft("obj").and_then(|(draft, mut file)| {
            file.write_all(bytes)?;
            match name.rsplit_once('/') {
                Some((folder, last)) => draft.place(self.lock.folder_made(&self.dir, folder)?, last),
                None => draft.place(self.lock.top(), name),
            }
        });
        written.map_err(|source| StoreError::File { path: self.dir.join(name), what: "written", source })
    }

    /// Begins a file that becomes a part of the store when it is whole.
    fn draft(&self, purpose: &str) -> io::Result<(Draft, File)> {
        self.check_place()?;
        Draft::create(self.lock.folder_made(&self.dir, "objects")?, purpose)
    }

    pub(crate) fn pack_dir(&self) -> PathBuf {
        self.dir.join("objects/pack")
    }

    /// Refuses to write where the store's folders are not what was opened.
    pub(crate) fn check_place(&self) -> io::Result<()> {
        self.lock.check_place(&self.dir)
    }

    /// The lock that everybody who has the store open shares.
    pub(crate) fn lock(&self) -> &StoreLock {
        &self.lock
    }

    /// Whether an object is there, as far as its name tells and is known; saying no wrongly costs a copy. An empty file
    /// is none: that is what a loss of power leaves.
    pub(crate) fn has_quick(&self, id: &ObjectId) -> bool {
        let is_object = |meta: std::fs::Metadata| meta.is_file() && meta.len() > 0;
        self.in_packs(id, false).is_some() || std::fs::symlink_metadata(self.loose(id)).is_ok_and(is_object)
    }

    pub(crate) fn loose(&self, id: &ObjectId) -> PathBuf {
        let hex = id.to_string();
        self.dir.join("objects").join(&hex[..2]).join(&hex[2..])
    }

    /// Stores `content` in a file of its own and says under which id.
    pub(crate) fn put(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, StoreError> {
        let header = kind.header(content.len() as u64);
        let id = ObjectId::of(header.as_bytes(), content);
        if self.has_quick(&id) {
            return Ok(id);
        }
        let put = self.draft("obj").and_then(|(draft, mut file)| {
            file.write_all(&deflate(&[header.as_bytes(), content])?)?;
            self.place(draft, &file, &id)
        });
        put.map_err(|source| self.not_written(&id, source)).map(|()| id)
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
        let not_written = |source| PutError::Store(self.not_written(&id, source));
        let (draft, made) = self.draft("obj").map_err(not_written)?;
        let mut writer = ZlibEncoder::new(made, Compression::fast());
        let mut hasher = Sha1::new();
        let header = ObjectKind::Blob.header(size);
        hasher.update(header.as_bytes());
        writer.write_all(header.as_bytes()).map_err(not_written)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    writer.write_all(&buffer[..n]).map_err(not_written)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PutError::Read(error)),
            }
        }
        if ObjectId::from_hasher(hasher) != id {
            return Err(PutError::Read(changed()));
        }
        writer.finish().and_then(|made| self.place(draft, &made, &id)).map_err(not_written)?;
        Ok(id)
    }

    /// Moves a complete object to its place.
    fn place(&self, draft: Draft, file: &File, id: &ObjectId) -> io::Result<()> {
        // Git makes objects read-only, and so do we: nothing should ever change one.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
        let hex = id.to_string();
        draft.place(self.lock.folder_made(&self.dir, &format!("objects/{}", &hex[..2]))?, &hex[2..])
    }

    fn not_written(&self, id: &ObjectId, source: io::Error) -> StoreError {
        StoreError::File { path: self.loose(id), what: "written", source }
    }

    /// An object's content, checked against its name.
    pub(crate) fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        // Git knows the empty tree without storing it, and so do we.
        if kind == ObjectKind::Tree && *id == kind.id_of(&[]) {
            return Ok(Vec::new());
        }
        let place = self.loose(id);
        let file = match open_plain(&place) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.get_packed(kind, id),
            Err(source) => return Err(StoreError::File { path: place, what: "read", source }),
        };
        Loose::begin(file).and_then(|loose| loose.finish(kind, id)).or_else(|what| {
            // A damaged copy hides no sound one.
            let damaged = StoreError::Damaged { path: place, id: id.to_string(), what };
            self.get_packed(kind, id).map_err(|_| damaged)
        })
    }

    /// How many bytes a blob says that it holds, where that is told without reading it.
    pub(crate) fn size_of(&self, id: &ObjectId) -> Option<u64> {
        if let Ok(file) = open_plain(&self.loose(id)) {
            return Loose::begin(file).ok().map(|loose| loose.size);
        }
        let (pack, offset) = self.in_packs(id, true)?;
        pack.blob_size(offset).ok()?
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
                let id = id.to_string();
                let scratch = self.scratch()?;
                let ask = |what: &str| {
                    let mut command = scratch.git();
                    command.args(["cat-file", what, &id]);
                    let output = output_within(command, crate::git::PATIENCE)
                        .map_err(|source| StoreError::File { path: self.pack_dir(), what: "read", source })?;
                    if output.status.success() { Ok(output.stdout) } else { Err(damaged(complaint(&output))) }
                };
                let size = String::from_utf8_lossy(&ask("-s")?).trim().parse().unwrap_or(u64::MAX);
                if size > LARGEST_OBJECT {
                    return Err(damaged(too_large(size)));
                }
                ask(kind.word())?
            }
            Err(error) => return Err(damaged(error.to_string())),
        };
        if kind.id_of(&content) == *id {
            return Ok(content);
        }
        Err(damaged("its content has another hash".to_owned()))
    }

    /// Whether there is a file or a pack of that name, however damaged: reading it says what is wrong.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.has_quick(id) || std::fs::symlink_metadata(self.loose(id)).is_ok() || self.in_any_pack(id)
    }

    /// A blob's content.
    ///
    /// # Errors
    /// [`StoreError`] when it is not there or damaged.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, StoreError> {
        self.get(ObjectKind::Blob, id)
    }

    /// The `git` command on this repository, as a person runs it: with its configuration. See [`Store::scratch`].
    #[cfg(test)]
    pub(crate) fn git(&self) -> std::process::Command {
        let mut command = crate::git::git();
        command.arg("--git-dir").arg(&*self.dir);
        command
    }
}

/// An object that is a file of its own, begun to be read: its header is behind.
struct Loose {
    header: Vec<u8>,
    size: u64,
    rest: BufReader<ZlibDecoder<File>>,
}

impl Loose {
    fn begin(file: File) -> Result<Self, String> {
        let mut rest = BufReader::with_capacity(1 << 13, ZlibDecoder::new(file));
        let mut header = Vec::new();
        rest.by_ref().take(LONGEST_HEADER).read_until(0, &mut header).map_err(|e| e.to_string())?;
        let text = header.strip_suffix(b"\0").and_then(|text| std::str::from_utf8(text).ok());
        let size = text.and_then(|text| text.split_once(' ')?.1.parse().ok()).ok_or("no header")?;
        Ok(Self { header, size, rest })
    }

    /// The content, checked; or what is wrong with it.
    fn finish(self, kind: ObjectKind, id: &ObjectId) -> Result<Vec<u8>, String> {
        if self.size > LARGEST_OBJECT {
            return Err(too_large(self.size));
        }
        let mut content = Vec::new();
        // One more than it says, so that a longer one is noticed and not inflated.
        self.rest.take(self.size + 1).read_to_end(&mut content).map_err(|e| e.to_string())?;
        if ObjectId::of(&self.header, &content) != *id {
            return Err("its content has another hash".to_owned());
        }
        if self.header != kind.header(content.len() as u64).as_bytes() {
            return Err(format!("it is no {}", kind.word()));
        }
        Ok(content)
    }
}

/// What is wrong with an object that says that it holds `size` bytes.
pub(crate) fn too_large(size: u64) -> String {
    format!("it says that it holds {size} bytes, and no object of ours is larger than {LARGEST_OBJECT}")
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
