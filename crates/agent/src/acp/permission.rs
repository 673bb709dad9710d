//! Whether a server gets the permission that it asks for.

use std::path::Path;

use serde_json::{Value, json};
use triphammer_guard::{Place, classify};

use super::calls::Call;
use super::files::Files;

/// A longer command is not judged, and so not let through.
const LONGEST: usize = 60 << 10;

/// Judges calls of tools before they are made.
#[derive(Clone, Debug)]
pub(super) struct Judge(Place);

/// What is not let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The command or file.
    pub(super) what: String,
    pub(super) why: String,
}

impl Judge {
    /// For work in this folder.
    pub(super) fn of(root: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let home = std::env::var_os("HOME").map(|home| text(Path::new(&home)));
        let temp = text(&std::env::temp_dir());
        Self(Place { workspace: text(root), home, cwd: text(root), temp })
    }

    /// Lets a call through, or says why not: a command that cannot be undone, an edit outside of the workspace.
    pub(super) fn allow(&self, call: &Call, files: &Files) -> Result<(), Refusal> {
        if let Some(command) = &call.command {
            if command.len() > LONGEST {
                let why = format!("a command of more than {LONGEST} bytes is not judged");
                return Err(Refusal { what: command.clone(), why });
            }
            let mut place = self.0.clone();
            if let Some(folder) = call.folder.as_ref().filter(|folder| folder.starts_with('/')) {
                place.cwd.clone_from(folder);
            }
            let judgement = classify(command, &place);
            if let Some(found) = judgement.findings.first() {
                return Err(Refusal { what: found.command.clone(), why: found.why.clone() });
            }
        }
        if let Some(path) = call.named().find(|path| files.is_outside(path)) {
            let why = "it would change a file outside of the workspace".to_owned();
            return Err(Refusal { what: format!("{} {path}", call.title), why });
        }
        Ok(())
    }
}

/// The answer to a request: the option that allows it this once, or refuses it this once. Where there is no option to
/// allow it, the second value says so.
pub(super) fn answer(options: &Value, allow: bool) -> (Value, Option<&'static str>) {
    let option = |kind: &str| {
        let mut options = options.as_array().into_iter().flatten();
        let found = options.find(|option| option.get("kind").and_then(Value::as_str) == Some(kind))?;
        found.get("optionId").filter(|id| id.is_string())
    };
    let selected = |id: &Value| json!({"outcome": {"outcome": "selected", "optionId": id}});
    let mut missing = None;
    if allow {
        if let Some(id) = option("allow_once").or_else(|| option("allow_always")) {
            return (selected(id), None);
        }
        missing = Some("the server offers no option that allows it");
    }
    let refused = option("reject_once").or_else(|| option("reject_always"));
    (refused.map_or_else(cancelled, selected), missing)
}

/// The answer to a request when the turn is over before it was decided.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

#[cfg(test)]
mod tests {
    use super::super::calls::Calls;
    use super::*;

    fn refused(said: &Value) -> Option<String> {
        let dir = tempfile::tempdir().expect("a folder");
        let files = Files::new(dir.path()).expect("a workspace");
        let call = Calls::default().told(said);
        let judged = Judge::of(files.root()).allow(&call, &files);
        judged.err().map(|refusal| format!("{}: {}", refusal.what, refusal.why))
    }

    #[test]
    fn what_cannot_be_undone_is_refused_wherever_the_command_stands() {
        let force = "make && git push --force";
        for said in [
            json!({"kind": "execute", "rawInput": {"command": force}}),
            json!({"kind": "execute", "rawInput": {"command": ["sh", "-c", force]}}),
            json!({"kind": "execute", "rawInput": {"cmd": force}}),
            json!({"kind": "execute", "title": force}),
            json!({"kind": "other", "title": "Bash", "rawInput": {"command": force}}),
            json!({"_meta": {"claudeCode": {"toolName": "Bash"}}, "rawInput": {"command": force}}),
            json!({"kind": "execute", "rawInput": {"command": "x".repeat(LONGEST + 1)}}),
            json!({"kind": "execute", "rawInput": {"command": "rm -rf build", "cwd": "/usr"}}),
        ] {
            assert!(refused(&said).is_some(), "{said}");
        }
        for said in [
            json!({"kind": "execute", "rawInput": {"command": "make && rm -rf build"}}),
            json!({"kind": "execute", "title": "git push"}),
            json!({"kind": "edit", "rawInput": {"content": force}}),
            json!({"kind": "fetch", "title": force}),
            json!({}),
        ] {
            assert_eq!(refused(&said), None, "{said}");
        }
    }

    #[test]
    fn an_edit_outside_of_the_workspace_is_refused() {
        let diff = |path: &str| json!([{"type": "diff", "path": path, "newText": ""}]);
        for said in [
            json!({"kind": "edit", "title": "Edit", "content": diff("/etc/hosts")}),
            json!({"kind": "edit", "content": diff("../x")}),
            json!({"kind": "other", "content": diff("/etc/hosts")}),
            json!({"kind": "delete", "locations": [{"path": "a"}, {"path": "/etc/hosts"}]}),
            json!({"kind": "move", "locations": [{"path": "/etc/hosts"}]}),
        ] {
            let why = refused(&said).unwrap_or_default();
            assert!(why.contains("outside of the workspace"), "{said}: {why}");
        }
        for said in [
            json!({"kind": "edit", "content": diff("a/b")}),
            json!({"kind": "read", "locations": [{"path": "/etc/hosts"}]}),
            json!({"kind": "execute", "rawInput": {"command": "ls"}, "locations": [{"path": "/etc"}]}),
        ] {
            assert_eq!(refused(&said), None, "{said}");
        }
    }

    #[test]
    fn an_option_for_once_goes_before_one_for_always() {
        let options = |kinds: &[&str]| {
            let option = |kind: &&str| json!({"optionId": format!("o-{kind}"), "kind": kind, "name": kind});
            Value::Array(kinds.iter().map(option).collect())
        };
        let all = options(&["allow_always", "allow_once", "reject_always", "reject_once"]);
        for (options, allow, expected, said) in [
            (&all, true, "o-allow_once", false),
            (&all, false, "o-reject_once", false),
            (&options(&["reject_once", "allow_always"]), true, "o-allow_always", false),
            (&options(&["allow_once", "reject_always"]), false, "o-reject_always", false),
            (&options(&["allow_once"]), false, "", false),
            (&options(&["reject_once", "odd"]), true, "o-reject_once", true),
            (&options(&[]), true, "", true),
            (&Value::Null, true, "", true),
        ] {
            let (answer, missing) = answer(options, allow);
            let chosen = answer["outcome"]["optionId"].as_str().unwrap_or_default();
            assert_eq!((chosen, missing.is_some()), (expected, said), "{options} {allow}");
            let word = if expected.is_empty() { "cancelled" } else { "selected" };
            assert_eq!(answer["outcome"]["outcome"], word);
        }
    }
}
