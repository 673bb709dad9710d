//! What an agent tells before it runs a tool: one JSON object, nearly the same for all of them.
//!
//! ```text
//! {"session_id": "…", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "…"}}
//! ```
//!
//! Gemini CLI calls the event `BeforeTool`; some programs write the names in one word (`toolName`). Further fields are
//! let pass.

use serde_json::Value;
use triphammer_guard::tools::{self, Tool};

/// Events that come before a tool. Any other one is none of our business.
const BEFORE: [&str; 3] = ["PreToolUse", "BeforeTool", "preToolUse"];

/// Tools that watch what a command prints; they may watch something else.
const WATCHERS: [&str; 2] = ["Monitor", "monitor"];

/// What an agent is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// It runs these commands, at least one.
    Shell {
        commands: Vec<String>,
        /// The agent's folder, where it tells it.
        cwd: Option<String>,
        /// The folder that the command asks for, absolute or from the agent's.
        folder: Option<String>,
    },
    /// It uses another tool.
    Other,
    /// It tells of something else than a tool that is to run.
    Elsewhere(String),
}

/// Reads what an agent tells. An error says what of it is not understood.
pub(super) fn read(told: &[u8]) -> Result<Call, String> {
    if told.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".to_owned());
    }
    let told: Value = serde_json::from_slice(told).map_err(|e| format!("it is no JSON: {e}"))?;
    if !told.is_object() {
        return Err("it is no JSON object".to_owned());
    }
    let text = |names: [&str; 2]| names.iter().find_map(|name| told.get(*name)).and_then(Value::as_str);
    if let Some(event) = text(["hook_event_name", "hookEventName"])
        && !BEFORE.contains(&event)
    {
        return Ok(Call::Elsewhere(event.to_owned()));
    }
    let name = text(["tool_name", "toolName"]).ok_or("it names no tool (`tool_name`)")?;
    let input = ["tool_input", "toolInput"].iter().find_map(|name| told.get(*name)).unwrap_or(&Value::Null);
    let commands = match kind(name) {
        Kind::Other => Vec::new(),
        Kind::Shell(name) | Kind::PerhapsShell(name) => tools::commands_of(name, input),
    };
    if commands.is_empty() {
        return match kind(name) {
            Kind::Other | Kind::PerhapsShell(_) => Ok(Call::Other),
            Kind::Shell(name) => Err(format!(
                "`{name}` runs commands, and the command of this call is not found in its `tool_input`"
            )),
        };
    }
    let cwd = text(["cwd", "cwd"]).map(str::to_owned);
    Ok(Call::Shell { commands, cwd, folder: tools::folder_of(input) })
}

