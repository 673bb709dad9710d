//! "Did you mean": the known word that a mistyped one is close to, and how foreign text is quoted in a message.

use std::fmt::Write as _;

/// The candidate closest to `word`, if it is close enough to be a typing error. Case, `-`, `_` and spaces do not
/// count as differences.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars()
            .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
            .flat_map(char::to_lowercase)
            .take(64)
            .collect()
    };
    let typed = plain(word);
    candidates
        .into_iter()
        .map(|candidate| {
            let known = plain(candidate);
            (distance(&typed, &known), known.len(), candidate)
        })
        // A third of the letters may be wrong; a word of two letters must match.
        .filter(|(distance, len, _)| {
            *distance <= (*len).min(typed.len()).div_ceil(3).min(3) && *distance < *len
        })
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., candidate)| candidate)
}

/// `; did you mean ...?`, or nothing.
pub(crate) fn hint(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |word| format!("; did you mean `{word}`?"))
}

/// Foreign text on one line, without control characters, at most 60 characters of it.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let count = text.chars().count();
    let mut out = String::from("`");
    for c in text.chars().take(LONGEST) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    if count > LONGEST {
        // Writing to a String cannot fail.
        let _ = write!(out, " (and {} more characters)", count - LONGEST);
    }
    out
}

/// Edit distance with neighbour swaps (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_errors_only() {
        let known = ["attempts", "budget", "max_cost", "max_tokens", "agent", "allow"];
        for (typed, meant) in [
            ("atempts", Some("attempts")),
            ("attmepts", Some("attempts")),
            ("max-cost", Some("max_cost")),
            ("Budget", Some("budget")),
            ("agnet", Some("agent")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn quotes_hostile_text() {
        assert_eq!(quote("a\u{1b}[31m"), "`a\\u{1b}[31m`");
        assert!(quote(&"x".repeat(100)).ends_with("(and 40 more characters)"));
    }
}
