//! Tells code, text and comments apart, byte for byte, in the languages that the shipped rules read.
//!
//! This is no parser: it knows how strings and comments begin and end and nothing else. That is what a rule needs
//! so that `todo!()` in a string or in a comment is no stub. Quotes themselves are code, so that a pattern can see
//! that a string stands there.

use triphammer_model::WorkPath;

/// A language that the masker knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Rust.
    Rust,
    /// Python.
    Python,
    /// JavaScript and its dialects.
    JavaScript,
    /// TypeScript and its dialects.
    TypeScript,
    /// Go.
    Go,
    /// Zig.
    Zig,
    /// POSIX shell and bash.
    Shell,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Rust, Self::Python, Self::JavaScript, Self::TypeScript, Self::Go, Self::Zig, Self::Shell];

    /// Its word in a pack.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Go => "go",
            Self::Zig => "zig",
            Self::Shell => "shell",
        }
    }

    /// The language with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| l.word() == word)
    }

    const fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["rs"],
            Self::Python => &["py", "pyi"],
            Self::JavaScript => &["js", "jsx", "mjs", "cjs"],
            Self::TypeScript => &["ts", "tsx", "mts", "cts"],
            Self::Go => &["go"],
            Self::Zig => &["zig"],
            Self::Shell => &["sh", "bash"],
        }
    }

    /// The language of a file, by its name's ending.
    pub fn of(path: &WorkPath) -> Option<Self> {
        let name = path.file_name();
        let dot = name.iter().rposition(|b| *b == b'.').filter(|i| *i > 0)?;
        let ending = std::str::from_utf8(&name[dot + 1..]).ok()?;
        Self::ALL.into_iter().find(|l| l.extensions().contains(&ending))
    }
}

/// What a byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Code, quotes included.
    Code,
    /// The inside of a string, character or pattern literal.
    Text,
    /// A comment, its marks included.
    Comment,
}

/// The source with every byte of another class blanked; length and line structure stay.
pub(crate) fn keep(source: &[u8], classes: &[Class], wanted: &[Class]) -> Vec<u8> {
    source
        .iter()
        .zip(classes)
        .map(|(b, c)| if wanted.contains(c) || matches!(b, b'\n' | b'\r') { *b } else { b' ' })
        .collect()
}

/// The class of every byte of `source`.
pub(crate) fn classify(language: Language, source: &[u8]) -> Vec<Class> {
    let mut scan = Scan { src: source, at: 0, out: Vec::with_capacity(source.len()), last: 0, word: 0..0 };
    match language {
        Language::Rust => scan.rust(),
        Language::Python => scan.python(),
        Language::JavaScript | Language::TypeScript => scan.javascript(),
        Language::Go => scan.go(),
        Language::Zig => scan.zig(),
        Language::Shell => scan.shell(),
    }
    scan.out.resize(source.len(), Class::Code);
    scan.out
}

struct Scan<'a> {
    src: &'a [u8],
    at: usize,
    out: Vec<Class>,
    /// The last code byte that is no white space.
    last: u8,
    /// Where the last word of code lies.
    word: std::ops::Range<usize>,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

