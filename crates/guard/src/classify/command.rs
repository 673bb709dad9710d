//! A simple command: unwrapped until the program is found that does the work.

use super::arg::Arg;
use super::call::{Call, spot};
use super::classes;
use super::feed::Feed;
use super::judgement::What;
use super::options::has_flag;
use super::place::{Spot, directory};
use super::walk::{Around, Judge};
use super::{builtins, carriers, shells, unknown_name, wrappers};

/// A program's name without its folder, its version and what Windows puts behind it.
pub(super) fn base(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    match name.split_once('@') {
        Some((before, _)) if !before.is_empty() => before,
        _ => name,
    }
}

/// Programs around a program that are taken off.
pub(super) const WRAPPED: usize = 64;

/// Programs that start a shell when they are given no program.
const ROOTS: [&str; 7] = ["sudo", "doas", "pkexec", "run0", "chroot", "unshare", "nsenter"];

/// Programs that run a program text given as an argument or on standard input, with the options that hold it.
const LANGUAGES: [(&str, &[&str]); 9] = [
    ("python", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-i"]),
    ("ruby", &["-e"]),
    ("php", &["-r"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval"]),
    ("lua", &["-e"]),
    ("osascript", &["-e"]),
];

impl Judge<'_> {
    /// Judges a command with its arguments.
    pub(super) fn command(&mut self, command: &[Arg], around: &mut Around<'_>) {
        let text = around.text.to_owned();
        self.deeper(&text, |judge| judge.unwrapped(command, around));
    }

    fn unwrapped(&mut self, command: &[Arg], around: &mut Around<'_>) {
        let mut command = command;
        for wrapped in 0.. {
            if wrapped == WRAPPED {
                return self.doubt(What::Bounds, around);
            }
            let Some((first, args)) = command.split_first() else { return };
            if self.allow.covers(command) {
                return;
            }
            let name = base(&first.text);
            if name.is_empty() || !Arg::new(name).is_known() {
                return unknown_name::judge(self, first, args, around);
            }
            match wrappers::unwrap(name, args) {
                Some(skipped) if skipped < args.len() => command = &args[skipped..],
                // `sudo -s`, `chroot /mnt`: without a program, a shell reads what is fed.
                Some(_) if ROOTS.contains(&name) => {
                    return shells::from_feed(self, &mut around.state.child(), around);
                }
                Some(_) => return,
                None => break,
            }
        }
        let Some((first, args)) = command.split_first() else { return };
        let name = base(&first.text).to_owned();
        if builtins::run(self, &name, args, around)
            || shells::run(self, &name, args, around)
            || carriers::run(self, &name, args, around)
        {
            return;
        }
        if name == "git"
            && let Some(alias) = classes::git::alias(args)
        {
            return self.alias(&alias, around);
        }
        self.opaque_program(&name, args, around);
        self.classes(&name, args, around);
    }

    /// Asks the classes about a program whose name is known.
    pub(super) fn classes(&mut self, name: &str, args: &[Arg], around: &Around<'_>) {
        let call = Call { name, args, place: self.place, state: around.state, feed: around.feed };
        for verdict in classes::judge(&call) {
            self.found(verdict.class, verdict.why, verdict.sure, around);
        }
    }

    fn alias(&mut self, alias: &classes::git::Alias, around: &mut Around<'_>) {
        match alias {
            classes::git::Alias::Git(command) => self.command(command, around),
            classes::git::Alias::Shell(line) => self.line(line, &mut around.state.clone(), around.feed),
        }
    }

    /// Programs in other languages, and files of statements.
    fn opaque_program(&mut self, name: &str, args: &[Arg], around: &Around<'_>) {
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if let Some((_, options)) = LANGUAGES.iter().find(|(language, _)| *language == plain) {
            let given = args.iter().any(|arg| options.contains(&arg.text.as_str()));
            let stdin = matches!(around.feed, Feed::Text(_) | Feed::Program | Feed::Download)
                && args.iter().all(|arg| arg.is("-") || arg.is_option());
            if given || stdin {
                let what = if matches!(around.feed, Feed::Download) && !given {
                    What::Download
                } else {
                    What::OtherLanguage
                };
                self.doubt(what, around);
            }
        }
        let file = classes::data::reads_file(name, args) || matches!(around.feed, Feed::File | Feed::Program);
        if classes::data::is_client(name) && file && !has_flag(args, "--help") {
            self.doubt(What::StatementFile, around);
        }
        if classes::data::is_unknown(name, args) {
            self.doubt(What::NotLiteral, around);
        }
    }

    /// The folder that an argument leads to, for a change of directory.
    pub(super) fn entered(&self, arg: &Arg, around: &Around<'_>) -> Option<String> {
        match spot(self.place, around.state, arg) {
            Spot::Unknown => None,
            _ => directory(around.state.cwd.as_deref(), arg),
        }
    }
}
