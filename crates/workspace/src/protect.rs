//! Protected files: compared around each attempt, and put back byte for byte.

use std::collections::BTreeMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use triphammer_model::{Change, WorkPath};

use crate::look::{Eyes, Held, Look};
use crate::placing::{InTheWay, Thing};
use crate::snapshot::EntryKind;
use crate::store_objects::{ObjectId, Store, StoreError};
use crate::trees::Kept;

/// Files could not be protected or put back.
#[derive(Debug, thiserror::Error)]
pub enum ProtectError {
    /// A glob is none.
    #[error("`{glob}` in `protect` is no glob ({source}): use `tests/**`, `*.lock` or a path")]
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// The store does not give the bytes.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a protected file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Guarded {
    /// A link rather than a file.
    link: bool,
    /// Permission bits; 0 for a link.
    mode: u32,
    /// The blob's hash; absent when it could not be read.
    id: Option<String>,
    /// Whether the store holds it.
    stored: bool,
}

/// The files that must not change: those of the globs that were there at the start, and those named as paths.
/// Their bytes lie in the store, so this is small, and a resumed run can take it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// Schema version.
    schema: u32,
    globs: Vec<String>,
    files: BTreeMap<WorkPath, Guarded>,
}

/// A protected file that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    /// The file.
    pub path: WorkPath,
    /// How it moved: changed or deleted.
    pub change: Change,
    /// What happened to it, in a few stable words.
    pub what: &'static str,
}

/// What [`Protected::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Protected files that are not as they were, sorted.
    pub offences: Vec<Offence>,
    /// Files that match a glob and were not there at the start, sorted: reported, no offence.
    pub additions: Vec<WorkPath>,
}

impl Protected {
    /// Protects the files of a look that match `globs`, and those that `extra` names. Only the deliverable is
    /// protected. A glob without a slash is matched with every name, one with a slash against the path from the
    /// workspace; one that ends in a slash protects all below.
    ///
    /// # Errors
    /// [`ProtectError::Glob`].
    pub fn take(look: &Look, globs: &[String], extra: &[WorkPath]) -> Result<Self, ProtectError> {
        let set = compile(globs)?;
        let guarded = look.entries().filter(|(entry, _)| {
            let path = entry.work_path();
            set.is_match(path.as_path()) || extra.iter().any(|other| path.is_below(other.as_bytes()))
        });
        let files = guarded.filter(|(entry, _)| entry.kind() != EntryKind::Special).map(|(entry, held)| {
            let link = entry.kind() == EntryKind::Symlink;
            let guarded = Guarded {
                link,
                mode: if link { 0 } else { entry.permissions() },
                id: held.id().map(|id| id.to_string()),
                stored: matches!(held, Held::Stored(_)),
            };
            (entry.work_path(), guarded)
        });
        Ok(Self { schema: 1, globs: globs.to_vec(), files: files.collect() })
    }

    /// Protects the files of a kept tree, as [`Protected::take`] does those of a look.
    ///
    /// # Errors
    /// [`ProtectError`].
    pub fn from_tree(
        store: &Store,
        kept: &Kept,
        globs: &[String],
        extra: &[WorkPath],
    ) -> Result<Self, ProtectError> {
        let set = compile(globs)?;
        let mut files = BTreeMap::new();
        for entry in store.list(&kept.tree)? {
            let named = extra.iter().any(|path| entry.path.is_below(path.as_bytes()));
            if !named && !set.is_match(entry.path.as_path()) {
                continue;
            }
            let left_out = kept.manifest.not_stored.iter().find(|n| n.path == entry.path);
            let guarded = Guarded {
                link: entry.is_link(),
                mode: if entry.is_link() { 0 } else { kept.manifest.mode_of(&entry.path, entry.mode) },
                id: left_out.map_or_else(|| Some(entry.id.to_string()), |n| n.sha1.clone()),
                stored: left_out.is_none(),
            };
            files.insert(entry.path, guarded);
        }
        Ok(Self { schema: 1, globs: globs.to_vec(), files })
    }

    /// Takes over what a person did to protected files while a run rested: files that were as protected when it
    /// came to rest (`end`) and are not any more (`now`). What was different at its end already is left to be put
    /// back. Returns the paths, sorted.
    pub fn adopt(&mut self, end: &Self, now: &Self) -> Vec<WorkPath> {
        let theirs = |path: &WorkPath| {
            let (was, at_end, is) = (self.files.get(path), end.files.get(path), now.files.get(path));
            was == at_end && is != at_end
        };
        let paths: Vec<WorkPath> = self.files.keys().filter(|path| theirs(path)).cloned().collect();
        for path in &paths {
            match now.files.get(path) {
                Some(guarded) => self.files.insert(path.clone(), guarded.clone()),
                None => self.files.remove(path),
            };
        }
        paths
    }

