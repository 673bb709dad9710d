//! Gemini CLI, `-o stream-json`.
//!
//! Seen: `init`, `message`, `tool_use`, `tool_result`, `result` with `stats`, `result` with `status: error` and an error
//! of type `unknown`, which has the service's answer in its message, or not. Read about (its sources): `error` with a
//! severity, `tool_result` with an error's type, the class of an error as its type.
//!
//! Where the stream does not explain a failure, the exit status does: it is the service's status, of which the system
//! keeps eight bits (seen: 145 for 401, 173 for 429).
//!
//! The input includes the cache, and the output leaves the thoughts out, which the total has. No cost is told, and no exit
//! status of commands.

use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::calls::{Act, Calls};
use super::fields::{count, first_text, text, time};
use crate::event::{Json, NULL};
use crate::faults;
use crate::heard::Heard;
use crate::stream::Dialect;

/// Bytes of the last message that are kept while its pieces come in; its end counts.
const WORDS: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Gemini {
    calls: Calls,
    words: String,
    answered: bool,
    ended: bool,
    /// It failed, and no field said why.
    unexplained: bool,
}

impl Gemini {
    fn message(&mut self, event: &Json<'_>) {
        if text(event, &["role"]) != Some("assistant") {
            self.words.clear();
            return;
        }
        self.answered = true;
        if event.get("delta").and_then(Json::as_bool) != Some(true) {
            self.words.clear();
        }
        self.words.push_str(text(event, &["content"]).unwrap_or_default());
        if self.words.len() > 2 * WORDS {
            let cut = self.words.ceil_char_boundary(self.words.len() - WORDS);
            self.words.drain(..cut);
        }
    }

    fn tool_use(&mut self, event: &Json<'_>, heard: &mut Heard) {
        self.answered = true;
        heard.says(&self.words);
        self.words.clear();
        let (Some(id), Some(tool)) = (text(event, &["tool_id"]), text(event, &["tool_name"])) else { return };
        let Some(input) = event.get("parameters") else { return };
        let act = match tool {
            "run_shell_command" => text(input, &["command"]).map(Act::command),
            "write_file" | "replace" | "edit" | "smart_edit" => {
                let path = first_text(input, &["file_path", "absolute_path", "path"]);
                path.map(|path| Act::file(path, ClaimKind::Changed))
            }
            _ => None,
        };
        if let Some(act) = act {
            self.calls.open(id, tool, act);
        }
    }

    fn tool_result(&mut self, event: &Json<'_>, heard: &mut Heard) {
        let Some(call) = text(event, &["tool_id"]).and_then(|id| self.calls.close(id)) else { return };
        match call.act {
            Act::File(path, kind) => {
                if text(event, &["status"]) == Some("success") {
                    heard.file(&path, kind, &call.tool);
                }
            }
            Act::Command(command) => {
                match text(event, &["error", "type"]) {
                    Some("execution_denied" | "policy_violation") => heard.not_let(&command),
                    // Its call was wrong, so that nothing was run.
                    Some("invalid_tool_params" | "tool_not_registered" | "path_not_in_workspace") => {}
                    _ => {
                        heard.command(&command, None);
                    }
                }
            }
        }
    }

    fn result(&mut self, event: &Json<'_>, heard: &mut Heard) {
        self.ended = true;
        heard.says(&self.words);
        let status = text(event, &["status"]).unwrap_or_default();
        heard.stops(status);
        let tokens = event.get("stats").and_then(usage);
        if let Some(tokens) = tokens.filter(|tokens| tokens.total() > 0) {
            heard.tokens = Some(tokens);
        }
        let error = event.get("error").filter(|error| matches!(error, Json::Fields(_)));
        if status != "error" && error.is_none() {
            return;
        }
        let error = error.unwrap_or(NULL);
        let class = text(error, &["type"]).unwrap_or("error");
        heard.stops(class);
        if matches!(class, "FatalTurnLimitedError" | "FatalCancellationError") {
            return;
        }
        let told = faults::of_error(error, time(event));
        self.unexplained = told.kind.is_none();
        let kind = told.kind.unwrap_or(faults::unexplained(self.answered));
        heard.fail_until(kind, text(error, &["message"]).unwrap_or(class), told.reset_at);
    }
}

/// The kind of a service's status of which eight bits are left. 41 is its own, for a login that is missing.
fn of_exit(status: i32) -> Option<FaultKind> {
    if status == 41 {
        return Some(FaultKind::Authentication);
    }
    let known = [400, 401, 403, 404, 429, 500, 502, 503, 504];
    let whole = known.into_iter().find(|whole| i32::try_from(whole & 0xff) == Ok(status))?;
    faults::of_status(whole)
}

fn usage(stats: &Json<'_>) -> Option<Tokens> {
    let (all, output) = (count(stats, &["input_tokens"])?, count(stats, &["output_tokens"])?);
    let cached = count(stats, &["cached"]).unwrap_or(0);
    let input = count(stats, &["input"]).unwrap_or(all.saturating_sub(cached));
    let thought = count(stats, &["total_tokens"]).unwrap_or(0).saturating_sub(all);
    Some(Tokens { input, cached, output: output.max(thought) })
}

impl Dialect for Gemini {
    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        match text(event, &["type"]) {
            Some("init") => {
                heard.session(text(event, &["session_id"]).unwrap_or_default());
                heard.model(text(event, &["model"]).unwrap_or_default());
            }
            Some("message") => self.message(event),
            Some("tool_use") => self.tool_use(event, heard),
            Some("tool_result") => self.tool_result(event, heard),
            Some("result") => self.result(event, heard),
            _ => {}
        }
    }

    fn exited(&mut self, status: i32, heard: &mut Heard) {
        if let Some(kind) = of_exit(status).filter(|_| self.unexplained || !self.ended) {
            let message = heard.fault.take().and_then(|fault| fault.message).unwrap_or_default();
            heard.fail(kind, &message);
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        self.calls.end(heard);
        if !self.ended {
            heard.says(&self.words);
            heard.breaks_off("the stream ends without a result");
        }
    }
}
