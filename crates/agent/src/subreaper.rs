//! Inheriting orphans: needed by the shim, and by the main process in case a shim is killed.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions};

use crate::process_tree::{self, Children, KILL_LIMIT, Kills, Proc};

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
pub(crate) fn sweep(dead_shim: i32) -> Kills {
    let shims = shims();
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let our_session = rustix::process::getsid(None).map_or(0, |s| s.as_raw_nonzero().get());
    let select = |table: &[Proc]| {
        let roots: Vec<Proc> = table
            .iter()
            .filter(|p| {
                p.session == dead_shim
                    || (p.ppid == us && p.session != our_session && !shims.contains(&p.pid))
            })
            .copied()
            .collect();
        let mut victims = roots.clone();
        for root in &roots {
            // One at a time: a blanket wait would steal the exit status of this process's other children.
            if root.ppid == us
                && !root.is_alive()
                && let Some(pid) = Pid::from_raw(root.pid)
            {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
            victims.extend(process_tree::descendants(root.pid, table));
        }
        victims.sort_unstable_by_key(Proc::key);
        victims.dedup_by_key(|p| p.key());
        victims
    };
    process_tree::kill_all(select, || Children::Unknown, KILL_LIMIT)
}
