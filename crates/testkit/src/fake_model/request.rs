//! A request as it came, and what all interfaces have in common.

use serde_json::Value;

use super::http::Received;
use super::tools::Tool;
use super::wire::{self, Turn, Wire};

/// A request that the service received.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Its method.
    pub method: String,
    /// Its path, with what follows the question mark.
    pub path: String,
    /// Its headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body; a text that is no JSON is kept as a JSON string, an empty one is null.
    pub body: Value,
}

impl ModelRequest {
    pub(super) fn new(received: Received) -> Self {
        let Received { method, path, headers, body } = received;
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()))
        };
        Self { method, path, headers, body }
    }

    pub(super) fn wire(&self) -> Option<&'static dyn Wire> {
        wire::of(self.path.split('?').next().unwrap_or_default())
    }

    fn turns(&self) -> Vec<Turn> {
        self.wire().map(|wire| wire.turns(&self.body)).unwrap_or_default()
    }

    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The names of the tools on offer.
    pub fn tools(&self) -> Vec<String> {
        self.offered().into_iter().map(|tool| tool.name).collect()
    }

    pub(super) fn offered(&self) -> Vec<Tool> {
        self.wire().map(|wire| wire.tools(&self.body)).unwrap_or_default()
    }

    /// How many tool results there are since the last prompt.
    pub fn results(&self) -> usize {
        let turns = self.turns();
        let since = turns.iter().rev().take_while(|turn| !matches!(turn, Turn::Prompt(_)));
        since.map(|turn| if let Turn::Results(count) = turn { *count } else { 0 }).sum()
    }

    /// The text of the last prompt; empty where there is none.
    pub fn prompt(&self) -> String {
        let prompt = self.turns().into_iter().rev().find_map(|turn| match turn {
            Turn::Prompt(text) => Some(text),
            Turn::Results(_) => None,
        });
        prompt.unwrap_or_default()
    }

    /// Every text in the body, wherever it stands, one below the other.
    pub fn text(&self) -> String {
        let mut texts = Vec::new();
        collect(&self.body, &mut texts);
        texts.join("\n")
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
