//! Redirections and heredocs.

use super::cursor::{Cursor, Pending};
use super::words::ends_word;
use super::{Piece, Redirection, Word};

impl Cursor<'_> {
    /// The redirection that begins here, if one does.
    pub(super) fn redirection(&mut self) -> Option<Redirection> {
        let start = self.at;
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let named = self.rest().strip_prefix('{').and_then(|rest| {
            let length = rest.bytes().take_while(|b| *b == b'_' || b.is_ascii_alphanumeric()).count();
            rest[length..].starts_with('}').then_some(length + 2)
        });
        self.at += named.unwrap_or(digits);
        let prefixed = self.at > start;
        let both = !prefixed && self.looking_at("&>");
        if both {
            self.at += 1;
        }
        let process = matches!(self.peek_at(1), Some(b'('));
        let operator = ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"]
            .into_iter()
            .find(|operator| self.looking_at(operator))
            .filter(|_| !process);
        let Some(operator) = operator else {
            self.at = start;
            return None;
        };
        self.at += operator.len();
        self.blanks();
        if operator == "<<" || operator == "<<-" {
            return Some(self.announce(operator == "<<-"));
        }
        let Some(word) = self.word() else {
            self.fail("a redirection without a target");
            return Some(Redirection::Duplicate);
        };
        Some(match operator {
            "<<<" => Redirection::HereString(word),
            "<" | "<>" => Redirection::Read(word),
            "<&" => Redirection::Duplicate,
            ">>" => Redirection::Append(word),
            ">&" if is_descriptor(&word) => Redirection::Duplicate,
            _ => Redirection::Write(word),
        })
    }

    /// Reads a heredoc's delimiter; the body comes after the line's end.
    fn announce(&mut self, tabs: bool) -> Redirection {
        let mut delimiter = String::new();
        let mut literal = false;
        while let Some(byte) = self.peek() {
            match byte {
                byte if ends_word(byte) => break,
                b'\r' if matches!(self.peek_at(1), None | Some(b'\n')) => break,
                b'\'' | b'"' => {
                    literal = true;
                    self.at += 1;
                    let quote = char::from(byte);
                    let length = self.rest().find(quote);
                    if length.is_none() {
                        self.fail("a closing quote of a heredoc's delimiter is missing");
                    }
                    let length = length.unwrap_or(self.rest().len());
                    delimiter.push_str(&self.rest()[..length]);
                    self.at = (self.at + length + 1).min(self.text.len());
                }
                b'\\' => {
                    literal = true;
                    self.at += 1;
                    delimiter.extend(self.next());
                }
                _ => delimiter.extend(self.next()),
            }
        }
        let index = self.heredocs.len();
        self.heredocs.push(Word::default());
        self.pending.push(Pending { index, delimiter, literal, tabs });
        Redirection::Heredoc(index)
    }

    /// Steps over a newline, and over the bodies of heredocs that were announced in the line.
    pub(super) fn newline(&mut self) {
        self.at += 1;
        for (index, pending) in std::mem::take(&mut self.pending).iter().enumerate() {
            if index > 0 {
                self.take("\n");
            }
            self.body(pending);
        }
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is not general over the inner text"
    )]
    fn body(&mut self, pending: &Pending) {
        let start = self.at;
        let mut end = self.text.len();
        let mut ended = false;
        while !self.at_end() && !ended {
            let line = self.rest().split('\n').next().unwrap_or_default();
            let bare = line.strip_suffix('\r').unwrap_or(line);
            let bare = if pending.tabs { bare.trim_start_matches('\t') } else { bare };
            if bare == pending.delimiter {
                end = self.at;
                ended = true;
            } else if bare.strip_prefix(pending.delimiter.as_str()).is_some_and(|rest| {
                // `$(cat <<EOF … EOF)` on one line: bash takes the parenthesis for the end of both.
                !pending.delimiter.is_empty()
                    && rest.trim_start().starts_with(')')
                    && self.text[self.at..].len() == line.len()
            }) {
                end = self.at;
                self.at += line.len() - bare.len() + pending.delimiter.len();
                break;
            }
            if ended {
                // The newline that ends the delimiter's line also ends a command; it is left for the list.
                self.at += line.len();
            } else {
                self.at = (self.at + line.len() + 1).min(self.text.len());
            }
        }
        let body = &self.text[start..end];
        self.heredocs[pending.index] = if pending.literal {
            Word { pieces: vec![Piece::Quoted(body.to_owned())] }
        } else {
            self.inside(body, |body| body.heredoc_text())
        };
    }
}

/// `1`, `-`, `2-`: a descriptor and no file.
fn is_descriptor(word: &Word) -> bool {
    matches!(word.pieces.as_slice(), [Piece::Bare(text)] if text.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
}
