//! Trees: a look kept as a git tree, with a manifest of what git trees drop.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use triphammer_model::{RunId, TreeId, WorkPath};

use crate::look::{Held, Look};
use crate::packs::Batch;
use crate::root::{join, split, work_path};
use crate::snapshot::{Entry, EntryKind};
use crate::store_objects::{ObjectId, ObjectKind, Store, StoreError};

const FILE: u32 = 0o100_644;
const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;

/// Content that a tree names but the store does not hold. In the tree stands a short text that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStored {
    /// The path.
    pub path: WorkPath,
    /// Its size in bytes.
    pub size: u64,
    /// Its git blob hash, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    /// Why it is not stored.
    pub why: String,
}

/// What a git tree drops: permission bits beyond the executable one, empty directories, special files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Schema version.
    pub schema: u32,
    /// Permission bits of files that git calls `100644`, where `modes` says nothing else.
    pub file_mode: u32,
    /// Permission bits of files that git calls `100755`, where `modes` says nothing else.
    pub executable_mode: u32,
    /// Permission bits of directories, where `modes` says nothing else.
    pub directory_mode: u32,
    /// Other permission bits of files, by path.
    pub modes: BTreeMap<WorkPath, u32>,
    /// Other permission bits of directories, by path.
    pub directory_modes: BTreeMap<WorkPath, u32>,
    /// Directories that hold nothing that is in the tree.
    pub empty: Vec<WorkPath>,
    /// FIFOs, sockets and devices: they are named, and never made again.
    pub special: Vec<WorkPath>,
    /// Content that is not in the store.
    pub not_stored: Vec<NotStored>,
}

impl Manifest {
    /// What git itself would do.
    fn plain() -> Self {
        Self { schema: 1, file_mode: 0o644, executable_mode: 0o755, directory_mode: 0o755, ..Self::default() }
    }

    /// The permission bits of the file at `path`.
    pub(crate) fn mode_of(&self, path: &WorkPath, git_mode: u32) -> u32 {
        let usual = if git_mode == EXECUTABLE { self.executable_mode } else { self.file_mode };
        self.modes.get(path).copied().unwrap_or(usual)
    }

    /// The permission bits of the directory at `path`.
    pub(crate) fn directory_mode_of(&self, path: &WorkPath) -> u32 {
        self.directory_modes.get(path).copied().unwrap_or(self.directory_mode)
    }
}

/// A tree in the store, with its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The git tree.
    pub tree: TreeId,
    /// What the tree drops.
    pub manifest: Manifest,
}

impl Kept {
    /// A tree whose manifest is not known: permission bits as git has them, no empty directories.
    pub fn bare(tree: TreeId) -> Self {
        Self { tree, manifest: Manifest::plain() }
    }

    /// Whether both say the same of content, modes, links, empty directories and special files. Two trees with one
    /// id may still differ in what git drops.
    pub fn same_as(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether content, modes and links of all files are the same; directories do not matter, as in movement.
    pub fn same_files_as(&self, other: &Self) -> bool {
        let files = |kept: &Self| Self {
            tree: kept.tree.clone(),
            manifest: Manifest {
                directory_mode: 0,
                directory_modes: BTreeMap::new(),
                empty: Vec::new(),
                ..kept.manifest.clone()
            },
        };
        files(self) == files(other)
    }
}

/// One entry of a tree that is no tree itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path.
    pub path: WorkPath,
    /// Git's mode: `100644`, `100755` or `120000`, octal.
    pub mode: u32,
    /// Its blob.
    pub id: ObjectId,
}

impl TreeEntry {
    /// Whether it is a symbolic link.
    pub const fn is_link(&self) -> bool {
        self.mode == LINK
    }
}

/// The git tree of one directory of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subtree {
    /// It was not made yet.
    Unknown,
    /// The directory holds nothing that git keeps.
    Nothing,
    /// It is in the store.
    Tree(ObjectId),
}

/// The kinds of refs under which trees and their manifests are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shelf {
    trees: &'static str,
    manifests: &'static str,
}

pub(crate) const DELIVERABLE: Shelf = Shelf { trees: "runs", manifests: "manifests" };
pub(crate) const INFRASTRUCTURE: Shelf =
    Shelf { trees: "infrastructure", manifests: "infrastructure-manifests" };

