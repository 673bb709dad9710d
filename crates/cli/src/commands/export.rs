//! `triphammer export`: a run in a format of other tools. What is written passes the run's redactor once more.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use triphammer_model::{Attempt, Redactor, RunSummary};
use triphammer_render::{
    Artifact, Clean, ExportView, ExportedAttempt, atif, count, github_commands, github_summary, junit, sarif,
};
use triphammer_runner::redactor_of;
use triphammer_store::{FileError, RunDir, is_live, read_journal};

use super::show::{attempts, no_such_attempt};
use crate::args::ExportArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

/// Where GitHub's runner takes a step's summary from.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

pub(crate) fn export(args: &ExportArgs) -> Outcome {
    let to = args.output.as_deref().map(Target::new).transpose()?;
    let home = Home::find(args.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let dir = runs.open(&id, Redactor::default());
    let live = is_live(&dir.journal());
    let text = read_journal(&dir.journal()).map_err(Failure::refused)?;
    let summary = RunSummary::fold(&text.lines).ok_or_else(|| {
        Failure::refused(format!("journal `{}` does not begin with `started`", dir.journal().display()))
    })?;
    let read = read(&dir, args.attempt)?;
    let view = ExportView { summary: &summary, live, lines: &text.lines, attempts: &read };
    let (redactor, unread) = redactor_of(&dir);
    let clean = Clean::new(&redactor);

    if live {
        say::talk(&format!("note: run {id} is not over; this is how far it got"));
    }
    if let Some(why) = unread {
        let why = say::marked(&why).into_owned();
        say::talk(&format!("note: secrets are known by the names of variables only: {why}"));
    }
    if args.github {
        github(&view, &clean, to)?;
    } else {
        let made = made(args, &view, &clean)?;
        match to {
            Some(to) => to.write(&made)?,
            // A reader that went away has seen what it wanted.
            None => drop(say::raw(made.as_bytes())),
        }
    }
    match clean.replaced() {
        0 => {}
        n => say::talk(&format!("redacted: {} of known secrets", count(n, "value"))),
    }
    Ok(Exit::Done)
}

/// The document of the formats that have one.
fn made(args: &ExportArgs, view: &ExportView<'_>, clean: &Clean<'_>) -> Result<String, Failure> {
    if args.junit {
        return Ok(junit(view, clean));
    }
    if args.atif {
        let documents = view.attempts.iter().map(|attempt| atif(view, attempt, clean).to_string());
        return Ok(documents.map(|document| document + "\n").collect());
    }
    let Some((attempt, report)) = view.standing() else {
        return Err(Failure::refused(format!(
            "run {} has no report to export: no gate has judged {}",
            view.summary.run,
            args.attempt.map_or_else(|| "an attempt of it".to_owned(), |n| format!("attempt {n}"))
        )));
    };
    if view.attempts.last().is_some_and(|last| last.attempt != attempt.attempt) {
        let which =
            if view.summary.accepted_attempt == Some(attempt.attempt) { "accepted" } else { "last judged" };
        say::talk(&format!("note: the report is that of attempt {}, the {which} one", attempt.attempt));
    }
    Ok(format!("{:#}\n", sarif(view, attempt, report, clean)))
}

fn github(view: &ExportView<'_>, clean: &Clean<'_>, to: Option<Target>) -> Result<(), Failure> {
    let summary = github_summary(view, clean);
    let step = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()).map(PathBuf::from);
    match (to, step) {
        (Some(to), _) => to.write(&summary)?,
        // Several commands of a step write into it, one after the other.
        (None, Some(path)) => append(&path, &summary)?,
        (None, None) => {
            say::talk(&format!("note: no step summary: neither -o nor ${STEP_SUMMARY} names a file"));
        }
    }
    drop(say::raw(github_commands(view, clean).as_bytes()));
    Ok(())
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    let written = options.append(true).create(true).open(path).and_then(|mut f| f.write_all(text.as_bytes()));
    written.map_err(|e| Failure::refused(format!("writing ${STEP_SUMMARY} `{}`: {e}", path.display())))
}

