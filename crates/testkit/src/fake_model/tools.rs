//! Which of an agent's tools does what a step asks for, and what its arguments are called.

use serde_json::{Value, json};

use super::request::ModelRequest;
use super::schema::example;
use super::script::Step;
use super::wire::{Said, Wire};

/// Names under which agents have a shell.
const SHELLS: [&str; 8] = [
    "bash",
    "Bash",
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "run_shell_command",
    "execute_bash",
];

/// Names under which agents write a whole file.
const WRITERS: [&str; 4] = ["write", "Write", "write_file", "create_file"];

/// A tool that takes patches, and the command that some shells know under that name.
const PATCHER: &str = "apply_patch";

/// Shells of agents that take a patch as a command of that name.
const PATCHING_SHELLS: [&str; 3] = ["exec_command", "shell_command", "shell"];

/// What an agent without a word for the end runs as its last command.
const SUBMIT: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// A tool on offer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tool {
    /// Its name.
    pub(super) name: String,
    /// The schema of its arguments; `None` takes free text.
    schema: Option<Value>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    /// With arguments by name.
    Function { name: String, arguments: Value },
    /// With free text.
    Custom { name: String, input: String },
}

impl Tool {
    pub(super) fn function(name: &str, schema: &Value) -> Self {
        Self { name: name.to_owned(), schema: Some(schema.clone()) }
    }

    pub(super) fn custom(name: &str) -> Self {
        Self { name: name.to_owned(), schema: None }
    }

    /// A call with these arguments, of which those count whose name the tool knows, and whatever else it requires.
    fn call(&self, known: &[(&str, &str)]) -> Call {
        let name = self.name.clone();
        let Some(schema) = &self.schema else {
            return Call::Custom { name, input: known.first().map_or("", |(_, value)| value).to_owned() };
        };
        let mut arguments = example(schema);
        for (key, value) in known {
            let Some(property) = schema["properties"].get(key) else { continue };
            arguments[*key] =
                if property["type"] == "array" { json!(["bash", "-lc", value]) } else { json!(value) };
        }
        Call::Function { name, arguments }
    }
}

/// What a step comes to for this request.
pub(super) fn said(request: &ModelRequest, wire: &dyn Wire, step: Step) -> Said {
    if let Some(schema) = wire.schema(&request.body) {
        return Said::Text(example(schema).to_string());
    }
    let tools = request.offered();
    let find = |names: &[&str]| names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name));
    let Some(shell) = find(&SHELLS) else {
        let text = if let Step::Text(text) = step { text } else { "no shell is offered".to_owned() };
        return Said::Text(text);
    };
    let run = |line: &str| shell.call(&[("command", line), ("cmd", line)]);
    match step {
        Step::ShellCall(line) => Said::Call(run(&line)),
        Step::WriteCall { path, content } => {
            let edit = patch(&path, &content);
            Said::Call(if let Some(writer) = find(&WRITERS) {
                let path = path.as_str();
                writer.call(&[("path", path), ("file_path", path), ("filePath", path), ("content", &content)])
            } else if let Some(patcher) = find(&[PATCHER]) {
                patcher.call(&[("input", &edit), ("patchText", &edit), ("patch", &edit)])
            } else if PATCHING_SHELLS.contains(&shell.name.as_str()) {
                run(&format!("{PATCHER} <<'PATCH'\n{edit}PATCH\n"))
            } else {
                run(&heredoc(&path, &content))
            })
        }
        Step::Text(_) if tools.len() == 1 && request.text().contains(SUBMIT) => {
            Said::Call(run(&format!("echo {SUBMIT}")))
        }
        Step::Text(text) => Said::Text(text),
        // What is no call and no text was answered before.
        Step::Fails(..) | Step::Status { .. } | Step::Hang | Step::Drop | Step::Malformed => {
            Said::Text(String::new())
        }
    }
}

/// A shell line that writes a file.
pub(super) fn heredoc(path: &str, content: &str) -> String {
    let quoted = path.replace('\'', "'\\''");
    format!("cat > '{quoted}' <<'END_OF_FILE'\n{content}END_OF_FILE\n")
}

fn patch(path: &str, content: &str) -> String {
    let lines: String = content.lines().flat_map(|line| ["+", line, "\n"]).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}
