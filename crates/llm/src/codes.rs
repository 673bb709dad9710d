//! What an error answer says by its status and its codes. Its message is for people and not read.

use serde_json::Value;

use crate::error::LlmFault;

/// Bytes of a service's message that are kept.
const MESSAGE: usize = 1_000;

/// The failure that a status stands for; `None` for one that is no failure.
pub(crate) const fn of_status(status: u16) -> Option<LlmFault> {
    Some(match status {
        200..=299 => return None,
        401 | 403 | 407 => LlmFault::Authentication,
        402 => LlmFault::Quota,
        408 | 425 | 500..=599 => LlmFault::Overloaded,
        413 => LlmFault::ContextOverflow,
        429 => LlmFault::RateLimit,
        400..=499 => LlmFault::BadRequest,
        _ => LlmFault::Protocol,
    })
}

/// The failure that a code or type stands for. From the documentation of both interfaces, and from what `OpenRouter`,
/// `llama.cpp` and `DeepSeek` document of their own.
fn of_code(code: &str) -> Option<LlmFault> {
    Some(match code {
        "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "incorrect_api_key"
        | "missing_api_key"
        | "account_deactivated"
        | "unauthorized"
        | "forbidden" => LlmFault::Authentication,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "rate_limit_reached"
        | "too_many_requests"
        | "tokens"
        | "requests" => LlmFault::RateLimit,
        "insufficient_quota"
        | "quota_exceeded"
        | "billing_error"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_balance"
        | "insufficient_credits"
        | "payment_required"
        | "usage_limit_reached" => LlmFault::Quota,
        "overloaded_error"
        | "api_error"
        | "server_error"
        | "internal_server_error"
        | "internal_error"
        | "timeout_error"
        | "unavailable_error"
        | "service_unavailable"
        | "engine_overloaded" => LlmFault::Overloaded,
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "request_too_large"
        | "string_above_max_length" => LlmFault::ContextOverflow,
        "content_filter" | "content_policy_violation" | "refusal" | "invalid_prompt" => LlmFault::Refused,
        "invalid_request_error"
        | "not_found_error"
        | "model_not_found"
        | "not_found"
        | "unsupported_parameter"
        | "unsupported_value"
        | "not_supported_error" => LlmFault::BadRequest,
        _ => return None,
    })
}

/// The failure of an answer, most precise word first: services send `invalid_request_error` along with whatever else is
/// wrong, and 429 for a spent quota as well as for a limit that passes. `None` where nothing says that it is one.
pub(crate) fn fault(status: u16, body: &Value) -> Option<LlmFault> {
    let mut said = Vec::new();
    if let Some(error) = error_object(body) {
        gather(error, 0, &mut said);
        // A service that passes another's answer on may do so with status 200.
        if said.is_empty() && of_status(status).is_none() {
            return Some(LlmFault::Overloaded);
        }
    }
    said.extend(of_status(status));
    let rank = |fault: &LlmFault| match fault {
        LlmFault::Quota => 0,
        LlmFault::ContextOverflow => 1,
        LlmFault::Refused => 2,
        LlmFault::RateLimit => 3,
        LlmFault::Authentication => 4,
        LlmFault::Overloaded => 5,
        _ => 6,
    };
    said.into_iter().min_by_key(rank)
}

/// The error in an answer.
fn error_object(body: &Value) -> Option<&Value> {
    body.get("error").filter(|error| !error.is_null()).or_else(|| (body["type"] == "error").then_some(body))
}

fn gather(error: &Value, depth: usize, said: &mut Vec<LlmFault>) {
    for name in ["code", "type", "status"] {
        match &error[name] {
            Value::String(code) => {
                let code = code.to_ascii_lowercase();
                said.extend(match code.parse() {
                    Ok(status) => of_status(status),
                    Err(_) => of_code(&code),
                });
            }
            Value::Number(status) => {
                let status = status.as_u64().and_then(|status| u16::try_from(status).ok());
                said.extend(status.filter(|status| *status >= 300).and_then(of_status));
            }
            _ => {}
        }
    }
    for name in ["error", "metadata"] {
        if depth < 4 && error[name].is_object() {
            gather(&error[name], depth + 1, said);
        }
    }
}

/// What the service says, for a person: its message, else the beginning of whatever it sent.
pub(crate) fn message(body: &Value, raw: &[u8]) -> String {
    let error = error_object(body).unwrap_or(body);
    let text =
        [&error["message"], &body["message"], &body["detail"], error].into_iter().find_map(Value::as_str);
    let text = text
        .map_or_else(|| String::from_utf8_lossy(&raw[..raw.len().min(MESSAGE)]).into_owned(), str::to_owned);
    bounded(&text)
}

/// One line of bounded length, without anything that moves a cursor.
pub(crate) fn bounded(text: &str) -> String {
    let clean: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.len() <= MESSAGE {
        return clean;
    }
    let kept = &clean[..clean.floor_char_boundary(MESSAGE)];
    format!("{kept} [{} bytes left out]", clean.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_precise_word_counts() {
        let error = |code: &str, kind: &str| json!({"error": {"message": "m", "type": kind, "code": code}});
        for (status, body, expected) in [
            (401, error("invalid_api_key", "invalid_request_error"), Some(LlmFault::Authentication)),
            (429, error("insufficient_quota", "insufficient_quota"), Some(LlmFault::Quota)),
            (429, error("rate_limit_exceeded", "requests"), Some(LlmFault::RateLimit)),
            (400, error("context_length_exceeded", "invalid_request_error"), Some(LlmFault::ContextOverflow)),
            (400, error("model_not_found", "invalid_request_error"), Some(LlmFault::BadRequest)),
            (400, error("x", "content_filter"), Some(LlmFault::Refused)),
            (
                400,
                json!({"error": {"code": 400, "type": "exceed_context_size_error"}}),
                Some(LlmFault::ContextOverflow),
            ),
            (
                529,
                json!({"type": "error", "error": {"type": "overloaded_error"}}),
                Some(LlmFault::Overloaded),
            ),
            (403, json!({"type": "error", "error": {"type": "billing_error"}}), Some(LlmFault::Quota)),
            (200, json!({"error": {"code": 429}}), Some(LlmFault::RateLimit)),
            (200, json!({"error": {"code": "502"}}), Some(LlmFault::Overloaded)),
            (200, json!({"error": "odd"}), Some(LlmFault::Overloaded)),
            (200, json!({"error": null, "choices": []}), None),
            (402, json!("no JSON object"), Some(LlmFault::Quota)),
            (301, json!(null), Some(LlmFault::Protocol)),
            // Words are not read.
            (
                400,
                json!({"error": {"message": "rate limit, quota, context length"}}),
                Some(LlmFault::BadRequest),
            ),
        ] {
            assert_eq!(fault(status, &body), expected, "{status} {body}");
        }
    }

    #[test]
    fn messages_are_short_and_harmless() {
        assert_eq!(message(&json!({"error": {"message": "a\u{1b}[31m\nb"}}), b""), "a [31m b");
        assert_eq!(message(&json!({"error": "plain"}), b""), "plain");
        assert_eq!(message(&json!({"detail": "other"}), b""), "other");
        assert_eq!(message(&Value::Null, b"<html>\xff"), "<html>\u{fffd}");
        let long = message(&json!({"error": {"message": "ü".repeat(900)}}), b"");
        assert!(long.ends_with(" [800 bytes left out]"), "{long}");
    }
}
