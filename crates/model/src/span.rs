//! Lengths of time as people write them: `90s`, `45m`, `4h`, `1h30m`, `250ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time in whole milliseconds. Written and read as text such as `4h` or `1h30m`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Span(u64);

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Span {
    /// `ms` milliseconds.
    pub const fn millis(ms: u64) -> Self {
        Self(ms)
    }

    /// `s` seconds.
    pub const fn secs(s: u64) -> Self {
        Self(s * 1_000)
    }

    /// `m` minutes.
    pub const fn minutes(m: u64) -> Self {
        Self(m * 60_000)
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The length as the standard library's type.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// A text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a number and a unit, such as 90s, 45m, 4h or 1h30m")]
pub struct BadSpan(String);

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let mut rest = text.trim();
        let mut total: u64 = 0;
        let mut seen = usize::MAX;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = UNITS.iter().position(|(name, _)| *name == &rest[..letters]).ok_or_else(bad)?;
            // Units go from large to small and none repeats, so that `1m1h` and `5m5m` are typing errors.
            if seen != usize::MAX && unit <= seen {
                return Err(bad());
            }
            seen = unit;
            let part = number.checked_mul(UNITS[unit].1).ok_or_else(bad)?;
            total = total.checked_add(part).ok_or_else(bad)?;
            rest = rest[letters..].trim_start();
        }
        Ok(Self(total))
    }
}

impl TryFrom<String> for Span {
    type Error = BadSpan;

    fn try_from(text: String) -> Result<Self, BadSpan> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (name, size) in UNITS {
            // Days are read but not written: `36h` is clearer in a budget than `1d12h`.
            if name != "d" && rest >= size {
                write!(f, "{}{name}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, ms, printed) in [
            ("4h", 14_400_000, "4h"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1h 30m", 5_400_000, "1h30m"),
            ("90s", 90_000, "1m30s"),
            ("250ms", 250, "250ms"),
            ("2d", 172_800_000, "48h"),
            ("0s", 0, "0s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.as_millis(), span.to_string().as_str()), (ms, printed), "{text}");
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        for bad in ["", "4", "h", "4x", "1m1h", "5m5m", "-1s", "1.5h", "99999999999999999999h"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
