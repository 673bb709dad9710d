//! Test Anything Protocol, versions 12 to 14. Tests without subtests count; a test that only sums up its subtests
//! does not, so that a suite of nothing but skipped tests is no passed test.

use std::sync::LazyLock;

use regex::Regex;
use triphammer_model::Counts;

use super::{Failures, Raw, Reading, TestReport};
use crate::locate::Places;

static POINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(not )?ok\b(?:\s+(\d+))?(?:\s+-)?\s*(.*)$").expect("the pattern is fixed")
});
static PLAN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^1\.\.(\d+)\s*(?:#\s*(.*))?$").expect("the pattern is fixed"));
static DIRECTIVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(?:^|\s)#\s*(skip|todo)\b").expect("the pattern is fixed"));

/// Deepest level of subtests that is followed.
const DEEPEST: usize = 32;

/// The points of one level since the last point of the level above.
#[derive(Default)]
struct Level {
    plan: Option<u64>,
    points: u64,
    failed: u64,
}

/// A failing point whose diagnostics may still follow.
struct Open {
    name: String,
    raw: Raw,
}

struct Tap<'a> {
    counts: Counts,
    failures: Failures<'a>,
    places: &'a Places<'a>,
    levels: Vec<Level>,
    incomplete: Option<String>,
    open: Option<Open>,
}

pub(super) fn read(lines: &mut dyn Iterator<Item = String>, places: &Places<'_>) -> Reading {
    let mut tap = Tap {
        counts: Counts::default(),
        failures: Failures::new(places),
        places,
        levels: vec![Level::default()],
        incomplete: None,
        open: None,
    };
    let mut version = false;
    // The indent of a block of diagnostics: what it holds may look like anything.
    let mut diagnostics: Option<usize> = None;
    for line in lines {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(block) = diagnostics {
            if let Some(open) = &mut tap.open {
                open.raw.line(&line);
            }
            if indent == block && text == "..." {
                diagnostics = None;
            }
            continue;
        }
        if text == "---" && indent > 0 {
            diagnostics = Some(indent);
            continue;
        }
        version |= line.starts_with("TAP version ");
        if !indent.is_multiple_of(4) || indent / 4 > DEEPEST {
            continue;
        }
        let level = indent / 4;
        if let Some(found) = PLAN.captures(text) {
            tap.plan(level, found[1].parse().unwrap_or(u64::MAX >> 8));
        } else if let Some(found) = POINT.captures(text) {
            tap.point(level, found.get(1).is_some(), &found[3]);
        } else if line.starts_with("Bail out!") {
            tap.incomplete = Some(format!("the tests gave up: {}", line.trim()));
        }
    }
    tap.close();
    let top = &tap.levels[0];
    if top.plan.is_none() && top.points == 0 {
        let why = if version { "it has neither a plan nor a test point" } else { "it is no TAP" };
        return Reading::Unrecognised(format!("standard output: {why}"));
    }
    let kept = match top.plan {
        None => Err("the plan is missing, so that tests may be too".to_owned()),
        Some(n) => kept(n, top.points),
    };
    let incomplete = tap.incomplete.or(kept.err());
    Reading::Report(TestReport { counts: Some(tap.counts), findings: tap.failures.finish(), incomplete })
}

fn kept(plan: u64, points: u64) -> Result<(), String> {
    if plan == points { Ok(()) } else { Err(format!("{plan} tests were planned and {points} reported")) }
}

