use serde_json::json;
use triphammer_model::FaultKind::{
    self, Authentication, ContextOverflow, Overloaded, Protocol, Quota, RateLimit, Refused,
};

use super::*;

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

#[test]
fn statuses() {
    let rows = [
        (400, Some(Protocol)),
        (401, Some(Authentication)),
        (402, Some(Quota)),
        (403, Some(Authentication)),
        (404, Some(Protocol)),
        (408, Some(Overloaded)),
        (413, Some(ContextOverflow)),
        (429, Some(RateLimit)),
        (500, Some(Overloaded)),
        (502, Some(Overloaded)),
        (503, Some(Overloaded)),
        (504, Some(Overloaded)),
        (529, Some(Overloaded)),
        (0, None),
        (1, None),
        (200, None),
        (302, None),
        (600, None),
    ];
    for (status, kind) in rows {
        assert_eq!(of_status(status), kind, "{status}");
        assert_eq!(of_code(&status.to_string()), kind, "{status}");
    }
}

#[test]
fn codes_in_every_spelling() {
    let rows = [
        ("rate_limit_error", Some(RateLimit)),
        ("RateLimitError", Some(RateLimit)),
        ("rate_limit_exceeded", Some(RateLimit)),
        ("RESOURCE_EXHAUSTED", Some(RateLimit)),
        ("insufficient_quota", Some(Quota)),
        ("usage_limit_reached", Some(Quota)),
        ("usageLimitExceeded", Some(Quota)),
        ("TerminalQuotaError", Some(Quota)),
        ("billing_error", Some(Quota)),
        ("overloaded_error", Some(Overloaded)),
        ("api_error", Some(Overloaded)),
        ("server_error", Some(Overloaded)),
        ("UNAVAILABLE", Some(Overloaded)),
        ("ECONNREFUSED", Some(Overloaded)),
        ("authentication_error", Some(Authentication)),
        ("authentication_failed", Some(Authentication)),
        ("permission_error", Some(Authentication)),
        ("invalid_api_key", Some(Authentication)),
        ("UNAUTHENTICATED", Some(Authentication)),
        ("ProviderAuthError", Some(Authentication)),
        ("FatalAuthenticationError", Some(Authentication)),
        ("context_length_exceeded", Some(ContextOverflow)),
        ("ContextWindowExceededError", Some(ContextOverflow)),
        ("ContextWindowExceeded", Some(ContextOverflow)),
        ("prompt_too_long", Some(ContextOverflow)),
        ("blocking_limit", Some(ContextOverflow)),
        ("refusal", Some(Refused)),
        ("content-filter", Some(Refused)),
        ("invalid_request_error", Some(Protocol)),
        ("RepeatedFormatError", Some(Protocol)),
        ("Error", None),
        ("error", None),
        ("success", None),
        ("unknown", None),
        ("UnknownError", None),
        ("", None),
        ("the rate_limit_error was mentioned", None),
    ];
    for (code, kind) in rows {
        assert_eq!(of_code(code), kind, "{code}");
    }
    assert_eq!(of_code(&"x".repeat(1 << 20)), None);
}

#[test]
fn the_most_precise_one_counts() {
    let rows: [(Option<u64>, &[&str], Option<FaultKind>); 9] = [
        (Some(429), &[], Some(RateLimit)),
        (Some(429), &["insufficient_quota"], Some(Quota)),
        (Some(429), &["rate_limit_error", "insufficient_quota"], Some(Quota)),
        (Some(401), &["invalid_request_error", "invalid_api_key"], Some(Authentication)),
        (Some(401), &["invalid_request_error"], Some(Authentication)),
        (Some(400), &["invalid_request_error", "context_length_exceeded"], Some(ContextOverflow)),
        (Some(500), &["invalid_request_error"], Some(Overloaded)),
        (Some(400), &["nothing known"], Some(Protocol)),
        (None, &["error"], None),
    ];
    for (status, codes, kind) in rows {
        assert_eq!(of_all(status, codes.iter().copied()), kind, "{status:?} {codes:?}");
    }
}

