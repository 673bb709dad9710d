//! Work that is done: files, commands, the guard, ways of asking.

use serde_json::{Value, json};
use triphammer_llm::{LlmFault, Message};
use triphammer_model::receipt::ClaimedCommand;
use triphammer_model::{ClaimKind, FaultKind, Tokens};

use super::*;

#[test]
fn writes_fails_edits_passes_and_is_done() {
    let dir = tempfile::tempdir().expect("a folder");
    let task = task(dir.path(), json!({}));
    let write = json!({ "path": "sub/a.sh", "content": "exit 3\n" });
    let edit = json!({ "path": "sub/a.sh", "old": "exit 3", "new": "echo fine" });
    let ran = run(
        &task,
        vec![
            Ok(Reply { text: "I begin.".to_owned(), ..calls(&[("write", write)]).expect("a reply") }),
            calls(&[("shell", json!({ "command": "sh sub/a.sh" }))]),
            calls(&[("edit", edit), ("read", json!({ "path": "sub/a.sh" }))]),
            calls(&[
                ("shell", json!({ "command": "sh sub/a.sh" })),
                ("list", json!({})),
                ("search", json!({ "pattern": "f.ne" })),
            ]),
            done(),
        ],
    );
    assert_eq!(ran.stop, Stop::Done);
    assert_eq!(std::fs::read_to_string(dir.path().join("sub/a.sh")).expect("a file"), "echo fine\n");
    assert_eq!(ran.told_in(1), "sub/a.sh is written, 7 bytes");
    assert_eq!(ran.told_in(2), "[exit status 3]");
    assert_eq!(ran.told_in(3), "sub/a.sh is edited\n---\necho fine\n[lines 1 to 1 of 1 of sub/a.sh]");
    let told = ran.told();
    assert!(told.starts_with("fine\n[exit status 0]\n---\nsub/\nsub/a.sh\n["), "{told}");
    assert!(told.contains("sub/a.sh:1: echo fine\n[1 lines fit"), "{told}");

    let receipt = ran.receipt;
    let files: Vec<_> = receipt.files.iter().map(|f| (f.path.as_str(), f.kind, f.tool.as_deref())).collect();
    let path = "sub/a.sh";
    assert_eq!(files, [(path, ClaimKind::Added, Some("write")), (path, ClaimKind::Changed, Some("edit"))]);
    let command = |exit| ClaimedCommand { command: "sh sub/a.sh".to_owned(), exit: Some(exit) };
    assert_eq!(receipt.commands, [command(3), command(0)]);
    assert_eq!(receipt.tokens, Some(Tokens { input: 4500, cached: 500, output: 100 }));
    assert_eq!(receipt.cost, None, "whoever runs the loop knows its prices");
    assert_eq!(receipt.model.as_deref(), Some("fake-1"));
    assert_eq!(receipt.stop_reason.as_deref(), Some("done"));
    assert_eq!(receipt.last_words.as_deref(), Some("All is done."));
    assert_eq!((receipt.fault, receipt.troubles.len()), (None, 0));
    let digest = ran.events.iter().find(|event| event["type"] == "digest").expect("a digest");
    let ought = "Last said:\nAll is done.\nCommands run, the newest first:\n- `sh sub/a.sh`: exit status 0\n\
                 - `sh sub/a.sh`: exit status 3\nFiles written:\n- sub/a.sh (new)\n";
    assert_eq!(digest["text"], ought);
}

#[test]
fn every_request_holds_the_brief_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let task = task(dir.path(), json!({ "digest": "the parser is in p.rs" }));
    let ran = run(&task, vec![calls(&[("list", json!({}))]), done()]);
    for request in &ran.requests {
        let Some(Message::User(opening)) = request.messages.first() else { panic!("no opening") };
        assert!(opening.starts_with(&task.brief));
        assert!(opening.ends_with("\n# From an earlier attempt\n\nthe parser is in p.rs\n"), "{opening}");
        assert!(request.system.contains("Call a tool in every answer"));
    }
    assert_eq!(ran.receipt.cost, None, "a price that is not known is no price");
}

struct NoPush;

