//! Text of Rust's test harness, as `cargo test` prints it: several binaries and doctests in a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use triphammer_model::{Counts, Location};

use super::{Failures, Raw, Reading, TestReport};
use crate::locate::Places;

static RESULT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out",
    )
    .expect("the pattern is fixed")
});
static RUNNING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^running (\d+) tests?$").expect("the pattern is fixed"));
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$").expect("the pattern is fixed")
});
static BLOCK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^---- (.+) stdout ----$").expect("the pattern is fixed"));
static DOCTEST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\S+) - .*\(line (\d+)\)").expect("the pattern is fixed"));

/// Failing tests of one binary that are remembered by name.
const NAMES: usize = 10_000;

/// One test binary as far as it is read.
#[derive(Default)]
struct Binary {
    announced: u64,
    failed: BTreeSet<String>,
    blocks: BTreeMap<String, Raw>,
    /// The block that lines go to.
    current: String,
    /// In a block of captured output.
    in_block: bool,
    /// In the list of names at the end.
    in_list: bool,
}

pub(super) fn read(lines: &mut dyn Iterator<Item = String>, places: &Places<'_>) -> Reading {
    let mut counts = Counts::default();
    let mut failures = Failures::new(places);
    let mut incomplete = None;
    let mut recognised = false;
    let mut binary: Option<Binary> = None;
    for line in lines {
        // What a test printed may look like anything, a result included.
        let captured = binary.as_ref().is_some_and(|b| b.in_block);
        if !captured && let Some(found) = RUNNING.captures(&line) {
            if let Some(lost) = binary.take() {
                incomplete.get_or_insert_with(|| lost_binary(&lost));
                flush(&lost, &mut failures, places);
            }
            binary = Some(Binary { announced: number(&found[1]), ..Binary::default() });
            recognised = true;
            continue;
        }
        let Some(current) = &mut binary else { continue };
        if !captured && let Some(found) = RESULT.captures(&line) {
            let (passed, failed) = (number(&found[1]), number(&found[2]));
            let (ignored, measured) = (number(&found[3]), number(&found[4]));
            counts.passed += passed + measured;
            counts.failed += failed;
            counts.skipped += ignored;
            if passed + failed + ignored + measured != current.announced {
                incomplete.get_or_insert_with(|| {
                    format!(
                        "a test binary announced {} tests and gave results for {}",
                        current.announced,
                        passed + failed + ignored + measured
                    )
                });
            }
            if let Some(ended) = binary.take() {
                flush(&ended, &mut failures, places);
            }
            continue;
        }
        current.line(&line);
    }
    if let Some(lost) = binary.take() {
        incomplete.get_or_insert_with(|| lost_binary(&lost));
        flush(&lost, &mut failures, places);
    }
    if !recognised {
        return Reading::Unrecognised(
            "standard output holds no `running N tests` of Rust's test harness".to_owned(),
        );
    }
    Reading::Report(TestReport { counts: Some(counts), findings: failures.finish(), incomplete })
}

fn lost_binary(lost: &Binary) -> String {
    format!("a test binary announced {} tests and ended without a result", lost.announced)
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX >> 8)
}

impl Binary {
    fn line(&mut self, line: &str) {
        if let Some(found) = BLOCK.captures(line) {
            self.in_block = true;
            self.in_list = false;
            found[1].clone_into(&mut self.current);
            self.blocks.insert(self.current.clone(), Raw::default());
        } else if line == "failures:" {
            self.in_list = true;
            self.in_block = false;
        } else if self.in_block {
            if let Some(raw) = self.blocks.get_mut(&self.current) {
                raw.line(line);
            }
        } else if self.in_list && line.starts_with("    ") {
            self.fail(line.trim());
        } else if let Some(found) = TEST.captures(line) {
            self.fail(&found[1]);
        }
    }

    fn fail(&mut self, name: &str) {
        // The result line has the count; this is only who.
        if self.failed.len() < NAMES {
            self.failed.insert(name.to_owned());
        }
    }
}

fn flush(binary: &Binary, failures: &mut Failures<'_>, places: &Places<'_>) {
    // Threads finish in any order; names are sorted.
    for name in &binary.failed {
        let raw = binary.blocks.get(name).map_or("", |raw| raw.0.as_str());
        let (said, mut location) = said(raw, places);
        if location.is_none()
            && let Some(found) = DOCTEST.captures(name)
        {
            location = places.locate(&found[1], found[2].parse().ok(), None);
        }
        failures.push(name, &said, location, raw);
    }
}

/// The stable part of a failing test's output, and the place it names.
fn said(raw: &str, places: &Places<'_>) -> (String, Option<Location>) {
    let mut lines = raw.lines();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once(" panicked at ") else { continue };
        // Since Rust 1.73 the message comes on the lines after the place; before, in quotes before the place.
        if let Some(place) = rest.strip_suffix(':') {
            let body: Vec<&str> = lines
                .by_ref()
                .take_while(|l| {
                    !l.trim().is_empty() && !l.starts_with("note: ") && !l.starts_with("stack backtrace:")
                })
                .map(str::trim)
                .take(6)
                .collect();
            return (body.join("; "), places.parse(place));
        }
        if let Some((message, place)) = rest.rsplit_once(", ") {
            return (message.trim_matches('\'').to_owned(), places.parse(place));
        }
        return (rest.to_owned(), None);
    }
    let tells = |l: &&str| ["Error:", "error", "note: test did not panic"].iter().any(|p| l.starts_with(p));
    let first = raw.lines().map(str::trim).find(tells);
    (first.unwrap_or("").to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, tried};

    #[test]
    fn several_binaries_and_doctests() {
        let got = tried(&read, sample("libtest_several.txt"));
        insta::assert_snapshot!(got);
    }

    #[test]
    fn a_build_that_failed_is_no_report() {
        assert!(tried(&read, sample("libtest_no_build.txt")).starts_with("unrecognised"));
    }

    #[test]
    fn a_binary_that_ends_early_is_incomplete() {
        let quit = "running 3 tests\ntest a ... ok\n";
        assert!(tried(&read, quit).contains("announced 3 tests and ended without a result"));
        let then = format!(
            "{quit}\nrunning 1 test\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        );
        assert!(tried(&read, then).contains("announced 3 tests and ended without a result"));
        let short =
            "running 2 tests\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert!(tried(&read, short).contains("announced 2 tests and gave results for 1"));
    }

    #[test]
    fn what_a_test_printed_is_no_result() {
        let text = "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\
                    test result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                    running 5 tests\nthread 'a' (77) panicked at src/lib.rs:3:5:\nboom at 0xdeadbeef00\n\n\
                    failures:\n    a\n\n\
                    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let got = tried(&read, text);
        assert!(got.starts_with("passed 0, failed 1, skipped 0\n"), "{got}");
        assert!(got.contains("test/failed: a: boom at <address>"), "{got}");
    }

    #[test]
    fn older_panics() {
        let raw = "thread 'main' panicked at 'no, really', src/lib.rs:3:5\n";
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(said(raw, &Places::new(dir.path(), ".")).0, "no, really");
    }
}
