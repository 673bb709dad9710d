//! What came of a server and was of no use: counted, never fatal, kept in the log.

use std::collections::BTreeSet;

use crate::heard::head;

/// Names that are shown.
const NAMES: usize = 5;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Strays {
    pub(super) no_messages: u64,
    pub(super) too_long: u64,
    pub(super) no_answers: u64,
    pub(super) other_session: u64,
    unknown: u64,
    names: BTreeSet<String>,
}

impl Strays {
    /// A message of a kind that is not known.
    pub(super) fn unknown(&mut self, name: &str) {
        self.unknown += 1;
        if self.names.len() <= NAMES {
            self.names.insert(head(name, 60).into_owned());
        }
    }

    /// The counts in words, those that there are.
    pub(super) fn told(&self) -> Vec<String> {
        let names: Vec<&str> = self.names.iter().take(NAMES).map(String::as_str).collect();
        let more = if self.names.len() > NAMES { " and others" } else { "" };
        [
            (self.no_messages, "lines that are no messages".to_owned()),
            (self.too_long, "lines that are too long to be read".to_owned()),
            (self.no_answers, "answers to nothing that was asked".to_owned()),
            (self.other_session, "requests for another session".to_owned()),
            (self.unknown, format!("messages of kinds that are not known ({}{more})", names.join(", "))),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("from the server, {what}: {count}"))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_was_is_counted_in_words() {
        let mut strays = Strays::default();
        assert_eq!(strays.told(), [] as [&str; 0]);
        (strays.no_messages, strays.too_long, strays.no_answers) = (1, 2, 3);
        strays.unknown("a/b");
        assert_eq!(
            strays.told(),
            [
                "from the server, lines that are no messages: 1",
                "from the server, lines that are too long to be read: 2",
                "from the server, answers to nothing that was asked: 3",
                "from the server, messages of kinds that are not known (a/b): 1",
            ]
        );
        (0..10).for_each(|i| strays.unknown(&format!("x{i}")));
        assert!(strays.told()[3].ends_with("(a/b, x0, x1, x2, x3 and others): 11"), "{:?}", strays.told());
    }
}
