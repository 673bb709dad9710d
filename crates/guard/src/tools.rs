//! Which tools of agents run shell commands, and which of their arguments is the command.
//!
//! A tool is known by its whole name, or by the last part of a name with a namespace (`mcp__server__bash`,
//! `server.bash`, `server/bash`). A part of a word is no name: `Skills` runs no `ls`, `ThreadKill` reads nothing.

use std::borrow::Cow;

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

/// Arguments that hold a command, whatever the tool is called.
const COMMANDS: [&str; 10] = [
    "command",
    "cmd",
    "script",
    "commandLine",
    "command_line",
    "CommandLine",
    "program",
    "executable",
    "argv",
    "commands",
];

/// An argument that holds the command of a shell, and of other tools may hold anything.
const INPUT: &str = "input";

/// Arguments that go with a program.
const ARGS: [&str; 2] = ["args", "arguments"];

/// Arguments that name the folder in which a command runs: of Gemini CLI, Qwen Code, opencode, Codex and others.
const FOLDERS: [&str; 6] = ["dir_path", "directory", "workdir", "cwd", "working_directory", "Cwd"];

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

/// What a call of a shell tool runs, as one text with a line for each command; `None` where the tool is no shell or
/// holds no command.
pub fn command_of(name: &str, input: &Value) -> Option<String> {
    let commands = commands_of(name, input);
    (!commands.is_empty()).then(|| commands.join("\n"))
}

/// The commands that a call of a shell tool runs; none where the tool is no shell or holds none.
///
/// A list is a program with its arguments and comes back quoted, so that it is read as what it is. Each command is to be
/// judged by itself: a quote that one leaves open does not hide the next.
pub fn commands_of(name: &str, input: &Value) -> Vec<String> {
    if tool(name) == Tool::Other {
        return Vec::new();
    }
    match &*unfolded(input) {
        Value::String(text) => vec![text.clone()],
        Value::Array(words) => quoted(words).into_iter().collect(),
        input => {
            let commands = commands_in(input);
            match input.get(INPUT) {
                Some(input) if commands.is_empty() => commands_of(name, input),
                _ => commands,
            }
        }
    }
}

/// The commands that the arguments of a call hold, whatever the tool is called.
pub fn commands_in(input: &Value) -> Vec<String> {
    let input = unfolded(input);
    let args = ARGS.iter().find_map(|key| match input.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => quoted(words),
        _ => None,
    });
    let with_args = |program: String| match &args {
        Some(args) if !args.is_empty() => format!("{program} {args}"),
        _ => program,
    };
    let mut commands = Vec::new();
    for (key, value) in COMMANDS.iter().filter_map(|key| Some((*key, input.get(*key)?))) {
        match value {
            Value::String(text) => commands.push(with_args(text.clone())),
            Value::Array(several) if key == "commands" => {
                commands.extend(several.iter().flat_map(|one| match one {
                    Value::String(text) => vec![text.clone()],
                    Value::Array(words) => quoted(words).into_iter().collect(),
                    one => commands_in(one),
                }));
            }
            Value::Array(words) => commands.extend(quoted(words).map(with_args)),
            Value::Object(_) => commands.extend(commands_in(value)),
            _ => {}
        }
    }
    commands
}

/// The folder in which a call asks its command to be run, absolute or from the agent's current one.
pub fn folder_of(input: &Value) -> Option<String> {
    let input = unfolded(input);
    let folder = FOLDERS.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    folder.map(str::to_owned).or_else(|| {
        COMMANDS
            .iter()
            .filter_map(|key| input.get(key))
            .find_map(|inner| inner.is_object().then(|| folder_of(inner))?)
    })
}

/// The arguments of a call. Some agents hand them over as text that holds JSON.
pub fn unfolded(input: &Value) -> Cow<'_, Value> {
    let read = |text: &String| serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    match input {
        Value::String(text) => read(text).map_or(Cow::Borrowed(input), Cow::Owned),
        other => Cow::Borrowed(other),
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
            ("shell", json!({"program": "git", "args": ["push", "-f"]}), Some("git 'push' '-f'")),
            ("shell", json!({"command": "git", "arguments": "push -f"}), Some("git push -f")),
            ("shell", json!({"argv": ["git", "push"]}), Some("'git' 'push'")),
            ("shell", json!({"commands": ["a", ["b"], {"cmd": "c"}, 7]}), Some("a\n'b'\nc")),
            ("shell", json!({"command": "a", "script": "b"}), Some("a\nb")),
            ("shell", json!({"input": "ls"}), Some("ls")),
            ("Bash", json!({"command": 1}), None),
            ("Bash", json!({}), None),
            ("Bash", json!(null), None),
            ("Read", json!({"command": "ls"}), None),
        ] {
            assert_eq!(command_of(name, &input).as_deref(), expected, "{name} {input}");
        }
    }

    #[test]
    fn commands_are_found_in_what_any_tool_is_given() {
        assert_eq!(commands_in(&json!({"commands": ["a '", "b"], "cmd": "c"})), ["c", "a '", "b"]);
        assert_eq!(commands_in(&json!(r#"{"program": "a"}"#)), ["a"]);
        for other in [json!({"input": "a", "text": "b"}), json!("a"), json!(["a"]), json!(null), json!({})] {
            assert_eq!(commands_in(&other), [] as [&str; 0], "{other}");
        }
    }

    #[test]
    fn the_folder_of_a_call_is_found() {
        for key in FOLDERS {
            assert_eq!(folder_of(&json!({key: "a", "command": "b"})).as_deref(), Some("a"), "{key}");
        }
        assert_eq!(folder_of(&json!(r#"{"cwd": "/a"}"#)).as_deref(), Some("/a"));
        assert_eq!(folder_of(&json!({"command": {"workdir": "a"}})).as_deref(), Some("a"));
        assert_eq!(folder_of(&json!({"cwd": 7, "command": "cwd"})), None);
    }
}
