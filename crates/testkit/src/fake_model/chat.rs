//! `OpenAI`'s chat completions.

use serde_json::{Value, json};

use super::script::Failure;
use super::tools::{Call, Tool};
use super::wire::{Round, Said, Turn, Wire, event, list, parts_text, text};

pub(super) struct Chat;

fn usage(round: &Round) -> Value {
    json!({
        "prompt_tokens": round.input(),
        "completion_tokens": round.output(),
        "total_tokens": round.input() + round.output(),
        "prompt_tokens_details": {"cached_tokens": round.cached()},
    })
}

/// The message, its calls numbered as a stream has them, and why it ends.
fn message(said: &Said, round: &Round) -> (Value, &'static str) {
    match said {
        Said::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Said::Call(call) => {
            let (name, arguments) = match call {
                Call::Function { name, arguments } => (name, arguments.to_string()),
                Call::Custom { name, input } => (name, json!({"input": input}).to_string()),
            };
            let call = json!({
                "index": 0,
                "id": format!("call_{}", round.number),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            });
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
    }
}

impl Wire for Chat {
    fn streams(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let functions = list(body, "tools").iter().filter_map(|tool| tool.get("function"));
        functions.map(|function| Tool::function(text(function, "name"), &function["parameters"])).collect()
    }

    fn turns(&self, body: &Value) -> Vec<Turn> {
        let turn = |message: &Value| match text(message, "role") {
            "user" => Some(Turn::Prompt(parts_text(&message["content"]))),
            "tool" => Some(Turn::Results(1)),
            _ => None,
        };
        list(body, "messages").iter().filter_map(turn).collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        body.pointer("/response_format/json_schema/schema")
    }

    fn plain(&self, said: &Said, round: &Round) -> Value {
        let (message, finish) = message(said, round);
        json!({
            "id": format!("chatcmpl-{}", round.number),
            "object": "chat.completion",
            "created": 1,
            "model": round.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage(round),
        })
    }

    fn events(&self, said: &Said, round: &Round) -> String {
        let (delta, finish) = message(said, round);
        let chunk = |choices: Value, usage: Value| {
            let chunk = json!({
                "id": format!("chatcmpl-{}", round.number),
                "object": "chat.completion.chunk",
                "created": 1,
                "model": round.model,
                "choices": choices,
                "usage": usage,
            });
            event(None, &chunk)
        };
        let said = chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
        let end = chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), usage(round));
        format!("{said}{end}data: [DONE]\n\n")
    }

    fn failure(&self, failure: Failure) -> (u16, Value) {
        failed(failure)
    }
}

/// Both of `OpenAI`'s interfaces fail in the same words.
pub(super) fn failed(failure: Failure) -> (u16, Value) {
    let (status, kind, code, message) = match failure {
        Failure::Authentication => {
            (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: dummy.")
        }
        Failure::RateLimit => (
            429,
            "requests",
            "rate_limit_exceeded",
            "Rate limit reached for requests per min. Limit: 3 / min. Please try again in 20s.",
        ),
        Failure::Quota => (
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Failure::Overloaded => {
            (503, "service_unavailable", "server_is_overloaded", "The engine is currently overloaded.")
        }
        Failure::ContextOverflow => (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens.",
        ),
        Failure::Server => (500, "server_error", "server_error", "The server had an error."),
    };
    (status, json!({"error": {"message": message, "type": kind, "param": null, "code": code}}))
}
