//! Files that a server reads and writes through us: plain ones below the workspace, no link on the way followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use triphammer_model::ClaimKind;

use crate::beneath;

/// A larger file is neither read nor written.
const LARGEST: u64 = 8 << 20;

/// The workspace.
#[derive(Debug)]
pub(super) struct Files {
    /// As it was named, and as it is without links: servers use either.
    roots: [PathBuf; 2],
}

/// Why a file is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotServed {
    /// It is not there.
    Missing,
    /// It is not for the server to have.
    Outside(String),
    /// It could not be.
    Failed(String),
}

impl Files {
    /// The error says why a folder cannot be worked in.
    pub(super) fn new(root: &Path) -> Result<Self, String> {
        let real =
            root.canonicalize().map_err(|error| format!("the workspace {}: {error}", root.display()))?;
        if !real.is_dir() {
            return Err(format!("the workspace {} is no folder", root.display()));
        }
        Ok(Self { roots: [spelled(root), real] })
    }

    /// The workspace, without links.
    pub(super) fn root(&self) -> &Path {
        &self.roots[1]
    }

    /// The path from the workspace that a text names, by its spelling; `None` where it names what is not below it.
    pub(super) fn below(&self, path: &str) -> Option<PathBuf> {
        let path = spelled(Path::new(path.strip_prefix("file://").unwrap_or(path)));
        let below = if path.is_absolute() {
            self.roots.iter().find_map(|root| path.strip_prefix(root).ok())?.to_owned()
        } else {
            path
        };
        let leads_out = matches!(below.components().next(), None | Some(Component::ParentDir));
        (!leads_out).then_some(below)
    }

    /// Whether a path leads out of the workspace, links followed as far as they are there.
    pub(super) fn is_outside(&self, path: &str) -> bool {
        let Some(below) = self.below(path) else {
            let path = spelled(&self.root().join(path.strip_prefix("file://").unwrap_or(path)));
            return !self.really(&path).starts_with(self.root());
        };
        !self.really(&self.root().join(below)).starts_with(self.root())
    }

    /// The path with the links followed in its part that is there.
    fn really(&self, path: &Path) -> PathBuf {
        for there in path.ancestors() {
            if let Ok(real) = there.canonicalize() {
                return path.strip_prefix(there).map_or(real.clone(), |rest| real.join(rest));
            }
            // A link that leads nowhere yet leads somewhere once it is written through.
            if let Ok(target) = std::fs::read_link(there) {
                let from = there.parent().unwrap_or(self.root());
                return spelled(&from.join(target));
            }
        }
        path.to_owned()
    }

    fn served(&self, path: &str) -> Result<PathBuf, NotServed> {
        self.below(path).ok_or_else(|| {
            let root = self.root().display();
            NotServed::Outside(format!(
                "`{path}` is outside of the workspace; only files below {root} are served"
            ))
        })
    }

