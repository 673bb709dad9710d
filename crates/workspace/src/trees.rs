//! Trees: a look kept as a git tree, with a manifest of what git trees drop.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use triphammer_model::{RunId, TreeId, WorkPath};

use crate::facts::Facts;
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
    /// The tree that it belongs to; manifests of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
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
    /// Files that were not even read, with their sizes: there is too much of their kind. They are not in the tree.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<WorkPath, u64>,
    /// Places that could not be looked at: of them and of what is below nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<NotStored>,
    /// Directories that only lead to what the tree holds, and belong to another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leading: Vec<WorkPath>,
}

impl Manifest {
    /// What git itself would do.
    fn plain() -> Self {
        Self { schema: 1, file_mode: 0o644, executable_mode: 0o755, directory_mode: 0o755, ..Self::default() }
    }

    /// The permission bits that most files of a kind have.
    const fn usual(&self, git_mode: u32) -> u32 {
        if git_mode == EXECUTABLE { self.executable_mode } else { self.file_mode }
    }

    /// The permission bits of the file at `path`.
    pub(crate) fn mode_of(&self, path: &WorkPath, git_mode: u32) -> u32 {
        self.modes.get(path).copied().unwrap_or(self.usual(git_mode))
    }

    /// Whether `path` is or lies below a place that could not be looked at.
    pub(crate) fn is_unseen(&self, path: &WorkPath) -> bool {
        self.unseen.iter().any(|place| path.is_below(place.path.as_bytes()))
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
        Self { manifest: Manifest { tree: Some(tree.clone()), ..Manifest::plain() }, tree }
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
    let mut known = look.subtrees().clone();
    let (tree, manifest) = write_trees(&batch, look, limit, &mut known)?;
    batch.finish()?;
    // Only what really is in the store is taken over by later looks.
    *look.subtrees() = known;
    let manifest = Manifest { tree: Some(tree.into()), ..manifest };
    let text = serde_json::to_vec(&manifest).unwrap_or_default();
    let blob = store.put(ObjectKind::Blob, &text)?;
    // The manifest first: a tree that is there has one.
    store.set_ref(shelf.manifests, run, name, &blob)?;
    store.set_ref(shelf.trees, run, name, &tree)?;
    Ok(Kept { tree: tree.into(), manifest })
}

/// Makes the trees of a look that are not known, from the innermost directories outwards, and notes what git drops.
fn write_trees(
    batch: &Batch<'_>,
    look: &Look,
    limit: u64,
    known: &mut [Subtree],
) -> Result<(ObjectId, Manifest), StoreError> {
    let snapshot = look.snapshot();
    let listings = snapshot.listings();
    let mut manifest = Manifest { schema: 1, ..Manifest::plain() };
    usual_modes(look, &mut manifest);
    let unseen = snapshot.unseen().iter().map(|(path, why)| NotStored {
        path: work_path(path),
        size: 0,
        sha1: None,
        why: format!("it could not be looked at: {why}"),
    });
    manifest.unseen.extend(unseen);
    // What a directory holds, collected until its turn comes; only for directories whose tree is not known.
    let mut below: BTreeMap<usize, Vec<Item<'_>>> = BTreeMap::new();
    // The same for directories that the look only leads through, as those above infrastructure.
    let mut unlisted: BTreeMap<&[u8], Vec<Item<'_>>> = BTreeMap::new();
    for (at, listing) in listings.iter().enumerate().rev() {
        let (path, facts) = (listing.path(), listing.facts());
        let repository = path.split(|b| *b == b'/').any(is_repository_name);
        let first = snapshot.first_of(at);
        let unknown = known[at] == Subtree::Unknown;
        let mut items = below.remove(&at).unwrap_or_default();
        for (i, (name, facts)) in listing.files().enumerate() {
            let entry = Entry { dir: path, name, facts };
            let leaf = Leaf { entry, held: look.held(first + i), repository, limit };
            let mode = git_mode_of(&facts);
            if leaf.is_in_tree() && mode != LINK && entry.permissions() != manifest.usual(mode) {
                manifest.modes.insert(entry.work_path(), entry.permissions());
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
            let mode = facts.mode & 0o7777;
            if mode != manifest.directory_mode {
                manifest.directory_modes.insert(work_path(path), mode);
            }
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
        if !path.is_empty() {
            manifest.leading.push(work_path(path));
        }
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
        !matches!(self.held, Held::Nothing | Held::Unread)
            && !self.repository
            && !is_repository_name(self.entry.name)
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
                manifest.unread.insert(entry.work_path(), entry.size());
                None
            }
        }
    }
}

/// Git tools refuse trees that hold this name, in any case.
fn is_repository_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

fn git_mode_of(facts: &Facts) -> u32 {
    match EntryKind::of(facts.kind()) {
        EntryKind::Symlink => LINK,
        _ if facts.mode & 0o100 != 0 => EXECUTABLE,
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

/// Finds the most frequent permission bits, so that only those which differ are written down.
fn usual_modes(look: &Look, manifest: &mut Manifest) {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let mut count = |git_mode: u32, mode: u32| *counts.entry((git_mode, mode & 0o7777)).or_default() += 1;
    for listing in look.snapshot().listings() {
        if !listing.path().is_empty() {
            count(DIRECTORY, listing.facts().mode);
        }
        let files = listing.files().filter(|(_, facts)| EntryKind::of(facts.kind()) == EntryKind::File);
        files.for_each(|(_, facts)| count(git_mode_of(&facts), facts.mode));
    }
    let usual = |git_mode: u32| {
        let of_kind = counts.iter().filter(|((kind, _), _)| *kind == git_mode);
        of_kind.max_by_key(|((_, mode), count)| (**count, *mode)).map(|((_, mode), _)| *mode)
    };
    let plain = Manifest::plain();
    manifest.file_mode = usual(FILE).unwrap_or(plain.file_mode);
    manifest.executable_mode = usual(EXECUTABLE).unwrap_or(plain.executable_mode);
    manifest.directory_mode = usual(DIRECTORY).unwrap_or(plain.directory_mode);
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
        let strange = |what: &str| StoreError::Strange {
            path: self.dir().join(format!("refs/{}/{run}/{name}", on.manifests)),
            what: what.to_owned(),
            cure: format!(
                "a run that was killed while it kept this tree keeps it anew on `resume`; `git --git-dir='{}' archive \
                 -o FILE.tar {tree}` has the content, without modes and empty directories",
                self.dir().display()
            ),
        };
        let Some(id) = self.get_ref(on.manifests, run, name)? else {
            return Err(strange("is missing: it says what git trees drop"));
        };
        let text = self.blob(&id)?;
        let mut manifest: Manifest = serde_json::from_slice(&text).map_err(|e| StoreError::Damaged {
            path: self.dir().to_path_buf(),
            id: id.to_string(),
            what: format!("it is no manifest: {e}"),
        })?;
        let tree = TreeId::from(tree);
        if *manifest.tree.get_or_insert_with(|| tree.clone()) != tree {
            return Err(strange("belongs to another tree"));
        }
        Ok(Kept { tree, manifest })
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
