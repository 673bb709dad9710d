//! Every bound, every bad answer, every failure.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use triphammer_llm::{LlmFault, Message};
use triphammer_model::FaultKind;

use super::*;

fn list() -> Result<Reply, LlmError> {
    calls(&[("list", json!({}))])
}

#[test]
fn steps_and_tokens() {
    let dir = tempfile::tempdir().expect("a folder");
    let limited = |limits: Value| task(dir.path(), json!({ "limits": limits }));
    let ran = run(&limited(json!({ "steps": 3 })), vec![list(), list(), list(), list()]);
    assert_eq!(
        (ran.stop, ran.left, ran.receipt.stop_reason.as_deref()),
        (Stop::Steps, 1, Some("step-limit"))
    );
    // 1,020 a step.
    let ran = run(&limited(json!({ "tokens": 2041 })), vec![list(), list(), list(), list()]);
    assert_eq!(
        (ran.stop, ran.left, ran.receipt.stop_reason.as_deref()),
        (Stop::Tokens, 1, Some("token-limit"))
    );
    assert_eq!(ran.requests.iter().map(|r| r.max_tokens).collect::<Vec<_>>(), [2041, 1021, 1]);
    // What a service does not say counts by estimate, and is not printed.
    let silent = || Ok(Reply { usage: None, ..list().expect("a reply") });
    let ran = run(&limited(json!({ "tokens": 2000 })), vec![silent(), silent(), silent(), silent()]);
    assert_eq!((ran.stop, ran.receipt.tokens, ran.receipt.cost), (Stop::Tokens, None, None));
    assert!(ran.left > 0);
    assert_eq!(ran.events("uncounted").len(), 1);
    // Told for one answer and not for another is not told.
    let ran = run(&task(dir.path(), json!({})), vec![list(), silent(), done()]);
    assert_eq!((ran.events("uncounted").len(), ran.receipt.tokens), (1, None));
}

#[test]
fn the_same_again_and_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |text: &str| calls(&[("write", json!({ "path": "f", "content": text }))]);
    let task = task(dir.path(), json!({}));
    let ran = run(&task, (0..8).map(|_| write("x")).collect());
    assert_eq!((ran.stop, ran.receipt.stop_reason.as_deref()), (Stop::Repeats, Some("repeats")));
    // The first one made the file, so that its result is another one than the second's.
    assert_eq!(ran.left, 1);
    assert!(
        !ran.told_in(2).contains("times in a row")
            && ran.told_in(3).contains("2 times in a row: nothing changes")
    );
    // Another action in between begins the count anew, and so does another result.
    let ran =
        run(&task, (0..16).map(|n| if n % 2 == 0 { list() } else { write("x") }).chain([done()]).collect());
    assert_eq!(ran.stop, Stop::Done);
    let ran = run(&task, (0..8).map(|n| write(&n.to_string())).chain([done()]).collect());
    assert_eq!(ran.stop, Stop::Done);
}

#[test]
fn what_the_model_is_shown() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("long"), "0123456789\n".repeat(10_000)).expect("a file");
    let task = task(dir.path(), json!({ "limits": { "output": 5000 } }));
    let read = || ("read", json!({ "path": "long" }));
    let command = ("shell", json!({ "command": "cat long" }));
    let ran = run(&task, vec![calls(&[read(), command.clone(), read(), read()]), calls(&[command]), done()]);
    let told = ran.told_in(1);
    assert!(told.len() < 7500, "the results of one answer share the room: {}", told.len());
    assert!(
        told.contains("of 10000 of long; lines 428 to 10000 are left out, read on with from = 428]"),
        "{told}"
    );
    assert!(ran.told().contains(" of 110000 bytes are left out here;"));
    assert!(ran.told().len() < 5100 && ran.told().len() > 4000);
}

