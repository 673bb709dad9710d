//! Which runs a clean-up removes: by age, by number, by size, and never one that must stay.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use triphammer_model::RunId;

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

/// A number of bytes as people write it: `500M`, `20G`, `1.5 GiB`. Units are powers of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

const UNITS: [(&str, u64); 5] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];

impl Size {
    /// So many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((name, unit)) = UNITS.iter().find(|(_, unit)| self.0 >= *unit && *unit > 1) else {
            return write!(f, "{} B", self.0);
        };
        let tenths = u128::from(self.0) * 10 / u128::from(*unit);
        let (whole, tenth) = (tenths / 10, tenths % 10);
        if whole >= 100 || tenth == 0 {
            write!(f, "{whole} {name}iB")
        } else {
            write!(f, "{whole}.{tenth} {name}iB")
        }
    }
}

/// A text is no number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size: write a number and a unit, such as 500M or 20G")]
pub struct BadSize(String);

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, BadSize> {
        let bad = || BadSize(text.to_owned());
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim().to_ascii_uppercase();
        let letter = ["IB", "B"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(&unit);
        // `iB` says what kind of unit it is, and needs one.
        if letter.is_empty() && unit.len() > 1 {
            return Err(bad());
        }
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == letter).ok_or_else(bad)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || !digits(whole)
            || !digits(fraction)
            || fraction.len() > 9
            || number.ends_with('.')
        {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let mut part = u128::from(fraction.parse::<u64>().unwrap_or(0)) * u128::from(*unit);
        part /= 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
        let bytes = u128::from(whole) * u128::from(*unit) + part;
        u64::try_from(bytes).map(Self).map_err(|_| bad())
    }
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

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes, printed) in [
            ("0", 0, "0 B"),
            ("1023", 1_023, "1023 B"),
            ("500M", 500 << 20, "500 MiB"),
            ("20G", 20 << 30, "20 GiB"),
            ("1.5GiB", 3 << 29, "1.5 GiB"),
            ("2 kb", 2 << 10, "2 KiB"),
            ("7B", 7, "7 B"),
            ("1t", 1 << 40, "1 TiB"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, printed), "{text}");
        }
        for bad in ["", "M", "-1", "1.", ".5G", "1..5G", "5X", "1e9", "5iB", "5 M M", "99999999999T"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
