//! The messages interface, which Anthropic began.

use serde_json::{Map, Value, json};
use triphammer_model::Tokens;

use crate::error::LlmFault;
use crate::reply::{Reply, Stop, ToolCall};
use crate::request::{Message, Request, Shape};

/// The version that requests name.
pub(crate) const VERSION: &str = "2023-06-01";
/// The field of the tool that a schema is asked for by: a tool's arguments have to be an object, a schema need not be
/// one.
const FIELD: &str = "reply";
/// A message may not be empty.
const NOTHING: &str = "(nothing)";

/// The body of a request. A schema becomes a tool that has to be called, which every version of the interface knows.
pub(crate) fn body(request: &Request) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.clone().into());
    body.insert("max_tokens".to_owned(), request.max_tokens.into());
    if !request.system.is_empty() {
        body.insert("system".to_owned(), request.system.clone().into());
    }
    body.insert("messages".to_owned(), messages.into());
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    match &request.shape {
        Shape::Text => {}
        Shape::Tools(tools) => {
            let tool = |name: &str, about: &str, schema: &Value| json!({ "name": name, "description": about, "input_schema": schema });
            let tools: Vec<Value> =
                tools.iter().map(|t| tool(&t.name, &t.description, &t.parameters)).collect();
            body.insert("tools".to_owned(), tools.into());
        }
        Shape::Json(schema) => {
            let object =
                json!({ "type": "object", "properties": { FIELD: schema.schema }, "required": [FIELD] });
            let tool = json!({ "name": schema.name, "description": "The answer.", "input_schema": object });
            body.insert("tools".to_owned(), json!([tool]));
            body.insert("tool_choice".to_owned(), json!({ "type": "tool", "name": schema.name }));
        }
    }
    Value::Object(body)
}

fn message(message: &Message) -> Value {
    let or_nothing = |text: &str| if text.trim().is_empty() { NOTHING.to_owned() } else { text.to_owned() };
    match message {
        Message::User(text) => json!({ "role": "user", "content": or_nothing(text) }),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": or_nothing(text) })
        }
        Message::Assistant { text, calls } => {
            let said = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
            let calls = calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.sendable() })
            });
            json!({ "role": "assistant", "content": said.into_iter().chain(calls).collect::<Vec<_>>() })
        }
        Message::Results(results) => {
            let blocks: Vec<Value> = results
                .iter()
                .map(|result| {
                    let (id, bad) = (&result.id, !result.ok);
                    let content = or_nothing(&result.content);
                    json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": bad })
                })
                .collect();
            json!({ "role": "user", "content": blocks })
        }
    }
}

/// What an answer's body says; an error is its failure, with what is wrong.
pub(crate) fn reply(body: &Value, request: &Request) -> Result<Reply, (LlmFault, String)> {
    let bad = |what: &str| (LlmFault::Protocol, what.to_owned());
    let blocks = body["content"].as_array().ok_or_else(|| bad("the answer has no `content`"))?;
    let stop = match body["stop_reason"].as_str() {
        None => Stop::Unknown,
        Some("end_turn" | "stop_sequence") => Stop::End,
        Some("tool_use") => Stop::ToolCalls,
        Some("max_tokens") => Stop::Length,
        Some("refusal") => return Err((LlmFault::Refused, "the model refused".to_owned())),
        Some("model_context_window_exceeded") => {
            return Err((LlmFault::ContextOverflow, "the answer filled the model's context".to_owned()));
        }
        Some(other) => Stop::Other(other.to_owned()),
    };
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => text.push_str(block["text"].as_str().unwrap_or_default()),
            Some("tool_use") => {
                let name = block["name"].as_str().ok_or_else(|| bad("a call in the answer has no name"))?;
                let id = block["id"].as_str().filter(|id| !id.is_empty());
                calls.push((
                    id.map_or_else(|| format!("call_{}", calls.len() + 1), str::to_owned),
                    name,
                    &block["input"],
                ));
            }
            // Thinking, and whatever else is no answer.
            _ => {}
        }
    }
    if let Shape::Json(schema) = &request.shape {
        // A model that answers in text instead has its text read by whoever asked.
        if let Some((_, _, input)) = calls.iter().find(|(_, name, _)| *name == schema.name) {
            text = input.get(FIELD).unwrap_or(input).to_string();
        }
        calls.clear();
    }
    let call = |(id, name, input): (String, &str, &Value)| {
        let arguments = if input.is_null() { String::new() } else { input.to_string() };
        ToolCall { id, name: name.to_owned(), arguments }
    };
    Ok(Reply {
        text,
        calls: calls.into_iter().map(call).collect(),
        stop,
        usage: usage(body),
        model: body["model"].as_str().filter(|name| !name.is_empty()).unwrap_or(&request.model).to_owned(),
        request_id: None,
    })
}

/// What was used. The cache is apart from the input here; what was written to it is input.
pub(crate) fn usage(body: &Value) -> Option<Tokens> {
    let usage = &body["usage"];
    let count = |name: &str| usage[name].as_u64();
    let written = count("cache_creation_input_tokens").unwrap_or(0);
    Some(Tokens {
        input: count("input_tokens")?.saturating_add(written),
        cached: count("cache_read_input_tokens").unwrap_or(0),
        output: count("output_tokens")?,
    })
}
