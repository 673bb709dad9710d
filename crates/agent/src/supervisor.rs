//! Runs a process tree to its verified end, on one thread.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use triphammer_model::process::{Captured, Ear, LaunchError, WaitStatus};
use triphammer_model::redact::RedactStream;
use triphammer_model::{Cancel, Ended, Launch, Redactor, Supervisor};

use crate::capped_log::{CappedLog, Tail};
use crate::containment::{Containment, GROUP, Groups, Part};
use crate::pid_file::{self, KEEPER_VAR};
use crate::process_tree::{self, KILL_LIMIT};
use crate::shim::{self, Frame, command};
use crate::subreaper;

/// Asked for of each pipe: fewer and larger reads, whatever the program's own buffering.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 1024 * 1024;
/// One read's buffer.
const READ_SIZE: usize = 256 * 1024;
/// How often a raised [`Cancel`] is looked for.
const CANCEL_POLL: Duration = Duration::from_millis(50);
/// How often the shim is looked at: a hostile program can stop it.
const SHIM_LOOK: Duration = Duration::from_secs(1);
/// How long a shim may take to end once its channel is closed, killing included.
const SHIM_END: Duration = KILL_LIMIT.saturating_add(Duration::from_secs(5));
/// How long something harmless may take.
const TRIAL: Duration = Duration::from_secs(20);
/// What is read after everything is dead: what the pipe still holds. More can only come from somebody outside of the
/// tree who was handed the pipe.
const DRAIN_LIMIT: u64 = 16 * 1024 * 1024;

/// Launches through a shim and watches over it.
#[derive(Clone, Debug)]
pub struct ProcessSupervisor {
    shim: PathBuf,
    redactor: Redactor,
    containment: Containment,
}

impl ProcessSupervisor {
    /// A supervisor whose shim is the program at `shim`, called as `shim __shim ...`; see [`crate::shim::main`].
    pub const fn new(shim: PathBuf, redactor: Redactor) -> Self {
        Self { shim, redactor, containment: Containment::NONE }
    }

    /// A supervisor whose shim is this very binary, even when its file was replaced meanwhile.
    pub fn of_this_binary(redactor: Redactor) -> io::Result<Self> {
        // The child that opens this link is still a copy of us, so it names the file we were started from.
        let shim = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        Ok(Self { shim, redactor, containment: Containment::NONE })
    }

