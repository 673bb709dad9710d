//! The loop: ask the model, do what it wants, tell it what came of it.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use triphammer_llm::{self as llm, Api, Client, LlmError, LlmFault, Reply, Request, Shape};
use triphammer_model::{FaultKind, Tokens};

use super::action::{self, Action};
use super::ask::Ask;
use super::executor::Executor;
use super::history::{History, Kept};
use super::inside::Inside;
use super::print::Printer;
use super::task::{Actions, NativeTask};
use super::{prompt, shown};
use crate::dialects::OwnEvent;

/// Waits before a call is made again that failed for a reason that may pass.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];
/// A limit that resets within so long is waited for; a longer one ends the work, and the run waits.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(60);
/// Answers in a row that hold nothing that can be done, at most.
const UNREADABLE: u32 = 4;
/// Times that the same action may bring the same result in a row. From the second time on the model is told.
const REPEATS: u32 = 6;
/// Calls of one answer that are carried out.
const CALLS: usize = 32;
/// Bytes of an unreadable answer that stay in the conversation.
const UNREAD: usize = 2_000;

/// How the model says what it wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By calls of tools.
    Tools,
    /// As JSON under a schema.
    Schema,
    /// As JSON that is only asked for.
    Plain,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The model said that it is done.
    Done,
    /// The model ended its turn without a call.
    TurnEnded,
    /// There were as many calls of the model as there may be.
    Steps,
    /// As many tokens were used as may be.
    Tokens,
    /// Too many answers in a row held nothing that could be done.
    Unreadable,
    /// The same action brought the same result too many times in a row.
    Repeats,
    /// The service failed, or cannot take the task.
    Fault,
    /// Nobody reads the events.
    Unheard,
}

impl Stop {
    /// Its name in the last event.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::TurnEnded => "turn-ended",
            Self::Steps => "step-limit",
            Self::Tokens => "token-limit",
            Self::Unreadable => "unreadable-answers",
            Self::Repeats => "repeats",
            Self::Fault => "fault",
            Self::Unheard => "unheard",
        }
    }
}

/// More events, for whoever runs the loop.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Beyond {
    /// For the next attempt: what was done, in words.
    Digest { text: String },
    /// So many answers came without a count of their tokens, so that what was counted is not all.
    Uncounted { answers: u64 },
}

/// The loop's state.
pub(super) struct Session<'a, 'p> {
    task: &'a NativeTask,
    client: &'a dyn Client,
    printer: &'a mut Printer<'p>,
    pause: &'a dyn Fn(Duration),
    executor: Executor<'a>,
    history: History,
    way: Way,
    /// Whether the service has taken a request made in this way.
    proven: bool,
    /// Whether the model has ever called a tool.
    called: bool,
    steps: u64,
    /// Tokens used; where the service does not say, an estimate.
    used: u64,
    /// Answers whose tokens nobody told.
    uncounted: u64,
    /// Answers in a row that held nothing to do.
    unreadable: u32,
    /// The last action with its result, and how often it came in a row.
    last: Option<(Action, String)>,
    repeated: u32,
}

impl<'a, 'p> Session<'a, 'p> {
    /// The error says why the workspace is none.
    pub(super) fn new(
        task: &'a NativeTask,
        client: &'a dyn Client,
        ask: &'a dyn Ask,
        printer: &'a mut Printer<'p>,
        pause: &'a dyn Fn(Duration),
    ) -> Result<Self, String> {
        let inside = Inside::new(task.workspace.as_deref().unwrap_or(Path::new(".")))?;
        let mut hidden: Vec<String> =
            [Api::OpenAi, Api::Anthropic].map(|api| api.key_variable().to_owned()).into();
        hidden.extend(task.key_env.clone());
        let timeout = Duration::from_secs(task.limits.tool_timeout);
        Ok(Self {
            task,
            client,
            printer,
            pause,
            executor: Executor::new(inside, ask, timeout, hidden),
            history: History::new(&task.brief, task.digest.as_deref()),
            way: if task.actions == Actions::Json { Way::Schema } else { Way::Tools },
            proven: false,
            called: false,
            steps: 0,
            used: 0,
            uncounted: 0,
            unreadable: 0,
            last: None,
            repeated: 0,
        })
    }

