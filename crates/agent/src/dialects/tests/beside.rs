//! What is told beside a stream: codex's record of a session, gemini's exit status.

use super::*;

fn with_record(name: &str, record: &[u8]) -> Receipt {
    let mut heard = hear("codex", &recording(name));
    add_rollout(record, &mut heard);
    heard.into_receipt("codex")
}

#[test]
fn a_record_tells_why_a_turn_failed() {
    for (name, kind) in [("codex-401", FaultKind::Authentication), ("codex-quota", FaultKind::Quota)] {
        let receipt = with_record(&format!("{name}.jsonl"), &recording(&format!("{name}.rollout")));
        assert_eq!(fault(&receipt), Some(kind), "{name}");
        assert_eq!(receipt.model.as_deref(), Some("fake-1"));
        let message = receipt.fault.and_then(|fault| fault.message);
        assert_eq!(message, recorded(&format!("{name}.jsonl")).fault.and_then(|fault| fault.message));
    }
}

fn turn(total: u64, windows: &Value, error: &Value) -> String {
    let lines = [
        json!({"type": "event_msg", "payload": {"type": "task_started"}}),
        json!({"type": "event_msg", "payload": {"type": "token_count", "rate_limits": windows,
            "info": {"total_token_usage": {"input_tokens": total, "cached_input_tokens": total / 10, "output_tokens": 7}}}}),
        json!({"type": "event_msg", "payload": {"type": "task_complete", "error": error}}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

#[test]
fn a_record_tells_what_its_last_turn_used() {
    let none = Value::Null;
    let record = [turn(1000, &none, &none), turn(3000, &none, &none)].concat();
    let receipt = with_record("codex.jsonl", record.as_bytes());
    assert_eq!(receipt.tokens, Some(Tokens { input: 1800, cached: 200, output: 0 }));
    assert_eq!(receipt.fault, None);
    assert_eq!(with_record("codex.jsonl", b"").tokens, Some(TRUTH), "without a record the stream counts");
}

/// Recorded: a third request in a session that is continued, of 1001 tokens with 100 from the cache, and 21 of output.
#[test]
fn a_thread_that_is_continued_counts_on_and_its_record_does_not() {
    let alone = recorded("codex-resumed.jsonl");
    assert_eq!(alone.tokens, Some(Tokens { input: 2802, cached: 200, output: 62 }));
    let receipt = with_record("codex-resumed.jsonl", &recording("codex-resumed.rollout"));
    assert_eq!(receipt.tokens, Some(Tokens { input: 901, cached: 100, output: 21 }));
    let cut = recording("codex-resumed.jsonl");
    let mut heard = hear("codex", &cut[..200]);
    add_rollout(&recording("codex-resumed.rollout"), &mut heard);
    assert_eq!(
        heard.tokens,
        Some(Tokens { input: 901, cached: 100, output: 21 }),
        "of a stream that broke off, too"
    );
}

#[test]
fn a_record_tells_when_a_limit_resets() {
    let soon = jiff::Timestamp::now().as_second() + 1_000;
    let window = |used: f64, more: i64| json!({"used_percent": used, "resets_at": soon + more});
    let spent = json!({"message": "spent", "codex_error_info": "usage_limit_exceeded"});
    let rows = [
        (window(100.0, 0), window(20.0, 500), soon),
        (window(100.0, 0), window(100.0, 500), soon + 500),
        (window(99.0, 0), window(20.0, 500), soon),
    ];
    for (primary, secondary, reset) in rows {
        let windows = json!({"primary": primary, "secondary": secondary});
        let fault = with_record("codex-quota.jsonl", turn(10, &windows, &spent).as_bytes()).fault;
        let fault = fault.expect("a fault");
        assert_eq!(fault.kind, FaultKind::Quota);
        assert_eq!(fault.reset_at.map(jiff::Timestamp::as_second), Some(reset), "{windows}");
    }
    // A failure that no limit caused has no reset, and one of a former turn is over.
    let windows = json!({"primary": window(100.0, 0)});
    let bad = json!({"message": "no", "codex_error_info": "unauthorized"});
    let receipt = with_record("codex-quota.jsonl", turn(10, &windows, &bad).as_bytes());
    assert_eq!(receipt.fault.and_then(|fault| fault.reset_at), None);
    let over = [turn(10, &windows, &spent), turn(20, &windows, &Value::Null)].concat();
    assert_eq!(with_record("codex.jsonl", over.as_bytes()).fault, None);
    let begun = json!({"type": "event_msg", "payload": {"type": "task_started"}});
    let begun = format!("{}{begun}", turn(10, &windows, &spent));
    assert_eq!(with_record("codex.jsonl", begun.as_bytes()).fault, None);
}

#[test]
fn a_record_is_found_by_its_thread() {
    let home = tempfile::tempdir().expect("a folder");
    let thread = "01a22e56-104e-7823-a30c-e4ee781626b8";
    for day in ["2025/12/31", "2026/11/30"] {
        std::fs::create_dir_all(home.path().join("sessions").join(day)).expect("a folder");
    }
    assert_eq!(rollout_path(home.path(), thread), None);
    let at = home.path().join(format!("sessions/2025/12/31/rollout-2025-12-31T21-22-01-{thread}.jsonl"));
    std::fs::write(&at, "").expect("a file");
    std::fs::write(home.path().join("sessions/2026/11/30/rollout-2026-x.jsonl"), "").expect("a file");
    assert_eq!(rollout_path(home.path(), thread), Some(at.clone()));
    let link = home.path().join(format!("sessions/2026/11/30/rollout-x-{thread}.jsonl"));
    std::os::unix::fs::symlink("/etc/passwd", link).expect("a link");
    assert_eq!(rollout_path(home.path(), thread), Some(at), "a link is no record");
    for odd in ["", "../../x", "*"] {
        assert_eq!(rollout_path(home.path(), odd), None, "{odd}");
    }
    assert_eq!(rollout_path(&home.path().join("none"), thread), None);
}

#[test]
fn gemini_s_exit_status_explains_what_its_stream_does_not() {
    let exited = |name: &str, status: i32| {
        let mut stream = Stream::new(dialect("gemini"));
        stream.push(&recording(name));
        stream.exited(status);
        stream.end().into_receipt("gemini")
    };
    let rows = [
        ("gemini-quota.jsonl", 173, Some(FaultKind::RateLimit)),
        ("gemini-quota.jsonl", 145, Some(FaultKind::Authentication)),
        ("gemini-quota.jsonl", 41, Some(FaultKind::Authentication)),
        ("gemini-quota.jsonl", 247, Some(FaultKind::Overloaded)),
        ("gemini-quota.jsonl", 1, Some(FaultKind::Overloaded)),
        ("gemini-401.jsonl", 173, Some(FaultKind::Authentication)),
        ("gemini.jsonl", 0, None),
        ("gemini.jsonl", 173, None),
    ];
    for (name, status, kind) in rows {
        let receipt = exited(name, status);
        assert_eq!(fault(&receipt), kind, "{name} {status}");
        assert_eq!(receipt.fault.and_then(|f| f.message), recorded(name).fault.and_then(|f| f.message));
    }
}
