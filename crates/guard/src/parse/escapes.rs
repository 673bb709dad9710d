//! What stands between `$'` and `'`.

/// Decodes the escapes of `$'…'`; an unknown one stays as written.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else {
            out.push('\\');
            break;
        };
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => {
                match simple(kind) {
                    Some(c) => out.push(c),
                    None if kind == 'c' => {
                        chars.next();
                    }
                    None => out.extend(['\\', kind]),
                }
                continue;
            }
        };
        let mut digits = String::new();
        if radix == 8 {
            digits.push(kind);
        }
        while digits.len() < most {
            match chars.peek() {
                Some(digit) if digit.is_digit(radix) => digits.extend(chars.next()),
                _ => break,
            }
        }
        match u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32) {
            Some(c) => out.push(c),
            None => out.extend(['\\', kind]),
        }
    }
    out
}

fn simple(kind: char) -> Option<char> {
    Some(match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '?' => kind,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes_are_decoded_as_a_shell_does() {
        for (text, expected) in [
            ("rm", "rm"),
            (r"\x72m", "rm"),
            (r"\162\155", "rm"),
            (r"\u0072m", "rm"),
            (r"a\nb\tc", "a\nb\tc"),
            (r"it\'s", "it's"),
            (r"\q\", r"\q\"),
            (r"\xzz", r"\xzz"),
            (r"\Uffffffff", r"\U"),
        ] {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
