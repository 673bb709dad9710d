//! Walks through a script in the order in which a shell would run it.

use super::allow::Allow;
use super::arg::{Arg, UNKNOWN};
use super::call::spot;
use super::expand::Expansion;
use super::feed::Feed;
use super::judgement::{Found, Irreversible, Judgement, Opaque, What};
use super::place::{Place, Spot};
use super::state::State;
use crate::parse::{Compound, Link, Node, Piece, Redirection, Script, Simple, Trouble, Word, parse};

/// Levels that are followed: of nesting, of scripts given as text, and of commands that start commands.
const LEVELS: usize = 120;

/// Judges a line, one command after the other.
pub(super) struct Judge<'a> {
    pub(super) place: &'a Place,
    pub(super) allow: &'a Allow,
    pub(super) judgement: Judgement,
    level: usize,
    /// Bytes of arguments that may still be put together for commands that start commands.
    budget: usize,
}

/// Bytes of arguments put together per line, over and above what its length allows.
const BUDGET: usize = 1 << 20;

/// Around a command: what it is told and what it is part of.
pub(super) struct Around<'a> {
    pub(super) state: &'a mut State,
    pub(super) feed: &'a Feed,
    /// The simple command as it was written.
    pub(super) text: &'a str,
    /// What is found is so, and does not hang on what only the shell knows.
    pub(super) sure: bool,
    /// A word of the command is put together from the network.
    pub(super) fetched: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(place: &'a Place, allow: &'a Allow) -> Self {
        Self { place, allow, judgement: Judgement::default(), level: 0, budget: BUDGET }
    }

    /// Goes one level deeper, unless it is too deep.
    pub(super) fn deeper(&mut self, what: &str, step: impl FnOnce(&mut Self)) {
        if self.level >= LEVELS {
            self.judgement.doubt(Opaque { what: What::Bounds, command: shown(what) });
            return;
        }
        self.level += 1;
        step(self);
        self.level -= 1;
    }

    /// Pays for arguments that are put together; false when a line asks for too many.
    pub(super) fn pays(&mut self, command: &[Arg], around: &Around<'_>) -> bool {
        let cost: usize = command.iter().map(|arg| arg.text.len() + 16).sum();
        let affordable = cost <= self.budget;
        self.budget = self.budget.saturating_sub(cost);
        if !affordable {
            self.doubt(What::Bounds, around);
        }
        affordable
    }

    /// Judges a text as a script.
    pub(super) fn line(&mut self, text: &str, state: &mut State, feed: &Feed) {
        self.deeper("a script", |judge| {
            let parsed = parse(text);
            if let Some(trouble) = &parsed.trouble {
                let what =
                    if matches!(trouble, Trouble::Syntax { .. }) { What::Syntax } else { What::Bounds };
                judge.judgement.doubt(Opaque { what, command: trouble.to_string() });
            }
            judge.script(&parsed.script, &parsed.heredocs, state, feed);
        });
    }

    fn script(&mut self, script: &Script, heredocs: &[Word], state: &mut State, feed: &Feed) {
        self.deeper("a nested command", |judge| {
            for node in &script.nodes {
                judge.node(node, heredocs, state, feed);
            }
        });
    }

    fn node(&mut self, node: &Node, heredocs: &[Word], state: &mut State, feed: &Feed) {
        match node {
            Node::Simple(simple) => self.simple(simple, heredocs, state, feed),
            Node::Pipeline(nodes) => {
                let mut feed = feed.clone();
                for node in nodes {
                    let mut own = state.clone();
                    let printed = self.printed(node, heredocs, state, &feed);
                    self.node(node, heredocs, &mut own, &feed);
                    feed = printed;
                }
            }
            Node::Background(node) => self.node(node, heredocs, &mut state.clone(), feed),
            Node::Linked { first, rest } => {
                let mut before = state.clone();
                self.node(first, heredocs, state, feed);
                for (link, node) in rest {
                    match link {
                        Link::And => {
                            before = state.clone();
                            self.node(node, heredocs, state, feed);
                        }
                        // What comes after `||` runs where the command in front of it failed, and so changed nothing.
                        Link::Or => {
                            let mut other = before.clone();
                            self.node(node, heredocs, &mut other, feed);
                            if other != before {
                                state.merge(&other);
                            }
                        }
                    }
                }
            }
            Node::Compound { kind, redirections } => {
                let own = self.redirections(redirections, heredocs, state, "");
                self.compound(kind, heredocs, state, own.as_ref().unwrap_or(feed));
            }
        }
    }

    fn compound(&mut self, kind: &Compound, heredocs: &[Word], state: &mut State, feed: &Feed) {
        match kind {
            Compound::Subshell(script) => self.script(script, heredocs, &mut state.clone(), feed),
            Compound::Group(script) => self.script(script, heredocs, state, feed),
            Compound::If(parts) => {
                let mut ends = Vec::new();
                for pair in parts.chunks(2) {
                    self.script(&pair[0], heredocs, state, feed);
                    if let Some(branch) = pair.get(1) {
                        let mut own = state.clone();
                        self.script(branch, heredocs, &mut own, feed);
                        ends.push(own);
                    }
                }
                for end in &ends {
                    state.merge(end);
                }
            }
            Compound::While { condition, body } => {
                self.script(condition, heredocs, state, feed);
                let mut own = state.clone();
                self.script(body, heredocs, &mut own, feed);
                state.merge(&own);
            }
            Compound::For { variable, values, body } => {
                let known = values.as_deref().map(|words| {
                    self.nested(words, heredocs, state);
                    Expansion { place: self.place, state }.words(words)
                });
                state.set(variable, known.unwrap_or_default());
                let mut own = state.clone();
                self.script(body, heredocs, &mut own, feed);
                state.merge(&own);
            }
            Compound::Case { subject, arms } => {
                self.nested(std::slice::from_ref(subject), heredocs, state);
                let before = state.clone();
                for (patterns, body) in arms {
                    self.nested(patterns, heredocs, state);
                    let mut own = before.clone();
                    self.script(body, heredocs, &mut own, feed);
                    state.merge(&own);
                }
            }
            Compound::Function { body, .. } => {
                let mut own = state.clone();
                own.set_arguments(&[]);
                self.deeper("a function", |judge| {
                    judge.node(body, heredocs, &mut own, &Feed::Terminal);
                });
            }
            Compound::Test(words) => self.nested(words, heredocs, state),
        }
    }

    fn simple(&mut self, simple: &Simple, heredocs: &[Word], state: &mut State, feed: &Feed) {
        self.nested(&simple.words, heredocs, state);
        for assignment in &simple.assignments {
            self.nested(std::slice::from_ref(&assignment.value), heredocs, state);
        }
        let own = self.redirections(&simple.redirections, heredocs, state, &simple.text);
        let command = Expansion { place: self.place, state }.words(&simple.words);
        if command.is_empty() {
            for assignment in &simple.assignments {
                let expansion = Expansion { place: self.place, state };
                let values = match assignment.value.pieces.as_slice() {
                    _ if assignment.partial => Vec::new(),
                    [Piece::Array(words)] => expansion.words(words),
                    _ => expansion.text(&assignment.value),
                };
                state.set(&assignment.name, values);
            }
        }
        let fetched = simple.words.iter().any(|word| holds_download(&word.pieces));
        let feed = own.as_ref().unwrap_or(feed);
        let mut around = Around { state, feed, text: &simple.text, sure: true, fetched };
        self.command(&command, &mut around);
    }

    /// Judges the commands within words, each in a shell of its own.
    fn nested(&mut self, words: &[Word], heredocs: &[Word], state: &State) {
        for word in words {
            for piece in &word.pieces {
                match piece {
                    Piece::Bare(_) | Piece::Quoted(_) => {}
                    Piece::Command { script, .. } | Piece::Process(script) => {
                        self.script(script, heredocs, &mut state.clone(), &Feed::Terminal);
                    }
                    Piece::Variable { inside, .. } | Piece::Unknown(inside) => {
                        for script in inside {
                            self.script(script, heredocs, &mut state.clone(), &Feed::Terminal);
                        }
                    }
                    Piece::Array(words) => self.nested(words, heredocs, state),
                }
            }
        }
    }

    /// Judges where output goes, and tells what comes in.
    fn redirections(
        &mut self,
        redirections: &[Redirection],
        heredocs: &[Word],
        state: &State,
        text: &str,
    ) -> Option<Feed> {
        let mut feed = None;
        for redirection in redirections {
            let word = match redirection {
                Redirection::Duplicate => continue,
                Redirection::Read(word)
                | Redirection::Write(word)
                | Redirection::Append(word)
                | Redirection::HereString(word) => word,
                Redirection::Heredoc(index) => match heredocs.get(*index) {
                    Some(word) => word,
                    None => continue,
                },
            };
            self.nested(std::slice::from_ref(word), heredocs, state);
            let args = Expansion { place: self.place, state }.text(word);
            match redirection {
                Redirection::Read(word) => {
                    feed = Some(match word.pieces.as_slice() {
                        [Piece::Process(_)] if holds_download(&word.pieces) => Feed::Download,
                        [Piece::Process(_)] => Feed::Program,
                        _ if args.iter().any(|arg| arg.is("/dev/null")) => Feed::Text(String::new()),
                        _ => Feed::File,
                    });
                }
                Redirection::HereString(_) | Redirection::Heredoc(_) => {
                    let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                    feed = Some(Feed::Text(texts.join("\n")));
                }
                Redirection::Write(_) => {
                    for arg in &args {
                        self.overwritten(arg, state, text);
                    }
                }
                Redirection::Append(_) | Redirection::Duplicate => {}
            }
        }
        feed
    }

    fn overwritten(&mut self, arg: &Arg, state: &State, text: &str) {
        if is_device(&arg.text) {
            return;
        }
        if let Spot::Outside(path) = spot(self.place, state, arg) {
            let command = if text.is_empty() { format!("> {}", arg.shown()) } else { shown(text) };
            let why = format!("its output replaces `{path}`");
            self.judgement.find(Found {
                class: Irreversible::OverwriteOutside,
                command,
                why,
                sure: arg.is_known(),
            });
        }
    }

    /// What a command prints for the next one in a pipe.
    fn printed(&self, node: &Node, heredocs: &[Word], state: &State, feed: &Feed) -> Feed {
        let Node::Simple(simple) = node else {
            return if fetches(node) || matches!(feed, Feed::Download) {
                Feed::Download
            } else {
                Feed::Program
            };
        };
        let command = Expansion { place: self.place, state }.words(&simple.words);
        let own = simple.redirections.iter().rev().find_map(|redirection| match redirection {
            Redirection::HereString(word) => Some(word),
            Redirection::Heredoc(index) => heredocs.get(*index),
            _ => None,
        });
        let own = own.map(|word| {
            let args = Expansion { place: self.place, state }.text(word);
            Feed::Text(args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join("\n"))
        });
        super::carriers::printed(&command, own.as_ref().unwrap_or(feed))
    }

    /// Adds what a class found.
    pub(super) fn found(&mut self, class: Irreversible, why: String, sure: bool, around: &Around<'_>) {
        let sure = sure && around.sure;
        self.judgement.find(Found { class, command: shown(around.text), why, sure });
    }

    /// Adds what could not be judged.
    pub(super) fn doubt(&mut self, what: What, around: &Around<'_>) {
        self.judgement.doubt(Opaque { what, command: shown(around.text) });
    }
}

