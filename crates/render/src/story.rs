//! What a person reads while a run goes on: a few plain lines for each line of the journal.

use std::fmt::Write as _;

use triphammer_model::event::AgentFacts;
use triphammer_model::movement::MovementFacts;
use triphammer_model::{Effect, Event, JournalLine};

use crate::bounded::Bounded;
use crate::preflight::preflight_line;
use crate::text::{count, one_line, seconds, usage, word};
use crate::verdict::report_line;

/// Tells a run line by line. It remembers what one line alone does not say.
#[derive(Clone, Debug, Default)]
pub struct Story {
    attempts: Option<u32>,
}

impl Story {
    /// What `line` has to say to a person; often nothing.
    pub fn tell(&mut self, line: &JournalLine) -> Vec<String> {
        let mut out = Vec::new();
        self.event(&line.event, &mut out);
        for effect in &line.effects {
            self.effect(effect, &mut out);
        }
        out
    }

    fn event(&mut self, event: &Event, out: &mut Vec<String>) {
        match event {
            Event::Started(start) => self.attempts = Some(start.limits.attempts),
            Event::Preflighted(facts) => out.push(preflight_line(facts)),
            Event::AgentEnded { agent, facts, .. } => out.push(agent_line(agent.as_str(), facts)),
            Event::Observed { movement, offences, .. } => {
                out.push(format!("  {}", movement_line(movement)));
                if *offences > 0 {
                    let paths = count(u64::from(*offences), "protected path");
                    out.push(format!("  {paths} changed by the agent: put back, and a finding"));
                }
            }
            Event::Judged { report, .. } => out.push(format!("  {}", report_line(report))),
            Event::Interrupted { by } => out.push(format!("interrupted by {}", one_line(by, 80))),
            Event::Hindered { reason, detail } => {
                out.push(format!("hindered ({reason}): {}", one_line(detail, 600)));
            }
            Event::SetupFailed { reason, detail } => {
                out.push(format!("could not be set up ({reason}): {}", one_line(detail, 600)));
            }
            Event::PinsBroken { pins } => {
                let list = Bounded::new(pins, 5).on_one_line(|p| one_line(p, 120));
                out.push(format!("altered since the start: {list}"));
            }
            Event::Resumed { version, ended, torn_bytes } => {
                out.push(format!("resumed by version {}", one_line(version, 40)));
                if !ended.is_empty() {
                    let list = Bounded::new(ended, 5).on_one_line(ToString::to_string);
                    out.push(format!("  ended what the dead run had left running, by process id: {list}"));
                }
                if *torn_bytes > 0 {
                    let bytes = count(*torn_bytes, "byte");
                    out.push(format!(
                        "  cut {bytes} off the journal: a line that a crash had left unfinished"
                    ));
                }
            }
            Event::Told { by, text } => {
                out.push(format!("told by {}: {}", one_line(by, 80), one_line(text, 300)));
            }
            Event::Looked { .. }
            | Event::Waited { .. }
            | Event::Decided { .. }
            | Event::Applied { .. }
            | Event::Undone { .. }
            | Event::Sealed { .. } => {}
        }
    }

    fn effect(&self, effect: &Effect, out: &mut Vec<String>) {
        match effect {
            Effect::Look { attempt, agent, from, why } => {
                let of = self.attempts.map_or_else(String::new, |n| format!(" of {n}"));
                let takes_over = match from {
                    None => String::new(),
                    Some(0) => ", takes over from the start".to_owned(),
                    Some(n) => format!(", takes over from attempt {n}"),
                };
                let why = why.map_or_else(String::new, |why| format!(" (the agent before: {})", why.told()));
                out.push(format!("attempt {attempt}{of}: {}{takes_over}{why}", one_line(agent.as_str(), 80)));
            }
            Effect::Implement { try_no, agent, .. } if *try_no > 1 => {
                out.push(format!("  try {try_no}: {}", one_line(agent.as_str(), 80)));
            }
            Effect::Wait { ms, .. } => {
                out.push(format!(
                    "  a transient failure: waiting {} before the next try, not charged",
                    seconds(*ms)
                ));
            }
            // Who carries a hold out says so with what it means; the end is told with what to do next.
            Effect::Hold { .. }
            | Effect::End { .. }
            | Effect::Preflight
            | Effect::Implement { .. }
            | Effect::Observe { .. }
            | Effect::Judge { .. } => {}
        }
    }
}