/// Keeps `look` under `refs/<shelf>/<run>/<name>`, and its manifest beside it. Trees of
/// directories that did not move since an earlier look was kept are not made again.
pub(crate) fn keep(
    store: &Store,
    look: &Look,
    shelf: Shelf,
    run: &RunId,
    name: &str,
    limit: u64,
) -> Result<Kept, StoreError> {
    let batch = Batch::new(store);
    let (tree, manifest) = write_trees(&batch, look, limit)?;
    batch.finish()?;
    store.set_ref(shelf.trees, run, name, &tree)?;
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    let blob = store.put(ObjectKind::Blob, &text)?;
    store.set_ref(shelf.manifests, run, name, &blob)?;
    Ok(Kept { tree: tree.into(), manifest })
}

/// Makes the trees of a look that are not known, from the innermost directories outwards, and notes what git drops.
fn write_trees(batch: &Batch<'_>, look: &Look, limit: u64) -> Result<(ObjectId, Manifest), StoreError> {
    let snapshot = look.snapshot();
    let listings = snapshot.listings();
    let mut known = look.subtrees();
    let mut manifest = Manifest { schema: 1, ..Manifest::default() };
    let mut modes = Modes::default();
    // What a directory holds, collected until its turn comes; only for directories whose tree is not known.
    let mut below: BTreeMap<usize, Vec<Item<'_>>> = BTreeMap::new();
    // The same for directories that the look only leads through, as those above infrastructure.
    let mut unlisted: BTreeMap<&[u8], Vec<Item<'_>>> = BTreeMap::new();
    for (at, listing) in listings.iter().enumerate().rev() {
        let (path, facts) = (listing.path(), listing.facts);
        let repository = path.split(|b| *b == b'/').any(is_repository_name);
        let first = snapshot.first_of(at);
        let unknown = known[at] == Subtree::Unknown;
        let mut items = below.remove(&at).unwrap_or_default();
        for (i, (name, facts)) in listing.files().enumerate() {
            let entry = Entry { dir: path, name, facts };
            let leaf = Leaf { entry, held: look.held(first + i), repository, limit };
            let mode = git_mode(&entry);
            if leaf.is_in_tree() && mode != LINK {
                modes.take(mode, entry);
            }
            let left_out = leaf.left_out(&mut manifest);
            if unknown && leaf.is_in_tree() {
                let id = match (leaf.held, &left_out) {
                    (Held::Stored(id), _) => id,
                    (_, Some(left_out)) => pointer(batch, left_out)?,
                    (_, None) => continue,
                };
                items.push(Item { name, mode, id });
            }
            manifest.not_stored.extend(left_out);
        }
        if unknown {
            known[at] = if items.is_empty() && !path.is_empty() {
                Subtree::Nothing
            } else {
                Subtree::Tree(write_tree(batch, items)?)
            };
        }
        if path.is_empty() {
            continue;
        }
        let (dir, name) = split(path);
        if !repository {
            modes.take(DIRECTORY, Entry { dir, name, facts });
            if known[at] == Subtree::Nothing {
                manifest.empty.push(work_path(path));
            }
        }
        let Subtree::Tree(id) = known[at] else { continue };
        let item = Item { name, mode: DIRECTORY, id };
        match snapshot.listing_of(dir) {
            Some(parent) if known[parent] == Subtree::Unknown => below.entry(parent).or_default().push(item),
            Some(_) => {}
            None => unlisted.entry(dir).or_default().push(item),
        }
    }
    modes.settle(&mut manifest);
    manifest.empty.sort_unstable();
    manifest.special.sort_unstable();
    manifest.not_stored.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if let Some(Subtree::Tree(tree)) = known.first()
        && unlisted.is_empty()
    {
        return Ok((*tree, manifest));
    }
    // Each path comes after those that lead to it.
    while let Some((path, items)) = unlisted.pop_last() {
        let id = write_tree(batch, items)?;
        if path.is_empty() {
            return Ok((id, manifest));
        }
        let (dir, name) = split(path);
        unlisted.entry(dir).or_default().push(Item { name, mode: DIRECTORY, id });
    }
    // Not even the workspace folder was looked at.
    Ok((write_tree(batch, Vec::new())?, manifest))
}

