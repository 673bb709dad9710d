//! Calls of tools, put together from what a server says of them piece by piece, and the claims that come of them.
//!
//! A server announces a call, adds to it, asks for permission and says how it ended; any of these may be missing. A
//! command is known by its input; where a server shows no input at all (Gemini CLI does not), the title of a call that
//! executes something is the command. Files are known by the differences that are shown, else by the places that an
//! edit names, and better than by both where the server wrote them through us.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use triphammer_guard::tools;
use triphammer_model::ClaimKind;

use super::files::Files;
use crate::dialects::OwnEvent;

/// Calls that are open at a time; those of helpers run beside each other, but not by the hundred.
const OPEN: usize = 256;
/// Calls that have ended and are remembered, and files that are.
const REMEMBERED: usize = 10_000;
/// Files of one call.
const FILES: usize = 1_000;
/// Bytes of an id.
const ID: usize = 200;

/// Arguments of edits that name a file.
const TARGETS: [&str; 16] = [
    "file_path",
    "filePath",
    "path",
    "abs_path",
    "absolute_path",
    "absolutePath",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "source",
    "destination",
    "old_path",
    "oldPath",
    "new_path",
    "newPath",
];

/// What is known of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) command: Option<String>,
    /// The folder in which the command runs.
    pub(super) folder: Option<String>,
    tool: String,
    exit: Option<i32>,
    /// Files with their difference.
    differences: BTreeMap<String, ClaimKind>,
    /// Files that are only named.
    places: BTreeSet<String>,
    /// Commands and files that its input holds, whatever the tool is: judged, and no claims.
    hinted: Vec<String>,
    targets: BTreeSet<String>,
    has_input: bool,
    refused: bool,
}

impl Call {
    /// Takes in what is said of it.
    fn add(&mut self, said: &Value) {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let set = |field: &mut String, new: Option<String>| {
            if let Some(new) = new.filter(|new| !new.is_empty()) {
                *field = new;
            }
        };
        set(&mut self.kind, text(said, "kind"));
        set(&mut self.title, text(said, "title"));
        let meta = said.get("_meta").unwrap_or(&Value::Null);
        let of_claude = meta.get("claudeCode").unwrap_or(&Value::Null);
        set(&mut self.tool, text(meta, "toolName").or_else(|| text(of_claude, "toolName")));
        if let Some(input) = said.get("rawInput").filter(|input| !input.is_null()) {
            self.has_input = true;
            let names = [if self.kind == "execute" { "shell" } else { "" }, &self.tool, &self.title];
            let command = names.iter().find_map(|name| tools::command_of(name, input));
            self.command = command.filter(|command| !command.trim().is_empty()).or(self.command.take());
            self.folder = tools::folder_of(input).or(self.folder.take());
            let input = &*tools::unfolded(input);
            let hinted = tools::commands_in(input);
            if !hinted.is_empty() {
                self.hinted = hinted;
            }
            // What is told while it is written may be a part of a path.
            let targets = TARGETS.iter().filter_map(|name| text(input, name)).filter(|path| !path.is_empty());
            let targets: BTreeSet<String> = targets.collect();
            if !targets.is_empty() {
                self.targets = targets;
            }
            for (path, change) in input.get("changes").and_then(Value::as_object).into_iter().flatten() {
                let change = change.get("type").and_then(Value::as_str).and_then(change_of);
                self.differs(path, change.unwrap_or(ClaimKind::Changed));
            }
        } else if !self.has_input && self.kind == "execute" && !self.title.is_empty() {
            self.command = Some(self.title.clone());
        }
        for part in said.get("content").and_then(Value::as_array).into_iter().flatten() {
            let text = |name| part.get(name).and_then(Value::as_str);
            let moves = text("oldText").is_none() || text("oldText") != text("newText");
            if text("type") == Some("diff")
                && moves
                && let Some(path) = part.get("path").and_then(Value::as_str)
            {
                self.differs(path, self.difference(part));
            }
        }
        for place in said.get("locations").and_then(Value::as_array).into_iter().flatten() {
            if let Some(path) =
                place.get("path").and_then(Value::as_str).filter(|_| self.places.len() < FILES)
            {
                self.places.insert(path.to_owned());
            }
        }
        if let Some(output) = said.get("rawOutput") {
            let metadata = output.get("metadata").unwrap_or(&Value::Null);
            let told = [output, metadata].into_iter().find_map(|output| {
                ["exit", "exitCode", "exit_code"].iter().find_map(|name| output.get(name)?.as_i64())
            });
            self.exit = told.and_then(|exit| i32::try_from(exit).ok()).or(self.exit);
        }
    }

