//! Commands of the shell itself that change what comes after them.

use super::arg::{Arg, joined};
use super::feed::Feed;
use super::judgement::What;
use super::shells::given;
use super::walk::{Around, Judge};

/// Carries out what a builtin does to the state; false when `name` is none of them.
pub(super) fn run(judge: &mut Judge<'_>, name: &str, args: &[Arg], around: &mut Around<'_>) -> bool {
    match name {
        "cd" | "pushd" | "chdir" => cd(judge, args, around),
        "popd" => around.state.cwd = None,
        "export" | "declare" | "typeset" | "local" | "readonly" | "alias" => {
            for arg in args {
                let Some((variable, value)) = arg.text.split_once('=') else { continue };
                if name == "alias" {
                    judge.line(value, &mut around.state.clone(), &Feed::Terminal);
                } else {
                    around.state.set(variable, vec![Arg { glob: false, ..Arg::new(value) }]);
                }
            }
        }
        "unset" | "read" | "mapfile" | "readarray" | "getopts" => {
            let values = match around.feed {
                Feed::Paths(paths) if name == "read" => paths.clone(),
                _ => Vec::new(),
            };
            for arg in args.iter().filter(|arg| !arg.is_option()) {
                around.state.set(&arg.text, values.clone());
            }
        }
        "eval" => {
            let text = joined(args);
            let mut state = around.state.clone();
            given(judge, &text, &mut state, around);
            *around.state = state;
        }
        "set" => {
            if let Some(at) = args.iter().position(|arg| arg.is("--")) {
                around.state.set_arguments(&args[at + 1..]);
            }
        }
        "shift" => around.state.set_arguments(&[]),
        "trap" => {
            if let Some(arg) = args.iter().find(|arg| !arg.is_option() && !arg.text.is_empty()) {
                judge.line(&arg.text, &mut around.state.clone(), &Feed::Terminal);
            }
        }
        "source" | "." => {
            let Some(file) = args.first() else { return true };
            if around.fetched {
                judge.doubt(What::Download, around);
            } else if file.is("/dev/stdin") {
                super::shells::from_feed(judge, &mut around.state.clone(), around);
            } else {
                judge.doubt(What::ScriptFile, around);
            }
        }
        _ => return false,
    }
    true
}

fn cd(judge: &mut Judge<'_>, args: &[Arg], around: &mut Around<'_>) {
    let mut operands = args.iter().filter(|arg| arg.is("-") || !arg.is_option());
    let next = match (operands.next(), operands.next()) {
        (None, _) => judge.place.home.clone().filter(|_| !around.state.elsewhere),
        (Some(arg), None) if arg.is("-") => around.state.previous.clone(),
        (Some(arg), None) => judge.entered(arg, around),
        (Some(_), Some(_)) => None,
    };
    around.state.previous = std::mem::replace(&mut around.state.cwd, next);
}
