//! A line as a shell would read it: POSIX `sh`, and `bash` as far as it is written by hand.
//!
//! The parser never gives up what it has read: at a syntax error it notes the first [`Trouble`], goes on behind it
//! and keeps the commands on both sides. Nesting is bounded by [`DEPTH`] and length by [`LENGTH`].
//!
//! A NUL cannot be part of a command's arguments. In a line it stands for text that is not known, which is how a
//! script put together from expansions (`sh -c "rm -rf $DIR"`) is read again.

mod commands;
mod cursor;
mod escapes;
mod heredocs;
mod tree;
mod words;

pub use tree::{Assignment, Compound, Link, Node, Piece, Redirection, Script, Simple, Word};

use cursor::Cursor;

/// Levels of nesting that are read.
pub const DEPTH: usize = 50;

/// Bytes of a line that are read.
pub const LENGTH: usize = 1 << 20;

/// Bytes of a simple command that are kept as its text.
pub const TEXT: usize = 240;

/// A line, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Its commands.
    pub script: Script,
    /// The bodies of its heredocs.
    pub heredocs: Vec<Word>,
    /// What could not be read, where something could not.
    pub trouble: Option<Trouble>,
}

/// Why a line, or a part of it, could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No shell reads it either, or it is syntax beyond this parser.
    #[error("no shell syntax that is known here: {what} in line {line}")]
    Syntax {
        /// What was missing or too much.
        what: &'static str,
        /// Counted from 1; within a nested script, from its start.
        line: usize,
    },
    /// Nested too deeply.
    #[error("nested deeper than {DEPTH} levels")]
    Deep,
    /// Too long.
    #[error("longer than {LENGTH} bytes")]
    Long,
}

