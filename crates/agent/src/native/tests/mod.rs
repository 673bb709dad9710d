//! The loop against scripted models.

mod bounds;
mod over_http;
mod work;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use triphammer_llm::{
    self as llm, Api, Client, LlmError, LlmFault, Message, Reply, Request, Shape, Told, ToolCall,
};
use triphammer_model::{Receipt, Tokens};

use super::ask::{AllowAll, Ask};
use super::print::Printer;
use super::session::{Session, Stop};
use super::task::NativeTask;
use crate::stream::Stream;

/// A model that answers what it was told to.
struct Scripted {
    replies: Mutex<VecDeque<Result<Reply, LlmError>>>,
    requests: Mutex<Vec<Request>>,
}

impl Client for Scripted {
    fn complete(&self, request: &Request) -> Result<Reply, LlmError> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.pop_front().expect("one more call than scripted")
    }
}

/// What a session did.
struct Ran {
    stop: Stop,
    requests: Vec<Request>,
    events: Vec<Value>,
    receipt: Receipt,
    pauses: Vec<Duration>,
    /// Replies that were not asked for.
    left: usize,
}

impl Ran {
    /// What the model was told in its last request.
    fn told(&self) -> String {
        self.told_in(self.requests.len() - 1)
    }

    fn told_in(&self, request: usize) -> String {
        match self.requests[request].messages.last() {
            Some(Message::User(text)) => text.clone(),
            Some(Message::Results(results)) => {
                results.iter().map(|result| result.content.as_str()).collect::<Vec<_>>().join("\n---\n")
            }
            other => panic!("{other:?}"),
        }
    }

    fn events(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }
}

fn task(workspace: &Path, more: Value) -> NativeTask {
    let mut task = json!({
        "brief": "# Goal\nMake it work.\n\n# Findings\n- `make` fails: \"x\" is missing\n",
        "workspace": workspace,
        "model": "fake-1",
        "api": Api::OpenAi,
    });
    if let (Some(task), Value::Object(more)) = (task.as_object_mut(), more) {
        task.extend(more);
    }
    NativeTask::read(task.to_string().as_bytes()).expect("a task")
}

fn run(task: &NativeTask, replies: Vec<Result<Reply, LlmError>>) -> Ran {
    run_asking(task, replies, &AllowAll)
}

fn run_asking(task: &NativeTask, replies: Vec<Result<Reply, LlmError>>, ask: &dyn Ask) -> Ran {
    let client = Scripted { replies: Mutex::new(replies.into()), requests: Mutex::default() };
    let pauses = Mutex::new(Vec::new());
    let pause = |wait| pauses.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out);
    let stop = Session::new(task, &client, ask, &mut printer, &pause).expect("a session").run();
    let (events, receipt) = heard(&out);
    Ran {
        stop,
        requests: client.requests.into_inner().unwrap_or_else(PoisonError::into_inner),
        events,
        receipt,
        pauses: pauses.into_inner().unwrap_or_else(PoisonError::into_inner),
        left: client.replies.into_inner().unwrap_or_else(PoisonError::into_inner).len(),
    }
}

/// What was printed, and the receipt that comes of it.
fn heard(out: &[u8]) -> (Vec<Value>, Receipt) {
    let events: Vec<Value> = out
        .split_inclusive(|b| *b == b'\n')
        .map(|line| serde_json::from_slice(line).expect("a line"))
        .collect();
    assert_eq!(events.last().map(|event| &event["type"]), Some(&json!("end")), "{events:?}");
    let mut stream = Stream::new(Box::<super::handed_on::Whole>::default());
    stream.push(out);
    (events, stream.end().into_receipt("native"))
}

/// An answer with calls of tools.
#[expect(clippy::unnecessary_wraps, reason = "a script is a list of results")]
fn calls(calls: &[(&str, Value)]) -> Result<Reply, LlmError> {
    let call = |(number, (name, arguments)): (usize, &(&str, Value))| ToolCall {
        id: format!("c{number}"),
        name: (*name).to_owned(),
        arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
    };
    let calls = calls.iter().enumerate().map(call).collect();
    Ok(Reply { calls, stop: llm::Stop::ToolCalls, ..words("") })
}

/// An answer in text.
#[expect(clippy::unnecessary_wraps, reason = "a script is a list of results")]
fn text(text: &str) -> Result<Reply, LlmError> {
    Ok(words(text))
}

fn words(text: &str) -> Reply {
    Reply {
        text: text.to_owned(),
        calls: Vec::new(),
        stop: llm::Stop::End,
        usage: Some(Tokens { input: 900, cached: 100, output: 20 }),
        model: "fake-1".to_owned(),
        request_id: None,
    }
}

fn done() -> Result<Reply, LlmError> {
    calls(&[("done", json!({ "text": "All is done." }))])
}

fn error(fault: LlmFault, status: Option<u16>) -> LlmError {
    let told = Told {
        place: "http://127.0.0.1/v1".to_owned(),
        model: "fake-1".to_owned(),
        message: format!("{fault:?} {status:?}"),
        request_id: None,
    };
    LlmError { fault, status, reset_at: None, usage: None, told: Box::new(told) }
}

fn way(request: &Request) -> &'static str {
    match request.shape {
        Shape::Tools(_) => "tools",
        Shape::Json(_) => "schema",
        Shape::Text => "plain",
    }
}

fn ways(ran: &Ran) -> Vec<&'static str> {
    ran.requests.iter().map(way).collect()
}