#[test]
fn the_context_is_kept_below_its_limit() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("long"), "0123456789\n".repeat(400)).expect("a file");
    let task = task(dir.path(), json!({ "limits": { "context": 8000, "reply": 1000, "output": 100_000 } }));
    // A service that counts nothing: a token is taken to have three bytes.
    let silent = |reply: Result<Reply, LlmError>| Ok(Reply { usage: None, ..reply.expect("a reply") });
    let mut replies: Vec<_> =
        (0..12).map(|n| silent(calls(&[("read", json!({ "path": "long", "to": 400 - n }))]))).collect();
    replies.push(silent(calls(&[("shell", json!({ "command": "exit 5" }))])));
    // One answer whose arguments leave no room for anything else.
    let write = json!({ "path": "big", "content": "x".repeat(19_500) });
    replies.push(silent(calls(&[("write", write)])));
    replies.push(done());
    let ran = run(&task, replies);
    assert_eq!(ran.stop, Stop::Done);
    let size = |request: &Request| -> usize {
        let bytes = |message: &Message| match message {
            Message::User(text) => text.len(),
            Message::Assistant { text, calls } => {
                text.len() + calls.iter().map(|c| c.arguments.len()).sum::<usize>()
            }
            Message::Results(results) => results.iter().map(|result| result.content.len()).sum(),
        };
        request.system.len() + request.messages.iter().map(bytes).sum::<usize>()
    };
    for request in &ran.requests {
        assert!(size(request) / 3 < 7000, "{}", size(request));
        let Some(Message::User(opening)) = request.messages.first() else { panic!("no opening") };
        assert!(opening.starts_with(&task.brief), "goal and findings are always whole");
    }
    let dropped = |request: &&Request| {
        format!("{:?}", request.messages).contains("the result of `read long` was dropped")
    };
    assert!(ran.requests.iter().filter(dropped).count() >= 5, "old results go first");
    let last = ran.requests.last().expect("a request");
    assert_eq!(last.messages.len(), 1, "then the history");
    let text = ran.told();
    assert!(text.contains("- `exit 5`: exit status 5") && text.contains("- big (new)"), "{text}");
    assert!(text.contains("What you have done so far, in place of the conversation"));
}

#[test]
fn a_brief_that_does_not_fit_is_a_fault() {
    let dir = tempfile::tempdir().expect("a folder");
    let more = json!({ "brief": "x".repeat(30_000), "limits": { "context": 8000, "reply": 1000 } });
    let ran = run(&task(dir.path(), more), vec![done()]);
    let fault = ran.receipt.fault.clone().expect("a fault");
    assert_eq!((ran.stop, ran.left, fault.kind), (Stop::Fault, 1, FaultKind::ContextOverflow));
    assert!(fault.message.is_some_and(|message| message.contains("raise limits.context")));
}

#[test]
fn a_context_that_is_full_by_the_service_is_condensed_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let full = || Err(error(LlmFault::ContextOverflow, Some(400)));
    let unclear = || Err(error(LlmFault::BadRequest, Some(400)));
    let write = || calls(&[("write", json!({ "path": "a", "content": "b" }))]);
    for refusal in [full, unclear] {
        let dir = tempfile::tempdir().expect("a folder");
        let ran = run(&task(dir.path(), json!({})), vec![write(), refusal(), done()]);
        assert_eq!(ran.stop, Stop::Done);
        assert_eq!(ran.requests[2].messages.len(), 1);
        let Message::User(again) = &ran.requests[2].messages[0] else { panic!("no opening") };
        let brief = &task(dir.path(), json!({})).brief;
        assert!(again.starts_with(brief), "goal and findings are said again, whole: {again}");
        assert!(again.contains("- a (new)"), "{again}");
        assert_eq!(ways(&ran), ["tools"; 3]);
        let ran = run(&task(dir.path(), json!({})), vec![list(), refusal(), refusal(), done()]);
        assert_eq!((ran.stop, ran.left), (Stop::Fault, 1));
    }
    let ran = run(&task(dir.path(), json!({})), vec![full(), done()]);
    assert_eq!((ran.stop, ran.left), (Stop::Fault, 1), "there is nothing to condense");
}

#[test]
fn bad_calls_are_answered_and_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let bad = || {
        calls(&[
            ("fly", json!({})),
            ("read", json!("{cut")),
            ("write", json!({ "path": "a" })),
            ("read", json!("[1]")),
        ])
    };
    let ran = run(
        &task(dir.path(), json!({})),
        vec![bad(), bad(), bad(), list(), bad(), bad(), bad(), bad(), done()],
    );
    let fault = ran.receipt.fault.clone().expect("a fault");
    assert_eq!((ran.stop, ran.left, fault.kind), (Stop::Unreadable, 1, FaultKind::Protocol));
    assert_eq!(ran.receipt.stop_reason.as_deref(), Some("unreadable-answers"));
    let told = ran.told_in(1);
    for expected in
        ["there is no tool `fly`", "the arguments are no JSON: ", "`write` needs `content`", "no JSON object"]
    {
        assert!(told.contains(expected), "{told}");
    }
    // One good call makes an answer a good one.
    let mixed = || calls(&[("fly", json!({})), ("list", json!({}))]);
    let ran = run(&task(dir.path(), json!({})), vec![mixed(), mixed(), mixed(), mixed(), mixed(), done()]);
    assert_eq!(ran.stop, Stop::Done);
}

