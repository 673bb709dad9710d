//! Choices drawn from a string of bytes, which proptest makes and shrinks.

use proptest::prelude::*;

/// What is left of the bytes; zeros come after their end.
#[derive(Clone, Debug)]
pub(crate) struct Dice(std::collections::VecDeque<u8>);

impl Dice {
    /// Any bytes.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        proptest::collection::vec(any::<u8>(), 0..500).prop_map(|bytes| Self(bytes.into()))
    }

    /// Always the same bytes, enough for any value: a linear congruential sequence.
    pub(crate) fn fixed() -> Self {
        let mut state: u32 = 7;
        let next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(state >> 24).unwrap()
        };
        Self(std::iter::repeat_with(next).take(1 << 16).collect())
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.pop_front().unwrap_or(0)
    }

    /// A number below `end`, at most 256.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Small, middling or as large as it gets.
    pub(crate) fn u64(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::from(self.byte()),
            1 => u64::MAX,
            2 => (1 << 53) + u64::from(self.byte()),
            _ => u64::from(u32::MAX) - u64::from(self.byte()),
        }
    }

    pub(crate) fn u32(&mut self) -> u32 {
        if self.below(8) == 0 { u32::MAX } else { u32::from(self.byte()) }
    }

    pub(crate) fn i32(&mut self) -> i32 {
        if self.below(8) == 0 { i32::MIN } else { i32::from(self.byte()) - 128 }
    }

    pub(crate) fn text(&mut self) -> String {
        const TEXTS: [&str; 8] = [
            "the tests fail",
            "",
            "two\nlines\r\n",
            "\u{1b}[31mred\u{1b}[0m",
            "Größe, 大きさ",
            "\"quoted\" and \\ \u{2028}",
            "null",
            "a\u{0}b",
        ];
        TEXTS[self.below(TEXTS.len())].to_owned()
    }

    pub(crate) fn word(&mut self) -> String {
        const WORDS: [&str; 4] = ["test", "smith", "accept-builds", "rust/clippy"];
        WORDS[self.below(WORDS.len())].to_owned()
    }

    pub(crate) fn opt<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| value(self))
    }

    /// Up to three values.
    pub(crate) fn list<T>(&mut self, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| value(self)).collect()
    }

    /// One of several values.
    pub(crate) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }
}
