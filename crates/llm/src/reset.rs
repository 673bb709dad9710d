//! When a limit passes, from the headers and fields that services made for it.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use ureq::http::HeaderMap;

/// No limit lasts longer; a number that says so means something else.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 400);
/// A smaller number counts seconds from now, a larger one since 1970.
const EPOCH: f64 = 1e9;

/// When to come back: what says so for this very answer first, then the limits that are spent.
pub(crate) fn time(headers: &HeaderMap, body: &Value, now: Timestamp) -> Option<Timestamp> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let at = header("retry-after-ms")
        .and_then(|text| after(text.trim().parse::<f64>().ok()? / 1e3, now))
        .or_else(|| header("retry-after").and_then(|text| read(text, now)))
        .or_else(|| of_body(body, now, 0))
        .or_else(|| of_limits(headers, now));
    at.filter(|at| at.duration_since(now) <= LONGEST)
}

/// Fields of the error, wherever they stand in it.
fn of_body(value: &Value, now: Timestamp, depth: usize) -> Option<Timestamp> {
    const NAMES: [&str; 9] = [
        "retry_after",
        "retryAfter",
        "retry_after_seconds",
        "resets_at",
        "reset_at",
        "resets_in_seconds",
        "resetTime",
        "retryDelay",
        "quotaResetDelay",
    ];
    if depth > 5 {
        return None;
    }
    match value {
        Value::Object(map) => {
            let own = NAMES.iter().find_map(|name| match map.get(*name)? {
                Value::String(text) => read(text, now),
                Value::Number(number) => of_number(number.as_f64()?, now),
                _ => None,
            });
            own.or_else(|| map.values().find_map(|inner| of_body(inner, now, depth + 1)))
        }
        Value::Array(list) => list.iter().take(16).find_map(|inner| of_body(inner, now, depth + 1)),
        _ => None,
    }
}

/// The latest of the limits that have nothing left; headers name one for requests, one for tokens and so on.
fn of_limits(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let spent = |name: &str| {
        let left = headers.get(name.replace("reset", "remaining")).and_then(|value| value.to_str().ok());
        left.is_none_or(|left| left.trim() == "0")
    };
    let limits = headers.iter().filter(|(name, _)| {
        let name = name.as_str();
        name.contains("ratelimit") && name.contains("reset") && spent(name)
    });
    limits.filter_map(|(_, value)| read(value.to_str().ok()?, now)).max()
}

/// A number, a duration such as `1m30s`, or a date as RFC 3339 or HTTP writes it.
fn read(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number, now);
    }
    duration(text)
        .and_then(|seconds| after(seconds, now))
        .or_else(|| text.parse().ok())
        .or_else(|| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp()))
}

fn of_number(number: f64, now: Timestamp) -> Option<Timestamp> {
    if number < EPOCH {
        return after(number, now);
    }
    let seconds = if number < EPOCH * 100.0 { number } else { number / 1e3 };
    after(seconds, Timestamp::UNIX_EPOCH)
}

fn after(seconds: f64, start: Timestamp) -> Option<Timestamp> {
    if seconds < 0.0 {
        return None;
    }
    start.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// The seconds of `6m0s`, `1.5h`, `20ms`.
fn duration(mut text: &str) -> Option<f64> {
    let mut seconds = if text.is_empty() { return None } else { 0.0 };
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = text[..digits].parse().ok()?;
        text = &text[digits..];
        let unit = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let length = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
        let (_, length) = length.iter().find(|(name, _)| *name == &text[..unit])?;
        seconds += number * length;
        text = &text[unit..];
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use ureq::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn every_place_and_spelling() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let none = || json!({});
        let day = "Mon, 30 Nov 2026 15:00:00 GMT";
        let spent = ("x-ratelimit-remaining-tokens", "0");
        type Row<'a> = (Vec<(&'a str, &'a str)>, Value, Option<&'a str>);
        let rows: Vec<Row<'_>> = vec![
            (vec![("retry-after", "90")], none(), Some("2026-11-30T12:01:30Z")),
            (vec![("retry-after", day)], none(), Some("2026-11-30T15:00:00Z")),
            (vec![("retry-after-ms", "1500"), ("retry-after", "9")], none(), Some("2026-11-30T12:00:01.5Z")),
            (vec![("retry-after", "soon")], none(), None),
            (vec![("retry-after", "-5")], none(), None),
            (vec![("retry-after", "999999999")], none(), None),
            (vec![], json!({"error": {"resets_at": 1_796_050_800}}), Some("2026-11-30T15:00:00Z")),
            (vec![], json!({"error": {"resets_in_seconds": 60}}), Some("2026-11-30T12:01:00Z")),
            (
                vec![],
                json!({"error": {"details": [{"retryDelay": "34.5s"}]}}),
                Some("2026-11-30T12:00:34.5Z"),
            ),
            (vec![("x-ratelimit-reset-tokens", "6m0s"), spent], none(), Some("2026-11-30T12:06:00Z")),
            (
                vec![("x-ratelimit-reset-tokens", "1s"), spent, ("x-ratelimit-reset-requests", "8m")],
                none(),
                Some("2026-11-30T12:08:00Z"),
            ),
            (vec![("x-ratelimit-reset-tokens", "8m"), ("x-ratelimit-remaining-tokens", "12")], none(), None),
            (
                vec![("anthropic-ratelimit-tokens-reset", "2026-11-30T12:00:09Z")],
                none(),
                Some("2026-11-30T12:00:09Z"),
            ),
            (vec![], json!({"message": "try again in 20s"}), None),
        ];
        for (pairs, body, expected) in rows {
            let headers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| {
                    (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
                })
                .collect();
            let expected = expected.map(|text| text.parse::<Timestamp>().unwrap());
            assert_eq!(time(&headers, &body, now), expected, "{pairs:?} {body}");
        }
    }
}
