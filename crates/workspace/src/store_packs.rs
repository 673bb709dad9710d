//! Which packs the store has: a pack is one when it and its index are there, whole and in their places.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::object_id::ObjectId;
use crate::packs::Index;
use crate::store_format::open_plain;
use crate::store_objects::{Store, StoreError};

/// The packs that are known; looked up once, and again when an object is not found.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    listed: bool,
    known: Vec<Arc<Index>>,
    /// Index files that are damaged: what their packs hold is not found.
    broken: Vec<PathBuf>,
    /// Indexes whose pack is gone.
    bereft: Vec<Arc<Index>>,
}

impl Packs {
    fn list(&mut self, dir: &Path) {
        self.listed = true;
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        let indexes: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| is_index(p)).collect();
        let whole = |index: &Path| std::fs::symlink_metadata(index.with_extension("pack")).is_ok();
        self.known.retain(|pack| indexes.contains(&pack.path) && whole(&pack.path));
        self.broken.clear();
        self.bereft.clear();
        for path in indexes {
            if self.known.iter().any(|pack| pack.path == path) {
                continue;
            }
            match Index::read(&path) {
                Some(index) if whole(&path) => self.known.push(Arc::new(index)),
                Some(index) => self.bereft.push(Arc::new(index)),
                None => self.broken.push(path),
            }
        }
    }

    fn find(&self, id: &ObjectId) -> Option<(Arc<Index>, u64)> {
        self.known.iter().rev().find_map(|pack| Some((Arc::clone(pack), pack.find(id)?)))
    }

    /// The first index that is damaged. They are read as a whole only here, since that takes its time.
    fn damaged(&self) -> Option<&Path> {
        let unsound = || self.known.iter().find(|pack| !pack.is_sound()).map(|pack| &pack.path);
        self.broken.first().or_else(unsound).map(PathBuf::as_path)
    }
}

/// Whether a file is a pack's index and not one that is still being written.
fn is_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"pack-") && name.ends_with(b".idx")
}

impl Store {
    /// Takes note of a pack that was just written.
    pub(crate) fn learn(&self, index: &Path) {
        let mut packs = self.lock_packs();
        if packs.listed
            && let Some(index) = Index::read(index)
        {
            packs.known.push(Arc::new(index));
        }
    }

    fn lock_packs(&self) -> MutexGuard<'_, Packs> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pack that holds an object, and where. With `again` the folder is listed anew before it is said that
    /// there is none.
    pub(crate) fn in_packs(&self, id: &ObjectId, again: bool) -> Option<(Arc<Index>, u64)> {
        let mut packs = self.lock_packs();
        if packs.listed
            && let Some(found) = packs.find(id)
        {
            return Some(found);
        }
        if packs.listed && !again {
            return None;
        }
        packs.list(&self.pack_dir());
        packs.find(id)
    }

    /// Whether an index names an object, even one whose pack is gone.
    pub(crate) fn in_any_pack(&self, id: &ObjectId) -> bool {
        self.in_packs(id, true).is_some()
            || self.lock_packs().bereft.iter().any(|index| index.find(id).is_some())
    }

    /// All packs as they are on disk now, with their indexes checked as a whole.
    ///
    /// # Errors
    /// [`StoreError::Strange`] names an index that is damaged.
    pub(crate) fn packs(&self) -> Result<Vec<Arc<Index>>, StoreError> {
        let mut packs = self.lock_packs();
        *packs = Packs::default();
        packs.list(&self.pack_dir());
        match packs.damaged() {
            None => Ok(packs.known.clone()),
            Some(path) => Err(StoreError::index(path)),
        }
    }

    /// Why an object that should be there is not: its file is none or empty, its pack is gone, or an index that is
    /// damaged hides what its pack holds.
    pub(crate) fn missing(&self, id: &ObjectId) -> StoreError {
        let damaged = |path: PathBuf, what: &str| StoreError::Damaged {
            path,
            id: id.to_string(),
            what: what.to_owned(),
        };
        let place = self.loose(id);
        match open_plain(&place) {
            Ok(_) => return damaged(place, "it is empty"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return StoreError::File { path: place, what: "read", source },
        }
        let packs = self.lock_packs();
        if let Some(index) = packs.bereft.iter().find(|index| index.find(id).is_some()) {
            return damaged(index.path.with_extension("pack"), "its pack is gone");
        }
        match packs.damaged() {
            Some(path) => StoreError::index(path),
            None => StoreError::Missing { path: self.dir().to_path_buf(), id: id.to_string() },
        }
    }
}
