//! Real servers, as they were recorded: each line of theirs is said when the line of the client's before it came.

use triphammer_model::{ClaimKind, MicroUsd};

use super::*;

fn recording(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/streams/acp-{name}.jsonl"));
    std::fs::read_to_string(path).expect("a recording")
}

/// Plays a recording in a folder of its own.
fn played(name: &str) -> (tempfile::TempDir, Ran) {
    let text = recording(name);
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().to_str().expect("UTF-8").to_owned();
    let there = text.split("WORKDIR=").nth(1).and_then(|rest| rest.split('"').next()).expect("a folder");
    let lines: Vec<Value> = text
        .replace(there, &folder)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of a recording"))
        .collect();
    let ran = turn(dir.path(), &task(), |peer| {
        for mut line in lines {
            let from_client = line["dir"] == "client->agent";
            line.as_object_mut().expect("an object").remove("dir");
            if from_client {
                let heard = peer.hear();
                assert_eq!((&heard["id"], &heard["method"]), (&line["id"], &line["method"]), "{heard}");
            } else {
                peer.say(&line);
            }
        }
    });
    (dir, ran)
}

#[test]
fn each_is_heard_as_it_was_recorded() {
    // Tokens, commands with their exit status, files that are claimed.
    let heredoc = "cat > hello.sh <<'EOF'\n#!/bin/sh\necho hello from heredoc\nEOF\nwc -l hello.sh";
    let print = "printf '%s' '# notes\nwritten by the write tool\n' > notes.md";
    let sum = Some((2703, 300, 63));
    for (name, model, tokens, cost, commands, files) in [
        ("opencode", Some("fake/fake-1"), None, Some(2829), vec![(heredoc, Some(0))], vec!["notes.md"]),
        ("qwen", Some("$runtime|openai|fake-1(openai)"), sum, None, vec![(heredoc, None)], vec!["notes.md"]),
        ("gemini", Some("gemini-2.5-flash"), Some((3003, 0, 63)), None, vec![(heredoc, None)], vec![]),
        ("claude", Some("default"), None, None, vec![(heredoc, None), (print, None)], vec![]),
        ("codex", Some("fake-1"), None, None, vec![], vec!["notes.md"]),
    ] {
        let (dir, ran) = played(name);
        let receipt = &ran.receipt;
        assert_eq!(ran.stop, Stop::Ended("end_turn".to_owned()), "{name}");
        assert_eq!(receipt.troubles, [] as [&str; 0], "{name}");
        assert_eq!((receipt.fault.as_ref(), receipt.session.is_some()), (None, true), "{name}");
        assert_eq!(receipt.model.as_deref(), model, "{name}");
        let told = receipt.tokens.map(|tokens| (tokens.input, tokens.cached, tokens.output));
        assert_eq!(told, tokens, "{name}");
        assert_eq!(receipt.cost.map(MicroUsd::micros), cost, "{name}");
        let told: Vec<_> = receipt.commands.iter().map(|ran| (ran.command.as_str(), ran.exit)).collect();
        assert_eq!(told, commands, "{name}");
        let told: Vec<_> = receipt.files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
        let files: Vec<_> = files.iter().map(|file| dir.path().join(file)).collect();
        let files: Vec<_> =
            files.iter().map(|file| (file.to_str().expect("UTF-8"), ClaimKind::Added)).collect();
        assert_eq!(told, files, "{name}");
        assert_eq!(receipt.last_words.as_deref(), Some("Done: wrote hello.sh and notes.md."), "{name}");
    }
}

/// This value with each of its parts, one at a time, put in the place of another type's.
fn garbled(value: &Value) -> Vec<Value> {
    let others = [
        Value::Null,
        json!(-7),
        json!(0.5),
        json!("x"),
        json!([[]]),
        json!({"path": [], "a": {}}),
        json!(true),
    ];
    let mut all: Vec<Value> = others.into_iter().filter(|other| other != value).collect();
    match value {
        Value::Object(fields) => {
            for (name, part) in fields {
                for part in garbled(part) {
                    let mut whole = fields.clone();
                    whole[name] = part;
                    all.push(Value::Object(whole));
                }
            }
        }
        Value::Array(parts) => {
            for (at, part) in parts.iter().enumerate().take(2) {
                for part in garbled(part) {
                    let mut whole = parts.clone();
                    whole[at] = part;
                    all.push(Value::Array(whole));
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_value_of_another_type_stops_a_turn() {
    for name in ["opencode", "qwen", "gemini", "claude", "codex"] {
        let text = recording(name);
        let lines =
            text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of a recording"));
        let theirs = lines.filter(|line| line["dir"] == "agent->client" && line["method"].is_string());
        // What every server offers as commands of its own is much, and of no interest.
        let short = theirs.filter(|line| line.to_string().len() < 3_000);
        let lines: Vec<Value> = short.flat_map(|line| garbled(&line)).collect();
        assert!(lines.len() > 500, "{name}: {}", lines.len());
        let ran = plain(|peer| {
            let (_, id) = peer.prompted();
            for line in &lines {
                peer.say(line);
            }
            peer.end_turn(&id);
            while peer.heard.recv().is_ok() {}
        });
        assert!(matches!(ran.stop, Stop::Ended(_)), "{name}: {:?}", ran.stop);
    }
}
