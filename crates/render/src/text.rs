//! Small words: counts, lengths of time, text of others on one line.

use std::fmt::Write as _;

use triphammer_model::event::AgentFacts;
use triphammer_model::text::marked;
use triphammer_model::{CostBy, Tokens};

/// Text of others on one line of at most `limit` characters, with the exact number of those left out.
pub fn one_line(text: &str, limit: usize) -> String {
    let text = marked(text.trim());
    let flat: String =
        text.split(['\n', '\t']).map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
    let length = flat.chars().count();
    if length <= limit {
        return flat;
    }
    let short: String = flat.chars().take(limit).collect();
    format!("{short}... ({} more)", count((length - limit) as u64, "character"))
}

/// `1 file`, `3 files`; the noun is given in the singular.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {}", plural(noun)) }
}

fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

/// Milliseconds as a person reads them: `40 ms`, `1.2 s`, `3m 05s`, `2h 03m`.
pub fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {:02}s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{}h {:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// What an agent call used; what is unknown is said to be, and a cost that was computed as well.
pub(crate) fn usage(facts: &AgentFacts) -> String {
    let tokens = facts.tokens.map_or_else(|| "tokens unknown".to_owned(), tokens);
    let cost = facts.cost.map_or_else(|| "cost unknown".to_owned(), |c| format!("cost {c}"));
    let by = facts.cost_by.as_ref().and_then(computed).map_or_else(String::new, |by| format!(", {by}"));
    format!("{tokens}, {cost}{by}")
}

/// By which prices a cost was computed, where it was.
pub(crate) fn computed(by: &CostBy) -> Option<String> {
    match by {
        CostBy::Reported => None,
        CostBy::OwnPrices => Some("computed from your prices".to_owned()),
        CostBy::Prices { as_of } => Some(format!("computed from prices of {}", one_line(as_of, 20))),
    }
}

pub(crate) fn tokens(tokens: Tokens) -> String {
    format!("tokens {} in, {} cached, {} out", tokens.input, tokens.cached, tokens.output)
}

/// The word that a closed set's value has in JSON.
pub(crate) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Adds `text` to `out`, each line behind `prefix`.
pub(crate) fn indent(out: &mut String, prefix: &str, text: &str) {
    for line in text.lines() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", format!("{prefix}{line}").trim_end());
    }
}

/// The first digits of a digest or tree id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_text_is_one_line() {
        assert_eq!(one_line("  a\n\n\tb \u{7}", 10), "a b \u{fffd}");
        assert_eq!(one_line("abcdef", 4), "abcd... (2 characters more)");
    }

    #[test]
    fn numbers_read_well() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1m 00s"),
            (3_599_999, "59m 59s"),
            (7_380_000, "2h 03m"),
        ] {
            assert_eq!(seconds(ms), text);
        }
        for (n, noun, text) in
            [(1, "file", "1 file"), (0, "file", "0 files"), (2, "retry", "2 retries"), (2, "day", "2 days")]
        {
            assert_eq!(count(n, noun), text);
        }
    }
}
