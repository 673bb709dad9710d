//! Turns with servers that play a part.

mod bounds;
mod recorded;
mod turns;

use std::path::Path;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use triphammer_model::Receipt;

use super::files::Files;
use super::lines::Line;
use super::print::Printer;
use super::server::{Happening, Link, Outgoing};
use super::session::{Session, Stop};
use super::task::AcpTask;
use crate::dialects::Own;
use crate::stream::Stream;

/// The server's end of a conversation.
struct Peer {
    heard: Receiver<Vec<u8>>,
    tell: SyncSender<Vec<Happening>>,
}

impl Peer {
    /// Lets something happen; the error is that the client is gone.
    fn happens(&self, happening: Happening) -> Result<(), SendError<Vec<Happening>>> {
        self.tell.send(vec![happening])
    }

    /// The next message of the client's.
    #[track_caller]
    fn hear(&self) -> Value {
        let line = self.heard.recv_timeout(Duration::from_secs(30)).expect("one more message");
        serde_json::from_slice(&line).expect("JSON")
    }

    /// The next message, which calls this method; its parameters and id.
    #[track_caller]
    fn expect(&self, method: &str) -> (Value, Value) {
        let message = self.hear();
        assert_eq!(message["method"], method, "{message}");
        (message["params"].clone(), message["id"].clone())
    }

    fn line(&self, text: &str) {
        self.happens(Happening::Said(Line::Whole(text.as_bytes().to_vec()))).expect("a client");
    }

    fn say(&self, message: &Value) {
        self.line(&message.to_string());
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&self, id: &Value, error: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn notify(&self, update: &Value) {
        let params = json!({"sessionId": "s-1", "update": update});
        self.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Asks the client for something; the whole answer.
    #[track_caller]
    fn ask(&self, id: impl Into<Value>, method: &str, params: &Value) -> Value {
        let id = id.into();
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The handshake as most servers have it; the parameters of `session/new`.
    #[track_caller]
    fn greet(&self) -> Value {
        let (_, id) = self.expect("initialize");
        self.answer(&id, &json!({"protocolVersion": 1, "authMethods": [], "agentCapabilities": {}}));
        let (params, id) = self.expect("session/new");
        self.answer(&id, &json!({"sessionId": "s-1"}));
        params
    }

    /// The handshake and the prompt; its parameters and id.
    #[track_caller]
    fn prompted(&self) -> (Value, Value) {
        self.greet();
        self.expect("session/prompt")
    }

    fn end_turn(&self, id: &Value) {
        self.answer(id, &json!({"stopReason": "end_turn"}));
    }
}

/// What came of a turn.
struct Ran {
    stop: Stop,
    events: Vec<Value>,
    receipt: Receipt,
}

impl Ran {
    fn events(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    fn fault(&self) -> (triphammer_model::FaultKind, &str) {
        let fault = self.receipt.fault.as_ref().expect("a fault");
        (fault.kind, fault.message.as_deref().unwrap_or_default())
    }
}

fn task() -> AcpTask {
    AcpTask::new("# Goal\nMake \"it\" work.\n".to_owned(), vec!["server".to_owned()])
}

/// A turn in this folder, with a server that plays this part and then closes its output.
fn turn(folder: &Path, task: &AcpTask, server: impl FnOnce(&Peer) + Send) -> Ran {
    let text = folder.to_str().expect("UTF-8");
    let files = Files::new(folder).expect("a workspace");
    let (tell, incoming) = sync_channel(8);
    let (outgoing, heard, waiting) = Outgoing::new();
    let mut out = Vec::new();
    let stop = std::thread::scope(|scope| {
        let played = scope.spawn(move || {
            let peer = Peer { heard, tell };
            server(&peer);
            let _ = peer.happens(Happening::Closed);
            peer
        });
        let mut printer = Printer::new(&mut out);
        let link = Link { incoming, outgoing };
        let mut session = Session::new(task, text, &files, link, &mut printer);
        if task.patience == IMPATIENT {
            session = session.impatient();
        }
        let stop = session.run();
        session.see_off(Duration::from_secs(30), &mut || played.is_finished());
        session.end(&stop, Some("exit status: 3"));
        drop(session);
        // What the server expected in vain is a failure of the test.
        played.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stop
    });
    drop(waiting);
    let lines = out.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("an event")).collect();
    assert_eq!(events.last().map(|event| &event["type"]), Some(&json!("end")), "{events:?}");
    let mut stream = Stream::new(Box::<Own>::default());
    stream.push(&out);
    Ran { stop, events, receipt: stream.end().into_receipt("acp") }
}

/// The bound that stands for a very short one.
const IMPATIENT: u64 = 1;

fn plain(server: impl FnOnce(&Peer) + Send) -> Ran {
    turn(tempfile::tempdir().expect("a folder").path(), &task(), server)
}
