//! Claude Code, `-p --verbose --output-format stream-json`.
//!
//! Seen: `system/init`, `assistant`, `user` with `tool_use_result`, `result` with `usage`, `modelUsage`, `total_cost_usd`;
//! against a service that refused (401, 429, 529, a full context): `system/api_retry` with `error_status` and `error`, an
//! `assistant` event of its own with `error`, and `result` with `is_error`, `api_error_status` and `terminal_reason`, while
//! `subtype` says `success`. Read about (types of its SDK, reports of its users): `rate_limit_event` with `status:
//! rejected` and `resetsAt`, and the `error_*` subtypes.
//!
//! The exit status of a command is not told, only whether its call failed.

use std::collections::VecDeque;

use jiff::Timestamp;
use triphammer_model::{FaultKind, Tokens};

use super::fields::{at, count, dollars, list, text};
use super::messages::Messages;
use crate::event::Json;
use crate::faults;
use crate::heard::Heard;
use crate::reset_time;
use crate::stream::Dialect;

/// Messages whose tokens are remembered: one message comes in several events, each with the tokens so far.
const RECENT: usize = 64;

/// The name that claude gives to messages of its own.
const SYNTHETIC: &str = "<synthetic>";

/// A limit that is reached.
#[derive(Clone, Copy, Debug)]
struct Limit {
    reset_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Claude {
    messages: Messages,
    recent: VecDeque<(String, Tokens)>,
    /// A limit of the subscription that turned a request away.
    limit: Option<Limit>,
    /// The sum over all results so far: there is one for each time that it came to rest.
    results: Tokens,
    /// What the last message of its own said went wrong.
    error: Option<String>,
    answered: bool,
    ended: bool,
}

impl Claude {
    fn assistant(&mut self, event: &Json<'_>, heard: &mut Heard) {
        self.ended = false;
        let said = self.messages.assistant(event, heard);
        let model = text(event, &["message", "model"]);
        let error = text(event, &["error"]);
        if let Some(error) = error {
            self.error = Some(crate::heard::head(error, 100).into_owned());
            if let Some(kind) = faults::of_code(error) {
                self.fail(kind, heard.last_words.clone().as_deref().unwrap_or(error), heard);
            }
        } else if model != Some(SYNTHETIC) {
            self.answered = true;
            self.limit = None;
            heard.recovered();
        }
        let Some(model) = model.filter(|model| *model != SYNTHETIC) else { return };
        if said.main {
            heard.model(model);
        }
        if let (Some(id), Some(tokens)) =
            (text(event, &["message", "id"]), at(event, &["message", "usage"]).and_then(usage))
        {
            self.spend(id, tokens, heard);
        }
    }

    /// Adds what a message used beyond what its earlier events said.
    fn spend(&mut self, id: &str, tokens: Tokens, heard: &mut Heard) {
        let before = self.recent.iter_mut().find(|(known, _)| known == id);
        let more = before.as_ref().map_or(tokens, |(_, before)| Tokens {
            input: tokens.input.saturating_sub(before.input),
            cached: tokens.cached.saturating_sub(before.cached),
            output: tokens.output.saturating_sub(before.output),
        });
        if let Some((_, before)) = before {
            *before = add(*before, more);
        } else {
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((id.to_owned(), tokens));
        }
        heard.spend(more);
    }

    fn fail(&self, kind: FaultKind, message: &str, heard: &mut Heard) {
        match (kind, self.limit) {
            (FaultKind::RateLimit | FaultKind::Quota, Some(limit)) => {
                heard.fail_until(FaultKind::Quota, message, limit.reset_at);
            }
            _ => heard.fail(kind, message),
        }
    }

    fn limited(&mut self, event: &Json<'_>, heard: &mut Heard) {
        let Some(info) = event.get("rate_limit_info") else { return };
        let overage = info.get("isUsingOverage").and_then(Json::as_bool).unwrap_or(false);
        if text(info, &["status"]) == Some("rejected") && !overage {
            let reset_at = info.get("resetsAt").and_then(|at| reset_time::read(at, Timestamp::now()));
            self.limit = Some(Limit { reset_at });
            let which = text(info, &["rateLimitType"]).unwrap_or("usage");
            // A window of hours or days: another agent may take over meanwhile.
            self.fail(FaultKind::Quota, &format!("the {which} limit is reached"), heard);
        }
    }

