//! `triphammer replay`: a recorded run decided again, as it was or under another policy.

use serde_json::{Value, json};
use triphammer_forge::{Beyond, Divergence, MACHINE_VERSION, WhatIf, Would, what_if};
use triphammer_model::config::set_policy;
use triphammer_model::policy::Policy;
use triphammer_model::{Cancel, Event, JournalLine, Redactor, RunId, RunSummary};
use triphammer_render::{
    Outlook, RunRow, TradeOff, WouldHave, count, outlook_json, outlook_text, trade_off_table,
};
use triphammer_runner::{RegateRequest, which_gates};
use triphammer_store::{Runs, is_live, read_journal};

use crate::args::ReplayArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::{say, signals};

/// How many equal reports the table over all runs tries.
const PROOFS: [&str; 4] = ["2", "3", "4", "5"];
/// What of reports it compares.
const IDENTITIES: [&str; 2] = ["bytes", "normalised"];

pub(crate) fn replay(args: &ReplayArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let changes: Vec<(&str, &str)> =
        args.policy.iter().map(|entry| entry.split_once('=').unwrap_or((entry, ""))).collect();
    // A name or a value that is none is told before any run is read.
    changed(Policy::default(), &changes)?;
    if args.all {
        return all(&runs, &changes, args.home.json);
    }
    let wanted = args.run.as_deref().ok_or_else(|| Failure::usage("name a run, or --all"))?;
    let id = runs.resolve(wanted).map_err(Failure::refused)?;
    if let Some(gates) = &args.gates {
        return regate(&home, &runs, id, gates, args);
    }
    let lines = lines(&runs, &id)?;
    if changes.is_empty() {
        return Ok(again(&id, &lines, args.home.json));
    }
    let policy = changed(recorded_policy(&lines)?, &changes)?;
    let outlook = outlook(&lines, policy, is_live(&runs.open(&id, Redactor::default()).journal()))?;
    if args.home.json {
        say::data(&outlook_json(&outlook, &policy).to_string());
    } else {
        say::text(&outlook_text(&outlook));
    }
    Ok(Exit::Done)
}

fn lines(runs: &Runs, id: &RunId) -> Result<Vec<JournalLine>, Failure> {
    let dir = runs.open(id, Redactor::default());
    let lines = read_journal(&dir.journal()).map_err(Failure::refused)?.lines;
    let Some(Event::Started(started)) = lines.first().map(|line| &line.event) else {
        return Err(Failure::refused(format!("journal of run {id} does not begin with `started`")));
    };
    if started.machine == MACHINE_VERSION {
        return Ok(lines);
    }
    Err(Failure::refused(format!(
        "run {id} was decided by rules of version {}, this triphammer decides by version {MACHINE_VERSION}; replay it with \
         triphammer {}",
        started.machine, started.version
    )))
}

fn recorded_policy(lines: &[JournalLine]) -> Result<Policy, Failure> {
    match lines.first().map(|line| &line.event) {
        Some(Event::Started(started)) => Ok(started.policy),
        _ => Err(Failure::refused("the journal does not begin with `started`")),
    }
}

fn changed(mut policy: Policy, changes: &[(&str, &str)]) -> Result<Policy, Failure> {
    for (key, value) in changes {
        set_policy(&mut policy, key, value).map_err(Failure::usage)?;
    }
    Ok(policy)
}

/// What the changes come to, each key once and with the value that it has in a policy.
fn values(changes: &[(&str, &str)]) -> Result<Vec<(String, Value)>, Failure> {
    let policy = serde_json::to_value(changed(Policy::default(), changes)?).unwrap_or_default();
    let mut values: Vec<(String, Value)> = Vec::new();
    for (key, _) in changes {
        let key = key.strip_prefix("breaker.").unwrap_or(key);
        if values.iter().all(|(there, _)| there != key) {
            values.push((key.to_owned(), policy.get(key).cloned().unwrap_or_default()));
        }
    }
    Ok(values)
}

/// The same events, the same machine: the same decisions, or the first that differs.
fn again(id: &RunId, lines: &[JournalLine], json: bool) -> Exit {
    let found = triphammer_forge::replay(lines).err();
    if json {
        let divergence = found
            .as_deref()
            .map(|d| json!({"line": d.seq + 1, "event": d.event, "recorded": d.recorded, "now": d.now}));
        let identical = divergence.is_none();
        let object = json!({
            "schema": 1, "run": id, "identical": identical, "lines": lines.len(), "divergence": divergence,
        });
        say::data(&object.to_string());
    } else {
        match &found {
            None => say::text(&format!(
                "identical {id}: {} decided as recorded",
                count(lines.len() as u64, "event")
            )),
            Some(found) => say::text(&divergence_text(id, found)),
        }
    }
    if found.is_none() { Exit::Done } else { Exit::Refused }
}