    fn differs(&mut self, path: &str, change: ClaimKind) {
        if self.differences.len() < FILES {
            // What was said first was said before the file moved.
            self.differences.entry(path.to_owned()).or_insert(change);
        }
    }

    /// How a file differs. One that is new is shown without an old text, or with an empty one.
    fn difference(&self, part: &Value) -> ClaimKind {
        let told = part.get("_meta").and_then(|meta| meta.get("kind")?.as_str()).and_then(change_of);
        let empty = |name| part.get(name).and_then(Value::as_str).is_none_or(str::is_empty);
        told.unwrap_or_else(|| match (self.kind.as_str(), empty("oldText")) {
            ("delete", _) => ClaimKind::Deleted,
            (_, true) => ClaimKind::Added,
            (_, false) => ClaimKind::Changed,
        })
    }

    /// Whether it changes the files that it names.
    fn edits(&self) -> bool {
        matches!(self.kind.as_str(), "edit" | "delete" | "move")
    }

    /// The files that it changes.
    pub(super) fn edited(&self) -> BTreeMap<&str, ClaimKind> {
        let change = if self.kind == "delete" { ClaimKind::Deleted } else { ClaimKind::Changed };
        let shown = self.differences.iter().map(|(path, change)| (path.as_str(), *change));
        if !self.differences.is_empty() {
            return shown.collect();
        }
        // Where a file is moved from and where to is not told apart.
        let named = self.places.iter().filter(|_| self.edits() && self.kind != "move");
        named.map(|path| (path.as_str(), change)).collect()
    }

    /// Every file that a permission for it would let it write.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        let named = self.places.iter().chain(&self.targets).filter(|_| self.edits());
        self.differences.keys().chain(named).map(String::as_str)
    }

    /// Every command that a permission for it may let it run. Where nothing else is known of what it does, its title is
    /// taken for one.
    pub(super) fn commands(&self) -> Vec<&str> {
        let known = self.command.iter().chain(&self.hinted).map(String::as_str);
        let mut commands: Vec<&str> = known.collect();
        if commands.is_empty() && matches!(self.kind.as_str(), "" | "other" | "execute") {
            commands.push(&self.title);
        }
        commands.dedup();
        commands
    }

    fn tool(&self) -> &str {
        [self.tool.as_str(), self.kind.as_str()].into_iter().find(|name| !name.is_empty()).unwrap_or("other")
    }
}

fn change_of(word: &str) -> Option<ClaimKind> {
    Some(match word {
        "add" => ClaimKind::Added,
        "delete" => ClaimKind::Deleted,
        "update" | "modify" => ClaimKind::Changed,
        _ => return None,
    })
}

/// The calls of a turn.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<String, Call>,
    ended: BTreeSet<String>,
    /// Files that were claimed; whether the last claim was that they are gone.
    claimed: BTreeMap<String, bool>,
    any: bool,
}

impl Calls {
    /// Whether there was one.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Takes in what is said of a call, and returns it.
    pub(super) fn told(&mut self, said: &Value) -> Call {
        let mut call = self.open.get(id_of(said)).cloned().unwrap_or_default();
        call.add(said);
        self.keep(id_of(said), &call);
        call
    }

    /// The call must not be made.
    pub(super) fn refuse(&mut self, said: &Value) {
        let mut call = self.open.get(id_of(said)).cloned().unwrap_or_default();
        call.refused = true;
        self.keep(id_of(said), &call);
    }

    fn keep(&mut self, id: &str, call: &Call) {
        self.any = true;
        let known = self.open.contains_key(id);
        if !id.is_empty() && id.len() <= ID && (known || self.open.len() < OPEN) {
            self.open.insert(id.to_owned(), call.clone());
        }
    }

