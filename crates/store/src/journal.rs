//! The journal: append-only, hash-chained, synced line by line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use triphammer_model::{Digest, Effect, Event, JournalLine, Redactor, SCHEMA, Stamp};

use crate::file::{FileError, read_bounded};
use crate::witness::Witness;

/// Larger journals are refused: none that Triphammer writes comes near it.
const LARGEST: u64 = 1 << 30;

/// What a crash cut short at the end of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Number of the line that was not finished, from 1.
    pub line: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
}

/// A journal's lines as they are on disk.
#[derive(Clone, Debug)]
pub struct JournalText {
    /// The lines.
    pub lines: Vec<JournalLine>,
    /// What was cut short at the end; not part of `lines`.
    pub torn: Option<Torn>,
    /// How many bytes the whole lines take.
    pub bytes: u64,
    /// The digest that the next line carries.
    pub head: Digest,
}

/// A journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds no whole line.
    #[error("journal `{}` holds no whole line: the run died before it began; remove its folder", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// A line cannot be read.
    #[error("journal `{}`, line {line}: {why}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A newer version wrote it.
    #[error(
        "journal `{}`, line {line}: written with schema {found}, this version reads {SCHEMA}; use a newer triphammer",
        path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Its schema.
        found: u64,
    },
    /// Another process works on the run.
    #[error("the run is being worked on by another process (journal `{}` is locked)", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
}

/// A line could not be added; what was written before stays readable.
#[derive(Debug, thiserror::Error)]
#[error("writing journal `{}`: {source}", path.display())]
pub struct WriteError {
    /// The journal.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

/// Reads a journal and checks its chain.
///
/// # Errors
/// [`JournalError`] with the first line that does not parse, does not follow the one before, or is of a newer
/// version. A last line without its newline is torn, not an error.
pub fn read_journal(path: &Path) -> Result<JournalText, JournalError> {
    let bytes = read_bounded(path, LARGEST)?;
    let mut lines = Vec::new();
    let mut head = Digest::zero();
    let mut done = 0;
    let mut torn = None;
    while done < bytes.len() {
        let number = lines.len() as u64 + 1;
        let Some(length) = bytes[done..].iter().position(|b| *b == b'\n') else {
            torn = Some(Torn { line: number, bytes: (bytes.len() - done) as u64 });
            break;
        };
        let raw = &bytes[done..done + length];
        let damaged = |why: String| JournalError::Damaged { path: path.to_owned(), line: number, why };
        let line: JournalLine = match serde_json::from_slice(raw) {
            Ok(line) => line,
            Err(error) => {
                let schema = serde_json::from_slice::<serde_json::Value>(raw)
                    .ok()
                    .and_then(|v| v.get("schema").and_then(serde_json::Value::as_u64));
                return Err(match schema {
                    Some(found) if found > u64::from(SCHEMA) => {
                        JournalError::Newer { path: path.to_owned(), line: number, found }
                    }
                    _ => damaged(format!("not a journal line: {error}")),
                });
            }
        };
        if line.schema != SCHEMA {
            return Err(JournalError::Newer {
                path: path.to_owned(),
                line: number,
                found: u64::from(line.schema),
            });
        }
        if line.seq + 1 != number {
            return Err(damaged(format!("carries number {}, expected {}", line.seq, number - 1)));
        }
        if line.prev != head {
            return Err(damaged("does not follow the line before it: the chain is broken".to_owned()));
        }
        let sealed = matches!(line.event, Event::Sealed { .. });
        let own = own_digest(raw);
        if sealed && (own.is_none() || line.sha256 != own) {
            return Err(damaged("its own digest does not match".to_owned()));
        }
        head = Digest::of(raw);
        lines.push(line);
        done += length + 1;
    }
    if lines.is_empty() {
        return Err(JournalError::Empty { path: path.to_owned() });
    }
    Ok(JournalText { lines, torn, bytes: done as u64, head })
}

fn encode(line: &JournalLine) -> String {
    serde_json::to_string(line).expect("a journal line always serialises")
}

/// Puts a journal's text into a new file in its place, locked and synced, and returns it open for more.
fn replace(path: &Path, text: &str) -> io::Result<File> {
    let partial = path.with_extension("jsonl.partial");
    for place in [&partial, path] {
        match std::fs::symlink_metadata(place) {
            // No file can be renamed over a folder.
            Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(place)?,
            Ok(_) if *place == partial => std::fs::remove_file(place)?,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(&partial)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, path)?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(file)
}

/// The digest of a `sealed` line's bytes without its own digest field, which is the last one.
fn own_digest(raw: &[u8]) -> Option<Digest> {
    let field = r#","sha256":""#.len() + 64 + r#""}"#.len();
    let bare = raw.len().checked_sub(field)?;
    raw[bare..].starts_with(br#","sha256":""#).then(|| Digest::of([&raw[..bare], b"}"].concat()))
}

/// Whether a process works on the run whose journal this is.
pub fn is_live(path: &Path) -> bool {
    crate::file::open_regular(path).is_ok_and(|file| {
        matches!(
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared),
            Err(rustix::io::Errno::WOULDBLOCK)
        )
    })
}

/// A journal open for writing, locked for this process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    head: Digest,
    seq: u64,
    bytes: u64,
    lines: Vec<JournalLine>,
    redactor: Redactor,
    /// What the file was like after the last write; absent when that could not be seen.
    witness: Option<Witness>,
    altered: bool,
}

impl Journal {
    /// Starts a journal in a new file.
    ///
    /// # Errors
    /// [`WriteError`] when the file exists already or cannot be made.
    pub fn create(path: &Path, redactor: Redactor) -> Result<Self, WriteError> {
        let failed = |source| WriteError { path: path.to_owned(), source };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(e.into()))?;
        if let Some(parent) = path.parent() {
            File::open(parent).and_then(|d| d.sync_all()).map_err(failed)?;
        }
        let journal = Self {
            file,
            path: path.to_owned(),
            head: Digest::zero(),
            seq: 0,
            bytes: 0,
            lines: Vec::new(),
            redactor,
            witness: None,
            altered: false,
        };
        Ok(journal)
    }

