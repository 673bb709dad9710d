//! What a server says in words, put together from its chunks.

use crate::dialects::OwnEvent;

/// Bytes of one message that are kept, its end.
const KEPT: usize = 64 << 10;

/// The message at hand.
#[derive(Debug, Default)]
pub(super) struct Words {
    id: Option<String>,
    text: String,
    left_out: usize,
}

impl Words {
    /// One more chunk. Returns the message before, where this begins another one.
    pub(super) fn add(&mut self, id: Option<&str>, chunk: &str) -> Option<OwnEvent> {
        let other = id.is_some_and(|id| self.id.as_deref().is_some_and(|known| known != id));
        let before = if other { self.end() } else { None };
        if let Some(id) = id {
            self.id = Some(crate::heard::head(id, 200).into_owned());
        }
        self.text.push_str(chunk);
        if self.text.len() > 2 * KEPT {
            let cut = self.text.ceil_char_boundary(self.text.len() - KEPT);
            self.text.drain(..cut);
            self.left_out += cut;
        }
        before
    }

    /// The message is over.
    pub(super) fn end(&mut self) -> Option<OwnEvent> {
        let Self { text, left_out, .. } = std::mem::take(self);
        let cut = format!("[{left_out} bytes left out] {text}");
        let text = if left_out > 0 { cut } else { text };
        (!text.trim().is_empty()).then_some(OwnEvent::Text { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: Option<OwnEvent>) -> Option<String> {
        event.map(|event| match event {
            OwnEvent::Text { text } => text,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn chunks_are_one_message_until_another_begins() {
        let mut words = Words::default();
        assert_eq!(text(words.add(Some("a"), "One")), None);
        assert_eq!(text(words.add(None, " and")), None);
        assert_eq!(text(words.add(Some("a"), " two.")), None);
        assert_eq!(text(words.add(Some("b"), "Three")).as_deref(), Some("One and two."));
        assert_eq!(text(words.end()).as_deref(), Some("Three"));
        words.add(None, " \n");
        assert_eq!(text(words.end()), None);
        for _ in 0..10 {
            words.add(None, &"ü".repeat(KEPT));
        }
        let long = text(words.end()).expect("a text");
        assert!(long.len() < 3 * KEPT && long.starts_with('['), "{}", long.len());
        let left_out: usize = long[1..].split(' ').next().and_then(|n| n.parse().ok()).expect("a count");
        let shown = long.split_once("] ").map_or(0, |(_, text)| text.len());
        assert_eq!(left_out + shown, 20 * KEPT);
    }
}