    /// An update of a call; the claims that come of it.
    pub(super) fn update(&mut self, said: &Value, files: &Files) -> Vec<OwnEvent> {
        let id = id_of(said);
        if self.ended.contains(id) {
            return Vec::new();
        }
        let call = self.told(said);
        let ok = match said.get("status").and_then(Value::as_str) {
            Some("completed") => true,
            Some("failed") => false,
            _ => return Vec::new(),
        };
        self.open.remove(id);
        if !id.is_empty() && id.len() <= ID && self.ended.len() < REMEMBERED {
            self.ended.insert(id.to_owned());
        }
        if call.refused {
            return Vec::new();
        }
        let tool = call.tool().to_owned();
        if let Some(command) = call.command {
            let (path, change) = (None, None);
            return vec![OwnEvent::Tool { tool, path, change, command: Some(command), exit: call.exit, ok }];
        }
        if !ok {
            return Vec::new();
        }
        let claims = call.edited().into_iter();
        claims.filter_map(|(path, change)| self.file(&tool, path, change, files)).collect()
    }

    /// A file that moved; its claim, unless it was claimed before.
    pub(super) fn file(
        &mut self,
        tool: &str,
        path: &str,
        change: ClaimKind,
        files: &Files,
    ) -> Option<OwnEvent> {
        let gone = change == ClaimKind::Deleted;
        let name =
            files.below(path).map_or_else(|| path.to_owned(), |below| below.to_string_lossy().into_owned());
        if self.claimed.get(&name) == Some(&gone) {
            return None;
        }
        if self.claimed.len() < REMEMBERED {
            self.claimed.insert(name, gone);
        }
        let (tool, path) = (tool.to_owned(), Some(path.to_owned()));
        Some(OwnEvent::Tool { tool, path, change: Some(change), command: None, exit: None, ok: true })
    }
}

