//! What a server says of tokens and money.
//!
//! The protocol has the money in updates, summed up over a session; the tokens of a turn are not part of it, and servers
//! put them where they like. Seen: opencode 1.18 sends the tokens of its last step with the end of the turn, Gemini CLI
//! 0.61 the sum of a turn in `_meta.quota`, Qwen Code 0.15 those of each step with a chunk of text in `_meta.usage`; the
//! others send none. What is no sum of the turn is not taken for one: unknown is not less.

use triphammer_model::Tokens;

use crate::event::Json;

/// What was used in one turn.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The session began before this turn, so that its sums are not this turn's.
    continued: bool,
    /// What the session cost before the turn.
    before: Option<f64>,
    /// Tokens that its context holds.
    context: Option<u64>,
    by_step: bool,
}

impl Usage {
    /// The turn begins, in a session that is new or not.
    pub(super) fn begin(&mut self, continued: bool) {
        self.continued = continued;
        if !continued {
            self.before = Some(0.0);
        }
    }

    /// An update of the session's usage. Returns what the turn cost so far, where that is known.
    pub(super) fn update(&mut self, update: &Json<'_>, in_turn: bool) -> Result<Option<f64>, String> {
        self.context = update.get("used").and_then(Json::as_u64).or(self.context);
        let Some(cost) = update.get("cost") else { return Ok(None) };
        let Some(amount) = cost.get("amount").and_then(Json::as_f64) else { return Ok(None) };
        match cost.get("currency").and_then(Json::as_str) {
            Some("USD") => {}
            other => {
                let other = crate::heard::head(other.unwrap_or("no currency"), 100);
                return Err(format!("a cost in {other}, not in USD, is not counted"));
            }
        }
        if !in_turn {
            self.before = Some(amount);
            return Ok(None);
        }
        // Servers that know no price send 0.
        Ok(self.before.map(|before| amount - before).filter(|cost| *cost > 0.0))
    }

    /// A chunk of text. Returns the tokens of the step that it ends.
    pub(super) fn chunk(&mut self, chunk: &Json<'_>) -> Option<Tokens> {
        let step = tokens(chunk.get("_meta")?.get("usage")?)?;
        self.by_step = true;
        Some(step)
    }

    /// The end of the turn. Returns the tokens that were not told before; `steps` says whether tools were called, so
    /// that the turn had more than one step.
    pub(super) fn end(&self, result: &Json<'_>, steps: bool) -> Option<Tokens> {
        if self.by_step {
            return None;
        }
        if let Some(count) = result.get("_meta").and_then(|meta| meta.get("quota")?.get("token_count")) {
            let of = |name| count.get(name).and_then(Json::as_u64);
            return Some(Tokens { input: of("input_tokens")?, cached: 0, output: of("output_tokens")? });
        }
        let sum = tokens(result.get("usage")?)?;
        // The last step's input is what the context holds by then: the sum of several steps is more.
        let last_only =
            steps && self.context.is_some_and(|held| sum.input.saturating_add(sum.cached) <= held);
        (!self.continued && !last_only).then_some(sum)
    }
}

