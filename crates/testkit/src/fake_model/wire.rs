//! An interface of a model service: what its requests hold, and how an answer is worded.

use serde_json::Value;

use super::anthropic::Anthropic;
use super::chat::Chat;
use super::gemini::Gemini;
use super::responses::Responses;
use super::script::Failure;
use super::tools::{Call, Tool};

/// A piece of a conversation that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// What a user asked.
    Prompt(String),
    /// So many tool results.
    Results(usize),
}

/// What the model says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A text, at the end of its turn.
    Text(String),
    /// A call of a tool.
    Call(Call),
}

/// What an answer depends on beside what is said.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Which request of this service it is; makes ids unique.
    pub(super) number: usize,
    /// Tool results since the last prompt.
    pub(super) results: usize,
    /// The model that was asked for.
    pub(super) model: String,
}

impl Round {
    /// Tokens of input, those from the cache included.
    pub(super) const fn input(&self) -> usize {
        1000 + self.results
    }

    /// Tokens of input from the cache.
    pub(super) const fn cached(&self) -> usize {
        100 * self.results
    }

    /// Tokens of output.
    pub(super) const fn output(&self) -> usize {
        20 + self.results
    }
}

/// One interface.
pub(super) trait Wire {
    /// Whether the answer is wanted as a stream.
    fn streams(&self, path: &str, body: &Value) -> bool;
    /// The tools on offer.
    fn tools(&self, body: &Value) -> Vec<Tool>;
    /// Prompts and tool results in order.
    fn turns(&self, body: &Value) -> Vec<Turn>;
    /// The JSON schema that the answer has to fit.
    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value>;
    /// An answer in one piece.
    fn plain(&self, said: &Said, round: &Round) -> Value;
    /// An answer as server-sent events.
    fn events(&self, said: &Said, round: &Round) -> String;
    /// Status and body of a failure.
    fn failure(&self, failure: Failure) -> (u16, Value);
}

/// The interface that is served at a path.
pub(super) fn of(path: &str) -> Option<&'static dyn Wire> {
    if path.ends_with("/chat/completions") {
        Some(&Chat)
    } else if path.ends_with("/responses") {
        Some(&Responses)
    } else if path.ends_with("/messages") {
        Some(&Anthropic)
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        Some(&Gemini)
    } else {
        None
    }
}

/// A list in a JSON object; empty where there is none.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A text in a JSON object; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content that is a string or a list of parts with a `text` each.
pub(super) fn parts_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().map(|part| text(part, "text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// One server-sent event; without a name where the interface has none.
pub(super) fn event(name: Option<&str>, data: &Value) -> String {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {data}\n\n")
}
