//! What a model can want done, and how it says so: as a call of a tool, or as one JSON object.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use triphammer_llm::{Schema, Tool};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Shows a file's lines, from 1, both ends included.
    Read { path: String, from: Option<u64>, to: Option<u64> },
    /// Writes a whole file.
    Write { path: String, content: String },
    /// Replaces one place in a file.
    Edit { path: String, old: String, new: String },
    /// Shows what is in a folder.
    List { path: String },
    /// Shows lines that fit a pattern.
    Search { pattern: String, path: String },
    /// Runs a command.
    Shell { command: String },
    /// Is done, with a last word.
    Done { text: String },
}

/// An action's fields.
struct Field {
    name: &'static str,
    about: &'static str,
    number: bool,
    required: bool,
}

const fn text(name: &'static str, about: &'static str) -> Field {
    Field { name, about, number: false, required: true }
}

const fn number(name: &'static str, about: &'static str) -> Field {
    Field { name, about, number: true, required: false }
}

const FOLDER: Field = Field {
    name: "path",
    about: "a folder or file; the workspace if left out",
    number: false,
    required: false,
};

/// All of them: name, what the model is told, fields.
const ACTIONS: [(&str, &str, &[Field]); 7] = [
    (
        "read",
        "Shows a text file, or the lines `from` to `to` of it.",
        &[text("path", "the file"), number("from", "first line, from 1"), number("to", "last line")],
    ),
    (
        "write",
        "Writes a whole file, new or not, with the folders above it.",
        &[text("path", "the file"), text("content", "all of its text")],
    ),
    (
        "edit",
        "Replaces a text that occurs exactly once in a file.",
        &[
            text("path", "the file"),
            text("old", "the text as it stands there, with its white space"),
            text("new", "what stands there instead"),
        ],
    ),
    ("list", "Shows files and folders, without those that git ignores.", &[FOLDER]),
    (
        "search",
        "Shows the lines of files that fit a regular expression, without files that git ignores.",
        &[text("pattern", "a regular expression"), FOLDER],
    ),
    (
        "shell",
        "Runs a command with `sh -c` in the workspace; shows its output and exit status. Its input is closed, it has a \
         deadline, and what it leaves running is ended with it.",
        &[text("command", "the command line")],
    ),
    (
        "done",
        "Ends the work, when all of it is done and checked.",
        &[text("text", "what was done, in a sentence or two")],
    ),
];

/// The actions as tools.
pub(super) fn tools() -> Vec<Tool> {
    ACTIONS
        .iter()
        .map(|(name, about, fields)| Tool {
            name: (*name).to_owned(),
            description: (*about).to_owned(),
            parameters: object(fields, None),
        })
        .collect()
}

/// The actions as JSON: one object of one of these kinds.
pub(super) fn schema() -> Schema {
    let kinds: Vec<Value> = ACTIONS.iter().map(|(name, _, fields)| object(fields, Some(name))).collect();
    Schema { name: "action".to_owned(), schema: json!({ "type": "object", "anyOf": kinds }), strict: false }
}

/// The actions in words, for a model that gets neither tools nor a schema.
pub(super) fn described() -> String {
    let mut all = String::new();
    for (name, about, fields) in &ACTIONS {
        let field = |field: &Field| {
            let sample = if field.number { "1".to_owned() } else { format!("\"{}\"", field.about) };
            format!(", \"{}\": {sample}", field.name)
        };
        let fields: String = fields.iter().map(field).collect();
        let _ = write!(all, "{{\"action\": \"{name}\"{fields}}}\n    {about}\n");
    }
    all
}

fn object(fields: &[Field], action: Option<&str>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(action) = action {
        properties.insert("action".to_owned(), json!({ "type": "string", "const": action }));
        required.push("action");
    }
    for field in fields {
        let kind = if field.number { "integer" } else { "string" };
        properties.insert(field.name.to_owned(), json!({ "type": kind, "description": field.about }));
        if field.required {
            required.push(field.name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

impl Action {
    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Edit { .. } => "edit",
            Self::List { .. } => "list",
            Self::Search { .. } => "search",
            Self::Shell { .. } => "shell",
            Self::Done { .. } => "done",
        }
    }

    /// A call of a tool. The error is for the model.
    pub(super) fn of_call(name: &str, mut fields: Map<String, Value>) -> Result<Self, String> {
        let known = ACTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, _, known)) = known else {
            let names: Vec<&str> = ACTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(format!("there is no tool `{}`; the tools are {}", short(name), names.join(", ")));
        };
        // What a model leaves open on purpose.
        fields.retain(|_, value| !value.is_null());
        if let Some((stray, _)) =
            fields.iter().find(|(name, _)| known.iter().all(|field| field.name != *name))
        {
            let names: Vec<&str> = known.iter().map(|field| field.name).collect();
            return Err(format!(
                "`{name}` has no field `{}`; its fields are {}",
                short(stray),
                names.join(", ")
            ));
        }
        let mut text = |field: &str| match fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("`{field}` of `{name}` has to be a text")),
            None => Err(format!("`{name}` needs `{field}`")),
        };
        Ok(match name {
            "read" => {
                let path = text("path")?;
                Self::Read { path, from: line(&fields, "from")?, to: line(&fields, "to")? }
            }
            "write" => Self::Write { path: text("path")?, content: text("content")? },
            "edit" => Self::Edit { path: text("path")?, old: text("old")?, new: text("new")? },
            "list" => Self::List { path: optional(&mut fields, "path")? },
            "search" => Self::Search { pattern: text("pattern")?, path: optional(&mut fields, "path")? },
            "shell" => Self::Shell { command: text("command")? },
            _ => Self::Done { text: optional(&mut fields, "text")? },
        })
    }

    /// An action as JSON, in a code fence at most. The error is for the model.
    pub(super) fn of_json(text: &str) -> Result<Self, String> {
        let value =
            serde_json::from_str(unfenced(text)).map_err(|error| format!("it is no JSON: {error}"))?;
        let Value::Object(mut fields) = value else { return Err("it is no JSON object".to_owned()) };
        match fields.remove("action") {
            Some(Value::String(name)) => Self::of_call(&name, fields),
            Some(_) => Err("`action` has to be a text".to_owned()),
            None => Err("there is no `action` in it".to_owned()),
        }
    }
}

