//! Recursive deletion of what is not the work's own.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict, spot};
use super::super::judgement::Irreversible::DeletionOutside;
use super::super::options::{Options, begins, has_flag};
use super::super::place::{Place, Spot};
use super::super::state::State;

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    match call.name {
        "rm" | "grm" | "srm" => {
            let options = Options::read(call.args, "", &[]);
            if options.has(&["-r", "-R"]) || options.has_long("--recursive", "--r".len()) {
                verdicts.extend(
                    options
                        .operands
                        .iter()
                        .filter_map(|path| target(call.place, call.state, path, "`rm -r`")),
                );
            }
        }
        "rsync" => rsync(call, verdicts),
        "rimraf" | "del-cli" | "trash" => {
            let options = Options::read(call.args, "", &[]);
            verdicts.extend(
                options.operands.iter().filter_map(|path| target(call.place, call.state, path, "it")),
            );
        }
        "trash-empty" => {
            verdicts.push(Verdict::sure(DeletionOutside, "it deletes what was kept to be brought back"));
        }
        "gio" if begins(call.args, &["trash"]) && has_flag(call.args, "--empty") => {
            verdicts.push(Verdict::sure(DeletionOutside, "it deletes what was kept to be brought back"));
        }
        "rclone"
            if ["purge", "delete", "sync"].iter().any(|verb| begins(call.args, &[verb]))
                && !has_flag(call.args, "--dry-run")
                && !has_flag(call.args, "-n") =>
        {
            verdicts.push(Verdict::sure(DeletionOutside, "it deletes files of a remote store"));
        }
        _ => {}
    }
}

/// What deleting all of `path` would mean; nothing where it is the work's own.
pub(crate) fn target(place: &Place, state: &State, path: &Arg, by: &str) -> Option<Verdict> {
    let shown = path.shown();
    let known = path.is_known() && !state.elsewhere;
    let (why, sure) = match spot(place, state, path) {
        _ if path.text.is_empty() => return None,
        Spot::Inside | Spot::Temporary => return None,
        Spot::Workspace => (format!("{by} of `{shown}` deletes the whole workspace"), true),
        Spot::Repository => (format!("{by} of `{shown}` deletes the workspace's repository"), true),
        Spot::Outside(found) if state.elsewhere => {
            (format!("{by} of `{found}` deletes on another machine or in a container"), false)
        }
        Spot::Outside(found) => {
            (format!("{by} of `{shown}` deletes `{found}`, which is outside of the workspace"), known)
        }
        Spot::Unknown => {
            (format!("{by} of `{shown}`: only the running shell knows what that deletes"), false)
        }
    };
    Some(Verdict { class: DeletionOutside, why, sure })
}

fn rsync(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    let deletes = call.args.iter().any(|arg| {
        arg.is("--del") || (arg.starts_with("--delete") && !arg.starts_with("--delete-missing-args"))
    });
    let options = Options::read(
        call.args,
        "efTBM",
        &["--rsh", "--exclude", "--include", "--filter", "--files-from", "--exclude-from"],
    );
    if !deletes || options.has(&["-n", "--dry-run"]) {
        return;
    }
    let Some(last) = options.operands.last() else { return };
    let remote = last.text.split('/').next().is_some_and(|host| host.contains(':'));
    if remote {
        let why = format!("`rsync --delete` deletes what `{}` has and the source has not", last.shown());
        verdicts.push(Verdict::sure(DeletionOutside, why));
    } else {
        verdicts.extend(target(call.place, call.state, last, "`rsync --delete`"));
    }
}
