//! Each interface through a plain connection, as an agent would use it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::{FAKE_MODEL, Failure, FakeModel, Script, Step};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const ANTHROPIC: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/fake-1:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/fake-1:streamGenerateContent?alt=sse";

/// Status, head and body of an answer; 0 where the connection was closed without one.
struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The data of its events, and their names.
    fn events(&self) -> Vec<(String, Value)> {
        assert!(self.head.contains("content-type: text/event-stream"), "{}", self.head);
        let event = |block: &str| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
            };
            let data = field("data:");
            let data = if data == "[DONE]" { json!(data) } else { serde_json::from_str(&data).unwrap() };
            (field("event:"), data)
        };
        self.body.split("\n\n").filter(|block| !block.is_empty()).map(event).collect()
    }
}

fn connect(model: &FakeModel) -> TcpStream {
    let stream = TcpStream::connect(model.url().trim_start_matches("http://")).unwrap();
    // A service that never answers must fail a test, not hang it.
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

fn send(model: &FakeModel, bytes: &[u8]) -> Answer {
    let mut stream = connect(model);
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let all = String::from_utf8(all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_default();
    let code = head.split(' ').nth(1).map_or(0, |code| code.parse().unwrap());
    Answer { code, head: head.to_owned(), body: body.to_owned() }
}

fn post(model: &FakeModel, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nAuthorization: Bearer dummy\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    send(model, format!("{head}{body}").as_bytes())
}

fn parameters(required: &[&str]) -> Value {
    let fields = required.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
    json!({"type": "object", "properties": Value::Object(fields.collect()), "required": required})
}

/// A request of each interface with a shell and a writer on offer, and `results` tool results since its last prompt;
/// an older exchange stands before it.
fn ask(path: &str, results: usize, stream: bool) -> Value {
    let shell = parameters(&["command", "why"]);
    match path {
        CHAT => {
            let mut messages = vec![
                json!({"role": "system", "content": "You are."}),
                json!({"role": "user", "content": "old"}),
                json!({"role": "tool", "tool_call_id": "call_0", "content": "old result"}),
                json!({"role": "user", "content": [{"type": "text", "text": "do it"}]}),
            ];
            messages.extend((0..results).map(|_| json!({"role": "tool", "content": "done"})));
            let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
            let tools = [tool("bash", shell), tool("write", parameters(&["filePath", "content"]))];
            json!({"model": "m", "stream": stream, "messages": messages, "tools": tools})
        }
        RESPONSES => {
            let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
            let mut input = vec![user("old"), json!({"type": "function_call_output"}), user("do it")];
            input.extend((0..results).map(|_| json!({"type": "function_call_output", "output": "done"})));
            let tools = json!([
                {"type": "function", "name": "shell", "parameters": {
                    "type": "object",
                    "properties": {"command": {"type": "array", "items": {"type": "string"}}},
                    "required": ["command"],
                }},
                {"type": "custom", "name": "apply_patch"},
                {"type": "web_search"},
            ]);
            json!({"model": "m", "stream": stream, "input": input, "tools": tools})
        }
        ANTHROPIC => {
            let result = json!({"type": "tool_result", "tool_use_id": "toolu_0", "content": "done"});
            let mut messages = vec![
                json!({"role": "user", "content": "old"}),
                json!({"role": "user", "content": [result]}),
                json!({"role": "user", "content": [{"type": "text", "text": "do it"}]}),
            ];
            let beside = json!({"type": "text", "text": "a reminder"});
            messages.extend((0..results).map(|_| json!({"role": "user", "content": [result, beside]})));
            let tools = json!([
                {"name": "Bash", "input_schema": shell},
                {"name": "Write", "input_schema": parameters(&["file_path", "content"])},
            ]);
            json!({"model": "m", "stream": stream, "messages": messages, "tools": tools})
        }
        _ => {
            let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "x"}}]});
            let mut contents = vec![
                json!({"role": "user", "parts": [{"text": "old"}]}),
                result.clone(),
                json!({"role": "user", "parts": [{"text": "do it"}]}),
            ];
            contents.extend((0..results).map(|_| result.clone()));
            let tools = json!([{"functionDeclarations": [
                {"name": "run_shell_command", "parametersJsonSchema": shell},
                {"name": "write_file", "parameters": {
                    "type": "OBJECT",
                    "properties": {"file_path": {"type": "STRING"}, "content": {"type": "STRING"}},
                    "required": ["file_path", "content"],
                }},
            ]}]);
            json!({"contents": contents, "tools": tools})
        }
    }
}

