//! Anthropic's messages.

use serde_json::{Value, json};

use super::script::Failure;
use super::tools::{Call, Tool};
use super::wire::{Round, Said, Turn, Wire, event, list, parts_text, text};

pub(super) struct Anthropic;

/// What is said, and why the turn ends.
fn block(said: &Said, round: &Round) -> (Value, &'static str) {
    match said {
        Said::Text(text) => (json!({"type": "text", "text": text}), "end_turn"),
        Said::Call(call) => {
            let (name, input) = match call {
                Call::Function { name, arguments } => (name, arguments.clone()),
                Call::Custom { name, input } => (name, json!({"input": input})),
            };
            let id = format!("toolu_{}", round.number);
            (json!({"type": "tool_use", "id": id, "name": name, "input": input}), "tool_use")
        }
    }
}

/// Tokens that came from the cache stand beside the others here, not among them.
fn usage(round: &Round, output: usize) -> Value {
    json!({
        "input_tokens": round.input() - round.cached(),
        "cache_read_input_tokens": round.cached(),
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    })
}

fn message(round: &Round, content: &[Value], stop: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", round.number),
        "type": "message",
        "role": "assistant",
        "model": round.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": usage,
    })
}

impl Wire for Anthropic {
    fn streams(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let tools = list(body, "tools").iter().filter(|tool| tool.get("input_schema").is_some());
        tools.map(|tool| Tool::function(text(tool, "name"), &tool["input_schema"])).collect()
    }

    fn turns(&self, body: &Value) -> Vec<Turn> {
        let turn = |message: &Value| {
            if text(message, "role") != "user" {
                return None;
            }
            let blocks = list(message, "content").iter();
            let results = blocks.filter(|block| text(block, "type") == "tool_result").count();
            // Reminders stand beside results in one message; a prompt stands alone.
            if results > 0 {
                Some(Turn::Results(results))
            } else {
                Some(Turn::Prompt(parts_text(&message["content"])))
            }
        };
        list(body, "messages").iter().filter_map(turn).collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        body.pointer("/output_config/format/schema")
    }

    fn plain(&self, said: &Said, round: &Round) -> Value {
        let (block, stop) = block(said, round);
        message(round, &[block], Some(stop), &usage(round, round.output()))
    }

    fn events(&self, said: &Said, round: &Round) -> String {
        let (block, stop) = block(said, round);
        let mut begun = block.clone();
        let delta = match said {
            Said::Text(text) => {
                begun["text"] = json!("");
                json!({"type": "text_delta", "text": text})
            }
            Said::Call(_) => {
                begun["input"] = json!({});
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
            }
        };
        let end = json!({"stop_reason": stop, "stop_sequence": null});
        let events = [
            json!({"type": "message_start", "message": message(round, &[], None, &usage(round, 1))}),
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": end, "usage": usage(round, round.output())}),
            json!({"type": "message_stop"}),
        ];
        events.iter().map(|data| event(data["type"].as_str(), data)).collect()
    }

    fn failure(&self, failure: Failure) -> (u16, Value) {
        let (status, kind, message) = match failure {
            Failure::Authentication => (401, "authentication_error", "invalid x-api-key"),
            Failure::RateLimit => {
                (429, "rate_limit_error", "This request would exceed your organization's rate limit.")
            }
            Failure::Quota => {
                (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")
            }
            Failure::Overloaded => (529, "overloaded_error", "Overloaded"),
            Failure::ContextOverflow => {
                (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
            }
            Failure::Server => (500, "api_error", "Internal server error"),
        };
        (status, json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}))
    }
}
