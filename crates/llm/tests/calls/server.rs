//! A server that answers one scripted thing a connection, and keeps what it was sent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use serde_json::Value;

/// What one connection gets.
pub(crate) enum Script {
    /// An answer: status, further header lines, body.
    Reply(u16, &'static str, String),
    /// These bytes, and the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, until the client goes.
    Hang,
    /// The beginning of an answer, then one byte after the other without end.
    Drip,
}

/// What one connection sent.
pub(crate) struct Received {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) url: String,
    received: Receiver<Received>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(scripts: Vec<Script>) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port"), scripts)
    }

    pub(crate) fn on(listener: TcpListener, scripts: Vec<Script>) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, received) = mpsc::channel();
        let serve = move || {
            for script in scripts {
                let (stream, _) = listener.accept().expect("a connection");
                answer(stream, script, &sender);
            }
        };
        Self { url, received, thread: Some(std::thread::spawn(serve)) }
    }

    /// The next request.
    pub(crate) fn next(&self) -> Received {
        self.received.recv().expect("a request")
    }

    /// Waits until every script was played.
    pub(crate) fn end(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server's thread");
        }
    }
}

fn answer(mut stream: TcpStream, script: Script, sender: &Sender<Received>) {
    let received = receive(&mut stream);
    let _ = sender.send(received);
    // Whether the client is still there does not matter: it may have had enough.
    match script {
        Script::Reply(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
        Script::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
        }
        Script::Hang => {
            let _ = stream.read(&mut [0]);
        }
        Script::Drip => {
            let mut more = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
            while more.is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(5));
                more = stream.write_all(b" ");
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    // What is still under way is taken in, so that the end is an end and no reset.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

fn receive(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if bytes.len() - end >= length.unwrap_or(0) {
                let body = serde_json::from_slice(&bytes[end..]).unwrap_or(Value::Null);
                return Received { head, body };
            }
        }
        let count = stream.read(&mut piece).expect("a request");
        assert!(count > 0, "the request is cut off");
        bytes.extend_from_slice(&piece[..count]);
    }
}
