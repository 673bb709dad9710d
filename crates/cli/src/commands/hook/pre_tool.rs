//! `triphammer hook pre-tool`: reads what an agent is about to do, and refuses what cannot be undone.
//!
//! Exit 0 lets the call through, exit 2 refuses it with the reason on stderr; that is what Claude Code, Codex, Gemini CLI
//! and Qwen Code take it for. What is not understood is refused as well: agents show what a hook says only where it
//! refuses, so that a guard that lets through what it cannot read would be gone without anybody seeing it.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use triphammer_guard::{Judgement, Place, classify};

use super::call::{self, Call};
use crate::exit::Exit;
use crate::say;

/// Bytes of a call that are read. Commands are short, and a file that is written is no concern of the guard.
const MOST: u64 = 4 << 20;

/// For so long a call is waited for. Agents give a hook more time and run the tool when it is over.
const PATIENCE: Duration = Duration::from_secs(5);

/// Findings that are named; further ones are counted.
const NAMED: usize = 5;

const REFUSED: Exit = Exit::Code(2);

pub(super) fn pre_tool() -> Exit {
    let told = match told(PATIENCE) {
        Ok(told) => told,
        Err(what) => return not_understood(&what),
    };
    match call::read(&told) {
        Err(what) => not_understood(&what),
        Ok(Call::Other) => Exit::Done,
        Ok(Call::Elsewhere(event)) => {
            say::talk(&say::marked(&format!(
                "triphammer hook pre-tool: `{event}` comes before no tool, so nothing was judged; install it for the \
                 event before a tool (`triphammer hook install`)"
            )));
            Exit::Done
        }
        Ok(Call::Shell { commands, cwd, folder }) => {
            let place = place(cwd.as_deref(), folder.as_deref());
            let mut judgements = commands.iter().map(|command| classify(command, &place));
            let refused = judgements.find_map(|judgement| Some((judgement.refusal()?, judgement)));
            match refused {
                None => Exit::Done,
                Some((gave_up, judgement)) if judgement.findings.is_empty() => {
                    not_understood(&gave_up.to_string())
                }
                Some((_, judgement)) => {
                    say::talk(&say::marked(&reason(&judgement)));
                    REFUSED
                }
            }
        }
    }
}

/// Reads standard input to its end; all of it, since an agent whose pipe breaks might take that for a yes.
fn told(patience: Duration) -> Result<Vec<u8>, String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(
            "nobody told anything: an agent writes what it is about to do to standard input".to_owned()
        );
    }
    let (tells, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut told = Vec::new();
        let mut stdin = stdin.lock();
        let read = (&mut stdin).take(MOST).read_to_end(&mut told);
        let rest = read.and_then(|_| std::io::copy(&mut stdin, &mut std::io::sink()));
        let _ = tells.send(match rest {
            Ok(0) => Ok(told),
            Ok(rest) => Err(format!("it is {} bytes long, and {MOST} are read", MOST + rest)),
            Err(error) => Err(format!("reading it: {error}")),
        });
    });
    match heard.recv_timeout(patience) {
        Ok(told) => told,
        Err(RecvTimeoutError::Timeout) => Err(format!("it has no end after {} s", patience.as_secs())),
        Err(RecvTimeoutError::Disconnected) => Err("it could not be read".to_owned()),
    }
}

fn not_understood(what: &str) -> Exit {
    say::talk(&say::marked(&format!(
        "triphammer did not understand what is about to be done, so it refuses: {}. To do without the guard, the \
         person who runs this agent can take it out: triphammer hook install --undo",
        what.trim_end_matches('.')
    )));
    REFUSED
}

/// Where a command runs.
fn place(cwd: Option<&str>, folder: Option<&str>) -> Place {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let var = |name: &str| {
        std::env::var_os(name)
            .map(|value| value.to_string_lossy().into_owned())
            .filter(|v| v.starts_with('/'))
    };
    let cwd = match cwd.filter(|cwd| cwd.starts_with('/')) {
        Some(cwd) => cwd.to_owned(),
        None => std::env::current_dir().map_or_else(|_| "/".to_owned(), |cwd| text(&cwd)),
    };
    // The agents' own variable names the folder that they were started in, while their current one moves.
    let workspace = ["TRIPHAMMER_WORKSPACE", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];
    let workspace = workspace.into_iter().find_map(var).unwrap_or_else(|| cwd.clone());
    let (workspace, cwd) = spelled_alike(workspace, cwd);
    let place = Place::new(workspace, var("HOME"), text(&std::env::temp_dir()));
    place.within(&cwd).within(folder.unwrap_or_default())
}

/// The guard compares paths as text: where one of the two leads through a link, both are followed.
fn spelled_alike(workspace: String, cwd: String) -> (String, String) {
    if Path::new(&cwd).starts_with(&workspace) {
        return (workspace, cwd);
    }
    let real = |path: &str| std::fs::canonicalize(path).ok()?.into_os_string().into_string().ok();
    match (real(&workspace), real(&cwd)) {
        (Some(workspace), Some(cwd)) => (workspace, cwd),
        _ => (workspace, cwd),
    }
}

/// What the model is told.
fn reason(judgement: &Judgement) -> String {
    let mut out =
        "triphammer refused this command, because it cannot be undone; nothing of it was run.".to_owned();
    for found in judgement.findings.iter().take(NAMED) {
        let doubt = if found.sure { "" } else { " (as far as can be told before it runs)" };
        let _ = write!(out, "\n- `{}`: {}{doubt}. {}", found.command, found.why, found.class.sentence());
    }
    let more = judgement.findings.len().saturating_sub(NAMED) + judgement.left_out;
    if more > 0 {
        let _ = write!(out, "\n- and {more} more");
    }
    out.push_str(
        "\nDo not look for another way to do the same. If it is really needed, say so and leave it to the person.",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_what_was_found_and_counts_the_rest() {
        let place = Place::new("/w", None, "/tmp");
        let line = "git push -f; rm -rf /a; rm -rf /b; rm -rf /c; rm -rf /d; rm -rf /e; rm -rf /f";
        let reason = reason(&classify(line, &place));
        assert!(reason.contains("\n- `git push -f`: ") && reason.contains("\n- and 2 more\n"), "{reason}");
    }

    #[test]
    fn a_folder_is_taken_from_the_agents() {
        let place = place(Some("/w/a"), Some("../b"));
        assert_eq!(place.cwd, "/w/a/../b");
    }
}
