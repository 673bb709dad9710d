//! pi, `-p --mode json`.
//!
//! Seen: a whole run; one against a server that was down and one against a limit, which end with `auto_retry_end` and
//! `success: false`; one with a refused key. Those exit with 0 as well. Read about (its sources and those of programs built on it): `auto_compaction_start` and `_end`,
//! the stop reasons `length` and `aborted`, and `diagnostics` of a message with a status and a kind.
//!
//! Each message is repeated whole with each piece of it, and the conversation with each end: only `message_end` is read.
//! Errors carry a text, at times with the service's answer in it. Tokens and cost come by message; the input excludes the cache; the cost follows from
//! configured prices. No exit status of commands is told.

use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::calls::{Act, Calls};
use super::fields::{count, dollars, first_text, list, text};
use crate::event::{Json, NULL};
use crate::faults;
use crate::heard::Heard;
use crate::stream::Dialect;

#[derive(Debug, Default)]
pub(crate) struct Pi {
    calls: Calls,
    /// The context was too small for the conversation, and it is being made shorter.
    overflow: bool,
    ended: bool,
}

impl Pi {
    fn message(message: &Json<'_>, heard: &mut Heard) {
        if text(message, &["role"]) != Some("assistant") {
            return;
        }
        heard.model(text(message, &["model"]).unwrap_or_default());
        let reason = text(message, &["stopReason"]).unwrap_or_default();
        heard.stops(reason);
        let texts = list(message, &["content"]).iter().filter(|block| text(block, &["type"]) == Some("text"));
        let words: String = texts.filter_map(|block| text(block, &["text"])).collect();
        heard.says(&words);
        if let Some(tokens) = message.get("usage").and_then(usage).filter(|tokens| tokens.total() > 0) {
            heard.spend(tokens);
            if let Some(cost) = dollars(message, &["usage", "cost", "total"]) {
                heard.pay(cost);
            }
        }
        match reason {
            "error" => {
                let said = text(message, &["errorMessage"]).unwrap_or_default();
                let now = jiff::Timestamp::now();
                let diagnostics = message.get("diagnostics").map(|told| faults::of_error(told, now));
                let told = diagnostics.filter(|told| told.kind.is_some());
                let told = told.unwrap_or_else(|| faults::of_message(said, now));
                heard.recovered();
                heard.fail_until(told.kind.unwrap_or(FaultKind::Overloaded), said, told.reset_at);
            }
            "aborted" | "" => {}
            _ => heard.recovered(),
        }
    }

    fn start(&mut self, event: &Json<'_>) {
        let (Some(id), Some(tool)) = (text(event, &["toolCallId"]), text(event, &["toolName"])) else {
            return;
        };
        let Some(input) = event.get("args") else { return };
        let act = match tool {
            "bash" => text(input, &["command"]).map(Act::command),
            "write" | "edit" => {
                first_text(input, &["path", "file_path"]).map(|path| Act::file(path, ClaimKind::Changed))
            }
            _ => None,
        };
        if let Some(act) = act {
            self.calls.open(id, tool, act);
        }
    }

    fn end_of_call(&mut self, event: &Json<'_>, heard: &mut Heard) {
        let Some(call) = text(event, &["toolCallId"]).and_then(|id| self.calls.close(id)) else { return };
        match call.act {
            Act::File(path, kind) => {
                if event.get("isError").and_then(Json::as_bool) == Some(false) {
                    heard.file(&path, kind, &call.tool);
                }
            }
            Act::Command(command) => {
                heard.command(&command, None);
            }
        }
    }
}

fn usage(usage: &Json<'_>) -> Option<Tokens> {
    let input = count(usage, &["input"])?;
    let written = count(usage, &["cacheWrite"]).unwrap_or(0);
    Some(Tokens {
        input: input.saturating_add(written),
        cached: count(usage, &["cacheRead"]).unwrap_or(0),
        output: count(usage, &["output"])?,
    })
}

impl Dialect for Pi {
    fn passes(&mut self, kind: &str) -> bool {
        match kind {
            "agent_start" => self.ended = false,
            "agent_end" => self.ended = true,
            _ => {}
        }
        matches!(
            kind,
            "message_update"
                | "message_start"
                | "tool_execution_update"
                | "turn_start"
                | "turn_end"
                | "agent_start"
                | "agent_end"
        )
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        let flag = |name| event.get(name).and_then(Json::as_bool);
        match text(event, &["type"]) {
            Some("session") => heard.session(text(event, &["id"]).unwrap_or_default()),
            Some("agent_start") => self.ended = false,
            Some("agent_end") => self.ended = true,
            Some("message_end") => {
                if let Some(message) = event.get("message") {
                    Self::message(message, heard);
                }
            }
            Some("tool_execution_start") => self.start(event),
            Some("tool_execution_end") => self.end_of_call(event, heard),
            Some("auto_retry_end") => match flag("success") {
                Some(true) => heard.recovered(),
                _ => heard.fail(FaultKind::Overloaded, text(event, &["finalError"]).unwrap_or_default()),
            },
            Some("auto_compaction_start" | "compaction_start") => {
                self.overflow = text(event, &["reason"]) == Some("overflow");
            }
            Some("auto_compaction_end" | "compaction_end") => {
                let made = event.get("result").is_some_and(|result| result != NULL);
                if self.overflow && !made && flag("willRetry") != Some(true) {
                    heard.recovered();
                    heard
                        .fail(FaultKind::ContextOverflow, text(event, &["errorMessage"]).unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        self.calls.end(heard);
        heard.unpriced();
        if !self.ended {
            heard.breaks_off("the stream ends in the middle of its work");
        }
    }
}
