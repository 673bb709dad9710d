//! Servers that are silent, noisy, confused or gone.

use triphammer_model::FaultKind;

use super::*;

#[test]
fn a_server_that_never_answers_is_named_with_what_it_owes() {
    let task = AcpTask { patience: IMPATIENT, session: Some("s-0".to_owned()), ..task() };
    let greet = |peer: &Peer, can: Value| {
        let (_, id) = peer.expect("initialize");
        peer.answer(&id, &json!({"protocolVersion": 1, "agentCapabilities": can}));
    };
    for silent in ["initialize", "session/load", "session/new"] {
        let ran = turn(tempfile::tempdir().expect("a folder").path(), &task, |peer| {
            match silent {
                "initialize" => {}
                "session/load" => greet(peer, json!({"loadSession": true})),
                _ => greet(peer, json!({})),
            }
            peer.expect(silent);
            // Until the client gives up.
            while peer.heard.recv().is_ok() {}
        });
        let (kind, message) = ran.fault();
        assert_eq!(kind, FaultKind::Protocol, "{message}");
        assert_eq!(message, format!("`{silent}` was not answered within 50ms"));
    }
}

#[test]
fn a_server_that_talks_without_answering_is_not_waited_for_longer() {
    let task = AcpTask { patience: IMPATIENT, ..task() };
    let ran = turn(tempfile::tempdir().expect("a folder").path(), &task, |peer| {
        peer.expect("initialize");
        let noise = || Happening::Said(Line::Whole(b"noise".to_vec()));
        while peer.tell.send(std::iter::repeat_with(noise).take(1_000).collect()).is_ok() {
            if matches!(peer.heard.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)) {
                break;
            }
        }
    });
    assert!(ran.fault().1.contains("`initialize` was not answered"), "{:?}", ran.receipt);
}

#[test]
fn rubbish_is_counted_and_kept() {
    let ran = plain(|peer| {
        peer.line("Loading the model...");
        let (_, id) = peer.prompted();
        for line in ["[1]", "{\"jsonrpc\":\"2.0\"}", "{\"cut\":", "", "\u{7f}"] {
            peer.line(line);
        }
        peer.happens(Happening::Said(Line::TooLong { bytes: 99, head: b"{\"long\"".to_vec() }))
            .expect("a client");
        peer.say(&json!({"method": "odd/news", "params": {}}));
        peer.say(&json!({"method": "$/progress"}));
        peer.notify(&json!({"sessionUpdate": "odd_update"}));
        peer.notify(&json!({"sessionUpdate": "plan", "entries": []}));
        peer.say(&json!({"method": "session/update"}));
        let answer = peer.ask("t-1", "terminal/create", &json!({"command": "ls"}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        peer.end_turn(&id);
    });
    assert_eq!(ran.stop, Stop::Ended("end_turn".to_owned()));
    assert_eq!(
        ran.receipt.troubles,
        [
            "from the server, lines that are no messages: 5",
            "from the server, lines that are too long to be read: 1",
            "from the server, messages of kinds that are not known (odd/news, odd_update, terminal/create): 3",
        ]
    );
    let heads: Vec<_> = ran.events("received").iter().filter_map(|event| event["head"].as_str()).collect();
    assert_eq!(heads, ["Loading the model...", "[1]", "{\"cut\":", "\u{7f}", "{\"long\""]);
}

#[test]
fn answers_out_of_order_find_their_questions() {
    let ran = plain(|peer| {
        let (_, first) = peer.expect("initialize");
        assert_eq!(first, json!(1));
        // Answers to what was not asked yet, or by nobody, are none.
        peer.answer(&json!(2), &json!({"sessionId": "wrong"}));
        peer.answer(&json!("1"), &json!({"protocolVersion": 9}));
        peer.answer(&first, &json!({"protocolVersion": 1}));
        peer.answer(&first, &json!({"protocolVersion": 9}));
        let (_, id) = peer.expect("session/new");
        // A question of its own comes before the answer.
        let read = peer.ask("r", "fs/read_text_file", &json!({"path": "none"}));
        assert_eq!(read["error"]["code"], -32002);
        peer.answer(&id, &json!({"sessionId": "s-1"}));
        let (params, id) = peer.expect("session/prompt");
        assert_eq!(params["sessionId"], "s-1");
        // Two questions at once are answered, each by its id.
        for name in ["a", "b"] {
            peer.say(&json!({"id": name, "method": "fs/write_text_file", "params": {"path": name, "content": name}}));
        }
        let answered = [peer.hear()["id"].clone(), peer.hear()["id"].clone()];
        assert_eq!(answered, [json!("a"), json!("b")]);
        peer.end_turn(&id);
        // What comes late is heard.
        peer.notify(
            &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Bye."}}),
        );
    });
    assert_eq!(ran.receipt.troubles, ["from the server, answers to nothing that was asked: 3"]);
    assert_eq!(ran.receipt.files.len(), 2);
    assert_eq!(ran.receipt.last_words.as_deref(), Some("Bye."));
}

#[test]
fn a_server_that_dies_is_a_crash() {
    let ran = plain(|peer| {
        peer.prompted();
        let made = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute", "title": "make",
            "status": "completed"});
        peer.notify(&made);
    });
    assert_eq!(ran.stop, Stop::Closed("session/prompt"));
    assert_eq!(ran.fault().0, FaultKind::Crashed);
    assert_eq!(ran.fault().1, "the server ended (exit status: 3) before it answered `session/prompt`");
    assert_eq!(ran.receipt.commands.len(), 1, "what it said before counts");
}

