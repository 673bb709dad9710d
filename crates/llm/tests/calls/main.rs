//! Both interfaces over a real connection, against a scripted server on loopback.

mod anthropic;
mod failures;
mod openai;
mod server;

use std::time::Duration;

use serde_json::json;
use triphammer_llm::{
    Api, Client as _, Endpoint, HttpClient, LlmError, Message, Reply, Request, Schema, Shape, Tool, ToolCall,
    ToolResult,
};

use server::{Received, Script, Server};

const KEY: &str = "sk-never-shown-anywhere";

fn request(shape: Shape) -> Request {
    Request {
        model: "fake-1".to_owned(),
        system: "You are a test.".to_owned(),
        messages: vec![Message::User("Hello.".to_owned())],
        shape,
        max_tokens: 100,
        temperature: None,
        timeout: Duration::from_secs(20),
    }
}

/// A conversation with a call, one of whose arguments are no JSON, and the results.
fn history() -> Vec<Message> {
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: arguments.to_owned(),
    };
    let result =
        |id: &str, content: &str, ok| ToolResult { id: id.to_owned(), content: content.to_owned(), ok };
    vec![
        Message::User("Hello.".to_owned()),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("a", r#"{"path":"x"}"#), call("b", "{cut")],
        },
        Message::Results(vec![result("a", "text of x", true), result("b", "no JSON", false)]),
    ]
}

fn tools() -> Shape {
    Shape::Tools(vec![Tool {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
    }])
}

fn schema() -> Shape {
    let schema = json!({ "type": "object", "properties": { "verdict": { "type": "string" } } });
    Shape::Json(Schema { name: "verdict".to_owned(), schema, strict: true })
}

fn client(api: Api, server: &Server) -> HttpClient {
    client_at(api, &server.url)
}

fn client_at(api: Api, url: &str) -> HttpClient {
    let env = |name: &str| (name == "KEY_HERE").then(|| KEY.to_owned());
    HttpClient::new(Endpoint::resolve(api, Some(url), Some("KEY_HERE"), &env).expect("an endpoint"))
}

/// Asks a server with one answer.
fn ask(api: Api, request: &Request, script: Script) -> (Result<Reply, LlmError>, Received) {
    let server = Server::start(vec![script]);
    let reply = client(api, &server).complete(request);
    let received = server.next();
    server.end();
    (reply, received)
}

fn ok(body: &serde_json::Value) -> Script {
    Script::Reply(200, "", body.to_string())
}

/// Nothing that is shown of an error holds the key.
fn check_hidden(error: &LlmError) {
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains(KEY), "{shown}");
    }
}
