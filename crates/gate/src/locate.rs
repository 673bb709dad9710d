//! Places in the workspace that a tool's output names. They are for people and for the agent to look at; nothing
//! is decided from them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use triphammer_model::text::stripped;
use triphammer_model::{Finding, Location, WorkPath};

use crate::beneath;
use crate::stable::{short, stable};

/// Most places that become findings of their own.
pub(crate) const MOST: usize = 10;

/// `path:line` or `path:line:column`, with what follows.
static COLON: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[\s("'`=\[@])(?:file://)?((?:[^\s:"'`()\[\]<>|=@]|:/)+?\.?[^\s:"'`()\[\]<>|=@]*):(\d+)(?::(\d+))?(.*)$"#)
        .expect("the pattern is fixed")
});
/// `path(line,column): ...`
static PAREN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*([^\s:()]+)\((\d+)(?:,(\d+))?\):?(.*)$").expect("the pattern is fixed")
});
/// A frame of a Python traceback.
static FRAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^\s*File "([^"]+)", line (\d+)"#).expect("the pattern is fixed"));
/// The first line of a rustc message.
static RUSTC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(error|warning)(?:\[[A-Za-z0-9_:]+\])?: ").expect("the pattern is fixed"));

/// Resolves what a tool calls a file to a path in the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    workspace: &'a Path,
    dir: &'a str,
}

/// A place as text gave it.
struct Named<'t> {
    path: &'t str,
    line: Option<u32>,
    column: Option<u32>,
    after: &'t str,
}

impl<'a> Places<'a> {
    /// For a gate that runs in `dir`, relative to the workspace.
    pub(crate) fn new(workspace: &'a Path, dir: &'a str) -> Self {
        Self { workspace, dir }
    }

    pub(crate) fn workspace(&self) -> &'a Path {
        self.workspace
    }

    /// The place, when `path` is a regular file in the workspace: seen from the gate's folder, from the workspace,
    /// or absolute.
    pub(crate) fn locate(&self, path: &str, line: Option<u32>, column: Option<u32>) -> Option<Location> {
        let tidy = |path: &str| {
            let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
            (!parts.is_empty()).then(|| parts.join("/"))
        };
        let candidates = if path.starts_with('/') {
            [Path::new(path).strip_prefix(self.workspace).ok().and_then(Path::to_str).and_then(tidy), None]
        } else {
            [tidy(&format!("{}/{path}", self.dir)), tidy(path)]
        };
        let found =
            candidates.into_iter().flatten().find(|p| beneath::is_file(self.workspace, p.as_bytes()))?;
        Some(Location { path: WorkPath::from(found.as_str()), line, column })
    }

    /// Reads `path:line[:column]`.
    pub(crate) fn parse(&self, text: &str) -> Option<Location> {
        let named = named(text)?;
        self.locate(named.path, named.line, named.column)
    }

    /// The first place in the workspace that a text names.
    pub(crate) fn first_in(&self, text: &str) -> Option<Location> {
        text.lines().find_map(|line| self.parse(line))
    }
}

fn named(line: &str) -> Option<Named<'_>> {
    let number = |m: Option<regex::Match<'_>>| m.and_then(|m| m.as_str().parse().ok());
    let found = FRAME.captures(line).or_else(|| PAREN.captures(line)).or_else(|| COLON.captures(line))?;
    Some(Named {
        path: found.get(1)?.as_str(),
        line: number(found.get(2)),
        column: number(found.get(3)),
        after: found.get(4).map_or("", |m| m.as_str()),
    })
}

/// One finding for each distinct line of a file that the output names, the first [`MOST`] by path and line, and how
/// many more there are. Warnings and notes of compilers are passed over.
pub(crate) fn findings(
    lines: &mut dyn Iterator<Item = String>,
    gate: &str,
    places: &Places<'_>,
) -> (Vec<Finding>, usize) {
    let mut seen: BTreeMap<(WorkPath, Option<u32>), (Option<u32>, String)> = BTreeMap::new();
    // rustc says what on one line and where on the next; Python says where first.
    let mut heading: Option<(bool, String)> = None;
    let mut frame: Option<Location> = None;
    let mut add = |location: Location, said: &str| {
        let said = short(&stable(said, places.workspace()), 300);
        let (key, said) = ((location.path, location.line), (location.column, said));
        // Tools that work in parallel speak in any order: of several words on one line the least is kept, but any
        // rather than none.
        match seen.entry(key) {
            Entry::Vacant(slot) => {
                slot.insert(said);
            }
            Entry::Occupied(mut slot) => {
                let old = slot.get();
                let better =
                    if old.1.is_empty() == said.1.is_empty() { said < *old } else { old.1.is_empty() };
                if better {
                    slot.insert(said);
                }
            }
        }
    };
    for line in lines {
        let line = stripped(&line);
        let text = line.trim();
        if let Some(found) = RUSTC.captures(text) {
            heading = Some((&found[1] == "error", text.to_owned()));
            continue;
        }
        if let Some(place) = text.strip_prefix("--> ") {
            if let Some((is_error, said)) = heading.take()
                && is_error
                && let Some(location) = places.parse(place)
            {
                add(location, &said);
            }
            continue;
        }
        if text.is_empty() {
            heading = None;
        }
        if FRAME.is_match(&line) {
            // The innermost frame in the workspace is what counts; its error follows the frames.
            frame = places.parse(&line).or(frame);
            continue;
        }
        if frame.is_some() && !line.starts_with(char::is_whitespace) && !text.is_empty() {
            if let Some(location) = frame.take() {
                add(location, text);
            }
            continue;
        }
        // Lines that a compiler draws around source code name no place of their own.
        if text.starts_with('|') || text.starts_with("::: ") || text.starts_with("= ") {
            continue;
        }
        let Some(named) = named(&line) else { continue };
        let said = named.after.trim_start_matches([':', ' ', ')', ']', '-']).trim();
        let lower = said.to_ascii_lowercase();
        if ["warning", "note", "info", "help"].iter().any(|w| lower.starts_with(w)) {
            continue;
        }
        if let Some(location) = places.locate(named.path, named.line, named.column) {
            add(location, said);
        }
    }
    let more = seen.len().saturating_sub(MOST);
    let finding = |((path, line), (column, said)): (_, (_, String))| {
        let message = if said.is_empty() { "named in the output".to_owned() } else { said };
        Finding::error(format!("{gate}/error"), message).at(Location { path, line, column })
    };
    (seen.into_iter().take(MOST).map(finding).collect(), more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in ["src/lib.rs", "a.c", "a b.c", "sub/x.ts", "main.py", "m.zig"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x\n").unwrap();
        }
        let text = text.replace("WORKSPACE", dir.path().to_str().unwrap());
        let (list, more) =
            findings(&mut text.lines().map(str::to_owned), "g", &Places::new(dir.path(), "sub"));
        let mut out: Vec<String> =
            list.iter().map(|f| format!("{} {}", f.location.as_ref().unwrap(), f.message)).collect();
        if more > 0 {
            out.push(format!("+{more}"));
        }
        out
    }

    #[test]
    fn reads_what_tools_print() {
        for (text, want) in [
            (
                "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\n  |\n3 |     x\n\nerror: aborting due to 1 previous error\n",
                vec!["src/lib.rs:3:5 error[E0425]: cannot find value `x` in this scope"],
            ),
            ("warning: unused variable: `y`\n --> src/lib.rs:9:5\n", vec![]),
            ("a.c:3:7: error: expected ';'\na.c:4: warning: eh\n", vec!["a.c:3:7 error: expected ';'"]),
            ("a.c:3: oops\nWORKSPACE/a.c:3: again\nnone.c:1: no\n", vec!["a.c:3 again"]),
            ("x.ts(3,5): error TS2322: no\n", vec!["sub/x.ts:3:5 error TS2322: no"]),
            ("    at f (WORKSPACE/sub/x.ts:10:3)\n", vec!["sub/x.ts:10:3 named in the output"]),
            ("at file://WORKSPACE/sub/x.ts:10:3\n", vec!["sub/x.ts:10:3 named in the output"]),
            (
                "Traceback (most recent call last):\n  File \"/usr/lib/python3/x.py\", line 1, in f\n  File \"WORKSPACE/main.py\", line 7, in <module>\n    boom()\nValueError: bad\n",
                vec!["main.py:7 ValueError: bad"],
            ),
            ("m.zig:1:2: error: expected type 'u8'\n", vec!["m.zig:1:2 error: expected type 'u8'"]),
            ("thread 'main' (99) panicked at src/lib.rs:5:9:\n", vec!["src/lib.rs:5:9 named in the output"]),
            ("\u{1b}[1ma.c:3:7: \u{1b}[31merror:\u{1b}[0m x\n", vec!["a.c:3:7 error: x"]),
            ("12:30:05 started, http://host:80/x\n", vec![]),
        ] {
            assert_eq!(found(text), want, "{text}");
        }
    }

    #[test]
    fn bounded_with_the_exact_number_of_the_rest() {
        let text = (1..=13).map(|n| format!("a.c:{n}: error: e")).collect::<Vec<_>>().join("\n");
        let got = found(&text);
        assert_eq!(got.len(), MOST + 1);
        assert_eq!(got[MOST], "+3");
    }
}
