//! Faults, vendor by vendor, in shapes that were read about: none of them was recorded.

use super::*;

/// Some hours from now: a time that is far off is no reset.
fn later() -> i64 {
    jiff::Timestamp::now().as_second() + 10_000
}

fn reset(receipt: &Receipt) -> Option<i64> {
    receipt.fault.as_ref().and_then(|fault| fault.reset_at).map(jiff::Timestamp::as_second)
}

fn claude_result(more: Value) -> Value {
    let mut result =
        json!({"type": "result", "subtype": "success", "is_error": true, "result": "told to a person"});
    let (Some(into), Value::Object(more)) = (result.as_object_mut(), more) else { panic!("objects") };
    into.extend(more);
    result
}

fn assistant(id: &str) -> Value {
    json!({"type": "assistant", "message": {"id": id, "model": "m", "content": [{"type": "text", "text": "hm"}],
        "usage": {"input_tokens": 1, "output_tokens": 1}}})
}

#[test]
fn claude() {
    let rows = [
        (json!({"api_error_status": 401, "terminal_reason": "api_error"}), Some(FaultKind::Authentication)),
        (json!({"api_error_status": 429}), Some(FaultKind::RateLimit)),
        (json!({"api_error_status": 529}), Some(FaultKind::Overloaded)),
        (json!({"terminal_reason": "prompt_too_long"}), Some(FaultKind::ContextOverflow)),
        (json!({"terminal_reason": "blocking_limit"}), Some(FaultKind::ContextOverflow)),
        (json!({"terminal_reason": "api_error"}), Some(FaultKind::Overloaded)),
        (json!({"subtype": "error_during_execution"}), Some(FaultKind::Overloaded)),
        (json!({"subtype": "error_max_turns"}), None),
        (json!({"subtype": "error_max_budget_usd"}), None),
        (json!({"is_error": false, "stop_reason": "refusal"}), Some(FaultKind::Refused)),
        (json!({"is_error": false, "stop_reason": "end_turn"}), None),
    ];
    for (more, kind) in rows {
        let receipt = receipt("claude", &[claude_result(more.clone())]);
        assert_eq!(fault(&receipt), kind, "{more}");
        assert!(receipt.stop_reason.is_some(), "{more}");
    }
    let worked =
        receipt("claude", &[assistant("a"), claude_result(json!({"subtype": "error_during_execution"}))]);
    assert_eq!(fault(&worked), Some(FaultKind::Crashed), "the model had answered");
    assert_eq!(worked.fault.and_then(|f| f.message).as_deref(), Some("told to a person"));
}

#[test]
fn claude_at_the_limit_of_its_subscription() {
    let later = later();
    let limit = |status: &str, overage: bool| {
        json!({"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": later,
            "rateLimitType": "five_hour", "isUsingOverage": overage}})
    };
    let failed = claude_result(json!({"api_error_status": 429}));
    let rejected = receipt("claude", &[limit("rejected", false), failed.clone()]);
    assert_eq!(fault(&rejected), Some(FaultKind::Quota));
    assert_eq!(reset(&rejected), Some(later), "its window resets");

    let cut = receipt("claude", &[limit("rejected", false)]);
    assert_eq!((fault(&cut), reset(&cut)), (Some(FaultKind::Quota), Some(later)));

    for (status, overage) in [("allowed", false), ("allowed_warning", false), ("rejected", true)] {
        let receipt = receipt("claude", &[limit(status, overage), failed.clone()]);
        assert_eq!(
            (fault(&receipt), reset(&receipt)),
            (Some(FaultKind::RateLimit), None),
            "{status} {overage}"
        );
    }
    let went_on = receipt(
        "claude",
        &[limit("rejected", false), assistant("a"), claude_result(json!({"is_error": false}))],
    );
    assert_eq!(went_on.fault, None);
}

