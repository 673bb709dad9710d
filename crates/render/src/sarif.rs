//! A report as SARIF 2.1.0: what gates found is a result, what kept one from its work a notification.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use triphammer_model::{Digest, Finding, GateVerdict, Judgement, Location, Report, Severity, WorkPath};

use crate::clean::Clean;
use crate::exported::{ExportView, ExportedAttempt, excused};
use crate::text::word;

/// Where the schema of this version is.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The name of our fingerprint; another way of making it would have another name.
const FINGERPRINT: &str = "triphammer/v1";
/// Code hosts read locations below this base as relative to the repository's root.
const BASE: &str = "%SRCROOT%";

/// The findings of one attempt's report, which is usually [`ExportView::standing`].
pub fn sarif(view: &ExportView<'_>, attempt: &ExportedAttempt, report: &Report, clean: &Clean<'_>) -> Value {
    let mut results = Vec::new();
    let mut troubles = Vec::new();
    // Ids are sorted and each is there once; a result names its rule by place as well.
    let ids: BTreeSet<String> = report
        .verdicts
        .iter()
        .filter(|v| !matches!(v.judgement, Judgement::Error(_)))
        .flat_map(GateVerdict::findings)
        .map(|finding| rule(finding, clean))
        .collect();
    let ids: Vec<String> = ids.into_iter().collect();
    for verdict in &report.verdicts {
        match &verdict.judgement {
            Judgement::Pass(_) | Judgement::Fail(_) => {
                let all = verdict.findings().iter();
                results.extend(all.map(|finding| result(verdict, finding, &ids, clean)));
            }
            Judgement::Error(findings) => {
                let all = findings.as_slice().iter();
                troubles.extend(all.map(|finding| trouble(verdict, finding, clean)));
            }
            Judgement::Skip(by) => {
                let (gate, by) = (clean.line(verdict.gate.as_str(), 200), clean.line(by.as_str(), 200));
                let text = format!("gate {gate} was not run because of {by}");
                troubles.push(json!({"level": "note", "message": {"text": text}}));
            }
        }
    }
    let errors = report.verdicts.iter().any(|v| matches!(v.judgement, Judgement::Error(_)));
    let mut invocation = json!({"executionSuccessful": !errors});
    if let Some(at) = view.judged_at(attempt.attempt) {
        invocation["endTimeUtc"] = json!(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
    }
    if !troubles.is_empty() {
        invocation["toolExecutionNotifications"] = json!(troubles);
    }
    let (outcome, reason) = view.outcome();
    let summary = view.summary;
    let spec = clean.line(&summary.spec, 200);
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "Triphammer",
                "version": view.version(),
                "rules": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(),
            }},
            "automationDetails": {
                // Up to the last slash it is the same for all runs of a spec: a later one takes an earlier one's place.
                "id": format!("triphammer/{spec}/{}-{}", summary.run, attempt.attempt.dir_name()),
            },
            "invocations": [invocation],
            "results": results,
            "properties": {
                "run": summary.run,
                "attempt": attempt.attempt,
                "outcome": outcome,
                "reason": reason,
                "ok": report.ok,
                "identity": report.identity,
            },
        }],
    })
}

fn rule(finding: &Finding, clean: &Clean<'_>) -> String {
    let rule = clean.line(&finding.rule, 500);
    if rule.is_empty() { "unnamed".to_owned() } else { rule }
}

fn result(verdict: &GateVerdict, finding: &Finding, ids: &[String], clean: &Clean<'_>) -> Value {
    let id = rule(finding, clean);
    let gate = clean.line(verdict.gate.as_str(), 200);
    let text = clean.text(&finding.message);
    let place = finding.location.as_ref().map(|location| Place::of(location, clean));
    let uri = place.as_ref().map_or("", |place| &place.uri);
    // Of what is exported, so that it cannot be used to try guesses of a secret.
    let print = Digest::of([&*gate, &id, uri, &text].join("\0"));
    let mut result = json!({
        "ruleId": id,
        "ruleIndex": ids.binary_search(&id).ok(),
        "level": level(finding),
        "message": {"text": message(finding, &text, clean)},
        "locations": place.iter().map(Place::json).collect::<Vec<_>>(),
        "fingerprints": {FINGERPRINT: print},
    });
    if let Some(excuse) = finding.excuse {
        result["suppressions"] =
            json!([{"kind": "external", "status": "accepted", "justification": excused(excuse)}]);
    }
    let mut facts = Map::new();
    facts.insert("gate".to_owned(), json!(gate));
    facts.insert("kind".to_owned(), json!(word(&verdict.kind)));
    if verdict.flaky {
        facts.insert("flaky".to_owned(), json!(true));
    }
    if let Some(detail) = &finding.detail {
        facts.insert("detail".to_owned(), json!(clean.text(detail)));
    }
    result["properties"] = Value::Object(facts);
    result
}

fn trouble(verdict: &GateVerdict, finding: &Finding, clean: &Clean<'_>) -> Value {
    let gate = clean.line(verdict.gate.as_str(), 200);
    let text = message(finding, &clean.text(&finding.message), clean);
    json!({
        "level": "error",
        "descriptor": {"id": rule(finding, clean)},
        "message": {"text": format!("gate {gate} could not do its job: {text}")},
    })
}

/// The message with the hint. SARIF has links in plain text: `[words](where)`; what a gate printed makes none.
fn message(finding: &Finding, text: &str, clean: &Clean<'_>) -> String {
    let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!("\nFix: {}", clean.text(fix)));
    let whole = format!("{text}{fix}");
    if whole.contains("](") { whole.replace('[', "\\[").replace(']', "\\]") } else { whole }
}