#[test]
fn a_turn_is_cancelled_before_everything_ends() {
    let ran = plain(|peer| {
        peer.prompted();
        peer.happens(Happening::Asked).expect("a client");
        let (params, id) = peer.expect("session/cancel");
        assert_eq!((params, id), (json!({"sessionId": "s-1"}), Value::Null));
        let asked = json!({"toolCall": {"toolCallId": "c", "kind": "execute", "title": "make"}, "options": [{"optionId": "once", "kind": "allow_once"}]});
        let answer = peer.ask(7, "session/request_permission", &asked);
        assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
        peer.answer(&json!(3), &json!({"stopReason": "cancelled"}));
    });
    assert_eq!(ran.stop, Stop::Asked);
    assert_eq!((ran.receipt.fault, ran.receipt.stop_reason.as_deref()), (None, Some("cancelled")));
}

#[test]
fn a_server_that_ends_with_everything_else_did_not_crash() {
    // The signal reaches it first.
    let ran = plain(|peer| {
        peer.prompted();
        peer.happens(Happening::Closed).expect("a client");
        peer.happens(Happening::Asked).expect("a client");
    });
    assert_eq!((ran.stop, ran.receipt.fault), (Stop::Asked, None));
    // It does not answer, and is not waited for.
    let ran = plain(|peer| {
        peer.prompted();
        peer.happens(Happening::Asked).expect("a client");
        peer.expect("session/cancel");
        while peer.heard.recv().is_ok() {}
    });
    assert_eq!((ran.stop, ran.receipt.fault), (Stop::Asked, None));
    let ran = plain(|peer| {
        peer.expect("initialize");
        peer.happens(Happening::Asked).expect("a client");
    });
    assert_eq!(ran.stop, Stop::Asked);
}

#[test]
fn a_server_that_asks_without_reading_is_given_up() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("big"), "x".repeat(8 << 20)).expect("a file");
    let ran = turn(dir.path(), &task(), |peer| {
        peer.prompted();
        for id in 0..20 {
            let read = json!({"id": id, "method": "fs/read_text_file", "params": {"path": "big"}});
            if peer.happens(Happening::Said(Line::Whole(read.to_string().into_bytes()))).is_err() {
                break;
            }
        }
    });
    assert_eq!(ran.fault(), (FaultKind::Protocol, "the server asks without reading the answers"));
}