#[test]
fn errors_as_services_and_agents_write_them() {
    let rows = [
        // Anthropic.
        (
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            Some(Overloaded),
            None,
        ),
        // OpenAI.
        (
            json!({"error": {"type": "insufficient_quota", "code": "insufficient_quota", "param": null}}),
            Some(Quota),
            None,
        ),
        // Google.
        (
            json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED"},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}),
            Some(RateLimit),
            Some("2026-11-30T12:00:34Z"),
        ),
        // A subscription's window, as codex's service sends it.
        (
            json!({"type": "error", "status_code": 429, "error": {"type": "usage_limit_reached",
                "resets_at": 1_796_050_800, "resets_in_seconds": 10_800},
                "headers": {"X-Codex-Primary-Reset-At": "1796050801"}}),
            Some(Quota),
            Some("2026-11-30T15:00:00Z"),
        ),
        // opencode, with the headers of the service.
        (
            json!({"name": "APIError", "data": {"statusCode": 429, "isRetryable": true,
                "responseHeaders": {"Retry-After": "90", "x-ratelimit-reset-requests": "6m0s"}}}),
            Some(RateLimit),
            Some("2026-11-30T12:01:30Z"),
        ),
        (
            json!({"name": "APIError", "data": {"statusCode": 429,
                "responseHeaders": {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}}}),
            Some(RateLimit),
            Some("2026-11-30T12:06:00Z"),
        ),
        // The service's answer in a text that is an object.
        (
            json!({"name": "APIError", "data": {"statusCode": 400,
                "responseBody": "{\"error\":{\"code\":\"context_length_exceeded\"}}"}}),
            Some(ContextOverflow),
            None,
        ),
        (json!({"message": "{\"status\":401}"}), Some(Authentication), None),
        // codex's record.
        (
            json!({"message": "m", "codex_error_info": {"http_connection_failed": {"http_status_code": 401}}}),
            Some(Authentication),
            None,
        ),
        (
            json!({"codex_error_info": {"response_too_many_failed_attempts": {"http_status_code": 429}}}),
            Some(RateLimit),
            None,
        ),
        (json!({"codex_error_info": "usage_limit_exceeded"}), Some(Quota), None),
        (
            json!({"codex_error_info": {"http_connection_failed": {"http_status_code": null}}}),
            Some(Overloaded),
            None,
        ),
        // No time where nothing resets, and no kind where only a message tells.
        (json!({"status": 401, "retry-after": 5}), Some(Authentication), None),
        (json!({"type": "Error", "message": "429 rate_limit_error, retry after 5s"}), None, None),
        (json!({"name": "UnknownError", "data": {"message": "unauthorized"}}), None, None),
        (json!(null), None, None),
        (json!([[[[[[[[{"status": 429}]]]]]]]]), None, None),
    ];
    for (error, kind, reset) in rows {
        let reset_at = reset.map(|text| text.parse().expect("a time"));
        let line = json!({ "error": error }).to_string();
        let event = event::read(line.as_bytes()).expect("an event");
        assert_eq!(of_error(&event, now()), Told { kind, reset_at }, "{error}");
    }
}

#[test]
fn only_the_object_in_a_message_is_read() {
    let told = of_message(" {\"error\":{\"type\":\"rate_limit_error\"},\"retry_after\":10} ", now());
    assert_eq!(told.kind, Some(RateLimit));
    assert_eq!(told.reset_at, "2026-11-30T12:00:10Z".parse().ok());
    assert_eq!(of_message("429 {\"type\":\"overloaded_error\"}", now()).kind, Some(Overloaded));
    assert_eq!(of_message("[API Error: {\"error\":{\"code\":401}}]", now()).kind, Some(Authentication));
    for message in ["rate_limit_error", "401 Incorrect API key", "{} {\"status\":429}", "}{", "{", ""] {
        assert_eq!(of_message(message, now()), Told::default(), "{message}");
    }
}

#[test]
fn the_documents_name_statuses_and_codes_that_mean_what_they_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents/faults.md");
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (_, rest) = text.split_once("<!-- codes: begin -->").expect("the mark of its beginning");
    let (rows, _) = rest.split_once("<!-- codes: end -->").expect("the mark of its end");
    let mut held = 0;
    for row in rows.trim().lines().skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [fault, statuses, codes] = cells[..] else { panic!("{row}") };
        let kind = FaultKind::ALL.into_iter().find(|kind| kind.word() == fault.trim_matches('`'));
        assert!(kind.is_some(), "{row}");
        for status in statuses.split(", ").filter(|status| !status.is_empty()) {
            assert_eq!(of_status(status.parse().expect(status)), kind, "{status}");
            held += 1;
        }
        for code in codes.split(", ").map(|code| code.trim_matches('`')) {
            assert_eq!(of_code(code), kind, "{code}");
            held += 1;
        }
    }
    assert!(held > 50, "{held} are held");
}
