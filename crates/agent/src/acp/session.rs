//! One turn with a server: the handshake, the prompt, and whatever the server wants until it has answered that.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use triphammer_model::FaultKind;

use super::calls::Calls;
use super::failure::{self, Failure};
use super::files::{Files, NotServed};
use super::lines::Line;
use super::permission::{self, Judge, Refusal};
use super::print::Printer;
use super::server::{Happening, Link};
use super::strays::Strays;
use super::task::AcpTask;
use super::usage::Usage;
use super::wire::{self, Kind, Message};
use super::words::Words;
use crate::dialects::OwnEvent;
use crate::event::Json;

/// What a turn may take to end once it was cancelled.
const CANCELLED: Duration = Duration::from_secs(2);
/// Servers (seen: Gemini CLI 0.61) tell a session's history beyond the answer that should end it. It is over when nothing
/// has come for so long,
const QUIET: Duration = Duration::from_millis(500);
/// or, however much comes, after this time.
const HISTORY: Duration = Duration::from_secs(10);
/// A server that ends because everything is asked to end may be heard of before the asking.
const ASKED_SOON: Duration = Duration::from_millis(500);

/// Updates of a session that nothing is made of.
const DULL: [&str; 16] = [
    "user_message_chunk",
    "plan",
    "plan_update",
    "plan_removed",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "prompt_suggestions_update",
    "cursor_update",
    "subagent_update",
    "session_message",
    "session_message_chunk",
];

/// Updates that carry a piece of a text.
const CHUNKS: [&str; 5] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
    "compaction_summary_chunk",
    "session_message_chunk",
];

/// How a turn ended.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// It came to its end, for this reason.
    Ended(String),
    /// It failed.
    Failed(Failure),
    /// The server closed its output when it owed the answer to this.
    Closed(&'static str),
    /// We were asked to end.
    Asked,
}

/// The turn.
pub(super) struct Session<'a, 'p> {
    task: &'a AcpTask,
    /// The workspace, as the server is told of it.
    folder: &'a str,
    files: &'a Files,
    judge: Judge,
    link: Link,
    /// What has happened and is not seen to yet.
    pending: VecDeque<Happening>,
    out: &'a mut Printer<'p>,
    patience: Duration,
    calls: Calls,
    usage: Usage,
    words: Words,
    strays: Strays,
    requests: u64,
    id: String,
    in_turn: bool,
    /// What is heard was said in an earlier attempt.
    is_history: bool,
    /// The model was heard of in this turn.
    is_answered: bool,
    asked: bool,
    /// Nothing is sent any more.
    is_over: bool,
    ways_to_log_in: String,
    /// See [`Session::not_found`].
    wants_words_for_errors: bool,
}

/// What a request of ours came to: a result, or an error.
type Answer = Result<Value, Failure>;

impl<'a, 'p> Session<'a, 'p> {
    pub(super) fn new(
        task: &'a AcpTask,
        folder: &'a str,
        files: &'a Files,
        link: Link,
        out: &'a mut Printer<'p>,
    ) -> Self {
        Self {
            task,
            folder,
            files,
            judge: Judge::of(files.root()),
            link,
            pending: VecDeque::new(),
            out,
            patience: Duration::from_secs(task.patience),
            calls: Calls::default(),
            usage: Usage::default(),
            words: Words::default(),
            strays: Strays::default(),
            requests: 0,
            id: String::new(),
            in_turn: false,
            is_history: false,
            is_answered: false,
            asked: false,
            is_over: false,
            ways_to_log_in: String::new(),
            wants_words_for_errors: false,
        }
    }

    /// Works until the turn is over.
    pub(super) fn run(&mut self) -> Stop {
        self.work().map_or_else(|stop| stop, Stop::Ended)
    }

    /// A server of which less is waited for, for tests.
    #[cfg(test)]
    pub(super) fn impatient(mut self) -> Self {
        self.patience = Duration::from_millis(50);
        self
    }

    fn work(&mut self) -> Result<String, Stop> {
        let initialized = self.initialize()?;
        let resumed = match self.task.session.clone() {
            Some(id) => self.resume(&id, &initialized)?,
            None => false,
        };
        if !resumed {
            self.begin()?;
        }
        self.usage.begin(resumed);
        self.prompt()
    }