    /// Starts something harmless in `dir`, to see whether what holds it can be laid here. Its log is written to the
    /// folder `scratch` and removed again.
    ///
    /// # Errors
    /// Why it cannot, in one line.
    pub fn try_out(&self, dir: &Path, env: &[(OsString, OsString)], scratch: &Path) -> Result<(), String> {
        let log = scratch.join("trial.log");
        let launch = Launch {
            argv: ["sh", "-c", ":"].map(Into::into).to_vec(),
            dir: dir.to_owned(),
            env: env.to_vec(),
            stdin: None,
            stdout: log.clone(),
            stderr: log.clone(),
            log_cap: 1 << 16,
            tail_cap: 300,
            timeout: Some(TRIAL),
            idle: None,
            grace: Duration::from_secs(1),
            pid_file: None,
        };
        let ended = self.run(&launch, &Cancel::new());
        let _ = std::fs::remove_file(&log);
        match ended {
            Ok(ended) if ended.wait.is_success() => Ok(()),
            Ok(ended) => {
                let said = String::from_utf8_lossy(&ended.stdout.tail);
                Err(format!("{}, {}", ended.wait, said.trim()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The same, but what it launches is held by this.
    #[must_use]
    pub fn contained(&self, containment: Containment) -> Self {
        Self { containment, ..self.clone() }
    }
}

impl Supervisor for ProcessSupervisor {
    fn run_heard(&self, launch: &Launch, cancel: &Cancel, ear: Ear<'_>) -> Result<Ended, LaunchError> {
        let fail = |what: String, source| LaunchError::Supervision { program: program(launch), what, source };
        let mut streams = Streams::open(launch, &self.redactor, ear)?;
        let started = Instant::now();
        if cancel.is_raised() {
            let wait = WaitStatus::Cancelled { code: None, signal: None };
            return streams.finish(launch, wait, Duration::ZERO, 0);
        }
        // Removed at the end of this function, when nothing lives in them.
        let groups = self.groups().map_err(|e| fail(Part::Limits.attempt().to_owned(), e))?;
        let (mut shim, control) = match self.spawn(launch, &mut streams, groups.as_ref()) {
            Ok(pair) => pair,
            Err(Spawn::NotStarted(errno)) => {
                return streams.finish(launch, WaitStatus::NotStarted { errno }, started.elapsed(), 0);
            }
            Err(Spawn::Failed(what, source)) => return Err(fail(what, source)),
        };
        let pid = i32::try_from(shim.id()).unwrap_or(0);
        let mut watch = Watch::new(launch, control, pid);
        let begun = pid_file_and_go(launch, &mut watch);
        if begun.is_ok() {
            watch.attend(&mut streams, cancel);
        }
        // Closing the channel tells a shim that still lives to kill everything.
        let Watch { control, leader, done, cause, last, .. } = watch;
        drop(control);
        let shim_status = {
            // One step for a sweep in another thread: else the number could go to a new shim in between.
            let mut shims = subreaper::shims();
            let status = end_of(&mut shim);
            shims.remove(&pid);
            status
        };
        let (mut killed, mut survivors) = (0, 0);
        // Its word counts only where it ended by itself, and well.
        let ended_well = shim_status.as_ref().is_ok_and(ExitStatus::success);
        match done.filter(|_| ended_well) {
            Some((k, s)) => (killed, survivors) = (k, s),
            None if begun.is_ok() => {
                let ended = subreaper::sweep(pid);
                killed = ended.killed;
                survivors = ended.survivors.len();
            }
            None => {}
        }
        streams.drain();
        begun?;
        if survivors > 0 {
            return Err(fail(
                format!("{survivors} of its processes survived being killed; end them by hand"),
                io::Error::other("a process in uninterruptible sleep, or one of another user"),
            ));
        }
        if let Some(path) = &launch.pid_file {
            pid_file::remove(path)
                .map_err(|e| fail(format!("removing the pid file {}", path.display()), e))?;
        }
        let wait = match leader {
            Leader::Ended(status) => ended_as(cause, status),
            Leader::NotStarted(errno) => WaitStatus::NotStarted { errno },
            Leader::StdinFailed(source) => {
                return Err(fail(format!("opening {} as its input", shown(launch.stdin.as_deref())), source));
            }
            Leader::NotContained(part, source) => {
                return Err(fail(part.attempt().to_owned(), source));
            }
            Leader::Running | Leader::Unborn if cause.is_some() || cancel.is_raised() => {
                cause.unwrap_or(Cause::Cancelled).into_status(None, None)
            }
            Leader::Running => WaitStatus::Unknown,
            Leader::Unborn => {
                let how = shim_status.map_or_else(|e| e.to_string(), |s| s.to_string());
                return Err(fail(
                    format!("the shim {} ended before it started anything", self.shim.display()),
                    io::Error::other(how),
                ));
            }
        };
        streams.finish(launch, wait, last.duration_since(started), u32::try_from(killed).unwrap_or(u32::MAX))
    }
}

/// Waits for a shim whose channel is closed, and does not for ever: somebody may have stopped it.
fn end_of(shim: &mut Child) -> io::Result<ExitStatus> {
    let until = Instant::now() + SHIM_END;
    while Instant::now() < until {
        if let Some(status) = shim.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    shim.kill()?;
    shim.wait()
}

/// Why no shim runs.
enum Spawn {
    /// The launch itself is impossible.
    NotStarted(Option<i32>),
    /// The supervision is.
    Failed(String, io::Error),
}

impl ProcessSupervisor {
    fn groups(&self) -> io::Result<Option<Groups>> {
        static LAUNCHES: AtomicU64 = AtomicU64::new(0);
        let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
        Groups::make(&self.containment.limits, &format!("{GROUP}{}-{number}", std::process::id()))
    }

    fn spawn(
        &self,
        launch: &Launch,
        streams: &mut Streams<'_>,
        groups: Option<&Groups>,
    ) -> Result<(Child, UnixStream), Spawn> {
        let failed = |what: &'static str| move |e: io::Error| Spawn::Failed(what.to_owned(), e);
        let (control, theirs) = UnixStream::pair().map_err(failed("making its control channel"))?;
        control.set_nonblocking(true).map_err(failed("making its control channel"))?;
        let mut command = Command::new(&self.shim);
        command.arg0("triphammer").arg(shim::COMMAND).arg("--dir").arg(&launch.dir);
        if let Some(stdin) = &launch.stdin {
            command.arg("--stdin").arg(stdin);
        }
        command.args(self.containment.to_args(groups));
        command.arg("--").args(&launch.argv).env_clear().envs(launch.env.iter().map(|(k, v)| (k, v)));
        if let Some(path) = &launch.pid_file {
            command.env(KEEPER_VAR, path);
        }
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
        streams.connect(&mut command).map_err(failed("making its pipes"))?;
        let mut shims = subreaper::shims();
        match command.spawn() {
            Ok(child) => {
                shims.insert(i32::try_from(child.id()).unwrap_or(0));
                Ok((child, control))
            }
            // Arguments or environment that are too long for the system, or that hold a NUL.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) => {
                Err(Spawn::NotStarted(e.raw_os_error()))
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput && e.raw_os_error().is_none() => {
                Err(Spawn::NotStarted(Some(rustix::io::Errno::INVAL.raw_os_error())))
            }
            Err(e) => Err(Spawn::Failed(format!("starting the shim {}", self.shim.display()), e)),
        }
        // Dropping the command closes our copies of the pipes' writing ends.
    }
}

fn pid_file_and_go(launch: &Launch, watch: &mut Watch) -> Result<(), LaunchError> {
    if let Some(path) = &launch.pid_file {
        pid_file::write(path, watch.shim).map_err(|source| LaunchError::Supervision {
            program: program(launch),
            what: format!("writing the pid file {}", path.display()),
            source,
        })?;
    }
    watch.tell(command::GO);
    Ok(())
}

fn program(launch: &Launch) -> String {
    launch.argv.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned())
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(|| "nothing".to_owned(), |p| p.display().to_string())
}

/// Why the supervisor ended the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    TimedOut,
    Idle,
    Cancelled,
    /// A log could not be written; the error is reported instead of a status.
    Broken,
}

impl Cause {
    const fn into_status(self, code: Option<i32>, signal: Option<i32>) -> WaitStatus {
        match self {
            Self::TimedOut => WaitStatus::TimedOut { code, signal },
            Self::Idle => WaitStatus::Idle { code, signal },
            Self::Cancelled => WaitStatus::Cancelled { code, signal },
            Self::Broken => WaitStatus::Unknown,
        }
    }
}

fn ended_as(cause: Option<Cause>, raw: i32) -> WaitStatus {
    let status = ExitStatus::from_raw(raw);
    match cause {
        Some(cause) => cause.into_status(status.code(), status.signal()),
        None => match (status.code(), status.signal()) {
            (Some(code), _) => WaitStatus::Exited { code },
            (None, Some(signal)) => WaitStatus::Signalled { signal },
            (None, None) => WaitStatus::Unknown,
        },
    }
}

/// What is known of the leader.
#[derive(Debug)]
enum Leader {
    /// The shim has not started it yet.
    Unborn,
    Running,
    Ended(i32),
    NotStarted(Option<i32>),
    StdinFailed(io::Error),
    NotContained(Part, io::Error),
}

/// How far the ending of the tree is.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    /// TERM was sent; KILL follows then.
    Terming(Instant),
    /// KILL was sent, or the leader ended by itself; the shim has until then to say that all is dead.
    Killing(Instant),
}

/// The conversation with one shim.
struct Watch<'a> {
    launch: &'a Launch,
    control: UnixStream,
    shim: i32,
    leader: Leader,
    done: Option<(usize, usize)>,
    closed: bool,
    cause: Option<Cause>,
    phase: Phase,
    partial: Vec<u8>,
    start: Instant,
    /// The last sign of life of the leader: when it ended, once it has.
    last: Instant,
    noise: Instant,
    looked: Instant,
}

impl<'a> Watch<'a> {
    fn new(launch: &'a Launch, control: UnixStream, shim: i32) -> Self {
        let now = Instant::now();
        Self {
            launch,
            control,
            shim,
            leader: Leader::Unborn,
            done: None,
            closed: false,
            cause: None,
            phase: Phase::Running,
            partial: Vec::new(),
            start: now,
            last: now,
            noise: now,
            looked: now,
        }
    }

    /// A shim that is gone shows by its closed channel.
    fn tell(&mut self, byte: u8) {
        let _ = self.control.write_all(&[byte]);
    }

    /// Reads, tells and waits until the shim is done or gone.
    fn attend(&mut self, streams: &mut Streams<'_>, cancel: &Cancel) {
        let mut wait = Duration::ZERO;
        while self.done.is_none() && !self.closed {
            let (spoken, ready) = self.poll(streams, wait);
            if streams.read(ready) {
                self.noise = Instant::now();
            }
            if spoken {
                self.listen();
            }
            // After listening: what has ended, or was heard, while this process itself slept is not late.
            wait = self.escalate(streams, cancel);
        }
        if matches!(self.leader, Leader::Running | Leader::Unborn) {
            self.last = Instant::now();
        }
    }

    /// Does what is due and returns how long nothing else will be.
    fn escalate(&mut self, streams: &Streams<'_>, cancel: &Cancel) -> Duration {
        let now = Instant::now();
        let mut next = now + CANCEL_POLL;
        match self.phase {
            Phase::Running => {
                let timeout = self.launch.timeout.and_then(|d| self.start.checked_add(d));
                let idle = self.launch.idle.and_then(|d| self.noise.checked_add(d));
                let due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
                let cause = if cancel.is_raised() {
                    Some(Cause::Cancelled)
                } else if streams.broken.is_some() {
                    Some(Cause::Broken)
                } else if due(timeout) {
                    Some(Cause::TimedOut)
                } else if due(idle) {
                    Some(Cause::Idle)
                } else {
                    None
                };
                if let Some(cause) = cause {
                    self.cause = Some(cause);
                    if cancel.is_urgent() || cause == Cause::Broken {
                        self.kill(now);
                    } else {
                        self.tell(command::TERM);
                        // A grace beyond all clocks is as good as a day.
                        let until = now.checked_add(self.launch.grace);
                        self.phase = Phase::Terming(until.unwrap_or(now + Duration::from_hours(24)));
                    }
                } else {
                    next = [timeout, idle].into_iter().flatten().fold(next, Instant::min);
                }
            }
            Phase::Terming(until) => {
                if now >= until || cancel.is_urgent() || streams.broken.is_some() {
                    self.kill(now);
                } else {
                    next = next.min(until);
                }
            }
            Phase::Killing(until) if now >= until => {
                // The shim does not do its work any more; without it the rest is ours.
                self.signal_shim(Signal::KILL);
            }
            Phase::Killing(_) => {}
        }
        if now.duration_since(self.looked) >= SHIM_LOOK {
            self.looked = now;
            if process_tree::read(self.shim).is_some_and(|p| matches!(p.state, b'T' | b't')) {
                self.signal_shim(Signal::CONT);
            }
        }
        next.saturating_duration_since(now)
    }

    fn kill(&mut self, now: Instant) {
        self.tell(command::KILL);
        self.phase = Phase::Killing(now + KILL_LIMIT + Duration::from_secs(2));
    }

    /// The shim is our child and not waited for yet, so its number is its own.
    fn signal_shim(&self, signal: Signal) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.shim) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits for the channel or a pipe; says whether the channel is ready, and which pipes.
    fn poll(&self, streams: &Streams<'_>, wait: Duration) -> (bool, [bool; 2]) {
        let pipes = [streams.out.pipe.as_ref(), streams.err.as_ref().and_then(|e| e.pipe.as_ref())];
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN)];
        fds.extend(pipes.iter().flatten().map(|p| PollFd::new(*p, PollFlags::IN)));
        let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        if poll(&mut fds, Some(&wait)).is_err() {
            return (false, [false; 2]);
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let spoken = ready.next().unwrap_or(false);
        (spoken, pipes.map(|p| p.is_some() && ready.next().unwrap_or(false)))
    }

