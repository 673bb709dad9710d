//! Tools with subcommands, as tables.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible;
use super::super::options::{begins, has_flag};

/// A row: which tools, which subcommands of them, which option makes it matter, and which option lets it through.
pub(super) struct Rule {
    /// Names of tools, apart by blanks.
    pub(super) tools: &'static str,
    /// Subcommands, apart by `|`; `*` stands for any word.
    pub(super) verbs: &'static str,
    /// Options of which one must be there, apart by blanks; none when empty.
    pub(super) needs: &'static str,
    /// Options that let it through besides `--dry-run` and `--help`.
    pub(super) lets: &'static str,
}

/// A row for subcommands that matter with all options.
pub(super) const fn rule(tools: &'static str, verbs: &'static str) -> Rule {
    Rule { tools, verbs, needs: "", lets: "" }
}

/// Options that let a command through whatever the tool.
const HARMLESS: [&str; 3] = ["--dry-run", "--dryrun", "--help"];

/// Adds a verdict for the first row that fits.
pub(super) fn judge(rules: &[Rule], class: Irreversible, call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    let mut fits = rules.iter().filter(|rule| rule.tools.split(' ').any(|tool| tool == call.name));
    if let Some(verb) = fits.find_map(|rule| rule.verb(call.args)) {
        let command = format!("{} {verb}", call.name);
        verdicts.push(Verdict::sure(class, format!("`{}` {}", command.trim_end(), does(class))));
    }
}

fn does(class: Irreversible) -> &'static str {
    match class {
        Irreversible::Publish => "publishes, or takes back what was published",
        Irreversible::DataLoss => "drops stored data",
        Irreversible::Machine => "takes the machine or a service down",
        _ => "changes or takes down what runs for others",
    }
}

impl Rule {
    fn verb(&self, args: &[Arg]) -> Option<&'static str> {
        let lets = self.lets.split(' ').filter(|flag| !flag.is_empty());
        if HARMLESS.into_iter().chain(lets).any(|flag| has_flag(args, flag)) {
            return None;
        }
        if !self.needs.is_empty() && !self.needs.split(' ').any(|flag| has_flag(args, flag)) {
            return None;
        }
        self.verbs.split('|').find(|verb| {
            let words: Vec<&str> = verb.split(' ').filter(|word| !word.is_empty()).collect();
            begins(args, &words)
        })
    }
}
