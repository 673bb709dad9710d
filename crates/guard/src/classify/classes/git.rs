//! `git`: its own options, and which of its commands is called.

use super::super::arg::Arg;
use super::super::options::Options;

/// Options in front of git's command that take the next argument.
const GLOBAL: [&str; 6] =
    ["--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"];

/// A git command with its arguments.
pub(super) struct Git<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [Arg],
}

impl<'a> Git<'a> {
    /// Reads the arguments of a program that is git.
    pub(super) fn read(name: &str, args: &'a [Arg]) -> Option<Self> {
        if !matches!(name, "git" | "hub" | "jj-git") {
            return None;
        }
        let (_, at) = Options::leading(args, "Cc", &GLOBAL);
        let (command, args) = args[at..].split_first()?;
        Some(Self { command: &command.text, args })
    }
}

/// What an alias that is defined on the command line stands for.
pub(crate) enum Alias {
    /// A git command.
    Git(Vec<Arg>),
    /// A line for the shell.
    Shell(String),
}

/// The alias that is called, when `-c alias.NAME=…` defines it.
pub(crate) fn alias(args: &[Arg]) -> Option<Alias> {
    let (options, at) = Options::leading(args, "Cc", &GLOBAL);
    let (command, rest) = args[at..].split_first()?;
    let text = options.values(&["-c"]).find_map(|setting| {
        let (name, value) = setting.split_once('=')?;
        let alias = name.get(..6).filter(|start| start.eq_ignore_ascii_case("alias.")).map(|_| &name[6..])?;
        alias.eq_ignore_ascii_case(&command.text).then(|| value.to_owned())
    })?;
    if let Some(line) = text.strip_prefix('!') {
        let rest: Vec<&str> = rest.iter().map(|arg| arg.text.as_str()).collect();
        return Some(Alias::Shell(format!("{line} {}", rest.join(" "))));
    }
    // Without the definition, so that an alias of its own name ends.
    let mut command = vec![Arg::new("git")];
    command.extend(text.split_whitespace().map(|word| Arg::new(word.trim_matches(['"', '\'']))));
    command.extend_from_slice(rest);
    Some(Alias::Git(command))
}
