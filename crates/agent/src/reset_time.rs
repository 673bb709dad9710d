//! When a limit resets, in the many ways in which services say it.

use jiff::{SignedDuration, Timestamp};

use crate::event::Json;

/// A smaller number counts seconds from now, not since 1970.
const EPOCH: f64 = 1e9;
/// A larger number counts milliseconds since 1970.
const EPOCH_MILLIS: f64 = 1e11;
/// No limit lasts longer: what says so means something else.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 400);

/// Reads a number (seconds from now, or seconds or milliseconds since 1970) or a text: such a number, a duration such
/// as `1m30s`, or a date as RFC 3339 or HTTP writes it.
pub(crate) fn read(value: &Json<'_>, now: Timestamp) -> Option<Timestamp> {
    let at = match value {
        Json::Text(text) => of_text(text.trim(), now),
        number => of_number(number.as_f64()?, now),
    };
    at.filter(|at| at.duration_since(now) <= LONGEST)
}

/// So many milliseconds from now.
pub(crate) fn in_millis(value: &Json<'_>, now: Timestamp) -> Option<Timestamp> {
    let millis = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    after(millis / 1e3, now).filter(|at| at.duration_since(now) <= LONGEST)
}

fn of_number(number: f64, now: Timestamp) -> Option<Timestamp> {
    if number < EPOCH {
        return after(number, now);
    }
    let seconds = if number < EPOCH_MILLIS { number } else { number / 1e3 };
    after(seconds, Timestamp::UNIX_EPOCH)
}

fn after(seconds: f64, start: Timestamp) -> Option<Timestamp> {
    if seconds < 0.0 {
        return None;
    }
    start.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

fn of_text(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(number) = text.parse() {
        return of_number(number, now);
    }
    if let Some(seconds) = duration(text) {
        return after(seconds, now);
    }
    let date = || jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    text.parse().ok().or_else(date)
}

/// The seconds of a duration such as `6m0s`, `1.5h` or `20ms`.
fn duration(mut text: &str) -> Option<f64> {
    let mut seconds = if text.is_empty() { return None } else { 0.0 };
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = text[..digits].parse().ok()?;
        text = &text[digits..];
        let length = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        seconds += number
            * match &text[..length] {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return None,
            };
        text = &text[length..];
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_of_saying_it() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
        let rows = [
            (json!(90), Some("2026-11-30T12:01:30Z")),
            (json!("90"), Some("2026-11-30T12:01:30Z")),
            (json!(0.5), Some("2026-11-30T12:00:00.5Z")),
            (json!(1_796_050_800), Some("2026-11-30T15:00:00Z")),
            (json!("1796050800"), Some("2026-11-30T15:00:00Z")),
            (json!(1_796_050_800_000_u64), Some("2026-11-30T15:00:00Z")),
            (json!("2026-11-30T15:00:00Z"), Some("2026-11-30T15:00:00Z")),
            (json!("2026-11-30T16:00:00+01:00"), Some("2026-11-30T15:00:00Z")),
            (json!("Mon, 30 Nov 2026 15:00:00 GMT"), Some("2026-11-30T15:00:00Z")),
            (json!("1m30s"), Some("2026-11-30T12:01:30Z")),
            (json!("6m0s"), Some("2026-11-30T12:06:00Z")),
            (json!("34.5s"), Some("2026-11-30T12:00:34.5Z")),
            (json!("20ms"), Some("2026-11-30T12:00:00.02Z")),
            (json!("1d2h"), Some("2026-12-01T14:00:00Z")),
            (json!("3pm"), None),
            (json!("soon"), None),
            (json!(""), None),
            (json!(-5), None),
            (json!(1e300), None),
            (json!("9999d"), None),
            (json!(null), None),
            (json!([1]), None),
        ];
        for (value, expected) in rows {
            let expected = expected.map(|text| text.parse::<Timestamp>().expect("a time"));
            let line = json!({ "at": value }).to_string();
            let event = crate::event::read(line.as_bytes()).expect("an event");
            assert_eq!(event.get("at").and_then(|at| read(at, now)), expected, "{value}");
        }
        assert_eq!(in_millis(&Json::Count(1500), now), "2026-11-30T12:00:01.5Z".parse().ok());
        assert_eq!(in_millis(&Json::Text("x".into()), now), None);
    }
}
