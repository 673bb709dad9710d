//! Lists, pipelines and the commands that are made of commands.

use super::cursor::Cursor;
use super::words::ends_word;
use super::{Assignment, Compound, Link, Node, Piece, Redirection, Script, Simple, TEXT, Word};

/// Words that end a list where a command could begin.
const CLOSING: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// Words that begin a command made of commands, or stand in front of one.
const OPENING: [&str; 11] =
    ["if", "while", "until", "for", "select", "case", "function", "{", "[[", "!", "coproc"];

impl Cursor<'_> {
    /// The reserved word that stands here.
    fn reserved(&self) -> Option<&'static str> {
        let rest = self.rest();
        CLOSING.iter().chain(&OPENING).copied().find(|word| {
            rest.strip_prefix(word)
                .is_some_and(|rest| rest.bytes().next().is_none_or(|b| b == b'\r' || ends_word(b)))
        })
    }

    /// Commands up to the end, a closing parenthesis, `;;` or a closing word.
    pub(super) fn list(&mut self) -> Script {
        let mut script = Script::default();
        loop {
            self.separators();
            if self.at_end()
                || matches!(self.peek(), Some(b')'))
                || self.looking_at(";;")
                || self.looking_at(";&")
            {
                return script;
            }
            if self.reserved().is_some_and(|word| CLOSING.contains(&word)) {
                return script;
            }
            let before = self.at;
            if let Some(node) = self.linked() {
                self.blanks();
                let background = self.peek() == Some(b'&') && self.peek_at(1) != Some(b'&');
                script.nodes.push(if background { Node::Background(Box::new(node)) } else { node });
            }
            if self.at == before {
                self.fail("a sign that no command begins with");
                self.next();
            }
        }
    }

    /// Steps over what stands between commands.
    fn separators(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline(),
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.at += 1,
                Some(b'&') if !matches!(self.peek_at(1), Some(b'&' | b'>')) => self.at += 1,
                _ => return,
            }
        }
    }

    /// Steps over newlines in front of a command that must come.
    fn newlines(&mut self) {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.newline();
            self.blanks();
        }
    }

    /// Commands joined by `&&` and `||`.
    fn linked(&mut self) -> Option<Node> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let link = if self.take("&&") {
                Link::And
            } else if self.take("||") {
                Link::Or
            } else {
                break;
            };
            self.newlines();
            match self.pipeline() {
                Some(node) => rest.push((link, node)),
                None => self.fail("a command is missing"),
            }
        }
        Some(if rest.is_empty() { first } else { Node::Linked { first: Box::new(first), rest } })
    }

    fn pipeline(&mut self) -> Option<Node> {
        let mut nodes: Vec<Node> = self.command().into_iter().collect();
        loop {
            self.blanks();
            if nodes.is_empty() || self.looking_at("||") || !self.take("|") {
                break;
            }
            self.take("&");
            self.newlines();
            let Some(node) = self.command() else {
                self.fail("a command is missing");
                break;
            };
            nodes.push(node);
        }
        if nodes.len() > 1 { Some(Node::Pipeline(nodes)) } else { nodes.pop() }
    }

    fn command(&mut self) -> Option<Node> {
        loop {
            self.blanks();
            match self.reserved() {
                Some(word @ ("!" | "coproc")) => self.at += word.len(),
                _ => break,
            }
        }
        if self.looking_at("((") && self.is_arithmetic(2) {
            self.at += 2;
            let inside = self.deeper(Self::arithmetic);
            return Some(
                self.with_redirections(Compound::Test(vec![Word { pieces: vec![Piece::Unknown(inside)] }])),
            );
        }
        if self.take("(") {
            let script = self.parenthesised();
            return Some(self.with_redirections(Compound::Subshell(script)));
        }
        let word = self.reserved().filter(|word| OPENING.contains(word) && (self.tests || *word != "[["));
        let Some(word) = word else { return self.simple() };
        self.at += word.len();
        let kind = self.deeper(|cursor| Some(cursor.compound(word)));
        Some(self.with_redirections(kind.unwrap_or(Compound::Test(Vec::new()))))
    }

    fn with_redirections(&mut self, kind: Compound) -> Node {
        let mut redirections: Vec<Redirection> = Vec::new();
        loop {
            self.blanks();
            match self.redirection() {
                Some(redirection) => redirections.push(redirection),
                None => return Node::Compound { kind, redirections },
            }
        }
    }

    fn compound(&mut self, word: &str) -> Compound {
        match word {
            "if" => self.branches(),
            "while" | "until" => {
                let condition = self.list();
                Compound::While { condition, body: self.round() }
            }
            "for" | "select" => self.counted(),
            "case" => self.case(),
            "function" => {
                self.blanks();
                let name = self.word().map(|word| literal(&word)).unwrap_or_default();
                self.blanks();
                if self.take("(") {
                    self.blanks();
                    self.take(")");
                }
                self.function(name)
            }
            "{" => {
                let script = self.list();
                self.expect("}");
                Compound::Group(script)
            }
            _ => self.test(),
        }
    }

    fn expect(&mut self, word: &'static str) -> bool {
        let there = self.reserved() == Some(word);
        if there {
            self.at += word.len();
        } else {
            self.fail("a closing word is missing");
        }
        there
    }

    fn branches(&mut self) -> Compound {
        let mut parts = vec![self.list()];
        loop {
            let Some(word @ ("then" | "elif" | "else")) = self.reserved() else {
                self.expect("fi");
                return Compound::If(parts);
            };
            self.at += word.len();
            parts.push(self.list());
        }
    }

    /// `do …; done`, or the braces that bash takes in their place.
    fn round(&mut self) -> Script {
        self.separators();
        let (open, close) = if self.reserved() == Some("{") { ("{", "}") } else { ("do", "done") };
        if !self.expect(open) {
            return Script::default();
        }
        let body = self.list();
        self.expect(close);
        body
    }

    fn counted(&mut self) -> Compound {
        self.blanks();
        if self.take("((") {
            let inside = self.arithmetic();
            let test = Compound::Test(vec![Word { pieces: vec![Piece::Unknown(inside)] }]);
            let condition = Script { nodes: vec![Node::Compound { kind: test, redirections: Vec::new() }] };
            return Compound::While { condition, body: self.round() };
        }
        let variable = self.word().map(|word| literal(&word)).unwrap_or_default();
        self.newlines();
        let has_values = self.looking_at("in") && self.peek_at(2).is_none_or(ends_word);
        let values = has_values.then(|| {
            self.at += 2;
            let mut values = Vec::new();
            loop {
                self.blanks();
                match self.word() {
                    Some(word) => values.push(word),
                    None => break values,
                }
            }
        });
        let body = self.round();
        Compound::For { variable, values, body }
    }

    fn case(&mut self) -> Compound {
        self.blanks();
        let subject = self.word().unwrap_or_default();
        self.newlines();
        if self.looking_at("in") && self.peek_at(2).is_none_or(ends_word) {
            self.at += 2;
        } else {
            self.fail("`in` is missing");
        }
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.at_end() || self.reserved() == Some("esac") {
                self.expect("esac");
                return Compound::Case { subject, arms };
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.extend(self.word());
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            if !self.take(")") {
                self.fail("a pattern without its closing parenthesis");
                let before = self.at;
                self.list();
                if self.at == before {
                    self.next();
                }
                continue;
            }
            let body = self.list();
            arms.push((patterns, body));
            for end in [";;&", ";;", ";&"] {
                if self.take(end) {
                    break;
                }
            }
        }
    }

    fn function(&mut self, name: String) -> Compound {
        self.newlines();
        let body = self.deeper(Self::command).unwrap_or(Node::Simple(Simple::default()));
        Compound::Function { name, body: Box::new(body) }
    }

    /// `[[ … ]]`, in which signs compare instead of redirecting.
    fn test(&mut self) -> Compound {
        let start = self.at;
        let mut words = Vec::new();
        loop {
            self.newlines();
            if self.at_end() {
                // A shell that knows no `[[` runs what follows; so it is read again, as commands.
                self.fail("`]]` is missing");
                self.tests = false;
                self.at = start;
                return Compound::Test(words);
            }
            match self.word() {
                Some(word) if matches!(word.pieces.as_slice(), [Piece::Bare(text)] if text == "]]") => {
                    return Compound::Test(words);
                }
                Some(word) => words.push(word),
                None => {
                    self.next();
                }
            }
        }
    }

    fn simple(&mut self) -> Option<Node> {
        let start = self.at;
        let mut simple = Simple::default();
        loop {
            self.blanks();
            if let Some(redirection) = self.redirection() {
                simple.redirections.push(redirection);
                continue;
            }
            let Some(word) = self.word() else { break };
            if simple.words.is_empty() {
                match assignment(word) {
                    Ok(assignment) => simple.assignments.push(assignment),
                    Err(word) => {
                        simple.words.push(word);
                        if self.begins_function() {
                            let name = literal(&simple.words[0]);
                            let kind = self.function(name);
                            return Some(Node::Compound { kind, redirections: Vec::new() });
                        }
                    }
                }
            } else {
                simple.words.push(word);
            }
        }
        if self.at == start
            || (simple.words.is_empty() && simple.assignments.is_empty() && simple.redirections.is_empty())
        {
            return None;
        }
        simple.text = cut(self.text[start..self.at].trim());
        Some(Node::Simple(simple))
    }

    /// Steps over `()` behind a name.
    fn begins_function(&mut self) -> bool {
        let before = self.at;
        self.blanks();
        if self.take("(") {
            self.blanks();
            if self.take(")") {
                return true;
            }
            self.at = before;
            self.blanks();
            self.fail("a parenthesis within a command");
        } else {
            self.at = before;
        }
        false
    }
}

/// The text, at most [`TEXT`] bytes of it.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let mut end = TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} more bytes)", &text[..end], text.len() - end)
}

/// The text of a word that has no expansions; what is unknown is left out.
fn literal(word: &Word) -> String {
    word.pieces
        .iter()
        .map(|piece| match piece {
            Piece::Bare(text) | Piece::Quoted(text) => text.as_str(),
            _ => "",
        })
        .collect()
}

/// Reads `NAME=…`, or gives the word back.
fn assignment(mut word: Word) -> Result<Assignment, Word> {
    let Some(Piece::Bare(text)) = word.pieces.first() else { return Err(word) };
    let Some((name, value)) = text.split_once('=') else { return Err(word) };
    let (name, added) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let (name, index) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
    let valid = name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if !valid {
        return Err(word);
    }
    let (name, value) = (name.to_owned(), value.to_owned());
    if value.is_empty() {
        word.pieces.remove(0);
    } else {
        word.pieces[0] = Piece::Bare(value);
    }
    Ok(Assignment { name, value: word, partial: added || index })
}
