//! `triphammer spec`: a draft, its checks on the untouched workspace, and consent.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use triphammer_model::Spec;
use triphammer_model::spec::{SpecErrors, Status, set_status, template};

use crate::args::{HomeArgs, RunArgs};
use crate::commands::probe::{Probed, Purpose, Stand, probe};
use crate::commands::run::{read_spec, request};
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::say;

pub(crate) fn new(file: &Path, args: &HomeArgs) -> Outcome {
    let path = home::absolute(file)?;
    let name = path.file_stem().unwrap_or(OsStr::new("spec")).to_string_lossy().into_owned();
    if path.file_name().is_none() {
        return Err(Failure::usage(format!(
            "`{}` names no file; write one such as specs/roman.md",
            file.display()
        )));
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|e| Failure::refused(format!("making folder `{}`: {e}", parent.display())))?;
    }
    write_new(&path, template(&name, "").as_bytes()).map_err(|e| {
        Failure::refused(if e.kind() == std::io::ErrorKind::AlreadyExists {
            format!("`{}` exists already; it was left as it is", file.display())
        } else {
            format!("writing `{}`: {e}", file.display())
        })
    })?;
    if args.json {
        say::data(&json!({"schema": 1, "spec": path.display().to_string()}).to_string());
    } else {
        say::talk(&format!("wrote the draft {}", file.display()));
        say::talk(&format!("next: fill it in, then triphammer spec check {}", file.display()));
    }
    Ok(Exit::Done)
}

/// Writes a file that is not there yet, through no link.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

pub(crate) fn check(file: &Path, args: &HomeArgs) -> Outcome {
    let tried = try_out(file, args)?;
    tried.tell(file, args.json, None);
    let red = tried.checks.iter().any(|c| c.purpose == Purpose::KeepGreen && c.stand == Stand::Red);
    let error = tried.checks.iter().any(|c| c.stand == Stand::Error);
    if !args.json && tried.spec.status == Status::Draft && tried.checks.iter().all(Probed::is_good) {
        say::talk(&format!("valid; next: triphammer spec lock {}", file.display()));
    }
    Ok(if red || error { Exit::Refused } else { Exit::Done })
}

pub(crate) fn lock(file: &Path, args: &HomeArgs) -> Outcome {
    let tried = try_out(file, args)?;
    if tried.spec.is_unfilled() {
        say::talk(&format!(
            "note: the goal of {} is still the draft's own sentence: say what to build",
            file.display()
        ));
    }
    let bad: Vec<&str> = tried.checks.iter().filter(|c| !c.is_good()).map(|c| c.name.as_str()).collect();
    if !bad.is_empty() {
        tried.tell(file, args.json, Some(false));
        return Err(Failure::refused(format!(
            "{} was not locked: correct or remove {}",
            file.display(),
            bad.join(", ")
        )));
    }
    if tried.spec.status == Status::Draft {
        write_status(file, args, &tried.text)?;
    }
    tried.tell(file, args.json, Some(true));
    if !args.json {
        let how = if tried.spec.status == Status::Draft { "locked" } else { "was locked already:" };
        say::talk(&format!("{how} {}; next: triphammer run {}", file.display(), file.display()));
    }
    Ok(Exit::Done)
}

/// A spec that is valid, with its checks as they stand.
struct Tried {
    spec: Spec,
    text: Vec<u8>,
    checks: Vec<Probed>,
}

impl Tried {
    fn tell(&self, file: &Path, json: bool, locked: Option<bool>) {
        if json {
            let checks: Vec<_> = self
                .checks
                .iter()
                .map(|c| {
                    let mut object = json!(c);
                    object["good"] = json!(c.is_good());
                    object
                })
                .collect();
            let locked = locked.unwrap_or(self.spec.status == Status::Locked);
            let object = json!({
                "schema": 1, "spec": file.display().to_string(), "valid": true, "locked": locked, "errors": [],
                "checks": checks,
            });
            say::data(&object.to_string());
            return;
        }
        for check in &self.checks {
            say::text(&check.line());
            if let Some(lines) = check.last_lines() {
                say::text(&lines);
            }
        }
        if self.spec.checks.is_empty() {
            say::talk(
                "note: the spec has no check; only gates that are red now can prove that the work was done",
            );
        }
    }
}

/// Validates a spec with everything that it names, and runs its checks.
fn try_out(file: &Path, args: &HomeArgs) -> Result<Tried, Failure> {
    let home = Home::find(args.home.as_deref())?;
    let (_, text) = read_spec(file, &home)?;
    let spec = match Spec::parse(&file.display().to_string(), &text) {
        Ok(spec) => spec,
        Err(errors) => {
            if args.json {
                say::data(&errors_json(file, &errors).to_string());
            }
            return Err(Failure::usage(errors));
        }
    };
    let mut asked = RunArgs::of_spec(file.to_owned(), args.home.clone());
    if spec.agents.is_empty() && home.config.run.agent.is_none() {
        // No agent is called here, and a flag can name one later.
        asked.agent_cmd = Some("true".to_owned());
    }
    let checks = probe(request(&asked, &home)?, args.json)?;
    Ok(Tried { spec, text, checks })
}

fn errors_json(file: &Path, errors: &SpecErrors) -> serde_json::Value {
    let list: Vec<_> =
        errors.as_slice().iter().map(|e| json!({"line": e.line, "message": e.fault.to_string()})).collect();
    json!({
        "schema": 1, "spec": file.display().to_string(), "valid": false, "locked": false, "errors": list, "checks": [],
    })
}

/// Sets the status in the file, all or nothing, if it still holds what was tried.
fn write_status(file: &Path, args: &HomeArgs, tried: &[u8]) -> Result<(), Failure> {
    let home = Home::find(args.home.as_deref())?;
    let (path, now) = read_spec(file, &home)?;
    if now != tried {
        return Err(Failure::refused(format!(
            "{} was edited while its checks ran; it was not locked, try again",
            file.display()
        )));
    }
    let failed = |e: std::io::Error| Failure::refused(format!("writing `{}`: {e}", file.display()));
    let text = set_status(&String::from_utf8_lossy(tried), Status::Locked).map_err(Failure::usage)?;
    // A link to a spec stays a link.
    let path = path.canonicalize().map_err(failed)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut fresh = tempfile::Builder::new().prefix(".spec-").tempfile_in(folder).map_err(failed)?;
    fresh.write_all(text.as_bytes()).map_err(failed)?;
    fresh
        .as_file()
        .set_permissions(std::fs::metadata(&path).map_err(failed)?.permissions())
        .map_err(failed)?;
    fresh.as_file().sync_all().map_err(failed)?;
    fresh.persist(&path).map_err(|e| failed(e.error))?;
    Ok(())
}
