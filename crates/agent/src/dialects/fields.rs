//! Fields of an event, of which none need be there or be what it should be.

use jiff::Timestamp;

use crate::event::Json;

/// What lies at the end of a path of names.
pub(super) fn at<'a, 'j>(value: &'a Json<'j>, path: &[&str]) -> Option<&'a Json<'j>> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// A text.
pub(super) fn text<'a>(value: &'a Json<'_>, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// The first of several fields that is a text with something in it.
pub(super) fn first_text<'a>(value: &'a Json<'_>, names: &[&str]) -> Option<&'a str> {
    names.iter().filter_map(|name| text(value, &[name])).find(|text| !text.is_empty())
}

/// A count.
pub(super) fn count(value: &Json<'_>, path: &[&str]) -> Option<u64> {
    at(value, path)?.as_u64()
}

/// An amount of dollars.
pub(super) fn dollars(value: &Json<'_>, path: &[&str]) -> Option<f64> {
    at(value, path)?.as_f64()
}

/// An exit status.
pub(super) fn exit(value: &Json<'_>, path: &[&str]) -> Option<i32> {
    i32::try_from(at(value, path)?.as_i64()?).ok()
}

/// A list; an empty one where there is none.
pub(super) fn list<'a, 'j>(value: &'a Json<'j>, path: &[&str]) -> &'a [Json<'j>] {
    at(value, path).map_or(&[], Json::list)
}

/// When the event says that it happened, else now.
pub(super) fn time(event: &Json<'_>) -> Timestamp {
    let told = match event.get("timestamp") {
        Some(Json::Text(text)) => text.parse().ok(),
        Some(number) => number.as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        None => None,
    };
    told.unwrap_or_else(Timestamp::now)
}
