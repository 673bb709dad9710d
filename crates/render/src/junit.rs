//! A run as test reports are written since `JUnit`, in XML: a suite for each attempt, a case for each gate.
//!
//! There is no standard, only readers. What is written here is what the schemas of Ant and of Jenkins both take:
//! figures of a gate are properties of its suite (a case may have none), a case has one failure that holds all
//! findings, and what fails nothing is in the suite's output.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event as Xml};
use triphammer_model::report::VerdictWord;
use triphammer_model::{Finding, GateVerdict, Judgement, Report};

use crate::attempt::Artifact;
use crate::clean::Clean;
use crate::exported::{ExportView, ExportedAttempt, finding_text};
use crate::text::{count, word};

type Out = Writer<Vec<u8>>;

/// The document.
///
/// # Panics
/// Never: memory can be written to.
pub fn junit(view: &ExportView<'_>, clean: &Clean<'_>) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut out, view, clean).expect("memory can be written to");
    let mut text = String::from_utf8(out.into_inner()).expect("only text was written");
    text.push('\n');
    text
}

fn document(out: &mut Out, view: &ExportView<'_>, clean: &Clean<'_>) -> io::Result<()> {
    out.write_event(Xml::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    out.create_element("testsuites").write_inner_content(|out| {
        for (id, attempt) in view.attempts.iter().enumerate() {
            suite(out, view, attempt, id, clean)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// A case before it is written.
struct Case {
    name: String,
    ms: u64,
    /// Element, message, type, text.
    end: Option<(&'static str, String, String, String)>,
}

fn suite(
    out: &mut Out,
    view: &ExportView<'_>,
    attempt: &ExportedAttempt,
    id: usize,
    clean: &Clean<'_>,
) -> io::Result<()> {
    let cases = match &attempt.report {
        Artifact::Read(report) => report.verdicts.iter().map(|verdict| case(verdict, clean)).collect(),
        Artifact::Missing(why) => vec![unjudged(view, attempt, why, clean)],
    };
    let ended = |element: &str| {
        cases.iter().filter(|c| c.end.as_ref().is_some_and(|(e, ..)| *e == element)).count().to_string()
    };
    let began = view.began(attempt.attempt).unwrap_or(view.summary.started);
    let spec = token(&clean.line(&view.summary.spec, 200), "run");
    let attributes = [
        ("id", id.to_string()),
        ("package", spec.clone()),
        ("name", format!("{spec} attempt {}", attempt.attempt)),
        ("timestamp", began.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
        ("hostname", "localhost".to_owned()),
        ("tests", cases.len().to_string()),
        ("failures", ended("failure")),
        ("errors", ended("error")),
        ("skipped", ended("skipped")),
        ("time", decimal(cases.iter().map(|c| c.ms).sum())),
    ];
    let classname = format!("{spec}.attempt-{}", attempt.attempt.dir_name());
    let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (*name, &**value)).collect();
    out.create_element("testsuite").with_attributes(attributes).write_inner_content(|out| {
        properties(out, view, attempt, clean)?;
        for case in &cases {
            write_case(out, case, &classname)?;
        }
        out.create_element("system-out").write_text_content(BytesText::new(&harmless(attempt, clean)))?;
        out.create_element("system-err").write_text_content(BytesText::new(""))?;
        Ok(())
    })?;
    Ok(())
}

fn write_case(out: &mut Out, case: &Case, classname: &str) -> io::Result<()> {
    let time = decimal(case.ms);
    let element = out.create_element("testcase").with_attributes([
        ("classname", classname),
        ("name", &*case.name),
        ("time", &*time),
    ]);
    let Some((end, message, kind, text)) = &case.end else {
        element.write_empty()?;
        return Ok(());
    };
    element.write_inner_content(|out| {
        let end = out.create_element(*end);
        // The stricter schema knows no attributes of what was skipped, but takes anything.
        let end = end.with_attributes([("message", &**message), ("type", &**kind)]);
        end.write_text_content(BytesText::new(text))?;
        Ok(())
    })?;
    Ok(())
}

fn case(verdict: &GateVerdict, clean: &Clean<'_>) -> Case {
    let name = token(&clean.line(verdict.gate.as_str(), 200), "gate");
    let all = |findings: &[&Finding]| {
        characters(&findings.iter().map(|f| finding_text(clean, f)).collect::<Vec<_>>().join("\n"))
    };
    let first = |findings: &[&Finding]| {
        findings.first().map_or_else(
            || (String::new(), String::new()),
            |f| (clean.line(&f.message, 300), clean.line(&f.rule, 200)),
        )
    };
    let end = match &verdict.judgement {
        Judgement::Pass(_) => None,
        Judgement::Fail(_) => {
            let failing: Vec<&Finding> = verdict.failing().collect();
            let (message, rule) = first(&failing);
            let message = format!("{}: {message}", count(failing.len() as u64, "finding"));
            Some(("failure", characters(&message), token(&rule, "finding"), all(&failing)))
        }
        Judgement::Error(findings) => {
            let findings: Vec<&Finding> = findings.as_slice().iter().collect();
            let (message, rule) = first(&findings);
            let message = format!("the gate could not do its job: {message}");
            Some(("error", characters(&message), token(&rule, "error"), all(&findings)))
        }
        Judgement::Skip(by) => {
            let message = format!("not run because of {}", clean.line(by.as_str(), 200));
            Some(("skipped", characters(&message), "skip".to_owned(), String::new()))
        }
    };
    Case { name, ms: verdict.duration_ms, end }
}

/// An attempt without a report is no empty suite, which would read as a good one.
fn unjudged(view: &ExportView<'_>, attempt: &ExportedAttempt, why: &str, clean: &Clean<'_>) -> Case {
    let end = if view.is_pending(attempt.attempt) {
        ("skipped", "not judged yet: the run is not over".to_owned(), "pending".to_owned(), String::new())
    } else {
        let why = format!("no gate judged this attempt: {}", clean.line(why, 1_000));
        ("error", characters(&why), "no-report".to_owned(), String::new())
    };
    Case { name: "report".to_owned(), ms: 0, end: Some(end) }
}

fn properties(
    out: &mut Out,
    view: &ExportView<'_>,
    attempt: &ExportedAttempt,
    clean: &Clean<'_>,
) -> io::Result<()> {
    let (outcome, reason) = view.outcome();
    let mut list = vec![
        ("run".to_owned(), view.summary.run.to_string()),
        ("run.outcome".to_owned(), outcome),
        ("run.reason".to_owned(), reason),
        ("attempt".to_owned(), attempt.attempt.to_string()),
    ];
    if let Some(short) = view.summary.history.iter().find(|a| a.attempt == attempt.attempt) {
        list.push(("agent".to_owned(), clean.line(short.agent.as_str(), 200)));
        list.extend(short.tree.as_ref().map(|tree| ("tree".to_owned(), tree.to_string())));
    }
    if let Some(report) = attempt.judged() {
        list.push(("report.ok".to_owned(), report.ok.to_string()));
        list.push(("report.identity".to_owned(), report.identity.to_string()));
        list.extend(report.verdicts.iter().flat_map(|verdict| figures(verdict, clean)));
    }
    out.create_element("properties").write_inner_content(|out| {
        for (name, value) in &list {
            let (name, value) = (token(name, "property"), characters(value));
            let property = out.create_element("property");
            property.with_attributes([("name", &*name), ("value", &*value)]).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn figures(verdict: &GateVerdict, clean: &Clean<'_>) -> Vec<(String, String)> {
    let gate = clean.line(verdict.gate.as_str(), 200);
    let mut list = vec![(format!("{gate}.kind"), word(&verdict.kind))];
    if let Some(counts) = verdict.counts {
        for (name, n) in [("passed", counts.passed), ("failed", counts.failed), ("skipped", counts.skipped)] {
            list.push((format!("{gate}.{name}"), n.to_string()));
        }
    }
    if verdict.flaky {
        list.push((format!("{gate}.flaky"), "true".to_owned()));
    }
    list
}

/// The findings that fail nothing.
fn harmless(attempt: &ExportedAttempt, clean: &Clean<'_>) -> String {
    let mut out = String::new();
    for verdict in attempt.judged().map_or(&[][..], |report: &Report| &report.verdicts) {
        let fails = |f: &Finding| match verdict.word() {
            VerdictWord::Fail => f.fails(),
            VerdictWord::Error => true,
            VerdictWord::Pass | VerdictWord::Skip => false,
        };
        for finding in verdict.findings().iter().filter(|f| !fails(f)) {
            out.push_str(&clean.line(verdict.gate.as_str(), 200));
            out.push_str(": ");
            out.push_str(&finding_text(clean, finding));
        }
    }
    characters(&out)
}

/// Seconds with three digits after the point.
fn decimal(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// Text of which every character may stand in XML. Control characters are gone already; these cannot even be quoted.
fn characters(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// The same for where an empty text or one with spaces at its ends is refused.
fn token(text: &str, or: &str) -> String {
    let text = characters(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { or.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;

    use super::*;
    use crate::samples::{
        HOSTILE, any, export, export_hostile, export_secret, exported, exported_attempt, journal, receipt,
    };

    /// Parent, name, attributes.
    type Element = (String, String, Vec<(String, String)>);

    /// The elements of a document in order; a document that is not well formed is a failure.
    fn elements(xml: &str) -> Vec<Element> {
        let mut reader = Reader::from_str(xml);
        let (mut open, mut found) = (vec![String::new()], Vec::new());
        loop {
            let event = reader.read_event().expect("well formed");
            match &event {
                Xml::Start(tag) | Xml::Empty(tag) => {
                    let name = tag.name().as_ref().to_owned();
                    let attributes = tag.attributes().map(|a| {
                        let a = a.expect("an attribute");
                        let value = a.normalized_value(quick_xml::XmlVersion::Implicit1_0).expect("a value");
                        (a.key.as_ref().to_owned(), value.into_owned())
                    });
                    found.push((open.last().unwrap().clone(), name.clone(), attributes.collect()));
                    if matches!(event, Xml::Start(_)) {
                        open.push(name);
                    }
                }
                Xml::End(_) => drop(open.pop()),
                Xml::Eof => break,
                _ => {}
            }
        }
        assert_eq!(open.len(), 1, "all closed");
        found
    }

    /// What the schemas of Ant's and of Jenkins' reader have in common.
    fn check(xml: &str) {
        let all = elements(xml);
        for (parent, name, attributes) in &all {
            let needed: &[&str] = match (&**parent, &**name) {
                ("", "testsuites") | ("testsuite", "properties" | "system-out" | "system-err") => &[],
                ("testsuites", "testsuite") => &[
                    "id",
                    "package",
                    "name",
                    "timestamp",
                    "hostname",
                    "tests",
                    "failures",
                    "errors",
                    "skipped",
                    "time",
                ],
                ("properties", "property") => &["name", "value"],
                ("testsuite", "testcase") => &["classname", "name", "time"],
                ("testcase", "failure" | "error" | "skipped") => &["message", "type"],
                other => panic!("{other:?} has no place in the schema"),
            };
            let names: Vec<&str> = attributes.iter().map(|(name, _)| &**name).collect();
            assert_eq!(names, needed, "{name}");
            for (name, value) in attributes {
                let is_number = value.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !value.is_empty();
                match &**name {
                    "id" | "tests" | "failures" | "errors" | "skipped" | "time" => {
                        assert!(is_number, "{name}={value}");
                    }
                    "name" | "package" | "classname" => {
                        assert!(
                            !value.is_empty() && value.trim() == value && !value.contains("  "),
                            "{name}={value:?}"
                        );
                    }
                    _ => {}
                }
            }
        }
        let number = |n: &str| all.iter().filter(|(_, name, _)| name == n).count();
        let sum = |attribute: &str| -> usize {
            let suites = all.iter().filter(|(_, name, _)| name == "testsuite");
            suites
                .flat_map(|(.., a)| a)
                .filter(|(n, _)| n == attribute)
                .map(|(_, v)| v.parse::<usize>().unwrap())
                .sum()
        };
        for (element, attribute) in
            [("testcase", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")]
        {
            assert_eq!(number(element), sum(attribute), "{element}");
        }
        assert_eq!(number("system-out"), number("testsuite"));
    }

    #[test]
    fn a_run_is_suites_and_cases() {
        let xml = export(&journal(), &exported(), false, junit);
        check(&xml);
        insta::assert_snapshot!(xml);
    }

    #[test]
    fn an_attempt_without_a_report_is_no_good_one() {
        let gone =
            exported_attempt(2, receipt(), Artifact::Missing("`report.json` was not written".to_owned()));
        for (live, ending) in [(false, "error"), (true, "skipped")] {
            let xml = export(&journal(), std::slice::from_ref(&gone), live, junit);
            check(&xml);
            let cases: Vec<_> =
                elements(&xml).into_iter().filter(|(parent, ..)| parent == "testcase").collect();
            assert_eq!(cases.len(), 1, "{xml}");
            assert_eq!(cases[0].1, ending);
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let xml = export_hostile(junit);
        check(&xml);
        // Nothing may be there that XML cannot hold.
        let is_allowed =
            |c: char| matches!(c, '\n' | '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert_eq!(xml.chars().find(|c| !is_allowed(*c) || *c == '\u{202e}'), None);
        assert!(!xml.contains("]]>") && xml.contains("]]&gt;&lt;x"), "{xml}");
        assert!(xml.contains("\\xff"), "a path that is no UTF-8 is escaped");
        assert!(xml.contains(&"x".repeat(100_000)), "nothing is lost");
        assert!(!xml.contains(HOSTILE));
    }

    proptest::proptest! {
        #[test]
        fn any_text_makes_a_document(text in r"(?s)(.|[<>&'\r\n\x{0}\x{fffe}]|\]\]>){0,40}", path: Vec<u8>) {
            let mut attempts = exported();
            attempts.truncate(1);
            attempts[0].report = Artifact::Read(Report::new(vec![any(&text, path)]));
            let mut lines = journal();
            if let triphammer_model::Event::Started(started) = &mut lines[0].event {
                started.spec = text;
            }
            check(&export(&lines, &attempts, false, junit));
        }
    }

    #[test]
    fn secrets_do_not_get_in() {
        let (xml, replaced) = export_secret(junit);
        check(&xml);
        assert!(
            !xml.contains("s3&lt;cr") && !xml.contains("s3<cr") && xml.contains("[redacted:KEY]"),
            "{xml}"
        );
        assert!(replaced > 10, "{replaced}");
    }
}
