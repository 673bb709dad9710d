//! Commands that throw away work in the local repository.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::LostWork;
use super::super::options::Options;
use super::super::place::Spot;
use super::git::Git;

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    if call.name == "git-filter-repo" || call.name == "bfg" {
        verdicts.push(Verdict::sure(LostWork, "it rewrites the whole history"));
    }
    let Some(git) = Git::read(call.name, call.args) else { return };
    if let Some(why) = why(call, &git) {
        verdicts.push(Verdict::sure(LostWork, why));
    }
}

fn why(call: &Call<'_>, git: &Git<'_>) -> Option<&'static str> {
    let args = git.args;
    let short = match git.command {
        "clean" => "e",
        "checkout" | "switch" => "bBcC",
        "restore" => "s",
        "stash" => "m",
        "branch" => "u",
        _ => "",
    };
    let options = Options::read(args, short, &["--source", "--exclude", "--message", "--pathspec-from-file"]);
    let verb = |word: &str| options.operands.first().is_some_and(|arg| arg.is(word));
    let everything = || options.operands.iter().any(|path| is_everything(call, path));
    match git.command {
        "reset" if options.has_long("--hard", "--ha".len()) => {
            Some("`reset --hard` drops all changes that are not committed")
        }
        "checkout" if options.has(&["-f"]) || options.has_long("--force", "--fo".len()) => {
            Some("`checkout --force` drops all changes that are not committed")
        }
        "checkout" if everything() && !options.has(&["-b", "-B"]) => {
            Some("`checkout` of all paths drops their changes that are not committed")
        }
        "switch"
            if options.has(&["-f", "--discard-changes"]) || options.has_long("--force", "--force".len()) =>
        {
            Some("`switch --discard-changes` drops all changes that are not committed")
        }
        "restore" if everything() && !only_index(&options) => {
            Some("`restore` of all paths drops their changes that are not committed")
        }
        "clean" if options.has(&["-n", "--dry-run"]) => None,
        "clean" if options.has(&["-f"]) || options.has_long("--force", "--f".len()) => {
            Some("`clean` deletes files that no commit holds")
        }
        "stash" if verb("drop") => Some("`stash drop` deletes work that was put aside"),
        "stash" if verb("clear") => Some("`stash clear` deletes all work that was put aside"),
        "branch" if options.has(&["-D"]) => {
            Some("`branch -D` deletes a branch even where its commits are nowhere else")
        }
        "branch" if options.has(&["-d", "--delete"]) && options.has(&["-f", "--force"]) => {
            Some("`branch --delete --force` deletes a branch even where its commits are nowhere else")
        }
        "reflog" if verb("expire") || verb("delete") => (!options.has(&["-n", "--dry-run"]))
            .then_some("without the reflog, lost commits are not found again"),
        "gc" if options.values(&["--prune"]).any(|when| matches!(when, "now" | "all")) => {
            Some("`gc --prune=now` deletes commits that only the reflog knew")
        }
        "prune" if !options.has(&["-n", "--dry-run"]) => {
            Some("`prune` deletes commits that nothing refers to any more")
        }
        "update-ref" if options.has(&["-d"]) => Some("`update-ref -d` deletes a branch without a question"),
        "read-tree" if options.has(&["--reset"]) && options.has(&["-u"]) => {
            Some("`read-tree --reset -u` drops all changes that are not committed")
        }
        "filter-branch" | "filter-repo" => Some("it rewrites the whole history"),
        "worktree" if verb("remove") && options.has(&["-f", "--force"]) => {
            Some("`worktree remove --force` deletes a worktree with the changes in it")
        }
        _ => None,
    }
}

/// `--staged` alone leaves the files as they are.
fn only_index(options: &Options<'_>) -> bool {
    options.has(&["-S", "--staged"]) && !options.has(&["-W", "--worktree"])
}

/// Whether a pathspec means all there is.
fn is_everything(call: &Call<'_>, path: &Arg) -> bool {
    matches!(path.text.as_str(), "." | "./" | ":/" | ":/." | "*" | ":/*" | ":(top)" | "./*")
        || (path.text.contains('/') && path.is_known() && call.spot(path) == Spot::Workspace)
        || path.text.split('/').all(|part| part == "..")
}
