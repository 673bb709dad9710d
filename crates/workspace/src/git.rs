//! The `git` command, run so that nothing in a repository can make it run code, and so that it always ends.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a question to git may take. A hostile repository can make git wait for ever, on a FIFO for instance.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// `git` with an environment and options under which a repository's own configuration runs no code: no hooks, no
/// file system monitor, no filters of the user's, no fetching, no prompts. What a caller runs on a repository that
/// an agent could write must add `--no-ext-diff --no-textconv` where it diffs.
pub fn git() -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_ASKPASS", "true")
        .env("GIT_EDITOR", "true")
        .env("LC_ALL", "C")
        .arg("--no-pager")
        .args(["-c", "core.fsmonitor=false"])
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(["-c", "core.attributesFile=/dev/null"])
        .args(["-c", "core.untrackedCache=false"])
        .args(["-c", "safe.directory=*"])
        .args(["-c", "protocol.allow=never"])
        .args(["-c", "protocol.file.allow=always"])
        .args(["-c", "gc.auto=0"])
        .args(["-c", "maintenance.auto=false"])
        .stdin(Stdio::null());
    command
}

/// `git` in the folder `dir`, see [`git`].
pub(crate) fn git_in(dir: &Path) -> Command {
    let mut command = git();
    command.arg("-C").arg(dir);
    command
}

/// Runs `command` to its end and takes what it prints; kills it when it takes longer than `patience`.
pub(crate) fn output_within(command: Command, patience: Duration) -> io::Result<Output> {
    finish_within(command, None, patience, read_all)
}

/// The same for a command that reads `input`.
pub(crate) fn exchange_within(command: Command, input: Vec<u8>, patience: Duration) -> io::Result<Output> {
    finish_within(command, Some(input), patience, read_all)
}

/// The same, with only those lines of what the command prints that are `wanted`: a large repository has more to say than
/// anybody wants to hold.
pub(crate) fn sift_within(
    command: Command,
    patience: Duration,
    wanted: impl Fn(&[u8]) -> bool + Send + 'static,
) -> io::Result<Output> {
    let sift = move |stdout| {
        let mut all = Vec::new();
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if wanted(line.strip_suffix(b"\n").unwrap_or(&line)) {
                all.extend_from_slice(&line);
            }
            line.clear();
        }
        Ok(all)
    };
    finish_within(command, None, patience, sift)
}

/// Runs `command` and hands what it prints to `take` as it comes, all that `take` leaves being read and dropped. It is
/// killed when it prints nothing for as long as `patience` lasts; then reading fails.
pub(crate) fn stream_within<T>(
    mut command: Command,
    patience: Duration,
    take: impl FnOnce(&mut dyn Read) -> T,
) -> io::Result<(T, Output)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdout = Chunks::of(child.stdout.take(), patience);
    let stderr = drain(child.stderr.take());
    let taken = take(&mut stdout);
    if let Err(error) = io::copy(&mut stdout, &mut io::sink()) {
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    let stderr = stderr.recv_timeout(patience).unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok((taken, Output { status: end_within(&mut child, patience)?, stdout: Vec::new(), stderr }))
}

/// What a command prints, read so that its silence ends.
struct Chunks {
    coming: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    patience: Duration,
    silent: bool,
}

/// How much is read ahead.
const AHEAD: usize = 4;

impl Chunks {
    fn of(stream: Option<impl Read + Send + 'static>, patience: Duration) -> Self {
        let (send, coming) = mpsc::sync_channel(AHEAD);
        std::thread::spawn(move || {
            let Some(mut stream) = stream else { return };
            loop {
                let mut chunk = vec![0; 1 << 16];
                let read = stream.read(&mut chunk).map(|n| {
                    chunk.truncate(n);
                    chunk
                });
                let is_last = read.as_ref().is_ok_and(Vec::is_empty);
                let is_passing = read.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::Interrupted);
                // Nobody listens any more when the command was given up.
                if is_last || (!is_passing && send.send(read).is_err()) {
                    return;
                }
            }
        });
        Self { coming, chunk: io::Cursor::default(), patience, silent: false }
    }
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.chunk.read(into)?;
        if n > 0 || into.is_empty() {
            return Ok(n);
        }
        // Once it was silent nobody waits again.
        let patience = if self.silent { Duration::ZERO } else { self.patience };
        match self.coming.recv_timeout(patience) {
            Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
            Err(mpsc::RecvTimeoutError::Disconnected) if !self.silent => return Ok(0),
            Err(_) => {
                self.silent = true;
                return Err(no_answer(self.patience));
            }
        }
        self.chunk.read(into)
    }
}

fn no_answer(patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("git gave no answer in {} s", patience.as_secs()))
}

