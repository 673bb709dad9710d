//! The service: its port, its connections, and what it remembers.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, Reply};
use super::request::ModelRequest;
use super::script::{Script, Step};
use super::tools;
use super::wire::{Round, Said, Wire};

/// The model that it lists.
pub const FAKE_MODEL: &str = "fake-1";

/// A model service on loopback, stopped when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    script: Box<dyn Fn(&ModelRequest) -> Step + Send + Sync>,
    requests: Mutex<Vec<ModelRequest>>,
    stopping: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl FakeModel {
    /// A service that asks `script` what to say: a [`Script`]'s [`Script::step`], or any choice of the caller's own.
    ///
    /// # Panics
    /// When no loopback port is to be had.
    pub fn start(script: impl Fn(&ModelRequest) -> Step + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        let address = listener.local_addr().expect("a bound port has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &served));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// A service that says the same steps in order after every prompt.
    pub fn saying(steps: impl IntoIterator<Item = Step>) -> Self {
        let script = Script::new(steps);
        Self::start(move |request| script.step(request))
    }

    /// The address of a service that is down: the port was bound, and is closed.
    ///
    /// # Panics
    /// When no loopback port is to be had.
    pub fn down() -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
        format!("http://{}", listener.local_addr().expect("a bound port has an address"))
    }

    /// Its address, such as `http://127.0.0.1:1234`; `OpenAI`'s interfaces are below `/v1` of it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far, in the order in which the requests were complete.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.requests().clone()
    }

    /// The requests that offered tools: an agent at work, without the titles and summaries that it asks for beside.
    pub fn working_requests(&self) -> Vec<ModelRequest> {
        self.requests().into_iter().filter(|request| !request.tools().is_empty()).collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<ModelRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut open = Vec::new();
    for stream in listener.incoming() {
        if shared.is_stopping() {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(other_end) = stream.try_clone() else { continue };
        let shared = Arc::clone(shared);
        // A connection that breaks concerns its client alone.
        let thread = std::thread::spawn(move || drop(serve(stream, &shared)));
        open.push((other_end, thread));
    }
    for (stream, _) in &open {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for (_, thread) in open {
        let _ = thread.join();
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(received) = http::read(&mut reader, &mut stream)? {
        let request = ModelRequest::new(received);
        let number = {
            let mut requests = shared.requests();
            requests.push(request.clone());
            requests.len()
        };
        match reply(shared, &request, number) {
            Reply::Hang => {
                wait_for_end(&stream, shared);
                break;
            }
            Reply::Drop => break,
            reply => {
                if !http::write(&mut stream, &request.method, &reply)? {
                    break;
                }
            }
        }
    }
    // The acceptor holds a copy, so that letting go of this one would not close the connection.
    stream.shutdown(Shutdown::Both)
}

/// Waits until the client has gone or the service is stopped.
fn wait_for_end(stream: &TcpStream, shared: &Shared) {
    if stream.set_read_timeout(Some(Duration::from_millis(100))).is_err() {
        return;
    }
    while !shared.is_stopping() {
        match stream.peek(&mut [0]) {
            Ok(1..) => std::thread::sleep(Duration::from_millis(100)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn reply(shared: &Shared, request: &ModelRequest, number: usize) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method == "HEAD" {
        return Reply::json(200, &json!({}));
    }
    if request.method == "GET" && path.ends_with("/models") {
        let model = json!({"id": FAKE_MODEL, "object": "model", "created": 1, "owned_by": "nobody"});
        return Reply::json(200, &json!({"object": "list", "data": [model], "models": []}));
    }
    if path.ends_with("/messages/count_tokens") {
        return Reply::json(200, &json!({"input_tokens": 100}));
    }
    if path.ends_with(":countTokens") {
        return Reply::json(200, &json!({"totalTokens": 100}));
    }
    let Some(wire) = request.wire() else {
        return Reply::json(404, &json!({"error": {"message": format!("nothing is served at {path}")}}));
    };
    let said = match (shared.script)(request) {
        Step::Hang => return Reply::Hang,
        Step::Drop => return Reply::Drop,
        Step::Fails(failure, headers) => {
            let (code, body) = wire.failure(failure);
            return Reply::Whole { code, headers, body: body.to_string() };
        }
        Step::Status { code, headers, body } => {
            return Reply::Whole { code, headers, body: body.to_string() };
        }
        Step::Malformed => return speak(request, wire, number, &Said::Text("cut short".to_owned())).cut(),
        step => tools::said(request, wire, step),
    };
    speak(request, wire, number, &said)
}

fn speak(request: &ModelRequest, wire: &dyn Wire, number: usize, said: &Said) -> Reply {
    let model = request.body.get("model").and_then(Value::as_str).unwrap_or(FAKE_MODEL);
    let round = Round { number, results: request.results(), model: model.to_owned() };
    if wire.streams(&request.path, &request.body) {
        Reply::Events(wire.events(said, &round))
    } else {
        Reply::json(200, &wire.plain(said, &round))
    }
}
