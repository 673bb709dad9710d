//! One event of a stream, read in bounded memory: what is too much of it is left out, never fatal.
//!
//! Texts and names are borrowed from the line where they hold no escapes, which makes reading several times as fast as
//! into owned values. Fields are looked up from their end: events have few, and of two of a name the last one counts.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Values in one event that are kept. Real events have tens; a line that is all brackets has millions.
const VALUES: usize = 20_000;
/// Bytes of one text that are kept: what counts in an event (paths, commands, codes) is short, while files and output
/// are not read.
const TEXT: usize = 64 << 10;
/// Bytes of long texts in one event that are kept.
const TEXTS: usize = 1 << 20;
/// A text up to this size is kept even when [`TEXTS`] is used up.
const SHORT: usize = 4 << 10;

/// The kind of an event whose line begins with it, as most do, without parsing the rest.
pub(crate) fn kind_of(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = rest.iter().take(100).position(|b| matches!(b, b'"' | b'\\'))?;
    if rest[end] == b'\\' || !line.ends_with(b"}") {
        return None;
    }
    std::str::from_utf8(&rest[..end]).ok()
}

/// A JSON value of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Count(u64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Fields(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Where a value is not there.
pub(crate) const NULL: &Json<'static> = &Json::Null;

impl<'a> Json<'a> {
    /// The field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.fields().iter().rev().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// All fields; none where this is no object.
    pub(crate) fn fields(&self) -> &[(Cow<'a, str>, Self)] {
        if let Self::Fields(fields) = self { fields } else { &[] }
    }

    /// All elements; none where this is no list.
    pub(crate) fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_u64(&self) -> Option<u64> {
        if let Self::Count(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Count(value) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "for amounts and times, which a f64 holds well enough")]
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Count(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => writer.serialize_unit(),
            Self::Bool(value) => writer.serialize_bool(*value),
            Self::Int(value) => writer.serialize_i64(*value),
            Self::Count(value) => writer.serialize_u64(*value),
            Self::Float(value) => writer.serialize_f64(*value),
            Self::Text(text) => writer.serialize_str(text),
            Self::List(list) => writer.collect_seq(list),
            Self::Fields(fields) => writer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}

/// The event of a line; `None` where it is no JSON object.
pub(crate) fn read(line: &[u8]) -> Option<Json<'_>> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let event = Room::default().seed().deserialize(&mut reader).ok()?;
    (reader.end().is_ok() && matches!(event, Json::Fields(_))).then_some(event)
}

/// Room for one event.
pub(crate) struct Room {
    values: Cell<usize>,
    texts: Cell<usize>,
}

impl Default for Room {
    fn default() -> Self {
        Self { values: Cell::new(VALUES), texts: Cell::new(TEXTS) }
    }
}

impl Room {
    /// Reads a value of which as much is kept as there is room for.
    pub(crate) fn seed(&self) -> Kept<'_> {
        Kept(self)
    }

    /// Takes one value out of what is left; false when nothing is.
    fn take(&self) -> bool {
        let left = self.values.get();
        self.values.set(left.saturating_sub(1));
        left > 0
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.len() <= SHORT {
            return Cow::Borrowed(text);
        }
        let most = text.len().min(TEXT).min(self.texts.get());
        self.texts.set(self.texts.get() - most);
        crate::heard::head(text, most.max(SHORT))
    }
}

/// A value of which as much is kept as there is room for.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a>(&'a Room);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Json::Count(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::Float(value))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(self.0.text(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(self.0.text(text).into_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        loop {
            if self.0.take() {
                match list.next_element_seed(self)? {
                    Some(value) => kept.push(value),
                    None => return Ok(Json::List(kept)),
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(Json::List(kept));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        loop {
            if self.0.take() {
                let Some(name) = fields.next_key_seed(self)? else { return Ok(Json::Fields(kept)) };
                let value = fields.next_value_seed(self)?;
                if let Json::Text(name) = name {
                    kept.push((name, value));
                }
            } else if fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_none() {
                return Ok(Json::Fields(kept));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_event_is_read_as_it_is() {
        let line = r#"{"type":"a","n":[1,-2,0.5,true,null,"x\n\u00fc"],"o":{"k":{}},"\t":""}"#;
        let event = read(line.as_bytes()).expect("an event");
        let ought: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(serde_json::to_value(&event).ok(), Some(ought));
        assert_eq!(read(br#"{"a":1,"a":2}"#).and_then(|event| event.get("a")?.as_u64()), Some(2));
    }

    #[test]
    fn what_is_no_object_is_no_event() {
        for line in ["", "[1]", "7", "{\"a\":1", "{\"a\":1}}", "{\"a\":1} x", "\u{feff}{}", &"[".repeat(5000)]
        {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn too_much_is_left_out() {
        let many = format!("{{\"a\":[{}1],\"b\":1}}", "[],".repeat(2 * VALUES));
        let event = read(many.as_bytes()).expect("an object");
        assert!(event.get("a").is_some_and(|list| (1..=VALUES).contains(&list.list().len())));
        assert_eq!(event.get("b"), None);

        let long = format!("{{\"a\":\"{}\",\"b\":\"y\"}}", "ü".repeat(TEXT));
        let event = read(long.as_bytes()).expect("an object");
        let a = event.get("a").and_then(Json::as_str).unwrap_or_default();
        assert!(a.len() < TEXT + 40 && a.ends_with(" bytes left out]"));
        assert_eq!(event.get("b").and_then(Json::as_str), Some("y"));
    }

    #[test]
    fn the_kind_is_seen_only_where_it_is_certain() {
        let rows = [
            (r#"{"type":"a.b","x":1}"#, Some("a.b")),
            (r#"{"type":"a\"b","x":1}"#, None),
            (r#"{"x":1,"type":"a"}"#, None),
            (r#"{"type":"a","cut":"#, None),
            (r#"{"type":"a"#, None),
        ];
        for (line, kind) in rows {
            assert_eq!(kind_of(line.as_bytes()), kind, "{line}");
        }
    }
}