    fn listen(&mut self) {
        let mut bytes = [0; 8 * shim::FRAME];
        match self.control.read(&mut bytes) {
            Ok(0) => self.closed = true,
            Ok(n) => self.partial.extend_from_slice(&bytes[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.closed = true,
        }
        while let Some((frame, rest)) = self.partial.split_first_chunk::<{ shim::FRAME }>() {
            let frame = Frame::decode(*frame);
            self.partial = rest.to_vec();
            let errno = |n: i32| (n != 0).then_some(n);
            let now = Instant::now();
            match frame {
                Some(Frame::Starting) => self.leader = Leader::Running,
                Some(Frame::ExecFailed(n)) => self.leader = Leader::NotStarted(errno(n)),
                Some(Frame::StdinFailed(n)) => {
                    let error = errno(n).map_or_else(
                        || io::Error::other("it is not a plain file"),
                        io::Error::from_raw_os_error,
                    );
                    self.leader = Leader::StdinFailed(error);
                }
                Some(Frame::NotContained(part, n)) => {
                    let error = errno(n).map_or_else(
                        || io::Error::other("the system cannot hold it"),
                        io::Error::from_raw_os_error,
                    );
                    self.leader = Leader::NotContained(part, error);
                }
                Some(Frame::Ended(raw)) => {
                    self.leader = Leader::Ended(raw);
                    self.last = now;
                    self.phase = Phase::Killing(now + KILL_LIMIT + Duration::from_secs(2));
                }
                Some(Frame::Done { killed, survivors }) => {
                    let count = |n: i32| usize::try_from(n).unwrap_or(0);
                    self.done = Some((count(killed), count(survivors)));
                }
                // Not our shim: as good as closed.
                None => self.closed = true,
            }
        }
    }
}

/// One stream on its way from a pipe to the disk.
struct Stream<'a> {
    /// Hears what is kept.
    ear: Option<Ear<'a>>,
    pipe: Option<PipeReader>,
    log: CappedLog,
    redact: RedactStream,
    tail: Tail,
    bytes: u64,
}

/// Both streams, or one for both.
struct Streams<'a> {
    out: Stream<'a>,
    err: Option<Stream<'a>>,
    buffer: Vec<u8>,
    settled: Vec<u8>,
    broken: Option<io::Error>,
}

