//! Infrastructure: the toolchains and hidden folders beside the work. Its movement is no progress, but a gate that
//! runs again may need what an agent installed, so it is kept as far as it is not too large.

use std::path::Path;

use triphammer_model::RunId;

use crate::look::{Eyes, Look, LookError};
use crate::restore::{Plan, RestoreError, Restored};
use crate::root::Root;
use crate::snapshot::{EntryKind, Snapshot};
use crate::store_objects::{Store, StoreError};
use crate::trees::{INFRASTRUCTURE, Kept, keep};
use crate::zones::ZoneMap;

/// The size in bytes above which infrastructure is recorded by names and sizes only.
pub const INFRASTRUCTURE_LIMIT: u64 = 128 << 20;

impl Eyes {
    /// Looks at the infrastructure that a look at the deliverable met. What did not move since `last` is not read
    /// again; where all together is larger than [`INFRASTRUCTURE_LIMIT`], content is not read at all.
    ///
    /// # Errors
    /// As [`Eyes::look`].
    pub fn infrastructure(&self, beside: &Look, last: Option<&Look>) -> Result<Look, LookError> {
        let last_seen = last.map(Look::snapshot);
        let snapshot =
            Snapshot::infrastructure_beside(self.root(), self.zones(), beside.snapshot(), last_seen)?;
        let files = snapshot.iter().filter(|entry| entry.kind() == EntryKind::File);
        let size = files.fold(0u64, |sum, entry| sum.saturating_add(entry.size()));
        let eyes = self.clone().with_limit(INFRASTRUCTURE_LIMIT);
        Ok(eyes.fill(snapshot, last, size <= INFRASTRUCTURE_LIMIT)?)
    }

    /// Keeps a look at infrastructure as a tree under `refs/infrastructure/<run>/<name>`, with its manifest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn keep_infrastructure(&self, look: &Look, run: &RunId, name: &str) -> Result<Kept, StoreError> {
        keep(self.store(), look, INFRASTRUCTURE, run, name, INFRASTRUCTURE_LIMIT)
    }
}

impl Store {
    /// The infrastructure that a run kept under a name; `None` where there was none.
    ///
    /// # Errors
    /// What is wrong with the store.
    pub fn kept_infrastructure(&self, run: &RunId, name: &str) -> Result<Option<Kept>, StoreError> {
        match self.kept_on(INFRASTRUCTURE, run, name) {
            Ok(kept) => Ok(Some(kept)),
            Err(StoreError::NoSuchTree { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Writes kept infrastructure into a folder whose zones are `zones`. What is there and not in the tree stays.
///
/// # Errors
/// [`RestoreError`]; the store is checked to hold what is to be written before anything is.
pub fn restore_infrastructure(
    store: &Store,
    kept: &Kept,
    to: &Path,
    zones: &ZoneMap,
) -> Result<Restored, RestoreError> {
    let root = Root::open(to)?;
    let beside = Look::by_stats(Snapshot::deliverable(&root, zones)?);
    let eyes = Eyes::new(root, zones.clone(), store.clone());
    let have = eyes.infrastructure(&beside, None)?;
    let plan = Plan::make(store, kept, &have)?.without_deletions();
    plan.carry_out(&eyes, kept, &have)
}
