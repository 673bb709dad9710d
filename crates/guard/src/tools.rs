//! Which tools of agents run shell commands, and which of their arguments is the command.
//!
//! A tool is known by its whole name, or by the last part of a name with a namespace (`mcp__server__bash`,
//! `server.bash`, `server/bash`). A part of a word is no name: `Skills` runs no `ls`, `ThreadKill` reads nothing.

use serde_json::Value;

/// Names of tools that run shell commands, in lower case and without what joins their words.
const SHELLS: [&str; 23] = [
    "bash",
    "shell",
    "sh",
    "zsh",
    "terminal",
    "exec",
    "execcommand",
    "executecommand",
    "runcommand",
    "runshellcommand",
    "runterminalcommand",
    "runterminalcmd",
    "runinterminal",
    "executebash",
    "executeshell",
    "executeshellcommand",
    "runbash",
    "runshell",
    "localshell",
    "localshellcall",
    "containerexec",
    "unifiedexec",
    "bashtool",
];

/// Arguments that hold the command.
const ARGUMENTS: [&str; 7] =
    ["command", "cmd", "script", "commandLine", "command_line", "CommandLine", "input"];

/// What a tool is to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// It runs a shell command.
    Shell,
    /// It does something else.
    Other,
}

/// What the tool of this name is.
pub fn tool(name: &str) -> Tool {
    let last = name.rsplit("__").next().unwrap_or(name);
    let last = last.rsplit(['.', '/', ':']).next().unwrap_or(last);
    let [whole, last] = [name, last].map(|name| {
        name.chars()
            .filter(|c| !matches!(c, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect::<String>()
    });
    if SHELLS.contains(&whole.as_str()) || SHELLS.contains(&last.as_str()) {
        Tool::Shell
    } else {
        Tool::Other
    }
}

/// The command that a call of a shell tool runs; `None` where the tool is no shell or holds no command.
///
/// A list is a program with its arguments and comes back quoted, so that it is read as what it is.
pub fn command_of(name: &str, input: &Value) -> Option<String> {
    if tool(name) == Tool::Other {
        return None;
    }
    // Some agents hand the arguments over as text that holds JSON.
    let parsed: Value;
    let input = match input {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) if value.is_object() => {
                parsed = value;
                &parsed
            }
            _ => return Some(text.clone()),
        },
        other => other,
    };
    if let Value::Array(words) = input {
        return quoted(words);
    }
    let found = ARGUMENTS.iter().find_map(|key| input.get(key).filter(|value| !value.is_null()))?;
    match found {
        Value::String(text) => {
            let args = input.get("args").and_then(Value::as_array).and_then(|args| quoted(args));
            Some(args.map_or_else(|| text.clone(), |args| format!("{text} {args}")))
        }
        Value::Array(words) => quoted(words),
        Value::Object(_) => command_of(name, found),
        _ => None,
    }
}

/// A program with its arguments as a line that a shell reads back as the same.
fn quoted(words: &[Value]) -> Option<String> {
    let words: Option<Vec<String>> = words
        .iter()
        .map(|word| word.as_str().map(|word| format!("'{}'", word.replace('\'', r"'\''"))))
        .collect();
    words.map(|words| words.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_known_by_its_name_and_not_by_a_part_of_it() {
        for name in [
            "Bash",
            "bash",
            "shell",
            "run_shell_command",
            "exec_command",
            "terminal",
            "execute_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "local_shell",
            "mcp__x__bash",
            "mcp__my_server__run-command",
            "functions.shell",
            "container.exec",
            "runInTerminal",
            "Shell",
            "server/bash",
            "runCommand",
        ] {
            assert_eq!(tool(name), Tool::Shell, "{name}");
        }
        for name in [
            "Skills",
            "ThreadKill",
            "ls",
            "Read",
            "Edit",
            "TodoWrite",
            "bash_output_reader",
            "BashOutput",
            "KillShell",
            "mcp__bash__read",
            "shell_history",
            "executor",
            "Task",
            "",
            "mcp__x__",
            "powershelladvice",
            "terminal_read",
        ] {
            assert_eq!(tool(name), Tool::Other, "{name}");
        }
    }

    #[test]
    fn the_command_is_found_in_what_agents_send() {
        for (name, input, expected) in [
            ("Bash", json!({"command": "ls"}), Some("ls")),
            ("exec_command", json!({"cmd": "ls -l"}), Some("ls -l")),
            ("bash", json!({"script": "a\nb"}), Some("a\nb")),
            ("run_command", json!({"CommandLine": "ls"}), Some("ls")),
            ("run_command", json!({"commandLine": "ls"}), Some("ls")),
            ("shell", json!({"command": ["bash", "-lc", "it's"]}), Some(r"'bash' '-lc' 'it'\''s'")),
            ("shell", json!(["rm", "-rf", "/"]), Some("'rm' '-rf' '/'")),
            ("shell", json!(r#"{"command": "ls"}"#), Some("ls")),
            ("shell", json!("ls"), Some("ls")),
            ("terminal", json!({"command": "rm", "args": ["-rf", "/"]}), Some("rm '-rf' '/'")),
            ("local_shell", json!({"command": {"command": ["ls"]}}), Some("'ls'")),
            ("Bash", json!({"command": 1}), None),
            ("Bash", json!({}), None),
            ("Bash", json!(null), None),
            ("Read", json!({"command": "ls"}), None),
        ] {
            assert_eq!(command_of(name, &input).as_deref(), expected, "{name} {input}");
        }
    }
}
