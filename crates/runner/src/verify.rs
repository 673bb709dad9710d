//! Whether a run's record holds together: the chain, the decisions, the artifacts, the pins, the trees, the summary.
//!
//! What is found is damage. Whoever can write the whole record can write another one that holds together as well: the chain
//! has no secret and no witness outside.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use triphammer_forge::{MACHINE_VERSION, replay};
use triphammer_model::{
    Attempt, Digest, Event, JournalLine, Movement, Redactor, Report, RunId, RunSummary, TreeId,
};
use triphammer_store::{JournalError, RunDir, Runs, digest_artifacts, is_live, read_journal};
use triphammer_workspace::{Inventory, Seen, Store};

use crate::attempt::before_name;
use crate::proof;

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// `journal`, `decisions`, `artifacts`, `pins`, `figures`, `summary`, `proof` or `trees`.
    pub area: &'static str,
    /// Where: a file below the run directory, with a line where there are lines, or a tree.
    pub place: String,
    /// What is wrong.
    pub what: String,
}

/// What came of looking at a run's record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// Lines of the journal.
    pub lines: u64,
    /// Artifacts whose digest was compared.
    pub artifacts: u64,
    /// Pinned inputs.
    pub pins: u64,
    /// Trees, and the files in them.
    pub trees: u64,
    /// Files and links in the trees, each once.
    pub blobs: u64,
    /// What does not hold.
    pub flaws: Vec<Flaw>,
    /// What could not be looked at, or is not covered, and why.
    pub notes: Vec<String>,
}

impl Verified {
    /// Whether everything that was looked at holds.
    pub fn holds(&self) -> bool {
        self.flaws.is_empty()
    }

    fn flaw(&mut self, area: &'static str, place: impl Into<String>, what: impl Into<String>) {
        self.flaws.push(Flaw { area, place: place.into(), what: what.into() });
    }
}

/// Looks at a run's whole record. With `deep`, file contents in trees are read, too.
pub fn verify(runs: &Runs, id: &RunId, deep: bool) -> Verified {
    let mut verified = Verified::default();
    let dir = runs.open(id, Redactor::default());
    let text = match read_journal(&dir.journal()) {
        Ok(text) => text,
        Err(error) => {
            let place = match &error {
                JournalError::Damaged { line, .. } | JournalError::Newer { line, .. } => {
                    format!("journal.jsonl:{line}")
                }
                _ => "journal.jsonl".to_owned(),
            };
            verified.flaw("journal", place, error.to_string());
            verified
                .notes
                .push("nothing else was looked at: everything is held against the journal".to_owned());
            return verified;
        }
    };
    let live = is_live(&dir.journal());
    if live {
        verified
            .notes
            .push("a process works on the run: what it writes just now is not sealed yet".to_owned());
    }
    verified.lines = text.lines.len() as u64;
    if let Some(torn) = text.torn.filter(|_| !live) {
        let what = format!(
            "{} bytes are no whole line: a process died while it wrote it; `resume` cuts it off",
            torn.bytes
        );
        verified.flaw("journal", format!("journal.jsonl:{}", torn.line), what);
    }
    decisions(&text.lines, &mut verified);
    artifacts(&dir, &text.lines, live, &mut verified);
    pins(&dir, &text.lines, &mut verified);
    figures(&dir, &text.lines, &mut verified);
    if !live {
        summary(&dir, &text.lines, &mut verified);
        proof(&dir, &text.lines, &mut verified);
    }
    trees(runs, id, &text.lines, deep, &mut verified);
    verified
}

