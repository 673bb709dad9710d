//! Messages: JSON-RPC 2.0, one object a line, as version 1 of the Agent Client Protocol has it.
//!
//! Only the fields that count are read, by name, and any of them may be missing: servers of this version differ in what
//! they send, and one strange field must not cost the rest of a message. The types that the protocol's own crate
//! (`agent-client-protocol-schema`, looked at in its version 1.20) brings would add fifteen crates for a handful of methods.

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::{self, Json, NULL};

/// The version of the protocol that is spoken.
pub(super) const VERSION: u64 = 1;

/// The protocol's word for an account that has to be logged in first.
pub(super) const AUTH_REQUIRED: i64 = -32000;
/// There is no such file.
pub(super) const NOT_FOUND: i64 = -32002;
/// The request is no request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub(super) const NO_METHOD: i64 = -32601;
/// The method has no use for these parameters.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Something else went wrong.
pub(super) const INTERNAL: i64 = -32603;
/// The text is no JSON.
pub(super) const NO_JSON: i64 = -32700;

/// A message of a server's.
pub(super) struct Message<'a>(Json<'a>);

/// What a message is.
pub(super) enum Kind<'m, 'a> {
    /// It wants an answer.
    Request { id: &'m Json<'a>, method: &'m str },
    /// It wants none.
    Notification { method: &'m str },
    /// It is one. The id is missing where it is none that we could have given.
    Answer { id: Option<u64>, outcome: Result<&'m Json<'a>, &'m Json<'a>> },
    /// None of these.
    Stray,
}

impl<'a> Message<'a> {
    /// `None` where the line is no JSON object.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        event::read(line).map(Self)
    }

    pub(super) fn kind(&self) -> Kind<'_, 'a> {
        let method = self.0.get("method").and_then(Json::as_str);
        match (method, self.0.get("id")) {
            (Some(method), Some(id)) => Kind::Request { id, method },
            (Some(method), None) => Kind::Notification { method },
            (None, Some(id)) => {
                let error = self.0.get("error").filter(|error| **error != Json::Null);
                let outcome = error.map_or_else(|| Ok(self.0.get("result").unwrap_or(NULL)), Err);
                Kind::Answer { id: id.as_u64(), outcome }
            }
            (None, None) => Kind::Stray,
        }
    }

    pub(super) fn params(&self) -> &Json<'a> {
        self.0.get("params").unwrap_or(NULL)
    }
}

/// The parameters of a request, whole: those that carry a file's text or a command may not be cut.
pub(super) fn whole_params(line: &[u8]) -> Value {
    let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
    match message {
        Value::Object(mut fields) => fields.remove("params").unwrap_or_default(),
        _ => Value::Null,
    }
}

/// A request or notification of ours as a line.
pub(super) fn call(id: Option<u64>, method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({"jsonrpc": "2.0"});
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    message["method"] = json!(method);
    message["params"] = params.clone();
    line(&message)
}

/// Our answer to a request as a line.
pub(super) fn answer(id: &Json<'_>, outcome: &Result<Value, Value>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a Json<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Value>,
    }
    line(&Answer { jsonrpc: "2.0", id, result: outcome.as_ref().ok(), error: outcome.as_ref().err() })
}

/// An error of ours.
pub(super) fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        let Some(message) = Message::read(line.as_bytes()) else { return "nothing".to_owned() };
        match message.kind() {
            Kind::Request { id, method } => {
                format!("request {} {method}", serde_json::to_string(id).expect("JSON"))
            }
            Kind::Notification { method } => format!("notification {method}"),
            Kind::Answer { id, outcome } => format!("answer {id:?} {}", outcome.is_ok()),
            Kind::Stray => "stray".to_owned(),
        }
    }

    #[test]
    fn a_message_is_told_by_its_fields() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a/b","params":{}}"#, "request 7 a/b"),
            (r#"{"id":"u-1","method":"a"}"#, "request \"u-1\" a"),
            (r#"{"method":"a"}"#, "notification a"),
            (r#"{"id":3,"result":null}"#, "answer Some(3) true"),
            (r#"{"id":3,"result":{},"error":null}"#, "answer Some(3) true"),
            (r#"{"id":3,"error":{"code":-1,"message":"x"}}"#, "answer Some(3) false"),
            (r#"{"id":"3","result":1}"#, "answer None true"),
            (r#"{"id":null,"error":{}}"#, "answer None false"),
            ("{}", "stray"),
            (r#"{"method":7}"#, "stray"),
            (r#"[{"id":3,"result":null}]"#, "nothing"),
            ("Loading model", "nothing"),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_are_written_as_the_protocol_has_them() {
        let id = Json::Text("u-1".into());
        for (line, expected) in [
            (
                call(Some(1), "m", &json!({"a": 1})),
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#,
            ),
            (call(None, "m", &json!({})), r#"{"jsonrpc":"2.0","method":"m","params":{}}"#),
            (answer(&id, &Ok(Value::Null)), r#"{"jsonrpc":"2.0","id":"u-1","result":null}"#),
            (
                answer(&id, &Err(error(NO_METHOD, "x\n"))),
                r#"{"jsonrpc":"2.0","id":"u-1","error":{"code":-32601,"message":"x\n"}}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(line).expect("UTF-8"), format!("{expected}\n"));
        }
    }
}