#[test]
fn claude_tries_again() {
    let retry = |status: Value, error: &str| {
        json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 500,
            "error_status": status, "error": error})
    };
    let rows = [
        (retry(json!(529), "overloaded"), FaultKind::Overloaded),
        (retry(json!(401), "authentication_failed"), FaultKind::Authentication),
        (retry(json!(429), "rate_limit"), FaultKind::RateLimit),
        (retry(json!(null), "unknown"), FaultKind::Overloaded),
    ];
    for (event, kind) in rows {
        let stuck = receipt("claude", std::slice::from_ref(&event));
        assert_eq!(fault(&stuck), Some(kind), "it never came through: {event}");
        let back =
            receipt("claude", &[event.clone(), assistant("a"), claude_result(json!({"is_error": false}))]);
        assert_eq!(back.fault, None, "it came through: {event}");
        let gave_up = receipt("claude", &[event.clone(), claude_result(json!({}))]);
        assert_eq!(fault(&gave_up), Some(kind), "the result tells less: {event}");
    }
    let own = json!({"type": "assistant", "error": "authentication_failed",
        "message": {"id": "s", "model": "<synthetic>", "content": [{"type": "text", "text": "log in"}],
        "usage": {"input_tokens": 0, "output_tokens": 0}}});
    let expired = receipt("claude", &[own]);
    assert_eq!(fault(&expired), Some(FaultKind::Authentication));
    assert_eq!((expired.model, expired.tokens), (None, None), "a message of its own has no model");
}

#[test]
fn codex() {
    let message = |message: &str| json!({"type": "turn.failed", "error": {"message": message}});
    let retry = json!({"type": "error", "message": "Reconnecting... 2/5"});
    let done = json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "hm"}});
    let end = json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let later = later();
    let spent =
        json!({"error": {"type": "usage_limit_reached", "resets_at": later}, "status": 429}).to_string();
    let spent = spent.as_str();
    let rows: [(&[Value], Option<FaultKind>); 7] = [
        (&[message("unexpected status 401 Unauthorized")], Some(FaultKind::Overloaded)),
        (
            &[message(r#"{"status":401,"error":{"type":"invalid_request_error"}}"#)],
            Some(FaultKind::Authentication),
        ),
        (&[message(spent)], Some(FaultKind::Quota)),
        (&[json!({"type": "error", "message": spent}), message("out of it")], Some(FaultKind::Quota)),
        (std::slice::from_ref(&retry), Some(FaultKind::Overloaded)),
        (&[retry.clone(), done, end.clone()], None),
        (&[retry.clone(), end], None),
    ];
    for (events, kind) in rows {
        assert_eq!(fault(&receipt("codex", events)), kind, "{events:?}");
    }
    assert_eq!(reset(&receipt("codex", &[message(spent)])), Some(later));
    let notice =
        json!({"type": "item.completed", "item": {"id": "i", "type": "error", "message": "no metadata"}});
    let retried = json!({"type": "error", "message": "Reconnecting... 1/5"});
    assert_eq!(
        fault(&receipt("codex", &[retried, notice])),
        Some(FaultKind::Overloaded),
        "a notice is no answer"
    );
}

#[test]
fn opencode() {
    let error = |name: &str, data: Value| json!({"type": "error", "timestamp": 1_796_040_000_000_u64, "sessionID": "s", "error": {"name": name, "data": data}});
    let headers = json!({"message": "slow down", "statusCode": 429, "isRetryable": true,
        "responseHeaders": {"retry-after": "90"}});
    let rows = [
        (
            error("ProviderAuthError", json!({"providerID": "p", "message": "no key"})),
            Some(FaultKind::Authentication),
        ),
        (error("APIError", json!({"message": "gone", "statusCode": 401})), Some(FaultKind::Authentication)),
        (error("APIError", headers.clone()), Some(FaultKind::RateLimit)),
        (error("APIError", json!({"message": "no route", "isRetryable": true})), Some(FaultKind::Overloaded)),
        (error("ContextOverflowError", json!({"message": "full"})), Some(FaultKind::ContextOverflow)),
        (error("ContentFilterError", json!({"message": "no"})), Some(FaultKind::Refused)),
        (error("UnknownError", json!({"message": "401 Unauthorized"})), Some(FaultKind::Overloaded)),
        (error("MessageAbortedError", json!({"message": "stopped"})), Some(FaultKind::Protocol)),
        (error("MessageOutputLengthError", json!({})), None),
    ];
    for (event, kind) in rows {
        assert_eq!(fault(&receipt("opencode", std::slice::from_ref(&event))), kind, "{event}");
    }
    let limited = receipt("opencode", &[error("APIError", headers)]);
    assert_eq!(reset(&limited), Some(1_796_040_090), "from when the event says that it came");
    let step = json!({"type": "step_finish", "part": {"reason": "stop"}});
    let went_on = receipt("opencode", &[error("APIError", json!({"statusCode": 500})), step.clone()]);
    assert_eq!(went_on.fault, None);
    let fell = receipt("opencode", &[step, error("UnknownError", json!({"message": "oops"}))]);
    assert_eq!(fault(&fell), Some(FaultKind::Crashed), "the model had answered");
}

#[test]
fn gemini() {
    let result = |error: Value| json!({"type": "result", "status": "error", "error": error});
    let answer = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "RetryInfo", "retryDelay": "60s"}]}});
    let rows = [
        (json!({"type": "FatalAuthenticationError", "message": "log in"}), Some(FaultKind::Authentication)),
        (json!({"type": "TerminalQuotaError", "message": "spent"}), Some(FaultKind::Quota)),
        (json!({"type": "RetryableQuotaError", "message": "slow"}), Some(FaultKind::RateLimit)),
        (json!({"type": "ApiError", "code": 503, "message": "no"}), Some(FaultKind::Overloaded)),
        (json!({"type": "Error", "message": answer.to_string()}), Some(FaultKind::RateLimit)),
        (json!({"type": "Error", "message": "429 RESOURCE_EXHAUSTED"}), Some(FaultKind::Overloaded)),
        (json!({"type": "FatalTurnLimitedError", "message": "enough"}), None),
        (json!({"type": "FatalCancellationError", "message": "stopped"}), None),
        (json!(null), Some(FaultKind::Overloaded)),
    ];
    for (error, kind) in rows {
        let receipt = receipt("gemini", &[result(error.clone())]);
        assert_eq!(fault(&receipt), kind, "{error}");
        let class = error.get("type").and_then(Value::as_str).unwrap_or("error");
        assert_eq!(receipt.stop_reason.as_deref(), Some(class));
    }
    let said = json!({"type": "message", "role": "assistant", "content": "hm", "delta": true});
    let fell = receipt("gemini", &[said, result(json!({"type": "Error", "message": "oops"}))]);
    assert_eq!(fault(&fell), Some(FaultKind::Crashed));
}