fn decisions(lines: &[JournalLine], verified: &mut Verified) {
    let Some(Event::Started(started)) = lines.first().map(|line| &line.event) else {
        return verified.flaw("decisions", "journal.jsonl:1", "it does not begin with `started`");
    };
    if started.machine != MACHINE_VERSION {
        verified.notes.push(format!(
            "decided by rules of version {}, this is version {MACHINE_VERSION}: decisions were not compared; triphammer {} \
             can",
            started.machine, started.version
        ));
        return;
    }
    if let Err(found) = replay(lines) {
        let what = format!(
            "after `{}` the recorded decision is {}, the machine's is {}",
            found.event,
            shown(&found.recorded),
            shown(&found.now)
        );
        verified.flaw("decisions", format!("journal.jsonl:{}", found.seq + 1), what);
    }
}

fn shown(effects: &[triphammer_model::Effect]) -> String {
    serde_json::to_string(effects).unwrap_or_default()
}

/// The last seal, and whether anything was recorded after it.
fn sealed(lines: &[JournalLine]) -> Option<(&BTreeMap<String, Digest>, bool)> {
    let at = lines.iter().rposition(|line| matches!(line.event, Event::Sealed { .. }))?;
    match &lines.get(at)?.event {
        Event::Sealed { artifacts } => Some((artifacts, at + 1 < lines.len())),
        _ => None,
    }
}

fn artifacts(dir: &RunDir, lines: &[JournalLine], live: bool, verified: &mut Verified) {
    let Some((sealed, later)) = sealed(lines) else {
        if !live {
            verified.notes.push(
                "the journal has no seal: the run was killed, so that neither its artifacts nor its last line are covered by a \
                 digest"
                    .to_owned(),
            );
        }
        return;
    };
    let now = match digest_artifacts(dir.path()) {
        Ok(now) => now,
        Err(error) => return verified.flaw("artifacts", ".", error.to_string()),
    };
    if later {
        verified.notes.push(
            "the run was taken up again after its last seal: what was written since is covered by no digest"
                .to_owned(),
        );
    }
    for (path, digest) in sealed {
        match now.get(path) {
            Some(found) if found == digest => verified.artifacts += 1,
            // Written again since, for all that is known.
            Some(_) | None if later => {}
            Some(_) => verified.flaw("artifacts", path.as_str(), "its content is not what was sealed"),
            None => verified.flaw("artifacts", path.as_str(), "it is gone"),
        }
    }
    for path in now.keys().filter(|path| !later && !sealed.contains_key(*path)) {
        verified.flaw("artifacts", path.as_str(), "it was not there when the run was sealed");
    }
}

fn pins(dir: &RunDir, lines: &[JournalLine], verified: &mut Verified) {
    let Some(Event::Started(started)) = lines.first().map(|line| &line.event) else { return };
    for (path, digest) in &started.pins {
        let place = format!("pinned/{path}");
        match dir.read(&place) {
            Ok(bytes) if Digest::of(&bytes) == *digest => verified.pins += 1,
            Ok(_) => verified.flaw("pins", place, "its content is not what the run was pinned to"),
            Err(error) => verified.flaw("pins", place, error.to_string()),
        }
    }
}

/// What the machine was told of each attempt's movement and report, held against what lies on disk.
fn figures(dir: &RunDir, lines: &[JournalLine], verified: &mut Verified) {
    let (mut moved, mut judged) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        match &line.event {
            // Begun anew under its number: what was said of it before lies among its earlier tries.
            Event::Looked { attempt } => {
                moved.remove(attempt);
                judged.remove(attempt);
            }
            Event::Observed { attempt, movement, .. } => {
                moved.insert(*attempt, *movement);
            }
            Event::Judged { attempt, report } => {
                judged.insert(*attempt, report);
            }
            _ => {}
        }
    }
    let relative = |attempt: Attempt, file: &str| format!("attempts/{}/{file}", attempt.dir_name());
    for (attempt, facts) in moved {
        let place = relative(attempt, "movement.json");
        match dir.read_json::<Movement>(&place) {
            Ok(movement) if movement.facts() == facts => {}
            Ok(_) => verified.flaw("figures", place, "what moved is not what the decision rests on"),
            Err(error) => verified.flaw("figures", place, error.to_string()),
        }
    }
    for (attempt, facts) in judged {
        let place = relative(attempt, "report.json");
        match dir.read_json::<Report>(&place) {
            Ok(report) if Report::new(report.verdicts.clone()).facts() == *facts => {}
            Ok(_) => verified.flaw("figures", place, "what the gates said is not what the decision rests on"),
            Err(error) => verified.flaw("figures", place, error.to_string()),
        }
    }
}

