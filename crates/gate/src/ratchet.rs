//! Findings that were there before: the ratchet's committed baseline, and what an untouched workspace showed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use triphammer_model::finding::Excuse;
use triphammer_model::{Finding, Report, Severity, WorkPath};

use crate::files::WorkFiles;
use crate::gate::Gate;

/// Larger files have no line content; their findings are told apart by rule and file.
const FILE_CAP: u64 = 8 << 20;

/// What makes a finding the same as an earlier one: rule, file and the line's content without its white space,
/// so that it survives lines added above it and a new indent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Print {
    rule: String,
    file: Option<WorkPath>,
    line: String,
}

/// Known findings and how often each occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Known(BTreeMap<Print, u32>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: u32,
    findings: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<WorkPath>,
    line: String,
    count: u32,
}

impl From<Known> for Wire {
    fn from(known: Known) -> Self {
        let entry = |(p, count): (Print, u32)| Entry { rule: p.rule, file: p.file, line: p.line, count };
        Self { schema: 1, findings: known.0.into_iter().map(entry).collect() }
    }
}

impl TryFrom<Wire> for Known {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Self, String> {
        if wire.schema != 1 {
            return Err(format!("schema {} is not known; this version reads 1", wire.schema));
        }
        let mut known = Self::default();
        for e in wire.findings {
            *known.0.entry(Print { rule: e.rule, file: e.file, line: e.line }).or_default() += e.count;
        }
        Ok(known)
    }
}

/// The baseline could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RatchetError {
    /// Its text is wrong.
    #[error("gates/baseline.json:{line}: {what}")]
    Parse {
        /// Line from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The file could not be read or written.
    #[error("baseline {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new one would excuse what the old one does not.
    #[error(
        "baseline {}: it would grow by {grown} findings, and a baseline may only shrink; the first new one is {first}; \
         mend them, or force it to grow",
        path.display()
    )]
    Grows {
        /// The file.
        path: PathBuf,
        /// How many findings the old one does not have.
        grown: u64,
        /// One of them.
        first: String,
    },
}

impl Known {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many findings are known.
    pub fn len(&self) -> u64 {
        self.0.values().map(|n| u64::from(*n)).sum()
    }

    fn grown_over(&self, old: &Self) -> (u64, Option<&Print>) {
        let mut grown = 0;
        let mut first = None;
        for (print, count) in &self.0 {
            let more = count.saturating_sub(old.0.get(print).copied().unwrap_or(0));
            if more > 0 {
                grown += u64::from(more);
                first = first.or(Some(print));
            }
        }
        (grown, first)
    }
}

/// Reads lines of files once each.
struct LinesOf<'a> {
    files: &'a WorkFiles,
    cache: BTreeMap<WorkPath, Vec<String>>,
}

impl<'a> LinesOf<'a> {
    fn new(files: &'a WorkFiles) -> Self {
        Self { files, cache: BTreeMap::new() }
    }

    fn print(&mut self, finding: &Finding) -> Print {
        let place = finding.location.as_ref();
        let line = match place.and_then(|l| l.line.map(|n| (&l.path, n))) {
            Some((path, number)) => {
                let lines = self.cache.entry(path.clone()).or_insert_with(|| {
                    let bytes = self.files.read(path, FILE_CAP).unwrap_or_default();
                    String::from_utf8_lossy(&bytes).lines().map(normal).collect()
                });
                let index = usize::try_from(number).unwrap_or(0).saturating_sub(1);
                lines.get(index).cloned().unwrap_or_default()
            }
            // Without a place, the message is all there is to tell two findings apart.
            None => normal(&finding.message),
        };
        Print { rule: finding.rule.clone(), file: place.map(|l| l.path.clone()), line }
    }
}

fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Excuses error findings that the baseline knows, then those that were there at the start; each known finding
/// excuses one.
pub(crate) fn excuse(
    findings: &mut [Finding],
    files: &WorkFiles,
    baseline: Option<&Known>,
    grandfathered: &Known,
) {
    if baseline.is_none_or(Known::is_empty) && grandfathered.is_empty() {
        return;
    }
    let mut lines = LinesOf::new(files);
    let mut left = [
        (Excuse::Baseline, baseline.cloned().unwrap_or_default()),
        (Excuse::Grandfathered, grandfathered.clone()),
    ];
    for finding in findings.iter_mut().filter(|f| f.severity == Severity::Error) {
        let print = lines.print(finding);
        // Both lists may hold the same finding, so both are counted down.
        for (why, known) in &mut left {
            if let Some(count) = known.0.get_mut(&print).filter(|n| **n > 0) {
                *count -= 1;
                finding.excuse = finding.excuse.or(Some(*why));
            }
        }
    }
}

/// Every error finding of gates that enumerate findings: what the ratchet would write, and what an untouched
/// workspace is excused for.
pub fn collect_known(report: &Report, files: &WorkFiles, gates: &[Gate]) -> Known {
    let mut lines = LinesOf::new(files);
    let mut known = Known::default();
    let enumerating = |name| gates.iter().any(|g| g.name() == name && g.enumerates());
    for verdict in report.verdicts.iter().filter(|v| enumerating(&v.gate)) {
        for finding in verdict.findings().iter().filter(|f| f.severity == Severity::Error && is_own(f)) {
            *known.0.entry(lines.print(finding)).or_default() += 1;
        }
    }
    known
}

