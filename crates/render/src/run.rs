//! A whole run: how it ended, what it cost, each attempt in a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use triphammer_model::process::WaitStatus;
use triphammer_model::summary::{AttemptSummary, RunSummary};
use triphammer_model::text::marked;
use triphammer_model::{Effect, Event, JournalLine, Outcome};

use crate::outcome::{done_line, next_commands};
use crate::proof::StallProof;
use crate::table::columns;
use crate::text::{computed, count, one_line, seconds, tokens, word};

/// Everything that there is to show of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// The summary, folded from the journal.
    pub summary: &'a RunSummary,
    /// Whether a process works on it now.
    pub live: bool,
    /// The journal.
    pub lines: &'a [JournalLine],
    /// Bytes of a last line that a crash left unfinished.
    pub torn_bytes: u64,
    /// The run's folder, for a person.
    pub folder: &'a str,
}

/// A run as text.
pub fn show_run(view: &RunView<'_>) -> String {
    let summary = view.summary;
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "run {}: {}", summary.run, one_line(&summary.goal, 300));
    let outcome = outcome(view.lines);
    let _ = match (&outcome, view.live) {
        (_, true) => writeln!(out, "  in flight: a process works on it now"),
        (Some(outcome), false) => writeln!(out, "  {}", done_line(outcome, summary.attempts)),
        (None, false) => writeln!(
            out,
            "  interrupted (killed): its process died without an end; `triphammer resume {}` goes on",
            summary.run
        ),
    };
    if let Some(decided) = &summary.decided {
        let _ = writeln!(out, "  {}", one_line(decided, 600));
    }
    let _ = writeln!(out, "  spec       {}", one_line(&summary.spec, 80));
    let _ =
        writeln!(out, "  workspace  {} ({})", one_line(&summary.workspace, 300), word(&summary.isolation));
    let _ = writeln!(out, "  record     {}", one_line(view.folder, 300));
    let _ = writeln!(
        out,
        "  started    {}, at work for {}",
        summary.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        seconds(summary.spent.active_ms)
    );
    let _ = writeln!(out, "  spent      {}{}", spent(summary), computed_of(view.lines));
    if let Some(parent) = &summary.parent {
        let _ = writeln!(out, "  branched off run {parent}");
    }
    if view.torn_bytes > 0 {
        let _ = writeln!(
            out,
            "  the journal ends in {} of a line that a crash left unfinished; the lines before it are whole",
            count(view.torn_bytes, "byte")
        );
    }
    show_history(&mut out, &summary.history);
    show_acts(&mut out, view.lines);
    if !view.live {
        if let Some(proof) = StallProof::read(view.lines) {
            let _ = write!(out, "\n{}", marked(&proof.show(&summary.run)));
        }
        let ended = outcome.unwrap_or(Outcome::Interrupted);
        let _ = writeln!(
            out,
            "\n{}",
            next_commands(&summary.run, &ended, summary.isolation, is_undone(view.lines))
        );
    }
    out
}

/// How the run stands at the journal's end; `None` when it has no end, or was taken up again since.
fn outcome(lines: &[JournalLine]) -> Option<Outcome> {
    let mut outcome = None;
    for line in lines {
        if matches!(line.event, Event::Resumed { .. }) {
            outcome = None;
        }
        for effect in &line.effects {
            if let Effect::End { outcome: end } = effect {
                outcome = Some(end.clone());
            }
        }
    }
    outcome
}

