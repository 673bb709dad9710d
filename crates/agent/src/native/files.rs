//! Reading, writing and editing one file of the workspace.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use triphammer_model::ClaimKind;

use super::inside::Inside;
use super::shown;
use crate::beneath;

/// A larger file is neither shown nor edited.
const LARGEST: u64 = 8 << 20;
/// A zero byte among so many first ones makes a file a binary one.
const PEEK: usize = 8_000;

/// Shows lines `from` to `to` of a file, as many as there is room for.
pub(super) fn read(
    inside: &Inside,
    path: &Path,
    from: Option<u64>,
    to: Option<u64>,
    room: usize,
) -> Result<String, String> {
    let bytes = content(inside, path)?;
    let name = shown::path(path);
    if bytes.is_empty() {
        return Ok(format!("[{name} is empty]"));
    }
    if bytes[..bytes.len().min(PEEK)].contains(&0) {
        return Err(format!("{name} is binary, {} bytes; look at it with the shell", bytes.len()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = lines.len();
    let first = from.map_or(1, |line| usize::try_from(line).unwrap_or(usize::MAX));
    let last = to.map_or(count, |line| usize::try_from(line).unwrap_or(usize::MAX)).min(count);
    if first > last {
        return Err(format!(
            "{name} has {count} lines; there is none from {first} to {}",
            to.unwrap_or(count as u64)
        ));
    }
    let room = room.saturating_sub(300).max(200);
    let mut shown = String::new();
    let mut end = first - 1;
    for line in &lines[first - 1..last] {
        if shown.len() + line.len() > room {
            break;
        }
        shown.push_str(line);
        end += 1;
    }
    let mut note = String::new();
    if end < first {
        // Not even one line fits.
        let line = lines[first - 1];
        shown = shown::head(line, room);
        end = first;
        note = format!("; line {first} is cut, it has {} bytes", line.len());
    }
    if end < last {
        let _ = write!(note, "; lines {} to {last} are left out, read on with from = {}", end + 1, end + 1);
    }
    if matches!(text, std::borrow::Cow::Owned(_)) {
        note += "; it is not UTF-8, what is not is shown as \u{fffd}";
    }
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    Ok(format!("{shown}[lines {first} to {end} of {count} of {name}{note}]"))
}

/// What writing did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// What the model is told.
    pub(super) told: String,
    /// How the file moved; `None` where it had this content before.
    pub(super) change: Option<ClaimKind>,
}

/// Writes a whole file.
pub(super) fn write(inside: &Inside, path: &Path, text: &str) -> Result<Written, String> {
    let before = inside.open(path).ok().and_then(|file| bounded(file).ok());
    if before.as_deref() == Some(text.as_bytes()) {
        return Ok(Written { told: format!("{} had this content before", shown::path(path)), change: None });
    }
    let change = replace(inside, path, before.as_deref(), text.as_bytes())?;
    let told = format!("{} is written, {} bytes", shown::path(path), text.len());
    Ok(Written { told, change: Some(change) })
}

/// Replaces a text that occurs once.
pub(super) fn edit(inside: &Inside, path: &Path, old: &str, new: &str) -> Result<Written, String> {
    let name = shown::path(path);
    if old.is_empty() {
        return Err(
            "`old` is empty; give the text that is to be replaced, or write the whole file".to_owned()
        );
    }
    if old == new {
        return Err("`old` and `new` are the same; nothing would change".to_owned());
    }
    let before = content(inside, path)?;
    let text =
        std::str::from_utf8(&before).map_err(|_| format!("{name} is not UTF-8; edit it with the shell"))?;
    match text.match_indices(old).count() {
        0 => Err(format!(
            "`old` does not occur in {name}; read it and copy the text as it stands there, white space included"
        )),
        1 => {
            let change = replace(inside, path, Some(&before), text.replacen(old, new, 1).as_bytes())?;
            Ok(Written { told: format!("{name} is edited"), change: Some(change) })
        }
        count => Err(format!("`old` occurs {count} times in {name}; take more of the text around the place")),
    }
}

/// Writes a file. Where that fails half-way, as on a full disk, what was there before is put back.
fn replace(inside: &Inside, path: &Path, before: Option<&[u8]>, content: &[u8]) -> Result<ClaimKind, String> {
    match beneath::write(inside.root(), path, content, false) {
        Ok(true) => Ok(ClaimKind::Added),
        Ok(false) => Ok(ClaimKind::Changed),
        Err(error) => {
            let name = shown::path(path);
            let now = inside.open(path).ok().and_then(|file| bounded(file).ok());
            match before {
                Some(before) if now.as_deref() != Some(before) => {
                    let back = beneath::write(inside.root(), path, before, false);
                    let word = if back.is_ok() { "it is as it was before" } else { "and it is damaged" };
                    Err(format!("{name} cannot be written: {error}; {word}"))
                }
                _ => Err(format!("{name} cannot be written: {error}")),
            }
        }
    }
}

fn content(inside: &Inside, path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", shown::path(path));
    bounded(inside.open(path).map_err(failed)?).map_err(failed)
}

fn bounded(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other(format!(
            "it is larger than {LARGEST} bytes; use the shell for a part of it"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Inside) {
        let dir = tempfile::tempdir().expect("a folder");
        let inside = Inside::new(dir.path()).expect("a workspace");
        (dir, inside)
    }

    #[test]
    fn reads_ranges() {
        let (dir, inside) = workspace();
        std::fs::write(dir.path().join("a"), "1\n2\n3\n4").expect("a file");
        let path = Path::new("a");
        for (from, to, expected) in [
            (None, None, Ok("1\n2\n3\n4\n[lines 1 to 4 of 4 of a]")),
            (Some(2), Some(3), Ok("2\n3\n[lines 2 to 3 of 4 of a]")),
            (Some(4), Some(99), Ok("4\n[lines 4 to 4 of 4 of a]")),
            (Some(5), None, Err("a has 4 lines; there is none from 5 to 4")),
            (Some(3), Some(2), Err("a has 4 lines; there is none from 3 to 2")),
        ] {
            let read = read(&inside, path, from, to, 10_000);
            assert_eq!(read.as_deref().map_err(String::as_str), expected, "{from:?} {to:?}");
        }
        std::fs::write(dir.path().join("empty"), "").expect("a file");
        assert_eq!(read(&inside, Path::new("empty"), None, None, 1000), Ok("[empty is empty]".to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let (dir, inside) = workspace();
        std::fs::write(dir.path().join("long"), "0123456789\n".repeat(100)).expect("a file");
        let text = read(&inside, Path::new("long"), Some(2), None, 0).expect("text");
        let note = "[lines 2 to 19 of 100 of long; lines 20 to 100 are left out, read on with from = 20]";
        assert_eq!(text, format!("{}{note}", "0123456789\n".repeat(18)));
        std::fs::write(dir.path().join("wide"), "x".repeat(1000)).expect("a file");
        let text = read(&inside, Path::new("wide"), None, None, 0).expect("text");
        assert!(
            text.contains(
                " [800 bytes left out]\n[lines 1 to 1 of 1 of wide; line 1 is cut, it has 1000 bytes]"
            ),
            "{text}"
        );
        std::fs::write(dir.path().join("latin"), b"a\xfcb\n").expect("a file");
        assert!(
            read(&inside, Path::new("latin"), None, None, 999).expect("text").contains("it is not UTF-8")
        );
        std::fs::write(dir.path().join("binary"), b"a\0b").expect("a file");
        assert!(
            read(&inside, Path::new("binary"), None, None, 999)
                .expect_err("none")
                .contains("binary, 3 bytes")
        );
        let sparse = File::create(dir.path().join("huge")).expect("a file");
        sparse.set_len(LARGEST + 1).expect("a size");
        assert!(read(&inside, Path::new("huge"), None, None, 999).expect_err("none").contains("larger than"));
    }

    #[test]
    fn writes_and_edits() {
        let (dir, inside) = workspace();
        let path = Path::new("sub/a");
        let change = |written: Result<Written, String>| written.expect("written").change;
        assert_eq!(change(write(&inside, path, "one two two\n")), Some(ClaimKind::Added));
        assert_eq!(change(write(&inside, path, "one two two\n")), None, "nothing moved");
        assert_eq!(change(edit(&inside, path, "one", "1")), Some(ClaimKind::Changed));
        assert_eq!(std::fs::read_to_string(dir.path().join(path)).expect("text"), "1 two two\n");
        for (old, new, expected) in [
            ("two", "2", "occurs 2 times"),
            ("three", "3", "does not occur"),
            ("", "x", "`old` is empty"),
            ("1", "1", "the same"),
        ] {
            let error = edit(&inside, path, old, new).expect_err(old);
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join(path)).expect("text"), "1 two two\n");
        std::fs::write(dir.path().join("latin"), b"a\xfcb\n").expect("a file");
        assert!(edit(&inside, Path::new("latin"), "a", "b").expect_err("none").contains("not UTF-8"));
        assert!(edit(&inside, Path::new("none"), "a", "b").is_err());
        std::os::unix::fs::symlink("sub", dir.path().join("way")).expect("a link");
        std::os::unix::fs::symlink("sub/a", dir.path().join("link")).expect("a link");
        for path in ["way/a", "link", "sub", "sub/a/b"] {
            assert!(write(&inside, Path::new(path), "evil").is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join(path)).expect("text"), "1 two two\n");
    }
}
