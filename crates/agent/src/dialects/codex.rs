//! Codex, `exec --json`.
//!
//! Seen: `thread.started`, `turn.started`, `item.started` and `item.completed` of `command_execution`, `file_change`,
//! `agent_message` and `error`, `turn.completed`, and `error` events while it reconnects. Read about (its sources):
//! `turn.failed`, `declined` and `failed` items, `item.updated`. An interrupted turn ends with neither event.
//!
//! Errors carry a message and nothing else. It is read where it is the service's answer, a JSON object; else an expired
//! login looks like a service that is down. An `error` event alone is no fault: codex tries again by itself. An item of
//! type `error` is a notice. The model is not named. Commands come quoted anew.
//!
//! Tokens are the totals of the whole thread, and the input includes the cache. A thread that is continued counts on from
//! its former turns: see [`Codex::after`].

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
    /// What the thread had used before.
    before: Tokens,
    ended: bool,
}

impl Codex {
    /// For a thread that is continued: what its receipts say so far, all in all.
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever continues a session"))]
    pub(crate) fn after(before: Tokens) -> Self {
        Self { before, ..Self::default() }
    }

    fn completed(&mut self, item: &Json<'_>, heard: &mut Heard) {
        let id = text(item, &["id"]).unwrap_or_default();
        let status = text(item, &["status"]).unwrap_or_default();
        match text(item, &["type"]) {
            Some("error") | None => return,
            Some("command_execution") => {
                self.calls.close(id);
                if status != "declined" {
                    let command = text(item, &["command"]).unwrap_or_default();
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

    fn usage(&self, usage: &Json<'_>, heard: &mut Heard) {
        let Some((input, output)) = count(usage, &["input_tokens"]).zip(count(usage, &["output_tokens"]))
        else {
            return;
        };
        let cached = count(usage, &["cached_input_tokens"]).unwrap_or(0);
        heard.tokens = Some(Tokens {
            input: input.saturating_sub(cached).saturating_sub(self.before.input),
            cached: cached.saturating_sub(self.before.cached),
            output: output.saturating_sub(self.before.output),
        });
    }
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
                if let Some(usage) = event.get("usage") {
                    self.usage(usage, heard);
                }
            }
            Some("turn.failed") => {
                self.ended = true;
                heard.stops("turn.failed");
                if let Some(usage) = event.get("usage") {
                    self.usage(usage, heard);
                }
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
