//! One attempt: what it was told, what moved, what the gates said, and why it ended.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use triphammer_model::event::AgentFacts;
use triphammer_model::text::marked;
use triphammer_model::{
    Attempt, Bounds, Change, Content, Continuation, Effect, Event, GuardReport, JournalLine, Movement,
    Observed, Receipt, Report, RunId, Standing,
};

use crate::bounded::{Bounded, bounded_lines};
use crate::outcome::done_line;
use crate::text::{count, indent, one_line, seconds, usage, word};
use crate::verdict::{report_line, show_verdict};

/// Paths that are shown of one list.
const PATHS: usize = 50;

/// What was read of an artifact, or why it could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Artifact<T> {
    /// It was read.
    Read(T),
    /// It could not be: why, in one line.
    Missing(String),
}

impl<T> Artifact<T> {
    fn missing(&self) -> Option<&str> {
        match self {
            Self::Read(_) => None,
            Self::Missing(why) => Some(why),
        }
    }
}

/// Everything that there is to show of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptView<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The attempt.
    pub attempt: Attempt,
    /// The run's journal.
    pub lines: &'a [JournalLine],
    /// `brief.md`.
    pub brief: Artifact<String>,
    /// `movement.json`.
    pub movement: Artifact<Movement>,
    /// `receipt.json`.
    pub receipt: Artifact<Receipt>,
    /// `guard.json`; most attempts have none.
    pub guard: Option<Artifact<GuardReport>>,
    /// `report.json`.
    pub report: Artifact<Report>,
}

/// An attempt as text.
pub fn show_attempt(view: &AttemptView<'_>) -> String {
    let folder = format!("attempts/{}", view.attempt.dir_name());
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "attempt {} of run {}", view.attempt, view.run);
    for (agent, try_no, facts) in ended(view.lines, view.attempt) {
        show_agent(&mut out, agent, try_no, facts);
    }
    show_brief(&mut out, &view.brief, &folder);
    show_receipt(&mut out, &view.receipt);
    if let Some(guard) = &view.guard {
        show_guard(&mut out, guard, &folder);
    }
    show_movement(&mut out, &view.movement, &folder);
    match &view.report {
        Artifact::Read(report) => {
            let _ = writeln!(out, "\n{}", report_line(&report.facts()));
            for verdict in &report.verdicts {
                out.push_str(&show_verdict(verdict, &format!("{folder}/report.json")));
            }
        }
        Artifact::Missing(why) => {
            let _ = writeln!(out, "\nreport: none: {}", one_line(why, 300));
        }
    }
    let _ = writeln!(out, "\nthen: {}", ending(view.lines, view.attempt));
    out
}

/// An attempt as JSON: `brief`, `movement`, `receipt`, `report`, each `null` when it is missing, and `missing` with
/// why; `guard` is `null` where nothing is claimed that cannot be undone.
pub fn attempt_json(view: &AttemptView<'_>) -> Value {
    let mut missing = Map::new();
    let mut say = |name: &str, why: Option<&str>| {
        if let Some(why) = why {
            missing.insert(name.to_owned(), json!(why));
        }
    };
    say("brief", view.brief.missing());
    say("movement", view.movement.missing());
    say("receipt", view.receipt.missing());
    say("report", view.report.missing());
    say("guard", view.guard.as_ref().and_then(Artifact::missing));
    json!({
        "attempt": view.attempt,
        "brief": value(&view.brief),
        "movement": value(&view.movement),
        "receipt": value(&view.receipt),
        "guard": view.guard.as_ref().map_or(Value::Null, value),
        "report": value(&view.report),
        "missing": missing,
        "then": ending(view.lines, view.attempt),
    })
}

fn value<T: serde::Serialize>(artifact: &Artifact<T>) -> Value {
    match artifact {
        Artifact::Read(value) => json!(value),
        Artifact::Missing(_) => Value::Null,
    }
}

