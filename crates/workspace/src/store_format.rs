//! What a store must look like before it is used: of a format that we know, and nothing of it led elsewhere by a link.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::store_objects::StoreError;

/// The version of what we add to a plain bare repository: refs, manifests and pointers.
pub(crate) const FORMAT: u32 = 1;

/// A configuration or ref larger than this is none.
const SMALL: u64 = 1 << 20;

/// Folders that objects and refs are written below.
const FOLDERS: [&str; 6] = ["objects", "objects/info", "objects/pack", "refs", "refs/runs", "refs/manifests"];

/// The configuration of a new store.
pub(crate) fn configuration() -> String {
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tlogallrefupdates = false\n\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[triphammer]\n\tformat = {FORMAT}\n"
    )
}

/// What is at a store's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A store that can be used.
    Store,
    /// Nothing, or one that was not completed and holds nothing.
    Nothing,
}

/// Looks at a store's place without changing anything.
pub(crate) fn check(dir: &Path) -> Result<Found, StoreError> {
    let strange = |path: &Path, what: &str, cure: String| StoreError::Strange {
        path: path.to_path_buf(),
        what: what.to_owned(),
        cure,
    };
    let Some(kind) = kind_of(dir)? else { return Ok(Found::Nothing) };
    if !kind.is_dir() {
        let what = if kind.is_symlink() { "is a link" } else { "is no folder" };
        return Err(strange(dir, what, "put the store's own folder in its place".to_owned()));
    }
    for folder in FOLDERS {
        let path = dir.join(folder);
        if kind_of(&path)?.is_some_and(|kind| !kind.is_dir()) {
            let cure = "what is written there would land elsewhere; put the folder itself in its place";
            return Err(strange(&path, "is a link or a file", cure.to_owned()));
        }
    }
    // Kinds of refs may be more than we know.
    for entry in std::fs::read_dir(dir.join("refs")).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            let cure = "what is written there would land elsewhere; put the folder itself in its place";
            return Err(strange(&entry.path(), "is a link", cure.to_owned()));
        }
    }
    check_lends_only(dir)?;
    let mend = || {
        format!(
            "if no newer triphammer made this store, `git init --bare '{}'` mends it; objects stay as they are",
            dir.display()
        )
    };
    let config = dir.join("config");
    let text = match read_small(&config, SMALL) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Asked again, since another process may just have completed it.
            if holds_objects(dir) && kind_of(&config)?.is_none() {
                return Err(strange(&config, "is missing", mend()));
            }
            return Ok(Found::Nothing);
        }
        Err(source) => return Err(StoreError::File { path: config, what: "read", source }),
    };
    check_format(dir, &String::from_utf8_lossy(&text))?;
    let head = dir.join("HEAD");
    match read_small(&head, SMALL) {
        Ok(text) if is_head(&text) => Ok(Found::Store),
        Ok(_) => Err(strange(&head, "names no branch", format!("remove it; then {}", mend()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(strange(&head, "is missing, so git takes this for no repository", mend()))
        }
        Err(source) => Err(StoreError::File { path: head, what: "read", source }),
    }
}

/// Where git looks for stores to borrow from.
const BORROWS: [&str; 2] = ["objects/info/alternates", "objects/info/http-alternates"];

/// Refuses a store that borrows objects: they would go with another one, and git could wait for ever for what stands in
/// the list's place.
pub(crate) fn check_lends_only(dir: &Path) -> Result<(), StoreError> {
    for list in BORROWS {
        let path = dir.join(list);
        if kind_of(&path)?.is_some() {
            return Err(StoreError::Strange {
                what: "is there, and a store borrows nothing".to_owned(),
                cure: format!(
                    "remove it; when trees are incomplete then, fetch them from where they are, for instance by \
                     `git --git-dir='{}' fetch`",
                    dir.display()
                ),
                path,
            });
        }
    }
    Ok(())
}

fn is_head(text: &[u8]) -> bool {
    text.starts_with(b"ref: refs/") || (text.len() >= 40 && text[..40].iter().all(u8::is_ascii_hexdigit))
}

fn holds_objects(dir: &Path) -> bool {
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    // What is not complete yet is no object.
    let is_object = |name: &std::ffi::OsStr| !name.as_encoded_bytes().starts_with(b"tmp_");
    entries(dir.join("objects"))
        .any(|e| e.file_name() != "info" && e.file_name() != "pack" && is_object(&e.file_name()))
        || entries(dir.join("objects/pack")).any(|e| is_object(&e.file_name()))
}

fn check_format(dir: &Path, config: &str) -> Result<(), StoreError> {
    let newer = |found: String| Err(StoreError::Newer { path: dir.to_path_buf(), found });
    let mut section = String::new();
    for line in config.lines() {
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            section = name.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        match (section.as_str(), key.as_str()) {
            ("triphammer", "format") if value.parse::<u32>().is_ok_and(|v| v <= FORMAT) => {}
            ("triphammer", "format") => return newer(format!("format {value}")),
            ("core", "repositoryformatversion") if value != "0" => {
                return newer(format!("git's repository format {value}"));
            }
            ("extensions", key) => return newer(format!("git's extension `{key} = {value}`")),
            _ => {}
        }
    }
    Ok(())
}

/// What is at a path, itself and not what it points at.
fn kind_of(path: &Path) -> Result<Option<std::fs::FileType>, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::File { path: path.to_path_buf(), what: "read", source }),
    }
}

/// Opens a regular file; a link is not followed, and a FIFO not waited for.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    open_plain_in(rustix::fs::CWD, path)
}

fn open_plain_in(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read_small(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_plain(path)?, limit)
}

/// Reads the regular file `name` of an open folder, of at most `limit` bytes.
pub(crate) fn read_small_in(folder: impl AsFd, name: &str, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_plain_in(folder, Path::new(name))?, limit)
}

fn read_all(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let dir = Path::new("s");
        let plain = configuration();
        for (config, newer) in [
            (plain.as_str(), None),
            ("", None),
            ("[core]\nbare = true\n[other]\nformat = 7\n", None),
            ("[triphammer]\nformat = 2\n", Some("format 2")),
            ("[Triphammer] FORMAT = x\n", Some("format x")),
            ("[core]\n\tRepositoryFormatVersion=2\n", Some("git's repository format 2")),
            ("[extensions]\n\tobjectFormat = sha256\n", Some("objectformat = sha256")),
            ("[extensions]\n\trefStorage = reftable\n", Some("refstorage = reftable")),
            ("[extensions]\n\tworldPeace\n", Some("worldpeace = true")),
            ("# [extensions]\n; [core] repositoryformatversion = 9\n", None),
        ] {
            let got = check_format(dir, config).err().map(|e| e.to_string());
            match newer {
                None => assert_eq!(got, None, "{config}"),
                Some(what) => assert!(got.as_ref().is_some_and(|e| e.contains(what)), "{config}: {got:?}"),
            }
        }
    }
}