/// A command for a person: with `…` for what is not known.
fn shown(text: &str) -> String {
    text.replace(UNKNOWN, "…")
}

/// Whether a command, or the first of a pipe, gets something from the network.
fn fetches(node: &Node) -> bool {
    match node {
        Node::Simple(simple) => simple.words.iter().take(3).any(|word| {
            matches!(word.pieces.as_slice(), [Piece::Bare(name)] if super::carriers::is_download(name))
        }),
        Node::Pipeline(nodes) => nodes.iter().any(fetches),
        Node::Linked { first, rest } => fetches(first) || rest.iter().any(|(_, node)| fetches(node)),
        Node::Background(node) => fetches(node),
        Node::Compound { kind: Compound::Subshell(script) | Compound::Group(script), .. } => {
            script.nodes.iter().any(fetches)
        }
        Node::Compound { .. } => false,
    }
}

/// Whether a part of a word is what a download prints.
fn holds_download(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Command { script, .. } | Piece::Process(script) => script.nodes.iter().any(fetches),
        _ => false,
    })
}

/// Devices that lose nothing when they are written to.
pub(super) fn is_device(path: &str) -> bool {
    const FREE: [&str; 8] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/stdin",
        "/dev/ptmx",
    ];
    FREE.contains(&path)
        || path.starts_with("/dev/fd/")
        || path.starts_with("/proc/self/fd/")
        || path.starts_with("/dev/tcp/")
}
