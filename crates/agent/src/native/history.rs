//! What was said, kept below a number of tokens.
//!
//! Nobody but the model's service can count its tokens, so they are estimated from bytes, by the ratio of the last
//! request whose count the service told.

use triphammer_llm::{Message, ToolCall, ToolResult};

use super::{prompt, shown};

/// Bytes of a token until the service has told. Low, since code has short ones.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens of a message around its text.
const AROUND: u64 = 8;
/// When something is dropped, so much of the room is freed as well, in percent: else the next step would drop again.
const SPARE: u64 = 25;

/// A result of an action.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// The call that it answers; empty where there was none.
    pub(super) id: String,
    /// The action, in a few words, which stay when the result is dropped.
    pub(super) about: String,
    pub(super) content: String,
    pub(super) ok: bool,
}

/// An answer of the model, and what came of it.
#[derive(Clone, Debug)]
struct Turn {
    text: String,
    calls: Vec<ToolCall>,
    results: Vec<Kept>,
}

/// The conversation.
#[derive(Debug)]
pub(super) struct History {
    brief: String,
    /// From an earlier attempt.
    before: Option<String>,
    /// What replaces the turns that were dropped.
    so_far: Option<String>,
    turns: Vec<Turn>,
    /// Tokens of 1,000 bytes.
    per_thousand: u64,
}

/// Even without any turn there is too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    /// Tokens of the smallest request, by estimate.
    pub(super) tokens: u64,
}

impl History {
    pub(super) fn new(brief: &str, before: Option<&str>) -> Self {
        let (brief, before) = (brief.to_owned(), before.map(str::to_owned));
        Self {
            brief,
            before,
            so_far: None,
            turns: Vec::new(),
            per_thousand: 1000_u64.div_ceil(BYTES_PER_TOKEN),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Takes in an answer and what came of it. An answer without calls is answered by a message of our own.
    pub(super) fn turn(&mut self, text: String, calls: Vec<ToolCall>, results: Vec<Kept>) {
        self.turns.push(Turn { text, calls, results });
    }

    /// The messages of a request. The first one holds the brief, byte by byte.
    pub(super) fn messages(&self) -> Vec<Message> {
        let opening = prompt::opening(&self.brief, self.before.as_deref(), self.so_far.as_deref());
        let mut messages = vec![Message::User(opening)];
        for turn in &self.turns {
            messages.push(Message::Assistant { text: turn.text.clone(), calls: turn.calls.clone() });
            messages.push(if turn.calls.is_empty() {
                let all: Vec<&str> = turn.results.iter().map(|kept| kept.content.as_str()).collect();
                Message::User(all.join("\n\n"))
            } else {
                let result = |kept: &Kept| ToolResult {
                    id: kept.id.clone(),
                    content: kept.content.clone(),
                    ok: kept.ok,
                };
                Message::Results(turn.results.iter().map(result).collect())
            });
        }
        messages
    }

    /// Tokens of a request with so many bytes around the messages, by estimate.
    pub(super) fn estimate(&self, around: usize) -> u64 {
        let opening = self.brief.len()
            + self.before.as_ref().map_or(0, |text| text.len() + 40)
            + self.so_far.as_ref().map_or(0, |text| text.len() + 80);
        let turns: usize = self.turns.iter().map(Turn::bytes).sum();
        let bytes = (around + opening + turns) as u64;
        (bytes * self.per_thousand).div_ceil(1000) + AROUND * (2 + 2 * self.turns.len() as u64)
    }

    /// Learns from what the service counted for the request that was just estimated.
    pub(super) fn learn(&mut self, estimated: u64, counted: u64) {
        if estimated > 0 && counted > 0 {
            // Between one and eight bytes a token: anything else is no count of this text.
            let ratio = u128::from(self.per_thousand) * u128::from(counted) / u128::from(estimated);
            self.per_thousand = u64::try_from(ratio).unwrap_or(1000).clamp(125, 1000);
        }
    }

    /// Makes a request fit into so many tokens: old results go first, then the turns are replaced by `digest`.
    pub(super) fn fit(
        &mut self,
        around: usize,
        most: u64,
        digest: &dyn Fn() -> String,
    ) -> Result<(), TooLarge> {
        if self.estimate(around) <= most {
            return Ok(());
        }
        let goal = most.saturating_sub(most * SPARE / 100);
        // The newest turn is what the next answer is about.
        let old = self.turns.len().saturating_sub(1);
        for at in 0..old {
            if self.estimate(around) <= goal {
                break;
            }
            for kept in &mut self.turns[at].results {
                kept.drop_content();
            }
        }
        if self.estimate(around) <= goal {
            return Ok(());
        }
        let newest = self.turns.pop();
        self.condense(most, digest);
        let tokens = self.estimate(around);
        // The newest turn stays where there is room, else what was just asked for would never be seen.
        if let Some(newest) = newest {
            self.turns.push(newest);
            if self.estimate(around) > most {
                self.turns.clear();
            }
        }
        if tokens <= most { Ok(()) } else { Err(TooLarge { tokens }) }
    }

    /// Replaces all turns by what was done in them, in about a quarter of `most` tokens.
    pub(super) fn condense(&mut self, most: u64, digest: &dyn Fn() -> String) {
        self.turns.clear();
        let bytes = usize::try_from(most * BYTES_PER_TOKEN / 4).unwrap_or(usize::MAX);
        self.so_far = Some(shown::head(&digest(), bytes));
    }
}

impl Turn {
    fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len() + 60);
        let results = self.results.iter().map(|kept| kept.id.len() + kept.content.len() + 40);
        self.text.len() + calls.sum::<usize>() + results.sum::<usize>()
    }
}

