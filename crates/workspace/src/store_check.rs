//! Whether what a run kept is there.

use std::collections::HashSet;

use triphammer_model::{RunId, TreeId};

use crate::object_id::ObjectId;
use crate::store_error::StoreError;
use crate::store_objects::Store;

/// How much was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Trees that a run kept.
    pub trees: u64,
    /// Files and links in them, each once.
    pub blobs: u64,
}

/// What was looked at already: trees of one run share most of what they hold.
#[derive(Debug, Default)]
pub struct Seen(HashSet<ObjectId>);

impl Store {
    /// Looks for a tree that a run kept under a name, for its manifest, and for all that it holds. What is named is read and
    /// compared with its hash; file contents only with `deep`, else it is asked whether they are there.
    ///
    /// # Errors
    /// [`StoreError`] with the first thing that is missing or damaged.
    pub fn check(
        &self,
        run: &RunId,
        name: &str,
        deep: bool,
        seen: &mut Seen,
        found: &mut Inventory,
    ) -> Result<TreeId, StoreError> {
        let kept = self.kept(run, name)?;
        found.trees += 1;
        let root = self.tree_id(&kept.tree)?;
        if !seen.0.insert(root) {
            return Ok(kept.tree);
        }
        for entry in self.list(&kept.tree)? {
            if !seen.0.insert(entry.id) {
                continue;
            }
            if deep {
                self.blob(&entry.id)?;
            } else if !self.has(&entry.id) {
                return Err(self.missing(&entry.id));
            }
            found.blobs += 1;
        }
        Ok(kept.tree)
    }
}
