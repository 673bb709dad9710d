//! SARIF 2.1.0: the results of linters and analysers.

use serde::Deserialize;
use triphammer_model::text::stripped;
use triphammer_model::{Finding, Location, Severity};

use super::{Reading, TestReport};
use crate::locate::Places;
use crate::stable::{short, stable};

#[derive(Deserialize)]
struct Log {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    tool: Tool,
    #[serde(default)]
    results: Option<Vec<SarifResult>>,
}

#[derive(Default, Deserialize)]
struct Tool {
    #[serde(default)]
    driver: Driver,
}

#[derive(Default, Deserialize)]
struct Driver {
    #[serde(default)]
    name: String,
    #[serde(default)]
    rules: Vec<RuleInfo>,
}

#[derive(Deserialize)]
struct RuleInfo {
    #[serde(default)]
    id: String,
    #[serde(rename = "defaultConfiguration", default)]
    default: Config,
    #[serde(rename = "shortDescription", default)]
    short: Message,
    #[serde(default)]
    help: Message,
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    level: Option<String>,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct SarifResult {
    #[serde(rename = "ruleId", default)]
    rule: Option<String>,
    #[serde(rename = "ruleIndex", default)]
    index: Option<i64>,
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    locations: Vec<Place>,
    #[serde(default)]
    suppressions: Option<Vec<serde_json::Value>>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(rename = "physicalLocation", default)]
    physical: Physical,
}

#[derive(Default, Deserialize)]
struct Physical {
    #[serde(rename = "artifactLocation", default)]
    artifact: Artifact,
    #[serde(default)]
    region: Region,
}

#[derive(Default, Deserialize)]
struct Artifact {
    #[serde(default)]
    uri: Option<String>,
}

#[derive(Default, Deserialize)]
struct Region {
    #[serde(rename = "startLine", default)]
    line: Option<u32>,
    #[serde(rename = "startColumn", default)]
    column: Option<u32>,
}

pub(super) fn read(bytes: &[u8], places: &Places<'_>) -> Reading {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let log: Log = match serde_json::from_slice(bytes) {
        Ok(log) => log,
        Err(e) => return Reading::Unrecognised(format!("the report file is no SARIF: {e}")),
    };
    // A run without `results` did not run; a log without runs says nothing.
    if log.runs.is_empty() || log.runs.iter().any(|r| r.results.is_none()) {
        return Reading::Unrecognised("the report file is SARIF without results of a run".to_owned());
    }
    let mut findings = Vec::new();
    for run in &log.runs {
        for result in run.results.iter().flatten() {
            findings.extend(finding(run, result, places));
        }
    }
    findings.sort_by(|a, b| (&a.location, &a.rule, &a.message).cmp(&(&b.location, &b.rule, &b.message)));
    Reading::Report(TestReport { counts: None, findings, incomplete: None })
}

fn finding(run: &Run, result: &SarifResult, places: &Places<'_>) -> Option<Finding> {
    let rules = &run.tool.driver.rules;
    let by_index = || result.index.and_then(|i| rules.get(usize::try_from(i).ok()?));
    let info = match &result.rule {
        Some(id) => rules.iter().find(|r| &r.id == id).or_else(by_index),
        None => by_index(),
    };
    let suppressed = result.suppressions.as_ref().is_some_and(|s| !s.is_empty());
    if suppressed || result.kind.as_deref().is_some_and(|k| k != "fail") {
        return None;
    }
    let level = result.level.as_deref().or_else(|| info?.default.level.as_deref()).unwrap_or("warning");
    let severity = match level {
        "error" => Severity::Error,
        "note" => Severity::Note,
        "none" => return None,
        _ => Severity::Warning,
    };
    let id = result.rule.as_deref().or_else(|| info.map(|i| i.id.as_str())).unwrap_or("");
    let rule = match (short(&stripped(id), 100), short(&stripped(&run.tool.driver.name), 60)) {
        (id, _) if !id.is_empty() => id,
        (_, tool) if !tool.is_empty() => tool,
        _ => "sarif/result".to_owned(),
    };
    let text = result.message.text.as_deref().or_else(|| info?.short.text.as_deref()).unwrap_or("");
    let text = stripped(text);
    let message = short(&stable(text.lines().next().unwrap_or(""), places.workspace()), 400);
    let message = if message.is_empty() { rule.clone() } else { message };
    let mut finding = Finding::error(rule, message).with_severity(severity);
    finding.location = result.locations.first().and_then(|p| location(&p.physical, places));
    finding.fix = info.and_then(|i| i.help.text.as_deref()).map(|t| short(&stripped(t), 400));
    if text.lines().count() > 1 {
        finding.detail = Some(text);
    }
    Some(finding)
}

fn location(physical: &Physical, places: &Places<'_>) -> Option<Location> {
    let uri = physical.artifact.uri.as_deref()?;
    let path = decode(uri.strip_prefix("file://").unwrap_or(uri))?;
    places.locate(&path, physical.region.line, physical.region.column)
}

/// Percent-decodes a URI's path.
fn decode(uri: &str) -> Option<String> {
    let mut out = Vec::with_capacity(uri.len());
    let mut bytes = uri.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::tests::{sample, shown};

    #[test]
    fn results_levels_and_places() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("my src")).unwrap();
        std::fs::write(dir.path().join("my src/a.py"), "x\n").unwrap();
        let text = sample("sarif.json").replace("WORKSPACE", dir.path().to_str().unwrap());
        insta::assert_snapshot!(shown(&read(text.as_bytes(), &Places::new(dir.path(), "."))));
    }

    #[test]
    fn what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{}", "[]", "{\"runs\":[]}", "{\"runs\":[{}]}", "{\"runs\":[{\"results\":null}]}"] {
            let got = shown(&read(text.as_bytes(), &Places::new(dir.path(), ".")));
            assert!(got.starts_with("unrecognised"), "{text}: {got}");
        }
        let fine = "\u{feff}{\"runs\":[{\"results\":[]}]}";
        assert_eq!(shown(&read(fine.as_bytes(), &Places::new(dir.path(), "."))), "no counts\n");
    }
}