/// One entry of a tree object.
struct Item<'a> {
    name: &'a [u8],
    mode: u32,
    id: ObjectId,
}

/// One file, link or special file, and how it is kept.
struct Leaf<'a> {
    entry: Entry<'a>,
    held: Held,
    /// It lies below something that is named like a repository.
    repository: bool,
    limit: u64,
}

impl Leaf<'_> {
    fn is_in_tree(&self) -> bool {
        self.held != Held::Nothing && !self.repository && !is_repository_name(self.entry.name)
    }

    /// What the manifest says of it where its content is not in the store; special files are noted as such.
    fn left_out(&self, manifest: &mut Manifest) -> Option<NotStored> {
        let Self { entry, held, .. } = self;
        let not_stored = |why: String| NotStored {
            path: entry.work_path(),
            size: entry.size(),
            sha1: held.id().map(|id| id.to_string()),
            why,
        };
        if self.repository || is_repository_name(entry.name) {
            return Some(not_stored("it is named like a repository".to_owned()));
        }
        match held {
            Held::Stored(_) => None,
            Held::Nothing => {
                manifest.special.push(entry.work_path());
                None
            }
            Held::Large(_) => Some(not_stored(format!("it is larger than {} bytes", self.limit))),
            Held::Unknown => Some(not_stored("it could not be read".to_owned())),
            Held::Unread => {
                Some(not_stored(format!("it belongs to more than {} bytes of infrastructure", self.limit)))
            }
        }
    }
}

/// Git tools refuse trees that hold this name, in any case.
fn is_repository_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

fn git_mode(entry: &Entry<'_>) -> u32 {
    match entry.kind() {
        EntryKind::Symlink => LINK,
        _ if entry.permissions() & 0o100 != 0 => EXECUTABLE,
        _ => FILE,
    }
}

/// What stands in a tree for content that is not stored: the tree's id still moves when the content does.
fn pointer(batch: &Batch<'_>, left_out: &NotStored) -> Result<ObjectId, StoreError> {
    let sha1 = left_out.sha1.as_deref().unwrap_or("unknown");
    let text = format!(
        "triphammer: the content of this file is not stored, because {}\nsize {}\nsha1 {sha1}\n",
        left_out.why, left_out.size
    );
    batch.put(ObjectKind::Blob, text.as_bytes())
}

/// Permission bits, so that only those which differ from the most frequent ones are written down.
#[derive(Default)]
struct Modes<'a> {
    all: BTreeMap<u32, Vec<Entry<'a>>>,
}

impl<'a> Modes<'a> {
    fn take(&mut self, git_mode: u32, entry: Entry<'a>) {
        self.all.entry(git_mode).or_default().push(entry);
    }

    fn settle(self, manifest: &mut Manifest) {
        let plain = Manifest::plain();
        for (git_mode, usual) in
            [(FILE, plain.file_mode), (EXECUTABLE, plain.executable_mode), (DIRECTORY, plain.directory_mode)]
        {
            let found = self.all.get(&git_mode).map_or(&[][..], Vec::as_slice);
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            for entry in found {
                *counts.entry(entry.permissions()).or_default() += 1;
            }
            let usual =
                counts.into_iter().max_by_key(|(mode, n)| (*n, *mode)).map_or(usual, |(mode, _)| mode);
            match git_mode {
                FILE => manifest.file_mode = usual,
                EXECUTABLE => manifest.executable_mode = usual,
                _ => manifest.directory_mode = usual,
            }
            let others = found.iter().filter(|entry| entry.permissions() != usual);
            let list =
                if git_mode == DIRECTORY { &mut manifest.directory_modes } else { &mut manifest.modes };
            list.extend(others.map(|entry| (entry.work_path(), entry.permissions())));
        }
    }
}

fn write_tree(batch: &Batch<'_>, mut items: Vec<Item<'_>>) -> Result<ObjectId, StoreError> {
    // Git sorts a directory as if its name ended in a slash.
    let key = |item: &Item<'_>| {
        let mut key = item.name.to_vec();
        key.extend((item.mode == DIRECTORY).then_some(b'/'));
        key
    };
    items.sort_by_cached_key(key);
    let mut content = Vec::new();
    for Item { name, mode, id } in items {
        content.extend_from_slice(format!("{mode:o} ").as_bytes());
        content.extend_from_slice(name);
        content.push(0);
        content.extend_from_slice(id.as_bytes());
    }
    batch.put(ObjectKind::Tree, &content)
}