fn summary(dir: &RunDir, lines: &[JournalLine], verified: &mut Verified) {
    let Some(derived) = RunSummary::fold(lines) else { return };
    let mut text = serde_json::to_vec_pretty(&derived).unwrap_or_default();
    text.push(b'\n');
    match dir.read("run.json") {
        Ok(recorded) if recorded == text => {}
        Ok(_) => verified.flaw(
            "summary",
            "run.json",
            "it is not what the journal says; remove it, it is derived anew",
        ),
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
            verified.notes.push("run.json is missing; it is derived from the journal".to_owned());
        }
        Err(error) => verified.flaw("summary", "run.json", error.to_string()),
    }
}

/// The proof of an accepted run says what can be derived from the rest.
fn proof(dir: &RunDir, lines: &[JournalLine], verified: &mut Verified) {
    let Some(statement) = proof::statement(dir, lines) else { return };
    match dir.read_json::<serde_json::Value>(proof::PROOF) {
        Ok(recorded) if proof::says(&recorded, statement) => {}
        Ok(_) => verified.flaw("proof", proof::PROOF, "it is not what journal, reports and receipts say"),
        Err(error)
            if error.source.kind() == std::io::ErrorKind::NotFound
                && sealed(lines).is_none_or(|(artifacts, _)| !artifacts.contains_key(proof::PROOF)) =>
        {
            verified.notes.push("the run has no proof.json, and its seal lists none".to_owned());
        }
        Err(error) => verified.flaw("proof", proof::PROOF, error.to_string()),
    }
}

fn trees(runs: &Runs, id: &RunId, lines: &[JournalLine], deep: bool, verified: &mut Verified) {
    let path = runs.path().join(".store.git");
    if !path.is_dir() {
        return verified.flaw("trees", ".store.git", "it is missing: the trees are gone");
    }
    let store = match Store::open(&path) {
        Ok(store) => store,
        Err(error) => return verified.flaw("trees", ".store.git", error.to_string()),
    };
    // What each name has to lead to, by the journal; the others only have to be there.
    let mut expected: BTreeMap<String, TreeId> = BTreeMap::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for line in lines {
        match &line.event {
            Event::Started(started) => {
                expected.insert("0".to_owned(), started.tree.clone());
            }
            Event::Looked { attempt } => {
                names.insert(before_name(*attempt));
            }
            Event::Observed { attempt, left, tree, .. } => {
                expected.insert(format!("{}-left", attempt.dir_name()), left.clone());
                expected.insert(attempt.dir_name(), tree.clone());
            }
            _ => {}
        }
    }
    names.extend(expected.keys().cloned());
    match store.names(id) {
        Ok(kept) => names.extend(kept),
        Err(error) => verified.flaw("trees", ".store.git", error.to_string()),
    }
    let (mut seen, mut found) = (Seen::default(), Inventory::default());
    for name in names {
        match store.check(id, &name, deep, &mut seen, &mut found) {
            Ok(tree) => {
                if let Some(wanted) = expected.get(&name).filter(|wanted| **wanted != tree) {
                    verified.flaw("trees", name, format!("it is {tree}, the journal says {wanted}"));
                }
            }
            Err(error) => verified.flaw("trees", name, error.to_string()),
        }
    }
    verified.trees = found.trees;
    verified.blobs = found.blobs;
    if !deep {
        verified.notes.push("file contents in trees were not read: --deep does".to_owned());
    }
}
