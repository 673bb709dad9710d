//! What is served, what is let through, and what is claimed.

use triphammer_model::{ClaimKind, FaultKind, MicroUsd, Tokens};

use super::*;

fn options() -> Value {
    json!([
        {"optionId": "always", "kind": "allow_always", "name": "Always"},
        {"optionId": "once", "kind": "allow_once", "name": "Once"},
        {"optionId": "no", "kind": "reject_once", "name": "No"},
    ])
}

fn permission(call: &Value) -> Value {
    json!({"sessionId": "s-1", "toolCall": call, "options": options()})
}

#[test]
fn a_turn_goes_from_the_handshake_to_a_receipt() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().to_str().expect("UTF-8").to_owned();
    let ran = turn(dir.path(), &task(), |peer| {
        let (params, id) = peer.expect("initialize");
        assert_eq!(params["protocolVersion"], 1);
        let can = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false});
        assert_eq!(params["clientCapabilities"], can);
        peer.answer(&id, &json!({"protocolVersion": 1}));
        let (params, id) = peer.expect("session/new");
        assert_eq!(params, json!({"cwd": folder, "mcpServers": []}));
        peer.answer(&id, &json!({"sessionId": "s-1", "models": {"currentModelId": "m-1"}}));
        let (params, id) = peer.expect("session/prompt");
        let text = json!([{"type": "text", "text": "# Goal\nMake \"it\" work.\n"}]);
        assert_eq!(params, json!({"sessionId": "s-1", "prompt": text}));
        let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        peer.notify(&chunk("First I look."));
        let path = format!("{folder}/new/a.txt");
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c-1", "kind": "edit", "status": "pending",
            "content": [{"type": "diff", "path": path, "oldText": null, "newText": "hello\n"}]});
        peer.notify(&call);
        let written = peer.ask("w-1", "fs/write_text_file", &json!({"path": path, "content": "hello\n"}));
        assert_eq!(written["result"], json!({}));
        peer.notify(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "completed"}),
        );
        let read = peer.ask(9, "fs/read_text_file", &json!({"path": path, "line": 1, "limit": 1}));
        assert_eq!(read["result"], json!({"content": "hello\n"}));
        peer.notify(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "c-2", "kind": "execute", "title": "make",
            "status": "completed", "rawInput": {"command": "make"}, "rawOutput": {"exitCode": 2}}),
        );
        peer.notify(&chunk("All is "));
        peer.notify(&chunk("done."));
        peer.notify(&json!({"sessionUpdate": "usage_update", "used": 10, "size": 99,
            "cost": {"amount": 0.25, "currency": "USD"}}));
        let usage = json!({"inputTokens": 90, "outputTokens": 5, "cachedReadTokens": 10, "totalTokens": 105});
        peer.answer(&id, &json!({"stopReason": "max_tokens", "usage": usage}));
    });
    assert_eq!(ran.stop, Stop::Ended("max_tokens".to_owned()));
    let receipt = ran.receipt;
    assert_eq!(receipt.troubles, [] as [&str; 0]);
    assert_eq!(receipt.fault, None);
    let files: Vec<_> =
        receipt.files.iter().map(|file| (file.path.as_str(), file.kind, file.tool.as_deref())).collect();
    let path = format!("{folder}/new/a.txt");
    assert_eq!(files, [(path.as_str(), ClaimKind::Added, Some("fs/write_text_file"))]);
    assert_eq!(receipt.commands.len(), 1);
    assert_eq!((receipt.commands[0].command.as_str(), receipt.commands[0].exit), ("make", Some(2)));
    assert_eq!(receipt.tokens, Some(Tokens { input: 90, cached: 10, output: 5 }));
    assert_eq!(receipt.cost.map(MicroUsd::micros), Some(250_000));
    assert_eq!(receipt.session.as_deref(), Some("s-1"));
    assert_eq!(receipt.model.as_deref(), Some("m-1"));
    assert_eq!(receipt.stop_reason.as_deref(), Some("max_tokens"));
    assert_eq!(receipt.last_words.as_deref(), Some("All is done."));
    assert_eq!(std::fs::read_to_string(dir.path().join("new/a.txt")).expect("a file"), "hello\n");
}

