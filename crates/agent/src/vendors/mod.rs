//! The agents that people know by name: how each is started, what it needs from the environment, where it keeps its
//! state. What its stream means is in [`crate::dialects`].

mod claude;
mod codex;
mod gemini;
mod mini;
mod opencode;
mod pi;
mod qwen;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use triphammer_model::config::VendorName;
use triphammer_model::{Redactor, Task};

use crate::heard::Heard;
use crate::stream::Dialect;

/// One try, as far as a command line depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The workspace.
    pub(crate) workspace: &'a Path,
    /// The model, where one is configured.
    pub(crate) model: Option<&'a str>,
    /// A session to go on with.
    pub(crate) session: Option<&'a str>,
    /// The prompt, for those that take it as an argument.
    pub(crate) prompt: &'a str,
    /// A private folder.
    pub(crate) scratch: &'a Path,
    /// Whether a write fence of ours holds it.
    pub(crate) fenced: bool,
}

/// How the prompt reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// On standard input.
    Stdin,
    /// In its arguments, at most 100 kB; a longer one is replaced by the path of the brief's file.
    Argument,
}

/// Where it says what it did.
#[derive(Clone, Copy)]
pub(crate) enum Speaks {
    /// As JSON lines on standard output.
    Stream(fn() -> Box<dyn Dialect>),
    /// In a file of this name in the private folder, written at its end.
    File(&'static str, fn(&[u8]) -> Heard),
}

/// Whether it could reach its model, by what can be seen without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// A key is in the environment under this name.
    Key(String),
    /// It has logged in: this file is there.
    File(PathBuf),
    /// Neither.
    Nothing,
}

/// A known agent.
pub struct Vendor {
    /// Its kind in the configuration, and its name where nothing else is configured.
    pub kind: &'static str,
    /// Its program.
    pub program: &'static str,
    /// How it is installed.
    pub install: &'static str,
    /// The version that it was seen with; what another one says may be understood only in part, which its receipts tell.
    pub seen: &'static str,
    /// Variables that may hold its key, the most specific one first.
    pub keys: &'static [&'static str],
    /// Further variables that it reads and that are passed on to it alone.
    pub reads: &'static [&'static str],
    /// Its state below the user's home folder: what it must be able to write; and the variable that names another place.
    pub(crate) state: &'static [(&'static str, &'static str)],
    /// What is set for it where a write fence holds it.
    pub(crate) sets_fenced: &'static [(&'static str, &'static str)],
    /// Files below the user's home folder that are there once it has logged in.
    pub logins: &'static [&'static str],
    /// Whether it can go on with a session.
    pub continues: bool,
    /// What is not known of it.
    pub unknowns: &'static [&'static str],
    pub(crate) sets: &'static [(&'static str, &'static str)],
    pub(crate) prompt: Prompt,
    pub(crate) speaks: Speaks,
    pub(crate) argv: fn(&Ask<'_>) -> Vec<OsString>,
    /// Where it keeps a record that tells more than its stream.
    pub(crate) record: Option<Record>,
}

/// Adds what an agent's own record tells to what was heard of it.
pub(crate) type Record = fn(&Task, &Redactor, &mut Heard);

