//! Everything that can go wrong, named as what it is.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use jiff::Timestamp;
use rustix::net::{AddressFamily, SocketType};
use serde_json::{Value, json};
use triphammer_llm::{Api, Client as _, Endpoint, HttpClient, LlmError, LlmFault, SetupError, Shape};
use triphammer_model::{FaultKind, Tokens};

use super::{KEY, Script, Server, ask, check_hidden, client_at, ok, request};

fn fail(api: Api, script: Script) -> LlmError {
    let error = ask(api, &request(Shape::Text), script).0.expect_err("an error");
    check_hidden(&error);
    let text = error.to_string();
    assert!(text.contains("`fake-1` at http://127.0.0.1:") && text.contains(error.fault.advice()), "{text}");
    error
}

#[test]
fn statuses_and_codes() {
    let openai = |code: &str, kind: &str| json!({ "error": { "message": KEY, "type": kind, "code": code } });
    let anthropic = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": KEY } });
    let rows: Vec<(Api, u16, Value, LlmFault, FaultKind)> = vec![
        (
            Api::OpenAi,
            401,
            openai("invalid_api_key", "x"),
            LlmFault::Authentication,
            FaultKind::Authentication,
        ),
        (Api::OpenAi, 402, openai("x", "x"), LlmFault::Quota, FaultKind::Quota),
        (Api::OpenAi, 429, openai("insufficient_quota", "x"), LlmFault::Quota, FaultKind::Quota),
        (
            Api::OpenAi,
            429,
            openai("rate_limit_exceeded", "tokens"),
            LlmFault::RateLimit,
            FaultKind::RateLimit,
        ),
        (Api::OpenAi, 503, openai("x", "server_error"), LlmFault::Overloaded, FaultKind::Overloaded),
        (
            Api::OpenAi,
            400,
            openai("context_length_exceeded", "invalid_request_error"),
            LlmFault::ContextOverflow,
            FaultKind::ContextOverflow,
        ),
        (Api::OpenAi, 404, openai("model_not_found", "x"), LlmFault::BadRequest, FaultKind::Protocol),
        (Api::OpenAi, 307, json!({}), LlmFault::Protocol, FaultKind::Protocol),
        (Api::OpenAi, 200, json!({ "error": { "code": 502 } }), LlmFault::Overloaded, FaultKind::Overloaded),
        (
            Api::Anthropic,
            401,
            anthropic("authentication_error"),
            LlmFault::Authentication,
            FaultKind::Authentication,
        ),
        (Api::Anthropic, 429, anthropic("rate_limit_error"), LlmFault::RateLimit, FaultKind::RateLimit),
        (Api::Anthropic, 529, anthropic("overloaded_error"), LlmFault::Overloaded, FaultKind::Overloaded),
        (
            Api::Anthropic,
            413,
            anthropic("request_too_large"),
            LlmFault::ContextOverflow,
            FaultKind::ContextOverflow,
        ),
        (Api::Anthropic, 400, anthropic("invalid_request_error"), LlmFault::BadRequest, FaultKind::Protocol),
        (Api::Anthropic, 400, anthropic("billing_error"), LlmFault::Quota, FaultKind::Quota),
    ];
    for (api, status, body, fault, kind) in rows {
        let error = fail(api, Script::Reply(status, "location: /else\r\n", body.to_string()));
        assert_eq!(
            (error.fault, error.status, error.to_fault().kind),
            (fault, Some(status), kind),
            "{status} {body}"
        );
    }
}

#[test]
fn the_reset_time_of_a_limit() {
    let before = Timestamp::now();
    let error = fail(Api::OpenAi, Script::Reply(429, "retry-after: 600\r\n", "{}".to_owned()));
    let (at, after) = (error.reset_at.expect("a time"), Timestamp::now());
    let seconds = jiff::SignedDuration::from_secs(600);
    assert!(before + seconds <= at && at <= after + seconds, "{at}");
    assert_eq!(error.to_fault().reset_at, Some(at));
    let none = fail(Api::Anthropic, Script::Reply(429, "", "{}".to_owned()));
    assert_eq!((none.fault, none.reset_at), (LlmFault::RateLimit, None), "unknown stays unknown");
    // What has nothing to do with a limit has no reset.
    assert_eq!(fail(Api::OpenAi, Script::Reply(401, "retry-after: 600\r\n", "{}".to_owned())).reset_at, None);
}

#[test]
fn refusals_keep_what_they_used() {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 2 });
    let used = Some(Tokens { input: 10, cached: 0, output: 2 });
    for choice in [
        json!({ "message": { "content": "", "refusal": "I will not." }, "finish_reason": "stop" }),
        json!({ "message": { "content": "half" }, "finish_reason": "content_filter" }),
    ] {
        let error = fail(Api::OpenAi, ok(&json!({ "choices": [choice], "usage": usage })));
        assert_eq!((error.fault, error.usage), (LlmFault::Refused, used));
    }
    let usage = json!({ "input_tokens": 10, "output_tokens": 2 });
    for (word, fault) in
        [("refusal", LlmFault::Refused), ("model_context_window_exceeded", LlmFault::ContextOverflow)]
    {
        let error = fail(Api::Anthropic, ok(&json!({ "content": [], "stop_reason": word, "usage": usage })));
        assert_eq!((error.fault, error.usage), (fault, used));
    }
}

