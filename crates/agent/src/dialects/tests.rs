//! The dialects against recorded streams and against shapes that their vendors' sources show.
//!
//! The recordings come from a server that answers three requests with 1000, 1001 and 1002 input tokens, of which 0, 100
//! and 200 from the cache, and with 20, 21 and 22 output tokens: a shell that writes a file through a heredoc, a tool
//! that writes another one, and a last word. `OpenAI`'s and Google's formats count the cache as input, Anthropic's does
//! not.

mod beside;
mod claims;
mod failures;
mod rubbish;

use std::path::PathBuf;

use serde_json::{Value, json};
use triphammer_model::money::MicroUsd;
use triphammer_model::{ClaimKind, FaultKind, Receipt, Tokens};

use super::*;
use crate::heard::Heard;
use crate::stream::{Dialect, Stream};

/// Recordings with the vendor whose they are.
const RECORDINGS: [(&str, &str); 29] = [
    ("claude.jsonl", "claude"),
    ("claude-401.jsonl", "claude"),
    ("claude-529.jsonl", "claude"),
    ("claude-too-long.jsonl", "claude"),
    ("claude-failed-calls.jsonl", "claude"),
    ("codex-failed-calls.jsonl", "codex"),
    ("gemini-failed-calls.jsonl", "gemini"),
    ("opencode-failed-calls.jsonl", "opencode"),
    ("pi-failed-calls.jsonl", "pi"),
    ("qwen-failed-calls.jsonl", "qwen"),
    ("codex-resumed.jsonl", "codex"),
    ("codex-401.jsonl", "codex"),
    ("codex-quota.jsonl", "codex"),
    ("gemini-401.jsonl", "gemini"),
    ("gemini-quota.jsonl", "gemini"),
    ("opencode-401.jsonl", "opencode"),
    ("opencode-429.jsonl", "opencode"),
    ("opencode-too-long.jsonl", "opencode"),
    ("pi-429.jsonl", "pi"),
    ("qwen-401.jsonl", "qwen"),
    ("codex.jsonl", "codex"),
    ("codex-server-down.jsonl", "codex"),
    ("gemini.jsonl", "gemini"),
    ("mini.json", "mini"),
    ("opencode.jsonl", "opencode"),
    ("pi.jsonl", "pi"),
    ("pi-server-down.jsonl", "pi"),
    ("qwen.jsonl", "qwen"),
    ("qwen-server-down.jsonl", "qwen"),
];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name)
}

fn recording(name: &str) -> Vec<u8> {
    std::fs::read(file(name)).unwrap_or_else(|e| panic!("reading {name}: {e}"))
}

fn dialect(vendor: &str) -> Box<dyn Dialect> {
    match vendor {
        "claude" => Box::new(Claude::default()),
        "codex" => Box::new(Codex::default()),
        "gemini" => Box::new(Gemini::default()),
        "opencode" => Box::new(Opencode::default()),
        "own" => Box::new(Own::default()),
        "pi" => Box::new(Pi::default()),
        "qwen" => Box::new(Qwen::default()),
        other => panic!("no dialect {other}"),
    }
}

fn hear(vendor: &str, bytes: &[u8]) -> Heard {
    if vendor == "mini" {
        return read_trajectory(bytes);
    }
    let mut stream = Stream::new(dialect(vendor));
    bytes.chunks(4096).for_each(|piece| stream.push(piece));
    stream.end()
}

/// The receipt of events that are written as JSON.
fn receipt(vendor: &str, events: &[Value]) -> Receipt {
    let lines: Vec<_> = events.iter().map(|event| format!("{event}\n")).collect();
    hear(vendor, lines.concat().as_bytes()).into_receipt(vendor)
}

fn recorded(name: &str) -> Receipt {
    let vendor = RECORDINGS.iter().find(|(known, _)| *known == name).map_or("", |(_, vendor)| vendor);
    hear(vendor, &recording(name)).into_receipt(vendor)
}

fn kinds(receipt: &Receipt) -> Vec<(&str, ClaimKind, &str)> {
    receipt.files.iter().map(|f| (f.path.as_str(), f.kind, f.tool.as_deref().unwrap_or(""))).collect()
}