impl Store {
    /// The tree that a run kept under a name, with its manifest.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTree`], or what is wrong with the store.
    pub fn kept(&self, run: &RunId, name: &str) -> Result<Kept, StoreError> {
        self.kept_on(DELIVERABLE, run, name)
    }

    pub(crate) fn kept_on(&self, on: Shelf, run: &RunId, name: &str) -> Result<Kept, StoreError> {
        let Some(tree) = self.get_ref(on.trees, run, name)? else {
            return Err(StoreError::NoSuchTree { run: run.clone(), name: name.to_owned() });
        };
        let manifest = match self.get_ref(on.manifests, run, name)? {
            None => Manifest::plain(),
            Some(id) => {
                let text = self.blob(&id)?;
                serde_json::from_slice(&text).map_err(|e| StoreError::Damaged {
                    path: self.dir().to_path_buf(),
                    id: id.to_string(),
                    what: format!("it is no manifest: {e}"),
                })?
            }
        };
        Ok(Kept { tree: tree.into(), manifest })
    }

    /// The names under which a run kept trees, sorted.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn names(&self, run: &RunId) -> Result<Vec<String>, StoreError> {
        let path = self.dir().join("refs/runs").join(run.as_str());
        let mut names = BTreeSet::new();
        match std::fs::read_dir(&path) {
            Ok(entries) => {
                names.extend(entries.flatten().filter_map(|e| e.file_name().into_string().ok()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(StoreError::File { path, what: "read", source }),
        }
        let packed = std::fs::read_to_string(self.dir().join("packed-refs")).unwrap_or_default();
        let prefix = format!("refs/runs/{run}/");
        let refs = packed.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(&prefix));
        names.extend(refs.map(str::to_owned));
        Ok(names.into_iter().collect())
    }

    /// Every file and link of a tree, sorted by path.
    ///
    /// # Errors
    /// [`StoreError`] when a tree object is missing or damaged.
    pub fn list(&self, tree: &TreeId) -> Result<Vec<TreeEntry>, StoreError> {
        let id = self.tree_id(tree)?;
        let mut all = Vec::new();
        let mut pending = vec![(Vec::new(), id)];
        while let Some((dir, id)) = pending.pop() {
            let content = self.get(ObjectKind::Tree, &id)?;
            let damaged = || StoreError::Damaged {
                path: self.dir().to_path_buf(),
                id: id.to_string(),
                what: "it is no tree object".to_owned(),
            };
            let mut rest = content.as_slice();
            while !rest.is_empty() {
                let (mode, name, raw, tail) = read_entry(rest).ok_or_else(damaged)?;
                rest = tail;
                // Whoever wrote this tree, a restore must not be led out of its folder.
                if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
                    return Err(damaged());
                }
                let path = join(&dir, name);
                match mode {
                    DIRECTORY => pending.push((path, raw)),
                    FILE | EXECUTABLE | LINK => {
                        all.push(TreeEntry { path: WorkPath::from_bytes(path), mode, id: raw });
                    }
                    _ => return Err(damaged()),
                }
            }
        }
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// A tree's name as an object id.
    pub(crate) fn tree_id(&self, tree: &TreeId) -> Result<ObjectId, StoreError> {
        tree.as_str()
            .parse()
            .map_err(|_| StoreError::Missing { path: self.dir().to_path_buf(), id: tree.to_string() })
    }
}

fn read_entry(content: &[u8]) -> Option<(u32, &[u8], ObjectId, &[u8])> {
    let space = content.iter().position(|b| *b == b' ')?;
    let mode = u32::from_str_radix(std::str::from_utf8(&content[..space]).ok()?, 8).ok()?;
    let rest = &content[space + 1..];
    let end = rest.iter().position(|b| *b == 0)?;
    let raw = rest.get(end + 1..end + 21)?;
    Some((mode, &rest[..end], ObjectId::from_raw(raw.try_into().ok()?), &rest[end + 21..]))
}
