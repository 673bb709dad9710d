//! `before.fp`: a snapshot written down, so that a run that is killed still knows what the workspace looked like.
//!
//! One line an entry, directories first, each directory before those below it and by name within one: `size:mtime_ns ctime_ns ino mode kind path`, where mode is octal, kind is one of
//! `f`, `l`, `d`, `s` (file, link, directory, special), followed by `?` where equal facts do not prove equal
//! content, and the path is escaped (`\xNN`, a literal backslash doubled) so that it never holds a line end. The
//! first line names the format and its version, the last one says how many entries there are.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use triphammer_model::path::{escape, unescape};

use crate::facts::Facts;
use crate::snapshot::{Entry, EntryKind, Snapshot};

const HEADER: &str = "triphammer-fingerprint 1";

/// A fingerprint file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    /// The system refused.
    #[error("fingerprint `{}` could not be {what} ({source}): check the disk", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// `written` or `read`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what was written.
    #[error("fingerprint `{}` is damaged at line {line}: {what}; start the attempt anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// Writes a snapshot to `path`, beside it first and then renamed. Does not sync.
///
/// # Errors
/// [`FingerprintError::File`].
pub fn write(snapshot: &Snapshot, path: &Path) -> Result<(), FingerprintError> {
    let fail = |source| FingerprintError::File { path: path.to_path_buf(), what: "written", source };
    let beside = path.with_extension("fp.new");
    let file = create(&beside).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    print(snapshot, &mut out).and_then(|()| out.flush()).map_err(fail)?;
    std::fs::rename(&beside, path).map_err(fail)
}

/// Makes the file new: a run's folder is within an agent's reach, and what it put there is neither followed nor
/// waited for.
fn create(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

fn print(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let mut line = Vec::new();
    let mut count = 0;
    for entry in snapshot.directories().chain(snapshot.iter()) {
        line.clear();
        print_line(&entry, &mut line)?;
        out.write_all(&line)?;
        count += 1;
    }
    writeln!(out, "end {count}")
}

fn print_line(entry: &Entry<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    let Facts { size, mtime, ctime, ino, mode, uncertain } = entry.facts;
    let kind = match entry.kind() {
        EntryKind::File => 'f',
        EntryKind::Symlink => 'l',
        EntryKind::Directory => 'd',
        EntryKind::Special => 's',
    };
    let mark = if uncertain { "?" } else { "" };
    write!(line, "{size}:{mtime} {ctime} {ino} {mode:o} {kind}{mark} ")?;
    for (part, slash) in [(entry.dir, !entry.dir.is_empty()), (entry.name, false)] {
        print_path(part, line)?;
        line.extend(slash.then_some(b'/'));
    }
    line.push(b'\n');
    Ok(())
}

fn print_path(path: &[u8], line: &mut Vec<u8>) -> io::Result<()> {
    if path.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\') {
        line.extend_from_slice(path);
        return Ok(());
    }
    for c in escape(path).chars() {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        if c.is_control() {
            bytes.iter().try_for_each(|byte| write!(line, "\\x{byte:02x}"))?;
        } else {
            line.extend_from_slice(bytes);
        }
    }
    Ok(())
}

/// Reads what [`write()`] wrote. The snapshot's bounds are empty: they are in `movement.json`.
///
/// # Errors
/// [`FingerprintError`]; a file that was cut off is damaged.
pub fn read(path: &Path) -> Result<Snapshot, FingerprintError> {
    let fail = |source| FingerprintError::File { path: path.to_path_buf(), what: "read", source };
    let damaged = |line: usize, what: &str| FingerprintError::Damaged {
        path: path.to_path_buf(),
        line,
        what: what.to_owned(),
    };
    let file = open(path).map_err(fail)?;
    let (mut directories, mut files) = (Vec::new(), Vec::new());
    let mut count = None;
    let mut last = 0;
    for (i, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(fail)?;
        last = i + 1;
        if i == 0 {
            if line != HEADER {
                return Err(damaged(last, &format!("`{line}` is not `{HEADER}`")));
            }
        } else if count.is_some() {
            return Err(damaged(last, "more lines after the end"));
        } else if let Some(number) = line.strip_prefix("end ") {
            count = Some(number.parse::<usize>().map_err(|_| damaged(last, "the count is no number"))?);
        } else {
            let (facts, path) = read_line(&line).ok_or_else(|| damaged(last, "no fingerprint line"))?;
            if facts.kind() == FileType::Directory {
                directories.push((path.into_vec(), facts));
            } else {
                files.push((path.into_vec(), facts));
            }
        }
    }
    if count != Some(files.len() + directories.len()) {
        return Err(damaged(last, "the file was cut off"));
    }
    Ok(Snapshot::remembered(directories, files))
}

fn read_line(line: &str) -> Option<(Facts, Box<[u8]>)> {
    let mut parts = line.splitn(6, ' ');
    let (size, mtime) = parts.next()?.split_once(':')?;
    let facts = Facts {
        size: size.parse().ok()?,
        mtime: mtime.parse().ok()?,
        ctime: parts.next()?.parse().ok()?,
        ino: parts.next()?.parse().ok()?,
        mode: u32::from_str_radix(parts.next()?, 8).ok()?,
        uncertain: parts.next()?.ends_with('?'),
    };
    Some((facts, unescape(parts.next()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Snapshot {
        let file = |size, uncertain| Facts { size, mtime: -5, ctime: 7, ino: 9, mode: 0o100_644, uncertain };
        let names =
            [&b"plain"[..], b"new\nline", b"d/\xff\xfe", b"back\\slash", b"a b  c", "ü\u{85}".as_bytes()];
        let files = names.map(|path| (path.to_vec(), file(3, path == b"plain")));
        let directory = (b"d".to_vec(), Facts { mode: 0o040_755, ..file(0, false) });
        Snapshot::remembered(vec![directory], files.to_vec())
    }

    #[test]
    fn round_trips() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("before.fp");
        let before = sample();
        write(&before, &path).unwrap();
        let after = read(&path).unwrap();
        assert!(before.iter().eq(after.iter()));
        assert!(before.directories().eq(after.directories()));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.lines()
                .all(|l| l.starts_with("triphammer-") || l.starts_with("end ") || l.contains(":-5 7 9 "))
        );
        assert!(text.contains("3:-5 7 9 100644 f? plain\n"), "{text}");
        assert_eq!(text.lines().count(), 9);
    }

    #[test]
    fn what_an_agent_planted_is_neither_followed_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("before.fp"), dir.path().join("victim"));
        std::fs::write(&victim, "keep").unwrap();
        std::os::unix::fs::symlink(&victim, path.with_extension("fp.new")).unwrap();
        write(&sample(), &path).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"keep");
        std::fs::rename(&path, &victim).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(read(&path).is_err());
    }

    #[test]
    fn damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("before.fp");
        write(&sample(), &path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in (0..whole.len() - 1).step_by(7) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(read(&path), Err(FingerprintError::Damaged { .. })), "cut at {cut}");
        }
        std::fs::write(&path, "triphammer-fingerprint 2\nend 0\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 1"));
    }
}
