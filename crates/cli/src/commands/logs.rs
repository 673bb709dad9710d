//! `triphammer logs`: what an attempt's agent printed, whole or as it comes.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use triphammer_model::{Attempt, Redactor};
use triphammer_store::{RunDir, is_live, open_regular};

use crate::args::LogsArgs;
use crate::commands::show::{attempts, no_such_attempt};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

/// How often a live run is looked at again.
const POLL: Duration = Duration::from_millis(200);
/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

pub(crate) fn logs(args: &LogsArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let dir = runs.open(&id, Redactor::default());
    let live = || is_live(&dir.journal());
    let known = attempts(&dir);
    let first = match args.attempt {
        Some(number) if known.contains(&number) => number,
        // A live run may yet begin it.
        Some(number) if args.follow && live() => number,
        Some(number) => return Err(Failure::refused(no_such_attempt(&dir, number))),
        None => match known.last() {
            Some(last) => *last,
            None if args.follow && live() => 1,
            None => {
                return Err(Failure::refused(format!("run {id} has no agent output: no attempt was begun")));
            }
        },
    };
    let mut reader =
        Reader { json: args.home.json, dir: &dir, attempt: first, streams: streams(&dir, first) };
    let printed = if args.follow { reader.follow(args.attempt.is_some(), live) } else { reader.drain() };
    match printed {
        // A reader that went away has seen what it wanted.
        Ok(()) | Err(Stop::Closed) => Ok(Exit::Done),
        Err(Stop::Unread(path, error)) => {
            Err(Failure::refused(format!("reading `{}`: {error}", path.display())))
        }
    }
}

/// Why printing ended early.
enum Stop {
    /// Nobody reads our output any more.
    Closed,
    /// A log cannot be read.
    Unread(PathBuf, io::Error),
}

/// Prints the streams of one attempt after the other.
struct Reader<'a> {
    json: bool,
    dir: &'a RunDir,
    attempt: u32,
    streams: [Stream; 2],
}

fn streams(dir: &RunDir, attempt: u32) -> [Stream; 2] {
    let folder = dir.attempt(Attempt::new(attempt));
    [Stream::new("stdout", folder.join("stdout.log")), Stream::new("stderr", folder.join("stderr.log"))]
}

impl Reader<'_> {
    /// Everything that is there now: standard output, then standard error.
    fn drain(&mut self) -> Result<(), Stop> {
        let (json, attempt) = (self.json, self.attempt);
        for stream in &mut self.streams {
            stream.print(json, attempt)?;
        }
        Ok(())
    }

    /// What comes, until the run is at rest or, where one attempt was asked for, another one begins.
    fn follow(&mut self, only_this: bool, live: impl Fn() -> bool) -> Result<(), Stop> {
        loop {
            // Asked before reading, so that what was written until the run's end is still read.
            let (going_on, newer) = (live(), attempts(self.dir).into_iter().find(|n| *n > self.attempt));
            self.drain()?;
            match newer {
                Some(_) if only_this => return Ok(()),
                Some(next) => {
                    self.attempt = next;
                    self.streams = streams(self.dir, next);
                    if !self.json {
                        say::talk(&format!("-- attempt {next}"));
                    }
                }
                None if !going_on => return Ok(()),
                None => std::thread::sleep(POLL),
            }
        }
    }
}

/// One log and how far it was printed.
struct Stream {
    name: &'static str,
    path: PathBuf,
    inode: u64,
    done: u64,
}

impl Stream {
    const fn new(name: &'static str, path: PathBuf) -> Self {
        Self { name, path, inode: 0, done: 0 }
    }

    /// Prints what was added since the last time; a log that is not there yet has nothing to say.
    fn print(&mut self, json: bool, attempt: u32) -> Result<(), Stop> {
        let unread = |error| Stop::Unread(self.path.clone(), error);
        let mut file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unread(error)),
        };
        let meta = file.metadata().map_err(unread)?;
        if meta.ino() != self.inode || meta.len() < self.done {
            // Another try began with a log of its own.
            self.inode = meta.ino();
            self.done = 0;
        }
        file.seek(SeekFrom::Start(self.done)).map_err(unread)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = file.read(&mut chunk).map_err(unread)?;
            if n == 0 {
                return Ok(());
            }
            let whole = whole_characters(&chunk[..n]);
            // What is left of a character comes with the next bytes; a lone rest at the end is printed as it is.
            let take = if whole == 0 { n } else { whole };
            emit(self.name, &chunk[..take], json, attempt).map_err(|_| Stop::Closed)?;
            self.done += take as u64;
            file.seek(SeekFrom::Start(self.done)).map_err(unread)?;
        }
    }
}

fn emit(stream: &str, bytes: &[u8], json: bool, attempt: u32) -> io::Result<()> {
    if json {
        let text = String::from_utf8_lossy(bytes);
        let object = json!({"schema": 1, "attempt": attempt, "stream": stream, "text": text});
        say::raw(format!("{object}\n").as_bytes())
    } else {
        say::raw(bytes)
    }
}

/// How many of `bytes` end with a whole character: a cut through one would be printed as two wrong ones.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let cut = last.map_or(0, |chunk| chunk.invalid().len());
    // An invalid rest shorter than a character at the very end may be one that is still coming.
    if cut < 4 && std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none()) {
        bytes.len() - cut
    } else {
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn characters_are_not_cut() {
        let text = "añ€😀".as_bytes();
        for (end, whole) in [(1, 1), (2, 1), (3, 3), (5, 3), (6, 6), (7, 6), (9, 6), (10, 10)] {
            assert_eq!(super::whole_characters(&text[..end]), whole, "{end}");
        }
        assert_eq!(super::whole_characters(b"a\xffb"), 3);
    }
}