fn finish_within(
    command: Command,
    input: Option<Vec<u8>>,
    patience: Duration,
    take_in: impl FnOnce(ChildStdout) -> io::Result<Vec<u8>> + Send + 'static,
) -> io::Result<Output> {
    let (stdout, output) = take_within(command, input, patience, take_in)?;
    Ok(Output { stdout, ..output })
}

/// The same, with what `take_in` makes of what the command prints.
pub(crate) fn take_within<T: Default + Send + 'static>(
    mut command: Command,
    input: Option<Vec<u8>>,
    patience: Duration,
    take_in: impl FnOnce(ChildStdout) -> io::Result<T> + Send + 'static,
) -> io::Result<(T, Output)> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // In a thread of its own, since the command may answer before it has read everything. One that ends before
        // it has says why by itself.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = listen(child.stdout.take(), take_in);
    let stderr = drain(child.stderr.take());
    let Ok(taken) = stdout.recv_timeout(patience) else {
        child.kill()?;
        child.wait()?;
        return Err(no_answer(patience));
    };
    let taken = taken?;
    let stderr = stderr.recv_timeout(patience).unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok((taken, Output { status: end_within(&mut child, patience)?, stdout: Vec::new(), stderr }))
}

/// Waits for the end of a command that has nothing more to say, which comes at once; or kills it.
fn end_within(child: &mut Child, patience: Duration) -> io::Result<ExitStatus> {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_micros(20);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Err(no_answer(patience));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Reads a stream to its end in a thread of its own.
pub(crate) fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    listen(stream, read_all)
}

fn listen<S: Send + 'static, T: Default + Send + 'static>(
    stream: Option<S>,
    take_in: impl FnOnce(S) -> io::Result<T> + Send + 'static,
) -> mpsc::Receiver<io::Result<T>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let read = stream.map_or_else(|| Ok(T::default()), take_in);
        // Nobody listens any more when the command was given up.
        let _ = send.send(read);
    });
    receive
}

fn read_all(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).map(|_| all)
}

/// The first line of what a command said on stderr, for a message.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rev().find(|l| l.starts_with("fatal:") || l.starts_with("error:"));
    line.or_else(|| text.lines().next()).unwrap_or("it said nothing").to_owned()
}

/// Answers whether git ignores a path, from one git process that is started at the first question.
pub(crate) struct IgnoreAsker {
    root: OsString,
    child: Option<Asked>,
    deaths: u32,
}

/// The process, what it is asked through, and the fields of its answers.
type Asked = (Child, ChildStdin, mpsc::Receiver<Option<Vec<u8>>>);

/// A path that git refuses to judge ends the process; a tree full of them must not cost a process each.
const MAX_DEATHS: u32 = 8;

impl IgnoreAsker {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.as_os_str().to_owned(), child: None, deaths: 0 }
    }

    /// Whether the ignore rules as they are now exclude `path`. Without git, or outside a repository: no.
    pub(crate) fn is_ignored(&mut self, path: &[u8]) -> bool {
        if self.deaths >= MAX_DEATHS {
            return false;
        }
        let answer = self.ask(path);
        if answer.is_none() {
            self.end();
            self.deaths += 1;
        }
        answer.unwrap_or(false)
    }

    fn ask(&mut self, path: &[u8]) -> Option<bool> {
        if self.child.is_none() {
            let mut command = git_in(Path::new(&self.root));
            command.args(["check-ignore", "--no-index", "--stdin", "-z", "--verbose", "--non-matching"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().ok()?;
            let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
            self.child = Some((child, stdin, fields(stdout)));
        }
        let (_, stdin, fields) = self.child.as_mut()?;
        stdin.write_all(path).and_then(|()| stdin.write_all(b"\0")).and_then(|()| stdin.flush()).ok()?;
        // Four fields an answer: source, line, pattern, path.
        let next = || fields.recv_timeout(Duration::from_secs(5)).ok().flatten();
        let (_source, _line, pattern, _path) = (next()?, next()?, next()?, next()?);
        Some(!pattern.is_empty() && !pattern.starts_with(b"!"))
    }

    fn end(&mut self) {
        if let Some((mut child, stdin, _)) = self.child.take() {
            drop(stdin);
            // It is dead already, or dies now; either way it is reaped.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for IgnoreAsker {
    fn drop(&mut self) {
        self.end();
    }
}

fn fields(stdout: ChildStdout) -> mpsc::Receiver<Option<Vec<u8>>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for field in BufReader::new(stdout).split(0) {
            if send.send(field.ok()).is_err() {
                return;
            }
        }
        let _ = send.send(None);
    });
    receive
}

