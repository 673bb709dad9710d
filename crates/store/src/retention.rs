//! Which runs a clean-up removes: by age, by number, by size, and never one that must stay.

use std::fmt;

use jiff::Timestamp;
use triphammer_model::{RunId, Size};

/// How much of the past is kept. Without any limit no run is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs that ended longer ago go.
    pub keep_days: Option<u32>,
    /// Runs beyond this many of the newest go.
    pub max_runs: Option<usize>,
    /// The oldest go until the folder of all runs takes at most this many bytes.
    pub max_size: Option<Size>,
}

/// A run that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aged {
    /// The run.
    pub run: RunId,
    /// When it ended, or was last heard of.
    pub ended: Timestamp,
}

/// Which limit a run is beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It is older than so many days.
    Days(u32),
    /// It is not among so many newest.
    Runs(usize),
    /// It is the oldest while all runs take more than this.
    Size(Size),
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Days(1) => f.write_str("older than 1 day"),
            Self::Days(days) => write!(f, "older than {days} days"),
            Self::Runs(runs) => write!(f, "beyond the newest {runs}"),
            Self::Size(size) => write!(f, "beyond {size} in all"),
        }
    }
}

/// What becomes of a run that a limit would remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes, and frees so many bytes as far as that is known.
    Goes {
        /// Bytes.
        frees: u64,
    },
    /// It stays all the same.
    Stays {
        /// Why.
        why: String,
    },
}

/// A run beyond a limit and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The run.
    pub run: RunId,
    /// The limit.
    pub beyond: Beyond,
    /// What becomes of it.
    pub fate: Fate,
}

/// Chooses among `runs`, oldest first. `bytes` is what all of them take now. Each one that is beyond a limit is asked
/// about, in that order and knowing what was chosen before.
pub fn choose(
    limits: &Limits,
    now: Timestamp,
    runs: &[Aged],
    mut bytes: u64,
    mut fate: impl FnMut(&RunId) -> Fate,
) -> Vec<Choice> {
    let mut oldest_first: Vec<&Aged> = runs.iter().collect();
    oldest_first.sort_by(|a, b| (a.ended, &a.run).cmp(&(b.ended, &b.run)));
    let mut choices = Vec::new();
    for (i, aged) in oldest_first.iter().enumerate() {
        let newer = oldest_first.len() - 1 - i;
        let old = |days: &u32| {
            let seconds = now.as_second().saturating_sub(aged.ended.as_second());
            seconds >= i64::from(*days) * 86_400
        };
        let beyond = limits
            .keep_days
            .filter(old)
            .map(Beyond::Days)
            .or_else(|| limits.max_runs.filter(|n| newer >= *n).map(Beyond::Runs))
            .or_else(|| limits.max_size.filter(|size| bytes > size.bytes()).map(Beyond::Size));
        let Some(beyond) = beyond else { continue };
        let fate = fate(&aged.run);
        if let Fate::Goes { frees } = fate {
            bytes = bytes.saturating_sub(frees);
        }
        choices.push(Choice { run: aged.run.clone(), beyond, fate });
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(day * 86_400).unwrap()
    }

    fn limits(keep_days: Option<u32>, max_runs: Option<usize>, max_size: Option<u64>) -> Limits {
        Limits { keep_days, max_runs, max_size: max_size.map(Size::new) }
    }

    /// Ten runs, of days 0 to 9, ten bytes each; it is day 10. Run 3 must stay.
    #[test]
    fn beyond_which_limit() {
        let runs: Vec<Aged> =
            (0..10).rev().map(|n| Aged { run: RunId::new(format!("r{n}")), ended: at(n) }).collect();
        for (limits, gone) in [
            (limits(None, None, None), ""),
            (limits(Some(11), None, None), ""),
            (limits(Some(10), None, None), "0"),
            (limits(Some(5), None, None), "01245"),
            (limits(Some(0), None, None), "012456789"),
            (limits(None, Some(10), None), ""),
            (limits(None, Some(7), None), "012"),
            (limits(None, Some(6), None), "012"),
            (limits(None, Some(0), None), "012456789"),
            (limits(None, None, Some(100)), ""),
            (limits(None, None, Some(99)), "0"),
            // What must stay frees nothing, so the next one goes instead.
            (limits(None, None, Some(55)), "01245"),
            (limits(None, None, Some(0)), "012456789"),
            (limits(Some(9), Some(8), Some(75)), "012"),
        ] {
            let choices = choose(&limits, at(10), &runs, 100, |run| {
                if run.as_str() == "r3" {
                    Fate::Stays { why: "it must".to_owned() }
                } else {
                    Fate::Goes { frees: 10 }
                }
            });
            let went = choices.iter().filter(|c| matches!(c.fate, Fate::Goes { .. }));
            let went: String = went.map(|c| &c.run.as_str()[1..]).collect();
            assert_eq!(went, gone, "{limits:?}");
        }
    }

    #[test]
    fn a_clock_that_was_wrong_makes_nothing_old() {
        let runs = [Aged { run: RunId::new("r"), ended: at(20) }];
        assert!(
            choose(&limits(Some(0), None, None), at(10), &runs, 1, |_| Fate::Goes { frees: 1 }).is_empty()
        );
    }
}