    /// Opens a journal to go on writing. A torn end is cut off and returned.
    ///
    /// # Errors
    /// [`JournalError`] when another process holds it or it cannot be read.
    pub fn reopen(path: &Path, redactor: Redactor) -> Result<(Self, Option<Torn>), JournalError> {
        let failed = |what, source| JournalError::File(FileError::new(what, path, source));
        let file = OpenOptions::new()
            .append(true)
            // A run's folder may have been open to an agent: whatever it put here is neither followed nor waited for.
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .map_err(|e| failed("opening", e))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::Busy { path: path.to_owned() }),
            Err(e) => return Err(failed("locking", e.into())),
            Ok(()) => {}
        }
        let text = read_journal(path)?;
        if text.torn.is_some() {
            file.set_len(text.bytes).and_then(|()| file.sync_all()).map_err(|e| failed("mending", e))?;
        }
        let journal = Self {
            file,
            path: path.to_owned(),
            head: text.head,
            seq: text.lines.len() as u64,
            bytes: text.bytes,
            lines: text.lines,
            redactor,
            witness: None,
            altered: false,
        };
        Ok((journal, text.torn))
    }

    /// Redacts with another redactor from now on.
    pub fn redact_with(&mut self, redactor: Redactor) {
        self.redactor = redactor;
    }

    /// The lines so far.
    pub fn lines(&self) -> &[JournalLine] {
        &self.lines
    }

    /// Looks whether the file still is what was written, and puts it back where another hand changed it. Returns
    /// whether that ever was the case while this process had it open.
    ///
    /// # Errors
    /// [`WriteError`] when it cannot be put back.
    pub fn stand_by(&mut self) -> Result<bool, WriteError> {
        let now = Witness::of_path(&self.path).ok();
        if now.is_none() || now != self.witness {
            let failed = |source| WriteError { path: self.path.clone(), source };
            let text: String = self.lines.iter().map(|line| encode(line) + "\n").collect();
            let ours = Witness::of_file(&self.file).map_err(failed)?;
            let in_place = now.is_some_and(|now| now.is_same_file(&ours));
            let same = in_place && read_bounded(&self.path, LARGEST).is_ok_and(|b| b == text.as_bytes());
            if same {
                self.witness = now;
            } else {
                self.file = replace(&self.path, &text).map_err(failed)?;
                self.witness = Witness::of_file(&self.file).ok();
                self.altered = true;
            }
        }
        Ok(self.altered)
    }

    /// Adds an event with the effects it caused, and syncs. A `sealed` event gets its own digest.
    ///
    /// # Errors
    /// [`WriteError`]; the part of the line that got out is taken back, so that the journal stays readable.
    pub fn append(
        &mut self,
        stamp: Stamp,
        event: &Event,
        effects: &[Effect],
    ) -> Result<&JournalLine, WriteError> {
        self.stand_by()?;
        let mut line = JournalLine {
            schema: SCHEMA,
            seq: self.seq,
            prev: self.head.clone(),
            at: stamp.at,
            elapsed_ms: stamp.elapsed_ms,
            event: event.clone(),
            effects: effects.to_vec(),
            sha256: None,
        };
        let mut json = encode(&line);
        if !self.redactor.is_empty() {
            // What is remembered is what is written.
            let redacted = serde_json::to_value(&line).and_then(|mut value| {
                self.redactor.json(&mut value);
                serde_json::from_value(value)
            });
            line = redacted.map_err(|e| WriteError {
                path: self.path.clone(),
                source: io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "a secret's value is a word of the journal's own format ({e}); choose another secret"
                    ),
                ),
            })?;
            json = encode(&line);
        }
        if matches!(line.event, Event::Sealed { .. }) {
            line.sha256 = Some(Digest::of(&json));
            json = encode(&line);
        }
        let head = Digest::of(&json);
        json.push('\n');
        let written = self.file.write_all(json.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Should this fail too, the torn end is cut off when the journal is opened next.
            let _ = self.file.set_len(self.bytes);
            self.witness = None;
            return Err(WriteError { path: self.path.clone(), source });
        }
        self.witness = Witness::of_file(&self.file).ok();
        self.bytes += json.len() as u64;
        self.head = head;
        self.seq += 1;
        self.lines.push(line);
        Ok(&self.lines[self.lines.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp { at: jiff::Timestamp::from_second(1_800_000_000).unwrap(), elapsed_ms: 1 }
    }

    fn told(text: &str) -> Event {
        Event::Told { by: "p".into(), text: text.into() }
    }

    fn three(dir: &Path) -> PathBuf {
        let path = dir.join("journal.jsonl");
        let mut journal = Journal::create(&path, Redactor::default()).unwrap();
        for text in ["one", "two"] {
            journal.append(stamp(), &told(text), &[]).unwrap();
        }
        journal.append(stamp(), &Event::Sealed { artifacts: [].into() }, &[]).unwrap();
        path
    }

    #[test]
    fn a_flipped_byte_is_found_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let path = three(dir.path());
        let good = std::fs::read(&path).unwrap();
        assert_eq!(read_journal(&path).unwrap().lines.len(), 3);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let read = read_journal(&path);
            // The last newline flipped makes the last line torn, which is named too.
            let noticed = read.as_ref().map_or(true, |t| t.torn.is_some() || t.lines.len() != 3);
            assert!(noticed, "byte {at} flipped and nobody noticed");
        }
    }

    #[test]
    fn a_torn_end_is_cut_off_and_writing_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = three(dir.path());
        let good = std::fs::read(&path).unwrap();
        let second = good.iter().position(|b| *b == b'\n').unwrap() + 1;
        for cut in second + 1..good.len() {
            std::fs::write(&path, &good[..cut]).unwrap();
            let (mut journal, torn) = Journal::reopen(&path, Redactor::default()).unwrap();
            assert_eq!(torn.is_some(), good[cut - 1] != b'\n');
            journal.append(stamp(), &told("after"), &[]).unwrap();
            drop(journal);
            assert!(read_journal(&path).unwrap().torn.is_none());
        }
        std::fs::write(&path, b"{\"sch").unwrap();
        assert!(matches!(read_journal(&path), Err(JournalError::Empty { .. })));
    }

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut journal = Journal::create(&path, Redactor::default()).unwrap();
        journal.append(stamp(), &told("x"), &[]).unwrap();
        assert!(is_live(&path));
        assert!(matches!(Journal::reopen(&path, Redactor::default()), Err(JournalError::Busy { .. })));
        drop(journal);
        assert!(!is_live(&path));
    }

    #[test]
    fn secrets_do_not_reach_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let redactor = Redactor::new([("KEY".to_owned(), b"hunter22\"x".to_vec())]);
        let mut journal = Journal::create(&path, redactor).unwrap();
        journal.append(stamp(), &told("the key is hunter22\"x"), &[]).unwrap();
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("hunter22") && text.contains("[redacted:KEY]"));
        read_journal(&path).unwrap();
    }

    #[test]
    fn a_newer_schema_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        std::fs::write(&path, "{\"schema\":7,\"new\":true}\n").unwrap();
        assert!(matches!(read_journal(&path), Err(JournalError::Newer { found: 7, .. })));
    }

    /// What lies in a journal's place is looked at, not waited for.
    #[test]
    fn a_fifo_in_a_journals_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(Journal::reopen(&path, Redactor::default()).is_err());
        assert!(read_journal(&path).is_err());
        assert!(!is_live(&path));
    }

    type Attack = fn(&Path);

    /// Whatever another hand makes of the file while it is written: it is put back, and told.
    #[test]
    fn an_altered_journal_is_put_back() {
        let attacks: [(&str, Attack); 8] = [
            ("cut", |p| std::fs::write(p, "").unwrap()),
            ("appended to", |p| {
                OpenOptions::new().append(true).open(p).unwrap().write_all(b"{}\n").unwrap();
            }),
            ("edited in place", |p| {
                std::os::unix::fs::FileExt::write_all_at(
                    &OpenOptions::new().write(true).open(p).unwrap(),
                    b"X",
                    9,
                )
                .unwrap();
            }),
            ("deleted", |p| std::fs::remove_file(p).unwrap()),
            ("replaced by a copy", |p| {
                std::fs::copy(p, p.with_extension("x")).unwrap();
                std::fs::rename(p.with_extension("x"), p).unwrap();
            }),
            ("a folder", |p| {
                std::fs::remove_file(p).unwrap();
                std::fs::create_dir_all(p.join("x")).unwrap();
            }),
            ("a link", |p| {
                std::fs::rename(p, p.with_extension("x")).unwrap();
                std::os::unix::fs::symlink(p.with_extension("x"), p).unwrap();
            }),
            ("a folder in the way", |p| {
                std::fs::create_dir(p.with_extension("jsonl.partial")).unwrap();
                std::fs::remove_file(p).unwrap();
            }),
        ];
        for (what, attack) in attacks {
            let dir = tempfile::tempdir().unwrap();
            let path = three(dir.path());
            let (mut journal, _) = Journal::reopen(&path, Redactor::default()).unwrap();
            journal.append(stamp(), &told("d"), &[]).unwrap();
            assert!(!journal.stand_by().unwrap(), "{what}");
            attack(&path);
            journal.append(stamp(), &told("e"), &[]).unwrap();
            assert!(journal.stand_by().unwrap(), "{what}");
            let read = read_journal(&path).unwrap();
            assert_eq!((read.lines.len(), &read.lines[..]), (5, journal.lines()), "{what}");
            assert!(is_live(&path), "{what}: the lock is on the file that lies there");
        }
    }

    /// Times and links that change nothing of what is written are nobody's offence.
    #[test]
    fn a_touched_journal_is_not_altered() {
        let dir = tempfile::tempdir().unwrap();
        let path = three(dir.path());
        let (mut journal, _) = Journal::reopen(&path, Redactor::default()).unwrap();
        journal.append(stamp(), &told("d"), &[]).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(!journal.stand_by().unwrap());
        File::open(&path).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(!journal.stand_by().unwrap());
    }
}