impl<'a> Streams<'a> {
    fn open(launch: &Launch, redactor: &Redactor, ear: Ear<'a>) -> Result<Self, LaunchError> {
        let open = |path: &Path, ear: Option<Ear<'a>>| {
            let log = CappedLog::create(path, launch.log_cap).map_err(|source| LaunchError::Supervision {
                program: program(launch),
                what: format!("opening its log {}", path.display()),
                source,
            })?;
            let (redact, tail) = (redactor.stream(), Tail::new(launch.tail_cap));
            Ok(Stream { ear, pipe: None, log, redact, tail, bytes: 0 })
        };
        let out = open(&launch.stdout, Some(ear))?;
        let err = if launch.stderr == launch.stdout { None } else { Some(open(&launch.stderr, None)?) };
        Ok(Self { out, err, buffer: vec![0; READ_SIZE], settled: Vec::new(), broken: None })
    }

    fn connect(&mut self, command: &mut Command) -> io::Result<()> {
        let pipe = || -> io::Result<_> {
            let (ours, theirs) = io::pipe()?;
            // A smaller pipe is slower, no more.
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(&ours, PIPE_SIZE);
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((ours, theirs))
        };
        let (ours, theirs) = pipe()?;
        self.out.pipe = Some(ours);
        if let Some(err) = &mut self.err {
            command.stdout(theirs);
            let (ours, theirs) = pipe()?;
            err.pipe = Some(ours);
            command.stderr(theirs);
        } else {
            command.stdout(theirs.try_clone()?).stderr(theirs);
        }
        Ok(())
    }

    /// Reads once from each ready pipe; whether anything came.
    fn read(&mut self, ready: [bool; 2]) -> bool {
        let Self { out, err, buffer, settled, broken } = self;
        let mut any = false;
        for (stream, ready) in [Some(out), err.as_mut()].into_iter().zip(ready) {
            if let Some(stream) = stream
                && ready
            {
                any |= stream.read(buffer, settled, broken) > 0;
            }
        }
        any
    }

    /// With everything dead, takes what the pipes still hold.
    fn drain(&mut self) {
        let Self { out, err, buffer, settled, broken } = self;
        for stream in [Some(out), err.as_mut()].into_iter().flatten() {
            let limit = stream.bytes.saturating_add(DRAIN_LIMIT);
            while stream.bytes < limit && stream.read(buffer, settled, broken) > 0 {}
            stream.pipe = None;
        }
    }

    fn finish(
        self,
        launch: &Launch,
        wait: WaitStatus,
        duration: Duration,
        killed: u32,
    ) -> Result<Ended, LaunchError> {
        let fail = |source| LaunchError::Supervision {
            program: program(launch),
            what: "writing its output to disk".to_owned(),
            source,
        };
        if let Some(error) = self.broken {
            return Err(fail(error));
        }
        let stdout = self.out.finish().map_err(fail)?;
        let stderr = self.err.map_or_else(|| Ok(Captured::default()), Stream::finish).map_err(fail)?;
        Ok(Ended { wait, duration, stdout, stderr, killed })
    }
}

