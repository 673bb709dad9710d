//! All runs as their journals tell of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use triphammer_model::event::Started;
use triphammer_model::{Effect, Event, JournalLine, RunId, RunSummary};
use triphammer_store::{JournalText, Runs, RunsError, is_live, read_journal};

/// All runs as they are.
#[derive(Default)]
pub(crate) struct Past {
    pub(crate) runs: BTreeMap<RunId, Facts>,
    pub(crate) damaged: Vec<(RunId, String)>,
}

/// What is known of a run that can be read.
pub(crate) struct Facts {
    pub(crate) started: Started,
    pub(crate) summary: RunSummary,
    pub(crate) ended: Timestamp,
    /// Why `resume` could go on with it; `None` when it is over.
    pub(crate) unfinished: Option<String>,
    /// Folders that its work was merged into.
    pub(crate) applied: Vec<PathBuf>,
    /// Whether a person's edits were overwritten by an undo; they are kept as a tree.
    pub(crate) overwritten: bool,
    pub(crate) lines: usize,
}

impl Past {
    pub(crate) fn read(runs: &Runs) -> Result<Self, RunsError> {
        let mut past = Self::default();
        for id in runs.ids()? {
            let journal = runs.path().join(id.as_str()).join("journal.jsonl");
            match read_journal(&journal) {
                Err(error) => past.damaged.push((id, error.to_string())),
                Ok(text) => match Facts::of(&text, is_live(&journal)) {
                    Some(facts) => drop(past.runs.insert(id, facts)),
                    None => past.damaged.push((id, "its journal begins with no `started`".to_owned())),
                },
            }
        }
        Ok(past)
    }
}

impl Facts {
    fn of(text: &JournalText, live: bool) -> Option<Self> {
        let lines = &text.lines;
        let Event::Started(started) = &lines.first()?.event else { return None };
        let summary = RunSummary::fold(lines)?;
        let end =
            |line: &&JournalLine| line.effects.iter().any(|effect| matches!(effect, Effect::End { .. }));
        let applied = lines.iter().filter_map(|line| match &line.event {
            Event::Applied { to, .. } => Some(PathBuf::from(to)),
            _ => None,
        });
        let overwritten = lines.iter().any(|line| matches!(line.event, Event::Undone { forced: true }));
        Some(Self {
            started: (**started).clone(),
            ended: lines.iter().rev().find(end).or(lines.last())?.at,
            unfinished: unfinished(&summary, text, live),
            applied: applied.collect(),
            overwritten,
            lines: lines.len(),
            summary,
        })
    }
}

fn unfinished(summary: &RunSummary, text: &JournalText, live: bool) -> Option<String> {
    let sealed = text.lines.last().is_some_and(|line| matches!(line.event, Event::Sealed { .. }));
    if live {
        return Some("a process works on it".to_owned());
    }
    match summary.outcome.as_str() {
        "in-flight" => Some("not finished, it was killed: `resume` goes on with it".to_owned()),
        "suspended" | "interrupted" => Some(format!(
            "not finished, it is {} ({}): `resume` goes on with it",
            summary.outcome, summary.reason
        )),
        _ if !sealed || text.torn.is_some() => {
            Some("its last process was killed before the journal was sealed".to_owned())
        }
        _ => None,
    }
}