#[test]
fn permissions_are_given_once_and_refused_for_what_cannot_be_undone() {
    let ran = plain(|peer| {
        let (_, id) = peer.prompted();
        let call = |id: &str, command: &str| json!({"toolCallId": id, "kind": "execute", "title": "bash", "rawInput": {"command": command}});
        let answer = peer.ask(1, "session/request_permission", &permission(&call("c-1", "make")));
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "selected", "optionId": "once"}}));
        peer.notify(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "completed"}),
        );
        let answer = peer.ask(2, "session/request_permission", &permission(&call("c-2", "git push --force")));
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "selected", "optionId": "no"}}));
        peer.notify(&json!({"sessionUpdate": "tool_call_update", "toolCallId": "c-2", "status": "failed"}));
        let mut none = permission(&call("c-3", "git push --force"));
        none["options"] = json!([{"optionId": "once", "kind": "allow_once"}]);
        let answer = peer.ask(3, "session/request_permission", &none);
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
        let mut none = permission(&call("c-4", "make install"));
        none["options"] = json!([{"optionId": "no", "kind": "reject_once"}]);
        let answer = peer.ask(4, "session/request_permission", &none);
        assert_eq!(answer["result"]["outcome"]["optionId"], "no");
        let edit = json!({"toolCallId": "c-5", "kind": "edit", "title": "Edit", "locations": [{"path": "/etc/hosts"}]});
        let answer = peer.ask(5, "session/request_permission", &permission(&edit));
        assert_eq!(answer["result"]["outcome"]["optionId"], "no");
        let edit = json!({"toolCallId": "c-6", "kind": "edit", "title": "git push --force in a file", "locations": [{"path": "a"}]});
        let mut none = permission(&edit);
        none["options"] = json!([{"optionId": "no", "kind": "reject_once"}]);
        let answer = peer.ask(6, "session/request_permission", &none);
        assert_eq!(answer["result"]["outcome"]["optionId"], "no");
        peer.end_turn(&id);
    });
    assert_eq!(ran.stop, Stop::Ended("end_turn".to_owned()));
    let ran_commands: Vec<_> = ran.receipt.commands.iter().map(|ran| ran.command.as_str()).collect();
    assert_eq!(ran_commands, ["make"], "what was refused was not run");
    let refused = ran.events("refused");
    let said: Vec<_> = refused.iter().map(|event| event["command"].as_str().unwrap_or_default()).collect();
    assert_eq!(said, ["git push --force", "git push --force", "make install", "", ""]);
    assert_eq!(refused[3]["what"], "Edit /etc/hosts");
    assert_eq!(
        ran.receipt.refused,
        ["git push --force", "git push --force", "make install"],
        "edits are no commands"
    );
    assert_eq!(ran.receipt.troubles.len(), 5, "{:?}", ran.receipt.troubles);
    assert!(ran.receipt.troubles[3].starts_with("`Edit /etc/hosts` was not let through"));
    assert!(ran.receipt.troubles[4].starts_with("`git push --force in a file` was not let through"));
}

#[test]
fn another_session_gets_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("a"), "text").expect("a file");
    let ran = turn(dir.path(), &task(), |peer| {
        let (_, id) = peer.prompted();
        let call = json!({"toolCallId": "c", "kind": "execute", "rawInput": {"command": "make"}});
        for other in [json!("s-2"), json!(""), json!(7), Value::Null] {
            let mut asked = permission(&call);
            asked["sessionId"] = other.clone();
            let answer = peer.ask(1, "session/request_permission", &asked);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            let read = peer.ask(2, "fs/read_text_file", &json!({"sessionId": other, "path": "a"}));
            assert_eq!(read["error"]["code"], -32602, "{read}");
            let write = json!({"sessionId": other, "path": "b", "content": ""});
            let written = peer.ask(3, "fs/write_text_file", &write);
            assert_eq!(written["error"]["code"], -32602, "{written}");
        }
        let read = peer.ask(4, "fs/read_text_file", &json!({"sessionId": "s-1", "path": "a"}));
        assert_eq!(read["result"]["content"], "text");
        peer.end_turn(&id);
    });
    assert!(!dir.path().join("b").exists());
    assert_eq!(ran.receipt.troubles, ["from the server, requests for another session: 12"]);
}

