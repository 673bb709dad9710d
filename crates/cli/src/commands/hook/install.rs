//! `triphammer hook install`: writes the hook into an agent's own files, and takes it out again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::agents::{Asking, Form, MARK};
use super::settings::{Entry, Wrong};
use super::write::Target;
use crate::args::HookInstallArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::say;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Installed,
    /// It was there as it is.
    Nothing,
    /// The file is what it was before the installation, byte for byte.
    Restored,
    /// The hook is out of a file that was changed since.
    Removed,
    /// It was not there.
    NotThere,
}

impl Did {
    const fn word(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Nothing => "already-installed",
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::NotThere => "not-installed",
        }
    }
}

/// What was done, and where.
struct Done {
    did: Did,
    backup: Option<PathBuf>,
}

pub(super) fn install(args: &HookInstallArgs) -> Outcome {
    let agent = Asking::of(args.agent);
    let named = match &args.project {
        Some(dir) if !dir.is_dir() => {
            return Err(Failure::usage(format!(
                "`{}` is no folder; --project names a project's",
                dir.display()
            )));
        }
        Some(dir) => std::path::absolute(dir)
            .map_err(|e| Failure::usage(format!("`{}`: {e}", dir.display())))?
            .join(agent.project),
        None => agent.user_file(|name| std::env::var_os(name)).ok_or_else(|| {
            Failure::usage("there is no home folder (HOME); --project DIR names a project's instead")
        })?,
    };
    let program = program()?;
    let command = format!("{} hook pre-tool", quoted(&program));
    let target = Target::read(&named)?;
    let done =
        if args.undo { undo(agent, &target, &program)? } else { put(agent, &target, &program, &command)? };
    let note = agent.note.filter(|_| done.did == Did::Installed);
    if args.json {
        say::data(
            &json!({
                "schema": 1,
                "agent": agent.name,
                "did": done.did.word(),
                "file": target.path.display().to_string(),
                "backup": done.backup.as_ref().map(|path| path.display().to_string()),
                "command": command,
                "note": note,
            })
            .to_string(),
        );
        return Ok(Exit::Done);
    }
    let file = target.path.display();
    say::text(&match done.did {
        Did::Installed => {
            format!("{} asks the guard before it runs a command: written to {file}", agent.name)
        }
        Did::Nothing => format!("nothing to do: the hook is in {file} already"),
        Did::Restored => format!("{file} is what it was before"),
        Did::Removed => format!("the hook is out of {file}; what else was changed in it stays"),
        Did::NotThere => format!("nothing to do: there is no hook of ours in {file}"),
    });
    if let Some(backup) = &done.backup {
        say::text(&format!("the file as it was: {}", backup.display()));
    }
    if let Some(note) = note {
        say::talk(&format!("note: {note}"));
    }
    Ok(Exit::Done)
}

fn put(agent: &Asking, target: &Target, program: &str, command: &str) -> Result<Done, Failure> {
    let now = target.text.as_deref().unwrap_or_default();
    let then = match agent.form {
        Form::Settings(entry) => entry.added(now, command).map_err(|wrong| cannot(target, &wrong))?,
        Form::Plugin(_) if target.text.is_some() && !now.starts_with(MARK) => {
            return Err(Failure::refused(format!(
                "`{}` is not of ours; move it away first, nothing was written",
                target.path.display()
            )));
        }
        Form::Plugin(write) => write(program),
    };
    if target.text.as_deref() == Some(then.as_str()) {
        return Ok(Done { did: Did::Nothing, backup: None });
    }
    works(command)?;
    let backup = target.back_up()?;
    target.write(&then)?;
    Ok(Done { did: Did::Installed, backup })
}

fn undo(agent: &Asking, target: &Target, program: &str) -> Result<Done, Failure> {
    let Some(now) = target.text.as_deref() else { return Ok(Done { did: Did::NotThere, backup: None }) };
    match agent.form {
        Form::Plugin(_) if !now.starts_with(MARK) => Ok(Done { did: Did::NotThere, backup: None }),
        Form::Plugin(write) => {
            // One that a person has changed is kept beside it.
            let backup = if now == write(program) { None } else { target.back_up()? };
            target.remove()?;
            Ok(Done { did: Did::Restored, backup })
        }
        Form::Settings(entry) => undo_settings(entry, target, now),
    }
}

fn undo_settings(entry: Entry, target: &Target, now: &str) -> Result<Done, Failure> {
    let without = entry.removed(now).map_err(|wrong| cannot(target, &wrong))?;
    let Some(command) = entry.command_in(now) else { return Ok(Done { did: Did::NotThere, backup: None }) };
    // Where the file is what an installation made of a copy, nothing else changed since, and the copy is the answer.
    let made = |before: &str| entry.added(before, &command).is_ok_and(|made| made == now);
    let before = target.copies().into_iter().find_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        (entry.command_in(&text).is_none() && made(&text)).then_some((path, text))
    });
    if let Some((path, text)) = before {
        target.write(&text)?;
        // It is the file again.
        let _ = std::fs::remove_file(path);
        return Ok(Done { did: Did::Restored, backup: None });
    }
    if made("") {
        target.remove()?;
        return Ok(Done { did: Did::Restored, backup: None });
    }
    let backup = target.back_up()?;
    target.write(&without)?;
    Ok(Done { did: Did::Removed, backup })
}

fn cannot(target: &Target, wrong: &Wrong) -> Failure {
    Failure::refused(format!(
        "`{}`, line {}: the file {}; mend it and try again, nothing was written",
        target.path.display(),
        wrong.line,
        wrong.what
    ))
}

/// This binary.
fn program() -> Result<String, Failure> {
    let path =
        std::env::current_exe().map_err(|e| Failure::refused(format!("finding our own binary: {e}")))?;
    let name = path.file_name().is_some_and(|name| name == "triphammer");
    match path.to_str() {
        Some(path) if name => Ok(path.to_owned()),
        _ => Err(Failure::refused(format!(
            "our own binary is `{}`; it must be called `triphammer`, in a folder whose name is UTF-8, so that the hook \
             is found again",
            path.display()
        ))),
    }
}

/// A word as sh reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Tries the hook as an agent starts it: what cannot be undone must be refused before the hook is worth anything.
fn works(command: &str) -> Result<(), Failure> {
    let failed = |what: String| {
        Failure::refused(format!("the hook `{command}` does not work here: {what}; nothing was written"))
    };
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| failed(format!("starting sh: {e}")))?;
    let call = json!({
        "hook_event_name": "PreToolUse",
        "cwd": Path::new("/"),
        "tool_name": "Bash",
        "tool_input": {"command": "git push --force"},
    });
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(call.to_string().as_bytes());
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    if status.code() == Some(2) {
        Ok(())
    } else {
        Err(failed(format!("a forced push was answered with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_for_sh_where_it_must_be() {
        for (word, expected) in [
            ("/opt/bin/triphammer", "/opt/bin/triphammer"),
            ("/a b/triphammer", "'/a b/triphammer'"),
            ("/it's/$x/triphammer", r"'/it'\''s/$x/triphammer'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
