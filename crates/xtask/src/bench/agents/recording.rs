//! Long sessions in an agent's own dialect, made up: no two events are alike, and no chance is in them.
//!
//! A session is a row of turns as agents have them: some words, a command with its output, every third time a file that is
//! read or written whole. Nine outputs of ten are short; one in ten has 16 to 64 kB, one in two hundred half a megabyte,
//! as a build or a search that went wrong has.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

/// Whose dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Claude,
    Codex,
}

impl Voice {
    pub(crate) const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// The agent's name in the configuration, which is its program's, too.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) commands: u64,
    pub(crate) longest: u64,
}

/// Writes a session of at least so many bytes; 0 is one of a single turn.
pub(crate) fn write(voice: Voice, bytes: u64, path: &Path) -> Result<Held, String> {
    let failed = |e| format!("writing {}: {e}", path.display());
    let mut teller = Teller {
        out: BufWriter::new(File::create(path).map_err(failed)?),
        held: Held::default(),
        dice: 7,
        turn: 0,
    };
    teller.session(voice, bytes).map_err(failed)?;
    teller.out.flush().map_err(failed)?;
    Ok(teller.held)
}

struct Teller {
    out: BufWriter<File>,
    held: Held,
    dice: u64,
    turn: u64,
}

impl Teller {
    fn session(&mut self, voice: Voice, bytes: u64) -> std::io::Result<()> {
        match voice {
            Voice::Claude => self.event(&json!({
                "type": "system", "subtype": "init", "cwd": "/home/dev/ws", "session_id": SESSION,
                "tools": ["Bash", "Edit", "Read", "Write"], "model": "fake-1", "permissionMode": "bypassPermissions",
            }))?,
            Voice::Codex => {
                self.event(&json!({ "type": "thread.started", "thread_id": SESSION }))?;
                self.event(&json!({ "type": "turn.started" }))?;
            }
        }
        loop {
            self.turn += 1;
            match voice {
                Voice::Claude => self.claude()?,
                Voice::Codex => self.codex()?,
            }
            if self.held.bytes >= bytes {
                break;
            }
        }
        let turns = self.turn;
        match voice {
            Voice::Claude => self.event(&json!({
                "type": "result", "subtype": "success", "is_error": false, "num_turns": turns, "result": "All is done.",
                "stop_reason": "end_turn", "session_id": SESSION, "total_cost_usd": 1.25,
                "usage": { "input_tokens": 3003, "cache_read_input_tokens": 300, "output_tokens": 63 },
            })),
            Voice::Codex => self.event(&json!({
                "type": "turn.completed",
                "usage": { "input_tokens": 3003, "cached_input_tokens": 300, "output_tokens": 63 },
            })),
        }
    }

