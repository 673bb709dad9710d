//! What an export does to every text of others: terminal escapes go, known secrets go, and the latter are counted.

use std::borrow::Cow;
use std::cell::Cell;

use triphammer_model::Redactor;
use triphammer_model::text::stripped;

use crate::text::{count, one_line};

/// The one way by which a text of others gets into an export.
///
/// An export quotes as its format asks, and a quoted secret is not found any more (`&lt;`, `%25`). So texts are
/// redacted before they are quoted, each by itself, and not the document at its end.
#[derive(Debug)]
pub struct Clean<'a> {
    redactor: &'a Redactor,
    replaced: Cell<u64>,
}

impl<'a> Clean<'a> {
    /// Takes out what `redactor` knows.
    pub fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, replaced: Cell::new(0) }
    }

    /// How many values were replaced so far.
    pub fn replaced(&self) -> u64 {
        self.replaced.get()
    }

    /// A text of several lines.
    pub(crate) fn text(&self, text: &str) -> String {
        // As it was written, and once more without the escapes that may have stood inside of a value.
        let plain = stripped(&self.redacted(text));
        match self.redacted(&plain) {
            Cow::Borrowed(_) => plain,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// A text on one line of at most `limit` characters, with the number of those left out.
    pub(crate) fn line(&self, text: &str, limit: usize) -> String {
        one_line(&self.text(text), limit)
    }

    /// A text of at most `limit` characters, with the number of those left out.
    pub(crate) fn cut(&self, text: &str, limit: usize) -> String {
        let text = self.text(text);
        match text.char_indices().nth(limit) {
            None => text,
            Some((end, _)) => {
                let rest = text[end..].chars().count() as u64;
                format!("{}\n[{} more, not shown]", &text[..end], count(rest, "character"))
            }
        }
    }

    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor.hits(text) {
            0 => Cow::Borrowed(text),
            hits => {
                self.replaced.set(self.replaced.get() + hits);
                Cow::Owned(self.redactor.text(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_with_and_without_escapes_in_it() {
        let redactor = Redactor::new([
            ("KEY".to_owned(), b"sk-hush-hush".to_vec()),
            ("TWO".to_owned(), b"first\r\nsecond".to_vec()),
        ]);
        let clean = Clean::new(&redactor);
        assert_eq!(clean.text("a sk-hush-\x1b[1mhush\x1b[0m b"), "a [redacted:KEY] b");
        assert_eq!(clean.text("first\r\nsecond"), "[redacted:TWO]");
        assert_eq!(clean.line("x\nsk-hush-hush", 80), "x [redacted:KEY]");
        assert_eq!(clean.text("\x1b]0;title\x07plain\u{202e}"), "plain");
        assert_eq!(clean.replaced(), 3);
    }

    #[test]
    fn what_is_cut_is_counted() {
        let clean = Redactor::default();
        let clean = Clean::new(&clean);
        assert_eq!(clean.cut("äöü", 3), "äöü");
        assert_eq!(clean.cut("äöüß", 3), "äöü\n[1 character more, not shown]");
    }
}