fn divergence_text(id: &RunId, found: &Divergence) -> String {
    let side = |effects: &[triphammer_model::Effect]| serde_json::to_string(effects).unwrap_or_default();
    say::marked(&format!(
        "diverges {id} at journal line {}, after `{}`\n  recorded  {}\n  now       {}",
        found.seq + 1,
        found.event,
        side(&found.recorded),
        side(&found.now)
    ))
    .into_owned()
}

fn outlook(lines: &[JournalLine], policy: Policy, live: bool) -> Result<Outlook, Failure> {
    let fold = |lines: &[JournalLine]| {
        RunSummary::fold(lines).ok_or_else(|| Failure::refused("the journal does not begin with `started`"))
    };
    let mut recorded = fold(lines)?;
    // A run at rest without an end was killed, and a live one has none yet.
    let row = RunRow::of(&recorded, live);
    (recorded.outcome, recorded.reason) = (row.outcome, row.reason);
    let WhatIf { lines: decided, would } = what_if(lines, policy);
    let at = || fold(&decided).map(|summary| summary.attempts);
    let would = match would {
        Would::AsRecorded => WouldHave::GoneSo,
        Would::Ended(_) => WouldHave::Ended(Box::new(fold(&decided)?)),
        Would::Unknown(Beyond::GoesOn) => WouldHave::BeyondTheRecord(format!(
            "it would have gone on after {}, and nobody recorded what came of that",
            count(u64::from(at()?), "attempt")
        )),
        Would::Unknown(Beyond::OtherWork) => WouldHave::BeyondTheRecord(format!(
            "after {} another agent, or another tree, would have been worked with, and nobody recorded what came of that",
            count(u64::from(at()?), "attempt")
        )),
    };
    Ok(Outlook { recorded, would })
}

/// The gates once more, on the trees that the run kept.
fn regate(home: &Home, runs: &Runs, run: RunId, gates: &str, args: &ReplayArgs) -> Outcome {
    let here =
        std::env::current_dir().map_err(|e| Failure::usage(format!("finding the current folder: {e}")))?;
    let request = RegateRequest {
        home: home.path.clone(),
        state: home::state()?,
        gates: which_gates(gates, &here),
        attempt: args.attempt,
        run,
    };
    let cancel = Cancel::new();
    signals::watch(&cancel).map_err(|e| Failure::refused(format!("listening for signals: {e}")))?;
    let _ = triphammer_agent::become_subreaper();
    let mut done = Vec::new();
    let json = args.home.json;
    let notes = triphammer_runner::regate(runs, &request, &cancel, &mut |regated| {
        if !json {
            say::text(&triphammer_render::regated_text(
                regated.attempt,
                regated.recorded.as_ref(),
                &regated.now,
            ));
        }
        done.push(triphammer_render::regated_json(regated.attempt, regated.recorded.as_ref(), &regated.now));
    })
    .map_err(Failure::refused)?;
    for note in &notes {
        say::talk(&say::marked(&format!("note: {note}")));
    }
    if json {
        let object = json!({"schema": 1, "run": request.run, "attempts": done, "notes": notes});
        say::data(&object.to_string());
    } else if done.is_empty() {
        say::talk("no attempt of the run left a tree");
    }
    Ok(Exit::Done)
}

/// The trade-off over every run of a home.
fn all(runs: &Runs, changes: &[(&str, &str)], json: bool) -> Outcome {
    let (mut read, mut diverging) = (Vec::new(), Vec::new());
    for id in runs.ids().map_err(Failure::refused)? {
        match lines(runs, &id) {
            Ok(lines) => {
                if triphammer_forge::replay(&lines).is_err() {
                    diverging.push(id.clone());
                }
                let live = is_live(&runs.open(&id, Redactor::default()).journal());
                read.push((lines, live));
            }
            Err(failure) => say::talk(&say::marked(&format!("left out: run {id}: {}", failure.message))),
        }
    }
    let grid: Vec<Vec<(&str, &str)>> = if changes.is_empty() {
        let each = |proofs: &'static str| {
            IDENTITIES.map(|identity| vec![("proofs", proofs), ("identity", identity)])
        };
        PROOFS.into_iter().flat_map(each).collect()
    } else {
        vec![changes.to_vec()]
    };
    let mut rows = Vec::new();
    for changes in grid {
        let under = |(lines, live): &(Vec<JournalLine>, bool)| {
            outlook(lines, changed(recorded_policy(lines)?, &changes)?, *live)
        };
        let outlooks = read.iter().map(under).collect::<Result<Vec<_>, _>>()?;
        rows.push(TradeOff::of(values(&changes)?, &outlooks));
    }
    if json {
        let rows: Vec<_> = rows.iter().map(TradeOff::json).collect();
        let object = json!({"schema": 1, "runs": read.len(), "diverging": diverging, "policies": rows});
        say::data(&object.to_string());
    } else if read.is_empty() {
        say::talk(&format!("no run in `{}` yet", runs.path().display()));
    } else {
        say::text(&trade_off_table(&rows));
        for id in &diverging {
            say::text(&format!("diverges {id}: `triphammer replay {id}` shows where"));
        }
    }
    Ok(if diverging.is_empty() { Exit::Done } else { Exit::Refused })
}