fn commands(receipt: &Receipt) -> Vec<(&str, Option<i32>)> {
    receipt.commands.iter().map(|c| (c.command.as_str(), c.exit)).collect()
}

fn fault(receipt: &Receipt) -> Option<FaultKind> {
    receipt.fault.as_ref().map(|fault| fault.kind)
}

/// Each recording's whole receipt, as it is kept in a file beside it.
///
/// `TRIPHAMMER_WRITE_RECEIPTS=1` writes the files anew; read the difference before it is kept.
#[test]
fn whole_receipts() {
    let write = std::env::var_os("TRIPHAMMER_WRITE_RECEIPTS").is_some();
    for (name, _) in RECORDINGS {
        let golden = file(&format!("{}.receipt.json", name.split('.').next().unwrap_or(name)));
        let is = serde_json::to_string_pretty(&recorded(name)).expect("a receipt") + "\n";
        if write {
            std::fs::write(&golden, &is).expect("a file beside the recording");
        }
        let ought = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(is, ought, "the receipt of {name} differs from {}", golden.display());
    }
}

const HEREDOC: &str = "cat > hello.sh <<'EOF'\n#!/bin/sh\necho hello from heredoc\nEOF\nwc -l hello.sh";
const WORDS: &str = "Done: wrote hello.sh and notes.md.";
/// What the server counted, where the input includes the cache.
const TRUTH: Tokens = Tokens { input: 3003 - 300, cached: 300, output: 63 };

#[test]
fn the_truth_of_whole_runs() {
    // Vendor, path, kind and tool of the one file, exit status of the shell, tokens, micro-dollars, model, stop reason.
    let rows = [
        (
            "claude",
            "cl",
            ClaimKind::Added,
            "Write",
            None,
            Tokens { input: 3003, ..TRUTH },
            Some(16_740),
            "fake-1",
            "end_turn",
        ),
        ("codex", "codex", ClaimKind::Added, "file_change", Some(0), TRUTH, None, "", "turn.completed"),
        ("gemini", "gm", ClaimKind::Changed, "write_file", None, TRUTH, None, "gemini-2.5-flash", "success"),
        ("opencode", "oc", ClaimKind::Added, "write", Some(0), TRUTH, Some(2_829), "", "stop"),
        ("pi", "pi", ClaimKind::Changed, "write", None, TRUTH, Some(2_859), "fake-1", "stop"),
        ("qwen", "qw", ClaimKind::Changed, "write_file", None, TRUTH, None, "fake-1", "success"),
    ];
    for (vendor, folder, kind, tool, exit, tokens, cost, model, stop) in rows {
        let receipt = recorded(&format!("{vendor}.jsonl"));
        let path = format!("/home/dev/ws/{folder}/notes.md");
        assert_eq!(kinds(&receipt), [(path.as_str(), kind, tool)], "{vendor}: the heredoc is no claim");
        assert_eq!(receipt.commands.len(), 1, "{vendor}");
        if vendor == "codex" {
            assert!(
                receipt.commands[0].command.starts_with("/bin/bash -lc \"cat > hello.sh"),
                "as it is quoted"
            );
        } else {
            assert_eq!(receipt.commands[0].command, HEREDOC, "{vendor}");
        }
        assert_eq!(receipt.commands[0].exit, exit, "{vendor}");
        assert_eq!(receipt.tokens, Some(tokens), "{vendor}");
        assert_eq!(receipt.cost.map(MicroUsd::micros), cost, "{vendor}");
        assert_eq!(receipt.model.as_deref(), Some(model).filter(|model| !model.is_empty()), "{vendor}");
        assert_eq!(receipt.stop_reason.as_deref(), Some(stop), "{vendor}");
        assert_eq!(receipt.last_words.as_deref(), Some(WORDS), "{vendor}");
        assert!(receipt.session.is_some_and(|id| id.len() > 20), "{vendor}");
        assert_eq!((receipt.fault, receipt.troubles), (None, vec![]), "{vendor}");
    }
}

