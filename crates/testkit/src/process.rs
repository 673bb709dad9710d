//! Looking at processes.

use std::time::{Duration, Instant};

/// Whether a process exists and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        // The state follows the command's closing parenthesis; a command may hold parentheses itself.
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    })
}

/// Waits until `done` holds, looking again every 10 ms.
///
/// # Panics
/// When it does not hold after `limit`.
pub fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < until, "waited {limit:?} in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
