//! The eyes of Triphammer: what a workspace holds, what moved in it, and how it is put back.
//!
//! # Theory of operation
//!
//! A [`Root`] is an opened folder; nothing below it is ever reached through a link. At a run's start its zones are
//! fixed as a [`ZoneMap`]. [`Eyes`] take [`Look`]s: a [`Snapshot`] of names and stats, whose fresh timestamps are
//! waited out, together with the content id of every entry, read only where a stat moved. Content goes into the
//! [`Store`], a bare git repository of our own, and [`Eyes::keep`] makes a look a git tree there, with a
//! [`Manifest`] of what git drops. [`moved`] compares two looks, [`stand`] holds claims against the world,
//! [`Protected`] compares and puts back what must not change, [`restore()`] makes a folder equal a tree, and
//! [`apply()`] merges a tree into a person's folder.
//!
//! A snapshot is made of listings, one a directory, that never change. The next look asks for stats only and reads
//! anew the directories whose own times moved; what stood still is shared, so that comparing two looks and making the
//! next tree cost what moved. Where times are weak (network file systems, tmpfs) content is compared instead. Hidden
//! tool folders, the infrastructure, are a look of their own beside that. Places that could not be looked at are
//! neither there nor gone.
//!
//! A [`Store`] holds a shared lock for as long as it lives; a clean-up ([`Store::prune`]) wants it alone.
//!
//! Nothing of the store is synced, for a sync costs more than all else that an attempt needs. A process that dies takes
//! nothing with it; a machine that loses its power may take what was kept in about its last half minute, after which
//! Linux writes by itself: objects, packs and refs of these trees are then missing, empty or garbage. That is found out
//! where they are read, by the hash, and named. An empty object is stored anew by the next look that meets its content;
//! garbage is not noticed then, and its file has to be removed by hand. A clean-up that misses something removes
//! nothing. The journal, which is synced, still says which trees there were.
//!
//! What an agent can write is hostile: FIFOs are never opened, git never runs code of a repository, and what could
//! not be seen is said in the bounds. A [`Lease`] keeps two runs off one folder; [`isolate()`]
//! gives a run a folder of its own.

pub mod apply;
pub mod claims;
pub mod deeds;
mod descend;
pub mod diff;
pub mod elsewhere;
mod facts;
pub mod fingerprint_file;
pub mod git;
mod history;
pub mod infrastructure;
pub mod isolate;
pub mod lease;
mod lister;
mod listing;
pub mod look;
pub mod movement;
pub mod newest;
mod object_id;
mod packs;
mod placing;
pub mod protect;
mod restat;
pub mod restore;
pub mod root;
mod skip_set;
pub mod snapshot;
mod store_check;
mod store_draft;
mod store_error;
mod store_format;
pub mod store_gc;
mod store_lock;
pub mod store_objects;
mod store_packs;
mod store_refs;
mod store_scratch;
mod tick;
pub mod trees;
mod walk;
pub mod zones;

pub use apply::{ApplyError, ApplyReport, Conflict, apply};
pub use claims::{ClaimScene, Window, stand};
pub use deeds::{Deed, Left};
pub use diff::{DiffError, TreeChange};
pub use elsewhere::{ElsewhereError, commits_not_in, unknown_content};
pub use fingerprint_file::FingerprintError;
pub use history::HistoryError;
pub use infrastructure::{INFRASTRUCTURE_LIMIT, restore_infrastructure};
pub use isolate::{Carried, IsolateError, Isolated, Place, Start, carry, isolate, state_folder};
pub use lease::{Lease, LeaseError};
pub use look::{DEFAULT_LIMIT, Eyes, Look, LookError};
pub use movement::{moved, moved_directories, moved_infrastructure};
pub use newest::{BULK, Moves, Newest, NewestFirst, newest_first};
pub use protect::{Checked, Offence, ProtectError, Protected};
pub use restore::{Onto, RestoreError, Restored, restore};
pub use root::{Root, WorkspaceError};
pub use snapshot::{Entry, EntryKind, Snapshot};
pub use store_check::{Inventory, Seen};
pub use store_gc::{Holdings, PruneError, Pruned};
pub use store_objects::{ObjectId, Store, StoreError};
pub use trees::{Kept, Manifest, NotStored, TreeEntry};
pub use zones::{CacheReason, Zone, ZoneConfig, ZoneMap};
