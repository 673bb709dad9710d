//! Words to arguments, as far as they are known before the line runs.

use std::rc::Rc;

use super::arg::{Arg, UNKNOWN, joined};
use super::place::{Place, directory};
use super::state::State;
use crate::parse::{Node, Piece, Script, Word};

/// Arguments that the braces of a word may become; beyond, the word is not known.
const BRACES: usize = 64;

/// Characters of a word whose braces are expanded.
const LETTERS: usize = 4096;

/// A part of a word whose variables are looked up.
#[derive(Clone)]
enum Token {
    Bare(String),
    Quoted(String),
    Values { values: Rc<[Arg]>, quoted: bool },
    Unknown,
}

/// What a word is expanded with.
pub(super) struct Expansion<'a> {
    pub(super) place: &'a Place,
    pub(super) state: &'a State,
}

impl Expansion<'_> {
    /// The arguments that these words become.
    pub(super) fn words(&self, words: &[Word]) -> Vec<Arg> {
        words.iter().flat_map(|word| self.word(word)).collect()
    }

    /// The arguments that a word becomes.
    pub(super) fn word(&self, word: &Word) -> Vec<Arg> {
        if let [Piece::Array(words)] = word.pieces.as_slice() {
            return self.words(words);
        }
        let braces = word.pieces.iter().any(|piece| matches!(piece, Piece::Bare(text) if text.contains('{')));
        let tokens = self.tokens(word, braces);
        let mut words = Vec::new();
        if braces {
            let open =
                tokens.iter().filter(|token| matches!(token, Token::Bare(text) if text == "{")).count();
            if open > BRACES || tokens.len() > LETTERS || !expand_braces(&tokens, &mut words, 0) {
                words = vec![vec![Token::Unknown]];
            }
        } else {
            words.push(tokens);
        }
        let mut args: Vec<Arg> = words.iter().flat_map(|tokens| alternatives(tokens)).collect();
        if let ([Piece::Variable { name, .. }], [arg]) = (word.pieces.as_slice(), args.as_mut_slice())
            && !arg.is_known()
        {
            arg.variable = Some(name.clone());
        }
        args
    }

    /// A word as one text: no braces, no splitting (an assignment, a heredoc, a redirection's target).
    pub(super) fn text(&self, word: &Word) -> Vec<Arg> {
        if word.pieces.is_empty() {
            return vec![Arg::default()];
        }
        let tokens = self
            .tokens(word, false)
            .into_iter()
            .map(|token| match token {
                Token::Values { values, .. } => Token::Values { values, quoted: true },
                token => token,
            })
            .collect::<Vec<_>>();
        alternatives(&tokens)
    }

    fn tokens(&self, word: &Word, split: bool) -> Vec<Token> {
        let mut tokens = Vec::new();
        for (index, piece) in word.pieces.iter().enumerate() {
            match piece {
                Piece::Bare(text) => {
                    let (home, rest) = if index == 0 { self.tilde(text) } else { (None, text.as_str()) };
                    tokens.extend(home.map(Token::Quoted));
                    if split {
                        tokens.extend(rest.chars().map(|c| Token::Bare(c.to_string())));
                    } else {
                        tokens.push(Token::Bare(rest.to_owned()));
                    }
                }
                Piece::Quoted(text) => tokens.push(Token::Quoted(text.clone())),
                Piece::Variable { name, quoted, .. } => tokens.push(match self.variable(name) {
                    Some(values) if !values.is_empty() => Token::Values { values, quoted: *quoted },
                    _ => Token::Unknown,
                }),
                Piece::Command { script, quoted } => tokens.push(match self.output(script) {
                    Some(arg) => Token::Values { values: Rc::from([arg]), quoted: *quoted },
                    None => Token::Unknown,
                }),
                Piece::Process(_) => tokens.push(Token::Quoted(PIPE.to_owned())),
                Piece::Array(_) | Piece::Unknown(_) => tokens.push(Token::Unknown),
            }
        }
        tokens
    }

    /// A tilde's meaning, and the text behind it.
    fn tilde<'t>(&self, text: &'t str) -> (Option<String>, &'t str) {
        let Some(rest) = text.strip_prefix('~') else { return (None, text) };
        let end = rest.find('/').unwrap_or(rest.len());
        let home = match &rest[..end] {
            "" => self.home(),
            "+" => self.state.cwd.clone().unwrap_or(UNKNOWN.to_string()),
            "-" => self.state.previous.clone().unwrap_or(UNKNOWN.to_string()),
            user => format!("/~{user}"),
        };
        (Some(home), &rest[end..])
    }

    fn home(&self) -> String {
        if self.state.elsewhere {
            return "/~".to_owned();
        }
        self.place.home.clone().unwrap_or(UNKNOWN.to_string())
    }

    fn variable(&self, name: &str) -> Option<Rc<[Arg]>> {
        if let Some(values) = self.state.values(name) {
            return Some(values);
        }
        let value = match name {
            "HOME" => self.home(),
            "PWD" => self.state.cwd.clone()?,
            "OLDPWD" => self.state.previous.clone()?,
            "TMPDIR" => self.place.temp.clone(),
            "IFS" => " ".to_owned(),
            _ => return None,
        };
        Some(Rc::from([Arg::new(value)]))
    }

    /// What a command prints, for the few whose output is known beforehand.
    fn output(&self, script: &Script) -> Option<Arg> {
        let [Node::Simple(simple)] = script.nodes.as_slice() else { return None };
        let args = self.words(&simple.words);
        let (name, args) = args.split_first()?;
        let value = |flags: &[&str]| {
            args.iter()
                .zip(args.iter().skip(1))
                .find(|(flag, _)| flags.contains(&flag.text.as_str()))
                .map(|(_, v)| v)
        };
        match name.text.as_str() {
            "pwd" => Some(Arg::new(self.state.cwd.clone()?)),
            "echo" | "printf" if !args.iter().any(Arg::is_option) => {
                let args = if name.is("printf") && args.len() > 1 { args.get(1..)? } else { args };
                Some(Arg { glob: args.iter().any(|arg| arg.glob), ..Arg::new(joined(args)) })
            }
            "mktemp" => {
                let folder = value(&["-p", "--tmpdir"]).map(|arg| arg.text.clone());
                let template =
                    args.iter().filter(|arg| !arg.is_option()).find(|arg| Some(&arg.text) != folder.as_ref());
                let template = template.map_or("mktemp.XXXXXX", |arg| arg.text.as_str());
                let in_temp =
                    args.iter().any(|arg| arg.is("-t") || arg.starts_with("--tmpdir") || arg.is("-dt"));
                Some(match folder {
                    Some(folder) => Arg::new(format!("{folder}/{template}")),
                    None if in_temp || template == "mktemp.XXXXXX" => {
                        Arg::new(format!("{}/{template}", self.place.temp))
                    }
                    None => Arg::new(template),
                })
            }
            "realpath" | "readlink" => {
                let mut operands = args.iter().filter(|arg| !arg.is_option());
                let path = operands.next()?;
                Some(Arg::new(directory(self.state.cwd.as_deref(), path)?))
            }
            "which" | "type" | "command" | "whence" => args.iter().rfind(|arg| !arg.is_option()).cloned(),
            _ => None,
        }
    }
}

