//! The process table as the kernel shows it, and ending what is in it without hitting a stranger.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How long a kill loop goes on before it reports survivors: a process in uninterruptible sleep, or one that
/// belongs to another user.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// One process; `pid` and `start` together name it for as long as the machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proc {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// In clock ticks since boot.
    pub(crate) start: u64,
    /// The kernel's letter: `R`, `S`, `D`, `T`, `Z`, ...
    pub(crate) state: u8,
    threads: u64,
}

impl Proc {
    /// Whether it can still run code. A zombie whose other threads live on can.
    pub(crate) const fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x') || self.threads > 1
    }

    pub(crate) const fn key(&self) -> (i32, u64) {
        (self.pid, self.start)
    }
}

/// Reads the line of `/proc/PID/stat`. The command's name may hold spaces and parentheses, so fields are counted
/// from the last `)`.
fn parse_stat(line: &[u8]) -> Option<Proc> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // proc(5) numbers: state 3, parent 4, pgrp 5, session 6, num_threads 20, starttime 22.
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let threads = fields.nth(13)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Proc { pid, parent, session, start, state, threads })
}

/// The process with this id, if there is one.
pub(crate) fn read(pid: i32) -> Option<Proc> {
    use std::io::Read as _;
    // The line is far shorter than this: the name is cut at 64 bytes, the rest are about fifty numbers.
    let mut line = [0u8; 2048];
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let mut len = 0;
    while len < line.len() {
        match file.read(&mut line[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    parse_stat(&line[..len])
}

/// All processes that can be seen; empty where there is no `/proc`.
///
/// A listing is no snapshot: a process may hand over to a child and go between being listed and being read, and the
/// child is in neither. So it is listed again until nothing new shows up, which leaves a window of microseconds.
pub(crate) fn all() -> Vec<Proc> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for _ in 0..4 {
        let Ok(entries) = std::fs::read_dir("/proc") else { return found };
        let fresh: Vec<i32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| seen.insert(*pid))
            .collect();
        if fresh.is_empty() {
            break;
        }
        found.extend(fresh.into_iter().filter_map(read));
    }
    found
}

/// Everything below `root` in `table`, without `root`.
pub(crate) fn descendants(root: i32, table: &[Proc]) -> Vec<Proc> {
    // Sorted, so that a table of many thousand processes, as a fork bomb makes it, stays cheap to walk.
    let mut by_parent: Vec<&Proc> = table.iter().collect();
    by_parent.sort_unstable_by_key(|p| p.parent);
    let mut found: Vec<Proc> = Vec::new();
    let mut seen = BTreeSet::from([root]);
    let mut parents = vec![root];
    while let Some(above) = parents.pop() {
        let first = by_parent.partition_point(|p| p.parent < above);
        for proc in by_parent[first..].iter().take_while(|p| p.parent == above) {
            if seen.insert(proc.pid) {
                found.push(**proc);
                parents.push(proc.pid);
            }
        }
    }
    found
}

/// Signals exactly `proc`: not whoever may have got its number since the table was read. A process that is gone is
/// no error, one that cannot be signalled will show up among the survivors.
pub(crate) fn signal(proc: &Proc, signal: Signal) {
    let Some(pid) = Pid::from_raw(proc.pid) else { return };
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        match pidfd_open(pid, PidfdFlags::empty()) {
            // The descriptor pins whoever has the number now; the start time tells whether it is the one meant.
            Ok(fd) => {
                if read(proc.pid).is_some_and(|now| now.key() == proc.key()) {
                    let _ = pidfd_send_signal(fd, signal);
                }
                return;
            }
            Err(rustix::io::Errno::SRCH) => return,
            Err(_) => {}
        }
    }
    if read(proc.pid).is_some_and(|now| now.key() == proc.key()) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Asks all of `procs` to end. Stopped ones are woken, else they would never hear of it.
pub(crate) fn terminate(procs: &[Proc]) {
    for proc in procs.iter().filter(|p| p.is_alive()) {
        signal(proc, Signal::TERM);
        signal(proc, Signal::CONT);
    }
}

/// How many looks in a row must find nothing before it is believed: a look is no snapshot.
const EMPTY_LOOKS: u32 = 8;

/// Kills what `select` names, again and again, until nothing lives. For processes that are not this one's children.
///
/// Where there are many, or some come again, everything is stopped before it is killed, so that what forks faster than
/// it is killed stands still first.
pub(crate) fn kill_all(mut select: impl FnMut(&[Proc]) -> Vec<Proc>, limit: Duration) -> Vec<i32> {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(100);
    let (mut round, mut empty) = (0u32, 0u32);
    loop {
        let mut victims = living(&mut select);
        empty = if victims.is_empty() { empty + 1 } else { 0 };
        if empty >= EMPTY_LOOKS {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            return victims.iter().map(|p| p.pid).collect();
        }
        if !victims.is_empty() {
            if round > 0 || victims.len() > 8 {
                stop_all(&mut victims, &mut select);
            }
            for proc in &victims {
                signal(proc, Signal::KILL);
            }
            round += 1;
        }
        // A killed process needs a moment to go; nothing announces the end of one that is not our child.
        std::thread::sleep(pause);
        pause = (pause * 2).min(if empty > 0 { Duration::from_millis(1) } else { Duration::from_millis(20) });
    }
}

/// Stops all victims, and those that were born meanwhile, until no new one shows up.
fn stop_all(victims: &mut Vec<Proc>, select: &mut impl FnMut(&[Proc]) -> Vec<Proc>) {
    let mut stopped = BTreeSet::new();
    // Bounded: a tree that still grows after this many rounds is killed as far as it is known.
    for _ in 0..32 {
        let fresh: Vec<Proc> = victims.iter().copied().filter(|p| stopped.insert(p.key())).collect();
        if fresh.is_empty() {
            return;
        }
        for proc in &fresh {
            signal(proc, Signal::STOP);
        }
        *victims = living(select);
    }
}

fn living(select: &mut impl FnMut(&[Proc]) -> Vec<Proc>) -> Vec<Proc> {
    let mut victims = select(&all());
    victims.retain(Proc::is_alive);
    victims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stat_lines() {
        let proc =
            parse_stat(b"42 (a) b ( c) S 7 40 39 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 987654 1 2 3\n")
                .unwrap();
        assert_eq!((proc.pid, proc.parent, proc.session, proc.start), (42, 7, 39, 987_654));
        assert_eq!((proc.state, proc.threads), (b'S', 3));
        for bad in [&b""[..], b"1", b"1 (x", b"1 (x) S", b"x (y) S 1 2 3", b")("] {
            assert!(parse_stat(bad).is_none());
        }
    }

    #[test]
    fn a_zombie_with_threads_lives() {
        let zombie = Proc { pid: 1, parent: 0, session: 1, start: 1, state: b'Z', threads: 1 };
        assert!(!zombie.is_alive());
        assert!(Proc { threads: 2, ..zombie }.is_alive());
    }

    /// What a container is given by a leader outside of it; such a process is there and has a session.
    #[test]
    fn a_session_from_outside_is_zero() {
        let proc = parse_stat(b"1 (sh) S 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0").unwrap();
        assert_eq!((proc.parent, proc.session), (0, 0));
    }

    #[test]
    fn finds_descendants_at_any_depth() {
        let proc = |pid, parent| Proc { pid, parent, session: 1, start: 1, state: b'S', threads: 1 };
        let table = [proc(4, 3), proc(2, 1), proc(3, 2), proc(9, 8), proc(1, 0), proc(0, 0)];
        let mut pids: Vec<i32> = descendants(1, &table).iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [2, 3, 4]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn never_signals_a_stranger() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let real = read(pid).unwrap();
        signal(&Proc { start: real.start + 1, ..real }, Signal::KILL);
        assert!(child.try_wait().unwrap().is_none());
        signal(&real, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
