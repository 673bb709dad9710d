//! What became of a request of ours that failed.

use jiff::Timestamp;
use serde_json::Value;
use triphammer_model::FaultKind;

use super::wire;
use crate::event::Json;
use crate::faults;

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) kind: FaultKind,
    pub(super) message: String,
    pub(super) reset_at: Option<Timestamp>,
}

/// Reads an error by its code and its data. What neither explains is the server's own failure, or, in a turn in which the
/// model was not heard of, [that of its service](faults::unexplained).
pub(super) fn failure(method: &str, error: &Json<'_>, is_answered: bool, now: Timestamp) -> Failure {
    let code = error.get("code").and_then(Json::as_i64);
    let told = faults::of_error(error, now);
    let kind = told.kind.unwrap_or(match code {
        Some(wire::AUTH_REQUIRED) => FaultKind::Authentication,
        Some(wire::NO_JSON | wire::INVALID_REQUEST | wire::NO_METHOD | wire::INVALID_PARAMS) | None => {
            FaultKind::Protocol
        }
        Some(_) => faults::unexplained(is_answered || method != "session/prompt"),
    });
    let said = error.get("message").and_then(Json::as_str).unwrap_or("no message");
    let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
    let more = error.get("data").filter(|data| **data != Json::Null);
    let more = more.and_then(|data| serde_json::to_string(data).ok()).map(|data| format!(", {data}"));
    let message = format!("`{method}` failed: {said} ({code}{})", more.unwrap_or_default());
    Failure { kind, message, reset_at: told.reset_at }
}

/// The ways to log in that a server offers, for a person.
pub(super) fn ways_to_log_in(initialized: &Value) -> String {
    let ways = initialized.get("authMethods").and_then(Value::as_array).into_iter().flatten();
    let shown: Vec<String> = ways
        .filter_map(|way| {
            let text = |name| way.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let name = text("name").or(text("id"))?;
            Some(text("description").map_or_else(|| name.to_owned(), |more| format!("{name} ({more})")))
        })
        .collect();
    if shown.is_empty() {
        return "it names no way to log in".to_owned();
    }
    format!("log in first; it offers: {}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event;

    #[test]
    fn codes_and_data_decide_and_no_words() {
        for (error, expected) in [
            (r#"{"code":-32000,"message":"x"}"#, FaultKind::Authentication),
            (r#"{"code":-32000,"message":"x","data":{"statusCode":429}}"#, FaultKind::RateLimit),
            (
                r#"{"code":-32603,"message":"Internal error","data":{"statusCode":401}}"#,
                FaultKind::Authentication,
            ),
            (r#"{"code":429,"message":"x"}"#, FaultKind::RateLimit),
            (r#"{"code":-32603,"data":{"codex_error_info":"usage_limit_exceeded"}}"#, FaultKind::Quota),
            (r#"{"code":-32603,"data":{"errorKind":"rate_limit"}}"#, FaultKind::RateLimit),
            (r#"{"code":-32603,"data":{"error":{"type":"overloaded_error"}}}"#, FaultKind::Overloaded),
            (r#"{"code":-32603,"message":"401 unauthorized: log in, rate limit"}"#, FaultKind::Crashed),
            (r#"{"code":-32602,"message":"x"}"#, FaultKind::Protocol),
            (r#"{"code":7.5}"#, FaultKind::Protocol),
            ("{}", FaultKind::Protocol),
        ] {
            let read = event::read(error.as_bytes()).expect("JSON");
            let of = |method, is_answered| failure(method, &read, is_answered, Timestamp::now());
            let failure = of("session/prompt", true);
            assert_eq!(failure.kind, expected, "{error}");
            if expected == FaultKind::Crashed {
                assert_eq!(
                    of("session/prompt", false).kind,
                    FaultKind::Overloaded,
                    "the model was not heard of"
                );
                assert_eq!(of("session/new", false).kind, FaultKind::Crashed);
            }
            assert!(failure.message.starts_with("`session/prompt` failed: "), "{}", failure.message);
        }
    }

    #[test]
    fn ways_to_log_in_are_named() {
        let offered = json!({"authMethods": [{"id": "a", "name": "Log in", "description": "Run `x login`"},
            {"id": "key"}, {"odd": 1}]});
        assert_eq!(ways_to_log_in(&offered), "log in first; it offers: Log in (Run `x login`); key");
        assert_eq!(ways_to_log_in(&json!({"authMethods": []})), "it names no way to log in");
    }
}
