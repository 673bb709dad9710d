//! Refs of the store: `refs/<kind>/<run>/<name>`, read and written without git, as files or packed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use triphammer_model::RunId;

use crate::object_id::ObjectId;
use crate::store_format::{read_small, read_small_in};
use crate::store_objects::{Store, StoreError};

/// Larger than any list of packed refs.
const PACKED: u64 = 256 << 20;

/// A ref is a line.
const LINE: u64 = 1 << 12;

/// Kinds of refs that are git's own and belong to no run.
const GITS_OWN: [&str; 4] = ["heads", "tags", "remotes", "notes"];

impl Store {
    /// Makes `refs/<kind>/<run>/<name>` name an object.
    pub(crate) fn set_ref(
        &self,
        kind: &str,
        run: &RunId,
        name: &str,
        id: &ObjectId,
    ) -> Result<(), StoreError> {
        let path = ref_path(kind, run, name)?;
        self.write_beside(&path, format!("{id}\n").as_bytes())
    }

    /// What `refs/<kind>/<run>/<name>` names.
    pub(crate) fn get_ref(
        &self,
        kind: &str,
        run: &RunId,
        name: &str,
    ) -> Result<Option<ObjectId>, StoreError> {
        let path = ref_path(kind, run, name)?;
        let place = self.dir().join(&path);
        // Through no link: what lies elsewhere is no ref of this store.
        let read = match self.lock().folder(self.dir(), &format!("refs/{kind}/{run}")) {
            Ok(folder) => read_small_in(folder, name, LINE),
            Err(error) => Err(error),
        };
        let text = match read {
            Ok(text) => text,
            // Somebody's `git pack-refs` moved it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.packed()?.remove(&path)),
            Err(source) => return Err(StoreError::File { path: place, what: "read", source }),
        };
        parse(&text).map(Some).ok_or_else(|| no_id(&place, &path))
    }

    /// Every ref that names an object, with the object. What is no ref is an error: whoever takes refs for all that
    /// keeps objects alive must not overlook one.
    pub(crate) fn refs(&self) -> Result<BTreeMap<String, ObjectId>, StoreError> {
        let mut all = self.packed()?;
        for (name, place) in self.loose_refs()? {
            let text = read_small(&place, LINE).map_err(|source| StoreError::File {
                path: place.clone(),
                what: "read",
                source,
            })?;
            // One that only names another ref keeps nothing by itself.
            if !text.starts_with(b"ref: ") {
                let id = parse(&text).ok_or_else(|| no_id(&place, &name))?;
                all.insert(name, id);
            }
        }
        let head = self.dir().join("HEAD");
        if let Ok(text) = read_small(&head, LINE)
            && let Some(id) = parse(&text)
        {
            all.insert("HEAD".to_owned(), id);
        }
        Ok(all)
    }