fn ended(lines: &[JournalLine], attempt: Attempt) -> impl Iterator<Item = (&str, u32, &AgentFacts)> {
    lines.iter().filter_map(move |line| match &line.event {
        Event::AgentEnded { attempt: n, agent, try_no, facts } if *n == attempt => {
            Some((agent.as_str(), *try_no, facts))
        }
        _ => None,
    })
}

fn show_agent(out: &mut String, agent: &str, try_no: u32, facts: &AgentFacts) {
    let _ = writeln!(
        out,
        "agent {}, try {try_no}: {} after {}; {}",
        one_line(agent, 80),
        facts.wait,
        seconds(facts.duration_ms),
        usage(facts)
    );
    if let Some(fault) = &facts.fault {
        let said = fault.message.as_deref().map_or_else(String::new, |m| format!(": {}", one_line(m, 300)));
        let _ = writeln!(out, "  fault: {}{said}", word(&fault.kind));
    }
}

fn show_brief(out: &mut String, brief: &Artifact<String>, folder: &str) {
    let _ = match brief {
        Artifact::Read(brief) => {
            let _ = writeln!(out, "\nbrief:");
            indent(out, "  > ", &bounded_lines(brief, 60, 20, &format!("{folder}/brief.md")));
            Ok(())
        }
        Artifact::Missing(why) => writeln!(out, "\nbrief: none: {}", one_line(why, 300)),
    };
}

fn show_receipt(out: &mut String, receipt: &Artifact<Receipt>) {
    let receipt = match receipt {
        Artifact::Read(receipt) => receipt,
        Artifact::Missing(why) => {
            let _ = writeln!(out, "\nreceipt: none: {}", one_line(why, 300));
            return;
        }
    };
    let _ = writeln!(
        out,
        "\nreceipt (what the agent's side claims): {}, {}",
        count(receipt.files.len() as u64, "file"),
        count(receipt.commands.len() as u64, "command")
    );
    match &receipt.continuation {
        Some(Continuation::Session { id }) => {
            let _ = writeln!(out, "  went on with its session {}", one_line(id, 100));
        }
        Some(Continuation::Digest { attempt }) => {
            let _ = writeln!(out, "  went on with a digest of what it did in attempt {attempt}");
        }
        Some(Continuation::Fresh) => {
            let _ = writeln!(out, "  began afresh");
        }
        None => {}
    }
    for (name, value) in [
        ("model", &receipt.model),
        ("stop reason", &receipt.stop_reason),
        ("last words", &receipt.last_words),
    ] {
        if let Some(value) = value {
            let _ = writeln!(out, "  {name}: {}", one_line(value, 600));
        }
    }
    let troubles = Bounded::new(&receipt.troubles, 5);
    for trouble in troubles.shown {
        let _ = writeln!(out, "  could not be read: {}", one_line(trouble, 300));
    }
    if let Some(marker) = troubles.marker("trouble", "receipt.json") {
        let _ = writeln!(out, "  {marker}");
    }
}

fn show_guard(out: &mut String, guard: &Artifact<GuardReport>, folder: &str) {
    let report = match guard {
        Artifact::Read(report) => report,
        Artifact::Missing(why) => {
            let _ = writeln!(out, "\nguard: not known: {}", one_line(why, 300));
            return;
        }
    };
    let all = report.reported.len() as u64 + report.left_out;
    let _ = writeln!(
        out,
        "\nguard: {} that cannot be undone, by what the agent's side claims; nobody saw any of it run",
        count(all, "command")
    );
    let reported = Bounded::of_more(&report.reported, all, PATHS);
    for one in reported.shown {
        let said = if one.refused { "refused, not run" } else { "claimed as run" };
        let doubt = if one.sure { "" } else { " (it hangs on what only the shell knew)" };
        let command = one_line(&one.command, 300);
        let _ = writeln!(out, "  {said}: `{command}`: {}{doubt} [{}]", one_line(&one.why, 300), one.rule);
    }
    // The file holds no more than is listed in it.
    let all_in = if report.left_out == 0 { format!("{folder}/guard.json") } else { String::new() };
    if let Some(marker) = reported.marker("command", &all_in) {
        let _ = writeln!(out, "  {marker}");
    }
}