impl Scan<'_> {
    fn done(&self) -> bool {
        self.at >= self.src.len()
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.src.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn sees(&self, text: &[u8]) -> bool {
        self.src[self.at.min(self.src.len())..].starts_with(text)
    }

    fn before(&self) -> u8 {
        self.at.checked_sub(1).map_or(b'\n', |i| self.src[i])
    }

    fn put(&mut self, count: usize, class: Class) {
        let end = (self.at + count).min(self.src.len());
        while self.at < end {
            let b = self.src[self.at];
            if class == Class::Code && !b.is_ascii_whitespace() {
                if is_word(b) {
                    let start = if self.word.end == self.at { self.word.start } else { self.at };
                    self.word = start..self.at + 1;
                }
                self.last = b;
            }
            self.out.push(class);
            self.at += 1;
        }
    }

    fn code(&mut self) {
        self.put(1, Class::Code);
    }

    /// A comment up to the end of the line.
    fn line_comment(&mut self) {
        while !self.done() && self.peek(0) != b'\n' {
            self.put(1, Class::Comment);
        }
    }

    fn block_comment(&mut self, nested: bool) {
        self.put(2, Class::Comment);
        let mut depth = 1;
        while !self.done() && depth > 0 {
            if self.sees(b"*/") {
                depth -= 1;
                self.put(2, Class::Comment);
            } else if nested && self.sees(b"/*") {
                depth += 1;
                self.put(2, Class::Comment);
            } else {
                self.put(1, Class::Comment);
            }
        }
    }

    /// A literal that opens here with `open` bytes and ends with `close`. Without `lines` it ends with the line
    /// at the latest, so that a stray quote spoils one line and not the file.
    fn literal(&mut self, open: usize, close: &[u8], escapes: bool, lines: bool) {
        self.put(open, Class::Code);
        while !self.done() {
            if self.sees(close) {
                self.put(close.len(), Class::Code);
                return;
            }
            if self.peek(0) == b'\n' && !lines {
                return;
            }
            if escapes && self.peek(0) == b'\\' {
                self.put(2, Class::Text);
            } else {
                self.put(1, Class::Text);
            }
        }
    }

    fn rust(&mut self) {
        while !self.done() {
            let b = self.peek(0);
            if self.sees(b"//") {
                self.line_comment();
            } else if self.sees(b"/*") {
                self.block_comment(true);
            } else if b == b'"' {
                self.literal(1, b"\"", true, true);
            } else if matches!(b, b'r' | b'b' | b'c') && !is_word(self.before()) {
                self.rust_prefixed();
            } else if b == b'\'' {
                self.rust_quote();
            } else {
                self.code();
            }
        }
    }

    /// `r"`, `r#"`, `br"`, `cr#"`, `b"`, `c"`, `b'`: or just a word that begins with such a letter.
    fn rust_prefixed(&mut self) {
        let mut n = usize::from(matches!(self.peek(0), b'b' | b'c'));
        let raw = self.peek(n) == b'r';
        n += usize::from(raw);
        let mut hashes = 0;
        while raw && self.peek(n + hashes) == b'#' {
            hashes += 1;
        }
        match self.peek(n + hashes) {
            b'"' if raw => {
                let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
                self.literal(n + hashes + 1, &close, false, true);
            }
            b'"' if n == 1 => self.literal(2, b"\"", true, true),
            b'\'' if n == 1 && self.peek(0) == b'b' => self.literal(2, b"'", true, false),
            _ => self.code(),
        }
    }

    /// A character literal or a lifetime.
    fn rust_quote(&mut self) {
        if self.peek(1) == b'\\' {
            self.literal(1, b"'", true, false);
            return;
        }
        // One character (of up to four bytes) and a quote.
        let width = match self.peek(1) {
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        if self.peek(1) != b'\n' && self.peek(1 + width) == b'\'' {
            self.put(1, Class::Code);
            self.put(width, Class::Text);
        }
        self.code();
    }

    fn python(&mut self) {
        while !self.done() {
            let b = self.peek(0);
            if b == b'#' {
                self.line_comment();
            } else if b == b'"' || b == b'\'' {
                // In a raw string a backslash still keeps the quote after it from ending the string.
                let triple = [b; 3];
                if self.sees(&triple) {
                    self.literal(3, &triple, true, true);
                } else {
                    self.literal(1, &[b], true, false);
                }
            } else {
                self.code();
            }
        }
    }

    fn go(&mut self) {
        while !self.done() {
            match self.peek(0) {
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'/' if self.peek(1) == b'*' => self.block_comment(false),
                b'"' => self.literal(1, b"\"", true, false),
                b'\'' => self.literal(1, b"'", true, false),
                b'`' => self.literal(1, b"`", false, true),
                _ => self.code(),
            }
        }
    }

    fn zig(&mut self) {
        while !self.done() {
            match self.peek(0) {
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'"' => self.literal(1, b"\"", true, false),
                b'\'' => self.literal(1, b"'", true, false),
                // A line of a multi-line string.
                b'\\' if self.peek(1) == b'\\' => self.literal(2, b"\n", false, false),
                _ => self.code(),
            }
        }
    }

    fn javascript(&mut self) {
        // Open braces within each template's `${`; the innermost last.
        let mut templates: Vec<u32> = Vec::new();
        while !self.done() {
            match self.peek(0) {
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'/' if self.peek(1) == b'*' => self.block_comment(false),
                b'/' if self.regex_may_begin() => self.javascript_regex(),
                b'#' if self.at == 0 && self.peek(1) == b'!' => self.line_comment(),
                b @ (b'"' | b'\'') => self.literal(1, &[b], true, false),
                b'`' => {
                    self.code();
                    self.template(&mut templates);
                }
                b'{' => {
                    if let Some(depth) = templates.last_mut() {
                        *depth += 1;
                    }
                    self.code();
                }
                b'}' => {
                    self.code();
                    match templates.last_mut() {
                        Some(0) => {
                            templates.pop();
                            self.template(&mut templates);
                        }
                        Some(depth) => *depth -= 1,
                        None => {}
                    }
                }
                _ => self.code(),
            }
        }
    }

    /// The text of a template up to its end or its next `${`.
    fn template(&mut self, templates: &mut Vec<u32>) {
        while !self.done() {
            match self.peek(0) {
                b'`' => {
                    self.code();
                    return;
                }
                b'$' if self.peek(1) == b'{' => {
                    self.put(2, Class::Code);
                    templates.push(0);
                    return;
                }
                b'\\' => self.put(2, Class::Text),
                _ => self.put(1, Class::Text),
            }
        }
    }

    /// Whether a slash here begins a pattern and does not divide. After a value it divides.
    fn regex_may_begin(&self) -> bool {
        if self.peek(1) == b'>' {
            return false; // the end of a JSX tag
        }
        if is_word(self.last) && self.word.end > 0 && self.src[self.word.end - 1] == self.last {
            let word = &self.src[self.word.clone()];
            return [
                &b"return"[..],
                b"typeof",
                b"case",
                b"in",
                b"of",
                b"delete",
                b"void",
                b"throw",
                b"new",
                b"else",
                b"do",
                b"yield",
                b"await",
            ]
            .contains(&word);
        }
        matches!(
            self.last,
            0 | b'('
                | b','
                | b'='
                | b':'
                | b'['
                | b'!'
                | b'&'
                | b'|'
                | b'?'
                | b'{'
                | b'}'
                | b';'
                | b'+'
                | b'-'
                | b'*'
                | b'%'
                | b'>'
                | b'~'
                | b'^'
        )
    }

    fn javascript_regex(&mut self) {
        // Only when it closes on its line; else it was a division after all.
        let line = &self.src[self.at + 1..];
        let mut in_set = false;
        let mut end = None;
        let mut i = 0;
        while i < line.len() && line[i] != b'\n' {
            match line[i] {
                b'\\' => i += 1,
                b'[' => in_set = true,
                b']' => in_set = false,
                b'/' if !in_set => {
                    end = Some(i);
                    break;
                }
                _ => {}
            }
            i += 1;
        }
        self.code();
        if let Some(end) = end {
            self.put(end, Class::Text);
            self.code();
        }
    }

    fn shell(&mut self) {
        // Heredocs announced on this line: delimiter, and whether leading tabs are stripped.
        let mut heredocs: Vec<(Vec<u8>, bool)> = Vec::new();
        while !self.done() {
            match self.peek(0) {
                b'\\' => self.put(2, Class::Code),
                b'#' if matches!(self.before(), b' ' | b'\t' | b'\n' | b';' | b'(' | b')' | b'&' | b'|') => {
                    self.line_comment();
                }
                b'\'' => {
                    let escapes = self.before() == b'$';
                    self.literal(1, b"'", escapes, true);
                }
                b'"' => self.literal(1, b"\"", true, true),
                b'<' if self.sees(b"<<<") => self.put(3, Class::Code),
                b'<' if self.sees(b"<<") => self.announce(&mut heredocs),
                b'\n' => {
                    self.code();
                    for (end, tabs) in std::mem::take(&mut heredocs) {
                        self.heredoc(&end, tabs);
                    }
                }
                _ => self.code(),
            }
        }
    }

    fn announce(&mut self, heredocs: &mut Vec<(Vec<u8>, bool)>) {
        self.put(2, Class::Code);
        let tabs = self.peek(0) == b'-';
        if tabs {
            self.code();
        }
        while matches!(self.peek(0), b' ' | b'\t') {
            self.code();
        }
        let mut name = Vec::new();
        while !self.done() {
            match self.peek(0) {
                b'\'' | b'"' | b'\\' => self.code(),
                b if is_word(b) || b == b'-' || b == b'.' => {
                    name.push(b);
                    self.code();
                }
                _ => break,
            }
        }
        // `1 << 2` in arithmetic announces nothing that a line could end.
        if name.first().is_some_and(|b| !b.is_ascii_digit()) {
            heredocs.push((name, tabs));
        }
    }

    fn heredoc(&mut self, end: &[u8], tabs: bool) {
        while !self.done() {
            let rest = &self.src[self.at..];
            let len = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            let mut line = rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]);
            while tabs && line.first() == Some(&b'\t') {
                line = &line[1..];
            }
            let over = line == end;
            let class = if over { Class::Code } else { Class::Text };
            self.put(len + 1, class);
            if over {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(language: Language, source: &str) -> String {
        let classes = classify(language, source.as_bytes());
        String::from_utf8_lossy(&keep(source.as_bytes(), &classes, &[Class::Code])).into_owned()
    }

    #[test]
    fn blanks_strings_and_comments_only() {
        use Language::{Go, JavaScript, Python, Rust, Shell, Zig};
        let cases = [
            (Rust, r#"a("x // y"); b // c"#, r#"a("      "); b     "#),
            (Rust, "/* a /* b */ c */ d", "                  d"),
            (Rust, r##"r#"a"b"# c"##, r##"r#"   "# c"##),
            (Rust, r#"br"\" c"#, r#"br" " c"#),
            (
                Rust,
                r"fn f<'a>(x: &'a str) { '\'' ; 'x'; b'y' }",
                r"fn f<'a>(x: &'a str) { '  ' ; ' '; b' ' }",
            ),
            (Rust, "r#type; 'ü'; 'static", "r#type; '  '; 'static"),
            (Rust, "var\"s\"", "var\" \""),
            (Python, "x = 'a' # b", "x = ' '    "),
            (Python, "'''a\n'b' # c''' d", "''' \n       ''' d"),
            (Python, r#"r"\" x" y"#, r#"r"    " y"#),
            (Python, "'a\nb", "' \nb"),
            (JavaScript, "`a ${b + `c${d}`} e` f", "`  ${b + ` ${d}`}  ` f"),
            (JavaScript, r#"x = /["'\/]/g; y"#, "x = /      /g; y"),
            (JavaScript, "a / b; c / 'd'", "a / b; c / ' '"),
            (JavaScript, "return /'/.test(x)", "return / /.test(x)"),
            (JavaScript, "<a href={b} /> </a>", "<a href={b} /> </a>"),
            (JavaScript, "{ `${ {a:1}.a }` }", "{ `${ {a:1}.a }` }"),
            (Go, "`a\n\"b` c // d", "` \n  ` c     "),
            (Zig, "x =\n  \\\\ a \"b\n  ; c", "x =\n  \\\\     \n  ; c"),
            (Shell, "a 'b # c' # d", "a '     '    "),
            (Shell, "cat <<'EOF' | x\na # b\nEOF\nc", "cat <<'EOF' | x\n     \nEOF\nc"),
            (Shell, "echo $# ${#x} \\# \"a # b\"", "echo $# ${#x} \\# \"     \""),
            (Shell, "cat <<-E\n\ta\n\tE\nb", "cat <<-E\n  \n\tE\nb"),
        ];
        for (language, source, want) in cases {
            assert_eq!(code(language, source), want, "{language:?}: {source}");
        }
    }

    #[test]
    fn finds_the_language() {
        for (path, word) in [
            ("a/b.rs", Some("rust")),
            ("x.test.tsx", Some("typescript")),
            ("x.mjs", Some("javascript")),
            (".sh", None),
            ("Makefile", None),
        ] {
            assert_eq!(Language::of(&path.into()).map(Language::word), word, "{path}");
        }
    }

    proptest! {
        #[test]
        fn keeps_length_and_lines(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\"".to_owned()), Just("'".to_owned()), Just("`".to_owned()), Just("\\".to_owned()),
                    Just("\n".to_owned()), Just("//".to_owned()), Just("/*".to_owned()), Just("*/".to_owned()),
                    Just("#".to_owned()), Just("r#\"".to_owned()), Just("${".to_owned()), Just("}".to_owned()),
                    Just("<<E".to_owned()), Just("/".to_owned()), "\\PC{0,3}",
                ],
                0..40,
            ),
            which in 0usize..7,
        ) {
            let source = parts.concat().into_bytes();
            let classes = classify(Language::ALL[which], &source);
            prop_assert_eq!(classes.len(), source.len());
            let lines = |b: &[u8]| b.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect::<Vec<_>>();
            for wanted in [Class::Code, Class::Text, Class::Comment] {
                let kept = keep(&source, &classes, &[wanted]);
                prop_assert_eq!(kept.len(), source.len());
                prop_assert_eq!(lines(&kept), lines(&source));
            }
        }
    }
}