/// Tokens of one meaning. Servers pass on what their model's service says, where the input includes the cache or does
/// not, and the output the reasoning; the total tells.
fn tokens(usage: &Json<'_>) -> Option<Tokens> {
    let of = |name| usage.get(name).and_then(Json::as_u64);
    let (input, output) = (of("inputTokens")?, of("outputTokens")?);
    let cached = of("cachedReadTokens").unwrap_or(0);
    let written = of("cachedWriteTokens").unwrap_or(0);
    let thought = of("thoughtTokens").unwrap_or(0);
    let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    let total = of("totalTokens");
    if total == Some(sum(&[input, output])) && input >= cached {
        return Some(Tokens { input: input - cached, cached, output });
    }
    if total == Some(sum(&[input, output, thought])) && input >= cached {
        return Some(Tokens { input: input - cached, cached, output: sum(&[output, thought]) });
    }
    let input = sum(&[input, written]);
    let output = if total == Some(sum(&[input, cached, output])) { output } else { sum(&[output, thought]) };
    Some(Tokens { input, cached, output })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event;

    fn read(text: &str) -> Json<'_> {
        event::read(text.as_bytes()).expect("an object")
    }

    #[test]
    fn the_total_tells_what_includes_what() {
        for (text, expected) in [
            // opencode, the cache apart.
            (
                r#"{"inputTokens":802,"outputTokens":22,"totalTokens":1024,"cachedReadTokens":200}"#,
                (802, 200, 22),
            ),
            // Qwen Code, the cache in the input.
            (
                r#"{"inputTokens":1002,"outputTokens":22,"totalTokens":1024,"cachedReadTokens":200}"#,
                (802, 200, 22),
            ),
            (r#"{"inputTokens":10,"outputTokens":5,"thoughtTokens":3,"totalTokens":18}"#, (10, 0, 8)),
            (r#"{"inputTokens":10,"outputTokens":5,"thoughtTokens":3,"totalTokens":15}"#, (10, 0, 5)),
            (
                r#"{"inputTokens":10,"outputTokens":5,"cachedReadTokens":4,"thoughtTokens":3,"totalTokens":15}"#,
                (6, 4, 5),
            ),
            (
                r#"{"inputTokens":10,"outputTokens":5,"cachedReadTokens":2,"cachedWriteTokens":4,"totalTokens":21}"#,
                (14, 2, 5),
            ),
            (r#"{"inputTokens":10,"outputTokens":5,"cachedReadTokens":2}"#, (10, 2, 5)),
        ] {
            let (input, cached, output) = expected;
            assert_eq!(tokens(&read(text)), Some(Tokens { input, cached, output }), "{text}");
        }
        assert_eq!(tokens(&read(r#"{"inputTokens":10}"#)), None);
    }

    #[test]
    fn the_last_step_is_not_the_turn() {
        let result =
            r#"{"usage":{"inputTokens":802,"outputTokens":22,"totalTokens":1024,"cachedReadTokens":200}}"#;
        let all = Some(Tokens { input: 802, cached: 200, output: 22 });
        for (used, steps, continued, expected) in [
            (Some(1002), true, false, None),
            (Some(1002), false, false, all),
            (Some(600), true, false, all),
            (None, true, false, all),
            (None, false, true, None),
        ] {
            let mut usage = Usage { context: used, ..Usage::default() };
            usage.begin(continued);
            assert_eq!(usage.end(&read(result), steps), expected, "{used:?} {steps} {continued}");
        }
    }

    #[test]
    fn steps_are_not_counted_again_at_the_end() {
        let mut usage = Usage::default();
        let chunk = r#"{"_meta":{"usage":{"inputTokens":5,"outputTokens":1,"totalTokens":6}}}"#;
        assert_eq!(usage.chunk(&read("{}")), None);
        let end = r#"{"_meta":{"quota":{"token_count":{"input_tokens":7,"output_tokens":2}}}}"#;
        assert_eq!(usage.end(&read(end), true), Some(Tokens { input: 7, cached: 0, output: 2 }));
        assert_eq!(usage.chunk(&read(chunk)), Some(Tokens { input: 5, cached: 0, output: 1 }));
        assert_eq!(usage.end(&read(end), true), None);
    }

    #[test]
    fn money_is_the_turns_own() {
        let cost = |amount: &str| format!(r#"{{"cost":{{"amount":{amount},"currency":"USD"}}}}"#);
        let mut usage = Usage::default();
        usage.begin(false);
        assert_eq!(usage.update(&read(&cost("0")), true), Ok(None));
        assert_eq!(usage.update(&read(&cost("0.5")), true), Ok(Some(0.5)));
        let mut usage = Usage::default();
        usage.update(&read(&cost("0.5")), false).expect("a cost");
        usage.begin(true);
        assert_eq!(usage.update(&read(&cost("0.75")), true), Ok(Some(0.25)));
        let mut usage = Usage::default();
        usage.begin(true);
        assert_eq!(
            usage.update(&read(&cost("0.75")), true),
            Ok(None),
            "how much of it was before is not known"
        );
        let euros = r#"{"cost":{"amount":1,"currency":"EUR"}}"#;
        assert!(usage.update(&read(euros), true).is_err_and(|what| what.contains("EUR")));
    }
}