/// What a tool is by its name, and a name by which the guard knows it.
enum Kind<'a> {
    Shell(&'a str),
    /// Some calls of it run a command.
    PerhapsShell(&'a str),
    Other,
}

fn kind(name: &str) -> Kind<'_> {
    if tools::tool(name) == Tool::Shell {
        return Kind::Shell(name);
    }
    if WATCHERS.contains(&name) {
        return Kind::PerhapsShell("shell");
    }
    // Gemini CLI: `mcp_<server>_<tool>`, where both may hold underscores themselves.
    let tails = name.strip_prefix("mcp_").into_iter().flat_map(|rest| {
        rest.match_indices('_').map(move |(at, _)| &rest[at + 1..]).filter(|tail| !tail.is_empty())
    });
    for tail in tails {
        if tools::tool(tail) == Tool::Shell {
            return Kind::PerhapsShell(tail);
        }
    }
    Kind::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(command: &str, cwd: &str, folder: Option<&str>) -> Call {
        let folder = folder.map(str::to_owned);
        Call::Shell { commands: vec![command.to_owned()], cwd: Some(cwd.to_owned()), folder }
    }

    /// Claude Code 2.1, its hooks' reference and what its binary sends.
    const CLAUDE: &str = r#"{"session_id":"3b2c","transcript_path":"/home/u/.claude/projects/-w/3b2c.jsonl",
        "cwd":"/w","permission_mode":"bypassPermissions","hook_event_name":"PreToolUse","tool_name":"Bash",
        "tool_input":{"command":"git push -f","description":"Push the branch","timeout":120000},
        "tool_use_id":"toolu_01"}"#;
    /// Gemini CLI 0.61, `docs/hooks/reference.md` and `docs/tools/shell.md` of its package.
    const GEMINI: &str = r#"{"session_id":"9","transcript_path":"/home/u/.gemini/tmp/1/chats/9.json","cwd":"/w",
        "hook_event_name":"BeforeTool","timestamp":"2026-11-30T12:00:00.000Z","tool_name":"run_shell_command",
        "tool_input":{"command":"git push -f","description":"Push","dir_path":"sub"}}"#;
    /// Qwen Code 0.15, `firePreToolUseEvent` of its package.
    const QWEN: &str = r#"{"session_id":"4","transcript_path":"/home/u/.qwen/4.jsonl","cwd":"/w",
        "hook_event_name":"PreToolUse","timestamp":"2026-11-30T12:00:00.000Z","permission_mode":"yolo",
        "tool_name":"run_shell_command","tool_input":{"command":"git push -f","is_background":false,
        "directory":"/w/sub"},"tool_use_id":"toolu_1"}"#;
    /// Codex 0.171, the schema of its `PreToolUse` input: shells are `Bash` with a `command`, whatever the tool was.
    const CODEX: &str = r#"{"session_id":"01","turn_id":"02","transcript_path":null,"cwd":"/w",
        "hook_event_name":"PreToolUse","model":"m","permission_mode":"bypassPermissions","tool_name":"Bash",
        "tool_input":{"command":"git push -f"},"tool_use_id":"call-1"}"#;
    /// What our own plugins for opencode and pi send.
    const PLUGIN: &str = r#"{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"bash",
        "tool_input":{"command":"git push -f","workdir":"/w/sub"}}"#;

    #[test]
    fn each_agents_call_is_read() {
        assert_eq!(read(CLAUDE.as_bytes()), Ok(shell("git push -f", "/w", None)));
        assert_eq!(read(GEMINI.as_bytes()), Ok(shell("git push -f", "/w", Some("sub"))));
        assert_eq!(read(QWEN.as_bytes()), Ok(shell("git push -f", "/w", Some("/w/sub"))));
        assert_eq!(read(CODEX.as_bytes()), Ok(shell("git push -f", "/w", None)));
        assert_eq!(read(PLUGIN.as_bytes()), Ok(shell("git push -f", "/w", Some("/w/sub"))));
    }

    #[test]
    fn what_is_no_shell_is_let_pass() {
        for told in [
            r#"{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"/etc/x","content":"rm -rf /"}}"#,
            r#"{"hook_event_name":"PreToolUse","tool_name":"Skills","tool_input":{"command":"x"}}"#,
            r#"{"tool_name":"Monitor","tool_input":{"ws":{"url":"wss://x"}}}"#,
            r#"{"tool_name":"mcp_files_read_file","tool_input":{"command":"x"}}"#,
            r#"{"tool_name":"mcp_box_exec","tool_input":{"id":7}}"#,
            r#"{"tool_name":"Read"}"#,
        ] {
            assert_eq!(read(told.as_bytes()), Ok(Call::Other), "{told}");
        }
        let told = br#"{"hook_event_name":"Stop","session_id":"1"}"#;
        assert_eq!(read(told), Ok(Call::Elsewhere("Stop".to_owned())));
    }

    #[test]
    fn shells_under_other_names_are_found() {
        for told in [
            r#"{"toolName":"Bash","toolInput":{"command":"x"},"cwd":"/w","hookEventName":"PreToolUse"}"#,
            r#"{"tool_name":"Monitor","tool_input":{"command":"x"},"cwd":"/w"}"#,
            r#"{"tool_name":"mcp__box__bash","tool_input":{"command":"x"},"cwd":"/w"}"#,
            r#"{"tool_name":"mcp_my_box_run_shell_command","tool_input":{"command":"x"},"cwd":"/w"}"#,
        ] {
            assert_eq!(read(told.as_bytes()), Ok(shell("x", "/w", None)), "{told}");
        }
    }

    #[test]
    fn each_of_several_commands_is_told_apart() {
        let told = br#"{"tool_name":"Bash","cwd":"/w","tool_input":{"commands":["echo '","git push -f"]}}"#;
        let Ok(Call::Shell { commands, .. }) = read(told) else { panic!("a shell") };
        assert_eq!(commands, ["echo '", "git push -f"]);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let deep = format!(r#"{{"tool_name":"Bash","tool_input":{}"#, "[".repeat(1000));
        for (told, why) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("git push", "it is no JSON"),
            (r#"{"tool_name":"Bash","tool_input":{"command":"git pu"#, "it is no JSON"),
            (deep.as_str(), "it is no JSON"),
            ("[]", "it is no JSON object"),
            ("{}", "it names no tool"),
            (r#"{"tool_name":7}"#, "it names no tool"),
            (r#"{"tool_name":"Bash"}"#, "`Bash` runs commands"),
            (r#"{"tool_name":"Bash","tool_input":{"command":7}}"#, "`Bash` runs commands"),
        ] {
            let error = read(told.as_bytes()).expect_err(told);
            assert!(error.starts_with(why), "{told}: {error}");
        }
        assert!(read(b"{\"tool_name\":\"\xff\"}").is_err());
    }
}
