//! Lists and texts that are cut say exactly how much was left out.

use std::fmt::Write as _;

use crate::text::count;
use triphammer_model::text::marked;

/// The first items of a list and how many more there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<'a, T> {
    /// What is shown.
    pub shown: &'a [T],
    /// How many are not.
    pub left_out: u64,
}

impl<'a, T> Bounded<'a, T> {
    /// At most `limit` of `items`.
    pub fn new(items: &'a [T], limit: usize) -> Self {
        Self::of_more(items, items.len() as u64, limit)
    }

    /// At most `limit` of `items`, which are themselves the first of `total`.
    pub fn of_more(items: &'a [T], total: u64, limit: usize) -> Self {
        let shown = &items[..items.len().min(limit)];
        Self { shown, left_out: total.max(items.len() as u64) - shown.len() as u64 }
    }

    /// The marker for what is left out; `None` when nothing is.
    pub fn marker(&self, noun: &str, all_in: &str) -> Option<String> {
        (self.left_out > 0).then(|| {
            let rest = count(self.left_out, noun);
            if all_in.is_empty() {
                format!("... and {rest} more, not shown")
            } else {
                format!("... and {rest} more, not shown; all of them: {all_in}")
            }
        })
    }

    /// The items on one line, with `and N more` at its end.
    pub fn on_one_line(&self, show: impl Fn(&T) -> String) -> String {
        let mut parts: Vec<String> = self.shown.iter().map(show).collect();
        if self.left_out > 0 {
            parts.push(format!("and {} more", self.left_out));
        }
        parts.join(", ")
    }
}

/// The first `head` and the last `tail` lines of a text of others, each cut at 400 characters, with a marker that
/// counts lines and bytes between them. `all_in` says where the whole text is.
pub fn bounded_lines(text: &str, head: usize, tail: usize, all_in: &str) -> String {
    let text = marked(text.trim_end_matches('\n'));
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    if lines.len() <= head + tail {
        push(&mut out, &lines);
        return out;
    }
    let middle = &lines[head..lines.len() - tail];
    let bytes: usize = middle.iter().map(|l| l.len() + 1).sum();
    push(&mut out, &lines[..head]);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "... {} ({}) left out here; the whole text: {all_in}",
        count(middle.len() as u64, "line"),
        count(bytes as u64, "byte")
    );
    push(&mut out, &lines[lines.len() - tail..]);
    out
}

/// Longest line that is shown whole.
const LONGEST_LINE: usize = 400;

fn push(out: &mut String, lines: &[&str]) {
    for line in lines {
        let length = line.chars().count();
        if length <= LONGEST_LINE {
            out.push_str(line);
        } else {
            out.extend(line.chars().take(LONGEST_LINE));
            let _ = write!(out, "... ({} more)", count((length - LONGEST_LINE) as u64, "character"));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact() {
        let items = [1, 2, 3, 4, 5];
        let show = |n: &i32| n.to_string();
        assert_eq!(Bounded::new(&items, 5).marker("file", ""), None);
        assert_eq!(
            Bounded::new(&items, 4).marker("file", "x").unwrap(),
            "... and 1 file more, not shown; all of them: x"
        );
        assert_eq!(Bounded::of_more(&items, 90, 2).on_one_line(show), "1, 2, and 88 more");
        assert_eq!(Bounded::of_more(&items, 0, 9).on_one_line(show), "1, 2, 3, 4, 5");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let text = "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\n";
        assert_eq!(bounded_lines(text, 5, 4, "f"), text);
        assert_eq!(
            bounded_lines(text, 1, 1, "f"),
            "line 1\n... 7 lines (49 bytes) left out here; the whole text: f\nline 9\n"
        );
        let wide = "é".repeat(402);
        assert_eq!(bounded_lines(&wide, 1, 1, "f"), format!("{}... (2 characters more)\n", "é".repeat(400)));
    }
}