impl Kept {
    fn drop_content(&mut self) {
        let stub = format!(
            "[the result of {} was dropped, {} bytes; ask again if it is needed]",
            self.about,
            self.content.len()
        );
        if stub.len() < self.content.len() {
            self.content = stub;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(content: String) -> Kept {
        Kept { id: "c".to_owned(), about: "read a".to_owned(), content, ok: true }
    }

    fn call() -> ToolCall {
        ToolCall { id: "c".to_owned(), name: "read".to_owned(), arguments: "{}".to_owned() }
    }

    fn history(turns: usize) -> History {
        let mut history = History::new("the goal\nand a finding", Some("known before"));
        for number in 0..turns {
            history.turn(format!("turn {number}"), vec![call()], vec![kept("x".repeat(3000))]);
        }
        history
    }

    fn opening(history: &History) -> String {
        let Some(Message::User(text)) = history.messages().into_iter().next() else { panic!("no opening") };
        text
    }

    fn contents(history: &History) -> Vec<usize> {
        let results =
            |message: Message| if let Message::Results(results) = message { results } else { Vec::new() };
        history.messages().into_iter().flat_map(results).map(|result| result.content.len()).collect()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let mut full = history(3);
        let before = full.messages();
        full.fit(100, 5000, &|| unreachable!()).expect("it fits");
        assert_eq!(full.messages(), before);
    }

    #[test]
    fn the_oldest_results_go_first() {
        let mut full = history(10);
        full.fit(0, 9_000, &|| unreachable!()).expect("it fits");
        let lengths = contents(&full);
        assert_eq!(lengths.len(), 10, "no call without its result");
        let dropped = lengths.iter().take_while(|length| **length < 100).count();
        assert!(
            (3..=5).contains(&dropped) && lengths[dropped..].iter().all(|length| *length == 3000),
            "{lengths:?}"
        );
        assert!(full.estimate(0) <= 6_750, "there is spare room");
        let text = format!("{:?}", full.messages());
        assert!(text.contains("[the result of read a was dropped, 3000 bytes; ask again if it is needed]"));
    }

    #[test]
    fn then_a_digest_replaces_the_turns_and_the_brief_stays_whole() {
        let mut full = history(10);
        full.fit(0, 1_100, &|| "wrote b.rs".to_owned()).expect("it fits");
        assert_eq!(full.messages().len(), 1);
        let text = opening(&full);
        assert!(
            text.starts_with("the goal\nand a finding\n\n# From an earlier attempt\n\nknown before\n"),
            "{text}"
        );
        assert!(text.ends_with("led here\n\nwrote b.rs\n"), "{text}");
    }

    #[test]
    fn the_newest_turn_stays_with_the_digest_where_there_is_room() {
        let mut full = history(10);
        full.fit(0, 1_700, &|| "d".repeat(100_000)).expect("it fits");
        assert_eq!(contents(&full), [3000]);
        let text = opening(&full);
        assert!(text.contains("ddd [98725 bytes left out]"), "a long digest is cut: {}", text.len());
    }

    #[test]
    fn a_brief_that_does_not_fit_is_never_cut() {
        let mut large = History::new(&"g".repeat(30_000), None);
        let error = large.fit(0, 1_000, &String::new).expect_err("too large");
        assert!(error.tokens > 10_000);
        assert_eq!(opening(&large).len(), 30_000);
    }

    #[test]
    fn estimates_follow_what_the_service_counts() {
        let mut history = history(3);
        let first = history.estimate(0);
        assert!((3000..3500).contains(&first), "{first}");
        history.learn(first, first * 2);
        assert!((6000..7000).contains(&history.estimate(0)));
        history.learn(1, u64::MAX);
        assert!(history.estimate(0) < 10_000, "at most a token a byte");
        history.learn(u64::MAX, 1);
        assert!(history.estimate(0) > 1_000, "at least a token for eight bytes");
        history.learn(5, 0);
        history.learn(0, 5);
        assert!(history.estimate(0) > 1_000, "no count is no lesson");
    }

    #[test]
    fn without_calls_results_are_messages_of_ours() {
        let mut history = history(0);
        history.turn("{}".to_owned(), Vec::new(), vec![kept("one".to_owned()), kept("two".to_owned())]);
        assert_eq!(history.messages()[2], Message::User("one\n\ntwo".to_owned()));
    }
}