    /// The protected paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &WorkPath> {
        self.files.keys()
    }

    /// Compares a look with what is protected. A file whose bytes, permission bits and kind are what they were is
    /// no offence, whatever its timestamps say.
    ///
    /// # Errors
    /// [`ProtectError::Glob`] when what was stored is damaged.
    pub fn check(&self, look: &Look) -> Result<Checked, ProtectError> {
        let set = compile(&self.globs)?;
        let mut checked = Checked::default();
        for (path, was) in &self.files {
            let offence = |change, what| Offence { path: path.clone(), change, what };
            let Some((entry, held)) = look.find(path.as_bytes()) else {
                let replaced = look.snapshot().directory(path.as_bytes()).is_some();
                let what = if replaced { "replaced by a directory" } else { "deleted" };
                checked.offences.push(offence(Change::Deleted, what));
                continue;
            };
            let what = match entry.kind() {
                EntryKind::Special => "replaced by a special file",
                EntryKind::Symlink if !was.link => "replaced by a link",
                EntryKind::File if was.link => "replaced by a file",
                // What cannot be read cannot be shown to be the same.
                _ if held.id().map(|id| id.to_string()) != was.id || was.id.is_none() => "changed",
                EntryKind::File if entry.permissions() != was.mode => "mode changed",
                _ => continue,
            };
            checked.offences.push(offence(Change::Changed, what));
        }
        let entries = (!set.is_empty()).then(|| look.entries()).into_iter().flatten();
        for (entry, _) in entries {
            let path = entry.work_path();
            if set.is_match(path.as_path()) && !self.files.contains_key(&path) {
                checked.additions.push(path);
            }
        }
        Ok(checked)
    }

    /// Puts the bytes and permission bits of the offended files back. Whatever an agent planted at such a path or on
    /// the way to it is removed: links themselves, directories with all below. It is kept in the tree of the
    /// attempt as the agent left it. Returns what could not be put back, with the reason.
    ///
    /// # Errors
    /// [`ProtectError::Store`] when the store is damaged; nothing is removed then.
    pub fn restore(
        &self,
        eyes: &Eyes,
        offences: &[Offence],
    ) -> Result<Vec<(WorkPath, String)>, ProtectError> {
        let mut failed = Vec::new();
        let mut ready = Vec::new();
        for offence in offences {
            let Some(was) = self.files.get(&offence.path) else { continue };
            let id: Option<ObjectId> = was.id.as_ref().and_then(|text| text.parse().ok());
            match id.filter(|_| was.stored) {
                None => failed.push((offence.path.clone(), "its bytes are not in the store".to_owned())),
                Some(id) if !eyes.store().has(&id) => {
                    return Err(StoreError::Missing {
                        path: eyes.store().dir().to_path_buf(),
                        id: id.to_string(),
                    }
                    .into());
                }
                Some(id) => ready.push((&offence.path, was, id)),
            }
        }
        for (path, was, id) in ready {
            let content = eyes.store().blob(&id)?;
            let thing = if was.link { Thing::Link(&content) } else { Thing::File(&content, was.mode) };
            let placed = eyes.root().stage(path.as_bytes(), thing, InTheWay::Goes).and_then(|staged| {
                // A rename replaces a file or link by itself, so that there is no moment without one.
                if eyes.root().open_dir(path.as_bytes()).is_ok() {
                    eyes.root().clear(path.as_bytes())?;
                }
                staged.commit()
            });
            if let Err(error) = placed {
                failed.push((path.clone(), std::io::Error::from(error).to_string()));
            }
        }
        Ok(failed)
    }
}

fn compile(globs: &[String]) -> Result<GlobSet, ProtectError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let fail = |source| ProtectError::Glob { glob: glob.clone(), source };
        let plain = glob.strip_prefix("./").unwrap_or(glob);
        let below = plain.ends_with('/');
        let trimmed = plain.trim_matches('/');
        let mut text = if trimmed.contains('/') || below || plain.starts_with('/') {
            trimmed.to_owned()
        } else {
            format!("**/{trimmed}")
        };
        if below {
            text.push_str("/**");
        }
        set.add(
            GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build().map_err(fail)?,
        );
    }
    set.build().map_err(|source| ProtectError::Glob { glob: globs.join(", "), source })
}