#[test]
fn bad_json_is_answered_and_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let json_task = task(dir.path(), json!({ "actions": "json" }));
    let bad = [
        "I would list.",
        "",
        "{\"action\":\"list\"",
        "{\"action\":\"list\"} {\"action\":\"list\"}",
        "[]",
        "null",
    ];
    for answer in bad {
        let ran = run(&json_task, vec![text(answer), text(answer), text(answer), text(answer), done()]);
        assert_eq!((ran.stop, ran.left), (Stop::Unreadable, 1), "{answer}");
        assert!(ran.told().starts_with("Your answer could not be read: "), "{}", ran.told());
    }
    let long = "x".repeat(100_000);
    let ran = run(&json_task, vec![text(&long), text("{\"action\":\"done\"}")]);
    assert_eq!(ran.stop, Stop::Done);
    let Message::Assistant { text: kept, .. } = &ran.requests[1].messages[1] else { panic!("no answer") };
    assert!(kept.ends_with("[98000 bytes left out]"));
}

#[test]
fn answers_that_are_cut_off() {
    let dir = tempfile::tempdir().expect("a folder");
    let cut =
        |reply: Result<Reply, LlmError>| Ok(Reply { stop: llm::Stop::Length, ..reply.expect("a reply") });
    let half = || cut(calls(&[("write", json!("{\"path\":\"a\",\"content\":\"x"))]));
    let ran = run(&task(dir.path(), json!({})), vec![cut(text("I think")), half(), done()]);
    assert_eq!(ran.stop, Stop::Done, "an answer that is cut off is no end of the turn");
    assert!(ran.told_in(1).contains("cut off at the bound of 8192 tokens"), "{}", ran.told_in(1));
    assert!(ran.told().contains("no JSON") && ran.told().contains("cut off at the bound"), "{}", ran.told());
    assert!(!dir.path().join("a").exists());
    let json_task = task(dir.path(), json!({ "actions": "json" }));
    let ran = run(&json_task, vec![cut(text("{\"action\":\"wri")), text("{\"action\":\"done\"}")]);
    assert!(ran.told().contains("cut off at the bound"));
}

#[test]
fn too_many_calls_at_once_and_calls_after_the_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let many: Vec<_> = (0..40).map(|n| ("shell", json!({ "command": format!("echo {n}") }))).collect();
    let ran = run(&task(dir.path(), json!({})), vec![calls(&many), done()]);
    let Some(Message::Results(results)) = ran.requests[1].messages.last() else { panic!("no results") };
    assert_eq!((results.len(), results.iter().filter(|result| result.ok).count()), (40, 32));
    let end = [
        ("shell", json!({ "command": "touch a" })),
        ("done", json!({})),
        ("shell", json!({ "command": "touch b" })),
    ];
    let ran = run(&task(dir.path(), json!({})), vec![calls(&end)]);
    assert_eq!(ran.stop, Stop::Done);
    assert!(dir.path().join("a").exists() && !dir.path().join("b").exists());
}

