//! Our hook in an agent's file of settings: what is added, and how it is found again. Pure.
//!
//! ```text
//! {"hooks": {"PreToolUse": [{"matcher": "…", "hooks": [{"type": "command", "command": "… hook pre-tool", …}]}]}}
//! ```
//!
//! Claude Code, Codex, Gemini CLI and Qwen Code all keep them in this shape.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::json_text::{append, elements, member, members, root, without};

/// A hook as an agent keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The event before a tool.
    pub(super) event: &'static str,
    /// The tools that it is for.
    pub(super) matcher: &'static str,
    /// How long the agent waits for it, in its own unit.
    pub(super) timeout: u64,
}

/// What is wrong with a file of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The line in which it is, from 1.
    pub(super) line: usize,
    pub(super) what: String,
}

impl Entry {
    fn group(&self, command: &str) -> Value {
        json!({
            "matcher": self.matcher,
            "hooks": [{"type": "command", "command": command, "timeout": self.timeout}],
        })
    }

    /// The text with our hook, and with no other one of ours. The same text where nothing is to be done.
    pub(super) fn added(&self, text: &str, command: &str) -> Result<String, Wrong> {
        let group = self.group(command);
        if text.trim().is_empty() {
            let whole = json!({"hooks": {self.event: [group]}});
            return Ok(format!("{whole:#}\n"));
        }
        check(text, self.event)?;
        if self.ours(text).len() == 1
            && self.groups(text).iter().any(|g| read(text, g).as_ref() == Some(&group))
        {
            return Ok(text.to_owned());
        }
        let text = self.removed(text)?;
        let object = root(&text);
        let Some(hooks) = member(&text, &object, "hooks") else {
            let items: Vec<_> = members(&text, &object).into_iter().map(|m| m.whole).collect();
            return Ok(append(&text, &object, &items, Some("hooks"), &json!({self.event: [group]})));
        };
        let Some(event) = member(&text, &hooks.value, self.event) else {
            let items: Vec<_> = members(&text, &hooks.value).into_iter().map(|m| m.whole).collect();
            return Ok(append(&text, &hooks.value, &items, Some(self.event), &json!([group])));
        };
        Ok(append(&text, &event.value, &elements(&text, &event.value), None, &group))
    }

    /// The text without any hook of ours; what held nothing else goes with it.
    pub(super) fn removed(&self, text: &str) -> Result<String, Wrong> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        check(text, self.event)?;
        let mut text = text.to_owned();
        while let Some(path) = self.ours(&text).into_iter().next() {
            text = self.without_first(&text, &path);
        }
        Ok(text)
    }

    /// The command of the first hook of ours, where there is one.
    pub(super) fn command_in(&self, text: &str) -> Option<String> {
        if text.trim().is_empty() || check(text, self.event).is_err() {
            return None;
        }
        self.ours(text).into_iter().next().map(|ours| ours.command)
    }

    /// Takes a hook out, or the largest part of the file that holds nothing but it.
    fn without_first(&self, text: &str, ours: &Ours) -> String {
        let list = elements(text, &ours.list);
        if list.len() > 1 {
            return without(text, &ours.list, &list, ours.at);
        }
        let groups = self.groups(text);
        let object = root(text);
        let all = members(text, &object);
        let Some(hooks) = all.iter().rposition(|m| m.key == "hooks") else { return text.to_owned() };
        let events = members(text, &all[hooks].value);
        let Some(event) = events.iter().rposition(|m| m.key == self.event) else { return text.to_owned() };
        let wholes = |members: &[super::json_text::Member]| -> Vec<Range<usize>> {
            members.iter().map(|m| m.whole.clone()).collect()
        };
        if groups.len() > 1 {
            without(text, &events[event].value, &groups, ours.group)
        } else if events.len() > 1 {
            without(text, &all[hooks].value, &wholes(&events), event)
        } else {
            without(text, &object, &wholes(&all), hooks)
        }
    }

    fn groups(&self, text: &str) -> Vec<Range<usize>> {
        let hooks = member(text, &root(text), "hooks");
        let event = hooks.and_then(|hooks| member(text, &hooks.value, self.event));
        event.map(|event| elements(text, &event.value)).unwrap_or_default()
    }

    fn ours(&self, text: &str) -> Vec<Ours> {
        let mut found = Vec::new();
        for (group, range) in self.groups(text).into_iter().enumerate() {
            let Some(list) = member(text, &range, "hooks").map(|m| m.value) else { continue };
            for (at, hook) in elements(text, &list).into_iter().enumerate() {
                let command = member(text, &hook, "command").and_then(|m| read(text, &m.value));
                if let Some(Value::String(command)) = command
                    && is_ours(&command)
                {
                    found.push(Ours { group, list: list.clone(), at, command });
                }
            }
        }
        found
    }
}

/// Where a hook of ours is.
struct Ours {
    /// Its group's number.
    group: usize,
    /// The list of hooks that it is in, and its place there.
    list: Range<usize>,
    at: usize,
    command: String,
}