/// The name of a pipe to another process.
pub(super) const PIPE: &str = "/dev/fd/63";

/// Expands braces into `out`; false when there are too many.
fn expand_braces(tokens: &[Token], out: &mut Vec<Vec<Token>>, depth: usize) -> bool {
    let bare = |index: usize| match &tokens[index] {
        Token::Bare(text) => text.chars().next(),
        _ => None,
    };
    for open in (0..tokens.len()).filter(|index| bare(*index) == Some('{')) {
        let mut level = 0_usize;
        let mut cuts = vec![open];
        let mut close = None;
        for index in open..tokens.len() {
            match bare(index) {
                Some('{') => level += 1,
                Some('}') => level -= 1,
                Some(',') if level == 1 => cuts.push(index),
                _ => {}
            }
            if level == 0 {
                close = Some(index);
                break;
            }
        }
        let Some(close) = close else { continue };
        cuts.push(close);
        let dots = (open..close).any(|index| bare(index) == Some('.') && bare(index + 1) == Some('.'));
        if cuts.len() == 2 && !dots {
            continue;
        }
        if depth >= 8 {
            return false;
        }
        let between = |from: usize, to: usize| {
            if cuts.len() == 2 { vec![Token::Unknown] } else { tokens[from + 1..to].to_vec() }
        };
        for cut in cuts.windows(2) {
            let mut word = tokens[..open].to_vec();
            word.extend(between(cut[0], cut[1]));
            word.extend_from_slice(&tokens[close + 1..]);
            if !expand_braces(&word, out, depth + 1) {
                return false;
            }
        }
        return true;
    }
    out.push(tokens.to_vec());
    out.len() <= BRACES
}

/// The arguments of a word, once for each value of its first variable that has several.
fn alternatives(tokens: &[Token]) -> Vec<Arg> {
    let several =
        tokens.iter().position(|token| matches!(token, Token::Values { values, .. } if values.len() > 1));
    let Some(several) = several else { return fields(tokens) };
    let Token::Values { values, quoted } = &tokens[several] else { return fields(tokens) };
    let mut out = Vec::new();
    for value in values.iter() {
        let mut one = tokens.to_vec();
        one[several] = Token::Values { values: Rc::from([value.clone()]), quoted: *quoted };
        for token in &mut one[several + 1..] {
            if matches!(token, Token::Values { values, .. } if values.len() > 1) {
                *token = Token::Unknown;
            }
        }
        out.extend(fields(&one));
    }
    out
}

/// Puts a word's parts together, and apart again where an unquoted value has blanks.
fn fields(tokens: &[Token]) -> Vec<Arg> {
    let mut out = Vec::new();
    let mut arg = Arg::default();
    let mut begun = false;
    for token in tokens {
        match token {
            Token::Bare(text) => {
                arg.text.push_str(text);
                arg.glob |= text.contains(['*', '?', '[']);
                begun |= !text.is_empty();
            }
            Token::Quoted(text) => {
                arg.text.push_str(text);
                begun = true;
            }
            Token::Unknown => {
                arg.text.push(UNKNOWN);
                begun = true;
            }
            Token::Values { values, quoted } => {
                let Some(value) = values.first() else { continue };
                arg.glob |= value.glob;
                if *quoted {
                    arg.text.push_str(&value.text);
                    begun = true;
                    continue;
                }
                arg.glob |= value.text.contains(['*', '?', '[']);
                for (index, part) in value.text.split([' ', '\t', '\n']).enumerate() {
                    if index > 0 && begun {
                        out.push(std::mem::take(&mut arg));
                        begun = false;
                    }
                    arg.text.push_str(part);
                    arg.glob |= part.contains(['*', '?', '[']);
                    begun |= !part.is_empty();
                }
            }
        }
    }
    if begun {
        out.push(arg);
    }
    out
}
