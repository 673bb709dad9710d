//! Chat completions.

use serde_json::json;
use triphammer_llm::{Api, Message, Reply, Stop, ToolCall};
use triphammer_model::Tokens;

use super::{KEY, Script, ask, history, ok, request, schema, tools};

#[test]
fn a_conversation_with_tools() {
    let mut asked = request(tools());
    asked.messages = history();
    asked.temperature = Some(0.25);
    let answer = json!({
        "id": "chat-7",
        "model": "fake-1-2026",
        "choices": [{
            "message": {
                "role": "assistant",
                "content": null,
                "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"y\"}" } },
                    { "type": "function", "function": { "name": "read", "arguments": { "path": "z" } } },
                    { "id": "c3", "type": "function", "function": { "name": "list" } }
                ]
            },
            "finish_reason": "tool_calls"
        }],
        "usage": {
            "prompt_tokens": 1000, "completion_tokens": 20,
            "prompt_tokens_details": { "cached_tokens": 100 }
        }
    });
    let (reply, received) =
        ask(Api::OpenAi, &asked, Script::Reply(200, "x-request-id: r-1\r\n", answer.to_string()));
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let reply = reply.expect("a reply");
    assert_eq!(
        reply,
        Reply {
            text: String::new(),
            calls: vec![
                call("c1", "read", r#"{"path":"y"}"#),
                call("call_2", "read", r#"{"path":"z"}"#),
                call("c3", "list", ""),
            ],
            stop: Stop::ToolCalls,
            usage: Some(Tokens { input: 900, cached: 100, output: 20 }),
            model: "fake-1-2026".to_owned(),
            request_id: Some("r-1".to_owned()),
        }
    );
    assert!(reply.calls.iter().all(|call| call.parsed().is_ok()));
    assert!(received.head.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{}", received.head);
    assert!(received.head.contains(&format!("Bearer {KEY}")));
    let tool = json!({ "type": "function", "function": {
        "name": "read",
        "description": "Reads a file.",
        "parameters": { "type": "object", "properties": { "path": { "type": "string" } } }
    }});
    let sent = |id: &str, arguments: &str| {
        json!({
            "id": id, "type": "function", "function": { "name": "read", "arguments": arguments }
        })
    };
    assert_eq!(
        received.body,
        json!({
            "model": "fake-1",
            "messages": [
                { "role": "system", "content": "You are a test." },
                { "role": "user", "content": "Hello." },
                { "role": "assistant", "content": null, "tool_calls": [
                    sent("a", r#"{"path":"x"}"#), sent("b", r#"{"unreadable":"{cut"}"#)
                ]},
                { "role": "tool", "tool_call_id": "a", "content": "text of x" },
                { "role": "tool", "tool_call_id": "b", "content": "no JSON" }
            ],
            "max_tokens": 100,
            "temperature": 0.25,
            "tools": [tool],
            "stream": false
        })
    );
}

#[test]
fn an_answer_under_a_schema() {
    let answer = json!({
        "choices": [{ "message": { "content": "{\"verdict\":\"sound\"}" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 6 }
    });
    let (reply, received) = ask(Api::OpenAi, &request(schema()), ok(&answer));
    let reply = reply.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.stop), (r#"{"verdict":"sound"}"#, Stop::End));
    assert_eq!(reply.model, "fake-1", "the asked one where the service names none");
    let format = &received.body["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["strict"], true);
    assert_eq!(format["json_schema"]["schema"]["properties"]["verdict"]["type"], "string");
    assert!(received.body.get("tools").is_none() && received.body.get("temperature").is_none());
}

#[test]
fn what_a_service_does_not_say_is_unknown() {
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    for (usage, expected) in [
        (json!(null), None),
        (json!({ "prompt_tokens": 7 }), None),
        (json!({ "prompt_tokens": -1, "completion_tokens": 1 }), None),
        (
            json!({ "prompt_tokens": 7, "completion_tokens": 0 }),
            Some(Tokens { input: 7, cached: 0, output: 0 }),
        ),
        (
            json!({ "prompt_tokens": 7, "completion_tokens": 1, "prompt_cache_hit_tokens": 5 }),
            Some(Tokens { input: 2, cached: 5, output: 1 }),
        ),
        (
            json!({ "prompt_tokens": 7, "completion_tokens": 1, "prompt_tokens_details": { "cached_tokens": 9 } }),
            Some(Tokens { input: 0, cached: 7, output: 1 }),
        ),
    ] {
        let answer = json!({ "choices": [{ "message": { "content": parts } }], "usage": usage });
        let reply = ask(Api::OpenAi, &request(super::Shape::Text), ok(&answer)).0.expect("a reply");
        assert_eq!(
            (reply.text.as_str(), reply.stop, reply.usage),
            ("ab", Stop::Unknown, expected),
            "{usage}"
        );
    }
    let mut asked = request(super::Shape::Text);
    asked.system = String::new();
    asked.messages.push(Message::Assistant { text: "Hi.".to_owned(), calls: Vec::new() });
    let answer = json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": "length" }] });
    let (reply, received) = ask(Api::OpenAi, &asked, ok(&answer));
    assert_eq!(reply.expect("a reply").stop, Stop::Length);
    assert_eq!(received.body["messages"].as_array().map(Vec::len), Some(2), "no empty system message");
}