/// What takes secrets out of a log reads it line by line, and a server may end a chunk anywhere.
#[test]
fn the_text_of_chunks_is_kept_as_one() {
    const KINDS: [&str; 4] =
        ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "odd_chunk"];
    let ran = plain(|peer| {
        let (_, id) = peer.prompted();
        for kind in KINDS {
            for text in ["the key is sec", "ret-123"] {
                peer.notify(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
            }
        }
        peer.end_turn(&id);
    });
    let texts = ran.events("text");
    assert_eq!(texts.iter().map(|event| &event["text"]).collect::<Vec<_>>(), ["the key is secret-123"]);
    let log: Vec<String> =
        ran.events.iter().filter(|event| event["type"] != "text").map(Value::to_string).collect();
    assert!(!log.iter().any(|line| line.contains("the key is sec") || line.contains("ret-123")), "{log:?}");
    let chunks: Vec<_> =
        ran.events("received").into_iter().filter(|event| event.get("chunk").is_some()).collect();
    assert_eq!(chunks.len(), 8);
    assert_eq!(chunks[0]["chunk"], "agent_message_chunk");
    assert!(chunks[0]["bytes"].as_u64() > chunks[1]["bytes"].as_u64());
    assert_eq!(chunks[7]["chunk"], "of another kind");
}

#[test]
fn files_outside_of_the_workspace_are_not_served() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().join("w");
    std::fs::create_dir(&root).expect("a folder");
    std::fs::write(dir.path().join("secret"), "keep").expect("a file");
    std::os::unix::fs::symlink("../secret", root.join("link")).expect("a link");
    let ran = turn(&root, &task(), |peer| {
        let (_, id) = peer.prompted();
        let write = |path: &str| json!({"path": path, "content": "evil"});
        for (path, code) in [("/etc/passwd", -32602), ("../secret", -32602), ("link", -32602)] {
            let read = peer.ask(path, "fs/read_text_file", &json!({"path": path}));
            assert_eq!(read["error"]["code"], code, "{read}");
            let written = peer.ask(path, "fs/write_text_file", &write(path));
            assert_eq!(written["error"]["code"], code, "{written}");
        }
        let read = peer.ask(1, "fs/read_text_file", &json!({"path": "none"}));
        assert_eq!(read["error"]["code"], -32002, "{read}");
        let read = peer.ask(1, "fs/read_text_file", &json!({"file": "none"}));
        assert_eq!(read["error"]["code"], -32602, "{read}");
        peer.end_turn(&id);
    });
    let said: Vec<_> = ran.receipt.troubles.iter().map(String::as_str).collect();
    assert_eq!(said.len(), 6, "a file that is missing is no trouble: {said:?}");
    assert!(said[0].contains("`/etc/passwd` is outside of the workspace"), "{}", said[0]);
    assert_eq!(ran.receipt.files, []);
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).expect("a file"), "keep");
}

