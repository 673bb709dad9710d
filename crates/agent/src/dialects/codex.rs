//! Codex, `exec --json`.
//!
//! Seen: `thread.started`, `turn.started`, `item.started` and `item.completed` of `command_execution`, `file_change`,
//! `agent_message` and `error`, `turn.completed`, `turn.failed`, and `error` events while it tries again. Read about (its
//! sources): `declined` and `failed` items, `item.updated`. An interrupted turn ends with neither event.
//!
//! Errors carry a message and nothing else, so that here a refused key looks like a service that is down; the
//! [record of the session](super::add_rollout) tells better. An `error` event alone is no fault: codex tries again by
//! itself. An item of type `error` is a notice. The model is not named. Commands come quoted anew.
//!
//! Tokens are the totals of the whole thread, the input with the cache in it; of a thread that is continued only its record
//! tells what was used since.

use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::calls::{Act, Calls};
use super::fields::{count, exit, list, text};
use crate::event::{Json, NULL};
use crate::faults;
use crate::heard::Heard;
use crate::stream::Dialect;

#[derive(Debug, Default)]
pub(crate) struct Codex {
    calls: Calls,
    ended: bool,
}

impl Codex {
    fn completed(&mut self, item: &Json<'_>, heard: &mut Heard) {
        let id = text(item, &["id"]).unwrap_or_default();
        let status = text(item, &["status"]).unwrap_or_default();
        match text(item, &["type"]) {
            Some("error") | None => return,
            Some("command_execution") => {
                self.calls.close(id);
                let command = text(item, &["command"]).unwrap_or_default();
                if status == "declined" {
                    heard.not_let(command);
                } else {
                    heard.command(command, exit(item, &["exit_code"]));
                }
            }
            Some("file_change") if status == "completed" => {
                for change in list(item, &["changes"]) {
                    let kind = match text(change, &["kind"]).or_else(|| text(change, &["kind", "type"])) {
                        Some("add") => ClaimKind::Added,
                        Some("delete") => ClaimKind::Deleted,
                        _ => ClaimKind::Changed,
                    };
                    heard.file(text(change, &["path"]).unwrap_or_default(), kind, "file_change");
                }
            }
            Some("agent_message") => heard.says(text(item, &["text"]).unwrap_or_default()),
            Some(_) => {}
        }
        heard.recovered();
    }
}

/// Tokens without those of the cache.
pub(super) fn usage(usage: &Json<'_>) -> Option<Tokens> {
    let (input, output) = (count(usage, &["input_tokens"])?, count(usage, &["output_tokens"])?);
    let cached = count(usage, &["cached_input_tokens"]).unwrap_or(0);
    Some(Tokens { input: input.saturating_sub(cached), cached, output })
}

fn fail(error: &Json<'_>, heard: &mut Heard) {
    let told = faults::of_error(error, jiff::Timestamp::now());
    let message = text(error, &["message"]).unwrap_or_default();
    heard.fail_until(told.kind.unwrap_or(FaultKind::Overloaded), message, told.reset_at);
}

impl Dialect for Codex {
    fn passes(&mut self, kind: &str) -> bool {
        kind == "item.updated"
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        match text(event, &["type"]) {
            Some("thread.started") => heard.session(text(event, &["thread_id"]).unwrap_or_default()),
            Some("turn.started") => self.ended = false,
            Some("item.started") => {
                let Some(item) = event.get("item") else { return };
                if text(item, &["type"]) == Some("command_execution")
                    && let (Some(id), Some(command)) = (text(item, &["id"]), text(item, &["command"]))
                {
                    self.calls.open(id, "command_execution", Act::command(command));
                }
            }
            Some("item.completed") => {
                if let Some(item) = event.get("item") {
                    self.completed(item, heard);
                }
            }
            Some("turn.completed") => {
                self.ended = true;
                heard.recovered();
                heard.stops("turn.completed");
                heard.tokens = event.get("usage").and_then(usage).or(heard.tokens);
            }
            Some("turn.failed") => {
                self.ended = true;
                heard.stops("turn.failed");
                heard.tokens = event.get("usage").and_then(usage).or(heard.tokens);
                let before = heard.fault.take();
                fail(event.get("error").unwrap_or(NULL), heard);
                // What came before may have told more.
                if let (Some(now), Some(before)) = (&mut heard.fault, before)
                    && now.kind == FaultKind::Overloaded
                    && before.kind != FaultKind::Overloaded
                {
                    *now = before;
                }
            }
            Some("error") => {
                heard.recovered();
                fail(event, heard);
            }
            _ => {}
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        self.calls.end(heard);
        if !self.ended {
            heard.breaks_off("the stream ends in the middle of a turn");
        }
    }
}