const fn level(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A location with its address.
struct Place {
    uri: String,
    is_relative: bool,
    line: Option<u32>,
    column: Option<u32>,
}

impl Place {
    fn of(location: &Location, clean: &Clean<'_>) -> Self {
        let (uri, is_relative) = uri(&location.path, clean);
        // They count from 1; what a tool made of nothing is no place.
        let line = location.line.filter(|n| *n > 0);
        Self { uri, is_relative, line, column: location.column.filter(|n| *n > 0 && line.is_some()) }
    }

    fn json(&self) -> Value {
        let mut artifact = json!({"uri": self.uri});
        if self.is_relative {
            artifact["uriBaseId"] = json!(BASE);
        }
        let mut physical = json!({"artifactLocation": artifact});
        if let Some(line) = self.line {
            physical["region"] = json!({"startLine": line});
            if let Some(column) = self.column {
                physical["region"]["startColumn"] = json!(column);
            }
        }
        json!({"physicalLocation": physical})
    }
}

/// The address of a file, and whether it is relative. Bytes that are no plain letters are quoted, colons as well, so
/// that no name reads as a scheme or a host; a path that holds a secret loses it.
fn uri(path: &WorkPath, clean: &Clean<'_>) -> (String, bool) {
    let before = clean.replaced();
    let redacted = clean.text(&path.to_string());
    let bytes = if clean.replaced() == before { path.as_bytes() } else { redacted.as_bytes() };
    let is_relative = !bytes.starts_with(b"/");
    let mut out = if is_relative { String::new() } else { "file://".to_owned() };
    if bytes.starts_with(b"//") {
        out.push_str("/.");
    }
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    (out, is_relative)
}

#[cfg(test)]
mod tests {
    use triphammer_model::finding::Excuse;

    use super::*;
    use crate::samples::{attempt, export, export_hostile, export_secret, exported, failing, journal};
    use crate::schema_check::violation;

    fn standing(view: &ExportView<'_>, clean: &Clean<'_>) -> Value {
        let (attempt, report) = view.standing().unwrap();
        sarif(view, attempt, report, clean)
    }

    /// Against the schema as it is published.
    fn check(log: &Value) {
        let schema: Value =
            serde_json::from_str(include_str!("../tests/data/sarif-schema-2.1.0.json")).unwrap();
        assert_eq!(violation(&schema, log), None);
        for result in log["runs"][0]["results"].as_array().unwrap() {
            let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        }
    }

    #[test]
    fn findings_are_results() {
        let mut attempts = exported();
        attempts.truncate(1);
        let log = export(&journal(), &attempts, false, standing);
        check(&log);
        insta::assert_snapshot!(serde_json::to_string_pretty(&log).unwrap());
    }

    #[test]
    fn the_accepted_attempt_stands_for_the_run() {
        let mut attempts = exported();
        attempts.push(crate::ExportedAttempt { attempt: attempt(3), ..attempts[0].clone() });
        let log = export(&journal(), &attempts, false, standing);
        check(&log);
        assert_eq!(log["runs"][0]["properties"]["attempt"], 2);
        assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], true);
    }

    #[test]
    fn an_excused_error_is_suppressed() {
        let mut excused = Finding::error("r", "m");
        excused.excuse = Some(Excuse::Grandfathered);
        let verdict =
            GateVerdict::from_findings("g".into(), triphammer_model::GateKind::Static, vec![excused]);
        let mut attempts = exported();
        attempts[0].report = crate::Artifact::Read(Report::new(vec![verdict]));
        attempts.truncate(1);
        let log = export(&journal(), &attempts, false, standing);
        check(&log);
        assert_eq!(
            log["runs"][0]["results"][0]["suppressions"][0]["justification"],
            "excused (there before any work)"
        );
    }

    #[test]
    fn a_fingerprint_is_of_the_finding_and_not_of_its_run() {
        let make = |n: u32, line: u32| {
            let mut verdict = failing("t");
            if let Judgement::Fail(list) = &verdict.judgement {
                let mut list = list.as_slice().to_vec();
                list[0].location.as_mut().unwrap().line = Some(line);
                list[0].detail = Some(format!("took {n} ms"));
                verdict = GateVerdict::from_findings("t".into(), verdict.kind, list);
            }
            let mut attempts = exported();
            attempts.truncate(1);
            attempts[0].attempt = attempt(n);
            attempts[0].report = crate::Artifact::Read(Report::new(vec![verdict]));
            let log = export(&journal(), &attempts, false, standing);
            log["runs"][0]["results"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| r["fingerprints"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(make(1, 3), make(2, 4));
        assert_ne!(make(1, 3)[0], make(1, 3)[1]);
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let log = export_hostile(standing);
        check(&log);
        let uris: Vec<&str> = log["runs"][0]["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|r| r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str())
            .collect();
        assert_eq!(uris, ["a%3Ab/%FF%2C%25%0A%3A%3Ac%3C%22", "file:///.//e.example/x", "file:///etc/x"]);
        let first = &log["runs"][0]["results"][0];
        let text = first["message"]["text"].as_str().unwrap();
        assert!(text.contains("\\[l\\](http") && !text.contains("![l]("), "{text}");
        let all = log.to_string();
        assert!(!all.contains("\\u001b") && !all.contains('\u{202e}') && !all.contains("\\u0000"));
    }

    #[test]
    fn secrets_do_not_get_in() {
        let (log, replaced) = export_secret(standing);
        check(&log);
        let all = log.to_string();
        assert!(
            !all.contains("s3<cr") && !all.contains("s3%3Ccr") && all.contains("[redacted:KEY]"),
            "{all}"
        );
        assert!(all.contains("dir/%5Bredacted%3AKEY%5D/f"), "{all}");
        assert!(replaced > 10, "{replaced}");
    }
}