    /// Works until one of the ends is reached.
    pub(super) fn run(mut self) -> Stop {
        self.printer.print(&OwnEvent::Session { id: None, model: Some(self.task.model.clone()) });
        let stop = self.work();
        if self.uncounted > 0 {
            self.printer.print(&Beyond::Uncounted { answers: self.uncounted });
        }
        let digest = self.executor.ledger.digest();
        if !digest.is_empty() {
            self.printer.print(&Beyond::Digest { text: digest });
        }
        self.printer.print(&OwnEvent::End { stop_reason: stop.name().to_owned() });
        if self.printer.is_broken() { Stop::Unheard } else { stop }
    }

    fn work(&mut self) -> Stop {
        loop {
            if self.printer.is_broken() {
                return Stop::Unheard;
            }
            if self.steps >= self.task.limits.steps {
                return Stop::Steps;
            }
            if self.used >= self.task.limits.tokens {
                return Stop::Tokens;
            }
            let next = self.ask().and_then(|reply| self.take(reply));
            if let Err(stop) = next {
                return stop;
            }
        }
    }

    /// Asks the model, in a way that its service takes.
    fn ask(&mut self) -> Result<Reply, Stop> {
        let mut first: Option<LlmError> = None;
        loop {
            let system = prompt::system(self.way);
            let shape = self.shape();
            let around = system.len() + self.way.bytes();
            let limits = self.task.limits;
            let room = limits.context.saturating_sub(u64::from(limits.reply));
            let ledger = &self.executor.ledger;
            if let Err(large) = self.history.fit(around, room, &|| ledger.digest()) {
                let (least, most) = (large.tokens, room);
                let what = format!(
                    "the brief takes about {least} tokens and {most} are left for it beside the answer; raise \
                     limits.context where the model's context is larger, else shorten the brief"
                );
                self.printer.print(&OwnEvent::Fault {
                    kind: FaultKind::ContextOverflow,
                    message: what,
                    reset_at: None,
                });
                return Err(Stop::Fault);
            }
            let left = u32::try_from(limits.tokens.saturating_sub(self.used)).unwrap_or(u32::MAX);
            let request = Request {
                model: self.task.model.clone(),
                system,
                messages: self.history.messages(),
                shape,
                max_tokens: limits.reply.min(left),
                temperature: self.task.temperature,
                timeout: Duration::from_secs(limits.call_timeout),
            };
            let estimate = self.history.estimate(around);
            let error = match self.call(&request) {
                Ok(reply) => {
                    self.steps += 1;
                    self.proven = true;
                    self.account(&reply, estimate);
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if let Some(tokens) = error.usage {
                self.spend(tokens);
            }
            // Not every service says in a field that the context is full.
            let perhaps_full = self.proven && error.fault == LlmFault::BadRequest;
            let full = error.fault == LlmFault::ContextOverflow || perhaps_full;
            if full && !self.history.is_empty() {
                let ledger = &self.executor.ledger;
                self.history.condense(estimate / 2, &|| ledger.digest());
                continue;
            }
            if !self.proven
                && is_unsupported(&error)
                && let Some(next) = self.next_way()
            {
                self.way = next;
                first.get_or_insert(error);
                continue;
            }
            // Where no way was taken, the first one's error is about what is really wrong.
            let error = first.filter(|_| is_unsupported(&error)).unwrap_or(error);
            let fault = error.to_fault();
            let message = fault.message.unwrap_or_default();
            self.printer.print(&OwnEvent::Fault { kind: fault.kind, message, reset_at: fault.reset_at });
            return Err(Stop::Fault);
        }
    }

    /// One call, made again where a failure may pass.
    fn call(&self, request: &Request) -> Result<Reply, LlmError> {
        let mut waits = WAITS.iter();
        loop {
            let error = match self.client.complete(request) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let passes =
                matches!(error.fault, LlmFault::Overloaded | LlmFault::Network | LlmFault::RateLimit);
            let Some(wait) = waits.next().filter(|_| passes) else { return Err(error) };
            let wait = match error.reset_at.map(|at| at.duration_since(Timestamp::now())) {
                None => *wait,
                Some(until) if until > LONGEST_WAIT => return Err(error),
                Some(until) => until.max(SignedDuration::ZERO).unsigned_abs(),
            };
            (self.pause)(wait);
        }
    }

    /// What is tried when a service does not take the way at hand.
    fn next_way(&self) -> Option<Way> {
        match (self.way, self.task.actions) {
            (Way::Tools, Actions::Auto) => Some(Way::Schema),
            (Way::Schema, _) => Some(Way::Plain),
            _ => None,
        }
    }

    fn shape(&self) -> Shape {
        match self.way {
            Way::Tools => Shape::Tools(action::tools()),
            Way::Schema => Shape::Json(action::schema()),
            Way::Plain => Shape::Text,
        }
    }

    /// Adds up what an answer used, and learns from it how long the conversation is.
    fn account(&mut self, reply: &Reply, estimate: u64) {
        if let Some(tokens) = reply.usage {
            self.history.learn(estimate, tokens.input.saturating_add(tokens.cached));
            self.spend(tokens);
        } else {
            // Unknown is not printed. For the bound it has to be something.
            self.uncounted += 1;
            let said: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
            let said = (said + reply.text.len()) as u64;
            self.used = self.used.saturating_add(estimate + said / 3);
        }
    }

    fn spend(&mut self, tokens: Tokens) {
        self.used = self.used.saturating_add(tokens.total());
        let Tokens { input, cached, output } = tokens;
        // Whoever runs the loop knows what tokens cost.
        self.printer.print(&OwnEvent::Usage { input, cached, output, cost_usd: None });
    }

    /// Does what an answer wants. The error is an end.
    fn take(&mut self, reply: Reply) -> Result<(), Stop> {
        match self.way {
            Way::Tools => self.take_calls(reply),
            Way::Schema | Way::Plain => self.take_json(reply),
        }
    }

    fn take_calls(&mut self, reply: Reply) -> Result<(), Stop> {
        let cut = reply.stop == llm::Stop::Length;
        self.say(&reply.text);
        if reply.calls.is_empty() {
            if cut {
                let told = format!("Your answer was {}.", self.cut_off());
                return self.not_understood(&reply.text, told);
            }
            if self.task.actions == Actions::Auto && !self.called {
                // It was offered tools and took none: it may not have learned to. What it can do with JSON, it can say
                // in it, also that there is nothing to do.
                self.way = Way::Schema;
                self.proven = false;
                return Ok(());
            }
            return Err(Stop::TurnEnded);
        }
        self.called = true;
        let mut room = self.task.limits.shown();
        let mut results = Vec::new();
        let (mut done, mut good) = (false, false);
        for (number, call) in reply.calls.iter().enumerate() {
            let action = call.parsed().and_then(|fields| Action::of_call(&call.name, fields));
            let (about, content, ok) = match action {
                Ok(Action::Done { text }) if !done => {
                    self.say(&text);
                    done = true;
                    continue;
                }
                _ if done => continue,
                Ok(_) if number >= CALLS => {
                    let told = format!("not done: an answer may hold {CALLS} calls; call again");
                    (String::new(), told, false)
                }
                Ok(action) => {
                    good = true;
                    let (told, ok) = self.execute(&action, room.max(500));
                    room = room.saturating_sub(told.len());
                    (about(&action), told, ok)
                }
                Err(why) if cut => {
                    (String::new(), format!("{why}; the answer was {}", self.cut_off()), false)
                }
                Err(why) => (String::new(), why, false),
            };
            results.push(Kept { id: call.id.clone(), about, content, ok });
        }
        if done {
            return Err(Stop::Done);
        }
        self.history.turn(reply.text, reply.calls, results);
        self.judge(good)
    }

    fn take_json(&mut self, reply: Reply) -> Result<(), Stop> {
        let action = match Action::of_json(&reply.text) {
            Ok(Action::Done { text }) => {
                self.say(&text);
                return Err(Stop::Done);
            }
            Ok(action) => action,
            Err(why) => {
                let cut = if reply.stop == llm::Stop::Length {
                    format!(" It was {}.", self.cut_off())
                } else {
                    String::new()
                };
                let told = format!(
                    "Your answer could not be read: {why}.{cut} Answer with exactly one JSON object and nothing else, such as \
                     {{\"action\": \"list\"}}."
                );
                return self.not_understood(&reply.text, told);
            }
        };
        let (told, ok) = self.execute(&action, self.task.limits.shown());
        let about = about(&action);
        let content = format!("What came of {about}:\n{told}");
        self.history.turn(reply.text, Vec::new(), vec![Kept { id: String::new(), about, content, ok }]);
        self.judge(true)
    }

    fn execute(&mut self, action: &Action, room: usize) -> (String, bool) {
        let outcome = self.executor.run(action, room);
        self.printer.print(&outcome.event);
        let told = self.compare(action, outcome.told);
        (told, outcome.ok)
    }

    /// Small models do what worked once again and again instead of saying that they are done.
    fn compare(&mut self, action: &Action, told: String) -> String {
        if self.last.as_ref().is_some_and(|(done, result)| done == action && *result == told) {
            self.repeated += 1;
            let times = self.repeated;
            return format!(
                "{told}\n[The same action with the same result, {times} times in a row: nothing changes by it. If all is done, \
                 use `done`; else do something else. After {REPEATS} times the work ends.]"
            );
        }
        self.last = Some((action.clone(), told.clone()));
        self.repeated = 1;
        told
    }

    fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.executor.ledger.says(text);
            self.printer.print(&OwnEvent::Text { text: text.to_owned() });
        }
    }

