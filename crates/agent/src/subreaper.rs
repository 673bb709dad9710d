//! Inheriting orphans: needed by the shim, and by the main process in case a shim is killed.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitStatus};

use crate::children::{self, Brood, Ended};
use crate::process_tree::{self, KILL_LIMIT, Proc};

/// Makes this process the one that inherits orphaned descendants. Called once, before the first process is
/// supervised; where the system has no such thing it does nothing.
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

static SHIMS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The shims that run now, locked: while it is held no shim can be started that a sweep does not know.
pub(crate) fn shims() -> MutexGuard<'static, BTreeSet<i32>> {
    SHIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills what a dead shim left behind.
///
/// With the shim gone its children are ours, since we are a subreaper too. They are told from the other children of
/// this process by their session: the shim opened one of its own, and nobody can join ours. What stayed in the shim's
/// session is found even without being a subreaper.
pub(crate) fn sweep(dead_shim: i32) -> Ended {
    let shims = shims();
    let our_session = session_of(rustix::process::getpid().as_raw_nonzero().get());
    let mut orphans = Orphans { shims: &shims, our_session, listed: Vec::new() };
    let mut ended = children::kill(&mut orphans, KILL_LIMIT);
    let in_its_session = |table: &[Proc]| {
        let mut found: Vec<Proc> = Vec::new();
        for root in table.iter().filter(|p| p.session == dead_shim) {
            found.push(*root);
            found.extend(process_tree::descendants(root.pid, table));
        }
        found
    };
    if !in_its_session(&process_tree::all()).is_empty() {
        ended.survivors.extend(process_tree::kill_all(in_its_session, KILL_LIMIT));
    }
    ended
}

/// The session of a process, `None` where it cannot be read. In a container the session of what was started from
/// outside reads as 0, and `rustix::process::getsid` panics on that.
fn session_of(pid: i32) -> Option<i32> {
    process_tree::read(pid).map(|proc| proc.session)
}

/// Children of this process that no shim of ours and nothing else started.
struct Orphans<'a> {
    shims: &'a BTreeSet<i32>,
    our_session: Option<i32>,
    listed: Vec<i32>,
}

impl Brood for Orphans<'_> {
    fn list(&mut self) -> Vec<i32> {
        self.listed = children::list();
        self.listed.retain(|pid| {
            let session = session_of(*pid);
            session.is_some() && session != self.our_session && !self.shims.contains(pid)
        });
        self.listed.clone()
    }

    /// One at a time: a blanket wait would steal the exit status of this process's other children.
    fn reap(&mut self, collected: &mut dyn FnMut(Pid, WaitStatus)) -> bool {
        for pid in std::mem::take(&mut self.listed) {
            if let Some((pid, status)) = children::collect(pid) {
                collected(pid, status);
            }
        }
        false
    }

    fn below(&self, table: &[Proc]) -> Vec<Proc> {
        self.listed.iter().flat_map(|pid| process_tree::descendants(*pid, table)).collect()
    }

    fn empty_lists(&self) -> Option<u32> {
        Some(4)
    }
}
