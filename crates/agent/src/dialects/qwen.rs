//! Qwen Code, `-o stream-json`: claude's events with other tools, and with tokens as `OpenAI` counts them, so that the
//! input includes what was read from a cache.
//!
//! Seen: a whole run, one against a server that was down, and one against a service that refused. Read about (its sources): `result` with `is_error` and
//! `error.message`, the `error_*` subtypes, `permission_denials`.
//!
//! A failed call to the model is told nowhere: its text becomes a message of the model, and the result says `success`. What
//! gives it away is that the message has no tokens, as each answer of a service that counts has. A service that counts
//! none shows that in the calls of tools before, which then have no tokens either; nothing is concluded there.

use triphammer_model::{FaultKind, Tokens};

use super::fields::{at, count, list, text};
use super::messages::Messages;
use crate::event::{Json, NULL};
use crate::faults;
use crate::heard::Heard;
use crate::stream::Dialect;

#[derive(Debug, Default)]
pub(crate) struct Qwen {
    messages: Messages,
    /// The last message of the main conversation has tokens or asks for a tool.
    answered: bool,
    /// Some message had tokens.
    counts: bool,
    /// Some message asked for a tool.
    worked: bool,
    ended: bool,
}

impl Qwen {
    fn assistant(&mut self, event: &Json<'_>, heard: &mut Heard) {
        self.ended = false;
        let said = self.messages.assistant(event, heard);
        if let Some(model) = text(event, &["message", "model"]).filter(|_| said.main) {
            heard.model(model);
        }
        let tokens = at(event, &["message", "usage"]).and_then(usage).filter(|tokens| tokens.total() > 0);
        self.counts |= tokens.is_some();
        self.worked |= said.tools;
        if said.main {
            self.answered = said.tools || tokens.is_some();
        }
        if let Some(tokens) = tokens {
            heard.spend(tokens);
        }
    }

    fn result(&mut self, event: &Json<'_>, heard: &mut Heard) {
        // A helper's failure is reported as a result of its own, which ends nothing.
        if text(event, &["parent_tool_use_id"]).is_some() {
            return;
        }
        self.ended = true;
        self.messages.denied(list(event, &["permission_denials"]), heard);
        let subtype = text(event, &["subtype"]).unwrap_or_default();
        heard.stops(subtype);
        let result = text(event, &["result"]).unwrap_or_default();
        heard.says(result);
        if let Some(tokens) = event.get("usage").and_then(usage).filter(|tokens| tokens.total() > 0) {
            heard.tokens = Some(tokens);
        }
        let is_error = event.get("is_error").and_then(Json::as_bool).unwrap_or(false);
        if is_error || subtype.starts_with("error") {
            if subtype.starts_with("error_max") {
                return;
            }
            let error = event.get("error").unwrap_or(NULL);
            let told = faults::of_error(error, jiff::Timestamp::now());
            let kind = told.kind.unwrap_or(faults::unexplained(self.answered));
            heard.fail_until(kind, text(error, &["message"]).unwrap_or(subtype), told.reset_at);
        } else if !self.answered && (self.counts || !self.worked) {
            let message = format!("the model did not answer, though the result says {subtype}: {result}");
            // The text is not the model's, and may hold the service's answer.
            let told = faults::of_message(result, jiff::Timestamp::now());
            heard.fail_until(told.kind.unwrap_or(FaultKind::Overloaded), &message, told.reset_at);
        }
    }
}

/// Tokens without those of the cache.
fn usage(usage: &Json<'_>) -> Option<Tokens> {
    let (input, output) = (count(usage, &["input_tokens"])?, count(usage, &["output_tokens"])?);
    let cached = count(usage, &["cache_read_input_tokens"]).unwrap_or(0);
    Some(Tokens { input: input.saturating_sub(cached), cached, output })
}

impl Dialect for Qwen {
    fn passes(&mut self, kind: &str) -> bool {
        kind == "stream_event"
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        if let Some(id) = text(event, &["session_id"]) {
            heard.session(id);
        }
        match (text(event, &["type"]), text(event, &["subtype"])) {
            (Some("system"), Some("init")) => heard.model(text(event, &["model"]).unwrap_or_default()),
            (Some("assistant"), _) => self.assistant(event, heard),
            (Some("user"), _) => self.messages.user(event, heard),
            (Some("result"), _) => self.result(event, heard),
            _ => {}
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        self.messages.end(heard);
        if !self.ended {
            heard.breaks_off("the stream ends without a result");
        }
    }
}
