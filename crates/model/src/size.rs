//! Numbers of bytes as people write them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes as people write it: `500M`, `20G`, `1.5 GiB`. Units are powers of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
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

impl TryFrom<String> for Size {
    type Error = BadSize;

    fn try_from(text: String) -> Result<Self, BadSize> {
        text.parse()
    }
}

impl From<Size> for String {
    /// Exact, so that what was written down is what is read.
    fn from(size: Size) -> Self {
        let unit = UNITS.iter().find(|(_, unit)| size.0 > 0 && size.0.is_multiple_of(*unit));
        unit.map_or_else(|| "0".to_owned(), |(name, unit)| format!("{}{name}", size.0 / unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_is_written_is_exact() {
        for bytes in [0, 1, 1_023, 1_024, 1_025, 3 << 29, 5 << 40, u64::MAX] {
            let text = String::from(Size::new(bytes));
            assert_eq!(text.parse::<Size>().unwrap().bytes(), bytes, "{text}");
        }
    }
}