fn agent_line(agent: &str, facts: &AgentFacts) -> String {
    let mut line = format!(
        "  {} ended after {}: {}; {}",
        one_line(agent, 80),
        seconds(facts.duration_ms),
        facts.wait,
        usage(facts)
    );
    // Writing to a String cannot fail.
    if let Some(fault) = &facts.fault {
        line.push_str("; fault: ");
        line.push_str(&word(&fault.kind));
        if let Some(reset) = fault.reset_at {
            let _ = write!(line, " until {reset}");
        }
        if let Some(message) = &fault.message {
            let _ = write!(line, " ({})", one_line(message, 300));
        }
    }
    line
}

/// How much moved, on one line.
pub(crate) fn movement_line(facts: &MovementFacts) -> String {
    let touched = facts.stat.saturating_sub(facts.content);
    let mut line = if facts.content > 0 {
        format!("moved {}", count(facts.content, "path"))
    } else {
        "moved nothing".to_owned()
    };
    if touched > 0 {
        let _ = write!(line, " ({touched} more only touched)");
    }
    let claims: Vec<String> = [
        (facts.corroborated, "corroborated"),
        (facts.unverifiable, "unverifiable"),
        (facts.disproved, "disproved"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{n} {what}"))
    .collect();
    if !claims.is_empty() {
        let _ = write!(line, "; claims that the diff does not show: {}", claims.join(", "));
    }
    match facts.infrastructure {
        Some(0) => line.push_str("; hidden tool folders stood still too"),
        Some(n) => {
            let _ = write!(line, "; {} moved in hidden tool folders", count(n, "path"));
        }
        None => {}
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{journal, lines_of};
    use triphammer_model::process::WaitStatus;
    use triphammer_model::{Fault, FaultKind, SuspendReason};

    #[test]
    fn a_run_reads_as_a_story() {
        let mut story = Story::default();
        let text: Vec<String> = journal().iter().flat_map(|line| story.tell(line)).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        preflight: 2 gates; red, to turn green: rust-test
        attempt 1 of 5: claude
          claude ended after 12.3 s: exit code 0; tokens 1000 in, 200 cached, 30 out, cost $1.25
          moved 3 paths (1 more only touched); claims that the diff does not show: 1 disproved
          report: 1 passed, 1 failed, 1 skipped: 2 findings
        attempt 2 of 5: claude
          claude ended after 12.3 s: exit code 0; tokens unknown, cost unknown
          moved 3 paths (1 more only touched); claims that the diff does not show: 1 disproved
          1 protected path changed by the agent: put back, and a finding
          report: 3 passed
        ");
    }

    #[test]
    fn what_goes_wrong_is_told() {
        let fault = Fault {
            kind: FaultKind::RateLimit,
            reset_at: Some("2026-11-30T18:00:00Z".parse().unwrap()),
            message: Some("slow\u{1b}[0m\ndown".to_owned()),
        };
        let facts = AgentFacts {
            wait: WaitStatus::TimedOut { code: None, signal: Some(9) },
            duration_ms: 61_000,
            tokens: None,
            cost: None,
            cost_by: None,
            fault: Some(fault),
        };
        let attempt = crate::samples::attempt(1);
        let lines = lines_of(vec![
            (
                Event::AgentEnded { attempt, agent: "claude".into(), try_no: 1, facts },
                vec![Effect::Wait { attempt, ms: 2_000 }],
            ),
            (
                Event::Waited { attempt },
                vec![Effect::Implement { attempt, agent: "claude".into(), try_no: 2 }],
            ),
            (
                Event::Hindered { reason: SuspendReason::DiskFull, detail: "writing x: no space".to_owned() },
                vec![],
            ),
            (Event::PinsBroken { pins: vec!["spec.md".to_owned()] }, vec![]),
            (Event::Resumed { version: "0.1.0".to_owned(), ended: vec![41, 42], torn_bytes: 17 }, vec![]),
            (Event::Interrupted { by: "signal".to_owned() }, vec![]),
            (Event::Told { by: "ann".to_owned(), text: "use\nBTreeMap".to_owned() }, vec![]),
        ]);
        let mut story = Story::default();
        let text: Vec<String> = lines.iter().flat_map(|line| story.tell(line)).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
          claude ended after 1m 01s: ended at its deadline (by signal 9); tokens unknown, cost unknown; fault: rate-limit until 2026-11-30T18:00:00Z (slow�[0m down)
          a transient failure: waiting 2.0 s before the next try, not charged
          try 2: claude
        hindered (disk-full): writing x: no space
        altered since the start: spec.md
        resumed by version 0.1.0
          ended what the dead run had left running, by process id: 41, 42
          cut 17 bytes off the journal: a line that a crash had left unfinished
        interrupted by signal
        told by ann: use BTreeMap
        ");
    }
}
