//! Words: quotes, escapes and expansions.

use super::cursor::Cursor;
use super::escapes::decode;
use super::{Piece, Script, Word};

/// Puts a word together, adjacent text in one piece.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn bare(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Bare(last)) => last.push_str(text),
            _ => self.0.push(Piece::Bare(text.to_owned())),
        }
    }

    fn quoted(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Quoted(last)) => last.push_str(text),
            _ => self.0.push(Piece::Quoted(text.to_owned())),
        }
    }

    /// Whether what was read so far is `name=`, `name+=` or `name[…]=`.
    fn assigns(&self) -> bool {
        let [Piece::Bare(text)] = self.0.as_slice() else { return false };
        text.ends_with('=')
            && text.matches('=').count() == 1
            && text.starts_with(|c: char| c == '_' || c.is_alphabetic())
    }
}

/// Whether a word ends before this byte.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

impl Cursor<'_> {
    /// Steps over blanks, continued lines and a comment.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\r') if matches!(self.peek_at(1), None | Some(b'\n')) => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    /// The word that begins here, if one does.
    pub(super) fn word(&mut self) -> Option<Word> {
        let mut pieces = Pieces::default();
        let start = self.at;
        loop {
            let plain = self
                .rest()
                .bytes()
                .take_while(|b| !ends_word(*b) && !b"'\"\\$`?*+@!=\0\r".contains(b))
                .count();
            if plain > 0 {
                pieces.bare(&self.rest()[..plain]);
                self.at += plain;
            }
            let Some(byte) = self.peek() else { break };
            match byte {
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    pieces.0.push(Piece::Process(self.parenthesised()));
                }
                b'(' if pieces.assigns() => {
                    self.at += 1;
                    let words = self.deeper(Self::words_to_parenthesis);
                    pieces.0.push(Piece::Array(words));
                }
                b'\r' if matches!(self.peek_at(1), None | Some(b'\n')) => break,
                byte if ends_word(byte) => break,
                b'?' | b'*' | b'+' | b'@' | b'!' if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    pieces.bare("*");
                    let inner = self.deeper(Self::words_to_parenthesis);
                    pieces.0.extend(scripts_only(inner));
                }
                _ => self.special(&mut pieces),
            }
        }
        (self.at > start).then_some(Word { pieces: pieces.0 })
    }

    /// A character that may mean something in a word, and what comes of it.
    fn special(&mut self, pieces: &mut Pieces) {
        match self.peek() {
            Some(b'\'') => {
                self.at += 1;
                let text = self.until_quote();
                pieces.quoted(text.0);
            }
            Some(b'"') => {
                self.at += 1;
                self.double(pieces, true);
            }
            Some(b'\\') => {
                self.at += 1;
                match self.next() {
                    Some('\n') => {}
                    Some(c) => pieces.quoted(c.encode_utf8(&mut [0; 4])),
                    None => pieces.quoted("\\"),
                }
            }
            Some(b'$') => self.dollar(pieces, false),
            Some(b'`') => self.backtick(pieces, false),
            Some(0) => {
                self.at += 1;
                pieces.0.push(Piece::Unknown(Vec::new()));
            }
            _ => {
                if let Some(c) = self.next() {
                    pieces.bare(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// The text up to a single quote, and whether there was one.
    fn until_quote(&mut self) -> (&str, bool) {
        let start = self.at;
        let end = self.text[start..].find('\'');
        let Some(length) = end else {
            self.fail("a closing single quote is missing");
            self.at = self.text.len();
            return (&self.text[start..], false);
        };
        self.at = start + length + 1;
        (&self.text[start..start + length], true)
    }

    /// Text in which only `$`, backticks and some escapes mean something: to a double quote, or to the end.
    fn double(&mut self, pieces: &mut Pieces, closed: bool) {
        pieces.quoted("");
        loop {
            let plain = self.rest().bytes().take_while(|b| !b"\"\\$`\0".contains(b)).count();
            if plain > 0 {
                pieces.quoted(&self.rest()[..plain]);
                self.at += plain;
            }
            match self.peek() {
                None => {
                    if closed {
                        self.fail("a closing double quote is missing");
                    }
                    return;
                }
                Some(b'"') if closed => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => match self.peek_at(1) {
                    Some(b'\n') => self.at += 2,
                    Some(b'$' | b'`' | b'"' | b'\\') => {
                        pieces.quoted(&self.rest()[1..2]);
                        self.at += 2;
                    }
                    _ => {
                        pieces.quoted("\\");
                        self.at += 1;
                    }
                },
                Some(b'$') => self.dollar(pieces, true),
                Some(b'`') => self.backtick(pieces, true),
                Some(0) => {
                    self.at += 1;
                    pieces.0.push(Piece::Unknown(Vec::new()));
                }
                Some(_) => {
                    if let Some(c) = self.next() {
                        pieces.quoted(c.encode_utf8(&mut [0; 4]));
                    }
                }
            }
        }
    }

    /// A heredoc's body in which expansions take place.
    pub(super) fn heredoc_text(&mut self) -> Word {
        let mut pieces = Pieces::default();
        self.double(&mut pieces, false);
        Word { pieces: pieces.0 }
    }

    fn dollar(&mut self, pieces: &mut Pieces, quoted: bool) {
        self.at += 1;
        match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.is_arithmetic(2) => {
                self.at += 2;
                let inside = self.deeper(Self::arithmetic);
                pieces.0.push(Piece::Unknown(inside));
            }
            Some(b'(') => {
                self.at += 1;
                let script = self.parenthesised();
                pieces.0.push(Piece::Command { script, quoted });
            }
            Some(b'[') => pieces.quoted("$"),
            Some(b'{') => {
                self.at += 1;
                let piece = self.deeper(|cursor| Some(cursor.parameter(quoted)));
                pieces.0.push(piece.unwrap_or(Piece::Unknown(Vec::new())));
            }
            Some(b'\'') if !quoted => {
                self.at += 1;
                self.ansi(pieces);
            }
            Some(b'"') if !quoted => {}
            Some(byte) if is_name(byte) && !byte.is_ascii_digit() => {
                let length = self.rest().bytes().take_while(|b| is_name(*b)).count();
                let name = self.rest()[..length].to_owned();
                self.at += length;
                pieces.0.push(Piece::Variable { name, quoted, inside: Vec::new() });
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                let name = self.rest()[..1].to_owned();
                self.at += 1;
                pieces.0.push(Piece::Variable { name, quoted, inside: Vec::new() });
            }
            _ if quoted => pieces.quoted("$"),
            _ => pieces.bare("$"),
        }
    }

    /// `$'…'`, in which a backslash escapes the quote.
    fn ansi(&mut self, pieces: &mut Pieces) {
        let start = self.at;
        loop {
            match self.next() {
                Some('\\') => {
                    self.next();
                }
                Some('\'') => {
                    pieces.quoted(&decode(&self.text[start..self.at - 1]));
                    return;
                }
                Some(_) => {}
                None => {
                    self.fail("a closing single quote is missing");
                    pieces.quoted(&decode(&self.text[start..]));
                    return;
                }
            }
        }
    }

    /// The rest of `${…}`.
    fn parameter(&mut self, quoted: bool) -> Piece {
        let prefixed = matches!(self.peek(), Some(b'#' | b'!')) && self.peek_at(1) != Some(b'}');
        if prefixed {
            self.at += 1;
        }
        let name_start = self.at;
        match self.peek() {
            Some(byte) if is_name(byte) => {
                self.at += self.rest().bytes().take_while(|b| is_name(*b)).count();
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.at += 1,
            _ => {}
        }
        let name = self.text[name_start..self.at].to_owned();
        if prefixed {
            if self.take("}") {
                return Piece::Unknown(Vec::new());
            }
        } else if ["}", "[@]}", "[*]}"].iter().any(|end| self.take(end)) {
            // All elements of an array are a variable with several values.
            return Piece::Variable { name, quoted, inside: Vec::new() };
        }
        let own = [":-", "-", ":?", "?", ":=", "="].iter().any(|operator| self.looking_at(operator));
        let mut pieces = Pieces::default();
        loop {
            let plain = self.rest().bytes().take_while(|b| !b"}'\"\\$`\0".contains(b)).count();
            self.at += plain;
            match self.peek() {
                None => {
                    self.fail("a closing brace of an expansion is missing");
                    break;
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b'\'') if quoted => self.at += 1,
                Some(_) => self.special(&mut pieces),
            }
        }
        let inside = scripts(pieces.0);
        if own && !prefixed { Piece::Variable { name, quoted, inside } } else { Piece::Unknown(inside) }
    }

    /// A backtick's script; what is inside loses one level of backslashes first.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over the inner text"
    )]
    fn backtick(&mut self, pieces: &mut Pieces, quoted: bool) {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                None => {
                    self.fail("a closing backtick is missing");
                    break;
                }
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => text.push(c),
                    Some('"') if quoted => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => text.push('\\'),
                },
                Some(c) => text.push(c),
            }
        }
        let script = self.inside(&text, |script| script.whole());
        pieces.0.push(Piece::Command { script, quoted });
    }

    /// Whether `((` or `$((`, whose contents begin `skip` bytes ahead, ends in `))`.
    pub(super) fn is_arithmetic(&mut self, skip: usize) -> bool {
        let bytes = &self.text.as_bytes()[self.at + skip..];
        let mut open = 0_usize;
        let mut quote = None;
        let mut escaped = false;
        for (index, byte) in bytes.iter().enumerate() {
            if self.ahead == 0 {
                return false;
            }
            self.ahead -= 1;
            if escaped {
                escaped = false;
                continue;
            }
            match (byte, quote) {
                (b'\\', None | Some(b'"')) => escaped = true,
                (b'\'' | b'"', None) => quote = Some(*byte),
                (byte, Some(open)) if *byte == open => quote = None,
                (b'(', None) => open += 1,
                (b')', None) if open > 0 => open -= 1,
                (b')', None) => return bytes.get(index + 1) == Some(&b')'),
                _ => {}
            }
        }
        false
    }

    /// The inside of `((…))` to behind its end, and the commands in it.
    pub(super) fn arithmetic(&mut self) -> Vec<Script> {
        let mut pieces = Pieces::default();
        let mut open = 0_usize;
        loop {
            let plain = self.rest().bytes().take_while(|b| !b"()'\"\\$`\0".contains(b)).count();
            self.at += plain;
            match self.peek() {
                None => {
                    self.fail("the end of an arithmetic expression is missing");
                    break;
                }
                Some(b'(') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b')') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b')') => {
                    self.at += 1;
                    if !self.take(")") {
                        self.fail("the end of an arithmetic expression is missing");
                    }
                    break;
                }
                Some(_) => self.special(&mut pieces),
            }
        }
        scripts(pieces.0)
    }

    /// The script up to a closing parenthesis, which is stepped over.
    pub(super) fn parenthesised(&mut self) -> Script {
        self.deeper(|cursor| {
            let script = cursor.list();
            if !cursor.take(")") {
                cursor.fail("a closing parenthesis is missing");
            }
            script
        })
    }

    /// The words up to a closing parenthesis; alternatives of a pattern count as words.
    fn words_to_parenthesis(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.take(")") {
                return words;
            }
            if self.at_end() {
                self.fail("a closing parenthesis is missing");
                return words;
            }
            match self.word() {
                Some(word) => words.push(word),
                None => {
                    self.next();
                }
            }
        }
    }
}

/// The commands inside of pieces whose value is not kept.
pub(super) fn scripts(pieces: Vec<Piece>) -> Vec<Script> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bare(_) | Piece::Quoted(_) => {}
            Piece::Command { script, .. } | Piece::Process(script) => out.push(script),
            Piece::Variable { inside, .. } | Piece::Unknown(inside) => out.extend(inside),
            Piece::Array(words) => {
                for word in words {
                    out.extend(scripts(word.pieces));
                }
            }
        }
    }
    out
}

/// The same as a piece, when there are any.
fn scripts_only(words: Vec<Word>) -> Option<Piece> {
    let inside: Vec<Script> = words.into_iter().flat_map(|word| scripts(word.pieces)).collect();
    (!inside.is_empty()).then_some(Piece::Unknown(inside))
}