impl std::fmt::Debug for Vendor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vendor").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Vendor {
    /// The agent of this name.
    pub const fn of(name: VendorName) -> &'static Self {
        match name {
            VendorName::Claude => &claude::CLAUDE,
            VendorName::Codex => &codex::CODEX,
            VendorName::Opencode => &opencode::OPENCODE,
            VendorName::Gemini => &gemini::GEMINI,
            VendorName::Qwen => &qwen::QWEN,
            VendorName::Pi => &pi::PI,
            VendorName::Mini => &mini::MINI,
        }
    }

    /// Where its state usually is, below the person's folder.
    pub fn state(&self) -> impl Iterator<Item = &'static str> {
        self.state.iter().map(|(usual, _)| *usual)
    }

    /// Whether a program of this name is it: by its own name, or as a server that brings it along (`claude-code-acp`).
    fn is_called(&self, program: &str) -> bool {
        let rest = program.strip_prefix(self.program);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('-') && rest.ends_with("-acp")))
    }

    /// Where its state is. `var` reads its environment.
    pub fn state_places(&self, var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
        let set = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = set("HOME");
        let mut places = Vec::new();
        for (usual, variable) in self.state {
            let moved = XDG.iter().find_map(|(folder, name)| {
                Some(set(name)?.join(usual.strip_prefix(folder)?.strip_prefix('/')?))
            });
            let usual = moved.or_else(|| Some(home.as_ref()?.join(usual)));
            places.extend(usual);
            places.extend(set(variable));
        }
        places
    }

    /// Whether it has a key or has logged in. `var` reads the environment; `home` is the user's home folder.
    pub fn login(&self, var: impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> Login {
        let set = |name: &&&str| var(name).is_some_and(|value| !value.is_empty());
        if let Some(name) = self.keys.iter().find(set) {
            return Login::Key((*name).to_owned());
        }
        let mut files = self.logins.iter().filter_map(|file| Some(home?.join(file)));
        files.find(|file| file.is_file()).map_or(Login::Nothing, Login::File)
    }
}

/// The folders below a person's that a variable can move.
const XDG: [(&str, &str); 4] = [
    (".local/share", "XDG_DATA_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".config", "XDG_CONFIG_HOME"),
    (".cache", "XDG_CACHE_HOME"),
];

/// The known agents whose programs are among the words of a command line.
pub fn named_in<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<&'static Vendor> {
    let programs: Vec<&str> =
        words.into_iter().filter_map(|word| Path::new(word).file_name()?.to_str()).collect();
    let vendors = VendorName::ALL.into_iter().map(Vendor::of);
    vendors.filter(|vendor| programs.iter().any(|program| vendor.is_called(program))).collect()
}

/// A variable of a task's environment.
fn variable<'a>(task: &'a Task, name: &str) -> Option<&'a OsStr> {
    task.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Arguments from words.
fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

/// `flag value`, where there is a value.
fn option(argv: &mut Vec<OsString>, flag: &str, value: Option<impl AsRef<OsStr>>) {
    if let Some(value) = value {
        argv.extend([flag.into(), value.as_ref().to_owned()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_where_the_variables_say() {
        let room = tempfile::tempdir().unwrap();
        let at = |path: &str| room.path().join(path);
        let var = |name: &str| match name {
            "HOME" => Some(at("home").into_os_string()),
            "XDG_DATA_HOME" => Some(at("data").into_os_string()),
            "XDG_STATE_HOME" => Some("relative".into()),
            "CLAUDE_CONFIG_DIR" => Some(at("cfg").into_os_string()),
            _ => None,
        };
        let places = Vendor::of(VendorName::Opencode).state_places(var);
        let expected =
            ["data/opencode", "home/.config/opencode", "home/.cache/opencode", "home/.local/state/opencode"];
        assert_eq!(places, expected.map(at));
        let places = Vendor::of(VendorName::Claude).state_places(var);
        assert_eq!(places, ["home/.claude", "cfg", "home/.claude.json"].map(at));
    }

    #[test]
    fn a_command_line_names_agents() {
        let kinds = |words: &[&str]| -> Vec<&str> {
            named_in(words.iter().copied()).iter().map(|vendor| vendor.kind).collect()
        };
        assert_eq!(kinds(&["/usr/bin/env", "claude", "-p"]), ["claude"]);
        assert_eq!(kinds(&["npx", "codex-acp"]), ["codex"]);
        assert_eq!(kinds(&["claude-code-acp"]), ["claude"]);
        assert_eq!(kinds(&["/opt/opencode", "acp"]), ["opencode"]);
        assert_eq!(kinds(&["sh", "-c", "pip", "minify", "claude-wrapper"]), [""; 0]);
    }
}