/// The attempts of the run, or the one that was asked for.
fn read(dir: &RunDir, wanted: Option<u32>) -> Result<Vec<ExportedAttempt>, Failure> {
    let mut numbers = attempts(dir);
    if let Some(wanted) = wanted {
        if !numbers.contains(&wanted) {
            return Err(Failure::refused(no_such_attempt(dir, wanted)));
        }
        numbers = vec![wanted];
    }
    if numbers.is_empty() {
        return Err(Failure::refused(format!("run {} has no attempt to export: none was begun", dir.id())));
    }
    Ok(numbers.into_iter().map(|n| exported(dir, Attempt::new(n))).collect())
}

fn exported(dir: &RunDir, attempt: Attempt) -> ExportedAttempt {
    let folder = dir.attempt(attempt);
    let brief = dir.read(folder.join("brief.md")).map(|b| String::from_utf8_lossy(&b).into_owned());
    let transcript = dir.read(folder.join("transcript.jsonl")).unwrap_or_default();
    ExportedAttempt {
        attempt,
        brief: artifact(brief, "brief.md"),
        receipt: artifact(dir.read_json(folder.join("receipt.json")), "receipt.json"),
        report: artifact(dir.read_json(folder.join("report.json")), "report.json"),
        transcript: transcript
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect(),
    }
}

/// What lies where on this machine is nobody's business elsewhere: a file is named, not its path.
fn artifact<T>(read: Result<T, FileError>, name: &str) -> Artifact<T> {
    match read {
        Ok(value) => Artifact::Read(value),
        Err(error) if error.source.kind() == ErrorKind::NotFound => Artifact::Missing(format!(
            "{name} was not written: the attempt did not get that far, or the file was removed"
        )),
        Err(error) => Artifact::Missing(format!("{} {name}: {}", error.what, error.source)),
    }
}

/// A file to write, asked about before any work is done.
struct Target {
    path: PathBuf,
    folder: PathBuf,
}

impl Target {
    fn new(given: &Path) -> Result<Self, Failure> {
        let shown = given.display();
        let path = match std::fs::metadata(given) {
            Ok(about) if about.is_dir() => {
                return Err(Failure::refused(format!("`{shown}` is a folder; -o takes a file's name")));
            }
            Ok(about) if !about.is_file() => {
                return Err(Failure::refused(format!(
                    "`{shown}` is no regular file and is not replaced; without -o it goes to standard output"
                )));
            }
            // A link stays, and what it leads to is replaced.
            Ok(_) => given.canonicalize().map_err(|e| Failure::refused(format!("path `{shown}`: {e}")))?,
            Err(_) => home::absolute(given)?,
        };
        let folder = path.parent().filter(|_| path.file_name().is_some()).map(Path::to_owned);
        match folder {
            Some(folder) if folder.is_dir() => Ok(Self { path, folder }),
            _ => Err(Failure::refused(format!("`{shown}` cannot be written: its folder does not exist"))),
        }
    }

    /// Writes the file whole or not at all; one that is there keeps its mode.
    fn write(&self, text: &str) -> Result<(), Failure> {
        let failed = |e| Failure::refused(format!("writing `{}`: {e}", self.path.display()));
        let mode = std::fs::metadata(&self.path).ok().map(|about| about.permissions());
        let mut partial = tempfile::Builder::new()
            .prefix(".triphammer-")
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(&self.folder)
            .map_err(failed)?;
        partial.write_all(text.as_bytes()).map_err(failed)?;
        if let Some(mode) = mode {
            partial.as_file().set_permissions(mode).map_err(failed)?;
        }
        partial.persist(&self.path).map_err(|e| failed(e.error))?;
        Ok(())
    }
}
