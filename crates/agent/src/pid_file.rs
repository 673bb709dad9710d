//! A note of the shim that runs, so that a later process can end what a dead one left behind.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process_tree::{self, KILL_LIMIT, Proc};

/// The name under which an agent's pid file lies in its attempt's folder.
pub const PID_FILE: &str = "agent.pid";

/// The variable that tells every process of a tree which pid file it belongs to. A process that lost both its shim
/// and its supervisor can still be told by it.
pub(crate) const KEEPER_VAR: &str = "TRIPHAMMER_KEEPER";

/// Ending a left-over process tree failed.
#[derive(Debug, thiserror::Error)]
pub enum LeftOverError {
    /// The pid file could not be read or removed.
    #[error("reading the pid file {path} of a run that died")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Processes survived KILL.
    #[error("processes {pids:?}, left behind by a run that died, survived being killed; end them by hand")]
    Survivors {
        /// Their ids.
        pids: Vec<i32>,
    },
}

/// What a pid file says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    pid: i32,
    start: u64,
    boot: String,
}

impl Note {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        // A line that was not written to its end was not followed by a start.
        let mut fields = text.strip_suffix('\n')?.split(' ');
        let pid = fields.next()?.parse().ok().filter(|pid| *pid > 1)?;
        let start = fields.next()?.parse().ok()?;
        let boot = fields.next()?.to_owned();
        fields.next().is_none().then_some(Self { pid, start, boot })
    }
}

/// Which boot of the machine this is; process ids and start times mean nothing across boots.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |id| id.trim().to_owned())
}

/// Writes the note for the shim `pid`.
pub(crate) fn write(path: &Path, pid: i32) -> std::io::Result<()> {
    let start = process_tree::read(pid).map_or(0, |p| p.start);
    let line = format!("{pid} {start} {}\n", boot_id());
    crate::plain_file::create(path)?.write_all(line.as_bytes())
}

/// Ends the process tree that `pid_file` speaks of, if its shim still lives, and removes the file.
///
/// The shim is told by its process id, its start time and the boot; a number that went to somebody else is left
/// alone. What lost its shim is told by the variable that all of the tree carry. Returns the shim's process id when it
/// was alive.
pub fn end_left_over(pid_file: &Path) -> Result<Option<u32>, LeftOverError> {
    let file_error = |source| LeftOverError::File { path: pid_file.display().to_string(), source };
    let bytes = match crate::plain_file::read(pid_file, 4096) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(file_error(e)),
    };
    let shim = Note::parse(&bytes)
        .filter(|note| note.boot == boot_id())
        .and_then(|note| process_tree::read(note.pid).filter(|p| p.start == note.start && p.is_alive()));
    let mut survivors = Vec::new();
    if let Some(shim) = shim {
        // With its supervisor dead it kills everything by itself, better than anybody else can; it may have been
        // stopped. Where it does not, the tree is killed first: while the shim lives, nothing can slip away to init.
        process_tree::signal(&shim, Signal::CONT);
        if await_end(&shim, Duration::from_secs(2)).is_some() {
            let below = |table: &[Proc]| process_tree::descendants(shim.pid, table);
            survivors.extend(process_tree::kill_all(below, KILL_LIMIT));
            process_tree::signal(&shim, Signal::KILL);
            survivors.extend(await_end(&shim, KILL_LIMIT));
        }
    }
    let mut entry = format!("{KEEPER_VAR}=").into_bytes();
    entry.extend_from_slice(pid_file.as_os_str().as_encoded_bytes());
    let marked = |table: &[Proc]| {
        let roots = table.iter().filter(|p| carries(p, &entry));
        let mut victims: Vec<Proc> =
            roots.flat_map(|p| [vec![*p], process_tree::descendants(p.pid, table)].concat()).collect();
        let us = rustix::process::getpid().as_raw_nonzero().get();
        victims.retain(|p| p.pid != us);
        victims
    };
    survivors.extend(process_tree::kill_all(marked, KILL_LIMIT));
    if !survivors.is_empty() {
        return Err(LeftOverError::Survivors { pids: survivors });
    }
    remove(pid_file).map_err(file_error)?;
    Ok(shim.and_then(|p| u32::try_from(p.pid).ok()))
}

/// Removes a pid file; one that is gone already is no error.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn carries(proc: &Proc, entry: &[u8]) -> bool {
    // Unreadable means somebody else's: an agent's processes are ours.
    std::fs::read(format!("/proc/{}/environ", proc.pid))
        .is_ok_and(|env| env.split(|b| *b == 0).any(|var| var == entry))
}

fn await_end(proc: &Proc, limit: Duration) -> Option<i32> {
    let deadline = Instant::now() + limit;
    while process_tree::read(proc.pid).is_some_and(|now| now.key() == proc.key() && now.is_alive()) {
        if Instant::now() >= deadline {
            return Some(proc.pid);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_note_and_nothing_torn() {
        assert_eq!(Note::parse(b"42 99 abc\n"), Some(Note { pid: 42, start: 99, boot: "abc".to_owned() }));
        for bad in
            [&b""[..], b"42 99 abc", b"1 99 abc\n", b"-1 99 abc\n", b"42 abc\n", b"4 9 a b\n", b"\xff\n"]
        {
            assert_eq!(Note::parse(bad), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn leaves_a_stranger_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PID_FILE);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let start = process_tree::read(i32::try_from(child.id()).unwrap()).unwrap().start;
        for note in [
            format!("{} {} {}\n", child.id(), start + 1, boot_id()),
            format!("{} {start} another-boot\n", child.id()),
            "torn".to_owned(),
        ] {
            std::fs::write(&path, note).unwrap();
            assert_eq!(end_left_over(&path).unwrap(), None);
            assert!(!path.exists());
            assert!(child.try_wait().unwrap().is_none());
        }
        write(&path, i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(end_left_over(&path).unwrap(), Some(child.id()));
        assert!(!child.wait().unwrap().success());
        assert_eq!(end_left_over(&path).unwrap(), None, "no file, nothing to do");
    }
}
