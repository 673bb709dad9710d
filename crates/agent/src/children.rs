//! Ending the children of this very process, and with it everything that they leave to it.
//!
//! A child that has not been waited for keeps its number, so it can be killed by it without looking twice; and in a
//! subreaper, whatever a killed child leaves behind becomes a child in turn. A look at the children alone takes
//! microseconds, which is less than a program needs to fork, hand over and go.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::process_tree::{self, Proc};

/// The children of all threads of this process.
pub(crate) fn list() -> Vec<i32> {
    from_kernel().unwrap_or_else(|| {
        let us = rustix::process::getpid().as_raw_nonzero().get();
        process_tree::all().iter().filter(|p| p.parent == us).map(|p| p.pid).collect()
    })
}

/// The kernel's own list; not every kernel is built with it.
fn from_kernel() -> Option<Vec<i32>> {
    let mut text = String::new();
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let path = task.ok()?.path().join("children");
        match std::fs::File::open(path) {
            Ok(mut file) => drop(file.read_to_string(&mut text)),
            // A thread that ended since.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !text.is_empty() => {}
            Err(_) => return None,
        }
        text.push(' ');
    }
    Some(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// What became of the children.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// How many went by our KILL.
    pub(crate) killed: usize,
    /// Those that were still there when the limit was reached.
    pub(crate) survivors: Vec<i32>,
}

/// Which children are meant, and how they are collected.
pub(crate) trait Brood {
    /// The children that are to end, dead ones included until they are collected.
    fn list(&mut self) -> Vec<i32>;

    /// Collects a bounded number of dead children, calling `collected` for each. Whether none is left, as far as the
    /// kernel says.
    fn reap(&mut self, collected: &mut dyn FnMut(Pid, WaitStatus)) -> bool;

    /// Everything below the children, for the rare child that cannot be killed but has children that can.
    fn below(&self, table: &[Proc]) -> Vec<Proc>;

    /// How many empty lists in a row are proof; `None` when only [`Brood::reap`] can say.
    fn empty_lists(&self) -> Option<u32>;
}

/// Kills a brood until none of it is left.
pub(crate) fn kill(brood: &mut dyn Brood, limit: Duration) -> Ended {
    let mut ended = Ended::default();
    let deadline = Instant::now() + limit;
    let mut sent: BTreeSet<i32> = BTreeSet::new();
    let mut pause = Duration::from_micros(50);
    let mut empty = 0;
    for round in 1u64.. {
        let mut fell = 0;
        let none_left = brood.reap(&mut |pid, status| {
            let ours = sent.remove(&pid.as_raw_nonzero().get());
            if ours && status.terminating_signal() == Some(Signal::KILL.as_raw()) {
                fell += 1;
            }
        });
        ended.killed += fell;
        let listed = if none_left { Vec::new() } else { brood.list() };
        empty = if listed.is_empty() { empty + 1 } else { 0 };
        if none_left || brood.empty_lists().is_some_and(|enough| empty >= enough) {
            break;
        }
        if Instant::now() >= deadline {
            ended.survivors = listed;
            break;
        }
        let mut fresh = false;
        for pid in listed {
            if let Some(number) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(number, Signal::KILL);
            }
            fresh |= sent.insert(pid);
        }
        if round % 16 == 0 {
            for proc in brood.below(&process_tree::all()) {
                process_tree::signal(&proc, Signal::KILL);
            }
        }
        // New ones are an answer to the killing: there is no time to lose.
        if fresh {
            pause = Duration::from_micros(50);
        } else {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
    ended
}

/// Waits for one child if it is dead.
pub(crate) fn collect(pid: i32) -> Option<(Pid, WaitStatus)> {
    rustix::process::waitpid(Some(Pid::from_raw(pid)?), WaitOptions::NOHANG).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn lists_children_of_any_thread() {
        let mut children: Vec<_> = (0..3)
            .map(|_| {
                let spawn = || std::process::Command::new("sleep").arg("1000").spawn().unwrap();
                std::thread::spawn(spawn).join().unwrap()
            })
            .collect();
        let listed = list();
        for child in &mut children {
            assert!(listed.contains(&i32::try_from(child.id()).unwrap()));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
