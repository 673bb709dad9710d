//! Which gates have something to do in a workspace.

use std::collections::BTreeSet;

use globset::{GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use triphammer_model::{GateName, Spec, WorkPath};

use crate::beneath;
use crate::files::WorkFiles;
use crate::gate::{CommandGate, Gate, spec_gates};
use crate::pack::{Packs, shipped_names};
use crate::pack_file::glob;

/// The gates that were discovered so far. One once discovered stays for the run: a workspace that loses its
/// `Cargo.toml` does not lose its gates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    gates: BTreeSet<GateName>,
}

impl Discovered {
    /// Looks at the workspace and returns the gates that are new, in pack order. Named packs need no discovery.
    pub fn look(&mut self, packs: &Packs, files: &WorkFiles) -> Vec<GateName> {
        if packs.is_named() {
            return Vec::new();
        }
        let mut new = Vec::new();
        for gate in packs.gates() {
            let Gate::Command(gate) = gate else { continue };
            if !self.gates.contains(&gate.name) && has_work(gate, files) {
                self.gates.insert(gate.name.clone());
                new.push(gate.name.clone());
            }
        }
        new
    }

    /// All of them.
    pub fn gates(&self) -> impl Iterator<Item = &GateName> {
        self.gates.iter()
    }
}

/// The gates that apply: the packs' in pack order, then the spec's checks, then its keep-greens.
///
/// Of named packs every gate applies, whatever its `when` says. Otherwise those discovered; rule gates, which judge
/// style and honesty and not function, apply only when their pack is named.
pub fn applying(packs: &Packs, discovered: &Discovered, spec: &Spec) -> Vec<Gate> {
    let applies = |gate: &&Gate| packs.is_named() || discovered.gates.contains(gate.name());
    packs.gates().iter().filter(applies).cloned().chain(spec_gates(spec)).collect()
}

fn has_work(gate: &CommandGate, files: &WorkFiles) -> bool {
    if gate.when.is_empty() {
        // In a home's own pack a gate without a condition is meant to run; the shipped ones all have one.
        return !matches!(&gate.origin, crate::gate::Origin::Pack(p) if shipped_names().any(|n| n == p));
    }
    let base = gate.dir.trim_start_matches("./").trim_end_matches('/');
    let base = if base == "." { "" } else { base };
    let mut globs = GlobSetBuilder::new();
    for entry in &gate.when {
        let entry = entry.trim_start_matches("./").trim_end_matches('/');
        let path = if base.is_empty() { entry.to_owned() } else { format!("{base}/{entry}") };
        if !entry.contains(['*', '?', '[', '{']) {
            if beneath::exists(files.root(), path.as_bytes()) {
                return true;
            }
            continue;
        }
        // The pack was checked when it was parsed.
        if let Ok(glob) = glob(entry) {
            globs.add(glob);
        }
    }
    let Ok(globs) = globs.build() else { return false };
    matches_any(&globs, files, base)
}

fn matches_any(globs: &GlobSet, files: &WorkFiles, base: &str) -> bool {
    !globs.is_empty()
        && files
            .paths()
            .iter()
            .any(|path| below(path, base).is_some_and(|rest| globs.is_match(rest.as_path())))
}

fn below(path: &WorkPath, base: &str) -> Option<WorkPath> {
    if base.is_empty() {
        return Some(path.clone());
    }
    let rest = path.as_bytes().strip_prefix(base.as_bytes())?.strip_prefix(b"/")?;
    Some(WorkPath::from_bytes(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::{PackTexts, collect};

    fn look(discovered: &mut Discovered, packs: &Packs, dir: &std::path::Path) -> Vec<String> {
        discovered.look(packs, &WorkFiles::walk(dir)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn gates_come_as_the_folder_fills_and_stay() {
        let (ws, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let packs = Packs::parse(&collect(None, home.path()).unwrap(), None).unwrap();
        let mut discovered = Discovered::default();
        assert!(look(&mut discovered, &packs, ws.path()).is_empty());
        std::fs::write(ws.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(look(&mut discovered, &packs, ws.path()), ["rust-build", "rust-test"]);
        std::fs::create_dir(ws.path().join("tools")).unwrap();
        std::fs::write(ws.path().join("tools/run.sh"), "").unwrap();
        assert_eq!(look(&mut discovered, &packs, ws.path()), ["shell-syntax"]);
        std::fs::remove_file(ws.path().join("Cargo.toml")).unwrap();
        assert!(look(&mut discovered, &packs, ws.path()).is_empty());
        let stored: Discovered = serde_json::from_str(&serde_json::to_string(&discovered).unwrap()).unwrap();
        let spec = Spec::default();
        let names: Vec<String> =
            applying(&packs, &stored, &spec).iter().map(|g| g.name().to_string()).collect();
        assert_eq!(names, ["rust-build", "rust-test", "shell-syntax"]);
    }

    #[test]
    fn when_is_matched_in_the_gates_folder() {
        let text = |dir: &str, when: &str| {
            let gate = format!(
                "[[gate]]\nname = \"g\"\nkind = \"test\"\nrun = [\"true\"]\ndir = \"{dir}\"\nwhen = [\"{when}\"]\n"
            );
            PackTexts::from([("p.toml".to_owned(), gate.into_bytes())])
        };
        let ws = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(ws.path().join("web/src")).unwrap();
        std::fs::write(ws.path().join("web/package.json"), "").unwrap();
        std::fs::write(ws.path().join("web/src/a.ts"), "").unwrap();
        for (dir, when, found) in [
            ("web", "package.json", true),
            ("./web/", "package.json", true),
            (".", "package.json", false),
            (".", "web/src", true),
            ("web", "src/*.ts", true),
            ("web", "*.ts", false),
            ("web", "**/*.ts", true),
            (".", "**/package.json", true),
            ("none", "package.json", false),
        ] {
            let packs = Packs::parse(&text(dir, when), None).unwrap();
            let got = !look(&mut Discovered::default(), &packs, ws.path()).is_empty();
            assert_eq!(got, found, "{dir} {when}");
        }
    }

    #[test]
    fn named_packs_always_apply_with_the_specs_gates_last() {
        let home = tempfile::tempdir().unwrap();
        let names = vec!["honesty".to_owned(), "rust".to_owned()];
        let packs = Packs::parse(&collect(Some(&names), home.path()).unwrap(), Some(&names)).unwrap();
        let check = |name: &str| triphammer_model::spec::Check { name: name.into(), command: "true".into() };
        let spec = Spec { checks: vec![check("one")], keep_green: vec![check("two")], ..Spec::default() };
        let gates = applying(&packs, &Discovered::default(), &spec);
        let names: Vec<&str> = gates.iter().map(|g| g.name().as_str()).collect();
        assert_eq!(names, ["honesty", "rust-build", "rust-test", "accept-one", "keep-two"]);
    }
}
