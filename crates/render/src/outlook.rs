//! What another policy would have made of recorded runs: one by one, and as a trade-off over many.

use serde_json::{Value, json};
use triphammer_model::RunSummary;
use triphammer_model::policy::Policy;

use crate::text::{count, one_line, seconds};

/// A recorded run under another policy.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// As it went.
    pub recorded: RunSummary,
    /// As it would have gone, as far as the record tells.
    pub would: WouldHave,
}

/// How it would have gone.
#[derive(Clone, Debug)]
pub enum WouldHave {
    /// As it went.
    GoneSo,
    /// It would have ended sooner, so.
    Ended(Box<RunSummary>),
    /// The record cannot tell, and why.
    BeyondTheRecord(String),
}

/// What ending sooner saves. What nobody reported is counted beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Saved {
    attempts: u64,
    active_ms: u64,
    tokens: u64,
    micros: u64,
    unknown: u64,
}

impl Outlook {
    fn saved(&self) -> Option<Saved> {
        let WouldHave::Ended(would) = &self.would else { return None };
        let (a, b) = (&self.recorded, would);
        Some(Saved {
            attempts: u64::from(a.attempts.saturating_sub(b.attempts)),
            active_ms: a.spent.active_ms.saturating_sub(b.spent.active_ms),
            tokens: a.spent.tokens.total().saturating_sub(b.spent.tokens.total()),
            micros: a.spent.cost.micros().saturating_sub(b.spent.cost.micros()),
            unknown: u64::from(a.spent.cost_unknown.saturating_sub(b.spent.cost_unknown)),
        })
    }

    fn got_there(&self) -> bool {
        self.recorded.outcome == "accepted"
    }

    /// Whether work that got there would have been killed; `None` where the record cannot tell.
    pub fn killed(&self) -> Option<bool> {
        match &self.would {
            WouldHave::GoneSo => Some(false),
            WouldHave::Ended(would) => Some(self.got_there() && would.outcome == "rejected"),
            WouldHave::BeyondTheRecord(_) => None,
        }
    }
}

/// One run's answer as JSON.
pub fn outlook_json(outlook: &Outlook, policy: &Policy) -> Value {
    let side = |summary: &RunSummary| {
        json!({
            "outcome": summary.outcome,
            "reason": summary.reason,
            "attempts": summary.attempts,
            "active_ms": summary.spent.active_ms,
            "tokens": summary.spent.tokens.total(),
            "cost_usd": summary.spent.cost.dollars(),
            "cost_unknown": summary.spent.cost_unknown,
        })
    };
    let would = match &outlook.would {
        WouldHave::GoneSo => side(&outlook.recorded),
        WouldHave::Ended(would) => side(would),
        WouldHave::BeyondTheRecord(why) => json!({"outcome": "unknown", "reason": why, "attempts": null}),
    };
    let saved = outlook.saved().map(|saved| {
        json!({
            "attempts": saved.attempts,
            "active_ms": saved.active_ms,
            "tokens": saved.tokens,
            "cost_usd": triphammer_model::MicroUsd::new(saved.micros).dollars(),
            "cost_unknown": saved.unknown,
        })
    });
    json!({
        "schema": 1,
        "run": outlook.recorded.run,
        "policy": policy,
        "recorded": side(&outlook.recorded),
        "would": would,
        "saved": saved,
        "killed": outlook.killed(),
    })
}

/// One run's answer in words.
pub fn outlook_text(outlook: &Outlook) -> String {
    let of = |summary: &RunSummary| {
        format!(
            "{} ({}) after {}",
            summary.outcome,
            summary.reason,
            count(u64::from(summary.attempts), "attempt")
        )
    };
    let recorded = of(&outlook.recorded);
    match &outlook.would {
        WouldHave::GoneSo => format!("recorded: {recorded}\nwould be: the same"),
        WouldHave::BeyondTheRecord(why) => {
            format!("recorded: {recorded}\nwould be: unknown: {}", one_line(why, 400))
        }
        WouldHave::Ended(would) => {
            let saved = outlook.saved().map_or_else(String::new, saved_words);
            let killed = if outlook.killed() == Some(true) {
                "; it would have killed work that got there"
            } else {
                ""
            };
            format!("recorded: {recorded}\nwould be: {}\nsaved: {saved}{killed}", of(would))
        }
    }
}

fn saved_words(saved: Saved) -> String {
    let unknown = if saved.unknown == 0 {
        String::new()
    } else {
        format!(" and what {} cost, which nobody reported", count(saved.unknown, "agent call"))
    };
    format!(
        "{}, {}, {}, {}{unknown}",
        count(saved.attempts, "attempt"),
        seconds(saved.active_ms),
        count(saved.tokens, "token"),
        triphammer_model::MicroUsd::new(saved.micros),
    )
}