#[test]
fn the_truth_of_a_trajectory() {
    let receipt = recorded("mini.json");
    assert_eq!(kinds(&receipt), []);
    let expected = [
        (HEREDOC, Some(0)),
        ("printf '# notes\\nwritten by bash\\n' > notes.md", Some(0)),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", None),
    ];
    assert_eq!(commands(&receipt), expected);
    assert_eq!(receipt.tokens, Some(TRUTH));
    assert_eq!(receipt.cost, None, "0.0 of a model whose price it does not know");
    assert_eq!(receipt.model.as_deref(), Some("openai/fake-1"));
    assert_eq!(receipt.stop_reason.as_deref(), Some("Submitted"));
    assert_eq!((receipt.fault, receipt.session, receipt.troubles), (None, None, vec![]));
}

#[test]
fn a_server_that_is_down_is_a_fault_whatever_the_stream_says() {
    let qwen = recorded("qwen-server-down.jsonl");
    assert_eq!(qwen.stop_reason.as_deref(), Some("success"), "what it says");
    assert_eq!(qwen.last_words.as_deref(), Some("[API Error: Connection error. (cause: fetch failed)]"));
    for name in ["qwen-server-down.jsonl", "pi-server-down.jsonl", "codex-server-down.jsonl"] {
        let receipt = recorded(name);
        assert_eq!(fault(&receipt), Some(FaultKind::Overloaded), "{name}");
        assert_eq!(receipt.tokens, None, "{name}: unknown, not nothing");
        assert_eq!(receipt.cost, None, "{name}");
        assert!(receipt.session.is_some(), "{name}");
    }
    let message = recorded("pi-server-down.jsonl").fault.and_then(|fault| fault.message);
    assert_eq!(message.as_deref(), Some("Connection error."));
}

#[test]
fn services_that_refuse() {
    let rows = [
        ("claude-401.jsonl", FaultKind::Authentication, "authentication_failed"),
        ("claude-529.jsonl", FaultKind::Overloaded, "server_error"),
        ("claude-too-long.jsonl", FaultKind::ContextOverflow, "prompt_too_long"),
        ("gemini-401.jsonl", FaultKind::Authentication, "unknown"),
        ("opencode-401.jsonl", FaultKind::Authentication, "APIError"),
        ("opencode-429.jsonl", FaultKind::RateLimit, "APIError"),
        ("opencode-too-long.jsonl", FaultKind::ContextOverflow, "ContextOverflowError"),
        ("pi-429.jsonl", FaultKind::RateLimit, "error"),
        // Nothing but a text tells these apart from a service that is down.
        ("codex-401.jsonl", FaultKind::Overloaded, "turn.failed"),
        ("codex-quota.jsonl", FaultKind::Overloaded, "turn.failed"),
        ("gemini-quota.jsonl", FaultKind::Overloaded, "unknown"),
        ("qwen-401.jsonl", FaultKind::Overloaded, "success"),
    ];
    for (name, kind, stop) in rows {
        let receipt = recorded(name);
        assert_eq!(fault(&receipt), Some(kind), "{name}");
        assert_eq!(receipt.stop_reason.as_deref(), Some(stop), "{name}");
        assert!(receipt.fault.and_then(|fault| fault.message).is_some_and(|m| !m.is_empty()), "{name}");
        assert_eq!((receipt.files, receipt.commands), (vec![], vec![]), "{name}");
    }
    let reset = recorded("opencode-429.jsonl").fault.and_then(|fault| fault.reset_at);
    assert_eq!(reset, "2026-11-30T21:25:40.198Z".parse().ok(), "three seconds after the event");
}

/// The first `lines` lines of a recording.
fn cut(name: &str, lines: usize) -> Heard {
    let bytes = recording(name);
    let kept: Vec<_> = bytes.split_inclusive(|b| *b == b'\n').take(lines).collect();
    let vendor = name.split('.').next().unwrap_or(name);
    hear(vendor, &kept.concat())
}

#[test]
fn a_cut_stream_sums_up_what_was_seen() {
    let two = Tokens { input: 1000 + 901, cached: 100, output: 41 };
    // Lines that are left, and tokens by then. Claude tells the output of a message only in its result.
    let rows = [
        ("claude.jsonl", 5, Some(Tokens { input: 2001, cached: 100, output: 2 })),
        ("qwen.jsonl", 5, Some(two)),
        ("opencode.jsonl", 6, Some(two)),
        ("codex.jsonl", 8, None),
        ("gemini.jsonl", 7, None),
    ];
    for (name, lines, tokens) in rows {
        let heard = cut(name, lines);
        assert!(heard.broke_off(), "{name}");
        let receipt = heard.into_receipt("x");
        assert_eq!(fault(&receipt), Some(FaultKind::Protocol), "{name}");
        assert_eq!(receipt.tokens, tokens, "{name}");
        assert_eq!(receipt.files.len(), 1, "{name}");
        assert_eq!(receipt.commands.len(), 1, "{name}");
    }
}

