//! What `run` and `resume` print: plain lines, or one JSON object a line.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use triphammer_gate::GateProgress;
use triphammer_model::{Event, JournalLine, Outcome};
use triphammer_render as render;
use triphammer_runner::{Notice, Watcher};

use crate::live::Live;
use crate::say;

/// Prints what a run tells.
pub(crate) struct Terminal {
    json: bool,
    live: Option<Live>,
    /// The preflight is over.
    begun: AtomicBool,
    state: Mutex<render::Story>,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        let live = if json { None } else { Live::on_terminal() };
        Self { json, live, begun: AtomicBool::new(false), state: Mutex::new(render::Story::default()) }
    }

    fn plain(&self, notice: &Notice<'_>) {
        let mut story = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lines: Vec<String> = match notice {
            Notice::Launched { run, dir } => vec![format!("run {run}"), format!("  in {}", dir.display())],
            Notice::Planned(plan) => vec![render::plan_line(plan)],
            Notice::Recorded(line) => {
                if matches!(line.event, Event::Preflighted(_) | Event::Resumed { .. }) {
                    self.begun.store(true, Ordering::Relaxed);
                }
                story.tell(line)
            }
            Notice::Gate(GateProgress::Started { .. }) | Notice::Working { .. } => Vec::new(),
            Notice::Gate(GateProgress::Finished { verdict }) => {
                let line = render::verdict_line(verdict);
                // Before any work red is what is hoped for, not a failure.
                let begun = self.begun.load(Ordering::Relaxed);
                vec![if begun { line } else { line.replacen("  FAIL ", "  red  ", 1) }]
            }
            Notice::Remark(text) => vec![format!("  note: {text}")],
            Notice::Done { outcome, summary } => vec![
                render::done_line(outcome, summary.attempts),
                render::next_commands(&summary.run, outcome, summary.isolation, false),
            ],
        };
        if let Some(live) = &self.live {
            live.notice(notice);
        }
        for line in lines.iter().filter(|l| !l.is_empty()) {
            match &self.live {
                Some(live) if !matches!(notice, Notice::Done { .. }) => live.println(&say::marked(line)),
                _ => say::talk(&say::marked(line)),
            }
        }
        if let Notice::Done { outcome, summary } = notice {
            // The one line of data: what a script reads without --json.
            say::data(&format!("{} {} {}", summary.run, outcome.word(), outcome.reason()));
        }
    }
}

impl Watcher for Terminal {
    fn notice(&self, notice: &Notice<'_>) {
        if !self.json {
            return self.plain(notice);
        }
        let object = match notice {
            Notice::Launched { run, dir } => {
                json!({"type": "launch", "schema": 1, "run": run, "dir": dir.display().to_string()})
            }
            Notice::Recorded(line) => recorded(line),
            Notice::Gate(GateProgress::Started { gate, kind }) => {
                json!({"type": "gate-started", "gate": gate, "kind": kind})
            }
            Notice::Gate(GateProgress::Finished { verdict }) => {
                json!({"type": "gate-finished", "gate": verdict.gate, "verdict": verdict.word(),
                       "duration_ms": verdict.duration_ms})
            }
            Notice::Remark(text) => json!({"type": "remark", "text": text}),
            Notice::Planned(plan) => json!({"type": "plan", "text": render::plan_line(plan)}),
            Notice::Working { attempt, workspace } => {
                json!({"type": "working", "attempt": attempt, "workspace": workspace.display().to_string()})
            }
            Notice::Done { outcome, summary } => done(summary.run.as_str(), outcome, summary.attempts),
        };
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{object}");
        let _ = out.flush();
    }
}

fn recorded(line: &JournalLine) -> serde_json::Value {
    json!({
        "type": line.event.word(),
        "seq": line.seq,
        "at": line.at,
        "event": line.event,
        "effects": line.effects,
    })
}

fn done(run: &str, outcome: &Outcome, attempts: u32) -> serde_json::Value {
    let (accepted, tree) = match outcome {
        Outcome::Accepted { attempt, tree, .. } => (Some(*attempt), tree.clone()),
        _ => (None, None),
    };
    json!({
        "type": "done",
        "run": run,
        "outcome": outcome.word(),
        "reason": outcome.reason(),
        "attempts": attempts,
        "accepted_attempt": accepted,
        "tree": tree,
        "exit_code": outcome.exit_code(),
    })
}
