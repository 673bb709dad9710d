//! Writing a file of settings that is somebody else's: a copy first, then all of it at once.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// Bytes of a file of settings that are read. Those of people have some kilobytes.
const MOST: u64 = 4 << 20;

/// A file as it is before anything is done to it.
pub(super) struct Target {
    /// The file itself; what was named may be a link to it.
    pub(super) path: PathBuf,
    /// What is in it; `None` where there is none yet.
    pub(super) text: Option<String>,
}

impl Target {
    /// Looks at the file that `named` leads to.
    pub(super) fn read(named: &Path) -> Result<Self, Failure> {
        let failed =
            |what: &str, e: io::Error| Failure::refused(format!("{what} `{}`: {e}", named.display()));
        let path = match fs::symlink_metadata(named) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: named.to_owned(), text: None });
            }
            Err(error) => return Err(failed("looking at", error)),
            Ok(_) => match fs::canonicalize(named) {
                Ok(path) => path,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(Failure::refused(format!(
                        "`{}` is a link that leads nowhere; make the file that it should lead to, or remove it",
                        named.display()
                    )));
                }
                Err(error) => return Err(failed("following", error)),
            },
        };
        let about = fs::metadata(&path).map_err(|e| failed("looking at", e))?;
        if !about.is_file() || about.len() > MOST {
            return Err(Failure::refused(format!(
                "`{}` is no file of at most {MOST} bytes, so it is left alone",
                path.display()
            )));
        }
        let bytes = fs::read(&path).map_err(|e| failed("reading", e))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path, text: Some(text) }),
            Err(_) => {
                Err(Failure::refused(format!("`{}` is no UTF-8 text; nothing was written", path.display())))
            }
        }
    }

    /// Copies the file to a name beside it that tells the time; `None` where there is no file.
    pub(super) fn back_up(&self) -> Result<Option<PathBuf>, Failure> {
        if self.text.is_none() {
            return Ok(None);
        }
        let at = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        for number in 1..100 {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let to = beside(&self.path, &format!("{at}{suffix}"));
            let failed = |e: io::Error| {
                Failure::refused(format!("backing up to `{}`: {e}; nothing was written", to.display()))
            };
            match fs::File::create_new(&to) {
                Ok(_) => {
                    fs::copy(&self.path, &to).map_err(failed)?;
                    return Ok(Some(to));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure::refused(format!("there are too many copies of `{}` already", self.path.display())))
    }

    /// Copies that were made before, the latest first.
    pub(super) fn copies(&self) -> Vec<PathBuf> {
        let (Some(folder), Some(prefix)) =
            (self.path.parent(), beside(&self.path, "").file_name().map(ToOwned::to_owned))
        else {
            return Vec::new();
        };
        let prefix = prefix.to_string_lossy().into_owned();
        let mut found: Vec<PathBuf> = fs::read_dir(folder)
            .map(|entries| entries.flatten().map(|e| e.path()).collect())
            .unwrap_or_default();
        found.retain(|p| {
            p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix)) && p.is_file()
        });
        found.sort();
        found.reverse();
        found
    }

    /// Puts `text` in the file's place, whole or not at all, with the mode that it had. Not where somebody else has
    /// written to it meanwhile.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::refused(format!("writing `{}`: {e}", self.path.display()));
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(failed)?;
        let about = fs::metadata(&self.path).ok();
        // With no mode to keep, the one that any new file has here.
        let mode = about.as_ref().map_or(0o666, |about| about.mode() & 0o7777);
        let mut partial = tempfile::Builder::new()
            .prefix(".triphammer-")
            .permissions(Permissions::from_mode(if about.is_some() { 0o600 } else { mode }))
            .tempfile_in(folder)
            .map_err(failed)?;
        partial.write_all(text.as_bytes()).map_err(failed)?;
        if let Some(about) = about {
            // Somebody else's file stays theirs where we may give it away.
            let _ = std::os::unix::fs::fchown(partial.as_file(), Some(about.uid()), Some(about.gid()));
            partial.as_file().set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        }
        partial.as_file().sync_all().map_err(failed)?;
        self.unchanged()?;
        partial.persist(&self.path).map_err(|e| failed(e.error))?;
        Ok(())
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        self.unchanged()?;
        fs::remove_file(&self.path)
            .map_err(|e| Failure::refused(format!("removing `{}`: {e}", self.path.display())))
    }

    fn unchanged(&self) -> Result<(), Failure> {
        let now = match fs::read(&self.path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Failure::refused(format!("reading `{}`: {error}", self.path.display())));
            }
        };
        if now.as_deref() == self.text.as_deref().map(str::as_bytes) {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "`{}` was changed by somebody else just now, so it is left alone; try again",
            self.path.display()
        )))
    }
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".triphammer-{what}"));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> (tempfile::TempDir, Target) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.json");
        fs::write(&path, text).expect("a file");
        let target = Target::read(&path).unwrap_or_else(|failure| panic!("{}", failure.message));
        (dir, target)
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_not_lost() {
        let (dir, target) = target("{}");
        fs::write(&target.path, "{\"theirs\": 1}").expect("a file");
        let failure = target.write("{\"ours\": 1}").expect_err("it was changed");
        assert!(failure.message.contains("changed by somebody else"), "{}", failure.message);
        assert!(target.remove().is_err());
        assert_eq!(fs::read_to_string(&target.path).expect("a file"), "{\"theirs\": 1}");
        assert_eq!(fs::read_dir(dir.path()).map(Iterator::count).ok(), Some(1), "nothing is left beside it");
    }

    #[test]
    fn copies_of_one_moment_have_names_of_their_own() {
        let (_dir, target) = target("{}");
        let first = target.back_up().ok().flatten().expect("a copy");
        let second = target.back_up().ok().flatten().expect("a copy");
        assert_ne!(first, second);
        let mut both = vec![first, second];
        both.sort();
        both.reverse();
        assert_eq!(target.copies(), both);
    }

    #[test]
    fn what_is_no_file_of_settings_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(Target::read(dir.path()).is_err());
        let path = dir.path().join("s.json");
        fs::write(&path, b"{\"a\": \"\xff\"}").expect("a file");
        assert!(Target::read(&path).is_err());
        let none =
            Target::read(&dir.path().join("none")).unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!((none.text.as_deref(), none.back_up().ok()), (None, Some(None)));
    }
}
