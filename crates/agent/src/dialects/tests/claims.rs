//! Which calls are claims, and which are not.

use super::*;

fn messages(tool: &str, input: &Value, failed: bool, more: &Value) -> [Value; 2] {
    [
        json!({"type": "assistant", "message": {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [{"type": "tool_use", "id": "1", "name": tool, "input": input}]}}),
        json!({"type": "user", "tool_use_result": more,
            "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "is_error": failed}]}}),
    ]
}

/// The claims of one call that succeeds and then, otherwise the same, of one that fails.
fn both(events: impl Fn(bool) -> (&'static str, Vec<Value>)) -> [Receipt; 2] {
    [false, true].map(|failed| {
        let (vendor, events) = events(failed);
        receipt(vendor, &events)
    })
}

/// Recorded: a shell that ends with status 3, then an edit of a text that is not in its file. Qwen and gemini call the
/// first one a success.
#[test]
fn calls_that_failed() {
    let rows = [
        ("claude", None),
        ("codex", Some(3)),
        ("gemini", None),
        ("opencode", Some(3)),
        ("pi", None),
        ("qwen", None),
    ];
    for (vendor, exit) in rows {
        let receipt = recorded(&format!("{vendor}-failed-calls.jsonl"));
        let command =
            if vendor == "codex" { "/bin/bash -lc 'echo oops; exit 3'" } else { "echo oops; exit 3" };
        assert_eq!(commands(&receipt), [(command, exit)], "{vendor}");
        assert_eq!(receipt.files, [], "{vendor}");
        assert_eq!((receipt.fault, receipt.last_words.as_deref()), (None, Some("Done.")), "{vendor}");
    }
}

#[test]
fn an_edit_that_failed_is_no_claim() {
    let edit = json!({"file_path": "a.rs", "path": "a.rs", "filePath": "a.rs"});
    let calls: [&dyn Fn(bool) -> (&'static str, Vec<Value>); 6] = [
        &|failed| ("claude", messages("Edit", &edit, failed, &json!({})).to_vec()),
        &|failed| ("qwen", messages("edit", &edit, failed, &json!(null)).to_vec()),
        &|failed| {
            let status = if failed { "failed" } else { "completed" };
            let changes = json!([{"path": "a.rs", "kind": "update"}]);
            let item = json!({"id": "i", "type": "file_change", "status": status, "changes": changes});
            ("codex", vec![json!({"type": "item.completed", "item": item})])
        },
        &|failed| {
            let status = if failed { "error" } else { "completed" };
            let part = json!({"tool": "edit", "state": {"status": status, "input": edit}});
            ("opencode", vec![json!({"type": "tool_use", "part": part})])
        },
        &|failed| {
            let status = if failed { "error" } else { "success" };
            let call =
                json!({"type": "tool_use", "tool_id": "1", "tool_name": "replace", "parameters": edit});
            ("gemini", vec![call, json!({"type": "tool_result", "tool_id": "1", "status": status})])
        },
        &|failed| {
            let call =
                json!({"type": "tool_execution_start", "toolCallId": "1", "toolName": "edit", "args": edit});
            let end = json!({"type": "tool_execution_end", "toolCallId": "1", "toolName": "edit", "isError": failed});
            ("pi", vec![call, end])
        },
    ];
    for call in calls {
        let [done, failed] = both(call);
        let claims: Vec<_> = kinds(&done).into_iter().map(|(path, kind, _)| (path, kind)).collect();
        assert_eq!(claims, [("a.rs", ClaimKind::Changed)], "{}", done.agent);
        assert_eq!(failed.files, [], "{}", failed.agent);
    }
}

#[test]
fn a_command_that_failed_was_run() {
    let item = json!({"id": "i", "type": "command_execution", "command": "make", "exit_code": 2, "status": "failed"});
    let codex = receipt("codex", &[json!({"type": "item.completed", "item": item})]);
    assert_eq!(commands(&codex), [("make", Some(2))]);

    let state = json!({"status": "completed", "input": {"command": "make"}, "metadata": {"exit": 2}});
    let opencode =
        receipt("opencode", &[json!({"type": "tool_use", "part": {"tool": "bash", "state": state}})]);
    assert_eq!(commands(&opencode), [("make", Some(2))]);

    for (vendor, tool) in [("claude", "Bash"), ("qwen", "run_shell_command")] {
        let events = messages(tool, &json!({"command": "make"}), true, &json!("Error: Exit code 2"));
        assert_eq!(commands(&receipt(vendor, &events)), [("make", None)], "{vendor}");
    }
}

#[test]
fn a_command_that_was_refused_was_not_run() {
    let item = json!({"id": "i", "type": "command_execution", "command": "rm -rf /", "status": "declined"});
    let started = json!({"type": "item.started", "item": item});
    let codex = receipt("codex", &[started, json!({"type": "item.completed", "item": item})]);
    assert_eq!((codex.commands, codex.refused), (vec![], vec!["rm -rf /".to_owned()]));

    let state =
        json!({"status": "error", "input": {"command": "rm"}, "error": "The user rejected permission"});
    let opencode =
        receipt("opencode", &[json!({"type": "tool_use", "part": {"tool": "bash", "state": state}})]);
    assert_eq!(opencode.commands, []);

    let call = json!({"type": "tool_use", "tool_id": "1", "tool_name": "run_shell_command",
        "parameters": {"command": "rm"}});
    let refused = json!({"type": "tool_result", "tool_id": "1", "status": "error",
        "error": {"type": "execution_denied", "message": "no"}});
    let gemini = receipt("gemini", &[call, refused]);
    assert_eq!((gemini.commands, gemini.refused), (vec![], vec!["rm".to_owned()]));

    for (vendor, tool) in [("claude", "Bash"), ("qwen", "run_shell_command")] {
        let mut events = messages(tool, &json!({"command": "rm"}), true, &json!(null)).to_vec();
        events.push(json!({"type": "result", "subtype": "success", "is_error": false,
            "permission_denials": [{"tool_name": tool, "tool_use_id": "1", "tool_input": {"command": "rm"}}]}));
        let receipt = receipt(vendor, &events);
        assert_eq!((receipt.commands, receipt.refused), (vec![], vec!["rm".to_owned()]), "{vendor}");
    }
    let own = receipt(
        "own",
        &[
            json!({"type": "refused", "command": "rm", "why": "no"}),
            json!({"type": "refused", "what": "Edit a", "why": "no"}),
            json!({"type": "end", "stop_reason": "done"}),
        ],
    );
    assert_eq!((own.commands, own.refused), (vec![], vec!["rm".to_owned()]));
}

#[test]
fn a_stream_tells_how_a_file_moved() {
    let write = json!({"file_path": "a"});
    for (told, kind) in [("create", ClaimKind::Added), ("update", ClaimKind::Changed)] {
        let events = messages("Write", &write, false, &json!({"type": told}));
        assert_eq!(kinds(&receipt("claude", &events)), [("a", kind, "Write")]);
    }
    let changes = json!([{"path": "a", "kind": "add"}, {"path": "b", "kind": "delete"}, {"path": "c", "kind": {"type": "update"}}]);
    let item = json!({"id": "i", "type": "file_change", "status": "completed", "changes": changes});
    let claims = [ClaimKind::Added, ClaimKind::Deleted, ClaimKind::Changed];
    let codex = receipt("codex", &[json!({"type": "item.completed", "item": item})]);
    assert_eq!(codex.files.iter().map(|f| f.kind).collect::<Vec<_>>(), claims);

    let files = json!([{"filePath": "a", "type": "add"}, {"filePath": "b", "type": "delete"},
        {"filePath": "c", "type": "update"}, {"filePath": "d", "type": "move", "movePath": "e"}]);
    let state = json!({"status": "completed", "input": {}, "metadata": {"files": files}});
    let opencode =
        receipt("opencode", &[json!({"type": "tool_use", "part": {"tool": "apply_patch", "state": state}})]);
    let claims = [
        ("a", ClaimKind::Added, "apply_patch"),
        ("b", ClaimKind::Deleted, "apply_patch"),
        ("c", ClaimKind::Changed, "apply_patch"),
        ("d", ClaimKind::Deleted, "apply_patch"),
        ("e", ClaimKind::Added, "apply_patch"),
    ];
    assert_eq!(kinds(&opencode), claims);
}

#[test]
fn a_helper_claims_but_has_not_the_last_word() {
    let helper = json!({"type": "assistant", "parent_tool_use_id": "t", "message": {"id": "h", "model": "small",
        "content": [{"type": "text", "text": "mine"}, {"type": "tool_use", "id": "1", "name": "Write",
        "input": {"file_path": "a"}}], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let done = json!({"type": "user", "parent_tool_use_id": "t",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "1"}]}});
    let main = json!({"type": "assistant", "parent_tool_use_id": null,
        "message": {"id": "m", "model": "large", "content": [{"type": "text", "text": "ours"}]}});
    let receipt = receipt("claude", &[main, helper, done]);
    assert_eq!(receipt.files.len(), 1);
    assert_eq!(receipt.last_words.as_deref(), Some("ours"));
    assert_eq!(receipt.model.as_deref(), Some("large"));
}

#[test]
fn our_own_events_come_back_as_they_went() {
    let events = [
        OwnEvent::Session { id: Some("s1".to_owned()), model: Some("m".to_owned()) },
        OwnEvent::Tool {
            tool: "write".to_owned(),
            path: Some("a".to_owned()),
            change: Some(ClaimKind::Added),
            command: None,
            exit: None,
            ok: true,
        },
        OwnEvent::Tool {
            tool: "edit".to_owned(),
            path: Some("b".to_owned()),
            change: None,
            command: None,
            exit: None,
            ok: false,
        },
        OwnEvent::Tool {
            tool: "shell".to_owned(),
            path: None,
            change: None,
            command: Some("make".to_owned()),
            exit: Some(2),
            ok: false,
        },
        OwnEvent::Usage { input: 900, cached: 100, output: 20, cost_usd: Some(0.01) },
        OwnEvent::Usage { input: 1, cached: 0, output: 2, cost_usd: None },
        OwnEvent::Text { text: "done".to_owned() },
        OwnEvent::Refused {
            command: Some("git push -f".to_owned()),
            what: None,
            why: "it cannot be undone".to_owned(),
        },
        OwnEvent::Cost { usd: 0.25 },
        OwnEvent::Trouble { what: "odd".to_owned() },
        OwnEvent::Fault {
            kind: FaultKind::RateLimit,
            message: "too many".to_owned(),
            reset_at: "2026-11-30T12:00:00Z".parse().ok(),
        },
        OwnEvent::End { stop_reason: "steps".to_owned() },
    ];
    let lines: Vec<_> = events.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect();
    for (line, event) in lines.iter().zip(&events) {
        assert_eq!(&serde_json::from_value::<OwnEvent>(line.clone()).expect("its own"), event);
    }
    assert_eq!(lines[3], json!({"type": "tool", "tool": "shell", "command": "make", "exit": 2, "ok": false}));
    assert_eq!(lines[10]["kind"], "rate-limit");
    let receipt = receipt("own", &lines);
    assert_eq!(kinds(&receipt), [("a", ClaimKind::Added, "write")]);
    assert_eq!(commands(&receipt), [("make", Some(2))]);
    assert_eq!(receipt.tokens, Some(Tokens { input: 901, cached: 100, output: 22 }));
    assert_eq!(receipt.cost, Some(MicroUsd::new(250_000)), "the sum so far in place of those of the steps");
    assert_eq!(receipt.fault.as_ref().and_then(|f| f.reset_at), "2026-11-30T12:00:00Z".parse().ok());
    assert_eq!((receipt.session.as_deref(), receipt.model.as_deref()), (Some("s1"), Some("m")));
    assert_eq!(receipt.stop_reason.as_deref(), Some("steps"));
    assert_eq!(receipt.last_words.as_deref(), Some("done"));
    assert_eq!(receipt.troubles, ["`git push -f` was not let through: it cannot be undone", "odd"]);
}

#[test]
fn our_own_events_that_are_wrong_are_troubles() {
    let wrong = json!({"type": "tool", "tool": 7});
    let unknown = json!({"type": "later", "tool": 7});
    let receipt = receipt("own", &[wrong, unknown, json!({"no": "type"})]);
    assert_eq!(receipt.troubles.len(), 1);
    assert!(
        receipt.troubles[0].starts_with("an event `tool` is not as it should be: "),
        "{:?}",
        receipt.troubles
    );
    assert_eq!(fault(&receipt), Some(FaultKind::Protocol), "it has no end");
}