#[test]
fn answers_that_are_none() {
    for body in [
        "",
        "<html>",
        "null",
        "[]",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":[{}]}"#,
        r#"{"choices":[{"message":{"content":7}}]}"#,
        r#"{"choices":[{"message":{"content":"x","tool_calls":[{"function":{}}]}}]}"#,
        r#"{"choices":[{"message":{"content":"cut"#,
        &"[".repeat(100_000),
    ] {
        let error = fail(Api::OpenAi, Script::Reply(200, "", body.to_owned()));
        assert_eq!(error.fault, LlmFault::Protocol, "{body:.60}");
    }
    for body in ["{}", r#"{"content":"text"}"#, r#"{"content":[{"type":"tool_use"}]}"#] {
        assert_eq!(
            fail(Api::Anthropic, Script::Reply(200, "", body.to_owned())).fault,
            LlmFault::Protocol,
            "{body}"
        );
    }
    let no_text = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe".to_vec();
    assert_eq!(fail(Api::OpenAi, Script::Raw(no_text)).fault, LlmFault::Protocol);
    assert_eq!(fail(Api::OpenAi, Script::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec())).fault, LlmFault::Protocol);
}

#[test]
fn connections_that_break() {
    for raw in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\":",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho",
    ] {
        let error = fail(Api::OpenAi, Script::Raw(raw.to_vec()));
        assert_eq!(error.fault, LlmFault::Network, "{}: {error}", String::from_utf8_lossy(raw));
    }
}

#[test]
fn an_answer_without_end_is_dropped() {
    let body = format!("\"{}\"", "x".repeat(16 << 20));
    let error = fail(Api::OpenAi, Script::Reply(200, "", body));
    assert_eq!(error.fault, LlmFault::Protocol);
    assert!(error.told.message.contains("larger than 16777216 bytes"), "{error}");
}

#[test]
fn the_deadline_holds_for_the_whole_call() {
    for script in [Script::Hang, Script::Drip] {
        let mut asked = request(Shape::Text);
        asked.timeout = Duration::from_secs(1);
        let error = ask(Api::OpenAi, &asked, script).0.expect_err("an error");
        assert_eq!((error.fault, error.told.message.as_str()), (LlmFault::Timeout, "the limit is 1 s"));
    }
}

/// A port that is taken, on which nobody listens yet.
fn silent_port() -> (OwnedFd, String) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address =
        SocketAddr::try_from(rustix::net::getsockname(&socket).expect("a name")).expect("an address");
    (socket, format!("http://{address}"))
}

#[test]
fn a_server_that_is_not_there() {
    let (_socket, url) = silent_port();
    let error = client_at(Api::OpenAi, &url).complete(&request(Shape::Text)).expect_err("an error");
    assert_eq!(error.fault, LlmFault::Network, "{error}");
    let unknown = client_at(Api::OpenAi, "https://no-such-host.invalid").complete(&request(Shape::Text));
    assert_eq!(unknown.expect_err("an error").fault, LlmFault::Network);
}

#[test]
fn a_server_that_is_just_starting() {
    let (socket, url) = silent_port();
    let (tells, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        told.recv().expect("the call begins");
        // Time for the first try, which nobody accepts; a slower client finds the server there at once.
        std::thread::sleep(Duration::from_millis(100));
        rustix::net::listen(&socket, 1).expect("listening");
        let answer = ok(&json!({ "choices": [{ "message": { "content": "up" } }] }));
        Server::on(TcpListener::from(socket), vec![answer]).end();
    });
    let client = client_at(Api::OpenAi, &url);
    tells.send(()).expect("the server's thread");
    assert_eq!(client.complete(&request(Shape::Text)).expect("a reply").text, "up");
    server.join().expect("the server");
}

#[test]
fn places_that_cannot_be_asked() {
    let env = |pairs: &'static [(&'static str, &'static str)]| {
        move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let resolve = |url, key, pairs| Endpoint::resolve(Api::OpenAi, url, key, &env(pairs));
    assert_eq!(resolve(None, Some("MINE"), &[]), Err(SetupError::NoKey("MINE".to_owned())));
    assert!(matches!(resolve(None, Some("MINE"), &[("MINE", " ")]), Err(SetupError::Key { .. })));
    assert!(matches!(resolve(Some("nowhere"), None, &[]), Err(SetupError::Url { .. })));
    assert!(matches!(resolve(None, None, &[("OPENAI_BASE_URL", "nowhere")]), Err(SetupError::Url { .. })));
    let exposed = resolve(Some("http://api.example.com/v1"), None, &[("OPENAI_API_KEY", "sk-secret")]);
    assert_eq!(exposed, Err(SetupError::Exposed("api.example.com".to_owned())));
    assert!(resolve(Some("http://api.example.com/v1"), None, &[]).is_ok(), "there is no key to lose");
    let default =
        resolve(None, None, &[("OPENAI_API_KEY", ""), ("OPENAI_BASE_URL", "")]).expect("an endpoint");
    assert_eq!((default.base.to_string().as_str(), default.key), ("https://api.openai.com/v1", None));
    let debug =
        format!("{:?}", HttpClient::new(resolve(None, None, &[("OPENAI_API_KEY", KEY)]).expect("one")));
    assert!(!debug.contains(KEY), "{debug}");
}

#[test]
fn several_calls_need_several_connections() {
    let answer = || ok(&json!({ "choices": [{ "message": { "content": "x" } }] }));
    let server = Server::start(vec![answer(), answer()]);
    let client = client_at(Api::OpenAi, &server.url);
    for _ in 0..2 {
        client.complete(&request(Shape::Text)).expect("a reply");
        server.next();
    }
    server.end();
}
