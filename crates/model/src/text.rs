//! Text that others wrote, made harmless: no terminal escape reaches a terminal, a page or a prompt.

use std::borrow::Cow;

/// A control character other than newline and tab, or a mark, override or isolate that turns the direction of writing
/// (they make text read as what it is not).
fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with every character that could do harm replaced, so that it shows that something was there. For names and
/// words on a terminal.
pub fn marked(text: &str) -> Cow<'_, str> {
    if text.contains(is_hostile) {
        Cow::Owned(text.chars().map(|c| if is_hostile(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Text without terminal escapes, control characters and marks that reorder what is read; line ends are `\n`. For
/// what a tool printed for a terminal.
pub fn stripped(text: &str) -> String {
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
            c if is_hostile(c) => {}
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_what_could_do_harm() {
        assert_eq!(
            marked("a\u{1b}[2Jb\r\nc\td\u{202e}e\u{9b}"),
            "a\u{fffd}[2Jb\u{fffd}\nc\td\u{fffd}e\u{fffd}"
        );
        assert!(matches!(marked("übel\n"), Cow::Borrowed(_)));
    }

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
            assert_eq!(stripped(input), output, "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn never_lets_a_control_character_through(text: String) {
            let text = stripped(&text);
            prop_assert!(!text.contains(is_hostile));
            prop_assert_eq!(stripped(&text), text);
        }
    }
}
