//! What a run did to files, path by path: more than content, for a rename, a removal and an executable bit are work too.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use triphammer_model::WorkPath;

use crate::object_id::ObjectId;
use crate::store_objects::{Store, StoreError};
use crate::trees::{Kept, TreeEntry};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// A file.
    File {
        /// Its content.
        id: ObjectId,
        /// Whether it can be executed.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Its target, as a blob.
        id: ObjectId,
    },
}

impl Left {
    fn of(entry: &TreeEntry) -> Self {
        if entry.is_link() { Self::Link { id: entry.id } } else { Self::file(entry.id, entry.mode) }
    }

    pub(crate) fn file(id: ObjectId, mode: u32) -> Self {
        Self::File { id, executable: mode & 0o100 != 0 }
    }

    /// The content.
    pub fn id(&self) -> &ObjectId {
        match self {
            Self::File { id, .. } | Self::Link { id } => id,
        }
    }
}

/// What a run left at one path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deed {
    /// The path.
    pub path: WorkPath,
    /// What it put there; `None` when it took away what was there.
    pub left: Option<Left>,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gone = if self.left.is_none() { " (deleted)" } else { "" };
        write!(f, "`{}`{gone}", self.path)
    }
}

impl Store {
    /// What `work` has at its paths that no tree of `bases` has there, and what all of `bases` have and it has not; sorted.
    /// What the store does not hold of it cannot be lost with the store, and is left out.
    ///
    /// # Errors
    /// [`StoreError`] when a tree cannot be read.
    pub fn deeds(&self, bases: &[&Kept], work: &Kept) -> Result<Vec<Deed>, StoreError> {
        let mut known = HashSet::new();
        let mut in_bases: BTreeMap<WorkPath, usize> = BTreeMap::new();
        for base in bases {
            for entry in self.list(&base.tree)? {
                let left = Left::of(&entry);
                *in_bases.entry(entry.path.clone()).or_default() += 1;
                known.insert((entry.path, left));
            }
        }
        let pointers: HashSet<&WorkPath> = work.manifest.not_stored.iter().map(|n| &n.path).collect();
        let mut deeds = Vec::new();
        for entry in self.list(&work.tree)? {
            in_bases.remove(&entry.path);
            let left = Left::of(&entry);
            if !pointers.contains(&entry.path) && !known.contains(&(entry.path.clone(), left)) {
                deeds.push(Deed { path: entry.path, left: Some(left) });
            }
        }
        let removed = in_bases.into_iter().filter(|(_, times)| *times == bases.len());
        deeds.extend(removed.map(|(path, _)| Deed { path, left: None }));
        deeds.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(deeds)
    }
}
