//! Crates that decide do no I/O, read no clock, draw no random number and start nothing.

use super::source::Source;

/// The crates whose whole source is pure.
pub(crate) const PURE: [&str; 4] = ["model", "forge", "guard", "render"];

/// Dependencies that a pure crate has no use for.
pub(crate) const IMPURE_CRATES: [&str; 20] = [
    "anstream",
    "fastrand",
    "getrandom",
    "ignore",
    "indicatif",
    "libc",
    "mio",
    "nix",
    "notify",
    "process-wrap",
    "rand",
    "reqwest",
    "rustix",
    "signal-hook",
    "tempfile",
    "tokio",
    "ureq",
    "uuid",
    "walkdir",
    "which",
];

/// What a pure crate's code never names.
const IMPURE_WORDS: [&str; 15] = [
    "std::fs",
    "std::net",
    "std::os::unix::net",
    "std::process",
    "std::env::",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "tokio::",
    "fastrand::",
];

/// Modules of the standard library, for `use std::{..}`.
const IMPURE_MODULES: [&str; 5] = ["fs", "net", "process", "env", "thread"];

pub(crate) fn check(source: &Source) -> Vec<String> {
    let pure = PURE.iter().any(|name| source.path.starts_with(&format!("crates/{name}/src/")));
    let test = source.path.ends_with("/tests.rs") || source.path.contains("/tests/");
    if !pure || test || !source.has_end("rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, code) in source.code() {
        let named = IMPURE_WORDS.iter().find(|word| has_word(code, word)).map(|word| (*word).to_owned());
        if let Some(word) = named.or_else(|| grouped(code)) {
            found.push(format!(
                "{}:{line}: `{word}` in a pure crate; take what it gives as an argument or an event",
                source.path
            ));
        }
    }
    found
}

/// Whether `code` names `word`, and not a longer path that begins so.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let next = code[at + word.len()..].chars().next();
        let before = code[..at].chars().next_back();
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (word.ends_with(':') || !next.is_some_and(inside)) && !before.is_some_and(inside)
    })
}

/// An impure module in a `use std::{..}` on one line.
fn grouped(code: &str) -> Option<String> {
    let group = code.trim_start().strip_prefix("use std::{")?;
    let mut modules = group.split([',', '{', '}', ';', ' ']);
    modules.find_map(|word| {
        let module = word.split("::").next().unwrap_or_default();
        IMPURE_MODULES.contains(&module).then(|| format!("std::{module}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(path: &str, line: &str, expected: Option<&str>) {
        let found = check(&Source { path: path.to_owned(), text: line.to_owned() });
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(word) => {
                assert!(found.len() == 1 && found[0].contains(&format!("`{word}`")), "{line}: {found:?}");
            }
        }
    }

    #[test]
    fn finds_what_is_not_pure() {
        let forge = "crates/forge/src/machine.rs";
        check_line(forge, "use std::fs;", Some("std::fs"));
        check_line(forge, "    let text = std::fs::read(path);", Some("std::fs"));
        check_line(forge, "let now = Instant::now();", Some("Instant::now"));
        check_line(forge, "let now = jiff::Timestamp::now();", Some("Timestamp::now"));
        check_line(forge, "use std::{fmt, process::Command};", Some("std::process"));
        check_line(forge, "use tokio::task;", Some("tokio::"));
        check_line(forge, "use std::{fmt, io};", None);
        check_line(forge, "use std::fsx;", None);
        check_line(forge, "let later = MyInstant::nowhere();", None);
        check_line(forge, "// never std::fs", None);
        check_line(forge, "#[cfg(test)]\nmod tests {\n    use std::fs;\n}", None);
        check_line("crates/model/src/spec/tests.rs", "use std::fs;", None);
        check_line("crates/model/tests/golden.rs", "use std::fs;", None);
        check_line("crates/store/src/file.rs", "use std::fs;", None);
    }
}
