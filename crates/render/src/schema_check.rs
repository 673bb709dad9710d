//! A check against a JSON schema for tests: as much of draft 7 as SARIF's own schema uses. A word that it does not
//! know is an error of the test, not something to pass over.

use regex::Regex;
use serde_json::{Map, Value};

/// The first thing in `value` that `schema` does not allow, with its place.
pub(crate) fn violation(schema: &Value, value: &Value) -> Option<String> {
    Checker { root: schema }.check(schema, value, "$").err()
}

struct Checker<'a> {
    root: &'a Value,
}

impl<'a> Checker<'a> {
    fn check(&self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let words = schema.as_object().expect("a schema is an object");
        for (word, rule) in words {
            self.word(words, word, rule, value, at)?;
        }
        Ok(())
    }

    fn word(
        &self,
        words: &'a Map<String, Value>,
        word: &str,
        rule: &'a Value,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let wrong = || Err(format!("{at}: `{word}` {rule} does not hold of {value}"));
        let ok = match word {
            "$schema" | "$id" | "title" | "description" | "default" | "definitions" => true,
            "$ref" => {
                let pointer = rule.as_str().and_then(|r| r.strip_prefix('#')).expect("a place in the schema");
                return self.check(self.root.pointer(pointer).expect("what is referred to"), value, at);
            }
            "type" => has_type(rule.as_str().expect("one type"), value),
            "enum" => rule.as_array().expect("a list").contains(value),
            "anyOf" | "oneOf" => {
                let all = rule.as_array().expect("a list");
                let holds = all.iter().filter(|one| self.check(one, value, at).is_ok()).count();
                if word == "oneOf" { holds == 1 } else { holds > 0 }
            }
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().expect("a number")),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().expect("a number")),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().expect("a pattern")).expect("a pattern");
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "format" => value.as_str().is_none_or(|text| has_format(rule.as_str().expect("a name"), text)),
            "minItems" => {
                value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().expect("a count"))
            }
            "uniqueItems" => value
                .as_array()
                .is_none_or(|list| list.iter().enumerate().all(|(n, item)| !list[..n].contains(item))),
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{at}[{n}]"))?;
                }
                true
            }
            "required" => {
                let names = rule.as_array().expect("a list");
                value
                    .as_object()
                    .is_none_or(|o| names.iter().all(|n| o.contains_key(n.as_str().expect("a name"))))
            }
            "properties" => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(name) {
                        self.check(rule, part, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = words.get("properties").and_then(Value::as_object);
                for (name, part) in value.as_object().into_iter().flatten() {
                    match rule {
                        _ if known.is_some_and(|known| known.contains_key(name)) => {}
                        Value::Bool(true) => {}
                        Value::Bool(false) => return Err(format!("{at}: nobody knows `{name}`")),
                        rule => self.check(rule, part, &format!("{at}.{name}"))?,
                    }
                }
                true
            }
            unknown => panic!("the schema says `{unknown}`, which this check does not know"),
        };
        if ok { Ok(()) } else { wrong() }
    }
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("what is the type `{other}`?"),
    }
}

fn has_format(name: &str, text: &str) -> bool {
    let is_plain = text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
    let scheme = text.split(['/', '?', '#']).next().and_then(|first| first.split_once(':'));
    match name {
        "uri" => is_plain && scheme.is_some(),
        // What has a scheme is a reference as well; which one, other tests look at.
        "uri-reference" => is_plain,
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        other => panic!("what is the format `{other}`?"),
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": {"$ref": "#/definitions/a"},
            "b": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"type": "integer", "minimum": 1}},
            "c": {"enum": ["x", "y"]},
            "d": {"anyOf": [{"type": "string", "pattern": "^z"}, {"type": "boolean"}]},
            "e": {"type": "string", "format": "uri-reference"},
        },
        "definitions": {"a": {"type": "string"}},
    });
    for right in [r#"{"a":"","b":[1,2],"c":"x","d":"z","e":"a%20b"}"#, r#"{"a":"t","d":true}"#] {
        assert_eq!(violation(&schema, &serde_json::from_str(right).unwrap()), None, "{right}");
    }
    for (wrong, place) in [
        ("[]", "$"),
        ("{}", "$"),
        (r#"{"a":1}"#, "$.a"),
        (r#"{"a":"","z":1}"#, "$"),
        (r#"{"a":"","b":[]}"#, "$.b"),
        (r#"{"a":"","b":[1,1]}"#, "$.b"),
        (r#"{"a":"","b":[0]}"#, "$.b[0]"),
        (r#"{"a":"","c":"z"}"#, "$.c"),
        (r#"{"a":"","d":"y"}"#, "$.d"),
        (r#"{"a":"","e":"a b"}"#, "$.e"),
    ] {
        let found = violation(&schema, &serde_json::from_str(wrong).unwrap()).expect(wrong);
        assert!(found.starts_with(&format!("{place}:")), "{wrong}: {found}");
    }
}