impl Tap<'_> {
    fn level(&mut self, level: usize) -> &mut Level {
        while self.levels.len() <= level {
            self.levels.push(Level::default());
        }
        &mut self.levels[level]
    }

    fn plan(&mut self, level: usize, n: u64) {
        let at = self.level(level);
        let twice = at.plan.is_some_and(|p| p != n);
        at.plan = Some(n);
        if twice {
            self.incomplete.get_or_insert_with(|| "the plan is given twice".to_owned());
        }
    }

    fn point(&mut self, level: usize, not_ok: bool, text: &str) {
        self.close();
        let below = if self.levels.len() > level + 1 { self.levels.drain(level + 1..).next() } else { None };
        let at = self.level(level);
        at.points += 1;
        at.failed += u64::from(not_ok);
        let points = at.points;
        let directive = DIRECTIVE.captures(text).map(|d| d[1].to_ascii_lowercase());
        if let Some(below) = below.filter(|b| directive.is_none() && (b.points > 0 || b.plan.is_some())) {
            if let Err(why) = kept(below.plan.unwrap_or(below.points), below.points) {
                self.incomplete.get_or_insert(why);
            }
            // It sums up its subtests, unless it failed although none of them did.
            if !not_ok || below.failed > 0 {
                return;
            }
        }
        match directive.as_deref() {
            Some("skip") => self.counts.skipped += 1,
            // A failing TODO is expected to fail.
            Some(_) if not_ok => self.counts.skipped += 1,
            _ if not_ok => {
                self.counts.failed += 1;
                let name = if text.is_empty() { format!("test {points}") } else { text.to_owned() };
                self.open = Some(Open { name, raw: Raw::default() });
            }
            _ => self.counts.passed += 1,
        }
    }

    fn close(&mut self) {
        let Some(Open { name, raw }) = self.open.take() else { return };
        let field = |key: &str| {
            let found = raw.0.lines().find_map(|l| l.trim().strip_prefix(key));
            found.map(|v| v.trim().trim_matches(['\'', '"']))
        };
        let mut said = ["error:", "message:"].iter().find_map(|k| field(k)).unwrap_or("").to_owned();
        if matches!(said.as_str(), "|-" | "|" | ">-" | ">") {
            // A block scalar: its first lines follow.
            let is_key = |l: &&str| !l.trim().starts_with("error:") && !l.trim().starts_with("message:");
            let body = raw.0.lines().skip_while(is_key).skip(1).map(str::trim);
            let is_text = |l: &&str| !l.starts_with("code:") && !l.starts_with("name:");
            said = body.take_while(is_text).filter(|l| !l.is_empty()).take(3).collect::<Vec<_>>().join("; ");
        }
        let location = ["location:", "at:"].iter().find_map(|k| field(k)).and_then(|p| self.places.parse(p));
        self.failures.push(&name, &said, location, &raw.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, tried};

    #[test]
    fn node_and_perl() {
        insta::assert_snapshot!("tap_node", tried(&read, sample("tap_node.txt")));
        insta::assert_snapshot!("tap_perl", tried(&read, sample("tap_perl.txt")));
    }

    #[test]
    fn suites_of_nothing_prove_nothing() {
        for (text, want) in [
            (
                "    ok 1 - a # SKIP\n    ok 2 - b # SKIP\n    1..2\nok 1 - suite\n1..1\n",
                "passed 0, failed 0, skipped 2\n",
            ),
            ("    1..0\nok 1 - suite\n1..1\n", "passed 0, failed 0, skipped 0\n"),
            (
                "    ok 1 - a\n    1..2\nok 1 - suite\n1..1\n",
                "passed 1, failed 0, skipped 0\nincomplete: 2 tests were planned and 1 reported\n",
            ),
            ("ok 1\n  ---\n  out: |\n    not ok 2\n  ...\n1..1\n", "passed 1, failed 0, skipped 0\n"),
        ] {
            assert_eq!(tried(&read, text), want, "{text}");
        }
    }

    #[test]
    fn plans_are_kept_or_it_is_incomplete() {
        for (text, want) in [
            ("1..2\nok 1\nok 2\n", "passed 2, failed 0, skipped 0\n"),
            ("ok 1\nok 2\n1..2\n", "passed 2, failed 0, skipped 0\n"),
            ("1..0 # SKIP no database\n", "passed 0, failed 0, skipped 0\n"),
            (
                "1..3\nok 1\n",
                "passed 1, failed 0, skipped 0\nincomplete: 3 tests were planned and 1 reported\n",
            ),
            (
                "ok 1\n",
                "passed 1, failed 0, skipped 0\nincomplete: the plan is missing, so that tests may be too\n",
            ),
            (
                "1..2\nok 1\nBail out! no disk\n",
                "passed 1, failed 0, skipped 0\nincomplete: the tests gave up: Bail out! no disk\n",
            ),
            ("1..2\nok 1 # SKIP slow\nnot ok 2 # TODO later\n", "passed 0, failed 0, skipped 2\n"),
            ("TAP version 14\n", "unrecognised: standard output: it has neither a plan nor a test point"),
            ("hello\n", "unrecognised: standard output: it is no TAP"),
            ("okay then\n", "unrecognised: standard output: it is no TAP"),
        ] {
            assert_eq!(tried(&read, text), want, "{text}");
        }
    }
}
