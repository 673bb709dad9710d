//! Changes to a JSON text that leave all its other bytes as they are: order, spaces, numbers as they were written.
//!
//! The text must be valid JSON (`serde_json` has read it before); ranges are of bytes in it.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: String,
    /// From the first quote of the key to the end of the value.
    pub(super) whole: Range<usize>,
    pub(super) value: Range<usize>,
}

/// The value of the whole text.
pub(super) fn root(text: &str) -> Range<usize> {
    let start = space(text, 0);
    start..value_end(text, start)
}

/// The members of an object; none where the value is no object.
pub(super) fn members(text: &str, object: &Range<usize>) -> Vec<Member> {
    let mut members = Vec::new();
    if !text[object.clone()].starts_with('{') {
        return members;
    }
    let mut at = space(text, object.start + 1);
    while text[at..].starts_with('"') {
        let key_end = value_end(text, at);
        let key = serde_json::from_str(&text[at..key_end]).unwrap_or_default();
        // Over the colon.
        let start = space(text, space(text, key_end) + 1);
        let value = start..value_end(text, start);
        let end = value.end;
        members.push(Member { key, whole: at..end, value });
        at = after_comma(text, end);
    }
    members
}

/// The member of this name that counts: the last one, as everywhere.
pub(super) fn member(text: &str, object: &Range<usize>, key: &str) -> Option<Member> {
    members(text, object).into_iter().rfind(|member| member.key == key)
}

/// The elements of a list; none where the value is no list.
pub(super) fn elements(text: &str, list: &Range<usize>) -> Vec<Range<usize>> {
    let mut elements = Vec::new();
    if !text[list.clone()].starts_with('[') {
        return elements;
    }
    let mut at = space(text, list.start + 1);
    while !text[at..].starts_with(']') {
        let end = value_end(text, at);
        elements.push(at..end);
        at = after_comma(text, end);
    }
    elements
}

