//! opencode, `run --format json`.
//!
//! Seen: `step_start`, `tool_use` of `bash` and `write`, `text`, `step_finish`, `error` with `name` and `data`
//! (`statusCode`, `isRetryable`, `responseHeaders`, `responseBody`). Read about (its sources): other names of errors, a
//! tool's state `error`, and the files in the metadata of `apply_patch`. Its own retries are not in the stream. The model is not named.
//!
//! Tokens and cost come by step, without a total; the input excludes the cache. The cost follows from configured prices and
//! is nothing where there are none.

use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::fields::{at, count, dollars, exit, first_text, list, text, time};
use crate::event::{Json, NULL};
use crate::faults;
use crate::heard::Heard;
use crate::stream::Dialect;

#[derive(Debug, Default)]
pub(crate) struct Opencode {
    /// A step is finished, and not for the sake of tools whose results go into the next one.
    ended: bool,
    answered: bool,
}

fn tool(part: &Json<'_>, heard: &mut Heard) {
    let Some(state) = part.get("state") else { return };
    let done = text(state, &["status"]) == Some("completed");
    let input = state.get("input").unwrap_or(NULL);
    let tool = text(part, &["tool"]).unwrap_or_default();
    match tool {
        "bash" => {
            // One that failed without an exit status was not run: it was refused, or its arguments were wrong.
            let exit = exit(state, &["metadata", "exit"]);
            if done || exit.is_some() {
                heard.command(text(input, &["command"]).unwrap_or_default(), exit);
            }
        }
        "write" if done => {
            let new = at(state, &["metadata", "exists"]).and_then(Json::as_bool) == Some(false);
            let kind = if new { ClaimKind::Added } else { ClaimKind::Changed };
            heard.file(first_text(input, &["filePath", "path"]).unwrap_or_default(), kind, tool);
        }
        "edit" | "multiedit" if done => {
            let path = first_text(input, &["filePath", "path"]).unwrap_or_default();
            heard.file(path, ClaimKind::Changed, tool);
        }
        "apply_patch" | "patch" if done => {
            for file in list(state, &["metadata", "files"]) {
                let path = first_text(file, &["filePath", "relativePath", "path"]).unwrap_or_default();
                match text(file, &["type"]) {
                    Some("add") => heard.file(path, ClaimKind::Added, tool),
                    Some("delete") => heard.file(path, ClaimKind::Deleted, tool),
                    Some("move") => {
                        heard.file(path, ClaimKind::Deleted, tool);
                        heard.file(text(file, &["movePath"]).unwrap_or_default(), ClaimKind::Added, tool);
                    }
                    _ => heard.file(path, ClaimKind::Changed, tool),
                }
            }
        }
        _ => {}
    }
}

fn usage(tokens: &Json<'_>) -> Option<Tokens> {
    let input = count(tokens, &["input"])?;
    let output = count(tokens, &["output"])?;
    let cached = count(tokens, &["cache", "read"]).unwrap_or(0);
    let written = count(tokens, &["cache", "write"]).unwrap_or(0);
    let reasoning = count(tokens, &["reasoning"]).unwrap_or(0);
    let input = input.saturating_add(written);
    // Whether the output includes the reasoning depends on the provider; the total tells.
    let before = input.saturating_add(cached);
    let output = match count(tokens, &["total"]) {
        Some(total) if total >= before.saturating_add(output) => {
            (total - before).min(output.saturating_add(reasoning))
        }
        _ => output.saturating_add(reasoning),
    };
    Some(Tokens { input, cached, output })
}

impl Opencode {
    fn error(&mut self, event: &Json<'_>, heard: &mut Heard) {
        let error = event.get("error").unwrap_or(NULL);
        let name = text(error, &["name"]).unwrap_or("error");
        let message = text(error, &["data", "message"]).unwrap_or(name);
        match name {
            "MessageAbortedError" => heard.breaks_off("the agent was interrupted"),
            // The answer was cut at the limit of its length: nothing is wrong with the service.
            "MessageOutputLengthError" => {}
            _ => {
                let told = faults::of_error(error, time(event));
                let kind = told.kind.unwrap_or(faults::unexplained(self.answered));
                heard.fail_until(kind, message, told.reset_at);
            }
        }
        heard.stops(name);
        self.ended = true;
    }

    fn finish(&mut self, part: &Json<'_>, heard: &mut Heard) {
        let reason = text(part, &["reason"]).unwrap_or_default();
        heard.stops(reason);
        self.ended = reason != "tool-calls";
        self.answered = true;
        heard.recovered();
        if faults::of_code(reason) == Some(FaultKind::Refused) {
            heard.fail(FaultKind::Refused, reason);
        }
        if let Some(tokens) = part.get("tokens").and_then(usage) {
            heard.spend(tokens);
        }
        if let Some(cost) = dollars(part, &["cost"]) {
            heard.pay(cost);
        }
    }
}

impl Dialect for Opencode {
    fn passes(&mut self, kind: &str) -> bool {
        kind == "reasoning"
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        // Helpers have sessions of their own.
        if let Some(id) = text(event, &["sessionID"]).filter(|_| heard.session.is_none()) {
            heard.session(id);
        }
        let part = event.get("part").unwrap_or(NULL);
        match text(event, &["type"]) {
            Some("step_start") => self.ended = false,
            Some("tool_use") => tool(part, heard),
            Some("text") => heard.says(text(part, &["text"]).unwrap_or_default()),
            Some("step_finish") => self.finish(part, heard),
            Some("error") => self.error(event, heard),
            _ => {}
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        heard.unpriced();
        if !self.ended {
            heard.breaks_off("the stream ends in the middle of its work");
        }
    }
}