fn show_movement(out: &mut String, movement: &Artifact<Movement>, folder: &str) {
    let movement = match movement {
        Artifact::Read(movement) => movement,
        Artifact::Missing(why) => {
            let _ = writeln!(out, "\nmovement: not known: {}", one_line(why, 300));
            return;
        }
    };
    let all_in = format!("{folder}/movement.json");
    let _ = writeln!(
        out,
        "\nmovement: {} observed, {} claimed, {} touched",
        count(movement.observed.len() as u64, "path"),
        movement.claimed.len(),
        movement.touched.len()
    );
    let observed = Bounded::new(&movement.observed, PATHS);
    for o in observed.shown {
        let _ = writeln!(out, "  {}", observed_line(o));
    }
    if let Some(marker) = observed.marker("path", &all_in) {
        let _ = writeln!(out, "  {marker}");
    }
    let claimed = Bounded::new(&movement.claimed, PATHS);
    for claim in claimed.shown {
        let why = claim.why.as_deref().map_or_else(String::new, |w| format!(": {}", one_line(w, 200)));
        let counts = match claim.standing {
            Standing::Observed => "",
            _ if movement.touched.contains(&claim.path) => " (counts as touched)",
            _ => " (does not count)",
        };
        let path = one_line(&claim.path.to_string(), 300);
        let _ = writeln!(out, "  claim {path}: {}{why}{counts}", word(&claim.standing));
    }
    if let Some(marker) = claimed.marker("claim", &all_in) {
        let _ = writeln!(out, "  {marker}");
    }
    match &movement.infrastructure {
        Some(infrastructure) if infrastructure.moved > 0 => {
            let list = Bounded::of_more(&infrastructure.sample, infrastructure.moved, 10)
                .on_one_line(|p| one_line(&p.to_string(), 200));
            let _ = writeln!(
                out,
                "  hidden tool folders (they are no movement): {} moved: {list}",
                count(infrastructure.moved, "path")
            );
        }
        Some(_) => {
            let _ = writeln!(out, "  hidden tool folders: nothing moved");
        }
        None => {
            let _ = writeln!(out, "  hidden tool folders: not looked at, since the deliverable moved");
        }
    }
    show_bounds(out, &movement.bounds);
}

fn observed_line(observed: &Observed) -> String {
    let change = match observed.change {
        Change::Added => "added  ",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
    };
    let content = match observed.content {
        Content::Changed => "",
        Content::Same => " (only touched: the same bytes, mode and link target)",
        Content::Unknown => " (its content could not be read: counts as moved)",
    };
    let from = observed
        .renamed_from
        .as_ref()
        .map_or_else(String::new, |p| format!(" (was {})", one_line(&p.to_string(), 300)));
    format!("{change} {}{from}{content}", one_line(&observed.path.to_string(), 300))
}