/// The text with one more value, under `key` where the container is an object, behind the `items` that it has.
pub(super) fn append(
    text: &str,
    container: &Range<usize>,
    items: &[Range<usize>],
    key: Option<&str>,
    value: &Value,
) -> String {
    let unit = unit(text);
    // What stands before the last item stands before the new one.
    let before = match items {
        [] => {
            let line = text[..container.start].rfind('\n').map_or(0, |at| at + 1);
            let indent: String = text[line..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
            format!("{}{indent}{unit}", line_end(text))
        }
        [only] => text[container.start + 1..only.start].to_owned(),
        [.., before, last] => text[before.end..last.start].replacen(',', "", 1),
    };
    let printed = match before.rsplit_once('\n') {
        Some((_, indent)) => pretty(value, &unit).replace('\n', &format!("{}{indent}", line_end(text))),
        None => value.to_string(),
    };
    let key = key.map_or_else(String::new, |key| {
        let space = if before.contains('\n') { " " } else { "" };
        format!("{}:{space}", Value::from(key))
    });
    if let Some(last) = items.last() {
        return format!("{},{before}{key}{printed}{}", &text[..last.end], &text[last.end..]);
    }
    let end = before.strip_suffix(&unit).unwrap_or_default();
    format!("{}{before}{key}{printed}{end}{}", &text[..=container.start], &text[container.end - 1..])
}

/// The text without one of the `items` of a container, and without the comma that it no longer needs.
pub(super) fn without(text: &str, container: &Range<usize>, items: &[Range<usize>], at: usize) -> String {
    let gone = match (at.checked_sub(1), items.get(at + 1)) {
        (Some(before), _) => items[before].end..items[at].end,
        (None, Some(next)) => items[at].start..next.start,
        (None, None) => container.start + 1..container.end - 1,
    };
    format!("{}{}", &text[..gone.start], &text[gone.end..])
}

fn pretty(value: &Value, unit: &str) -> String {
    let mut out = Vec::new();
    let mut printer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(unit.as_bytes()));
    // Writing to a Vec cannot fail, and a value can always be printed.
    let _ = value.serialize(&mut printer);
    String::from_utf8(out).unwrap_or_default()
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// How far the text indents: as much as the first member of its root.
fn unit(text: &str) -> String {
    let root = root(text);
    let first = members(text, &root).first().map_or(root.start, |member| member.whole.start);
    match text[root.start..first].rsplit_once('\n') {
        Some((_, indent)) if !indent.is_empty() => indent.to_owned(),
        _ => "  ".to_owned(),
    }
}

/// The first byte from `at` on that is no white space.
fn space(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start_matches([' ', '\t', '\n', '\r']).len()
}

/// Behind the comma that follows a value, if one does.
fn after_comma(text: &str, at: usize) -> usize {
    let at = space(text, at);
    if text[at..].starts_with(',') { space(text, at + 1) } else { at }
}

/// The end of the value that starts at `at`.
fn value_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut i = at;
    while let Some(byte) = bytes.get(i) {
        match byte {
            b'"' => {
                i += 1;
                while bytes.get(i).is_some_and(|b| *b != b'"') {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                i += 1;
                if depth == 0 {
                    return i.min(bytes.len());
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            // What follows a number or a word.
            b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return i,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(text: &str) -> Vec<(String, String)> {
        members(text, &root(text)).into_iter().map(|m| (m.key, text[m.value].to_owned())).collect()
    }

    #[test]
    fn members_and_elements_are_found() {
        let text = " { \"a\" : 1.50,\"b\\n\":[ ] ,\n\"c\":{\"}\":\"]\\\"\"}, \"d\":null } ";
        let expected = [("a", "1.50"), ("b\n", "[ ]"), ("c", "{\"}\":\"]\\\"\"}"), ("d", "null")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(parts(text), expected);
        let text = r#"[1, "x,]", [2,[3]],{"a":[]}, true]"#;
        let found: Vec<&str> = elements(text, &root(text)).into_iter().map(|e| &text[e]).collect();
        assert_eq!(found, ["1", r#""x,]""#, "[2,[3]]", r#"{"a":[]}"#, "true"]);
        for text in ["{}", "[ ]", "7", " \"x\" "] {
            assert_eq!((parts(text).len(), elements(text, &root(text)).len()), (0, 0), "{text}");
        }
        assert_eq!(member(r#"{"a":1,"a":2}"#, &(0..13), "a").map(|m| m.value), Some(11..12));
    }

    #[test]
    fn what_is_added_looks_like_its_neighbours_and_goes_without_a_trace() {
        for (text, expected) in [
            ("{\"a\":1}", "{\"a\":1,\"n\":[7]}"),
            ("{\"a\": 1, \"b\": 2}", "{\"a\": 1, \"b\": 2, \"n\":[7]}"),
            ("{\n\t\"a\": 1e400\n}\n", "{\n\t\"a\": 1e400,\n\t\"n\": [\n\t\t7\n\t]\n}\n"),
            ("{\r\n    \"a\": 1\r\n}", "{\r\n    \"a\": 1,\r\n    \"n\": [\r\n        7\r\n    ]\r\n}"),
        ] {
            let items: Vec<_> = members(text, &root(text)).into_iter().map(|m| m.whole).collect();
            let added = append(text, &root(text), &items, Some("n"), &json!([7]));
            assert_eq!(added, expected);
            let items: Vec<_> = members(&added, &root(&added)).into_iter().map(|m| m.whole).collect();
            assert_eq!(without(&added, &root(&added), &items, items.len() - 1), text);
        }
        assert_eq!(append("{}\n", &(0..2), &[], Some("n"), &json!(7)), "{\n  \"n\": 7\n}\n");
        let text = "{\n \"l\": []\n}";
        let list = member(text, &root(text), "l").map(|m| m.value).unwrap_or_default();
        assert_eq!(append(text, &list, &[], None, &json!(7)), "{\n \"l\": [\n  7\n ]\n}");
        let text = "[1 , 2,3]";
        let items = elements(text, &root(text));
        assert_eq!(without(text, &root(text), &items, 0), "[2,3]");
        assert_eq!(without(text, &root(text), &items, 1), "[1,3]");
    }
}
