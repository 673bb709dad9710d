//! What an agent said last, for a person.

use triphammer_model::process::Captured;
use triphammer_model::text::stripped;

/// Characters of the agent's last words.
const LAST_WORDS: usize = 2000;

/// The end of what a stream said, for a person; `None` when it said nothing. A tail shorter than `tail_cap` is all of
/// the stream.
pub(crate) fn last_words(captured: &Captured, tail_cap: usize) -> Option<String> {
    let plain = stripped(&String::from_utf8_lossy(&captured.tail));
    let plain = plain.trim();
    if plain.is_empty() {
        return None;
    }
    let total = plain.chars().count();
    if total <= LAST_WORDS && captured.tail.len() < tail_cap {
        return Some(plain.to_owned());
    }
    let skip = total.saturating_sub(LAST_WORDS);
    let cut: String = plain.chars().skip(skip).collect();
    let shown = total - skip;
    Some(format!("[the last {shown} characters of {} bytes; stdout.log holds more]\n{cut}", captured.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_say_how_much_they_leave_out() {
        let words = |text: &str, bytes| last_words(&Captured { bytes, tail: text.as_bytes().to_vec() }, 8000);
        assert_eq!(words(" \n\x1b[0m", 6), None);
        assert_eq!(words("Which one?\n", 11).as_deref(), Some("Which one?"));
        let long = "ü".repeat(3000);
        let cut = words(&long, 6000).unwrap();
        let (note, text) = cut.split_once('\n').unwrap();
        assert_eq!(note, "[the last 2000 characters of 6000 bytes; stdout.log holds more]");
        assert_eq!(text.chars().count(), 2000);
    }
}
