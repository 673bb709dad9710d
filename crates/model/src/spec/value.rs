//! The values of the frontmatter: plain words, quoted strings and flow lists, with comments after them.

/// A value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing but perhaps a comment.
    Nothing,
    /// One word or quoted string.
    One(String),
    /// `[a, b]`.
    Many(Vec<String>),
}

/// Why a value cannot be read: what is wrong, and what to do.
pub(super) type Trouble = (&'static str, &'static str);

/// Reads what follows a key's colon.
pub(super) fn read(text: &str) -> Result<Value, Trouble> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(Value::Nothing);
    }
    let (value, rest) = if let Some(inside) = text.strip_prefix('[') {
        list(inside)?
    } else {
        let (item, rest) = item(text, false)?;
        (Value::One(item), rest)
    };
    let after = rest.trim_start();
    if after.is_empty() || (after.starts_with('#') && after.len() < rest.len()) {
        Ok(value)
    } else {
        Err(("there is text after the value", "remove it, or make it a comment with ` # `"))
    }
}

/// Reads a list after its `[`.
fn list(inside: &str) -> Result<(Value, &str), Trouble> {
    const OPEN: Trouble = ("the list has no end", "close it with `]` on the same line");
    let mut items = Vec::new();
    let mut rest = inside.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            return Ok((Value::Many(items), after));
        }
        if rest.is_empty() || rest.starts_with('#') {
            return Err(OPEN);
        }
        let (word, after) = item(rest, true)?;
        if word.is_empty() {
            return Err(("the list has an empty item", "remove the item or its comma"));
        }
        items.push(word);
        rest = after.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
        } else if !rest.starts_with(']') {
            return Err(OPEN);
        }
    }
}

/// Reads one word or quoted string and returns what follows it.
fn item(text: &str, in_list: bool) -> Result<(String, &str), Trouble> {
    const OPEN: Trouble = ("a quote is not closed", "close it on the same line");
    if let Some(inside) = text.strip_prefix('"') {
        let mut escaped = false;
        let end = inside
            .find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            })
            .ok_or(OPEN)?;
        let (quoted, rest) = text.split_at(end + 2);
        let word = serde_json::from_str(quoted)
            .map_err(|_| ("a quoted text has an escape that is not known", "double the backslash"))?;
        return Ok((word, rest));
    }
    if let Some(mut rest) = text.strip_prefix('\'') {
        let mut word = String::new();
        loop {
            let (part, after) = rest.split_once('\'').ok_or(OPEN)?;
            word.push_str(part);
            match after.strip_prefix('\'') {
                Some(more) => {
                    word.push('\'');
                    rest = more;
                }
                None => return Ok((word, after)),
            }
        }
    }
    let (word, rest) = text.split_at(plain_len(text, in_list));
    Ok((word.to_owned(), rest))
}

/// How many bytes the plain word at the start of `text` has: up to a comment, in a list also up to `,` or `]`.
pub(super) fn plain_len(text: &str, in_list: bool) -> usize {
    let mut spaced = true;
    let end = text
        .find(|c: char| {
            let ends = (c == '#' && spaced) || (in_list && matches!(c, ',' | ']'));
            spaced = c.is_whitespace();
            ends
        })
        .unwrap_or(text.len());
    text[..end].trim_end().len()
}

/// Writes a word such that [`read`] reads it back: plain where that is safe, quoted otherwise.
pub(super) fn write(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    if word.starts_with(|c: char| plain(c) && c != '-') && word.chars().all(plain) {
        return word.to_owned();
    }
    serde_json::Value::from(word).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_values() {
        let one = |s: &str| Ok(Value::One(s.to_owned()));
        let many = |s: &[&str]| Ok(Value::Many(s.iter().map(|s| (*s).to_owned()).collect()));
        for (text, value) in [
            ("", Ok(Value::Nothing)),
            ("  # only a comment", Ok(Value::Nothing)),
            (" 4h  # four hours", one("4h")),
            (" a#b", one("a#b")),
            (r#" "a # b\n\"" # c"#, one("a # b\n\"")),
            (" 'it''s' ", one("it's")),
            ("[]", many(&[])),
            ("[a, 'b, c' ,\"d]\",]  # e", many(&["a", "b, c", "d]"])),
            ("[a b,c]", many(&["a b", "c"])),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
        for bad in ["[a", "[a # b]", "[,]", "\"a", "'a", "\"\\q\"", "\"a\" b", "[a] b", "\"a\"#b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