    /// The names of the refs of each run, such as `runs/001` and `manifests/001`, whatever they hold.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn runs_with_refs(&self) -> Result<BTreeMap<RunId, Vec<String>>, StoreError> {
        let loose = self.loose_refs()?;
        let names: BTreeSet<String> = self.packed()?.into_keys().chain(loose.into_keys()).collect();
        let mut runs: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
        for name in &names {
            if let Some((kind, run, rest)) = of_run(name) {
                runs.entry(RunId::new(run)).or_default().push(format!("{kind}/{rest}"));
            }
        }
        Ok(runs)
    }

    /// The names under which a run kept trees, sorted.
    ///
    /// # Errors
    /// [`StoreError`] when a ref's folder or the packed refs cannot be read.
    pub fn names(&self, run: &RunId) -> Result<Vec<String>, StoreError> {
        // Checked as a part of a ref's name, so that it cannot lead elsewhere.
        ref_path("runs", run, "0")?;
        let folder = format!("refs/runs/{run}");
        let prefix = format!("{folder}/");
        let refs = self.loose_below(folder)?.into_keys().chain(self.packed()?.into_keys());
        let names: BTreeSet<String> =
            refs.filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect();
        Ok(names.into_iter().collect())
    }

    /// Whether another git is changing the packed refs, or was killed while it did.
    ///
    /// # Errors
    /// [`StoreError::Locked`] says which file stands in the way.
    pub fn check_unlocked(&self) -> Result<(), StoreError> {
        let lock = self.dir().join("packed-refs.lock");
        if std::fs::symlink_metadata(&lock).is_ok() {
            return Err(StoreError::Locked { path: lock });
        }
        Ok(())
    }

    /// Removes all refs of a run. Its objects stay until nothing else refers to them and a clean-up comes.
    ///
    /// # Errors
    /// [`StoreError`]; what was removed before it stays removed.
    pub fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        // Checked as a part of a ref's name, so that it cannot lead elsewhere.
        ref_path("runs", run, "0")?;
        let refs = self.dir().join("refs");
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| StoreError::File { path, what: "removed", source }
        };
        self.check_place().map_err(failed(self.dir()))?;
        self.lock().folder(self.dir(), "refs").map_err(failed(&refs))?;
        self.forget_packed(run)?;
        for entry in std::fs::read_dir(&refs).map_err(failed(&refs))?.flatten() {
            let git_owns = GITS_OWN.iter().any(|kind| entry.file_name() == *kind);
            if git_owns || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path().join(run.as_str());
            match std::fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(&path).map_err(failed(&path))?,
                // A link, which is not followed, or what else is no folder of refs.
                Ok(_) => std::fs::remove_file(&path).map_err(failed(&path))?,
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn forget_packed(&self, run: &RunId) -> Result<(), StoreError> {
        let path = self.dir().join("packed-refs");
        let read = match read_small(&path, PACKED) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(StoreError::File { path, what: "read", source }),
        };
        let mut kept = Vec::with_capacity(read.len());
        let mut dropped = false;
        for line in read.split_inclusive(|b| *b == b'\n') {
            // A line that begins with `^` belongs to the ref before it.
            let goes = match line.first() {
                Some(b'^') => dropped,
                _ => packed_line(line)
                    .is_some_and(|(_, name)| of_run(&name).is_some_and(|(_, of, _)| of == run.as_str())),
            };
            dropped = goes;
            if !goes {
                kept.extend_from_slice(line);
            }
        }
        if kept.len() == read.len() {
            return Ok(());
        }
        self.check_unlocked()?;
        // Git's own way of locking this file.
        let lock = self.dir().join("packed-refs.lock");
        let written = std::fs::File::create_new(&lock).and_then(|mut file| {
            file.write_all(&kept)?;
            file.sync_all()?;
            std::fs::rename(&lock, &path)
        });
        written.map_err(|source| {
            let locked = source.kind() == io::ErrorKind::AlreadyExists;
            if locked {
                return StoreError::Locked { path: lock.clone() };
            }
            // The reason matters more than the leftover.
            let _ = std::fs::remove_file(&lock);
            StoreError::File { path, what: "written", source }
        })
    }

    fn packed(&self) -> Result<BTreeMap<String, ObjectId>, StoreError> {
        let path = self.dir().join("packed-refs");
        let text = match read_small(&path, PACKED) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(StoreError::File { path, what: "read", source }),
        };
        let mut all = BTreeMap::new();
        for line in text.split(|b| *b == b'\n') {
            if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
                continue;
            }
            let Some((Some(id), name)) = packed_line(line) else { return Err(no_id(&path, "a line of it")) };
            all.insert(name, id);
        }
        Ok(all)
    }

    /// Refs that are files of their own, by name.
    fn loose_refs(&self) -> Result<BTreeMap<String, PathBuf>, StoreError> {
        self.loose_below("refs".to_owned())
    }

    /// The same for those below a folder of refs.
    fn loose_below(&self, folder: String) -> Result<BTreeMap<String, PathBuf>, StoreError> {
        let mut found = BTreeMap::new();
        match self.lock().folder(self.dir(), &folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(source) => {
                return Err(StoreError::File { path: self.dir().join(folder), what: "read", source });
            }
            Ok(_) => {}
        }
        let place = self.dir().join(&folder);
        let mut pending = vec![(folder, place)];
        while let Some((name, path)) = pending.pop() {
            let failed = |source| StoreError::File { path: path.clone(), what: "read", source };
            let entries = match std::fs::read_dir(&path) {
                // A clean-up of another process took it away.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(failed)?,
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let name = format!("{name}/{}", entry.file_name().to_string_lossy());
                if entry.file_type().map_err(failed)?.is_dir() {
                    pending.push((name, entry.path()));
                } else if !name.as_bytes().ends_with(b".lock") {
                    found.insert(name, entry.path());
                }
            }
        }
        Ok(found)
    }
}

/// Kind, run and the rest of a ref's name, where it has these parts.
fn of_run(name: &str) -> Option<(&str, &str, &str)> {
    let mut parts = name.strip_prefix("refs/")?.splitn(3, '/');
    let (kind, run, rest) = (parts.next()?, parts.next()?, parts.next()?);
    (!GITS_OWN.contains(&kind)).then_some((kind, run, rest))
}

fn packed_line(line: &[u8]) -> Option<(Option<ObjectId>, String)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let space = line.iter().position(|b| *b == b' ')?;
    Some((parse(&line[..space]), String::from_utf8_lossy(&line[space + 1..]).into_owned()))
}

fn parse(text: &[u8]) -> Option<ObjectId> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn no_id(path: &Path, name: &str) -> StoreError {
    StoreError::Strange {
        path: path.to_path_buf(),
        what: format!("holds no object id ({name})"),
        cure: "the run's journal names its trees: `git update-ref` with one of them puts the ref back; or remove \
               the file, and the tree is given up"
            .to_owned(),
    }
}

