//! Counts of tests, read from what the test runners print for people: neither has a stable form for machines.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed, or were not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Who runs the tests, and so where its summaries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo test`: a summary for each test program, on standard output.
    Libtest,
    /// `cargo nextest`: one summary at the end, on standard error.
    Nextest,
}

impl Runner {
    /// Adds up the summaries in what the runner printed; `None` when there is none, which is not the same as zero.
    pub(crate) fn count(self, stdout: &str, stderr: &str) -> Option<Tally> {
        match self {
            Self::Libtest => {
                stdout.lines().filter_map(|line| libtest(&plain(line))).reduce(|mut sum, one| {
                    sum += one;
                    sum
                })
            }
            // What a failed test printed comes before, and may look like anything.
            Self::Nextest => stderr.lines().rev().find_map(|line| nextest(&plain(line))),
        }
    }
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn libtest(line: &str) -> Option<Tally> {
    let rest = line.trim().strip_prefix("test result: ")?;
    let (_, counts) = rest.split_once(". ")?;
    let mut tally = Tally::default();
    for (count, what) in counts.split(';').filter_map(counted) {
        match what {
            "passed" => tally.passed += count,
            "failed" => tally.failed += count,
            "ignored" => tally.skipped += count,
            _ => {}
        }
    }
    Some(tally)
}

/// `Summary [   0.1s] 12/14 tests run: 9 passed (1 slow), 2 failed, 1 timed out, 3 skipped`
fn nextest(line: &str) -> Option<Tally> {
    let (_, rest) = line.trim().strip_prefix("Summary [")?.split_once(']')?;
    let (ran, counts) = rest.split_once(" run:")?;
    let mut tally = Tally::default();
    // A runner that gave up says how many there would have been.
    let ran = ran.split_whitespace().next()?;
    if let Some((done, all)) = ran.split_once('/') {
        tally.skipped += all.parse::<u64>().ok()?.saturating_sub(done.parse().ok()?);
    }
    for (count, what) in without_parentheses(counts).split(',').filter_map(counted) {
        match what {
            "passed" => tally.passed += count,
            "skipped" => tally.skipped += count,
            // Failed, timed out, could not be started: whatever else there is, it is no pass.
            _ => tally.failed += count,
        }
    }
    Some(tally)
}

/// `3 passed` as a number and a word.
fn counted(part: &str) -> Option<(u64, &str)> {
    let (count, what) = part.trim().split_once(' ')?;
    Some((count.parse().ok()?, what.trim()))
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let keep = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    text.chars().filter(keep).collect()
}

/// A line without colours.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // `ESC [ ... letter`
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runner: Runner, output: &str, expected: Option<(u64, u64, u64)>) {
        let expected = expected.map(|(passed, failed, skipped)| Tally { passed, failed, skipped });
        let (right, wrong) = match runner {
            Runner::Libtest => (runner.count(output, ""), runner.count("", output)),
            Runner::Nextest => (runner.count("", output), runner.count(output, "")),
        };
        assert_eq!(right, expected, "{output}");
        assert_eq!(wrong, None, "{output}");
    }

    #[test]
    fn adds_up_what_libtest_says() {
        check(Runner::Libtest, "", None);
        check(Runner::Libtest, "running 3 tests\ntest result is unknown", None);
        check(
            Runner::Libtest,
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s\n\
             test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s",
            Some((5, 4, 1)),
        );
        check(
            Runner::Libtest,
            "test result: \u{1b}[32mok\u{1b}[0m. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            Some((2, 0, 0)),
        );
    }

    #[test]
    fn takes_the_last_summary_of_nextest() {
        let one = "     Summary [   0.123s] 10 tests run: 9 passed (1 slow, 2 leaky), 1 failed, 2 skipped";
        check(Runner::Nextest, "", None);
        check(Runner::Nextest, one, Some((9, 1, 2)));
        check(Runner::Nextest, "     Summary [   1.0s] 1 test run: 1 passed, 0 skipped", Some((1, 0, 0)));
        check(
            Runner::Nextest,
            "Summary [ 1.0s] 6/10 tests run: 1 passed, 2 failed, 2 timed out, 1 exec failed, 3 skipped",
            Some((1, 5, 7)),
        );
        check(Runner::Nextest, "Summary [ 0.0s] 0 tests run: 0 passed, 5 skipped", Some((0, 0, 5)));
        check(
            Runner::Nextest,
            &format!(
                "{one}\n\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
                 \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m"
            ),
            Some((2, 0, 0)),
        );
    }
}