/// The directories below `root` that hold files which its git tracks, each with all those above it; empty outside
/// a repository and without git. The second value says what went wrong where something did.
pub(crate) fn tracked_directories(root: &Path) -> (std::collections::BTreeSet<Vec<u8>>, Option<String>) {
    let mut tracked = std::collections::BTreeSet::new();
    let mut command = git_in(root);
    command.args(["ls-files", "-z"]);
    let output = match output_within(command, PATIENCE) {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return (
                tracked,
                Some("git is not installed: tracked hidden directories are not known".to_owned()),
            );
        }
        Err(error) => return (tracked, Some(format!("git could not list the tracked files: {error}"))),
    };
    for path in output.stdout.split(|b| *b == 0) {
        let (mut dir, _) = crate::root::split(path);
        while !dir.is_empty() && !tracked.contains(dir) {
            tracked.insert(dir.to_vec());
            dir = crate::root::split(dir).0;
        }
    }
    let note = (!output.status.success() && is_repository(root))
        .then(|| format!("git could not list the tracked files: {}", complaint(&output)));
    (tracked, note)
}

/// Whether `path` or a folder above it holds a `.git`.
pub(crate) fn is_repository(path: &Path) -> bool {
    path.ancestors().any(|dir| std::fs::symlink_metadata(dir.join(".git")).is_ok())
}

/// Bytes as an argument.
pub(crate) fn arg(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, args: &[&str]) {
        let status = git_in(dir).args(args).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{args:?}");
    }

    #[test]
    fn knows_what_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &["init", "-q"]);
        std::fs::write(dir.path().join(".gitignore"), "made/\n*.tmp/\n!kept.tmp/\n").unwrap();
        for d in ["made", "a.tmp", "kept.tmp", "src"] {
            std::fs::create_dir(dir.path().join(d)).unwrap();
        }
        let mut asker = IgnoreAsker::new(dir.path());
        for (path, expected) in
            [("made", true), ("a.tmp", true), ("kept.tmp", false), ("src", false), ("made/x", true)]
        {
            assert_eq!(asker.is_ignored(path.as_bytes()), expected, "{path}");
        }
        let none = tempfile::tempdir().unwrap();
        assert!(!IgnoreAsker::new(none.path()).is_ignored(b"made"));
    }

    #[test]
    fn repository_configuration_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), &["init", "-q"]);
        let trap = dir.path().join("trap");
        let script = format!("touch {}", trap.display());
        run(dir.path(), &["config", "core.fsmonitor", &script]);
        std::fs::create_dir(dir.path().join(".x")).unwrap();
        std::fs::write(dir.path().join(".x/f"), "").unwrap();
        run(dir.path(), &["add", "-f", ".x/f"]);
        let (tracked, note) = tracked_directories(dir.path());
        assert_eq!((tracked.into_iter().collect::<Vec<_>>(), note), (vec![b".x".to_vec()], None));
        assert!(!trap.exists());
    }

    const SLEEPERS: [&str; 3] =
        ["exec sleep 1000", "echo begun; exec sleep 1000", "exec >/dev/null 2>&1; exec sleep 1000"];

    fn sh(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn what_is_printed_is_handed_on_whole() {
        let mut count = 0;
        let all = |from: &mut dyn Read| io::copy(from, &mut io::sink()).map(|n| count = n).unwrap();
        let ((), output) =
            stream_within(sh("head -c 3000000 /dev/zero; echo why >&2; exit 3"), PATIENCE, all).unwrap();
        assert_eq!((count, output.status.code(), &*output.stderr), (3_000_000, Some(3), &b"why\n"[..]));
        // Whoever takes little, or nothing, holds nobody up.
        for few in [0, 10] {
            let little = |from: &mut dyn Read| io::copy(&mut from.take(few), &mut io::sink()).unwrap();
            let (took, output) = stream_within(sh("head -c 3000000 /dev/zero"), PATIENCE, little).unwrap();
            assert!(took == few && output.status.success());
        }
    }

    /// A reader that takes the error for its own, and one that asks again, change nothing.
    #[test]
    fn a_command_that_falls_silent_is_ended() {
        for line in SLEEPERS {
            let patience = Duration::from_millis(50);
            let swallow = |from: &mut dyn Read| (0..9).map(|_| from.read(&mut [0; 9]).is_err()).next_back();
            match stream_within(sh(line), patience, swallow) {
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{line}"),
                Ok(_) => panic!("{line}: it was not ended"),
            }
        }
    }

    #[test]
    fn a_command_that_never_ends_is_ended() {
        for line in SLEEPERS {
            let error = output_within(sh(line), Duration::from_millis(50)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{line}");
        }
    }
}
