//! What was done so far, by the executor's own record: what a digest is made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use triphammer_model::ClaimKind;

use super::shown;

/// Files that a digest names.
const FILES: usize = 100;
/// Commands that a digest shows, the newest ones.
const COMMANDS: usize = 20;
/// Bytes of a command or path in it.
const NAME: usize = 200;
/// Bytes of a command's last output in it.
const OUTPUT: usize = 400;
/// Bytes of the model's last words in it.
const WORDS: usize = 2_000;

/// A command that was run.
#[derive(Clone, Debug)]
struct Command {
    line: String,
    end: String,
    /// The end of what it printed, where it failed.
    output: String,
}

/// The record.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    files: BTreeMap<String, ClaimKind>,
    commands: Vec<Command>,
    /// Commands that are not kept any more.
    earlier: u64,
    words: String,
}

impl Ledger {
    pub(super) fn file(&mut self, path: &str, change: ClaimKind) {
        self.files.entry(path.to_owned()).or_insert(change);
    }

    pub(super) fn command(&mut self, line: &str, end: &str, output: &str, ok: bool) {
        let output = if ok { "" } else { tail(output.trim(), OUTPUT) };
        let (line, end, output) = (shown::head(line, NAME), end.to_owned(), output.to_owned());
        self.commands.push(Command { line, end, output });
        if self.commands.len() > COMMANDS {
            self.commands.remove(0);
            self.earlier += 1;
        }
    }

    pub(super) fn says(&mut self, words: &str) {
        if !words.trim().is_empty() {
            self.words = shown::head(words.trim(), WORDS);
        }
    }

    /// The record in words, bounded, what is of use longest first; empty where nothing was done.
    pub(super) fn digest(&self) -> String {
        let mut text = String::new();
        if !self.words.is_empty() {
            let _ = writeln!(text, "Last said:\n{}", self.words);
        }
        if !self.commands.is_empty() {
            text.push_str("Commands run, the newest first:\n");
            for command in self.commands.iter().rev() {
                let _ = writeln!(text, "- `{}`: {}", command.line, command.end);
                for line in command.output.lines() {
                    let _ = writeln!(text, "    {line}");
                }
            }
            if self.earlier > 0 {
                let _ = writeln!(text, "[{} earlier ones are left out]", self.earlier);
            }
        }
        if !self.files.is_empty() {
            text.push_str("Files written:\n");
            for (path, change) in self.files.iter().take(FILES) {
                let change = if *change == ClaimKind::Added { "new" } else { "changed" };
                let _ = writeln!(text, "- {} ({change})", shown::head(path, NAME));
            }
            if self.files.len() > FILES {
                let _ = writeln!(
                    text,
                    "[{} of {} files are left out]",
                    self.files.len() - FILES,
                    self.files.len()
                );
            }
        }
        text
    }
}

fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_bounded_and_counts() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.digest(), "");
        ledger.file("b.rs", ClaimKind::Added);
        ledger.file("b.rs", ClaimKind::Changed);
        ledger.command("make", "exit 2", "first\nüber error\n", false);
        ledger.command("true", "exit 0", "noise", true);
        ledger.says("I will fix it.");
        assert_eq!(
            ledger.digest(),
            "Last said:\nI will fix it.\nCommands run, the newest first:\n- `true`: exit 0\n- `make`: exit 2\n    first\n    \
             über error\nFiles written:\n- b.rs (new)\n"
        );
        for i in 0..300 {
            ledger.file(&format!("{i}{}", "x".repeat(500)), ClaimKind::Changed);
            ledger.command(&"c".repeat(10_000), "exit 1", &"ü".repeat(10_000), false);
        }
        ledger.says(&"w".repeat(100_000));
        let digest = ledger.digest();
        assert!(digest.len() < 50_000, "{}", digest.len());
        assert!(
            digest.contains("[201 of 301 files are left out]")
                && digest.contains("[282 earlier ones are left out]")
        );
    }
}
