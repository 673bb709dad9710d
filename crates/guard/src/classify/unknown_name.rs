//! A command whose name is an expansion: judged by what follows it.

use super::arg::{Arg, UNKNOWN};
use super::judgement::What;
use super::walk::{Around, Judge};

/// Programs whose arguments are telling enough without their name.
const GUESSES: [&str; 4] = ["rm", "git", "npm", "terraform"];

/// Judges `$NAME args`: as the program that the variable is named after, as one of the programs whose arguments say
/// enough, and as something in front of a command.
pub(super) fn judge(judge: &mut Judge<'_>, first: &Arg, args: &[Arg], around: &mut Around<'_>) {
    let before = judge.judgement.findings.len();
    let hint = first.variable.as_deref().map(str::to_lowercase);
    let hint = hint.as_deref().map(|name| name.trim_end_matches("_bin").trim_end_matches("_cmd"));
    let sure = std::mem::replace(&mut around.sure, false);
    for name in GUESSES.into_iter().filter(|guess| Some(*guess) != hint).chain(hint) {
        if name == "rm" && hint != Some("rm") && !is_deletion(args) {
            continue;
        }
        judge.classes(name, args, around);
        if judge.judgement.findings.len() > before {
            break;
        }
    }
    if judge.judgement.findings.len() == before
        && !args.is_empty()
        && args[0].text.starts_with(|c| c != '-' && c != UNKNOWN)
    {
        // What the guess cannot read is no more opaque than the name itself.
        let opaque = judge.judgement.opaque.clone();
        judge.command(args, around);
        judge.judgement.opaque = opaque;
    }
    around.sure = sure;
    if judge.judgement.findings.len() == before {
        let what = if around.fetched { What::Download } else { What::NotLiteral };
        judge.doubt(what, around);
    }
}

/// Whether the arguments say both "recursively" and "without asking", as hardly another program's do.
fn is_deletion(args: &[Arg]) -> bool {
    let short = |letters: &[char]| {
        args.iter().any(|arg| {
            arg.is_option()
                && arg.text[1..].chars().all(|c| "rRfvidI".contains(c))
                && arg.text[1..].contains(letters)
        })
    };
    let long = |full: &str| args.iter().any(|arg| arg.is(full));
    (short(&['r', 'R']) || long("--recursive")) && (short(&['f']) || long("--force"))
}
