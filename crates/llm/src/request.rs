//! What a model is asked.

use std::time::Duration;

use serde_json::Value;

use crate::reply::ToolCall;

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The model's name, as its service has it.
    pub model: String,
    /// What the model is and how it shall work; may be empty.
    pub system: String,
    /// What was said so far; the last one is not the model's.
    pub messages: Vec<Message>,
    /// What the answer shall be.
    pub shape: Shape,
    /// Tokens of the answer, at most.
    pub max_tokens: u32,
    /// How much chance; `None` leaves it to the service. Several models accept none.
    pub temperature: Option<f64>,
    /// For the whole call.
    pub timeout: Duration,
}

/// What the answer shall be. Tools and a schema exclude each other: one of the services does a schema by a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Free text.
    Text,
    /// Text, or calls of these tools.
    Tools(Vec<Tool>),
    /// One JSON value of this schema, as text.
    Json(Schema),
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments; an object.
    pub parameters: Value,
}

/// What a JSON answer looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON schema.
    pub schema: Value,
    /// Whether the service shall refuse a schema that it cannot hold the model to. Strict schemas are of a narrow kind:
    /// every property required, none additional.
    pub strict: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// From our side.
    User(String),
    /// From the model.
    Assistant {
        /// What it said.
        text: String,
        /// What it wanted done.
        calls: Vec<ToolCall>,
    },
    /// What came of all calls of the message before.
    Results(Vec<ToolResult>),
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// What the model is told.
    pub content: String,
    /// Whether it worked.
    pub ok: bool,
}