#[test]
fn a_session_is_continued_and_its_history_is_no_claim() {
    let both = || json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    for (can, method, offered_in_vain) in [
        (json!({"loadSession": true}), "session/load", false),
        (both(), "session/resume", false),
        (both(), "session/load", true),
    ] {
        let task = AcpTask { session: Some("s-0".to_owned()), ..task() };
        let ran = turn(tempfile::tempdir().expect("a folder").path(), &task, |peer| {
            let (_, id) = peer.expect("initialize");
            peer.answer(&id, &json!({"protocolVersion": 1, "agentCapabilities": can}));
            if offered_in_vain {
                let (_, id) = peer.expect("session/resume");
                peer.refuse(&id, &json!({"code": -32601, "message": "Method not found"}));
            }
            let (params, id) = peer.expect(method);
            assert_eq!(params["sessionId"], "s-0");
            let old = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute", "title": "make old",
                "status": "completed"});
            if method == "session/load" {
                peer.notify(&old);
            }
            peer.notify(
                &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Old."}}),
            );
            let cost = |amount: f64| json!({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}});
            peer.notify(&cost(0.5));
            peer.answer(&id, &Value::Null);
            if method == "session/load" {
                // Some tell more of it when they have said that it is over.
                peer.notify(&old);
            }
            let (params, id) = peer.expect("session/prompt");
            assert_eq!(params["sessionId"], "s-0");
            peer.notify(&cost(0.75));
            peer.end_turn(&id);
        });
        assert_eq!((ran.receipt.session.as_deref(), ran.receipt.troubles.len()), (Some("s-0"), 0));
        assert_eq!((ran.receipt.commands.as_slice(), ran.receipt.last_words.as_deref()), (&[][..], None));
        assert_eq!(ran.receipt.cost.map(MicroUsd::micros), Some(250_000), "what this attempt cost");
    }
}

#[test]
fn a_session_that_cannot_be_continued_is_a_new_one() {
    for can_load in [true, false] {
        let task = AcpTask { session: Some("s-0".to_owned()), ..task() };
        let ran = turn(tempfile::tempdir().expect("a folder").path(), &task, |peer| {
            let (_, id) = peer.expect("initialize");
            peer.answer(&id, &json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": can_load}}));
            if can_load {
                let (_, id) = peer.expect("session/load");
                peer.refuse(&id, &json!({"code": -32002, "message": "no session s-0"}));
            }
            let (_, id) = peer.expect("session/new");
            peer.answer(&id, &json!({"sessionId": "s-1"}));
            let (_, id) = peer.expect("session/prompt");
            peer.end_turn(&id);
        });
        assert_eq!(ran.receipt.session.as_deref(), Some("s-1"));
        assert!(ran.receipt.troubles[0].contains("a new one was begun"), "{:?}", ran.receipt.troubles);
        assert_eq!(ran.receipt.fault, None);
    }
}

#[test]
fn failures_are_faults_by_their_fields() {
    let ran = plain(|peer| {
        let (_, id) = peer.expect("initialize");
        let ways = json!([{"id": "login", "name": "Log in", "description": "Run `x login`"}]);
        peer.answer(&id, &json!({"protocolVersion": 1, "authMethods": ways}));
        let (_, id) = peer.expect("session/new");
        peer.refuse(&id, &json!({"code": -32000, "message": "Authentication required"}));
    });
    let (kind, message) = ran.fault();
    assert_eq!(kind, FaultKind::Authentication);
    assert!(message.contains("it offers: Log in (Run `x login`)"), "{message}");

    let ran = plain(|peer| {
        let (_, id) = peer.prompted();
        peer.refuse(&id, &json!({"code": -32603, "message": "Internal error", "data": {"statusCode": 429}}));
    });
    assert_eq!(ran.fault().0, FaultKind::RateLimit);

    let ran = plain(|peer| {
        let (_, id) = peer.prompted();
        peer.answer(&id, &json!({"stopReason": "refusal"}));
    });
    assert_eq!(ran.fault().0, FaultKind::Refused);
    assert_eq!(ran.receipt.stop_reason.as_deref(), Some("refusal"));

    for version in [json!(2), json!("1"), Value::Null] {
        let ran = plain(|peer| {
            let (_, id) = peer.expect("initialize");
            peer.answer(&id, &json!({"protocolVersion": version}));
        });
        let (kind, message) = ran.fault();
        assert_eq!(kind, FaultKind::Protocol);
        assert!(message.contains(&format!("speaks version {version} of the protocol")), "{message}");
    }
}