fn id_of(said: &Value) -> &str {
    said.get("toolCallId").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(updates: &[Value]) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a folder");
        let files = Files::new(dir.path()).expect("a workspace");
        let mut calls = Calls::default();
        let events = updates.iter().flat_map(|said| calls.update(said, &files));
        let shown = events.map(|event| match event {
            OwnEvent::Tool { tool, path: Some(path), change: Some(change), .. } => {
                format!("{tool} {change:?} {path}")
            }
            OwnEvent::Tool { tool, command: Some(command), exit, ok, .. } => {
                format!("{tool} `{command}` {exit:?} {ok}")
            }
            other => panic!("{other:?}"),
        });
        shown.collect()
    }

    #[test]
    fn a_command_is_known_by_its_input_or_by_its_title_where_there_is_none() {
        let begun = json!({"toolCallId": "c", "kind": "execute", "title": "bash", "rawInput": {"cwd": "/w"}});
        let input = json!({"toolCallId": "c", "status": "in_progress", "rawInput": {"command": "make"}});
        let done = |status: &str, output: Value| json!({"toolCallId": "c", "status": status, "title": "make", "rawOutput": output});
        let exit = json!({"metadata": {"exit": 0}});
        assert_eq!(
            claims(&[begun.clone(), input.clone(), done("completed", exit)]),
            ["execute `make` Some(0) true"]
        );
        let failed = done("failed", json!({"exit_code": 2}));
        assert_eq!(claims(&[begun.clone(), input, failed]), ["execute `make` Some(2) false"]);
        assert_eq!(claims(&[begun, done("failed", Value::Null)]), [] as [&str; 0], "a name is no command");
        let told = json!({"toolCallId": "c", "kind": "execute", "title": "ls -l", "status": "completed"});
        assert_eq!(claims(&[told.clone(), told]), ["execute `ls -l` None true"], "said twice, run once");
        let named = json!({"toolCallId": "c", "kind": "other", "_meta": {"toolName": "run_shell_command"},
            "rawInput": {"command": "true"}, "status": "completed", "rawOutput": "Exit Code: 7"});
        assert_eq!(claims(&[named]), ["run_shell_command `true` None true"], "no text is searched");
    }

    #[test]
    fn files_are_known_by_their_difference_else_by_their_place() {
        let call = |kind: &str, status: &str, content: Value, places: Value| json!({"toolCallId": kind, "kind": kind, "status": status, "content": content, "locations": places});
        let diff = |old: Value| json!([{"type": "diff", "path": "a", "oldText": old, "newText": "x"}]);
        let place = json!([{"path": "b"}]);
        for (update, expected) in [
            (call("edit", "completed", diff(Value::Null), json!([])), vec!["edit Added a"]),
            (call("edit", "completed", diff(json!("")), place.clone()), vec!["edit Added a"]),
            (call("edit", "completed", diff(json!("y")), Value::Null), vec!["edit Changed a"]),
            (call("edit", "completed", diff(json!("x")), Value::Null), vec![]),
            (call("delete", "completed", diff(json!("y")), Value::Null), vec!["delete Deleted a"]),
            (call("edit", "completed", json!("odd"), place.clone()), vec!["edit Changed b"]),
            (call("delete", "completed", Value::Null, place.clone()), vec!["delete Deleted b"]),
            (call("read", "completed", Value::Null, place.clone()), vec![]),
            (call("move", "completed", Value::Null, place.clone()), vec![]),
            (call("edit", "failed", diff(Value::Null), json!([])), vec![]),
            (call("edit", "pending", diff(Value::Null), json!([])), vec![]),
        ] {
            assert_eq!(claims(std::slice::from_ref(&update)), expected, "{update}");
        }
        let patch = json!({"toolCallId": "p", "kind": "edit", "status": "completed",
            "rawInput": {"changes": {"a": {"type": "delete"}, "b": {"type": "add"}, "c": {"type": "update"}}}});
        assert_eq!(claims(&[patch]), ["edit Deleted a", "edit Added b", "edit Changed c"]);
    }

    #[test]
    fn a_file_is_claimed_once_until_it_is_gone() {
        let dir = tempfile::tempdir().expect("a folder");
        let files = Files::new(dir.path()).expect("a workspace");
        let mut calls = Calls::default();
        let whole = dir.path().join("a").to_str().expect("UTF-8").to_owned();
        assert!(calls.file("w", &whole, ClaimKind::Added, &files).is_some());
        assert!(calls.file("w", "./a", ClaimKind::Changed, &files).is_none());
        assert!(calls.file("w", "a", ClaimKind::Deleted, &files).is_some());
        assert!(calls.file("w", "a", ClaimKind::Added, &files).is_some());
    }

    #[test]
    fn the_last_input_names_what_is_judged() {
        let mut calls = Calls::default();
        let told = |input: Value| json!({"toolCallId": "c", "kind": "edit", "rawInput": input});
        calls.told(&told(json!({"path": "/w", "command": "rm -rf /w"})));
        let call = calls.told(&told(json!({"path": "/w/a", "command": "rm -rf /w/a"})));
        assert_eq!(call.named().collect::<Vec<_>>(), ["/w/a"]);
        assert_eq!(call.commands(), ["rm -rf /w/a"]);
        let call = calls.told(&told(json!({})));
        assert_eq!((call.named().count(), call.commands().len()), (1, 1));
    }

    #[test]
    fn what_was_refused_is_no_claim_and_too_many_calls_are_let_pass() {
        let dir = tempfile::tempdir().expect("a folder");
        let files = Files::new(dir.path()).expect("a workspace");
        let mut calls = Calls::default();
        let asked = json!({"toolCallId": "c", "kind": "execute", "rawInput": {"command": "x"}});
        assert_eq!(calls.told(&asked).command.as_deref(), Some("x"));
        calls.refuse(&asked);
        assert_eq!(calls.update(&json!({"toolCallId": "c", "status": "failed"}), &files), []);
        for i in 0..2 * OPEN {
            calls.told(&json!({"toolCallId": format!("n{i}"), "kind": "execute"}));
        }
        assert_eq!(calls.open.len(), OPEN);
        let whole = json!({"toolCallId": "late", "kind": "execute", "title": "ls", "status": "completed"});
        assert_eq!(calls.update(&whole, &files).len(), 1, "one that says all at once needs no memory");
    }
}