    /// The text of a file, or `limit` lines of it from line `from` on, which is counted from 1.
    pub(super) fn read(
        &self,
        path: &str,
        from: Option<u64>,
        limit: Option<u64>,
    ) -> Result<String, NotServed> {
        let below = self.served(path)?;
        let file = beneath::open(self.root(), &below).map_err(|error| failed(path, "read", &error))?;
        let bytes = bounded(file).map_err(|error| failed(path, "read", &error))?;
        // What is shown with marks in place of bytes would come back as a file that is damaged.
        let text = String::from_utf8(bytes)
            .map_err(|_| NotServed::Failed(format!("`{path}` is not UTF-8 and cannot be read as text")))?;
        if from.is_none() && limit.is_none() {
            return Ok(text);
        }
        let count = |number: Option<u64>, else_: usize| {
            number.map_or(else_, |number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let lines = text.split_inclusive('\n').skip(count(from, 1).saturating_sub(1));
        Ok(lines.take(count(limit, usize::MAX)).collect())
    }

    /// Writes a file, with the folders above it. Returns how it moved; `None` where it had this content before.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<Option<ClaimKind>, NotServed> {
        let below = self.served(path)?;
        if text.len() as u64 > LARGEST {
            let bytes = text.len();
            let why = format!("`{path}` of {bytes} bytes is not written; at most {LARGEST} are");
            return Err(NotServed::Failed(why));
        }
        let content = || beneath::open(self.root(), &below).and_then(bounded).ok();
        let before = content();
        if before.as_deref() == Some(text.as_bytes()) {
            return Ok(None);
        }
        match beneath::write(self.root(), &below, text.as_bytes(), false) {
            Ok(true) => Ok(Some(ClaimKind::Added)),
            Ok(false) => Ok(Some(ClaimKind::Changed)),
            Err(error) => {
                // Half of a file, as on a full disk, is worse than what was there before.
                if let Some(before) = before.filter(|before| content().as_ref() != Some(before)) {
                    let _ = beneath::write(self.root(), &below, &before, false);
                }
                Err(failed(path, "written", &error))
            }
        }
    }
}

fn failed(path: &str, what: &str, error: &io::Error) -> NotServed {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::NOENT) => NotServed::Missing,
        Some(Errno::LOOP | Errno::NOTDIR) => NotServed::Outside(format!(
            "`{path}` cannot be {what}: it is a link or lies behind one or behind a file, and links are not followed"
        )),
        _ => NotServed::Failed(format!("`{path}` cannot be {what}: {error}")),
    }
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// A path without `.` and, as far as it can be, without `..`.
fn spelled(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::ParentDir | Component::CurDir) | None => clean.push(part),
            },
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Room {
        dir: tempfile::TempDir,
        files: Files,
    }

    impl Room {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let root = dir.path().join("w");
            std::fs::create_dir_all(root.join("sub")).expect("folders");
            std::fs::write(dir.path().join("secret"), "keep").expect("a file");
            symlink("../secret", root.join("link")).expect("a link");
            symlink("../nothing", root.join("dangling")).expect("a link");
            symlink("..", root.join("way")).expect("a link");
            symlink("sub", root.join("short")).expect("a link");
            Self { files: Files::new(&root).expect("a workspace"), dir }
        }

        fn path(&self, name: &str) -> String {
            self.dir.path().join("w").join(name).to_str().expect("UTF-8").to_owned()
        }
    }

    #[test]
    fn writes_make_folders_and_say_how_the_file_moved() {
        let room = Room::new();
        let path = room.path("new/deep/a.txt");
        assert_eq!(room.files.write(&path, "one\ntwo\nthree\nfour"), Ok(Some(ClaimKind::Added)));
        assert_eq!(room.files.write(&path, "one\ntwo\nthree\nfour"), Ok(None));
        for (from, limit, expected) in [
            (None, None, "one\ntwo\nthree\nfour"),
            (Some(2), Some(2), "two\nthree\n"),
            (Some(0), Some(1), "one\n"),
            (None, Some(1), "one\n"),
            (Some(4), None, "four"),
            (Some(5), Some(9), ""),
            (Some(u64::MAX), Some(u64::MAX), ""),
            (None, Some(0), ""),
        ] {
            assert_eq!(room.files.read(&path, from, limit).as_deref(), Ok(expected), "{from:?} {limit:?}");
        }
        assert_eq!(room.files.write("new/deep/../deep/a.txt", "1"), Ok(Some(ClaimKind::Changed)));
        assert_eq!(room.files.read(&path, None, None).as_deref(), Ok("1"));
    }

    #[test]
    fn nothing_is_served_from_outside_or_through_a_link() {
        let room = Room::new();
        let outside = room.dir.path().join("secret").to_str().expect("UTF-8").to_owned();
        for path in [&outside, "/etc/passwd", "../secret", "sub/../../secret", "", ".", &room.path("")] {
            assert!(matches!(room.files.read(path, None, None), Err(NotServed::Outside(_))), "{path}");
            assert!(matches!(room.files.write(path, "evil"), Err(NotServed::Outside(_))), "{path}");
        }
        for path in ["link", "way/secret", "dangling", "short/x"] {
            assert!(room.files.read(path, None, None).is_err(), "{path}");
            assert!(matches!(room.files.write(path, "evil"), Err(NotServed::Outside(_))), "{path}");
        }
        assert_eq!(std::fs::read_to_string(outside).expect("a file"), "keep");
        assert!(!room.dir.path().join("nothing").exists());
    }

    #[test]
    fn what_is_not_there_or_no_text_is_said_so() {
        let room = Room::new();
        assert_eq!(room.files.read("none", None, None), Err(NotServed::Missing));
        assert_eq!(room.files.read("none/none", None, None), Err(NotServed::Missing));
        std::fs::write(room.path("latin"), b"a\xfcb").expect("a file");
        std::fs::write(room.path("large"), vec![b'x'; 1 + usize::try_from(LARGEST).expect("a size")])
            .expect("a file");
        for (path, expected) in [("latin", "not UTF-8"), ("large", "larger than"), ("sub", "no plain file")] {
            match room.files.read(path, None, None) {
                Err(NotServed::Failed(why)) => assert!(why.contains(expected), "{why}"),
                other => panic!("{path}: {other:?}"),
            }
        }
    }

    #[test]
    fn an_edit_is_outside_where_its_links_lead() {
        let room = Room::new();
        for (path, outside) in [
            ("sub/a", false),
            ("short/a", false),
            ("not/yet/there", false),
            ("link", true),
            ("dangling", true),
            ("way/x", true),
            ("../x", true),
            ("/etc/passwd", true),
            (&room.path("sub/a"), false),
            (&room.path("way/w/sub/a"), false),
        ] {
            assert_eq!(room.files.is_outside(path), outside, "{path}");
        }
    }
}
