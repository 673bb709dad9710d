//! Which places a fence leaves open, settled once.
//!
//! A place is opened by its path, so whoever can put a link where it stood opens what the link leads to, at the next launch or in
//! the next run. Hence: a place is taken by its real path; one that lies in another that is open already is left out, since there
//! links can be planted; and what a variable names never opens what holds the person's things.

use std::path::{Path, PathBuf};

/// Where a place comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The person has named it as writable.
    Named,
    /// It was made for the run, or belongs to the workspace.
    Own,
    /// A variable or a tool's habit says so.
    Found,
}

/// Places as they are settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// By the path under which they were named, and the real one.
    taken: Vec<(PathBuf, PathBuf)>,
    pub(crate) notes: Vec<String>,
}

impl Places {
    /// With `workspace` open already.
    pub(crate) fn around(workspace: &Path) -> Self {
        Self { taken: vec![(workspace.to_owned(), real(workspace))], notes: Vec::new() }
    }

    /// Takes candidates in. `kept` are the person's own things, which nothing that was only found may hold.
    pub(crate) fn take(&mut self, candidates: impl IntoIterator<Item = (PathBuf, Source)>, kept: &[PathBuf]) {
        let mut candidates: Vec<(PathBuf, Source)> = candidates.into_iter().collect();
        // What lies in another comes after it, and what is certain before what is not.
        candidates.sort_by_key(|(path, source)| (*source == Source::Found, path.components().count()));
        for (path, source) in candidates {
            let inside = |place: &Path| {
                self.taken.iter().any(|(named, real)| place.starts_with(named) || place.starts_with(real))
            };
            if inside(&path) {
                continue;
            }
            // What is not there cannot be opened, and nobody inside can make it.
            let Ok(found) = path.canonicalize() else {
                if source == Source::Named {
                    self.notes.push(format!(
                        "[sandbox] writable names `{}`, which is not there and so is not open: make it first",
                        path.display()
                    ));
                }
                continue;
            };
            if inside(&found) {
                continue;
            }
            let held: Vec<&PathBuf> = kept.iter().filter(|thing| thing.starts_with(&found)).collect();
            if let Some(first) = held.first() {
                let (place, first) = (path.display(), first.display());
                match source {
                    Source::Own => {}
                    Source::Named => self.notes.push(format!(
                        "[sandbox] writable opens `{place}`, in which `{first}` lies: nothing there is held"
                    )),
                    Source::Found => {
                        self.notes.push(format!(
                            "`{place}` is named as a tool's or an agent's own and stays closed, since `{first}` lies in it; \
                             [sandbox] writable opens it"
                        ));
                        continue;
                    }
                }
            }
            self.taken.push((path, found));
        }
    }

    /// Their real paths, without the workspace.
    pub(crate) fn open(&self) -> Vec<PathBuf> {
        self.taken.iter().skip(1).map(|(_, real)| real.clone()).collect()
    }

    /// What was taken since there were `count`.
    pub(crate) fn since(&self, count: usize) -> Vec<PathBuf> {
        self.taken.iter().skip(count).map(|(_, real)| real.clone()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.taken.len()
    }
}

pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_in_an_open_place_is_never_followed() {
        let room = tempfile::tempdir().unwrap();
        let at = |path: &str| room.path().canonicalize().unwrap().join(path);
        for folder in ["work/target", "user/.cache", "user/.cargo/registry", "user/mine", "elsewhere"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        // Planted by an agent where it may write, and a person's own where it may not.
        symlink(at("user"), at("user/.cache/opencode")).unwrap();
        symlink(at("user"), at("work/link")).unwrap();
        symlink(at("elsewhere"), at("user/.npm")).unwrap();
        let mut places = Places::around(&at("work"));
        let kept = [at("user"), PathBuf::from("/")];
        let found = |paths: &[&str]| paths.iter().map(|path| (at(path), Source::Found)).collect::<Vec<_>>();
        places.take(
            found(&[
                "user/.cache/opencode",
                "user/.cache",
                "work/link",
                "work/target",
                "user/.cargo/registry",
            ]),
            &kept,
        );
        places.take(found(&["user/.npm", "user/none", "user"]), &kept);
        places.take([(PathBuf::from("/"), Source::Found)], &kept);
        assert_eq!(places.open(), [at("user/.cache"), at("user/.cargo/registry"), at("elsewhere")]);
        assert_eq!(places.notes.len(), 2, "{:?}", places.notes);
        let before = places.count();
        places.take([(at("user"), Source::Named)], &kept);
        assert_eq!(places.since(before), [at("user")]);
        assert!(places.notes[2].contains("nothing there is held"));
        places.take([(PathBuf::from("/no/such/place"), Source::Named)], &kept);
        assert!(places.notes[3].contains("make it first"));
    }
}