    fn result(&mut self, event: &Json<'_>, heard: &mut Heard) {
        self.ended = true;
        self.messages.denied(list(event, &["permission_denials"]), heard);
        let subtype = text(event, &["subtype"]).unwrap_or_default();
        let reason = text(event, &["stop_reason"]);
        let terminal = text(event, &["terminal_reason"]);
        let result = text(event, &["result"]);
        heard.says(result.unwrap_or_default());
        if let Some(usage) = event.get("usage").and_then(usage) {
            self.results = add(self.results, usage);
            heard.tokens = Some(self.results);
        }
        // Helpers and side tasks are in here, too.
        if let Some(all) = at(event, &["modelUsage"]).and_then(all_models) {
            heard.tokens = Some(all);
        }
        if let Some(total) = dollars(event, &["total_cost_usd"]) {
            heard.paid(total);
        }
        let is_error = event.get("is_error").and_then(Json::as_bool).unwrap_or(false);
        if !is_error && !subtype.starts_with("error") {
            heard.stops(reason.or(terminal).unwrap_or(subtype));
            heard.recovered();
            if let Some(kind) = reason.and_then(faults::of_code) {
                heard.fail(kind, result.unwrap_or_default());
            }
            return;
        }
        let words =
            [Some(subtype).filter(|s| s.starts_with("error")), terminal.filter(|t| *t != "completed")];
        let word = words.into_iter().flatten().next().or(self.error.as_deref()).or(reason);
        heard.stops(word.unwrap_or(subtype));
        let own_limit = matches!(subtype, "error_max_turns" | "error_max_budget_usd")
            || matches!(terminal, Some("max_turns" | "budget_exhausted"));
        if own_limit {
            heard.recovered();
            return;
        }
        if terminal.is_some_and(|terminal| terminal.starts_with("aborted")) {
            heard.breaks_off("the agent was interrupted");
            return;
        }
        let before = heard.fault.take();
        let codes = [terminal, reason, text(event, &["error"])].into_iter().flatten();
        let told = faults::of_all(count(event, &["api_error_status"]), codes);
        let kind = told.or(before.map(|fault| fault.kind)).unwrap_or(faults::unexplained(self.answered));
        let errors = list(event, &["errors"]).iter().find_map(Json::as_str);
        self.fail(kind, result.or(errors).unwrap_or(subtype), heard);
    }
}

fn add(a: Tokens, b: Tokens) -> Tokens {
    Tokens {
        input: a.input.saturating_add(b.input),
        cached: a.cached.saturating_add(b.cached),
        output: a.output.saturating_add(b.output),
    }
}

/// Tokens as the service counts them: the input excludes what was read from the cache and written to it.
fn usage(usage: &Json<'_>) -> Option<Tokens> {
    let input = count(usage, &["input_tokens"])?;
    let written = count(usage, &["cache_creation_input_tokens"]).unwrap_or(0);
    Some(Tokens {
        input: input.saturating_add(written),
        cached: count(usage, &["cache_read_input_tokens"]).unwrap_or(0),
        output: count(usage, &["output_tokens"])?,
    })
}

/// The same for every model that was used.
fn all_models(models: &Json<'_>) -> Option<Tokens> {
    let one = |model: &Json<'_>| {
        let written = count(model, &["cacheCreationInputTokens"]).unwrap_or(0);
        Some(Tokens {
            input: count(model, &["inputTokens"])?.saturating_add(written),
            cached: count(model, &["cacheReadInputTokens"]).unwrap_or(0),
            output: count(model, &["outputTokens"])?,
        })
    };
    models.fields().iter().filter_map(|(_, model)| one(model)).reduce(add)
}

impl Dialect for Claude {
    fn passes(&mut self, kind: &str) -> bool {
        // Pieces of messages that come whole as well.
        matches!(kind, "stream_event" | "tool_progress")
    }

    fn event(&mut self, event: &Json<'_>, heard: &mut Heard) {
        if let Some(id) = text(event, &["session_id"]) {
            heard.session(id);
        }
        match (text(event, &["type"]), text(event, &["subtype"])) {
            (Some("system"), Some("init")) => heard.model(text(event, &["model"]).unwrap_or_default()),
            (Some("system"), Some("api_retry")) => {
                let error = text(event, &["error"]);
                let kind = faults::of_all(count(event, &["error_status"]), error);
                let message = format!("retrying after {}", error.unwrap_or("an error"));
                self.fail(kind.unwrap_or(FaultKind::Overloaded), &message, heard);
            }
            (Some("assistant"), _) => self.assistant(event, heard),
            (Some("user"), _) => self.messages.user(event, heard),
            (Some("rate_limit_event"), _) => self.limited(event, heard),
            (Some("result"), _) => self.result(event, heard),
            _ => {}
        }
    }

    fn end(&mut self, heard: &mut Heard) {
        self.messages.end(heard);
        heard.unpriced();
        if !self.ended {
            heard.breaks_off("the stream ends without a result");
        }
    }
}