#[test]
fn a_command_whose_end_is_not_told_was_begun() {
    for (name, lines) in [("claude.jsonl", 2), ("qwen.jsonl", 2), ("codex.jsonl", 4), ("gemini.jsonl", 3)] {
        let receipt = cut(name, lines).into_receipt("x");
        assert_eq!(receipt.commands.len(), 1, "{name}");
        assert_eq!(receipt.commands[0].exit, None, "{name}");
        assert_eq!(receipt.files, [], "{name}");
    }
}

#[test]
fn a_trajectory_that_is_cut_is_read_as_far_as_it_goes() {
    let bytes = recording("mini.json");
    let heard = read_trajectory(&bytes[..bytes.len() - 300]);
    let receipt = heard.into_receipt("mini");
    assert_eq!(receipt.tokens, Some(TRUTH));
    assert_eq!(receipt.stop_reason.as_deref(), Some("Submitted"));
    assert_eq!(receipt.troubles.len(), 1);
    assert!(receipt.troubles[0].starts_with("the trajectory cannot be read on: "), "{:?}", receipt.troubles);
    let receipt = read_trajectory(b"").into_receipt("mini");
    assert_eq!(fault(&receipt), Some(FaultKind::Protocol));
    assert_eq!(receipt.tokens, None);
}

#[test]
fn claude_tells_the_tokens_of_a_message_several_times() {
    let piece = |id: &str, output: u64| {
        json!({"type": "assistant", "message": {"id": id, "model": "m", "content": [],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3,
            "output_tokens": output}}})
    };
    let receipt = receipt("claude", &[piece("a", 1), piece("a", 1), piece("a", 4), piece("b", 2)]);
    assert_eq!(receipt.tokens, Some(Tokens { input: 26, cached: 10, output: 6 }));
}

#[test]
fn claude_sums_up_its_models_and_comes_to_rest_more_than_once() {
    let result = |input: u64, all: u64| {
        json!({"type": "result", "subtype": "success", "is_error": false, "total_cost_usd": 0.25,
            "usage": {"input_tokens": input, "output_tokens": 1},
            "modelUsage": {"a": {"inputTokens": all, "outputTokens": 5, "cacheCreationInputTokens": 2},
                "b": {"inputTokens": 7, "outputTokens": 1, "cacheReadInputTokens": 3}}})
    };
    let receipt = receipt("claude", &[result(1, 10), result(1, 20)]);
    assert_eq!(receipt.tokens, Some(Tokens { input: 29, cached: 3, output: 6 }));
    assert_eq!(receipt.cost, Some(MicroUsd::new(250_000)), "the total so far, not the sum of totals");
}

#[test]
fn reasoning_is_output() {
    let step = |tokens: Value| {
        receipt("opencode", &[json!({"type": "step_finish", "part": {"reason": "stop", "tokens": tokens}})])
    };
    let cache = json!({"read": 5, "write": 2});
    let apart = json!({"total": 37, "input": 10, "output": 12, "reasoning": 8, "cache": cache});
    assert_eq!(step(apart).tokens, Some(Tokens { input: 12, cached: 5, output: 20 }));
    let inside = json!({"total": 29, "input": 10, "output": 12, "reasoning": 8, "cache": cache});
    assert_eq!(step(inside).tokens, Some(Tokens { input: 12, cached: 5, output: 12 }));
    let unsaid = json!({"input": 10, "output": 12, "reasoning": 8, "cache": cache});
    assert_eq!(step(unsaid).tokens, Some(Tokens { input: 12, cached: 5, output: 20 }));

    let stats = json!({"total_tokens": 140, "input_tokens": 100, "output_tokens": 10, "cached": 60});
    let gemini = receipt("gemini", &[json!({"type": "result", "status": "success", "stats": stats})]);
    assert_eq!(gemini.tokens, Some(Tokens { input: 40, cached: 60, output: 40 }));
}
