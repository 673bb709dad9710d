//! Text of pytest: the summary line counts, the sections above it tell.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use triphammer_model::{Counts, Location};

use super::{Failures, Raw, Reading, TestReport};
use crate::locate::Places;

static SUMMARY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^=*\s*((?:\d+ [a-z]+(?:, )?)+|no tests (?:ran|collected)) in [0-9.]+s(?: \([0-9:]+\))?\s*=*$",
    )
    .expect("the pattern is fixed")
});
static COUNT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\d+) ([a-z]+)").expect("the pattern is fixed"));
static SECTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^_{3,} (.+?) _{3,}$").expect("the pattern is fixed"));
static SHORT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(FAILED|ERROR) (.+?)(?: - (.*))?$").expect("the pattern is fixed"));
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\S+?):(\d+): (?:\w|in )").expect("the pattern is fixed"));

pub(super) fn read(lines: &mut dyn Iterator<Item = String>, places: &Places<'_>) -> Reading {
    let mut summary: Option<Counts> = None;
    let mut sections: BTreeMap<String, Raw> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut listed: Vec<(String, String)> = Vec::new();
    let mut in_list = false;
    for line in lines {
        let line = line.trim_end();
        if let Some(found) = SUMMARY.captures(line) {
            // The last one is pytest's own: what tests print comes before.
            summary = Some(counts(&found[1]));
            current = None;
            in_list = false;
        } else if line.starts_with("====") {
            in_list = line.contains(" short test summary info ");
            current = None;
        } else if let Some(found) = SECTION.captures(line) {
            let name = found[1].to_owned();
            sections.insert(name.clone(), Raw::default());
            current = Some(name);
        } else if in_list && let Some(found) = SHORT.captures(line) {
            listed.push((found[2].to_owned(), found.get(3).map_or("", |m| m.as_str()).to_owned()));
        } else if let Some(name) = &current
            && let Some(raw) = sections.get_mut(name)
        {
            raw.line(line);
        }
    }
    let Some(counts) = summary else {
        return Reading::Unrecognised("standard output holds no summary line of pytest".to_owned());
    };
    let mut failures = Failures::new(places);
    for (id, said) in &listed {
        let raw = section(&sections, id).map_or("", |raw| raw.0.as_str());
        let said = if said.is_empty() { error_line(raw) } else { said.clone() };
        let location = place(raw, id, places);
        failures.push(id, &said, location, raw);
    }
    if listed.is_empty() && counts.failed > 0 {
        // The short summary may be switched off.
        for (name, raw) in &sections {
            failures.push(name, &error_line(&raw.0), place(&raw.0, "", places), &raw.0);
        }
    }
    Reading::Report(TestReport { counts: Some(counts), findings: failures.finish(), incomplete: None })
}

fn counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for found in COUNT.captures_iter(text) {
        let n: u64 = found[1].parse().unwrap_or(u64::MAX >> 8);
        match &found[2] {
            "passed" | "xpassed" => counts.passed += n,
            "failed" | "error" | "errors" => counts.failed += n,
            "skipped" | "xfailed" => counts.skipped += n,
            // Deselected tests, warnings and re-runs are no results.
            _ => {}
        }
    }
    counts
}

/// The section of a test id: `path::Class::test[x]` has the heading `Class.test[x]`.
fn section<'a>(sections: &'a BTreeMap<String, Raw>, id: &str) -> Option<&'a Raw> {
    let (path, rest) = id.split_once("::").unwrap_or((id, ""));
    let name = rest.replace("::", ".");
    sections
        .get(&name)
        .or_else(|| sections.get(&format!("ERROR collecting {path}")))
        .or_else(|| sections.get(&format!("ERROR at setup of {name}")))
        .or_else(|| sections.get(&format!("ERROR at teardown of {name}")))
}

/// The first line that pytest marks as the error.
fn error_line(raw: &str) -> String {
    raw.lines()
        .filter_map(|l| l.strip_prefix("E "))
        .map(str::trim)
        .find(|l| !l.is_empty())
        .unwrap_or("")
        .to_owned()
}

/// The innermost place in the workspace that the section names; else the file of the test's id.
fn place(raw: &str, id: &str, places: &Places<'_>) -> Option<Location> {
    let named = raw.lines().rev().filter_map(|l| {
        let found = PLACE.captures(l)?;
        places.locate(&found[1], found[2].parse().ok(), None)
    });
    named.into_iter().next().or_else(|| places.locate(id.split("::").next()?, None, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, tried};

    #[test]
    fn failures_and_collection_errors() {
        insta::assert_snapshot!(tried(&read, sample("pytest_failed.txt")));
        insta::assert_snapshot!(tried(&read, sample("pytest_collect.txt")));
    }

    #[test]
    fn summaries() {
        for (text, want) in [
            ("3 passed in 0.01s\n", "passed 3, failed 0, skipped 0\n"),
            (
                "===== 1 passed, 2 skipped, 1 warning in 63.20s (0:01:03) =====\n",
                "passed 1, failed 0, skipped 2\n",
            ),
            ("==== 2 skipped in 0.01s ====\n", "passed 0, failed 0, skipped 2\n"),
            ("==== no tests ran in 0.00s ====\n", "passed 0, failed 0, skipped 0\n"),
            ("==== 1 xfailed, 1 xpassed, 4 deselected in 0.10s ====\n", "passed 1, failed 0, skipped 1\n"),
            ("99 passed in 0.01s\n1 failed in 0.02s\n", "passed 0, failed 1, skipped 0\n"),
            ("all fine\n", "unrecognised: standard output holds no summary line of pytest"),
            ("I passed in 3s\n", "unrecognised: standard output holds no summary line of pytest"),
        ] {
            assert_eq!(tried(&read, text), want, "{text}");
        }
    }
}
