//! An agent's output as text that a person can be shown.

use triphammer_model::process::Captured;

/// Characters of the agent's last words.
const LAST_WORDS: usize = 2000;

/// Text without terminal escapes, control characters and characters that reorder what is read; line ends are `\n`.
pub(crate) fn plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            // The one-character forms of the sequences' openings.
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            // Bidirectional marks, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            // Intermediate bytes, then one final byte.
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// A string ends at BEL or ST. One that never ends goes on to the end of its line and no further, so that an agent
/// cannot hide all of its later words behind an opening.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' if chars.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

/// The end of what a stream said, for a person; `None` when it said nothing. A tail shorter than `tail_cap` is all of
/// the stream.
pub(crate) fn last_words(captured: &Captured, tail_cap: usize) -> Option<String> {
    let plain = plain_text(&captured.tail);
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn takes_out_what_is_not_text() {
        for (input, output) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]0;never ends\nnext", "\nnext"),
            ("\x1b(Bascii", "ascii"),
            ("\u{9b}31mred", "red"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a\x08\x07\0b", "ab"),
            ("\u{202e}evil\u{2066}", "evil"),
            ("grüße", "grüße"),
            ("\x1b", ""),
            ("\x1b[", ""),
        ] {
            assert_eq!(plain_text(input.as_bytes()), output, "{input:?}");
        }
        assert_eq!(plain_text(b"a\xffb"), "a\u{fffd}b");
    }

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

    proptest! {
        #[test]
        fn never_lets_a_control_character_through(bytes: Vec<u8>) {
            let text = plain_text(&bytes);
            prop_assert!(text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
            prop_assert_eq!(plain_text(text.as_bytes()), text);
        }
    }
}
