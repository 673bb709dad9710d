//! Shells that run a text, a file, or what they are fed.

use super::arg::{Arg, UNKNOWN};
use super::expand::PIPE;
use super::feed::Feed;
use super::judgement::What;
use super::state::State;
use super::walk::{Around, Judge};

const SHELLS: [&str; 11] =
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash", "fish", "csh", "tcsh"];

/// Judges what a shell is given to run; false when `name` is no shell.
pub(super) fn run(judge: &mut Judge<'_>, name: &str, args: &[Arg], around: &mut Around<'_>) -> bool {
    if !SHELLS.contains(&name) {
        return false;
    }
    let mut state = around.state.child();
    let mut text_follows = false;
    let mut stdin = false;
    let mut index = 0;
    while let Some(arg) = args.get(index) {
        index += 1;
        let text = arg.text.as_str();
        match text {
            "--" | "-" => break,
            "--command" => text_follows = true,
            "--rcfile" | "--init-file" => index += 1,
            "--version" | "--help" => return true,
            _ if text.starts_with("--") => {}
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                let letters = &text[1..];
                text_follows |= letters.contains('c');
                stdin |= letters.contains('s');
                index += usize::from(letters.ends_with(['o', 'O']));
            }
            _ => {
                index -= 1;
                break;
            }
        }
    }
    match args.get(index) {
        Some(text) if text_follows => {
            // The first word behind the text is `$0`.
            let rest = args.get(index + 1..).unwrap_or_default();
            if let Some((zero, rest)) = rest.split_first() {
                state.set_arguments(rest);
                state.set("0", vec![zero.clone()]);
            }
            given(judge, &text.text, &mut state, around);
        }
        Some(file) if !stdin => {
            if file.is(PIPE) {
                let what = if around.fetched { What::Download } else { What::Piped };
                judge.doubt(what, around);
            } else if file.is("/dev/stdin") {
                from_feed(judge, &mut state, around);
            } else {
                judge.doubt(What::ScriptFile, around);
            }
        }
        _ => from_feed(judge, &mut state, around),
    }
    true
}

/// Judges a script given as text.
pub(super) fn given(judge: &mut Judge<'_>, text: &str, state: &mut State, around: &Around<'_>) {
    if text.contains(UNKNOWN)
        && (around.fetched || text.trim().chars().all(|c| c == UNKNOWN || c.is_whitespace()))
    {
        judge.doubt(if around.fetched { What::Download } else { What::NotLiteral }, around);
        if around.fetched {
            return;
        }
    }
    if text.chars().all(|c| c == UNKNOWN || c.is_whitespace()) {
        return;
    }
    judge.nested_line(text, state, around);
}

/// Judges what a shell finds on its standard input.
pub(super) fn from_feed(judge: &mut Judge<'_>, state: &mut State, around: &Around<'_>) {
    match around.feed {
        Feed::Terminal => {}
        Feed::Text(text) => given(judge, text, state, around),
        Feed::Download => judge.doubt(What::Download, around),
        Feed::Paths(_) | Feed::Program => judge.doubt(What::Piped, around),
        Feed::File => judge.doubt(What::ScriptFile, around),
    }
}

impl Judge<'_> {
    /// A script within a command: what it finds is as sure as the command is.
    pub(super) fn nested_line(&mut self, text: &str, state: &mut State, around: &Around<'_>) {
        let before = self.judgement.findings.len();
        self.line(text, state, &Feed::Terminal);
        if !around.sure {
            for found in &mut self.judgement.findings[before..] {
                found.sure = false;
            }
        }
    }
}
