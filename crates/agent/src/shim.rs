//! The shim: a small process between the supervisor and the program, which outlives neither.
//!
//! It is our own binary under a hidden name. Its standard input is one end of a socket pair whose other end only
//! the supervisor holds; when that closes, because the supervisor ended in whatever way, everything below the shim
//! is killed. As subreaper it inherits every orphan below it, so that a daemon that forked twice and left its session
//! is still found.
//!
//! Frames to the supervisor are nine bytes: a tag and two numbers. Commands from it are single bytes.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::children::{self, Brood};
use crate::containment::{Orders, Part};
use crate::holder;
use crate::process_tree::{self, KILL_LIMIT, Proc};

/// The hidden subcommand under which the binary is a shim.
pub const COMMAND: &str = "__shim";

/// Bytes in a frame.
pub(crate) const FRAME: usize = 9;

/// What the supervisor tells the shim.
pub(crate) mod command {
    /// Start the program: the pid file is written.
    pub(crate) const GO: u8 = b'G';
    /// Ask everything to end.
    pub(crate) const TERM: u8 = b'T';
    /// Kill everything.
    pub(crate) const KILL: u8 = b'K';
}

/// What the shim tells the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The program is about to be started: from here on it may run, and may kill the shim.
    Starting,
    /// The program could not be executed, with this error number (0 when there is none).
    ExecFailed(i32),
    /// Standard input could not be opened, with this error number.
    StdinFailed(i32),
    /// A part of the containment could not be laid, with this error number (0 when there is none).
    NotContained(Part, i32),
    /// The program ended, with this raw wait status.
    Ended(i32),
    /// Nothing below the shim lives, but for `survivors`; `killed` had to be.
    Done {
        /// How many were killed.
        killed: i32,
        /// How many could not be.
        survivors: i32,
    },
}

impl Frame {
    pub(crate) fn encode(self) -> [u8; FRAME] {
        let (tag, a, b) = match self {
            Self::Starting => (b'S', 0, 0),
            Self::ExecFailed(errno) => (b'E', errno, 0),
            Self::StdinFailed(errno) => (b'I', errno, 0),
            Self::NotContained(part, errno) => (b'F', errno, part as i32),
            Self::Ended(raw) => (b'L', raw, 0),
            Self::Done { killed, survivors } => (b'D', killed, survivors),
        };
        let mut out = [0; FRAME];
        out[0] = tag;
        out[1..5].copy_from_slice(&a.to_le_bytes());
        out[5..9].copy_from_slice(&b.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: [u8; FRAME]) -> Option<Self> {
        let [tag, a0, a1, a2, a3, b0, b1, b2, b3] = bytes;
        let a = i32::from_le_bytes([a0, a1, a2, a3]);
        let b = i32::from_le_bytes([b0, b1, b2, b3]);
        Some(match tag {
            b'S' => Self::Starting,
            b'E' => Self::ExecFailed(a),
            b'I' => Self::StdinFailed(a),
            b'F' => Self::NotContained(*Part::ALL.get(usize::try_from(b).ok()?)?, a),
            b'L' => Self::Ended(a),
            b'D' => Self::Done { killed: a, survivors: b },
            _ => return None,
        })
    }
}

/// What the supervisor asked for on the command line.
pub(crate) struct Request {
    pub(crate) dir: PathBuf,
    stdin: Option<PathBuf>,
    pub(crate) orders: Orders,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

impl Request {
    fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut dir, mut stdin, mut orders) = (None, None, Orders::default());
        loop {
            let arg = args.next()?;
            if arg == "--dir" {
                dir = Some(args.next()?.into());
            } else if arg == "--stdin" {
                stdin = Some(args.next()?.into());
            } else if arg == "--" {
                break;
            } else {
                orders.take(&arg, || args.next())?;
            }
        }
        Some(Self { dir: dir?, stdin, orders, program: args.next()?, args: args.collect() })
    }
}