    fn initialize(&mut self) -> Result<Value, Stop> {
        let params = json!({
            "protocolVersion": wire::VERSION,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false},
            "clientInfo": {"name": "triphammer", "title": "Triphammer", "version": env!("CARGO_PKG_VERSION")},
        });
        let initialized = self.call("initialize", &params, Some(self.patience))?.map_err(Stop::Failed)?;
        let version = &initialized["protocolVersion"];
        if version.as_u64() != Some(wire::VERSION) {
            let what = format!(
                "the server speaks version {version} of the protocol and not version {}: use a version of it that does",
                wire::VERSION
            );
            return Err(broken(what));
        }
        self.ways_to_log_in = failure::ways_to_log_in(&initialized);
        self.wants_words_for_errors = initialized["agentInfo"]["name"] == "gemini-cli";
        Ok(initialized)
    }

    /// Goes on with a session, where the server can.
    fn resume(&mut self, id: &str, initialized: &Value) -> Result<bool, Stop> {
        let can = &initialized["agentCapabilities"];
        // The first does not tell all that was said before.
        let ways = [
            ("session/resume", can["sessionCapabilities"]["resume"].is_object()),
            ("session/load", can["loadSession"] == true),
        ];
        let mut why = "the server does not offer it".to_owned();
        for (method, _) in ways.into_iter().filter(|(_, offered)| *offered) {
            let params = json!({"sessionId": id, "cwd": self.folder, "mcpServers": []});
            self.is_history = true;
            match self.call(method, &params, Some(self.patience))? {
                Ok(result) => {
                    if method == "session/load" {
                        self.hear_history()?;
                    }
                    self.is_history = false;
                    id.clone_into(&mut self.id);
                    self.tell_session(&result);
                    return Ok(true);
                }
                Err(failure) if failure.kind == FaultKind::Authentication => return Err(self.failed(failure)),
                Err(failure) => why = failure.message,
            }
        }
        self.is_history = false;
        self.trouble(&format!("the session was not continued and a new one was begun: {why}"));
        Ok(false)
    }

    fn hear_history(&mut self) -> Result<(), Stop> {
        let end = Instant::now() + HISTORY;
        loop {
            let until = end.min(Instant::now() + QUIET);
            match self.next(Some(until)) {
                None => return Ok(()),
                Some(Happening::Said(line)) => {
                    self.hear(&line, None)?;
                }
                Some(Happening::Closed) => return Err(self.closed("session/load")),
                Some(Happening::Asked) => return Err(Stop::Asked),
            }
        }
    }

    fn begin(&mut self) -> Result<(), Stop> {
        let params = json!({"cwd": self.folder, "mcpServers": []});
        let answer = self.call("session/new", &params, Some(self.patience))?;
        let result = answer.map_err(|failure| self.failed(failure))?;
        let id = result["sessionId"].as_str().filter(|id| !id.is_empty());
        let Some(id) = id else {
            return Err(broken("`session/new` was answered without a `sessionId`".to_owned()));
        };
        id.clone_into(&mut self.id);
        self.tell_session(&result);
        Ok(())
    }

    fn tell_session(&mut self, session: &Value) {
        let option = |option: &&Value| option["id"] == "model" || option["category"] == "model";
        let chosen = session["configOptions"].as_array().and_then(|options| options.iter().find(option));
        let model = session["models"]["currentModelId"].as_str();
        let model = model.or(chosen.and_then(|option| option["currentValue"].as_str())).map(str::to_owned);
        self.out.event(&OwnEvent::Session { id: Some(self.id.clone()), model });
    }

    fn prompt(&mut self) -> Result<String, Stop> {
        let text = json!({"type": "text", "text": self.task.brief});
        let params = json!({"sessionId": self.id, "prompt": [text]});
        self.in_turn = true;
        let answer = self.call("session/prompt", &params, None)?;
        if self.asked {
            return Err(Stop::Asked);
        }
        let result = answer.map_err(|failure| self.failed(failure))?;
        if let Some(model) = result["_meta"]["quota"]["model_usage"][0]["model"].as_str() {
            self.out.event(&OwnEvent::Session { id: None, model: Some(model.to_owned()) });
        }
        match result["stopReason"].as_str() {
            Some("refusal") => {
                let message = "the model refused to go on".to_owned();
                Err(Stop::Failed(Failure { kind: FaultKind::Refused, message, reset_at: None }))
            }
            Some(reason) => Ok(reason.to_owned()),
            None => Err(broken("`session/prompt` was answered without a `stopReason`".to_owned())),
        }
    }

    fn failed(&self, mut failure: Failure) -> Stop {
        if failure.kind == FaultKind::Authentication {
            failure.message = format!("{}; {}", failure.message, self.ways_to_log_in);
        }
        Stop::Failed(failure)
    }

    fn trouble(&mut self, what: &str) {
        self.out.event(&OwnEvent::Trouble { what: what.to_owned() });
    }

    fn send(&mut self, line: Vec<u8>) -> Result<(), Stop> {
        self.out.sent(&line);
        if self.link.outgoing.send(line) {
            return Ok(());
        }
        Err(broken("the server asks without reading the answers".to_owned()))
    }

    /// Asks the server, and sees to everything else until it has answered.
    fn call(
        &mut self,
        method: &'static str,
        params: &Value,
        within: Option<Duration>,
    ) -> Result<Answer, Stop> {
        self.requests += 1;
        let id = self.requests;
        self.send(wire::call(Some(id), method, params))?;
        let mut until = within.map(|within| Instant::now() + within);
        loop {
            match self.next(until) {
                None if self.asked => return Err(Stop::Asked),
                None => {
                    let within = within.unwrap_or_default();
                    return Err(broken(format!("`{method}` was not answered within {within:?}")));
                }
                Some(Happening::Said(line)) => {
                    if let Some(answer) = self.hear(&line, Some((id, method)))? {
                        return Ok(answer);
                    }
                }
                Some(Happening::Closed) => return Err(self.closed(method)),
                Some(Happening::Asked) if self.asked => {}
                Some(Happening::Asked) => {
                    self.asked = true;
                    if !self.in_turn {
                        return Err(Stop::Asked);
                    }
                    let params = json!({"sessionId": self.id});
                    self.send(wire::call(None, "session/cancel", &params))?;
                    until = Some(Instant::now() + CANCELLED);
                }
            }
        }
    }

    /// The server is gone, by itself or because everything is asked to end.
    fn closed(&mut self, method: &'static str) -> Stop {
        let soon = Instant::now() + ASKED_SOON;
        if self.asked || matches!(self.next(Some(soon)), Some(Happening::Asked)) {
            return Stop::Asked;
        }
        Stop::Closed(method)
    }

    /// What happens next; `None` when nothing does in time.
    fn next(&mut self, until: Option<Instant>) -> Option<Happening> {
        use std::sync::mpsc::RecvTimeoutError;
        if until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        if let Some(happening) = self.pending.pop_front() {
            return Some(happening);
        }
        self.out.flush();
        let came = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => self.link.incoming.recv().ok(),
            Some(left) => match self.link.incoming.recv_timeout(left) {
                Ok(came) => Some(came),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => None,
            },
        };
        self.pending.extend(came.unwrap_or_else(|| vec![Happening::Closed]));
        self.pending.pop_front()
    }

    /// Takes a line in; the answer, where it is the one that is waited for.
    fn hear(&mut self, line: &Line, wanted: Option<(u64, &'static str)>) -> Result<Option<Answer>, Stop> {
        let Line::Whole(bytes) = line else {
            self.out.received(line, false);
            self.strays.too_long += 1;
            return Ok(None);
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some(message) = Message::read(bytes) else {
            self.out.received(line, false);
            self.strays.no_messages += 1;
            return Ok(None);
        };
        match chunk_of(&message) {
            Some(chunk) => self.out.chunk(chunk, bytes.len()),
            None => self.out.received(line, true),
        }
        match message.kind() {
            Kind::Answer { id, outcome } => match wanted.filter(|(wanted, _)| id == Some(*wanted)) {
                Some((_, method)) => return Ok(Some(self.answered(method, outcome))),
                None => self.strays.no_answers += 1,
            },
            Kind::Notification { method: "session/update" } => {
                if let Some(update) = message.params().get("update") {
                    self.update(update);
                }
            }
            // Of others, the protocol lets these be passed over without a word.
            Kind::Notification { method } if method.starts_with(['$', '_']) => {}
            Kind::Notification { method } => self.strays.unknown(method),
            Kind::Request { .. } if self.is_over => {}
            Kind::Request { id, method } => {
                let outcome = self.serve(method, bytes);
                self.send(wire::answer(id, &outcome))?;
            }
            Kind::Stray => self.strays.no_messages += 1,
        }
        Ok(None)
    }

    fn answered(&mut self, method: &str, outcome: Result<&Json<'_>, &Json<'_>>) -> Answer {
        match outcome {
            Ok(result) => {
                if self.in_turn
                    && let Some(tokens) = self.usage.end(result, self.calls.any())
                {
                    self.spent(tokens);
                }
                Ok(serde_json::to_value(result).unwrap_or_default())
            }
            Err(error) => Err(failure::failure(method, error, self.is_answered, Timestamp::now())),
        }
    }

    fn spent(&mut self, tokens: triphammer_model::Tokens) {
        let triphammer_model::Tokens { input, cached, output } = tokens;
        self.out.event(&OwnEvent::Usage { input, cached, output, cost_usd: None });
    }

    fn update(&mut self, update: &Json<'_>) {
        let text = |name: &str| update.get(name).and_then(Json::as_str);
        match text("sessionUpdate").unwrap_or_default() {
            "usage_update" => match self.usage.update(update, self.in_turn) {
                Ok(None) => {}
                Ok(Some(usd)) => self.out.event(&OwnEvent::Cost { usd }),
                Err(what) => self.trouble(&what),
            },
            _ if self.is_history => {}
            "agent_message_chunk" => {
                let chunk = update.get("content").and_then(|content| content.get("text")?.as_str());
                self.is_answered |= chunk.is_some_and(|chunk| !chunk.is_empty());
                if let Some(before) = self.words.add(text("messageId"), chunk.unwrap_or_default()) {
                    self.out.event(&before);
                }
                if let Some(tokens) = self.usage.chunk(update) {
                    self.spent(tokens);
                }
            }
            "agent_thought_chunk" => self.is_answered = true,
            "tool_call" | "tool_call_update" => {
                self.is_answered = true;
                self.end_words();
                let said = serde_json::to_value(update).unwrap_or_default();
                for claim in self.calls.update(&said, self.files) {
                    self.out.event(&claim);
                }
            }
            dull if DULL.contains(&dull) => {}
            other => self.strays.unknown(other),
        }
    }

    fn end_words(&mut self) {
        if let Some(words) = self.words.end() {
            self.out.event(&words);
        }
    }

    /// Does what the server asks for; the result or the error that it gets.
    fn serve(&mut self, method: &str, line: &[u8]) -> Result<Value, Value> {
        let asks = |method: &str, name: &str| {
            wire::error(wire::INVALID_PARAMS, &format!("`{method}` needs a text `{name}`"))
        };
        let serves =
            matches!(method, "session/request_permission" | "fs/read_text_file" | "fs/write_text_file");
        let params = if serves { wire::whole_params(line) } else { Value::Null };
        // Before a session is known, any may be the one that is being opened.
        let session = params.get("sessionId").filter(|_| !self.id.is_empty());
        if session.is_some_and(|session| session.as_str() != Some(&self.id)) {
            self.strays.other_session += 1;
            return Err(wire::error(wire::INVALID_PARAMS, "this is not the `sessionId` of the session here"));
        }
        match method {
            "session/request_permission" => Ok(self.permit(&params)),
            "fs/read_text_file" => {
                let path = params["path"].as_str().ok_or_else(|| asks(method, "path"))?;
                let read = self.files.read(path, params["line"].as_u64(), params["limit"].as_u64());
                read.map(|content| json!({"content": content})).map_err(|error| self.not_served(path, error))
            }
            "fs/write_text_file" => {
                let path = params["path"].as_str().ok_or_else(|| asks(method, "path"))?;
                let text = params["content"].as_str().ok_or_else(|| asks(method, "content"))?;
                let written = self.files.write(path, text).map_err(|error| self.not_served(path, error))?;
                let claim = written.and_then(|change| self.calls.file(method, path, change, self.files));
                if let Some(claim) = claim {
                    self.out.event(&claim);
                }
                Ok(json!({}))
            }
            _ => {
                self.strays.unknown(method);
                let what = format!("there is no `{}` here", crate::heard::head(method, 200));
                Err(wire::error(wire::NO_METHOD, &what))
            }
        }
    }

    fn not_served(&mut self, path: &str, error: NotServed) -> Value {
        match error {
            NotServed::Missing => self.not_found(path),
            NotServed::Outside(why) => {
                self.trouble(&format!("a file was not served: {why}"));
                wire::error(wire::INVALID_PARAMS, &why)
            }
            NotServed::Failed(why) => {
                self.trouble(&format!("a file was not served: {why}"));
                wire::error(wire::INTERNAL, &why)
            }
        }
    }

    /// A file that is not there. Gemini CLI (seen: 0.61) asks for a file before it writes it, takes the error object that
    /// the protocol asks for as text and finds nothing of it there, so that it could never write a new file; given as a
    /// text, it understands it.
    fn not_found(&self, path: &str) -> Value {
        let what = format!("Resource not found: ENOENT: no such file: {}", crate::heard::head(path, 500));
        if self.wants_words_for_errors { Value::String(what) } else { wire::error(wire::NOT_FOUND, &what) }
    }

    fn permit(&mut self, params: &Value) -> Value {
        let said = params.get("toolCall").unwrap_or(&Value::Null);
        let call = self.calls.told(said);
        if self.asked {
            self.calls.refuse(said);
            return permission::cancelled();
        }
        let options = params.get("options").unwrap_or(&Value::Null);
        let judged = self.judge.allow(&call, self.files);
        let (answer, missing) = permission::answer(options, judged.is_ok());
        let refusal = judged.err().or_else(|| missing.map(|why| Refusal::of(call, why)));
        if let Some(refusal) = refusal {
            self.calls.refuse(said);
            self.out.event(&refusal.into_event());
        }
        answer
    }

    /// The turn is over: nothing more is sent, and what still comes is heard until the server has ended or `wait` is over.
    /// False when it has not ended.
    pub(super) fn see_off(&mut self, wait: Duration, has_ended: &mut dyn FnMut() -> bool) -> bool {
        /// How long its output is waited for once it has ended: a process that it left behind may hold it.
        const REST: Duration = Duration::from_millis(100);
        self.is_over = true;
        self.link.outgoing.close();
        let mut until = Instant::now() + wait;
        let mut ended = false;
        loop {
            if !ended && has_ended() {
                ended = true;
                until = Instant::now() + REST;
            }
            let soon = until.min(Instant::now() + Duration::from_millis(5));
            match self.next(Some(soon)) {
                Some(Happening::Said(line)) => {
                    let _ = self.hear(&line, None);
                }
                Some(Happening::Closed) if ended => return true,
                Some(Happening::Closed) => {
                    // Nothing more will come, so that there is only its end to be waited for.
                    while Instant::now() < until && !ended {
                        std::thread::sleep(Duration::from_millis(5));
                        ended = has_ended();
                    }
                    return ended;
                }
                Some(Happening::Asked) | None => {
                    if Instant::now() >= until {
                        return ended;
                    }
                }
            }
        }
    }

    /// Prints what is left to say. `gone` says how the server ended, where it was not we who ended it.
    pub(super) fn end(&mut self, stop: &Stop, gone: Option<&str>) {
        self.end_words();
        for what in self.strays.told() {
            self.trouble(&what);
        }
        let fault = match stop {
            Stop::Ended(_) | Stop::Asked => None,
            Stop::Failed(failure) => Some(failure.clone()),
            Stop::Closed(method) => {
                let how = gone.map_or_else(|| "closed its output".to_owned(), |how| format!("ended ({how})"));
                let message = format!("the server {how} before it answered `{method}`");
                Some(Failure { kind: FaultKind::Crashed, message, reset_at: None })
            }
        };
        if let Some(Failure { kind, message, reset_at }) = fault {
            self.out.event(&OwnEvent::Fault { kind, message, reset_at });
        }
        let reason = match stop {
            Stop::Ended(reason) => reason.as_str(),
            Stop::Asked => "cancelled",
            Stop::Failed(Failure { kind: FaultKind::Refused, .. }) => "refusal",
            Stop::Failed(_) | Stop::Closed(_) => "fault",
        };
        self.out.event(&OwnEvent::End { stop_reason: reason.to_owned() });
        self.out.flush();
    }
}

/// What chunk of a text a message carries. What takes secrets out of a log reads it line by line, so that the halves of
/// one in two chunks would stand there: what is put together of them is kept instead.
fn chunk_of(message: &Message<'_>) -> Option<&'static str> {
    let kind = message.params().get("update")?.get("sessionUpdate")?.as_str()?;
    let known = CHUNKS.into_iter().find(|known| *known == kind);
    known.or_else(|| kind.ends_with("_chunk").then_some("of another kind"))
}

fn broken(message: String) -> Stop {
    Stop::Failed(Failure { kind: FaultKind::Protocol, message, reset_at: None })
}
