//! Pushes that overwrite or delete what a remote repository has.

use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::ForcePush;
use super::super::options::Options;
use super::git::Git;

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    if matches!(call.name, "hg" | "sl") && call.args.first().is_some_and(|arg| arg.is("push")) {
        let options = Options::read(call.args, "rBbe", &[]);
        if options.has(&["-f", "--force"]) {
            verdicts.push(Verdict::sure(ForcePush, "`--force` overwrites what the remote repository has"));
        }
    }
    let Some(git) = Git::read(call.name, call.args) else { return };
    if !matches!(git.command, "push" | "send-pack") {
        return;
    }
    let options = Options::read(git.args, "o", &["--push-option", "--repo", "--receive-pack", "--exec"]);
    if options.has(&["-n", "--dry-run"]) {
        return;
    }
    let why = if options.has(&["-f", "--force"]) {
        "`--force` overwrites what the remote repository has"
    } else if options.has_long("--force-with-lease", "--force-w".len()) {
        "`--force-with-lease` overwrites what the remote repository has"
    } else if options.has_long("--force-if-includes", "--force-i".len()) {
        "`--force-if-includes` goes with overwriting what the remote repository has"
    } else if options.has(&["-d"]) || options.has_long("--delete", "--de".len()) {
        "`--delete` deletes a branch or tag of the remote repository"
    } else if options.has_long("--mirror", "--m".len()) {
        "`--mirror` makes the remote repository the same as this one and deletes what is not here"
    } else if options.has_long("--prune", "--pru".len()) {
        "`--prune` deletes the branches of the remote repository that are not here"
    } else if options.operands.iter().any(|refspec| refspec.text.len() > 1 && refspec.starts_with("+")) {
        "the `+` in front of a refspec overwrites what the remote repository has"
    } else if options.operands.iter().any(|refspec| refspec.text.len() > 1 && refspec.starts_with(":")) {
        "a refspec with nothing in front of its colon deletes a branch or tag of the remote repository"
    } else {
        return;
    };
    verdicts.push(Verdict::sure(ForcePush, why));
}