/// Whether a finding is one of the things that a gate enumerates, and not about the gate itself.
pub(crate) fn is_own(finding: &Finding) -> bool {
    !["gate/", "env/", "test/"].iter().any(|p| finding.rule.starts_with(p))
}

/// Reads a baseline's text.
///
/// # Errors
/// [`RatchetError::Parse`] with the line.
pub fn parse_baseline(bytes: &[u8]) -> Result<Known, RatchetError> {
    serde_json::from_slice(bytes)
        .map_err(|e| RatchetError::Parse { line: e.line().max(1), what: e.to_string() })
}

/// Writes a baseline. One that is there may only shrink, unless `force` is given; the first one may hold anything.
///
/// # Errors
/// [`RatchetError::Grows`] names what it would newly excuse; nothing is written then.
pub fn write_baseline(path: &Path, new: &Known, force: bool) -> Result<(), RatchetError> {
    let failed = |source| RatchetError::File { path: path.to_owned(), source };
    match std::fs::read(path) {
        Ok(bytes) if !force => {
            let old = parse_baseline(&bytes)?;
            let (grown, first) = new.grown_over(&old);
            if let Some(first) = first {
                let file = first.file.as_ref().map_or(String::new(), |f| format!(" in {f}"));
                let first = format!("{}{file}: {}", first.rule, first.line);
                return Err(RatchetError::Grows { path: path.to_owned(), grown, first });
            }
        }
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    let mut text = serde_json::to_string_pretty(new).map_err(|e| failed(e.into()))?;
    text.push('\n');
    let temporary = path.with_extension("json.new");
    std::fs::write(&temporary, text).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use triphammer_model::{GateKind, GateVerdict, Location};

    use super::*;

    fn at(rule: &str, path: &str, line: u32) -> Finding {
        Finding::error(rule, "m").at(Location { path: path.into(), line: Some(line), column: None })
    }

    fn known(dir: &Path, findings: Vec<Finding>) -> Known {
        let text = "[[rule]]\nid = \"a\"\npattern = \"x\"\nmessage = \"m\"\nlanguages = [\"rust\"]\n";
        let gates = crate::pack_file::parse("g.toml", text.as_bytes()).unwrap();
        let verdict = GateVerdict::from_findings("g".into(), GateKind::Static, findings);
        collect_known(&Report::new(vec![verdict]), &WorkFiles::walk(dir), &gates)
    }

    #[test]
    fn survives_moved_lines_and_counts() {
        let ws = tempfile::tempdir().unwrap();
        std::fs::write(ws.path().join("a.rs"), "one\n  todo!()\n  todo!()\n").unwrap();
        let start = known(ws.path(), vec![at("r", "a.rs", 2), at("r", "a.rs", 3)]);
        assert_eq!(start.len(), 2);
        std::fs::write(ws.path().join("a.rs"), "new\none\ntodo!()\n todo!()\ntodo!()\n").unwrap();
        let mut now =
            vec![at("r", "a.rs", 3), at("r", "a.rs", 4), at("r", "a.rs", 5), at("other", "a.rs", 3)];
        excuse(&mut now, &WorkFiles::walk(ws.path()), None, &start);
        let excused: Vec<bool> = now.iter().map(|f| f.excuse.is_some()).collect();
        assert_eq!(excused, [true, true, false, false], "the third is new, the other rule too");
        let mut now = vec![at("r", "a.rs", 3)];
        excuse(&mut now, &WorkFiles::walk(ws.path()), Some(&start), &start);
        assert_eq!(now[0].excuse, Some(Excuse::Baseline));
    }

    #[test]
    fn a_baseline_only_shrinks() {
        let ws = tempfile::tempdir().unwrap();
        std::fs::write(ws.path().join("a.rs"), "a\nb\n").unwrap();
        let path = ws.path().join("baseline.json");
        let one = known(ws.path(), vec![at("r", "a.rs", 1)]);
        let two = known(ws.path(), vec![at("r", "a.rs", 1), at("r", "a.rs", 2)]);
        write_baseline(&path, &two, false).unwrap();
        assert_eq!(parse_baseline(&std::fs::read(&path).unwrap()).unwrap(), two);
        write_baseline(&path, &one, false).unwrap();
        let error = write_baseline(&path, &two, false).unwrap_err().to_string();
        assert!(error.contains("grow by 1 findings") && error.contains("r in a.rs: b"), "{error}");
        assert_eq!(parse_baseline(&std::fs::read(&path).unwrap()).unwrap(), one);
        write_baseline(&path, &two, true).unwrap();
        assert!(
            parse_baseline(b"{\n\"schema\": 9, \"findings\": []}")
                .unwrap_err()
                .to_string()
                .contains("schema 9")
        );
        assert!(parse_baseline(b"{\n x").unwrap_err().to_string().starts_with("gates/baseline.json:2:"));
    }
}
