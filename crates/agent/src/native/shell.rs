//! One command, with a deadline and bounded output.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::shown::HeadTail;

/// For so long the output is waited for when the command and its group are gone. Whoever still holds it has left the
/// group.
const HELD: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(i32),
    Signal(i32),
    /// It ran past its deadline and was killed.
    TimedOut,
}

/// What a command did.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    /// Both streams in the order in which they were written, bounded.
    pub(super) output: String,
    /// Whether a process that left the group still holds the output.
    pub(super) held: bool,
}

/// Runs `sh -c` in a folder. Everything in the command's process group is killed when it ends; what leaves the group is
/// killed with the agent itself. The variables named in `hidden` do not reach it.
pub(super) fn run(
    folder: &Path,
    command: &str,
    timeout: Duration,
    most: usize,
    hidden: &[String],
) -> io::Result<Ran> {
    let (mut reader, writer) = io::pipe()?;
    let mut child = {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(folder).process_group(0);
        shell.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        for name in hidden {
            shell.env_remove(name);
        }
        // Our ends of the pipe that are for writing go with `shell`.
        shell.spawn()?
    };
    let output = Arc::new(Mutex::new(HeadTail::new(most)));
    let (tells_closed, closed) = mpsc::channel();
    let kept = Arc::clone(&output);
    std::thread::spawn(move || {
        let mut piece = [0; 16 << 10];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => kept.lock().unwrap_or_else(PoisonError::into_inner).push(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = tells_closed.send(());
    });
    let timed_out = !ended_within(&child, timeout);
    // The number is still the child's: it was not waited for.
    let _ = rustix::process::kill_process_group(pid(&child), Signal::KILL);
    let status = child.wait()?;
    let held = matches!(closed.recv_timeout(HELD), Err(RecvTimeoutError::Timeout));
    let end = match (timed_out, status.code(), status.signal()) {
        (true, _, _) => End::TimedOut,
        (_, Some(code), _) => End::Exit(code),
        (_, None, signal) => End::Signal(signal.unwrap_or_default()),
    };
    let output = output.lock().unwrap_or_else(PoisonError::into_inner).text();
    Ok(Ran { end, output, held })
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Waits for a child's end and leaves it to be collected, so that nobody else gets its number.
fn ended_within(child: &Child, timeout: Duration) -> bool {
    let (tells, told) = mpsc::channel();
    let pid = pid(child);
    std::thread::spawn(move || {
        while let Err(rustix::io::Errno::INTR) =
            rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {}
        let _ = tells.send(());
    });
    told.recv_timeout(timeout).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(command: &str, timeout: Duration, most: usize) -> Ran {
        run(Path::new("/"), command, timeout, most, &["SHELL_TEST_HIDDEN".to_owned()]).expect("a shell")
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn ends_and_output() {
        let ran = sh("echo a; echo b >&2; pwd; read x || echo closed; exit 3", LONG, 1000);
        assert_eq!((ran.end, ran.output.as_str(), ran.held), (End::Exit(3), "a\nb\n/\nclosed\n", false));
        assert_eq!(sh("kill -9 $$", LONG, 1000).end, End::Signal(9));
        let ran = sh("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done", LONG, 100);
        assert!(ran.output.starts_with("0\n1\n") && ran.output.ends_with("2998\n2999\n"), "{}", ran.output);
        assert!(ran.output.contains("[13790 of 13890 bytes are left out"), "{}", ran.output);
    }

    #[test]
    fn a_deadline_ends_the_whole_group() {
        let ran = sh("echo before; sleep 1000 & sleep 1000", Duration::from_secs(2), 1000);
        assert_eq!((ran.end, ran.output.as_str(), ran.held), (End::TimedOut, "before\n", false));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_stays_behind_in_the_group_is_ended() {
        let ran = sh("sleep 1000 & echo $!", LONG, 1000);
        assert_eq!((ran.end, ran.held), (End::Exit(0), false));
        let pid: i32 = ran.output.trim().parse().expect("a number");
        let gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
            Err(_) => true,
        };
        while !gone() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn output_that_is_held_open_does_not_hold_us() {
        let dir = tempfile::tempdir().expect("a folder");
        let up = dir.path().join("up");
        // The group is not killed before the process has left it and said so.
        let line = format!(
            "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' & while [ ! -e {0} ]; do :; done; echo x",
            up.display()
        );
        let ran = sh(&line, LONG, 1000);
        assert_eq!((ran.end, ran.output.as_str(), ran.held), (End::Exit(0), "x\n", true));
        let number = std::fs::read_to_string(&up).expect("a number").trim().parse().expect("a number");
        let pid = Pid::from_raw(number).expect("a process");
        rustix::process::kill_process(pid, Signal::KILL).expect("it is still there");
    }
}