    fn cut_off(&self) -> String {
        format!(
            "cut off at the bound of {} tokens: say less at once, and write large files in parts",
            self.task.limits.reply
        )
    }

    /// Answers an answer that holds nothing to do.
    fn not_understood(&mut self, text: &str, told: String) -> Result<(), Stop> {
        let told = Kept { id: String::new(), about: String::new(), content: told, ok: false };
        self.history.turn(shown::head(text, UNREAD), Vec::new(), vec![told]);
        self.judge(false)
    }

    /// Counts answers without anything to do.
    fn judge(&mut self, good: bool) -> Result<(), Stop> {
        if self.repeated >= REPEATS {
            return Err(Stop::Repeats);
        }
        self.unreadable = if good { 0 } else { self.unreadable + 1 };
        if self.unreadable < UNREADABLE {
            return Ok(());
        }
        let message = format!(
            "{UNREADABLE} answers of `{}` in a row held nothing that could be done; take a model that can call tools or \
             answer in JSON",
            self.task.model
        );
        self.printer.print(&OwnEvent::Fault { kind: FaultKind::Protocol, message, reset_at: None });
        Err(Stop::Unreadable)
    }
}

impl Way {
    /// Bytes that it adds to a request beside the system text.
    fn bytes(self) -> usize {
        match self {
            Self::Tools => action::tools()
                .iter()
                .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len() + 40)
                .sum(),
            Self::Schema => action::schema().schema.to_string().len(),
            Self::Plain => 0,
        }
    }
}

/// Whether a service may have failed over a feature that it does not have. Some say so with a status that stands for a
/// bug of theirs.
fn is_unsupported(error: &LlmError) -> bool {
    error.fault == LlmFault::BadRequest || matches!(error.status, Some(500 | 501))
}

/// An action in a few words.
fn about(action: &Action) -> String {
    let rest = match action {
        Action::Read { path, .. }
        | Action::Write { path, .. }
        | Action::Edit { path, .. }
        | Action::List { path } => path,
        Action::Search { pattern, .. } => pattern,
        Action::Shell { command } => command,
        Action::Done { text } => text,
    };
    format!("`{}`", shown::head(format!("{} {rest}", action.name()).trim_end(), 100))
}