/// Runs the shim; `args` is what follows [`COMMAND`] on the command line. Returns when nothing below it lives.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    // What whoever started us left open is nobody's business further down.
    close_fds::set_fds_cloexec(3, &[]);
    let args: Vec<OsString> = args.collect();
    let is_holder = args.first().is_some_and(|first| first == holder::MODE);
    let Some(request) = Request::read(args.iter().skip(usize::from(is_holder)).cloned()) else {
        return ExitCode::from(2);
    };
    if is_holder {
        return holder::hold(&request);
    }
    match serve(&request, &args) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads a message of ours; the supervisor sees the channel close without a last word.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(request: &Request, args: &[OsString]) -> io::Result<()> {
    let mut control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    // Out of the terminal's reach: an interrupt there is the supervisor's to pass on.
    rustix::process::setsid()?;
    crate::subreaper::become_subreaper()?;
    // Whoever kills the product by its name should not hit the shim too.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"th-shim");
    let children = watch_signals()?;

    let mut go = [0];
    // Closed, or told to end before the start: nothing to do.
    if !matches!(control.read(&mut go), Ok(1)) || go[0] != command::GO {
        return Ok(());
    }
    let stdin = match open_stdin(request) {
        Ok(file) => file,
        Err(error) => return say(&mut control, Frame::StdinFailed(error.raw_os_error().unwrap_or(0))),
    };
    say(&mut control, Frame::Starting)?;
    let leader = match start(request, args, stdin) {
        Ok(leader) => leader,
        Err(frame) => return say(&mut control, frame),
    };
    // Else the pipes would not close before the shim does.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let mut reaper = Reaper { leader, status: None };
    attend(&mut control, &children, &mut reaper);
    end(&mut control, &mut reaper);
    Ok(())
}

/// Starts the program, through a holder where something is to hold it. The error is what is to be said.
fn start(request: &Request, args: &[OsString], stdin: OwnedFd) -> Result<i32, Frame> {
    let failed = |error: io::Error| Frame::ExecFailed(error.raw_os_error().unwrap_or(0));
    if !request.orders.is_empty() {
        return holder::start(request, args);
    }
    let spawned = Command::new(&request.program)
        .args(&request.args)
        .current_dir(&request.dir)
        .stdin(Stdio::from(stdin))
        .process_group(0)
        .spawn();
    spawned.map(|child| i32::try_from(child.id()).unwrap_or(0)).map_err(failed)
}