/// The name of a ref, refused where a part of it could lead elsewhere.
fn ref_path(kind: &str, run: &RunId, name: &str) -> Result<String, StoreError> {
    for part in [run.as_str(), name] {
        let plain = part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if part.is_empty()
            || !plain
            || part.starts_with('.')
            || part.starts_with('-')
            || part.ends_with('.')
            || part.contains("..")
            || part.as_bytes().ends_with(b".lock")
        {
            return Err(StoreError::BadName { name: part.to_owned() });
        }
    }
    Ok(format!("refs/{kind}/{run}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_objects::ObjectKind;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs/.store.git")).unwrap();
        (dir, store)
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"x").unwrap();
        for name in ["", ".", "..", "a/b", "a..b", "x.lock", "a b", "-x", "a\n"] {
            assert!(store.set_ref("runs", &RunId::new("r"), name, &id).is_err(), "{name:?}");
            assert!(store.set_ref("runs", &RunId::new(name), "0", &id).is_err(), "{name:?}");
            assert!(store.forget(&RunId::new(name)).is_err(), "{name:?}");
        }
    }

    /// A run's refs go, wherever they are written; those of others, and a person's own, stay.
    #[test]
    fn a_run_is_forgotten_loose_and_packed() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"x").unwrap();
        let (one, two) = (RunId::new("r1"), RunId::new("r10"));
        let put = |run: &RunId, kind: &str| store.set_ref(kind, run, "0", &id).unwrap();
        for packed in [false, true] {
            for kind in ["runs", "manifests", "later-kind"] {
                put(&one, kind);
                put(&two, kind);
            }
            let tag = ["update-ref", "refs/tags/r1", &id.to_string()];
            assert!(store.git().args(tag).status().unwrap().success());
            if packed {
                assert!(store.git().args(["pack-refs", "--all", "--prune"]).status().unwrap().success());
                // One of them is written anew, so that it stands in both places.
                put(&one, "runs");
            }
            let names: Vec<RunId> = store.runs_with_refs().unwrap().into_keys().collect();
            assert_eq!(names, [one.clone(), two.clone()]);
            store.forget(&one).unwrap();
            let names = store.runs_with_refs().unwrap();
            assert_eq!(names.keys().collect::<Vec<_>>(), [&two]);
            assert_eq!(names[&two], ["later-kind/0", "manifests/0", "runs/0"]);
            assert_eq!(store.get_ref("runs", &one, "0").unwrap(), None);
            assert_eq!(store.get_ref("runs", &two, "0").unwrap(), Some(id));
            assert!(store.refs().unwrap().contains_key("refs/tags/r1"));
        }
    }

    #[test]
    fn names_of_trees_are_found_loose_and_packed() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"x").unwrap();
        let run = RunId::new("r1");
        assert_eq!(store.names(&run).unwrap(), [""; 0]);
        for name in ["0", "001"] {
            store.set_ref("runs", &run, name, &id).unwrap();
            store.set_ref("manifests", &run, "end", &id).unwrap();
            store.set_ref("runs", &RunId::new("r10"), "002", &id).unwrap();
        }
        assert!(store.git().args(["pack-refs", "--all", "--prune"]).status().unwrap().success());
        store.set_ref("runs", &run, "001", &id).unwrap();
        store.set_ref("runs", &run, "002", &id).unwrap();
        std::fs::write(store.dir().join("refs/runs/r1/003.lock"), "").unwrap();
        assert_eq!(store.names(&run).unwrap(), ["0", "001", "002"]);
        assert!(matches!(store.names(&RunId::new("../r1")), Err(StoreError::BadName { .. })));
        std::fs::write(store.dir().join("packed-refs"), "no list of refs").unwrap();
        assert!(store.names(&run).is_err(), "what cannot be read is not left out");
    }

    #[test]
    fn a_lock_that_git_left_is_named() {
        let (_dir, store) = store();
        let id = store.put(ObjectKind::Blob, b"x").unwrap();
        let run = RunId::new("r1");
        store.set_ref("runs", &run, "0", &id).unwrap();
        assert!(store.git().args(["pack-refs", "--all", "--prune"]).status().unwrap().success());
        let lock = store.dir().join("packed-refs.lock");
        std::fs::write(&lock, "").unwrap();
        let error = store.forget(&run).unwrap_err();
        assert!(matches!(&error, StoreError::Locked { path } if *path == lock), "{error}");
        assert_eq!(store.get_ref("runs", &run, "0").unwrap(), Some(id), "nothing was removed");
        std::fs::remove_file(&lock).unwrap();
        store.forget(&run).unwrap();
        assert_eq!(store.get_ref("runs", &run, "0").unwrap(), None);
    }
}