#[test]
fn qwen() {
    let end = |more: Value| {
        let mut event = claude_result(json!({"is_error": false}));
        let (Some(into), Value::Object(more)) = (event.as_object_mut(), more) else { panic!("objects") };
        into.extend(more);
        event
    };
    let said = |tokens: u64, tool: bool| {
        let block = if tool {
            json!({"type": "tool_use", "id": "1", "name": "glob", "input": {}})
        } else {
            json!({"type": "text", "text": "hm"})
        };
        json!({"type": "assistant", "message": {"model": "m", "content": [block],
            "usage": {"input_tokens": tokens, "output_tokens": tokens}}})
    };
    let rows: [(&[Value], Option<FaultKind>); 8] = [
        (&[said(0, false), end(json!({}))], Some(FaultKind::Overloaded)),
        (&[end(json!({}))], Some(FaultKind::Overloaded)),
        (&[said(9, true), said(0, false), end(json!({}))], Some(FaultKind::Overloaded)),
        (&[said(9, true), said(9, false), end(json!({}))], None),
        // A service that does not count.
        (&[said(0, true), said(0, false), end(json!({}))], None),
        (
            &[said(9, true), end(json!({"is_error": true, "error": {"message": "401"}}))],
            Some(FaultKind::Crashed),
        ),
        (
            &[end(json!({"is_error": true, "error": {"message": "no", "status": 401}}))],
            Some(FaultKind::Authentication),
        ),
        (&[said(9, true), end(json!({"is_error": true, "subtype": "error_max_turns"}))], None),
    ];
    for (events, kind) in rows {
        assert_eq!(fault(&receipt("qwen", events)), kind, "{events:?}");
    }
}