/// Waits until the leader has ended or everything is to be killed.
fn attend(control: &mut UnixStream, children: &UnixStream, reaper: &mut Reaper) {
    let mut bytes = [0; 64];
    loop {
        if reaper.reap(&mut |_, _| {}) || reaper.status.is_some() {
            return;
        }
        let mut fds = [PollFd::new(&*control, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let (spoken, died) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if died {
            let _ = rustix::io::read(children, &mut bytes);
        }
        if spoken {
            match control.read(&mut bytes) {
                Ok(0) => return,
                Ok(n) if bytes[..n].contains(&command::KILL) => return,
                Ok(n) if bytes[..n].contains(&command::TERM) => {
                    process_tree::terminate(&below_us(&process_tree::all()));
                    #[cfg(not(target_os = "linux"))]
                    signal_group(reaper.leader, rustix::process::Signal::TERM);
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// Kills what is left and says so.
fn end(control: &mut UnixStream, reaper: &mut Reaper) {
    let mut told = false;
    if let Some(raw) = reaper.status {
        told = true;
        let _ = say(control, Frame::Ended(raw));
    }
    let ended = children::kill(reaper, KILL_LIMIT);
    if let Some(raw) = reaper.status
        && !told
    {
        let _ = say(control, Frame::Ended(raw));
    }
    let _ = say(
        control,
        Frame::Done {
            killed: i32::try_from(ended.killed).unwrap_or(i32::MAX),
            survivors: i32::try_from(ended.survivors.len()).unwrap_or(i32::MAX),
        },
    );
}

fn below_us(table: &[Proc]) -> Vec<Proc> {
    process_tree::descendants(rustix::process::getpid().as_raw_nonzero().get(), table)
}

/// Where there is no process table to read, the leader's group is all that can be reached.
#[cfg(not(target_os = "linux"))]
fn signal_group(leader: i32, signal: rustix::process::Signal) {
    if let Some(group) = Pid::from_raw(leader) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

pub(crate) fn say(control: &mut UnixStream, frame: Frame) -> io::Result<()> {
    control.write_all(&frame.encode())
}

/// A handler, not "ignore": what is ignored stays ignored in the program, a handler does not outlive exec.
fn watch_signals() -> io::Result<UnixStream> {
    use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    let (children, wake) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, wake)?;
    let unread = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM] {
        signal_hook::flag::register(signal, Arc::clone(&unread))?;
    }
    Ok(children)
}

pub(crate) fn open_stdin(request: &Request) -> io::Result<OwnedFd> {
    let Some(path) = &request.stdin else {
        return Ok(std::fs::File::open("/dev/null")?.into());
    };
    let file = crate::plain_file::open(path)?;
    rustix::io::ioctl_fionbio(file.as_fd(), false)?;
    Ok(file.into())
}

/// Collects the ended children and keeps the leader's status.
struct Reaper {
    leader: i32,
    status: Option<i32>,
}

impl Brood for Reaper {
    fn list(&mut self) -> Vec<i32> {
        #[cfg(not(target_os = "linux"))]
        signal_group(self.leader, rustix::process::Signal::KILL);
        children::list()
    }

    fn reap(&mut self, collected: &mut dyn FnMut(Pid, WaitStatus)) -> bool {
        // Bounded: a tree that forks and dies as fast as it is reaped would keep us from killing it.
        for _ in 0..256 {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.leader => {
                    self.status = Some(status.as_raw());
                }
                Ok(Some((pid, status))) => collected(pid, status),
                Ok(None) => return false,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        false
    }

    fn below(&self, table: &[Proc]) -> Vec<Proc> {
        below_us(table)
    }

    /// A subreaper without a child has no descendant at all, and the kernel says when it has none.
    fn empty_lists(&self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use triphammer_model::config::NetworkChoice;

    use super::*;
    use crate::containment::{Containment, Fence, Hold, TreeLimits};

    #[test]
    fn frames_round_trip() {
        for frame in [
            Frame::Starting,
            Frame::ExecFailed(2),
            Frame::StdinFailed(13),
            Frame::NotContained(Part::Network, 1),
            Frame::Ended(0x7f00),
            Frame::Done { killed: 3, survivors: 1 },
        ] {
            assert_eq!(Frame::decode(frame.encode()), Some(frame));
        }
        assert_eq!(Frame::decode([0; FRAME]), None);
    }

    #[test]
    fn reads_its_command_line() {
        let read = |args: &[&str]| Request::read(args.iter().map(OsString::from));
        let request = read(&["--dir", "/w", "--stdin", "b", "--", "sh", "--", "-c"]).unwrap();
        assert_eq!(request.program, "sh");
        assert_eq!(request.args, ["--", "-c"]);
        assert_eq!(request.stdin.unwrap().as_os_str(), "b");
        let fenced = read(&[
            "--dir",
            "/w",
            "--fence",
            "landlock",
            "--writable",
            "/w",
            "--network",
            "none",
            "--",
            "sh",
        ])
        .unwrap();
        let fence = Fence { hold: Hold::Landlock, writable: vec!["/w".into()], read_only: Vec::new() };
        let whole =
            Containment { fence: Some(fence), network: NetworkChoice::None, limits: TreeLimits::NONE };
        let mut again = Orders::default();
        let mut args = whole.to_args(None).into_iter();
        while let Some(flag) = args.next() {
            again.take(&flag, || args.next()).unwrap();
        }
        assert_eq!(fenced.orders, again);
        for bad in [
            &["--dir", "/w", "--writable", "/w", "--", "sh"][..],
            &[],
            &["--dir", "/w"],
            &["--", "sh"],
            &["--dir", "/w", "--"],
            &["--x", "--", "sh"],
        ] {
            assert!(read(bad).is_none());
        }
    }
}
