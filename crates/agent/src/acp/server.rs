//! The server's process: a child of ours, spoken to by threads that read and write for us, so that neither a server that
//! does not read nor one that does not write can hold us up.

use std::io::{self, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::lines::{self, Line};

/// A longer line is passed over.
const LONGEST: usize = 16 << 20;
/// How often it is read ahead.
const AHEAD: usize = 8;
/// Bytes that wait for a server that does not read them.
const WAITING: usize = 64 << 20;
/// How often a child is looked after that was asked to end.
const LOOK: Duration = Duration::from_millis(5);

/// Something that we have to see to.
#[derive(Debug)]
pub(super) enum Happening {
    /// The server said something.
    Said(Line),
    /// The server closed its output.
    Closed,
    /// We are asked to end.
    Asked,
}

/// Both directions to a server.
pub(super) struct Link {
    /// What happens, as much at a time as was read at a time: small messages come by the thousand.
    pub(super) incoming: Receiver<Vec<Happening>>,
    pub(super) outgoing: Outgoing,
}

/// What is on its way to a server.
pub(super) struct Outgoing {
    /// Missing when nothing more is sent.
    lines: Option<Sender<Vec<u8>>>,
    waiting: Arc<AtomicUsize>,
}

impl Outgoing {
    /// A queue, for whoever writes: the lines, and the count of bytes that wait, to be lowered by what was written.
    pub(super) fn new() -> (Self, Receiver<Vec<u8>>, Arc<AtomicUsize>) {
        let (lines, queue) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        (Self { lines: Some(lines), waiting: Arc::clone(&waiting) }, queue, waiting)
    }

    /// Sends a line. False where the server has not read for so long that no more is kept for it. One that is gone is
    /// heard of by the end of what it says.
    pub(super) fn send(&self, line: Vec<u8>) -> bool {
        let Some(lines) = &self.lines else { return true };
        let bytes = line.len();
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before.saturating_add(bytes) > WAITING {
            return false;
        }
        let _ = lines.send(line);
        true
    }

    /// Nothing more comes.
    pub(super) fn close(&mut self) {
        self.lines = None;
    }
}

/// The process.
pub(super) struct Server(Child);

impl Server {
    /// Starts it in the current folder. What it says on standard error goes where ours goes.
    pub(super) fn start(argv: &[String]) -> io::Result<(Self, Link)> {
        let (tell, incoming) = sync_channel(AHEAD);
        listen_for_signals(tell.clone())?;
        let mut command = Command::new(argv.first().map_or("", String::as_str));
        command.args(argv.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (outgoing, queue, waiting) = Outgoing::new();
        if let Some(stdin) = child.stdin.take() {
            Builder::new().name("to-server".to_owned()).spawn(move || write(stdin, &queue, &waiting))?;
        }
        if let Some(stdout) = child.stdout.take() {
            let reader = BufReader::with_capacity(64 << 10, stdout);
            Builder::new().name("from-server".to_owned()).spawn(move || read(reader, &tell))?;
        }
        Ok((Self(child), Link { incoming, outgoing }))
    }

    /// Its exit status, where it has ended by then.
    pub(super) fn ended_within(&mut self, wait: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + wait;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listen_for_signals(tell: SyncSender<Vec<Happening>>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let listen = move || {
        for _ in signals.forever() {
            if tell.send(vec![Happening::Asked]).is_err() {
                return;
            }
        }
    };
    Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

fn read(mut reader: BufReader<std::process::ChildStdout>, tell: &SyncSender<Vec<Happening>>) {
    let mut said = Vec::new();
    while let Ok(Some(line)) = lines::next(&mut reader, LONGEST) {
        said.push(Happening::Said(line));
        // Whole lines that are there already go along; for others nothing waits.
        if !reader.buffer().contains(&b'\n') && tell.send(std::mem::take(&mut said)).is_err() {
            return;
        }
    }
    said.push(Happening::Closed);
    let _ = tell.send(said);
}

fn write(mut stdin: ChildStdin, queue: &Receiver<Vec<u8>>, waiting: &AtomicUsize) {
    for line in queue {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            return;
        }
        waiting.fetch_sub(line.len(), Ordering::Relaxed);
    }
}