/// Whether a command runs this hook, with the binary wherever it lay then.
fn is_ours(command: &str) -> bool {
    let Some(program) = command.strip_suffix(" hook pre-tool") else { return false };
    let program = program.strip_prefix('\'').and_then(|p| p.strip_suffix('\'')).unwrap_or(program);
    Path::new(program).file_name().is_some_and(|name| name == "triphammer")
}

fn read(text: &str, range: &Range<usize>) -> Option<Value> {
    serde_json::from_str(&text[range.clone()]).ok()
}

/// Whether a text can be changed at all.
fn check(text: &str, event: &str) -> Result<(), Wrong> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return Err(Wrong { line: error.line(), what: format!("is no JSON: {error}") });
    }
    let wrong = |at: usize, what: String| Err(Wrong { line: text[..at].matches('\n').count() + 1, what });
    let object = root(text);
    if !text[object.start..].starts_with('{') {
        return wrong(object.start, "is no JSON object".to_owned());
    }
    let Some(hooks) = member(text, &object, "hooks").map(|m| m.value) else { return Ok(()) };
    if !text[hooks.start..].starts_with('{') {
        return wrong(hooks.start, "has a `hooks` that is no object".to_owned());
    }
    match member(text, &hooks, event).map(|m| m.value) {
        Some(list) if !text[list.start..].starts_with('[') => {
            wrong(list.start, format!("has a `hooks.{event}` that is no list"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENTRY: Entry = Entry { event: "PreToolUse", matcher: "^Bash$", timeout: 10 };
    const COMMAND: &str = "/opt/triphammer hook pre-tool";

    fn added(text: &str) -> String {
        ENTRY.added(text, COMMAND).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"))
    }

    /// Files as people have them.
    const FILES: [&str; 9] = [
        "{\"model\": \"opus\"}",
        "{\n  \"model\": \"opus\",\n  \"n\": 1.0e2\n}\n",
        "{\n\t\"hooks\": {\n\t\t\"Stop\": [{\"hooks\": []}]\n\t}\n}",
        "{\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\n                \"matcher\": \"Bash\",\n                \
         \"hooks\": [{\"type\": \"command\", \"command\": \"echo hook pre-tool\"}]\n            }\n        ],\n        \
         \"PostToolUse\": []\n    },\n    \"z\": {\"a\": [1, 2]}\n}\n",
        "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[]},{}]}}",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "{\"b\":1,\"a\":2,\"hooks\":{\"Stop\":[]},\"big\":123456789012345678901234567890}",
        "{ \"a\": 1 }",
        "\n{\n  \"a\": {}\n}",
    ];

    #[test]
    fn the_hook_is_added_once_and_nothing_else_changes() {
        for text in FILES {
            let once = added(text);
            assert_ne!(once, text);
            assert_eq!((ENTRY.command_in(&once).as_deref(), ENTRY.command_in(text)), (Some(COMMAND), None));
            assert_eq!(added(&once), once, "a second time changes nothing");
            let mut value: Value = serde_json::from_str(&once).expect(&once);
            let groups = value["hooks"]["PreToolUse"].as_array_mut().expect("a list");
            assert_eq!(groups.pop(), Some(ENTRY.group(COMMAND)), "{once}");
            // One piece is new, and all that was there stands around it, byte for byte.
            let same = |(a, b): &(u8, u8)| a == b;
            let head = text.bytes().zip(once.bytes()).take_while(same).count();
            let tail = text.bytes().rev().zip(once.bytes().rev()).take_while(same).count();
            assert!(head + tail >= text.len(), "{text}\n{once}");
        }
    }

    #[test]
    fn taking_it_out_gives_back_what_was_there() {
        for text in FILES {
            assert_eq!(ENTRY.removed(&added(text)).as_deref(), Ok(text));
            assert_eq!(ENTRY.removed(text).as_deref(), Ok(text), "there is none of ours");
        }
    }

    /// Any JSON, with texts that look like its signs.
    fn json() -> impl Strategy<Value = Value> {
        let text = r#"[a-z{}\[\],:"\\\\\n ü]{0,6}"#;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 2.0)),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text, inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Settings with other people's hooks in them, or with none.
    fn settings() -> impl Strategy<Value = Value> {
        let group =
            json().prop_map(|any| json!({"matcher": "x", "hooks": [{"type": "command", "command": any}]}));
        let groups = prop::collection::vec(prop_oneof![group, json()], 1..3).prop_map(Value::from);
        let hooks = prop_oneof![
            Just(None),
            json().prop_map(|any| Some(json!({"Stop": any}))),
            groups.prop_map(|groups| Some(json!({"PreToolUse": groups}))),
        ];
        (prop::collection::vec(("[a-z]{1,3}", json()), 0..3), hooks, any::<bool>()).prop_map(
            |(members, hooks, first)| {
                let hooks = hooks.map(|hooks| ("hooks".to_owned(), hooks));
                let (before, after) = if first { (hooks, None) } else { (None, hooks) };
                Value::Object(before.into_iter().chain(members).chain(after).collect())
            },
        )
    }

    proptest! {
        #[test]
        fn any_settings_get_it_and_get_rid_of_it(value in settings(), indent in 0_usize..4) {
            let text = match indent {
                0 => value.to_string(),
                n => {
                    let indent = [" ", "  ", "\t"][n - 1];
                    let mut out = Vec::new();
                    let printer = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
                    let mut printer = serde_json::Serializer::with_formatter(&mut out, printer);
                    serde::Serialize::serialize(&value, &mut printer).expect("a value can be printed");
                    String::from_utf8(out).expect("JSON is UTF-8")
                }
            };
            let with = added(&text);
            let mut expected = value.clone();
            let events = &mut expected["hooks"];
            if events.is_null() {
                *events = json!({});
            }
            let groups = &mut events["PreToolUse"];
            if groups.is_null() {
                *groups = json!([]);
            }
            groups.as_array_mut().expect("a list").push(ENTRY.group(COMMAND));
            prop_assert_eq!(serde_json::from_str::<Value>(&with).ok(), Some(expected), "{}", with);
            prop_assert_eq!(added(&with), with.clone());
            let without = ENTRY.removed(&with);
            if value.as_object().is_some_and(serde_json::Map::is_empty) {
                prop_assert_eq!(without.as_deref(), Ok("{}"));
            } else {
                prop_assert_eq!(without, Ok(text));
            }
        }
    }

    #[test]
    fn how_it_looks() {
        insta::assert_snapshot!(added(FILES[3]), @r#"
        {
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Bash",
                        "hooks": [{"type": "command", "command": "echo hook pre-tool"}]
                    },
                    {
                        "matcher": "^Bash$",
                        "hooks": [
                            {
                                "type": "command",
                                "command": "/opt/triphammer hook pre-tool",
                                "timeout": 10
                            }
                        ]
                    }
                ],
                "PostToolUse": []
            },
            "z": {"a": [1, 2]}
        }
        "#);
        insta::assert_snapshot!(added(""), @r#"
        {
          "hooks": {
            "PreToolUse": [
              {
                "matcher": "^Bash$",
                "hooks": [
                  {
                    "type": "command",
                    "command": "/opt/triphammer hook pre-tool",
                    "timeout": 10
                  }
                ]
              }
            ]
          }
        }
        "#);
    }

    #[test]
    fn an_older_one_of_ours_is_replaced_and_a_neighbour_stays() {
        let old = r#"{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"mine"},
            {"type":"command","command":"'/a b/triphammer' hook pre-tool"}]},
            {"hooks":[{"type":"command","command":"/x/triphammer hook pre-tool"}]}],"Stop":[]}}"#;
        let new = added(old);
        let value: Value = serde_json::from_str(&new).expect(&new);
        let groups = value["hooks"]["PreToolUse"].as_array().expect("a list");
        assert_eq!(groups.len(), 2, "{new}");
        assert_eq!(groups[0], json!({"matcher": "*", "hooks": [{"type": "command", "command": "mine"}]}));
        assert_eq!(groups[1], ENTRY.group(COMMAND));
        let removed = ENTRY.removed(&new).expect("it is JSON");
        assert!(removed.contains("mine") && removed.contains("Stop") && !removed.contains("triphammer"));
    }

    #[test]
    fn it_stays_where_a_person_moved_it() {
        let group = ENTRY.group(COMMAND);
        let text = json!({"hooks": {"PreToolUse": [group, {"matcher": "x", "hooks": []}]}}).to_string();
        assert_eq!(added(&text), text);
    }

    #[test]
    fn whose_a_command_is() {
        for (command, expected) in [
            ("/opt/triphammer hook pre-tool", true),
            ("'/a b/triphammer' hook pre-tool", true),
            ("triphammer hook pre-tool", true),
            ("triphammer hook pre-tool || true", false),
            ("/opt/mytriphammer hook pre-tool", false),
            ("echo hook pre-tool", false),
            ("triphammer hook install", false),
        ] {
            assert_eq!(is_ours(command), expected, "{command}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_named_with_its_line() {
        for (text, line, what) in [
            ("{\n\"a\": 1,\n}", 3, "is no JSON: "),
            ("{\n// mine\n}", 2, "is no JSON: "),
            ("\n[]", 2, "is no JSON object"),
            ("{\n\n\"hooks\": []}", 3, "has a `hooks` that is no object"),
            ("{\"hooks\": {\n\"PreToolUse\": {}}}", 2, "has a `hooks.PreToolUse` that is no list"),
        ] {
            let wrong = ENTRY.added(text, COMMAND).expect_err(text);
            assert_eq!(wrong.line, line, "{text}");
            assert!(wrong.what.starts_with(what), "{}", wrong.what);
            assert_eq!(ENTRY.removed(text), Err(wrong));
        }
    }
}
