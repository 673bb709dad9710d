//! Messages.

use serde_json::json;
use triphammer_llm::{Api, Client as _, Reply, Stop, ToolCall};
use triphammer_model::Tokens;

use super::{KEY, Script, Server, ask, client_at, history, ok, request, schema, tools};

#[test]
fn a_conversation_with_tools() {
    let mut asked = request(tools());
    asked.messages = history();
    let answer = json!({
        "id": "msg-1",
        "type": "message",
        "model": "claude-fake",
        "content": [
            { "type": "thinking", "thinking": "hm" },
            { "type": "text", "text": "I read." },
            { "type": "tool_use", "id": "t1", "name": "read", "input": { "path": "y" } }
        ],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 900, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 100, "output_tokens": 20
        }
    });
    let script = Script::Reply(200, "request-id: req-9\r\n", answer.to_string());
    let (reply, received) = ask(Api::Anthropic, &asked, script);
    let call =
        ToolCall { id: "t1".to_owned(), name: "read".to_owned(), arguments: r#"{"path":"y"}"#.to_owned() };
    assert_eq!(
        reply.expect("a reply"),
        Reply {
            text: "I read.".to_owned(),
            calls: vec![call],
            stop: Stop::ToolCalls,
            usage: Some(Tokens { input: 950, cached: 100, output: 20 }),
            model: "claude-fake".to_owned(),
            request_id: Some("req-9".to_owned()),
        }
    );
    assert!(received.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", received.head);
    assert!(received.head.contains(&format!("x-api-key: {KEY}\r\n")));
    assert!(received.head.contains("anthropic-version: 2023-06-01\r\n") && !received.head.contains("Bearer"));
    let result = |id: &str, content: &str, bad: bool| {
        json!({
            "type": "tool_result", "tool_use_id": id, "content": content, "is_error": bad
        })
    };
    assert_eq!(
        received.body,
        json!({
            "model": "fake-1",
            "max_tokens": 100,
            "system": "You are a test.",
            "messages": [
                { "role": "user", "content": "Hello." },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "a", "name": "read", "input": { "path": "x" } },
                    { "type": "tool_use", "id": "b", "name": "read", "input": { "unreadable": "{cut" } }
                ]},
                { "role": "user", "content": [result("a", "text of x", false), result("b", "no JSON", true)] }
            ],
            "tools": [{
                "name": "read",
                "description": "Reads a file.",
                "input_schema": { "type": "object", "properties": { "path": { "type": "string" } } }
            }]
        })
    );
}

#[test]
fn an_answer_under_a_schema() {
    let answer = |content: serde_json::Value| json!({ "content": content, "stop_reason": "tool_use" });
    let used = |input: serde_json::Value| json!([{ "type": "tool_use", "id": "t", "name": "verdict", "input": input }]);
    for (content, text) in [
        (used(json!({ "reply": { "verdict": "sound" } })), r#"{"verdict":"sound"}"#),
        (used(json!({ "reply": [1] })), "[1]"),
        // A model that leaves the field out.
        (used(json!({ "verdict": "sound" })), r#"{"verdict":"sound"}"#),
        (json!([{ "type": "text", "text": "I would say sound." }]), "I would say sound."),
    ] {
        let (reply, received) = ask(Api::Anthropic, &request(schema()), ok(&answer(content)));
        let reply = reply.expect("a reply");
        assert_eq!((reply.text.as_str(), reply.calls.len(), reply.usage), (text, 0, None));
        assert_eq!(received.body["tool_choice"], json!({ "type": "tool", "name": "verdict" }));
        let schema = &received.body["tools"][0]["input_schema"];
        assert_eq!(schema["properties"]["reply"]["properties"]["verdict"]["type"], "string");
    }
}

#[test]
fn ends_and_empty_texts() {
    for (word, stop) in [
        (json!("end_turn"), Stop::End),
        (json!("max_tokens"), Stop::Length),
        (json!("pause_turn"), Stop::Other("pause_turn".to_owned())),
        (json!(null), Stop::Unknown),
    ] {
        let answer = json!({ "content": [], "stop_reason": word });
        let mut asked = request(super::Shape::Text);
        asked.messages.push(super::Message::Assistant { text: " ".to_owned(), calls: Vec::new() });
        let (reply, received) = ask(Api::Anthropic, &asked, ok(&answer));
        assert_eq!(reply.expect("a reply").stop, stop);
        assert_eq!(received.body["messages"][1]["content"], "(nothing)", "an empty text is refused there");
    }
}

#[test]
fn the_base_may_hold_the_version() {
    let server = Server::start(vec![ok(&json!({ "content": [] }))]);
    let client = client_at(Api::Anthropic, &format!("{}/v1/", server.url));
    client.complete(&request(super::Shape::Text)).expect("a reply");
    assert!(server.next().head.starts_with("POST /v1/messages "));
    server.end();
}