#[test]
fn failures_that_may_pass_are_waited_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let fail = |fault| Err(error(fault, None));
    let seconds = |all: &[u64]| all.iter().map(|s| Duration::from_secs(*s)).collect::<Vec<_>>();
    for fault in [LlmFault::Overloaded, LlmFault::Network, LlmFault::RateLimit] {
        let ran = run(&task(dir.path(), json!({})), vec![fail(fault), fail(fault), fail(fault), done()]);
        assert_eq!((ran.stop, ran.pauses), (Stop::Done, seconds(&[1, 5, 20])), "{fault:?}");
        let ran = run(&task(dir.path(), json!({})), (0..5).map(|_| fail(fault)).collect());
        assert_eq!((ran.stop, ran.left, ran.pauses.len()), (Stop::Fault, 1, 3), "{fault:?}");
        assert_eq!(ran.receipt.fault.map(|fault| fault.kind), Some(fault.kind()));
    }
    let limit = |until: i64| {
        let reset_at = Timestamp::now() + SignedDuration::from_secs(until);
        Err(LlmError { reset_at: Some(reset_at), ..error(LlmFault::RateLimit, Some(429)) })
    };
    let ran = run(&task(dir.path(), json!({})), vec![limit(50), limit(-5), done()]);
    assert_eq!((ran.stop, ran.pauses.len()), (Stop::Done, 2));
    assert!(ran.pauses[0] > Duration::from_secs(9) && ran.pauses[1] == Duration::ZERO, "{:?}", ran.pauses);
    let ran = run(&task(dir.path(), json!({})), vec![limit(3600), done()]);
    let fault = ran.receipt.fault.clone().expect("a fault");
    assert_eq!((ran.stop, ran.pauses.len(), fault.kind), (Stop::Fault, 0, FaultKind::RateLimit));
    assert!(fault.reset_at.is_some_and(|at| at > Timestamp::now()), "the run is told when to go on");
}

#[test]
fn failures_that_do_not_pass_end_it() {
    let dir = tempfile::tempdir().expect("a folder");
    for (fault, kind) in [
        (LlmFault::Authentication, FaultKind::Authentication),
        (LlmFault::Quota, FaultKind::Quota),
        (LlmFault::Refused, FaultKind::Refused),
        (LlmFault::Protocol, FaultKind::Protocol),
        (LlmFault::Timeout, FaultKind::Overloaded),
    ] {
        let usage = Some(Tokens { input: 5, cached: 0, output: 2 });
        let failed = Err(LlmError { usage, ..error(fault, None) });
        let ran = run(&task(dir.path(), json!({})), vec![list(), failed, done()]);
        assert_eq!((ran.stop, ran.left, ran.pauses.len()), (Stop::Fault, 1, 0), "{fault:?}");
        assert_eq!(ran.receipt.stop_reason.as_deref(), Some("fault"));
        assert_eq!(ran.receipt.fault.map(|fault| fault.kind), Some(kind), "{fault:?}");
        let tokens = Some(Tokens { input: 905, cached: 100, output: 22 });
        assert_eq!(ran.receipt.tokens, tokens, "what a failed call used counts");
    }
}

struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.0 -= 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn work_that_nobody_hears_of_is_not_gone_on_with() {
    let dir = tempfile::tempdir().expect("a folder");
    let client =
        Scripted { replies: Mutex::new(vec![list(), list(), done()].into()), requests: Mutex::default() };
    let mut out = Closed(2);
    let mut printer = Printer::new(&mut out);
    let task = task(dir.path(), json!({}));
    let stop = Session::new(&task, &client, &AllowAll, &mut printer, &|_| ()).expect("a session").run();
    assert_eq!(stop, Stop::Unheard);
    assert_eq!(client.replies.into_inner().expect("replies").len(), 2);
}

#[test]
fn tasks_that_are_none() {
    let whole = json!({ "brief": "b", "model": "m", "api": "anthropic" });
    assert!(NativeTask::read(whole.to_string().as_bytes()).is_ok());
    for (more, expected) in [
        (json!({ "brief": " " }), "`brief` is empty"),
        (json!({ "model": "" }), "`model` is empty"),
        (json!({ "api": "other" }), "unknown variant `other`"),
        (json!({ "surplus": 1 }), "unknown field `surplus`"),
        (json!({ "limits": { "steps": 0 } }), "limits.steps is 0"),
        (json!({ "limits": { "step": 1 } }), "unknown field `step`"),
        (json!({ "limits": { "context": 1000, "reply": 600 } }), "at least twice as many"),
        (json!({ "actions": "guess" }), "unknown variant `guess`"),
    ] {
        let mut task = whole.clone();
        task.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let error = NativeTask::read(task.to_string().as_bytes()).expect_err(expected);
        assert!(error.starts_with("the task on standard input: ") && error.contains(expected), "{error}");
    }
    assert!(NativeTask::read(b"{cut").is_err() && NativeTask::read(b"").is_err());
    let none = task(Path::new("/nowhere/at/all"), json!({}));
    let client = Scripted { replies: Mutex::default(), requests: Mutex::default() };
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out);
    assert!(Session::new(&none, &client, &AllowAll, &mut printer, &|_| ()).is_err());
}