/// What was not looked at, and what its absence means.
fn show_bounds(out: &mut String, bounds: &Bounds) {
    let mut lines = Vec::new();
    if bounds.pruned_count > 0 {
        let pruned: Vec<(String, &String)> =
            bounds.pruned.iter().map(|(path, why)| (path.to_string(), why)).collect();
        let list = Bounded::of_more(&pruned, bounds.pruned_count, 10)
            .on_one_line(|(path, why)| format!("{} ({})", one_line(path, 200), one_line(why, 60)));
        lines.push(format!("{}: {list}", count(bounds.pruned_count, "cache")));
    }
    let hidden = bounds.infrastructure_count.max(bounds.infrastructure.len() as u64);
    if hidden > 0 {
        let list = Bounded::of_more(&bounds.infrastructure, hidden, 10)
            .on_one_line(|p| one_line(&p.to_string(), 200));
        lines.push(format!("{}: {list}", count(hidden, "hidden tool folder")));
    }
    if bounds.unreadable_count > 0 {
        let places: Vec<(String, &String)> =
            bounds.unreadable.iter().map(|(path, why)| (path.to_string(), why)).collect();
        let list = Bounded::of_more(&places, bounds.unreadable_count, 10)
            .on_one_line(|(path, why)| format!("{} ({})", one_line(path, 200), one_line(why, 120)));
        lines.push(format!("{}: {list}", count(bounds.unreadable_count, "unreadable place")));
    }
    let special = bounds.special_count.max(bounds.special.len() as u64);
    if special > 0 {
        let list =
            Bounded::of_more(&bounds.special, special, 10).on_one_line(|p| one_line(&p.to_string(), 200));
        lines.push(format!(
            "the content of {} (FIFOs, sockets, devices): {list}",
            count(special, "special file")
        ));
    }
    if !lines.is_empty() {
        let _ = writeln!(out, "  not looked at, so that nothing follows from their absence above:");
        for line in lines {
            let _ = writeln!(out, "    {line}");
        }
    }
    for note in &bounds.notes {
        let _ = writeln!(out, "    note: {}", one_line(note, 300));
    }
}

/// What became of the run after an attempt, on one line.
fn ending(lines: &[JournalLine], attempt: Attempt) -> String {
    let mut begun = false;
    let mut then = None;
    for line in lines {
        for effect in &line.effects {
            match effect {
                Effect::Look { attempt: n, .. } if *n == attempt => {
                    begun = true;
                    then = None;
                }
                Effect::Look { attempt: n, agent, .. } if begun && *n > attempt && then.is_none() => {
                    then =
                        Some(format!("the run went on with attempt {n} ({})", one_line(agent.as_str(), 80)));
                }
                Effect::End { outcome } if begun && then.is_none() => {
                    then = Some(format!("the run ended: {}", done_line(outcome, attempt.get())));
                }
                _ => {}
            }
        }
        if begun && then.is_some() {
            break;
        }
    }
    let then = match (begun, then) {
        (false, _) => "the journal knows no such attempt".to_owned(),
        (true, Some(then)) => then,
        (true, None) => {
            "the run was not seen to go on: it is being worked on, or its process died".to_owned()
        }
    };
    marked(&then).into_owned()
}

#[cfg(test)]
mod tests {
    use triphammer_model::Reported;

    use super::*;
    use crate::samples::{attempt, failing, journal, movement, passing, receipt, run_id, skipped};

    fn view<'a>(run: &'a RunId, lines: &'a [JournalLine]) -> AttemptView<'a> {
        AttemptView {
            run,
            attempt: attempt(1),
            lines,
            brief: Artifact::Read("# Goal\nConvert.\n".to_owned()),
            movement: Artifact::Read(movement()),
            receipt: Artifact::Read(receipt()),
            guard: None,
            report: Artifact::Read(Report::new(vec![
                passing("rust-build"),
                failing("rust-test"),
                skipped("eval", "rust-test"),
            ])),
        }
    }

