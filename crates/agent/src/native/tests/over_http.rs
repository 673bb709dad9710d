//! The same through a real connection, for both interfaces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::json;
use triphammer_model::FaultKind;

use super::super::start;
use super::*;

/// Answers each connection with the next body; hands out what was sent.
fn serve(bodies: Vec<Value>) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serve = move || {
        let answer = |body: Value| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a header");
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).expect("a body");
            let body = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).expect("an answer");
            serde_json::from_slice(&sent).expect("JSON")
        };
        bodies.into_iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

fn check(api: Api, bodies: Vec<Value>) -> Vec<Value> {
    let dir = tempfile::tempdir().expect("a folder");
    let (url, server) = serve(bodies);
    let task = task(dir.path(), json!({ "api": api, "base_url": url }));
    let text = serde_json::to_vec(&task).expect("a task");
    let mut out = Vec::new();
    let status = start(&mut text.as_slice(), &|_| None, &AllowAll, &mut Printer::new(&mut out));
    let (_, receipt) = heard(&out);
    assert_eq!((status, receipt.files.len(), receipt.commands.len()), (0, 1, 1), "{receipt:?}");
    assert_eq!(receipt.stop_reason.as_deref(), Some("done"));
    assert_eq!(std::fs::read_to_string(dir.path().join("a")).expect("a file"), "one\n");
    assert_eq!(receipt.tokens, Some(Tokens { input: 27, cached: 3, output: 6 }));
    server.join().expect("the server")
}

#[test]
fn openai() {
    let answer = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let message = json!({ "content": null, "tool_calls": [{ "id": "c", "type": "function", "function": function }] });
        let details = json!({ "cached_tokens": 1 });
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": details });
        json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }], "usage": usage })
    };
    let sent = check(
        Api::OpenAi,
        vec![
            answer("write", json!({ "path": "a", "content": "one\n" })),
            answer("shell", json!({ "command": "cat a; exit 7" })),
            answer("done", json!({})),
        ],
    );
    let result = &sent[2]["messages"][5];
    assert_eq!(result, &json!({ "role": "tool", "tool_call_id": "c", "content": "one\n[exit status 7]" }));
    assert_eq!(sent[0]["tools"].as_array().map(Vec::len), Some(7));
}

#[test]
fn anthropic() {
    let answer = |name: &str, input: Value| {
        let usage = json!({ "input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 2 });
        let call = json!({ "type": "tool_use", "id": "c", "name": name, "input": input });
        json!({ "content": [call], "stop_reason": "tool_use", "usage": usage })
    };
    let sent = check(
        Api::Anthropic,
        vec![
            answer("write", json!({ "path": "a", "content": "one\n" })),
            answer("shell", json!({ "command": "cat a; exit 7" })),
            answer("done", json!({})),
        ],
    );
    let result = &sent[2]["messages"][4]["content"][0];
    assert_eq!(result["content"], "one\n[exit status 7]");
    assert_eq!(result["is_error"], false, "a command that fails is an answer, not a failure of the tool");
}

#[test]
fn what_cannot_be_begun_is_said_in_events() {
    let whole = json!({ "brief": "b", "model": "m", "api": "openai", "base_url": "http://127.0.0.1:1/v1" });
    let with = |more: Value| {
        let mut task = whole.clone();
        task.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        task.to_string()
    };
    for (text, kind, expected) in [
        (String::new(), FaultKind::Crashed, "the task on standard input: "),
        (with(json!({ "workspace": "/nowhere/at/all" })), FaultKind::Crashed, "/nowhere/at/all"),
        (with(json!({ "key_env": "NO_SUCH_KEY" })), FaultKind::Authentication, "NO_SUCH_KEY is not set"),
        (with(json!({ "base_url": "nowhere" })), FaultKind::Crashed, "base_url: "),
        (
            with(json!({ "base_url": "http://a.example", "key_env": "KEY" })),
            FaultKind::Crashed,
            "unencrypted",
        ),
    ] {
        let env = |name: &str| (name == "KEY").then(|| "sk-secret".to_owned());
        let mut out = Vec::new();
        let status = start(&mut text.as_bytes(), &env, &AllowAll, &mut Printer::new(&mut out));
        let (events, receipt) = heard(&out);
        let fault = receipt.fault.expect("a fault");
        assert_eq!((status, events.len(), fault.kind), (2, 2, kind), "{text}");
        let message = fault.message.unwrap_or_default();
        assert!(message.contains(expected) && !message.contains("sk-secret"), "{message}");
    }
}