/// Reads a line.
pub fn parse(line: &str) -> Parsed {
    let mut rest = line.len().min(LENGTH);
    while !line.is_char_boundary(rest) {
        rest -= 1;
    }
    let mut cursor = Cursor::new(&line[..rest]);
    let script = cursor.whole();
    let trouble = if rest < line.len() { Some(Trouble::Long) } else { cursor.trouble };
    Parsed { script, heredocs: cursor.heredocs, trouble }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simple commands in the order of the text, their words apart by `|`.
    fn commands(script: &Script, out: &mut Vec<String>) {
        for node in &script.nodes {
            node_commands(node, out);
        }
    }

    fn node_commands(node: &Node, out: &mut Vec<String>) {
        match node {
            Node::Simple(simple) => {
                let mut words: Vec<String> = Vec::new();
                words.extend(simple.assignments.iter().map(|a| format!("{}={}", a.name, word(&a.value))));
                words.extend(simple.words.iter().map(word));
                out.push(words.join("|"));
                for word in simple.assignments.iter().map(|a| &a.value).chain(&simple.words) {
                    for script in words::scripts(word.pieces.clone()) {
                        commands(&script, out);
                    }
                }
            }
            Node::Pipeline(nodes) => nodes.iter().for_each(|node| node_commands(node, out)),
            Node::Linked { first, rest } => {
                node_commands(first, out);
                for (_, node) in rest {
                    node_commands(node, out);
                }
            }
            Node::Background(node) => node_commands(node, out),
            Node::Compound { kind, .. } => match kind {
                Compound::Subshell(script) | Compound::Group(script) => commands(script, out),
                Compound::If(parts) => parts.iter().for_each(|part| commands(part, out)),
                Compound::While { condition, body } => {
                    commands(condition, out);
                    commands(body, out);
                }
                Compound::For { body, .. } => commands(body, out),
                Compound::Case { arms, .. } => arms.iter().for_each(|(_, body)| commands(body, out)),
                Compound::Function { body, .. } => node_commands(body, out),
                Compound::Test(_) => {}
            },
        }
    }

    fn word(word: &Word) -> String {
        word.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Bare(text) | Piece::Quoted(text) => text.clone(),
                Piece::Variable { name, .. } => format!("${name}"),
                Piece::Command { .. } => "$()".to_owned(),
                Piece::Process(_) => "<()".to_owned(),
                Piece::Array(_) => "()".to_owned(),
                Piece::Unknown(_) => "?".to_owned(),
            })
            .collect()
    }

    fn check(line: &str, expected: &[&str]) {
        let parsed = parse(line);
        let mut found = Vec::new();
        commands(&parsed.script, &mut found);
        assert_eq!(found, expected, "{line}");
        assert_eq!(parsed.trouble, None, "{line}");
    }

    #[test]
    fn words_and_commands_are_those_of_a_shell() {
        for (line, expected) in [
            ("a b  c", &["a|b|c"][..]),
            ("a 'b c' \"d e\" f\\ g", &["a|b c|d e|f g"]),
            ("a \"b\\\"c\\d\\$e\\`\" '\\'", &["a|b\"c\\d$e`|\\"]),
            ("a''b\"\" '' \"\"", &["ab||"]),
            ("a $'b\\nc' $\"d\"", &["a|b\nc|d"]),
            ("a\\\nb \\\n c", &["ab|c"]),
            ("a #b\nc#d", &["a", "c#d"]),
            ("a;b&c&&d||e|f|&g", &["a", "b", "c", "d", "e", "f", "g"]),
            ("a>b 2>&1 <c >>d <>e >|f &>g 3<&- x", &["a|x"]),
            (">b a c", &["a|c"]),
            ("2 >b", &["2"]),
            ("2>b", &[""]),
            ("a 2>b", &["a"]),
            ("a b2>c", &["a|b2"]),
            ("X=1 Y= a Z=2", &["X=1|Y=|a|Z=2"]),
            ("X+=1 A[0]=2", &["X=1|A=2"]),
            ("A=(a b) c", &["A=()|c"]),
            ("1X=2 a", &["1X=2|a"]),
            ("a $b ${c} ${d:-e} ${f%.*} ${#g} ${!h} ${i[@]} $1 $@ $$ $", &["a|$b|$c|$d|?|?|?|$i|$1|$@|$$|$"]),
            ("a $(b $(c) d) `e \\`f\\``", &["a|$()|$()", "b|$()|d", "c", "e|$()", "f"]),
            ("a \"$(b \"c d\")\"", &["a|$()", "b|c d"]),
            ("a $((1 + (2))) $(( $(b) ))", &["a|?|?", "b"]),
            ("a $((b); c)", &["a|$()", "b", "c"]),
            ("a <(b) >(c)", &["a|<()|<()", "b", "c"]),
            ("(a; b) && { c; d; }", &["a", "b", "c", "d"]),
            ("if a; then b; elif c\nthen d; else e; fi", &["a", "b", "c", "d", "e"]),
            ("while a; do b; done; until c\ndo d\ndone", &["a", "b", "c", "d"]),
            ("for x in a b; do c; done", &["c"]),
            ("for x\ndo a; done; for ((;;)) { b; }", &["a", "b"]),
            ("case x in a|b) c;; (d) e;& *) f;;& g) esac", &["c", "e", "f"]),
            ("f() { a; }; function g { b; }; function h() (c)", &["a", "b", "c"]),
            ("! a; time b", &["a", "time|b"]),
            ("[[ a < b && c ]] && d", &["d"]),
            ("((a < b)) && c", &["c"]),
            ("echo if then { } fi", &["echo|if|then|{|}|fi"]),
            ("cat <<A <<-'B' x\n$(no) here\nA\n\tnor $(here)\n\tB\na", &["cat|x", "a"]),
            ("cat <<A; b\nA x\nA\nc", &["cat", "b", "c"]),
            ("x=$(cat <<A\na ) b\nA\n) c", &["x=$()|c", "cat"]),
            ("a <<<b c", &["a|c"]),
            ("a @(b|c) !(d) e+(f)", &["a|*|*|e*"]),
            ("é 'ü' \"ö\"", &["é|ü|ö"]),
            ("\0 a", &["?|a"]),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn trouble_names_its_line_and_keeps_the_rest() {
        let parsed = parse("a\nb )\nc");
        let mut found = Vec::new();
        commands(&parsed.script, &mut found);
        assert_eq!(found, ["a", "b", "c"]);
        let trouble = parsed.trouble.expect("a parenthesis too many");
        assert_eq!(
            trouble.to_string(),
            "no shell syntax that is known here: a closing word or sign without its opening one in line 2"
        );
    }
}