    fn claude(&mut self) -> std::io::Result<()> {
        let turn = self.turn;
        let words = self.prose(600);
        self.claude_says(&json!({ "type": "text", "text": words }))?;
        let command = self.command();
        let (id, output) = (format!("toolu_{turn}"), self.output());
        let input = json!({ "command": command, "description": "look at it" });
        self.claude_says(&json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input }))?;
        let beside = json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false });
        self.claude_hears(&id, &output, &beside)?;
        if turn.is_multiple_of(3) {
            let (id, path) = (format!("toolu_f{turn}"), format!("/home/dev/ws/src/part{}.rs", turn % 40));
            let length = 4_000 + self.below(24_000);
            let text = self.code(length);
            if turn.is_multiple_of(2) {
                let input = json!({ "file_path": path, "content": text });
                self.claude_says(&json!({ "type": "tool_use", "id": id, "name": "Write", "input": input }))?;
                let beside = json!({
                    "type": "create", "filePath": path, "content": text, "structuredPatch": [], "originalFile": null,
                });
                self.claude_hears(&id, "File created successfully", &beside)?;
            } else {
                let input = json!({ "file_path": path });
                self.claude_says(&json!({ "type": "tool_use", "id": id, "name": "Read", "input": input }))?;
                let beside = json!({ "type": "text", "file": { "filePath": path, "content": text } });
                self.claude_hears(&id, &text, &beside)?;
            }
        }
        Ok(())
    }

    fn claude_says(&mut self, block: &Value) -> std::io::Result<()> {
        let id = format!("msg_{}", self.turn);
        self.event(&json!({
            "type": "assistant",
            "message": {
                "id": id, "type": "message", "role": "assistant", "model": "fake-1", "content": [block],
                "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 1000, "output_tokens": 1, "cache_read_input_tokens": 100 },
            },
            "parent_tool_use_id": null, "session_id": SESSION, "uuid": "8b92dae4-411f-4b1d-9100-d009b6d79eed",
        }))
    }

    fn claude_hears(&mut self, id: &str, content: &str, beside: &Value) -> std::io::Result<()> {
        let block =
            json!({ "tool_use_id": id, "type": "tool_result", "content": content, "is_error": false });
        self.event(&json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "parent_tool_use_id": null,
            "session_id": SESSION, "uuid": "6d6c28e4-1374-432a-944e-498479feba2a", "tool_use_result": beside,
        }))
    }

    fn codex(&mut self) -> std::io::Result<()> {
        let turn = self.turn;
        let words = self.prose(600);
        self.codex_item(
            "completed",
            &json!({ "id": format!("m{turn}"), "type": "agent_message", "text": words }),
        )?;
        let command = format!("/bin/bash -lc '{}'", self.command());
        let output = self.output();
        let item = |output: &str, exit: Option<i32>, status: &str| {
            json!({
                "id": format!("c{turn}"), "type": "command_execution", "command": command,
                "aggregated_output": output, "exit_code": exit, "status": status,
            })
        };
        self.codex_item("started", &item("", None, "in_progress"))?;
        self.codex_item("completed", &item(&output, Some(0), "completed"))?;
        if turn.is_multiple_of(3) {
            let changes =
                json!([{ "path": format!("/home/dev/ws/src/part{}.rs", turn % 40), "kind": "add" }]);
            let id = format!("f{turn}");
            for status in ["started", "completed"] {
                let item = json!({ "id": id, "type": "file_change", "changes": changes, "status": status });
                self.codex_item(status, &item)?;
            }
        }
        Ok(())
    }

    fn codex_item(&mut self, what: &str, item: &Value) -> std::io::Result<()> {
        self.event(&json!({ "type": format!("item.{what}"), "item": item }))
    }

    /// A line of the stream. Agents put the type first, in whatever order a JSON library keeps fields.
    fn event(&mut self, event: &Value) -> std::io::Result<()> {
        let mut rest = event.clone();
        let kind = rest.as_object_mut().and_then(|fields| fields.remove("type")).unwrap_or_default();
        let rest = rest.to_string();
        let comma = if rest == "{}" { "" } else { "," };
        let line = format!("{{\"type\":{kind}{comma}{}\n", &rest[1..]);
        self.held.bytes += line.len() as u64;
        self.held.longest = self.held.longest.max(line.len() as u64);
        self.held.events += 1;
        self.out.write_all(line.as_bytes())
    }

    fn command(&mut self) -> String {
        self.held.commands += 1;
        let part = self.below(40);
        format!(
            "cargo test -p part{part} 2>&1 | tail -n 40 && git diff --stat -- src/part{part}.rs # {}",
            self.turn
        )
    }

    fn output(&mut self) -> String {
        let length = match self.below(200) {
            0 => 500_000,
            1..20 => 16_000 + self.below(48_000),
            _ => 100 + self.below(4_000),
        };
        self.code(length)
    }

    /// Lines as programs have and print them: quotes, tabs, numbers, now and then a letter that is not ASCII.
    fn code(&mut self, length: u64) -> String {
        let mut text = String::new();
        while (text.len() as u64) < length {
            let (a, b) = (self.below(100_000), self.below(1_000));
            // Writing to a String cannot fail.
            let _ = match self.below(6) {
                0 => writeln!(text, "\tlet name{a} = format!(\"{{}}: \\\"{b}\\\"\", value.get({b})?);"),
                1 => writeln!(text, "test part{b}::holds_what_{a} ... ok"),
                2 => writeln!(text, "src/part{b}.rs:{a}:13: warning: unused variable: `größe{b}`"),
                3 => writeln!(
                    text,
                    "    pub fn f{a}(&self, at: usize) -> Result<Vec<u8>, Error> {{ self.read(at + {b}) }}"
                ),
                4 => writeln!(text),
                _ => writeln!(
                    text,
                    "+// {a}: what is read here was written by somebody else, and may be anything ({b})"
                ),
            };
        }
        text
    }

    fn prose(&mut self, most: u64) -> String {
        let mut text = String::new();
        let length = 40 + self.below(most);
        while (text.len() as u64) < length {
            let _ = write!(
                text,
                "I look at part {} next, since its test {} fails. ",
                self.below(40),
                self.below(999)
            );
        }
        text
    }

    /// The next number below `end`, of a linear congruential sequence.
    fn below(&mut self, end: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % end
    }
}

const SESSION: &str = "e989e3a5-9119-4309-861c-17c6179981c2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_json_with_the_kind_first() {
        let path = std::env::temp_dir().join(format!("triphammer-recording-{}", std::process::id()));
        for voice in Voice::ALL {
            let held = write(voice, 300_000, &path).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!((held.bytes, held.events), (text.len() as u64, text.lines().count() as u64));
            assert!(held.commands > 10 && held.longest > 10_000, "{held:?}");
            for line in text.lines() {
                assert!(
                    line.starts_with("{\"type\":\"") && serde_json::from_str::<Value>(line).is_ok(),
                    "{line}"
                );
            }
        }
        let _ = std::fs::remove_file(path);
    }
}
