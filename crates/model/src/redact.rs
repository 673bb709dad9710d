//! Known secret values are taken out of everything that is written, also across chunk borders.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

/// Values shorter than this are not redacted: they would blank out ordinary words.
pub const SHORTEST: usize = 6;

/// Replaces known secret values by `[redacted:NAME]`.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    finder: AhoCorasick,
    names: Vec<String>,
    longest: usize,
}

impl Redactor {
    /// A redactor for secrets given as name and value. Values shorter than [`SHORTEST`] bytes are left out; a
    /// value's JSON-escaped form is redacted too.
    ///
    /// # Panics
    /// Only if the values together are too large for an automaton (gigabytes), which no environment holds.
    pub fn new(secrets: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut values: Vec<(Vec<u8>, String)> = Vec::new();
        for (name, value) in secrets {
            let trimmed = value.trim_ascii().to_vec();
            if trimmed.len() < SHORTEST {
                continue;
            }
            if let Ok(text) = std::str::from_utf8(&trimmed)
                && let Ok(json) = serde_json::to_string(text)
            {
                let inner = json.as_bytes()[1..json.len() - 1].to_vec();
                if inner != trimmed {
                    values.push((inner, name.clone()));
                }
            }
            values.push((trimmed, name));
        }
        values.sort();
        values.dedup_by(|a, b| a.0 == b.0);
        if values.is_empty() {
            return Self(None);
        }
        let longest = values.iter().map(|(v, _)| v.len()).max().unwrap_or(0);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(values.iter().map(|(v, _)| v.as_slice()))
            .expect("a few short literal patterns always build");
        Self(Some(Arc::new(Inner { finder, names: values.into_iter().map(|(_, n)| n).collect(), longest })))
    }

    /// Whether there is nothing to redact.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Redacts a whole byte string.
    pub fn bytes(&self, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(input.len());
        self.stream_into(input, true, &mut out);
        out
    }

    /// Redacts a whole text.
    pub fn text(&self, input: &str) -> String {
        if self.0.is_none() {
            return input.to_owned();
        }
        String::from_utf8_lossy(&self.bytes(input.as_bytes())).into_owned()
    }

    /// How many values it would replace in a text.
    pub fn hits(&self, input: &str) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.finder.find_iter(input).count() as u64)
    }

    /// Redacts every text inside a JSON value; numbers and structure stay, whatever a secret's value is.
    pub fn json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = self.text(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|v| self.json(v)),
            serde_json::Value::Object(map) => {
                let keys_hit = map.keys().any(|k| self.text(k) != *k);
                if keys_hit {
                    *map = std::mem::take(map).into_iter().map(|(k, v)| (self.text(&k), v)).collect();
                }
                map.values_mut().for_each(|v| self.json(v));
            }
            _ => {}
        }
    }

    /// Starts redacting a stream that arrives in chunks.
    pub fn stream(&self) -> RedactStream {
        RedactStream { redactor: self.clone(), carry: Vec::new() }
    }

    /// Redacts `input` into `out` and returns how many bytes of `input` are settled. With `last`, all are.
    fn stream_into(&self, input: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let Some(inner) = &self.0 else {
            out.extend_from_slice(input);
            return input.len();
        };
        // A match that begins before this point lies wholly inside the input, whatever comes next.
        let sure = if last { input.len() } else { input.len().saturating_sub(inner.longest - 1) };
        let mut done = 0;
        for found in inner.finder.find_iter(input) {
            if found.start() >= sure {
                break;
            }
            out.extend_from_slice(&input[done..found.start()]);
            out.extend_from_slice(b"[redacted:");
            out.extend_from_slice(inner.names[found.pattern().as_usize()].as_bytes());
            out.push(b']');
            done = found.end();
        }
        if done < sure {
            out.extend_from_slice(&input[done..sure]);
            done = sure;
        }
        done
    }
}

/// A redactor in the middle of a stream.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    carry: Vec<u8>,
}

impl RedactStream {
    /// Appends the settled part of what has arrived to `out`; the rest waits for the next chunk.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.redactor.is_empty() {
            out.extend_from_slice(chunk);
            return;
        }
        self.carry.extend_from_slice(chunk);
        let done = self.redactor.stream_into(&self.carry, false, out);
        self.carry.drain(..done);
    }

    /// Appends the rest at the stream's end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let carry = std::mem::take(&mut self.carry);
        self.redactor.stream_into(&carry, true, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([
            ("A".to_owned(), b"sk-secret-1".to_vec()),
            ("B".to_owned(), b"sk-secret-12345\"x".to_vec()),
            ("SHORT".to_owned(), b"abc".to_vec()),
        ])
    }

    #[test]
    fn redacts_whole_texts() {
        let r = redactor();
        assert_eq!(r.text("key=sk-secret-1!"), "key=[redacted:A]!");
        assert_eq!(r.text("abc"), "abc");
        assert_eq!(r.hits("sk-secret-1 abc sk-secret-1"), 2);
        assert_eq!(r.text(r#"{"k":"sk-secret-12345\"x"}"#), r#"{"k":"[redacted:B]"}"#);
        assert!(Redactor::new([]).is_empty());
    }

    proptest! {
        #[test]
        fn chunk_borders_change_nothing(
            parts in proptest::collection::vec("[a-c]{0,4}|sk-secret-1|sk-secret-12345\"x|sk-sec", 0..8),
            cuts in proptest::collection::vec(1usize..9, 1..9),
        ) {
            let input = parts.concat().into_bytes();
            let r = redactor();
            let mut stream = r.stream();
            let mut out = Vec::new();
            let mut rest = &input[..];
            let mut cut = cuts.iter().cycle();
            while !rest.is_empty() {
                let n = (*cut.next().unwrap()).min(rest.len());
                stream.push(&rest[..n], &mut out);
                rest = &rest[n..];
            }
            stream.finish(&mut out);
            let whole = r.bytes(&input);
            prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
            prop_assert!(!String::from_utf8_lossy(&out).contains("sk-secret-1"));
        }
    }
}
