//! `OpenAI`'s responses.

use serde_json::{Value, json};

use super::chat::failed;
use super::script::Failure;
use super::tools::{Call, Tool};
use super::wire::{Round, Said, Turn, Wire, event, list, parts_text, text};

pub(super) struct Responses;

fn item(said: &Said, round: &Round) -> Value {
    let number = round.number;
    let call_id = format!("call_{number}");
    match said {
        Said::Text(text) => json!({
            "type": "message",
            "id": format!("msg_{number}"),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Said::Call(Call::Function { name, arguments }) => json!({
            "type": "function_call",
            "id": format!("fc_{number}"),
            "call_id": call_id,
            "name": name,
            "arguments": arguments.to_string(),
            "status": "completed",
        }),
        Said::Call(Call::Custom { name, input }) => json!({
            "type": "custom_tool_call",
            "id": format!("ctc_{number}"),
            "call_id": call_id,
            "name": name,
            "input": input,
            "status": "completed",
        }),
    }
}

fn response(round: &Round, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_{}", round.number),
        "object": "response",
        "created_at": 1,
        "model": round.model,
        "status": status,
        "output": output,
    })
}

fn completed(round: &Round, item: Value) -> Value {
    let mut response = response(round, "completed", &[item]);
    response["usage"] = json!({
        "input_tokens": round.input(),
        "input_tokens_details": {"cached_tokens": round.cached()},
        "output_tokens": round.output(),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": round.input() + round.output(),
    });
    response
}

/// The item as a stream announces it: without what is still to come.
fn begun(item: &Value) -> Value {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    for (key, empty) in [("arguments", json!("")), ("input", json!("")), ("content", json!([]))] {
        if begun.get(key).is_some() {
            begun[key] = empty;
        }
    }
    begun
}

impl Wire for Responses {
    fn streams(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let tool = |tool: &Value| match text(tool, "type") {
            "function" => Some(Tool::function(text(tool, "name"), &tool["parameters"])),
            "custom" => Some(Tool::custom(text(tool, "name"))),
            _ => None,
        };
        list(body, "tools").iter().filter_map(tool).collect()
    }

    fn turns(&self, body: &Value) -> Vec<Turn> {
        if let Some(prompt) = body["input"].as_str() {
            return vec![Turn::Prompt(prompt.to_owned())];
        }
        let turn = |item: &Value| match (text(item, "type"), text(item, "role")) {
            (_, "user") => Some(Turn::Prompt(parts_text(&item["content"]))),
            (kind, _) if kind.ends_with("_call_output") => Some(Turn::Results(1)),
            _ => None,
        };
        list(body, "input").iter().filter_map(turn).collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        body.pointer("/text/format/schema")
    }

    fn plain(&self, said: &Said, round: &Round) -> Value {
        completed(round, item(said, round))
    }

    fn events(&self, said: &Said, round: &Round) -> String {
        let item = item(said, round);
        let id = item["id"].clone();
        let mut out = String::new();
        let mut sequence = 0;
        let mut say = |kind: &str, mut data: Value| {
            data["type"] = json!(kind);
            data["sequence_number"] = json!(sequence);
            sequence += 1;
            out.push_str(&event(Some(kind), &data));
        };
        say("response.created", json!({"response": response(round, "in_progress", &[])}));
        say("response.output_item.added", json!({"output_index": 0, "item": begun(&item)}));
        match said {
            Said::Text(text) => {
                let at = |extra: &str, value: Value| {
                    let mut at = json!({"item_id": id, "output_index": 0, "content_index": 0});
                    at[extra] = value;
                    at
                };
                let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
                say("response.content_part.added", at("part", part("")));
                say("response.output_text.delta", at("delta", json!(text)));
                say("response.output_text.done", at("text", json!(text)));
                say("response.content_part.done", at("part", part(text)));
            }
            Said::Call(Call::Function { arguments, .. }) => {
                let arguments = arguments.to_string();
                say(
                    "response.function_call_arguments.delta",
                    json!({"item_id": id, "output_index": 0, "delta": arguments}),
                );
                say(
                    "response.function_call_arguments.done",
                    json!({"item_id": id, "output_index": 0, "arguments": arguments}),
                );
            }
            Said::Call(Call::Custom { input, .. }) => {
                say(
                    "response.custom_tool_call_input.done",
                    json!({"item_id": id, "output_index": 0, "input": input}),
                );
            }
        }
        say("response.output_item.done", json!({"output_index": 0, "item": item}));
        say("response.completed", json!({"response": completed(round, item.clone())}));
        out
    }

    fn failure(&self, failure: Failure) -> (u16, Value) {
        failed(failure)
    }
}
