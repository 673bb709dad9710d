//! `JUnit` XML, as most test runners write it: the test cases are counted, the suites' own sums are checked.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use triphammer_model::{Counts, Location};

use super::{Failures, Reading, TestReport};
use crate::locate::Places;

/// Deepest nesting that is followed.
const DEPTH: usize = 64;

/// Bytes of one failure's text that are kept.
const TEXT_CAP: usize = 64 << 10;

#[derive(Default)]
struct Case {
    name: String,
    class: String,
    location: Option<Location>,
    failed: bool,
    skipped: bool,
    said: String,
    text: String,
}

pub(super) fn read(bytes: &[u8], places: &Places<'_>) -> Reading {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text, places) {
        Ok(report) => Reading::Report(report),
        Err(why) => Reading::Unrecognised(format!("the report file is no JUnit XML: {why}")),
    }
}

fn parse(text: &str, places: &Places<'_>) -> Result<TestReport, String> {
    // Entities beyond the five of XML are not expanded, so nothing can grow.
    let mut reader = Reader::from_str(text);
    let mut stack: Vec<String> = Vec::new();
    let mut root = false;
    let mut counts = Counts::default();
    let mut claimed_failed: u64 = 0;
    let mut failures = Failures::new(places);
    let mut case: Option<Case> = None;
    loop {
        let event = reader.read_event().map_err(|e| e.to_string())?;
        let empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                if stack.is_empty() {
                    if root || !matches!(name.as_str(), "testsuites" | "testsuite") {
                        return Err(format!("its root is <{name}>"));
                    }
                    root = true;
                }
                if stack.len() >= DEPTH {
                    return Err(format!("it is nested deeper than {DEPTH}"));
                }
                match name.as_str() {
                    "testsuite" => {
                        // Of nested suites the outer one may repeat the inner sums: the largest is enough.
                        let sum = number(&tag, "failures") + number(&tag, "errors");
                        claimed_failed = claimed_failed.max(sum);
                    }
                    "testcase" => {
                        case = Some(open(&tag, places));
                        if empty {
                            close(case.take(), &mut counts, &mut failures);
                        }
                    }
                    "failure" | "error" | "rerunFailure" => {
                        if let Some(case) = &mut case
                            && name != "rerunFailure"
                        {
                            case.failed = true;
                            if case.said.is_empty() {
                                case.said = attribute(&tag, "message").unwrap_or_default();
                            }
                        }
                    }
                    "skipped" | "disabled" => {
                        if let Some(case) = &mut case {
                            case.skipped = true;
                        }
                    }
                    _ => {}
                }
                if !empty {
                    stack.push(name);
                }
            }
            Event::End(tag) => {
                stack.pop();
                if tag.local_name().as_ref() == "testcase" {
                    close(case.take(), &mut counts, &mut failures);
                }
            }
            Event::Text(text) => keep(&stack, case.as_mut(), &text),
            Event::CData(text) => keep(&stack, case.as_mut(), &text),
            Event::GeneralRef(name) => {
                let text = referenced(&name).map_or_else(|| format!("&{};", &*name), String::from);
                keep(&stack, case.as_mut(), &text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !root {
        return Err("it has no root element".to_owned());
    }
    if !stack.is_empty() {
        return Err("it ends before its root does".to_owned());
    }
    let incomplete = (claimed_failed > counts.failed).then(|| {
        format!("a suite reports {claimed_failed} failures and lists {} failing tests", counts.failed)
    });
    Ok(TestReport { counts: Some(counts), findings: failures.finish(), incomplete })
}

/// Keeps what a failing test said.
fn keep(stack: &[String], case: Option<&mut Case>, text: &str) {
    let Some(case) = case else { return };
    if matches!(stack.last().map(String::as_str), Some("failure" | "error")) && case.text.len() < TEXT_CAP {
        case.text.push_str(text);
    }
}

/// What a reference in text stands for; of named ones only the five of XML are known.
fn referenced(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    let value = found.normalized_value(XmlVersion::Implicit1_0).ok();
    Some(value.map_or_else(|| found.value.to_string(), std::borrow::Cow::into_owned))
}

fn number(tag: &BytesStart<'_>, name: &str) -> u64 {
    attribute(tag, name).and_then(|t| t.trim().parse().ok()).unwrap_or(0)
}

fn open(tag: &BytesStart<'_>, places: &Places<'_>) -> Case {
    let file = attribute(tag, "file");
    let line = attribute(tag, "line").and_then(|t| t.trim().parse().ok());
    Case {
        name: attribute(tag, "name").unwrap_or_default(),
        class: attribute(tag, "classname").unwrap_or_default(),
        location: file.and_then(|f| places.locate(&f, line, None)),
        ..Case::default()
    }
}

fn close(case: Option<Case>, counts: &mut Counts, failures: &mut Failures<'_>) {
    let Some(case) = case else { return };
    if case.failed {
        counts.failed += 1;
        let name = match (case.class.as_str(), case.name.as_str()) {
            ("", name) => name.to_owned(),
            (class, "") => class.to_owned(),
            (class, name) => format!("{class}.{name}"),
        };
        let said =
            [&case.said, &case.text].into_iter().find_map(|t| t.lines().find(|l| !l.trim().is_empty()));
        let location = case.location.or_else(|| failures.places.first_in(&case.text));
        failures.push(&name, said.unwrap_or(""), location, &case.text);
    } else if case.skipped {
        counts.skipped += 1;
    } else {
        counts.passed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, shown};

    fn tried(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tests")).unwrap();
        std::fs::write(dir.path().join("tests/test_a.py"), "x\n").unwrap();
        shown(&read(text.as_bytes(), &Places::new(dir.path(), ".")))
    }

    #[test]
    fn counts_cases() {
        insta::assert_snapshot!(tried(&sample("junit.xml")));
    }

    #[test]
    fn edges() {
        for (text, want) in [
            ("<testsuites/>", "passed 0, failed 0, skipped 0\n"),
            ("<testsuite tests='3'></testsuite>", "passed 0, failed 0, skipped 0\n"),
            (
                "<testsuite failures='1'><testcase name='a'/></testsuite>",
                "passed 1, failed 0, skipped 0\nincomplete: a suite reports 1 failures and lists 0 failing tests\n",
            ),
            ("", "unrecognised: the report file is no JUnit XML: it has no root element"),
            ("<html></html>", "unrecognised: the report file is no JUnit XML: its root is <html>"),
            (
                "<testsuite><testcase name='a'/>",
                "unrecognised: the report file is no JUnit XML: it ends before its root does",
            ),
        ] {
            assert_eq!(tried(text), want, "{text}");
        }
        assert!(tried(&"<testsuite>".repeat(1000)).contains("nested deeper"));
        assert!(tried("<testsuite></testcase>").starts_with("unrecognised"));
        let bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>\
                    <testsuite><testcase name='&b;'><failure>&b;</failure></testcase></testsuite>";
        assert!(tried(bomb).starts_with("passed 0, failed 1"), "{}", tried(bomb));
    }
}
