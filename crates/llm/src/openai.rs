//! The chat completions interface, which `OpenAI` began and nearly every server speaks.

use serde_json::{Map, Value, json};
use triphammer_model::Tokens;

use crate::error::LlmFault;
use crate::reply::{Reply, Stop, ToolCall};
use crate::request::{Message, Request, Shape};

/// The body of a request. `newest` is for the service that renamed a parameter and refuses the old name; all others know
/// the old one.
pub(crate) fn body(request: &Request, newest: bool) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message {
            Message::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Message::Assistant { text, calls } => messages.push(assistant(text, calls)),
            Message::Results(results) => messages.extend(results.iter().map(
                |result| json!({ "role": "tool", "tool_call_id": result.id, "content": result.content }),
            )),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.clone().into());
    body.insert("messages".to_owned(), messages.into());
    let bound = if newest { "max_completion_tokens" } else { "max_tokens" };
    body.insert(bound.to_owned(), request.max_tokens.into());
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    match &request.shape {
        Shape::Text => {}
        Shape::Tools(tools) => {
            let tools: Vec<Value> = tools
                .iter()
                .map(|tool| {
                    let (name, about, parameters) = (&tool.name, &tool.description, &tool.parameters);
                    let function = json!({ "name": name, "description": about, "parameters": parameters });
                    json!({ "type": "function", "function": function })
                })
                .collect();
            body.insert("tools".to_owned(), tools.into());
        }
        Shape::Json(schema) => {
            let inner = json!({ "name": schema.name, "schema": schema.schema, "strict": schema.strict });
            body.insert("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": inner }));
        }
    }
    body.insert("stream".to_owned(), false.into());
    Value::Object(body)
}

fn assistant(text: &str, calls: &[ToolCall]) -> Value {
    if calls.is_empty() {
        return json!({ "role": "assistant", "content": text });
    }
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            let arguments = call.sendable().to_string();
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        })
        .collect();
    let content = if text.is_empty() { Value::Null } else { text.into() };
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}

/// What an answer's body says; an error is its failure, with what is wrong.
pub(crate) fn reply(body: &Value, model: &str) -> Result<Reply, (LlmFault, String)> {
    let bad = |what: &str| (LlmFault::Protocol, what.to_owned());
    let choice = body["choices"].get(0).ok_or_else(|| bad("the answer has no `choices`"))?;
    let message = &choice["message"];
    if !message.is_object() {
        return Err(bad("the answer has no `choices[0].message`"));
    }
    if let Some(refusal) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        return Err((LlmFault::Refused, refusal.to_owned()));
    }
    let stop = match choice["finish_reason"].as_str() {
        None => Stop::Unknown,
        Some("stop") => Stop::End,
        Some("tool_calls" | "function_call") => Stop::ToolCalls,
        Some("length") => Stop::Length,
        Some("content_filter") => {
            return Err((LlmFault::Refused, "the service's filter stopped the answer".to_owned()));
        }
        Some(other) => Stop::Other(other.to_owned()),
    };
    let mut calls = Vec::new();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let name = function["name"].as_str().ok_or_else(|| bad("a call in the answer has no name"))?;
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        calls.push(ToolCall {
            id: id.map_or_else(|| format!("call_{}", calls.len() + 1), str::to_owned),
            name: name.to_owned(),
            arguments: match &function["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                // Some servers send the object itself.
                other => other.to_string(),
            },
        });
    }
    Ok(Reply {
        text: content(&message["content"]).ok_or_else(|| bad("the answer's `content` is no text"))?,
        calls,
        stop,
        usage: usage(body),
        model: body["model"].as_str().filter(|name| !name.is_empty()).unwrap_or(model).to_owned(),
        request_id: None,
    })
}

fn content(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        _ => None,
    }
}

/// What was used. The cache is part of the input here, and taken out of it.
pub(crate) fn usage(body: &Value) -> Option<Tokens> {
    let usage = &body["usage"];
    let (all, output) = (usage["prompt_tokens"].as_u64()?, usage["completion_tokens"].as_u64()?);
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    let cached = cached.or_else(|| usage["prompt_cache_hit_tokens"].as_u64()).unwrap_or(0).min(all);
    Some(Tokens { input: all - cached, cached, output })
}