/// One change of policy over many runs.
#[derive(Clone, Debug)]
pub struct TradeOff {
    /// What is changed of the policy that each run had: keys and values.
    pub changes: Vec<(String, Value)>,
    runs: u64,
    same: u64,
    sooner: u64,
    unknown: u64,
    accepted: u64,
    killed: u64,
    saved: Saved,
}

impl TradeOff {
    /// Adds up.
    pub fn of<'a>(changes: Vec<(String, Value)>, outlooks: impl IntoIterator<Item = &'a Outlook>) -> Self {
        let mut sum = Self {
            changes,
            runs: 0,
            same: 0,
            sooner: 0,
            unknown: 0,
            accepted: 0,
            killed: 0,
            saved: Saved::default(),
        };
        for outlook in outlooks {
            sum.runs += 1;
            match &outlook.would {
                WouldHave::GoneSo => sum.same += 1,
                WouldHave::Ended(_) => sum.sooner += 1,
                WouldHave::BeyondTheRecord(_) => sum.unknown += 1,
            }
            // What the record cannot tell stands on neither side.
            if let Some(killed) = outlook.killed() {
                sum.accepted += u64::from(outlook.got_there());
                sum.killed += u64::from(killed);
            }
            if let Some(saved) = outlook.saved().filter(|_| outlook.killed() == Some(false)) {
                sum.saved.attempts += saved.attempts;
                sum.saved.active_ms += saved.active_ms;
                sum.saved.tokens += saved.tokens;
                sum.saved.micros += saved.micros;
                sum.saved.unknown += saved.unknown;
            }
        }
        sum
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "policy": self.changes.iter().cloned().collect::<serde_json::Map<_, _>>(),
            "runs": self.runs,
            "as_recorded": self.same,
            "ended_sooner": self.sooner,
            "unknown": self.unknown,
            "accepted": self.accepted,
            "wrongly_killed": self.killed,
            "wrongly_killed_interval": interval(self.killed, self.accepted),
            "saved": {
                "attempts": self.saved.attempts,
                "active_ms": self.saved.active_ms,
                "tokens": self.saved.tokens,
                "cost_usd": triphammer_model::MicroUsd::new(self.saved.micros).dollars(),
                "cost_unknown": self.saved.unknown,
            },
        })
    }
}

/// The trade-offs of several policies as a table, with what its columns mean below it.
pub fn trade_off_table(rows: &[TradeOff]) -> String {
    let mut cells = vec![
        [
            "changed",
            "runs",
            "same",
            "sooner",
            "unknown",
            "saved attempts",
            "time",
            "money",
            "wrongly killed (95 %)",
        ]
        .map(str::to_owned),
    ];
    for row in rows {
        let killed = interval(row.killed, row.accepted).map_or_else(
            || "no accepted run".to_owned(),
            |[low, high]| {
                format!("{} of {} ({:.0}-{:.0} %)", row.killed, row.accepted, low * 100.0, high * 100.0)
            },
        );
        let unknown = if row.saved.unknown > 0 { " and more" } else { "" };
        cells.push([
            row.changes
                .iter()
                .map(|(key, value)| match value.as_str() {
                    Some(word) => format!("{key}={word}"),
                    None => format!("{key}={value}"),
                })
                .collect::<Vec<_>>()
                .join(" "),
            row.runs.to_string(),
            row.same.to_string(),
            row.sooner.to_string(),
            row.unknown.to_string(),
            row.saved.attempts.to_string(),
            seconds(row.saved.active_ms),
            format!("{}{unknown}", triphammer_model::MicroUsd::new(row.saved.micros)),
            killed,
        ]);
    }
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..9).map(width).collect();
    let mut out = String::new();
    for row in &cells {
        let line: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out.push_str(
        "all else is as each run had it; saved is what runs that did not get there would have spent no more; wrongly killed are accepted runs that would have been \
         ended before, with the 95 % interval (Wilson) of that share; unknown runs would have gone on beyond their record",
    );
    out
}

/// The 95 % score interval of a share (Wilson 1927); `None` of nothing.
#[expect(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
fn interval(of: u64, all: u64) -> Option<[f64; 2]> {
    if all == 0 {
        return None;
    }
    let (n, z) = (all as f64, 1.959_963_984_540_054_f64);
    let share = of as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z * z / n;
    Some([((middle - half) / whole).max(0.0), ((middle + half) / whole).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of R's `binom::binom.wilson`.
    #[test]
    fn intervals_are_wilsons() {
        for (of, all, low, high) in
            [(0, 10, 0.0, 0.277_533), (1, 10, 0.017_876, 0.404_150), (5, 10, 0.236_593, 0.763_407)]
        {
            let [a, b] = interval(of, all).unwrap();
            assert!((a - low).abs() < 1e-4 && (b - high).abs() < 1e-4, "{of} of {all}: {a} {b}");
        }
        assert_eq!(interval(0, 0), None);
    }
}