/// Whether the workspace was put back and no work was done since.
fn is_undone(lines: &[JournalLine]) -> bool {
    let last = lines.iter().rev().find_map(|line| match line.event {
        Event::Undone { .. } => Some(true),
        Event::Resumed { .. } => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}

fn spent(summary: &RunSummary) -> String {
    let spent = &summary.spent;
    // Unknown is not zero: a sum that holds no known part is not shown as one.
    let sum = |known: Option<String>, unknown: u32, what: &str| {
        let calls = count(u64::from(unknown), "agent call");
        match (known, unknown) {
            (Some(known), 0) => known,
            (Some(known), _) => format!("{known} (and unknown for {calls})"),
            (None, 0) => format!("no {what}"),
            (None, _) => format!("{what} unknown for {calls}"),
        }
    };
    let used = (spent.tokens.total() > 0).then(|| tokens(spent.tokens));
    let paid = (spent.cost.micros() > 0).then(|| spent.cost.to_string());
    let (used, paid) = (sum(used, spent.tokens_unknown, "tokens"), sum(paid, spent.cost_unknown, "cost"));
    format!("{used}; {paid}")
}

/// How much of the cost nobody reported, and by which prices it was computed.
fn computed_of(lines: &[JournalLine]) -> String {
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        if let Event::AgentEnded { facts, .. } = &line.event
            && let Some(by) = facts.cost_by.as_ref().and_then(computed)
        {
            *calls.entry(by).or_default() += 1;
        }
    }
    let mut told = String::new();
    for (by, n) in calls {
        // Writing to a String cannot fail.
        let _ = write!(told, "; {by} for {}", count(n, "agent call"));
    }
    told
}

fn show_history(out: &mut String, history: &[AttemptSummary]) {
    if history.is_empty() {
        let _ = writeln!(out, "\nno attempt was begun");
        return;
    }
    let head = ["attempt", "agent", "ended", "moved", "gates", "report"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for a in history {
        let tries = if a.tries > 1 { format!(" ({} tries)", a.tries) } else { String::new() };
        let charged = if a.charged { "" } else { " (not charged)" };
        rows.push(vec![
            format!("{}{charged}", a.attempt),
            one_line(a.agent.as_str(), 30),
            format!("{}{tries}{}", a.wait.map_or("not seen".to_owned(), ended), fault(a)),
            a.moved.map_or("not seen".to_owned(), |n| n.to_string()),
            match (a.ok, a.findings) {
                (Some(true), _) => "passed".to_owned(),
                (Some(false), findings) => count(findings.unwrap_or(0), "finding"),
                (None, _) => "did not judge".to_owned(),
            },
            a.identity.as_ref().map_or("-".to_owned(), |i| crate::text::short(i.as_str()).to_owned()),
        ]);
    }
    let _ = write!(out, "\n{}", columns(&rows));
    for a in history.iter().filter(|a| a.offences > 0) {
        let paths = count(u64::from(a.offences), "protected path");
        let _ = writeln!(out, "attempt {} changed {paths}: put back", a.attempt);
    }
}

fn ended(wait: WaitStatus) -> String {
    wait.to_string()
}

fn fault(a: &AttemptSummary) -> String {
    a.fault.as_ref().map_or_else(String::new, |f| format!(", {}", word(&f.kind)))
}

fn said(line: &JournalLine, what: &str) -> String {
    format!("  {} {what}", line.at.strftime("%H:%M:%S"))
}

/// That another agent of the chain took over, and why.
fn took_over(effect: &Effect) -> Option<String> {
    let Effect::Look { attempt, agent, from: Some(from), why } = effect else { return None };
    let whose = if *from == 0 { "the start".to_owned() } else { format!("attempt {from}") };
    let why = why.map_or_else(String::new, |why| format!("; the agent before: {}", why.told()));
    Some(format!(
        "{} took over at attempt {attempt}, from the tree of {whose}{why}",
        one_line(agent.as_str(), 80)
    ))
}

/// What people did about the run, and which agent followed which.
fn show_acts(out: &mut String, lines: &[JournalLine]) {
    let mut acts = Vec::new();
    for line in lines {
        acts.extend(line.effects.iter().filter_map(took_over).map(|what| said(line, &what)));
        let what = match &line.event {
            Event::Told { by, text } => format!("{} told it: {}", one_line(by, 80), one_line(text, 300)),
            Event::Decided { accept, by, why } => format!(
                "{} {} it: {}",
                one_line(by, 80),
                if *accept { "accepted" } else { "rejected" },
                one_line(why, 300)
            ),
            Event::Applied { attempt, to, conflicts } => format!(
                "attempt {attempt} was applied to {} with {}",
                one_line(to, 300),
                count(conflicts.len() as u64, "conflict")
            ),
            Event::Undone { forced } => {
                format!(
                    "the workspace was put back to the start{}",
                    if *forced { ", over later edits" } else { "" }
                )
            }
            Event::Resumed { version, .. } => format!("taken up again by version {}", one_line(version, 40)),
            Event::Hindered { reason, detail } => format!("hindered ({reason}): {}", one_line(detail, 600)),
            _ => continue,
        };
        acts.push(said(line, &what));
    }
    if !acts.is_empty() {
        let _ = writeln!(out, "\nalso:\n{}", acts.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{journal, stalled_journal};
    use triphammer_model::{CostBy, MicroUsd};

    fn show(lines: &[JournalLine], live: bool, torn_bytes: u64) -> String {
        let summary = RunSummary::fold(lines).unwrap();
        show_run(&RunView { summary: &summary, live, lines, torn_bytes, folder: "/home/ann/p/runs/x" })
    }

    #[test]
    fn an_accepted_run() {
        insta::assert_snapshot!(show(&journal(), false, 0), @r"
        run 20261130-170601-roman-3fa9: Convert numbers to Roman numerals.
          accepted (gates-passed) at attempt 2, tree 000000000000, after 2 attempts: every gate passed and a red check turned green
          spec       roman
          workspace  /home/ann/roman (in-place)
          record     /home/ann/p/runs/x
          started    2026-11-30 17:06:01 UTC, at work for 1m 30s
          spent      tokens 1000 in, 200 cached, 30 out (and unknown for 1 agent call); $1.25 (and unknown for 1 agent call)

        attempt  agent   ended        moved  gates       report
        1        claude  exit code 0  3      2 findings  601a9eb28335
        2        claude  exit code 0  3      passed      01ba4719c80b
        attempt 2 changed 1 protected path: put back

        next:
          triphammer diff 20261130-170601-roman-3fa9 0 2  the accepted work
          triphammer undo 20261130-170601-roman-3fa9      take it back
        ");
    }

    #[test]
    fn what_was_computed_is_said() {
        let mut lines = journal();
        let by = [CostBy::Prices { as_of: "2026-03-21".to_owned() }, CostBy::OwnPrices];
        let ends = lines.iter_mut().filter_map(|line| match &mut line.event {
            Event::AgentEnded { facts, .. } => Some(facts),
            _ => None,
        });
        for (facts, by) in ends.zip(by) {
            (facts.cost, facts.cost_by) = (Some(MicroUsd::new(20_000)), Some(by));
        }
        let text = show(&lines, false, 0);
        let said = "$0.0400; computed from prices of 2026-03-21 for 1 agent call; computed from your prices for 1 agent call";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn a_later_act_takes_no_time_back() {
        let mut lines = journal();
        let mut act = lines[0].clone();
        act.event = Event::Undone { forced: true };
        act.effects.clear();
        act.elapsed_ms = 0;
        lines.push(act);
        let text = show(&lines, false, 0);
        assert!(text.contains("at work for 1m 30s") && text.contains("over later edits"), "{text}");
        assert!(text.contains("triphammer diff") && !text.contains("triphammer undo"), "{text}");
    }

    #[test]
    fn a_stalled_run_shows_its_proof() {
        let text = show(&stalled_journal(), false, 0);
        assert!(text.contains("why it is stalled") && text.contains("next:"), "{text}");
    }

    #[test]
    fn a_killed_run_and_a_live_one() {
        let lines = journal();
        let killed = show(&lines[..4], false, 12);
        assert!(killed.contains("interrupted (killed)") && killed.contains("ends in 12 bytes"), "{killed}");
        assert!(killed.contains("triphammer resume"), "{killed}");
        let live = show(&lines[..4], true, 0);
        assert!(live.contains("in flight") && !live.contains("next:"), "{live}");
    }
}