fn three_steps() -> FakeModel {
    FakeModel::saying([
        Step::ShellCall("echo hi".to_owned()),
        Step::WriteCall { path: "/w/a.txt".to_owned(), content: "one\ntwo\n".to_owned() },
        Step::Text("All done.".to_owned()),
    ])
}

/// The same three steps through an interface: what `read` takes out of the answers.
fn check(path: &str, stream: bool, read: impl Fn(&Answer) -> Value, expected: &[Value; 3]) {
    let model = three_steps();
    for (results, expected) in expected.iter().enumerate() {
        let answer = post(&model, path, &ask(path, results, stream));
        assert_eq!(answer.code, 200, "{}", answer.body);
        assert_eq!(&read(&answer), expected, "{path}, stream {stream}, {results} results: {}", answer.body);
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let results: Vec<usize> = requests.iter().map(super::ModelRequest::results).collect();
    assert_eq!(results, [0, 1, 2]);
    assert!(requests.iter().all(|request| request.prompt() == "do it" && request.tools().len() == 2));
    assert_eq!(requests[0].header("authorization"), Some("Bearer dummy"));
}

#[test]
fn chat_completions() {
    let shell = json!({"command": "echo hi", "why": "text"});
    let write = json!({"filePath": "/w/a.txt", "content": "one\ntwo\n"});
    let of = |name: &str, arguments: &Value, usage: [u64; 3]| json!([name, arguments, "tool_calls", usage]);
    let expected = [
        of("bash", &shell, [1000, 0, 20]),
        of("write", &write, [1001, 100, 21]),
        json!(["All done.", "stop", [1002, 200, 22]]),
    ];
    let read = |message: &Value, finish: &Value, usage: &Value| {
        let usage = json!([
            usage["prompt_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
            usage["completion_tokens"]
        ]);
        match message["tool_calls"].get(0) {
            Some(call) => {
                let function = &call["function"];
                let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
                json!([function["name"], arguments, finish, usage])
            }
            None => json!([message["content"], finish, usage]),
        }
    };
    let plain = |answer: &Answer| {
        let answer = answer.json();
        let choice = &answer["choices"][0];
        read(&choice["message"], &choice["finish_reason"], &answer["usage"])
    };
    check(CHAT, false, plain, &expected);
    let streamed = |answer: &Answer| {
        let events = answer.events();
        assert_eq!(events.last().unwrap().1, "[DONE]");
        let (first, end) = (&events[0].1, &events[1].1);
        read(&first["choices"][0]["delta"], &end["choices"][0]["finish_reason"], &end["usage"])
    };
    check(CHAT, true, streamed, &expected);
}

#[test]
fn responses() {
    let patch = "*** Begin Patch\n*** Add File: /w/a.txt\n+one\n+two\n*** End Patch\n";
    let expected = [
        json!(["shell", {"command": ["bash", "-lc", "echo hi"]}, [1000, 0, 20]]),
        json!(["apply_patch", patch, [1001, 100, 21]]),
        json!(["All done.", [1002, 200, 22]]),
    ];
    let plain = |response: &Value| {
        let (item, usage) = (&response["output"][0], &response["usage"]);
        let usage = json!([
            usage["input_tokens"],
            usage["input_tokens_details"]["cached_tokens"],
            usage["output_tokens"]
        ]);
        match item["type"].as_str().unwrap() {
            "function_call" => {
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                json!([item["name"], arguments, usage])
            }
            "custom_tool_call" => json!([item["name"], item["input"], usage]),
            _ => json!([item["content"][0]["text"], usage]),
        }
    };
    check(RESPONSES, false, |answer| plain(&answer.json()), &expected);
    let streamed = |answer: &Answer| {
        let events = answer.events();
        for (at, (name, data)) in events.iter().enumerate() {
            assert_eq!(
                (data["type"].as_str(), data["sequence_number"].as_u64()),
                (Some(name.as_str()), Some(at as u64))
            );
        }
        assert_eq!(events[0].0, "response.created");
        let item = &events[events.len() - 2];
        assert_eq!(item.0, "response.output_item.done");
        let (name, end) = events.last().unwrap();
        assert_eq!(name, "response.completed");
        assert_eq!(end["response"]["output"][0], item.1["item"]);
        plain(&end["response"])
    };
    check(RESPONSES, true, streamed, &expected);
}

#[test]
fn messages() {
    let shell = json!({"command": "echo hi", "why": "text"});
    let write = json!({"file_path": "/w/a.txt", "content": "one\ntwo\n"});
    // The cache stands beside the rest of the input here.
    let expected = [
        json!(["Bash", shell, "tool_use", [1000, 0, 20]]),
        json!(["Write", write, "tool_use", [901, 100, 21]]),
        json!(["All done.", "end_turn", [802, 200, 22]]),
    ];
    let read = |block: &Value, stop: &Value, usage: &Value| {
        let usage = json!([usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]]);
        if block["type"] == "tool_use" {
            json!([block["name"], block["input"], stop, usage])
        } else {
            json!([block["text"], stop, usage])
        }
    };
    let plain = |answer: &Answer| {
        let answer = answer.json();
        read(&answer["content"][0], &answer["stop_reason"], &answer["usage"])
    };
    check(ANTHROPIC, false, plain, &expected);
    let streamed = |answer: &Answer| {
        let events = answer.events();
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        let order = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(names, order);
        let mut block = events[1].1["content_block"].clone();
        let delta = &events[2].1["delta"];
        if let Some(input) = delta["partial_json"].as_str() {
            assert_eq!(block["input"], json!({}));
            block["input"] = serde_json::from_str(input).unwrap();
        } else {
            block["text"] = delta["text"].clone();
        }
        read(&block, &events[4].1["delta"]["stop_reason"], &events[4].1["usage"])
    };
    check(ANTHROPIC, true, streamed, &expected);
    let counted = post(&three_steps(), "/v1/messages/count_tokens?beta=true", &json!({"messages": []}));
    assert_eq!(counted.json(), json!({"input_tokens": 100}));
}

#[test]
fn generated_content() {
    let expected = [
        json!(["run_shell_command", {"command": "echo hi", "why": "text"}, [1000, 0, 20]]),
        json!(["write_file", {"file_path": "/w/a.txt", "content": "one\ntwo\n"}, [1001, 100, 21]]),
        json!(["All done.", [1002, 200, 22]]),
    ];
    let read = |answer: &Value| {
        let usage = &answer["usageMetadata"];
        let usage = json!([
            usage["promptTokenCount"],
            usage["cachedContentTokenCount"],
            usage["candidatesTokenCount"]
        ]);
        let part = &answer["candidates"][0]["content"]["parts"][0];
        match part.get("functionCall") {
            Some(call) => json!([call["name"], call["args"], usage]),
            None => json!([part["text"], usage]),
        }
    };
    check(GEMINI, false, |answer| read(&answer.json()), &expected);
    let streamed = |answer: &Answer| {
        let events = answer.events();
        assert_eq!(events.len(), 1);
        read(&events[0].1)
    };
    check(GEMINI_STREAM, true, streamed, &expected);
}

#[test]
fn the_list_of_models_and_what_is_not_served() {
    let model = three_steps();
    let listed = send(&model, b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n").json();
    assert_eq!(listed["data"][0]["id"], FAKE_MODEL);
    assert_eq!(post(&model, "/v1/embeddings", &json!({})).code, 404);
    let head = send(&model, b"HEAD /v1 HTTP/1.1\r\n\r\n");
    assert_eq!((head.code, head.body.as_str()), (200, ""));
    let asked: Vec<(String, Value)> = model.requests().into_iter().map(|r| (r.method, r.body)).collect();
    assert_eq!(
        asked,
        [("GET", Value::Null), ("POST", json!({})), ("HEAD", Value::Null)].map(|(m, b)| (m.to_owned(), b))
    );
}

#[test]
fn agents_without_a_writer_write_through_their_shell() {
    let offered = |name: &str, key: &str| {
        let tool = json!({"type": "function", "function": {"name": name, "parameters": parameters(&[key])}});
        json!({"messages": [{"role": "user", "content": "do it"}], "tools": [tool]})
    };
    let model =
        FakeModel::saying([Step::WriteCall { path: "/w/it's".to_owned(), content: "one\n".to_owned() }]);
    let line = |body: &Value, key: &str| {
        let answer = post(&model, CHAT, body).json();
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        arguments[key].as_str().unwrap().to_owned()
    };
    let bash = line(&offered("bash", "command"), "command");
    assert_eq!(bash, "cat > '/w/it'\\''s' <<'END_OF_FILE'\none\nEND_OF_FILE\n");
    let patched = line(&offered("exec_command", "cmd"), "cmd");
    assert!(patched.starts_with("apply_patch <<'PATCH'\n*** Begin Patch\n"), "{patched}");

    // An agent whose end is a command of its own.
    let model = FakeModel::saying([Step::Text("bye".to_owned())]);
    let mut body = offered("bash", "command");
    body["messages"][0]["content"] = json!("End with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`.");
    let answer = post(&model, CHAT, &body).json();
    let arguments = &answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, "{\"command\":\"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\"}");
}

#[test]
fn what_is_asked_beside_the_work_gets_a_plain_answer() {
    let model = three_steps();
    let title = post(&model, CHAT, &json!({"messages": [{"role": "user", "content": "a title for this"}]}));
    assert_eq!(title.json()["choices"][0]["message"]["content"], "no shell is offered");
    let mut next = ask(GEMINI, 0, false);
    next["generationConfig"] = json!({"responseJsonSchema": {
        "type": "object",
        "properties": {"who": {"type": "string", "enum": ["user", "model"]}, "score": {"type": "integer", "minimum": 3}},
        "required": ["who", "score"],
    }});
    let next = post(&model, GEMINI, &next).json();
    let text = next["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"who": "user", "score": 3}));
    assert_eq!(model.working_requests().len(), 1);
}

#[test]
fn a_choice_of_the_callers_own_sees_the_request() {
    let second = Script::new([Step::Text("second".to_owned())]);
    let model = FakeModel::start(move |request| {
        if request.prompt().contains("finding") {
            second.step(request)
        } else {
            Step::Text("first".to_owned())
        }
    });
    let said = |prompt: &str| {
        let tools = ask(CHAT, 0, false)["tools"].clone();
        let body = json!({"messages": [{"role": "user", "content": prompt}], "tools": tools});
        post(&model, CHAT, &body).json()["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(said("go"), "first");
    assert_eq!(said("a finding: x"), "second");
    assert!(model.requests()[1].text().contains("a finding: x"));
}

#[test]
fn each_interface_fails_in_its_own_words() {
    let check = |path: &str, failure: Failure, code: u16, at: &str, word: &str| {
        let model =
            FakeModel::saying([Step::Fails(failure, vec![("retry-after".to_owned(), "20".to_owned())])]);
        let answer = post(&model, path, &ask(path, 0, true));
        assert_eq!(answer.code, code, "{path}, {failure:?}");
        assert!(answer.head.contains("retry-after: 20"), "{}", answer.head);
        let body = answer.json();
        assert_eq!(body.pointer(at).and_then(Value::as_str), Some(word), "{path}, {failure:?}: {body}");
    };
    for path in [CHAT, RESPONSES] {
        check(path, Failure::Authentication, 401, "/error/code", "invalid_api_key");
        check(path, Failure::RateLimit, 429, "/error/code", "rate_limit_exceeded");
        check(path, Failure::Quota, 429, "/error/type", "insufficient_quota");
        check(path, Failure::Overloaded, 503, "/error/code", "server_is_overloaded");
        check(path, Failure::ContextOverflow, 400, "/error/code", "context_length_exceeded");
        check(path, Failure::Server, 500, "/error/type", "server_error");
    }
    check(ANTHROPIC, Failure::Authentication, 401, "/error/type", "authentication_error");
    check(ANTHROPIC, Failure::RateLimit, 429, "/error/type", "rate_limit_error");
    check(ANTHROPIC, Failure::Overloaded, 529, "/error/type", "overloaded_error");
    check(ANTHROPIC, Failure::ContextOverflow, 400, "/error/type", "invalid_request_error");
    check(GEMINI_STREAM, Failure::Authentication, 400, "/error/details/0/reason", "API_KEY_INVALID");
    check(GEMINI_STREAM, Failure::RateLimit, 429, "/error/details/1/retryDelay", "20s");
    check(GEMINI_STREAM, Failure::Overloaded, 503, "/error/status", "UNAVAILABLE");

    let own = Step::Status { code: 418, headers: Vec::new(), body: json!({"tea": true}) };
    let answer = post(&FakeModel::saying([own]), CHAT, &ask(CHAT, 0, false));
    assert_eq!((answer.code, answer.json()), (418, json!({"tea": true})));
}

#[test]
fn silence_a_cut_reply_and_nobody_at_all() {
    let model = FakeModel::saying([Step::Drop]);
    assert_eq!(post(&model, CHAT, &ask(CHAT, 0, false)).code, 0);

    let model = FakeModel::saying([Step::Malformed]);
    let answer = post(&model, CHAT, &ask(CHAT, 0, false));
    assert!(answer.code == 200 && serde_json::from_str::<Value>(&answer.body).is_err(), "{}", answer.body);
    let answer = post(&model, ANTHROPIC, &ask(ANTHROPIC, 0, true));
    assert!(answer.code == 200 && !answer.body.contains("message_stop"), "{}", answer.body);

    assert!(TcpStream::connect(FakeModel::down().trim_start_matches("http://")).is_err());

    // A client that waits sees the end of a service that is stopped.
    let model = FakeModel::saying([Step::Hang]);
    let mut waiting = connect(&model);
    let body = ask(CHAT, 0, false).to_string();
    let head = format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    waiting.write_all(format!("{head}{body}").as_bytes()).unwrap();
    crate::wait_until("the request", Duration::from_mins(1), || !model.requests().is_empty());
    waiting.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(waiting.read(&mut [0]).is_err(), "it is silent, and has not gone");
    waiting.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    drop(model);
    assert_eq!(waiting.read(&mut [0]).unwrap(), 0);
}

#[test]
fn bodies_in_chunks_and_connections_that_stay_open() {
    let model = three_steps();
    let body = ask(CHAT, 2, false).to_string();
    let (first, second) = body.split_at(1);
    let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
        chunk(first),
        chunk(second)
    );
    let again = format!("POST {CHAT} HTTP/1.1\r\ncontent-length: 4\r\n\r\nnope");
    let answer = send(&model, format!("{request}{again}").as_bytes());
    assert_eq!(answer.body.matches("HTTP/1.1 200 OK").count(), 1, "two answers on one connection");
    let requests = model.requests();
    assert_eq!(requests[0].body["model"], "m");
    assert_eq!(requests[1].body, json!("nope"));
}
