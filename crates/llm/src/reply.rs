//! What a model answers.

use serde_json::{Map, Value, json};
use triphammer_model::Tokens;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What it said; the JSON where a schema was asked for.
    pub text: String,
    /// What it wants done.
    pub calls: Vec<ToolCall>,
    /// Why it ended.
    pub stop: Stop,
    /// What it used; `None` where the service does not say.
    pub usage: Option<Tokens>,
    /// The model that answered, by the service's word; the asked one where it has none.
    pub model: String,
    /// The service's name for this call, for a complaint there.
    pub request_id: Option<String>,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The model was done.
    End,
    /// It wants tools called.
    ToolCalls,
    /// The bound on the answer's tokens was reached: text and arguments may be cut off.
    Length,
    /// Something else, in the service's word.
    Other(String),
    /// The service does not say.
    Unknown,
}

/// A call of a tool that the model wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id; made up where the service sends none, so that a result can refer to it.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them. Nothing promises that this is JSON.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as an object; an error says what is wrong with them. No arguments at all are an empty object.
    pub fn parsed(&self) -> Result<Map<String, Value>, String> {
        if self.arguments.trim().is_empty() {
            return Ok(Map::new());
        }
        match serde_json::from_str(&self.arguments) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Err("the arguments are no JSON object".to_owned()),
            Err(error) => Err(format!("the arguments are no JSON: {error}")),
        }
    }

    /// The arguments as services accept them back in the history: always an object. Some fail on anything else.
    pub(crate) fn sendable(&self) -> Value {
        self.parsed().map_or_else(|_| json!({ "unreadable": self.arguments }), Value::Object)
    }
}
