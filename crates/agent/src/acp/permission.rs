//! Whether a server gets the permission that it asks for.

use std::path::Path;

use serde_json::{Value, json};
use triphammer_guard::{Place, classify};

use super::calls::Call;
use super::files::Files;
use crate::dialects::OwnEvent;
use crate::guarded::place_here;

/// A longer command is not judged, and so not let through.
const LONGEST: usize = 60 << 10;

/// Judges calls of tools before they are made.
#[derive(Clone, Debug)]
pub(super) struct Judge(Place);

/// What is not let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A command.
    Command { command: String, why: String },
    /// An edit, with its file, or another call.
    Other { what: String, why: String },
}

impl Refusal {
    /// Of a call, whatever it is.
    pub(super) fn of(call: Call, why: &str) -> Self {
        let why = why.to_owned();
        match call.command {
            Some(command) => Self::Command { command, why },
            None => Self::Other { what: call.title, why },
        }
    }

    /// It as an event.
    pub(super) fn into_event(self) -> OwnEvent {
        let (command, what, why) = match self {
            Self::Command { command, why } => (Some(command), None, why),
            Self::Other { what, why } => (None, Some(what), why),
        };
        OwnEvent::Refused { command, what, why }
    }
}

impl Judge {
    /// For work in this folder.
    pub(super) fn of(root: &Path) -> Self {
        Self(place_here(root))
    }

    /// Lets a call through, or says why not: a command that cannot be undone or is not read to its end, an edit outside
    /// of the workspace.
    pub(super) fn allow(&self, call: &Call, files: &Files) -> Result<(), Refusal> {
        let commands = call.commands();
        if commands.iter().map(|command| command.len()).sum::<usize>() > LONGEST {
            let why = format!("a command of more than {LONGEST} bytes is not judged");
            return Err(Refusal::Command { command: commands.join("\n"), why });
        }
        let place = self.0.clone().within(call.folder.as_deref().unwrap_or_default());
        if let Some(refusal) = commands.iter().find_map(|command| classify(command, &place).refusal()) {
            return Err(Refusal::Command { command: refusal.command, why: refusal.why });
        }
        if let Some(path) = call.named().find(|path| files.is_outside(path)) {
            let why = "it would change a file outside of the workspace".to_owned();
            return Err(Refusal::Other { what: format!("{} {path}", call.title), why });
        }
        Ok(())
    }
}

/// The answer to a request: the option that allows it this once, or refuses it this once; none of them where the one
/// that refuses cannot be told from another. Where there is no option to allow it, the second value says so.
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
    // A server that looks up this id may come upon the option that allows.
    let allows = |id: &Value| {
        let mut options = options.as_array().into_iter().flatten();
        options.any(|option| {
            let refuses = matches!(option["kind"].as_str(), Some("reject_once" | "reject_always"));
            option["optionId"] == *id && !refuses
        })
    };
    let refused = option("reject_once").or_else(|| option("reject_always")).filter(|id| !allows(id));
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
        judged.err().map(|refusal| format!("{refusal:?}"))
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
            json!({"kind": "execute", "rawInput": {"command": "rm -rf build", "workdir": "/usr"}}),
            json!({"kind": "execute", "rawInput": {"command": "rm -rf build", "directory": "../.."}}),
            json!({"kind": "execute", "rawInput": {"command": "rm -rf build", "dir_path": "/usr"}}),
            json!({"kind": "execute", "rawInput": {"command": format!("{}{force}{}", "( ".repeat(60), " )".repeat(60))}}),
            json!({"kind": "execute", "rawInput": {"program": "git", "args": ["push", "--force"]}}),
            json!({"kind": "execute", "rawInput": {"command": "git", "args": ["push", "--force"]}}),
            json!({"kind": "execute", "rawInput": {"command": ["git"], "args": "push --force"}}),
            json!({"kind": "execute", "rawInput": {"commands": ["echo '", force]}}),
            json!({"kind": "execute", "rawInput": {"commands": [["git", "push", "-f"]]}}),
            json!({"kind": "execute", "rawInput": {"commands": [{"command": "git", "args": ["push", "-f"]}]}}),
            json!({"kind": "execute", "rawInput": {"command": "make", "commands": [force]}}),
            json!({"kind": "execute", "title": force, "rawInput": {"description": "Push"}}),
            json!({"rawInput": {"program": "git", "args": ["push", "--force"]}}),
            json!({"kind": "other", "rawInput": {"command": force}}),
            json!({"kind": "read", "rawInput": {"command": ["sh", "-c", force]}}),
            json!({"rawInput": "{\"command\": \"git push -f\"}"}),
            json!({"title": "git push --force"}),
            json!({"title": "git push --force", "rawInput": {}}),
            json!({"title": "Run `git push --force`"}),
        ] {
            assert!(refused(&said).is_some(), "{said}");
        }
        for said in [
            json!({"kind": "execute", "rawInput": {"command": "make && rm -rf build"}}),
            json!({"kind": "execute", "title": "git push"}),
            json!({"kind": "edit", "rawInput": {"content": force}}),
            json!({"kind": "fetch", "title": force}),
            json!({"kind": "edit", "title": force}),
            json!({"title": "git push --force", "rawInput": {"command": "git push"}}),
            json!({"title": "Explain (why"}),
            json!({"kind": "edit", "rawInput": {"command": "create", "path": "a", "file_text": force}}),
            json!({"kind": "search", "rawInput": {"command": ["rg", force]}}),
            json!({"kind": "execute", "rawInput": {"command": "rm -rf build", "cwd": "sub"}}),
            json!({"kind": "execute", "rawInput": {"commands": ["make", "ls"], "args": 7}}),
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
            json!({"kind": "edit", "rawInput": {"file_path": "/etc/hosts"}}),
            json!({"kind": "edit", "rawInput": {"path": "../x"}}),
            json!({"kind": "edit", "rawInput": {"abs_path": "/etc/hosts"}, "locations": [{"path": "a"}]}),
            json!({"kind": "delete", "rawInput": {"filePath": "file:///etc/hosts"}}),
            json!({"kind": "move", "rawInput": {"source": "a", "destination": "/etc/hosts"}}),
            json!({"kind": "edit", "rawInput": "{\"path\": \"/etc/hosts\"}"}),
            json!({"kind": "edit", "rawInput": {"changes": {"/etc/hosts": {"type": "add"}}}}),
        ] {
            let why = refused(&said).unwrap_or_default();
            assert!(why.contains("outside of the workspace"), "{said}: {why}");
        }
        for said in [
            json!({"kind": "edit", "content": diff("a/b")}),
            json!({"kind": "edit", "rawInput": {"file_path": "a/b", "path": ""}}),
            json!({"kind": "edit", "rawInput": {"path": "."}}),
            json!({"kind": "read", "rawInput": {"file_path": "/etc/hosts"}}),
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

    #[test]
    fn an_id_that_may_also_allow_refuses_nothing() {
        let option = |id: &str, kind: &str| json!({"optionId": id, "kind": kind});
        for other in ["allow_once", "allow_always", "odd"] {
            for options in [
                json!([option("a", "reject_once"), option("a", other)]),
                json!([option("a", other), option("a", "reject_once"), option("b", "allow_once")]),
            ] {
                assert_eq!(answer(&options, false), (cancelled(), None), "{options}");
            }
        }
        let twice =
            json!([option("a", "reject_once"), option("a", "reject_always"), option("b", "allow_once")]);
        assert_eq!(answer(&twice, false).0["outcome"]["optionId"], "a");
    }
}