/// A line's number; some models write it as text.
fn line(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let number = match fields.get(name) {
        None => return Ok(None),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_u64(),
    };
    number
        .filter(|line| *line > 0)
        .map(Some)
        .ok_or_else(|| format!("`{name}` has to be a line's number, from 1"))
}

fn optional(fields: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match fields.remove(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("`{name}` has to be a text")),
    }
}

/// The inside of a code fence, where the text is nothing but one.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = inside.and_then(|inside| inside.split_once('\n'));
    inside.filter(|(word, _)| matches!(word.trim(), "" | "json")).map_or(text, |(_, inside)| inside)
}

fn short(name: &str) -> String {
    super::shown::head(name, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_as_json() {
        let read = |from, to| Ok(Action::Read { path: "a".to_owned(), from, to });
        for (text, expected) in [
            (r#"{"action":"read","path":"a"}"#, read(None, None)),
            (r#" {"action":"read","path":"a","from":2,"to":"9"} "#, read(Some(2), Some(9))),
            (r#"{"action":"read","path":"a","from":null}"#, read(None, None)),
            ("```json\n{\"action\":\"read\",\"path\":\"a\"}\n```", read(None, None)),
            ("```\n{\"action\":\"read\",\"path\":\"a\"}\n```\n", read(None, None)),
            (r#"{"action":"list"}"#, Ok(Action::List { path: String::new() })),
            (r#"{"action":"done"}"#, Ok(Action::Done { text: String::new() })),
        ] {
            assert_eq!(Action::of_json(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "it is no JSON"),
            ("I will read a.", "it is no JSON"),
            ("{\"action\":\"list\"} and more", "it is no JSON"),
            ("Here:\n```json\n{\"action\":\"list\"}\n```", "it is no JSON"),
            (r#"{"action":"list"}{"action":"list"}"#, "it is no JSON"),
            ("[]", "it is no JSON object"),
            ("{}", "there is no `action`"),
            (r#"{"action":7}"#, "`action` has to be a text"),
            (
                r#"{"action":"fly"}"#,
                "there is no tool `fly`; the tools are read, write, edit, list, search, shell, done",
            ),
            (r#"{"action":"write","path":"a"}"#, "`write` needs `content`"),
            (r#"{"action":"write","path":"a","content":[1]}"#, "`content` of `write` has to be a text"),
            (
                r#"{"action":"shell","command":"ls","dir":"/"}"#,
                "`shell` has no field `dir`; its fields are command",
            ),
            (r#"{"action":"read","path":"a","from":0}"#, "`from` has to be a line's number"),
            (r#"{"action":"read","path":"a","to":-1}"#, "`to` has to be a line's number"),
            (r#"{"action":"list","path":1}"#, "`path` has to be a text"),
        ] {
            let error = Action::of_json(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// The schema, the tools and the reader speak of the same fields.
    #[test]
    fn every_described_action_is_understood() {
        let schema = schema().schema;
        let kinds = schema["anyOf"].as_array().expect("kinds");
        assert_eq!(kinds.len(), ACTIONS.len());
        for (kind, tool) in kinds.iter().zip(tools()) {
            let mut fields = Map::new();
            for (name, property) in kind["properties"].as_object().expect("properties") {
                let value = if property["type"] == "integer" { json!(1) } else { json!("x") };
                fields.insert(name.clone(), property.get("const").cloned().unwrap_or(value));
            }
            let text = Value::Object(fields).to_string();
            let action = Action::of_json(&text).expect(&text);
            assert_eq!(action.name(), tool.name);
            assert!(described().contains(&format!("{{\"action\": \"{}\"", tool.name)));
        }
    }
}
