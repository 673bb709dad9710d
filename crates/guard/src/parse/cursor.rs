//! Where the parser stands.

use super::{DEPTH, Script, Trouble, Word};

/// A place in a text, with what has been found out on the way there.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Bodies found so far, over all nested texts; `Redirection::Heredoc` is an index into it.
    pub(super) heredocs: Vec<Word>,
    /// Heredocs whose body begins after the next newline.
    pub(super) pending: Vec<Pending>,
    pub(super) trouble: Option<Trouble>,
    depth: usize,
    /// Bytes that may still be looked at ahead of reading them, so that looking ahead stays linear.
    pub(super) ahead: usize,
    /// `[[` begins a test; no longer once one of them had no end.
    pub(super) tests: bool,
}

/// A heredoc that was announced.
pub(super) struct Pending {
    pub(super) index: usize,
    pub(super) delimiter: String,
    /// No expansion takes place in the body.
    pub(super) literal: bool,
    /// `<<-`
    pub(super) tabs: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            heredocs: Vec::new(),
            pending: Vec::new(),
            trouble: None,
            depth: 0,
            ahead: text.len().saturating_mul(8),
            tests: true,
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn looking_at(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    /// Steps over `what` when it comes next.
    pub(super) fn take(&mut self, what: &str) -> bool {
        let taken = self.looking_at(what);
        if taken {
            self.at += what.len();
        }
        taken
    }

    /// The next character, stepped over.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Notes the first trouble; reading goes on.
    pub(super) fn fail(&mut self, what: &'static str) {
        if self.trouble.is_none() {
            let line = 1 + self.text[..self.at].matches('\n').count();
            self.trouble = Some(Trouble::Syntax { what, line });
        }
    }

    /// Reads one level deeper, or gives up on the rest of the text.
    pub(super) fn deeper<T: Default>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= DEPTH {
            self.trouble = Some(Trouble::Deep);
            self.at = self.text.len();
            return T::default();
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads another text one level deeper: a heredoc's body, a backtick's script.
    pub(super) fn inside<T: Default>(&mut self, text: &str, read: impl FnOnce(&mut Cursor<'_>) -> T) -> T {
        if self.depth >= DEPTH {
            self.trouble = Some(Trouble::Deep);
            self.at = self.text.len();
            return T::default();
        }
        let mut inner = Cursor::new(text);
        inner.depth = self.depth + 1;
        inner.heredocs = std::mem::take(&mut self.heredocs);
        let value = read(&mut inner);
        self.heredocs = inner.heredocs;
        if inner.trouble == Some(Trouble::Deep) {
            self.trouble = inner.trouble;
            self.at = self.text.len();
        } else if self.trouble.is_none() {
            self.trouble = inner.trouble;
        }
        value
    }

    /// The whole text as a script, with whatever stands where it should not stepped over.
    pub(super) fn whole(&mut self) -> Script {
        let mut script = Script::default();
        loop {
            script.nodes.extend(self.list().nodes);
            if self.at_end() {
                return script;
            }
            self.fail("a closing word or sign without its opening one");
            let before = self.at;
            if !self.take(";;") {
                self.word();
            }
            if self.at == before {
                self.next();
            }
        }
    }
}