impl Ask for NoPush {
    fn allow(&self, command: &str) -> Result<(), String> {
        if command.contains("push") { Err("it cannot be undone".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn a_refusal_reaches_the_model_and_nothing_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = json!({ "command": "touch made; git push -f" });
    let replies = vec![calls(&[("shell", refused), ("shell", json!({ "command": "touch other" }))]), done()];
    let ran = run_asking(&task(dir.path(), json!({})), replies, &NoPush);
    let Some(Message::Results(results)) = ran.requests[1].messages.last() else { panic!("no results") };
    assert_eq!(results[0].content, "this command is not allowed and was not run: it cannot be undone");
    assert_eq!((results[0].ok, results[1].ok), (false, true));
    assert!(!dir.path().join("made").exists() && dir.path().join("other").exists());
    let refused = ran.events("refused");
    assert_eq!(
        (&refused[0]["command"], &refused[0]["why"]),
        (&json!("touch made; git push -f"), &json!("it cannot be undone"))
    );
    let commands: Vec<&str> = ran.receipt.commands.iter().map(|c| c.command.as_str()).collect();
    assert_eq!(commands, ["touch other"], "what did not run is not claimed");
    assert_eq!(ran.receipt.troubles, ["`touch made; git push -f` was not let through: it cannot be undone"]);
}

#[test]
fn what_fails_is_told_and_not_claimed() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("a"), "x x").expect("a file");
    let limits = json!({ "limits": { "tool_timeout": 2 } });
    let bad = [
        ("write", json!({ "path": "../out", "content": "" })),
        ("edit", json!({ "path": "a", "old": "x", "new": "y" })),
        ("read", json!({ "path": "none" })),
        ("search", json!({ "pattern": "(" })),
        ("list", json!({ "path": "/etc" })),
        ("write", json!({ "path": "a", "content": "x x" })),
        ("shell", json!({ "command": "echo before; sleep 1000" })),
    ];
    let ran = run(&task(dir.path(), limits), vec![calls(&bad), done()]);
    let Some(Message::Results(results)) = ran.requests[1].messages.last() else { panic!("no results") };
    for (result, expected) in results.iter().zip([
        "outside of the workspace",
        "occurs 2 times",
        "none: ",
        "the pattern is none",
        "outside of the workspace",
        "had this content before",
        "before\n[killed: it ran longer than 2 s]",
    ]) {
        assert!(result.content.contains(expected), "{}", result.content);
        assert_eq!(result.ok, expected.starts_with("had this"), "{}", result.content);
    }
    assert!(ran.receipt.files.is_empty(), "{:?}", ran.receipt.files);
    assert_eq!((ran.receipt.commands.len(), ran.receipt.commands[0].exit), (1, None));
    assert!(!dir.path().parent().expect("a folder").join("out").exists());
}

#[test]
fn a_command_does_not_get_the_key() {
    let dir = tempfile::tempdir().expect("a folder");
    // Cargo sets this one for tests; it stands in for the key.
    let name = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(name).is_some());
    let told =
        |task: &NativeTask| run(task, vec![calls(&[("shell", json!({ "command": "env" }))]), done()]).told();
    assert!(told(&task(dir.path(), json!({}))).contains(name), "other variables do");
    assert!(!told(&task(dir.path(), json!({ "key_env": name }))).contains(name));
}

#[test]
fn a_model_without_tool_calls_works_in_json() {
    let dir = tempfile::tempdir().expect("a folder");
    let json = |value: Value| text(&value.to_string());
    let ran = run(
        &task(dir.path(), json!({})),
        vec![
            text("```json\n{\"name\": \"write\"}\n```"),
            json(json!({ "action": "write", "path": "a", "content": "b" })),
            text("```json\n{\"action\": \"shell\", \"command\": \"cat a; exit 4\"}\n```"),
            json(json!({ "action": "done", "text": "written" })),
        ],
    );
    assert_eq!(ran.stop, Stop::Done);
    assert_eq!(ways(&ran), ["tools", "schema", "schema", "schema"]);
    assert_eq!(ran.requests[1].messages.len(), 1, "the answer without a call is not kept");
    assert!(ran.requests[1].system.contains(r#"{"action": "write", "path": "the file", "content""#));
    assert_eq!(ran.told(), "What came of `shell cat a; exit 4`:\nb\n[exit status 4]");
    assert_eq!(ran.receipt.files[0].path, "a");
    assert_eq!(ran.receipt.commands[0].exit, Some(4));
    assert_eq!(ran.receipt.last_words.as_deref(), Some("written"));
}

#[test]
fn a_service_is_asked_in_a_way_that_it_takes() {
    let dir = tempfile::tempdir().expect("a folder");
    let list = || text(r#"{"action":"list"}"#);
    let finish = || text(r#"{"action":"done"}"#);
    let no = |status| Err(error(LlmFault::BadRequest, Some(status)));
    let broken = || Err(error(LlmFault::Overloaded, Some(500)));
    let ran = run(&task(dir.path(), json!({})), vec![no(400), no(422), list(), finish()]);
    assert_eq!((ran.stop, ways(&ran)), (Stop::Done, vec!["tools", "schema", "plain", "plain"]));
    // A server that fails over tools instead of saying so.
    let ran =
        run(&task(dir.path(), json!({})), vec![broken(), broken(), broken(), broken(), list(), finish()]);
    assert_eq!((ran.stop, ways(&ran).pop(), ran.pauses.len()), (Stop::Done, Some("schema"), 3));
    let ran = run(&task(dir.path(), json!({ "actions": "json" })), vec![no(400), list(), finish()]);
    assert_eq!((ran.stop, ways(&ran)), (Stop::Done, vec!["schema", "plain", "plain"]));
    // Where no way is taken, the first error is the one.
    let ran = run(&task(dir.path(), json!({})), vec![no(404), no(400), no(422)]);
    let fault = ran.receipt.fault.clone().expect("a fault");
    assert_eq!((ran.stop, fault.kind), (Stop::Fault, FaultKind::Protocol));
    assert!(fault.message.is_some_and(|message| message.contains("BadRequest Some(404)")));
    let ran = run(&task(dir.path(), json!({ "actions": "tools" })), vec![no(400)]);
    assert_eq!((ran.stop, ran.requests.len()), (Stop::Fault, 1));
}

#[test]
fn a_turn_without_a_call_is_an_end() {
    let dir = tempfile::tempdir().expect("a folder");
    let ran = run(&task(dir.path(), json!({})), vec![calls(&[("list", json!({}))]), text("That is it.")]);
    assert_eq!((ran.stop, ran.receipt.stop_reason.as_deref()), (Stop::TurnEnded, Some("turn-ended")));
    assert_eq!(ran.receipt.last_words.as_deref(), Some("That is it."));
    let ran = run(&task(dir.path(), json!({ "actions": "tools" })), vec![text("Nothing to do.")]);
    assert_eq!((ran.stop, ran.requests.len()), (Stop::TurnEnded, 1));
}
