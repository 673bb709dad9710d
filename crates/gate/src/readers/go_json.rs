//! `go test -json`: one JSON object a line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use triphammer_model::{Counts, Location};

use super::{Failures, Raw, Reading, TestReport};
use crate::locate::Places;

static SAID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s+(\S+\.go):(\d+): (.*)$").expect("the pattern is fixed"));

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Package", default)]
    package: String,
    #[serde(rename = "ImportPath", default)]
    import: String,
    #[serde(rename = "Test", default)]
    test: String,
    #[serde(rename = "Output", default)]
    output: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Skipped,
}

#[derive(Default)]
struct Test {
    end: Option<End>,
    raw: Raw,
}

pub(super) fn read(lines: &mut dyn Iterator<Item = String>, places: &Places<'_>) -> Reading {
    let mut tests: BTreeMap<(String, String), Test> = BTreeMap::new();
    let mut builds: BTreeMap<String, Raw> = BTreeMap::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut recognised = false;
    for line in lines {
        let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
        recognised = true;
        if matches!(line.action.as_str(), "build-output" | "build-fail") {
            builds.entry(line.import.clone()).or_default().line(line.output.trim_end());
            continue;
        }
        let test = tests.entry((line.package.clone(), line.test.clone())).or_default();
        if line.test.is_empty() {
            if matches!(line.action.as_str(), "pass" | "fail" | "skip") {
                open.remove(&line.package);
            } else {
                open.insert(line.package.clone());
            }
        }
        match line.action.as_str() {
            "pass" => test.end = Some(End::Passed),
            "fail" => test.end = Some(End::Failed),
            "skip" => test.end = Some(End::Skipped),
            "output" => test.raw.line(line.output.trim_end_matches('\n')),
            _ => {}
        }
    }
    if !recognised {
        return Reading::Unrecognised("standard output holds no event of `go test -json`".to_owned());
    }
    fold(&tests, &builds, &open, places)
}

fn fold(
    tests: &BTreeMap<(String, String), Test>,
    builds: &BTreeMap<String, Raw>,
    open: &BTreeSet<String>,
    places: &Places<'_>,
) -> Reading {
    let mut counts = Counts::default();
    let mut failures = Failures::new(places);
    let mut incomplete = open.first().map(|p| format!("package {p} gave no result"));
    for ((package, name), test) in tests.iter().filter(|((_, name), _)| !name.is_empty()) {
        // A test with subtests only repeats what they said, unless it alone failed.
        let below = format!("{name}/");
        let children: Vec<Option<End>> = tests
            .range((package.clone(), below.clone())..)
            .take_while(|((p, n), _)| p == package && n.starts_with(&below))
            .map(|(_, t)| t.end)
            .collect();
        let repeats =
            !children.is_empty() && (test.end != Some(End::Failed) || children.contains(&Some(End::Failed)));
        if repeats {
            continue;
        }
        match test.end {
            Some(End::Passed) => counts.passed += 1,
            Some(End::Skipped) => counts.skipped += 1,
            Some(End::Failed) => {
                counts.failed += 1;
                let (said, place) = said(&test.raw.0, package, places);
                failures.push(&format!("{package}.{name}"), &said, place, &test.raw.0);
            }
            None => {
                incomplete.get_or_insert_with(|| format!("{package}.{name} gave no result"));
            }
        }
    }
    for ((package, _), test) in tests.iter().filter(|((_, name), _)| name.is_empty()) {
        let own = tests.range((package.clone(), String::new())..).take_while(|((p, _), _)| p == package);
        let told = own.skip(1).any(|(_, t)| t.end == Some(End::Failed));
        if test.end == Some(End::Failed) && !told {
            counts.failed += 1;
            let build = builds.iter().find(|(import, _)| import.split(' ').next() == Some(package));
            let raw = build.map_or(test.raw.0.as_str(), |(_, raw)| raw.0.as_str());
            let what = if build.is_some() { "does not build" } else { "failed outside its tests" };
            failures.push(&format!("package {package}"), what, places.first_in(raw), raw);
        }
    }
    Reading::Report(TestReport { counts: Some(counts), findings: failures.finish(), incomplete })
}

/// What a failing test said first, and where. Go names the file only, so it is sought in the package's folder.
fn said(raw: &str, package: &str, places: &Places<'_>) -> (String, Option<Location>) {
    for line in raw.lines() {
        if let Some(found) = SAID.captures(line) {
            let number = found[2].parse().ok();
            // The folder is the import path without the module's name, of unknown length.
            let parts: Vec<&str> = package.split('/').collect();
            let place = (0..=parts.len()).find_map(|n| {
                let dir = parts[n..].join("/");
                let path = if dir.is_empty() { found[1].to_owned() } else { format!("{dir}/{}", &found[1]) };
                places.locate(&path, number, None)
            });
            return (found[3].to_owned(), place);
        }
    }
    let panic = raw.lines().map(str::trim).find(|l| l.starts_with("panic:"));
    (panic.unwrap_or("").to_owned(), places.first_in(raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, tried};

    #[test]
    fn subtests_packages_and_builds() {
        insta::assert_snapshot!(tried(&read, sample("go_json.txt")));
    }

    #[test]
    fn edges() {
        for (text, want) in [
            ("FAIL\n", "unrecognised: standard output holds no event of `go test -json`"),
            (
                "{\"Action\":\"start\",\"Package\":\"m\"}\n{\"Action\":\"skip\",\"Package\":\"m\"}\n",
                "passed 0, failed 0, skipped 0\n",
            ),
            (
                "{\"Action\":\"start\",\"Package\":\"m\"}\n{\"Action\":\"run\",\"Package\":\"m\",\"Test\":\"T\"}\n",
                "passed 0, failed 0, skipped 0\nincomplete: package m gave no result\n",
            ),
        ] {
            assert_eq!(tried(&read, text), want, "{text}");
        }
    }
}