impl Stream<'_> {
    /// Reads once; at the end of the stream the pipe is let go. Returns how many bytes came.
    fn read(&mut self, buffer: &mut [u8], settled: &mut Vec<u8>, broken: &mut Option<io::Error>) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(0) => {
                self.pipe = None;
                0
            }
            Ok(n) => {
                self.bytes += n as u64;
                settled.clear();
                self.redact.push(&buffer[..n], settled);
                self.keep(settled, broken);
                n
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(e) => {
                self.pipe = None;
                broken.get_or_insert(e);
                0
            }
        }
    }

    /// After the first failed write nothing more is written, but the pipe is still emptied.
    fn keep(&mut self, settled: &[u8], broken: &mut Option<io::Error>) {
        self.tail.push(settled);
        if let Some(ear) = &mut self.ear {
            ear(settled);
        }
        if broken.is_none()
            && let Err(e) = self.log.write(settled)
        {
            *broken = Some(e);
        }
    }

    fn finish(mut self) -> io::Result<Captured> {
        let mut rest = Vec::new();
        self.redact.finish(&mut rest);
        self.tail.push(&rest);
        if let Some(ear) = &mut self.ear {
            ear(&rest);
        }
        self.log.write(&rest)?;
        self.log.finish()?;
        Ok(Captured { bytes: self.bytes, tail: self.tail.finish() })
    }
}