#[test]
fn pi() {
    let message = |more: Value| {
        let mut message = json!({"role": "assistant", "model": "m", "content": [], "stopReason": "error"});
        let (Some(into), Value::Object(more)) = (message.as_object_mut(), more) else { panic!("objects") };
        into.extend(more);
        json!({"type": "message_end", "message": message})
    };
    let over = json!({"type": "agent_end", "messages": []});
    let failed = message(json!({"errorMessage": "401 invalid x-api-key"}));
    let retried = |success: bool| json!({"type": "auto_retry_end", "success": success, "finalError": "gone"});
    let rows: [(&[Value], Option<FaultKind>); 9] = [
        (&[failed.clone(), over.clone()], Some(FaultKind::Overloaded)),
        (
            &[message(json!({"errorMessage": r#"{"error":{"type":"authentication_error"}}"#})), over.clone()],
            Some(FaultKind::Authentication),
        ),
        (
            &[
                message(json!({"diagnostics": [{"type": "provider_stream_failure",
            "details": {"kind": "rate_limit", "status": 429}}]})),
                over.clone(),
            ],
            Some(FaultKind::RateLimit),
        ),
        (&[failed.clone(), retried(false), over.clone()], Some(FaultKind::Overloaded)),
        (&[failed.clone(), retried(true), over.clone()], None),
        (&[failed, message(json!({"stopReason": "stop"})), over.clone()], None),
        (
            &[
                json!({"type": "auto_compaction_start", "reason": "overflow"}),
                json!({"type": "auto_compaction_end", "result": null, "willRetry": false}),
                over.clone(),
            ],
            Some(FaultKind::ContextOverflow),
        ),
        (
            &[
                json!({"type": "auto_compaction_start", "reason": "overflow"}),
                json!({"type": "auto_compaction_end", "result": {"summary": "s"}, "willRetry": true}),
                over,
            ],
            None,
        ),
        (&[json!({"type": "agent_start"})], Some(FaultKind::Protocol)),
    ];
    for (events, kind) in rows {
        assert_eq!(fault(&receipt("pi", events)), kind, "{events:?}");
    }
}

#[test]
fn mini() {
    let rows = [
        ("Submitted", None),
        ("LimitsExceeded", None),
        ("TimeExceeded", None),
        ("UserInterruption", None),
        ("RepeatedFormatError", Some(FaultKind::Protocol)),
        ("AuthenticationError", Some(FaultKind::Authentication)),
        ("RateLimitError", Some(FaultKind::RateLimit)),
        ("ContextWindowExceededError", Some(FaultKind::ContextOverflow)),
        ("APIConnectionError", Some(FaultKind::Overloaded)),
        ("ServiceUnavailableError", Some(FaultKind::Overloaded)),
        ("BudgetExceededError", Some(FaultKind::Quota)),
        ("ContentPolicyViolationError", Some(FaultKind::Refused)),
        ("ValueError", Some(FaultKind::Overloaded)),
    ];
    for (status, kind) in rows {
        let file = json!({"info": {"exit_status": status}, "messages": [{"role": "user", "content": "do"}]});
        let receipt = read_trajectory(file.to_string().as_bytes()).into_receipt("mini");
        assert_eq!(fault(&receipt), kind, "{status}");
        assert_eq!(receipt.stop_reason.as_deref(), Some(status));
        let exit =
            json!({"messages": [{"role": "assistant"}, {"role": "exit", "extra": {"exit_status": status}}]});
        let receipt = read_trajectory(exit.to_string().as_bytes()).into_receipt("mini");
        let kind = if status == "ValueError" { Some(FaultKind::Crashed) } else { kind };
        assert_eq!(fault(&receipt), kind, "{status}");
    }
}