    #[test]
    fn shows_everything() {
        insta::assert_snapshot!(show_attempt(&view(&run_id(), &journal())), @r#"
        attempt 1 of run 20261130-170601-roman-3fa9
        agent claude, try 1: exit code 0 after 12.3 s; tokens 1000 in, 200 cached, 30 out, cost $1.25

        brief:
          > # Goal
          > Convert.

        receipt (what the agent's side claims): 1 file, 0 commands
          stop reason: end_turn
          last words: Shall I use a table?
          could not be read: line 3 is no JSON

        movement: 4 paths observed, 2 claimed, 3 touched
          changed src/a.rs
          added   src/b�.rs (was src/old.rs)
          changed src/c.rs (only touched: the same bytes, mode and link target)
          deleted src/old.rs
          claim src/a.rs: observed
          claim src/ghost.rs: disproved: there is no such file (does not count)
          hidden tool folders (they are no movement): 15000 paths moved: .local/bin/zig, .local/lib/zig, and 14998 more
          not looked at, so that nothing follows from their absence above:
            3 caches: target (cachedir-tag), and 2 more
            the content of 1 special file (FIFOs, sockets, devices): pipe

        report: 1 passed, 1 failed, 1 skipped: 2 findings
          ok rust-build (1.2 s) [build]
          FAIL rust-test (1m 01s, 3 passed, 2 failed): 2 findings: test `nine` failed: expected "IX", found "VIIII" [test]
            error test/failed: tests/roman.rs:12: test `nine` failed: expected "IX", found "VIIII"
              fix: subtract
              | assertion failed
              |   left: "VIIII"
              |  right: "IX"
            error test/failed: test `four` failed
          skip eval: not run because of rust-test [build]

        then: the run went on with attempt 2 (claude)
        "#);
    }

    #[test]
    fn what_is_missing_is_said() {
        let (run, lines) = (run_id(), journal());
        let gone = |what: &str| format!("reading `{what}`: no such file");
        let view = AttemptView {
            attempt: attempt(9),
            brief: Artifact::Missing(gone("brief.md")),
            movement: Artifact::Missing(gone("movement.json")),
            receipt: Artifact::Missing(gone("receipt.json")),
            report: Artifact::Missing(gone("report.json")),
            ..view(&run, &lines)
        };
        insta::assert_snapshot!(show_attempt(&view), @r"
        attempt 9 of run 20261130-170601-roman-3fa9

        brief: none: reading `brief.md`: no such file

        receipt: none: reading `receipt.json`: no such file

        movement: not known: reading `movement.json`: no such file

        report: none: reading `report.json`: no such file

        then: the journal knows no such attempt
        ");
        let json = attempt_json(&view);
        assert_eq!(json["report"], Value::Null);
        assert_eq!(json["missing"]["report"], gone("report.json"));
    }

    #[test]
    fn what_the_guard_says_of_claims_is_shown_as_claims() {
        let (run, lines) = (run_id(), journal());
        let one = |command: &str, sure, refused| Reported {
            command: command.to_owned(),
            rule: "guard/forced-push".to_owned(),
            why: "`-f` overwrites".to_owned(),
            sure,
            refused,
        };
        let reported = vec![one("git push -f", true, false), one("git push -f \u{1b}[2J", false, true)];
        let report = GuardReport { schema: 1, reported, left_out: 2 };
        let view = AttemptView { guard: Some(Artifact::Read(report)), ..view(&run, &lines) };
        let shown = show_attempt(&view);
        let section: Vec<&str> = shown
            .lines()
            .skip_while(|line| !line.starts_with("guard:"))
            .take_while(|line| !line.is_empty())
            .collect();
        insta::assert_snapshot!(section.join("\n"), @r"
        guard: 4 commands that cannot be undone, by what the agent's side claims; nobody saw any of it run
          claimed as run: `git push -f`: `-f` overwrites [guard/forced-push]
          refused, not run: `git push -f �[2J`: `-f` overwrites (it hangs on what only the shell knew) [guard/forced-push]
          ... and 2 commands more, not shown
        ");
        assert_eq!(attempt_json(&view)["guard"]["reported"][1]["refused"], true);
        let view = AttemptView { guard: Some(Artifact::Missing("it is torn".to_owned())), ..view };
        assert!(show_attempt(&view).contains("\nguard: not known: it is torn\n"));
        assert_eq!(attempt_json(&view)["missing"], json!({"guard": "it is torn"}));
    }

    #[test]
    fn json_carries_the_artifacts() {
        let (run, lines) = (run_id(), journal());
        let json = attempt_json(&view(&run, &lines));
        assert_eq!(json["movement"]["observed"][0]["path"], "src/a.rs");
        assert_eq!(json["report"]["verdicts"][1]["verdict"], "fail");
        assert_eq!(json["missing"], json!({}));
    }
}
