//! Readers of reports: one file each. A reader counts and names; the gate's exit status has its own say.

mod go_json;
mod junit;
mod libtest;
mod lines;
mod pytest;
mod sarif;
mod tap;

use triphammer_model::text::stripped;
use triphammer_model::{Counts, Finding, Location};

use crate::gate::ReportKind;
use crate::locate::Places;
use crate::stable::{short, stable, tail};

pub(crate) use lines::Lines;

/// A report file larger than this is not read.
pub(crate) const REPORT_CAP: u64 = 64 << 20;

/// How many failing tests carry their raw output.
const DETAILED: usize = 100;

/// How many failing tests are listed one by one.
const LISTED: usize = 1_000;

/// Raw output kept for one failing test, in characters.
const DETAIL_CHARS: usize = 4_000;

/// What a report said.
#[derive(Debug, Default)]
pub(crate) struct TestReport {
    /// Its counts; `None` when it counts no tests (SARIF).
    pub(crate) counts: Option<Counts>,
    /// One finding a failing test or result.
    pub(crate) findings: Vec<Finding>,
    /// Why the counts cannot be all: a binary without a result, a plan that was not kept.
    pub(crate) incomplete: Option<String>,
}

/// What a reader made of a report.
#[derive(Debug)]
pub(crate) enum Reading {
    /// It is a report.
    Report(TestReport),
    /// It is none, and why.
    Unrecognised(String),
}

/// Reads a report from standard output.
pub(crate) fn read_stdout(
    kind: &ReportKind,
    lines: &mut dyn Iterator<Item = String>,
    places: &Places<'_>,
) -> Reading {
    match kind {
        ReportKind::Libtest => libtest::read(lines, places),
        ReportKind::Tap => tap::read(lines, places),
        ReportKind::Pytest => pytest::read(lines, places),
        ReportKind::GoJson => go_json::read(lines, places),
        ReportKind::None | ReportKind::Junit(_) | ReportKind::Sarif(_) => {
            Reading::Unrecognised("this report is not read from standard output".to_owned())
        }
    }
}

/// Reads a report from the bytes of its file.
pub(crate) fn read_file(kind: &ReportKind, bytes: &[u8], places: &Places<'_>) -> Reading {
    match kind {
        ReportKind::Junit(_) => junit::read(bytes, places),
        ReportKind::Sarif(_) => sarif::read(bytes, places),
        _ => Reading::Unrecognised("this report is not read from a file".to_owned()),
    }
}

/// Collects failing tests.
struct Failures<'a> {
    places: &'a Places<'a>,
    list: Vec<Finding>,
    more: u64,
}

impl<'a> Failures<'a> {
    fn new(places: &'a Places<'a>) -> Self {
        Self { places, list: Vec::new(), more: 0 }
    }

    /// A failing test: its name, the stable part of what it said, where, and its raw output.
    fn push(&mut self, name: &str, said: &str, location: Option<Location>, raw: &str) {
        if self.list.len() >= LISTED {
            self.more += 1;
            return;
        }
        let name = short(&stable(&stripped(name), self.places.workspace()), 300);
        let said = short(&stable(&stripped(said), self.places.workspace()), 400);
        let message = if said.is_empty() { format!("{name} failed") } else { format!("{name}: {said}") };
        let mut finding = Finding::error("test/failed", message);
        finding.location = location;
        if self.list.len() < DETAILED && !raw.trim().is_empty() {
            finding.detail = Some(tail(stripped(raw).trim_end(), DETAIL_CHARS));
        }
        self.list.push(finding);
    }

    /// All of them; those beyond the bound as one with their number.
    fn finish(mut self) -> Vec<Finding> {
        if self.more > 0 {
            let message = format!("{} more failing tests are not listed", self.more);
            self.list.push(Finding::error("test/failed", message));
        }
        self.list
    }
}

/// Keeps the end of a raw text that grows line by line.
#[derive(Debug, Default)]
struct Raw(String);

impl Raw {
    fn line(&mut self, line: &str) {
        // Twice the bound before it is cut, so that cutting is rare. What was cut is gone from the detail only;
        // the gate's log has it.
        if self.0.len() > 64 << 10 {
            let mut from = self.0.len() - (32 << 10);
            while !self.0.is_char_boundary(from) {
                from += 1;
            }
            self.0.drain(..from);
        }
        self.0.push_str(line);
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    /// A recorded output below `tests/samples`.
    pub(super) fn sample(name: &str) -> String {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name))
            .unwrap()
    }

    /// A reading as text for comparison.
    pub(super) fn shown(reading: &Reading) -> String {
        match reading {
            Reading::Unrecognised(why) => format!("unrecognised: {why}"),
            Reading::Report(report) => {
                let mut out = report.counts.map_or("no counts\n".to_owned(), |c| {
                    format!("passed {}, failed {}, skipped {}\n", c.passed, c.failed, c.skipped)
                });
                if let Some(why) = &report.incomplete {
                    writeln!(out, "incomplete: {why}").unwrap();
                }
                for f in &report.findings {
                    let place = f.location.as_ref().map_or(String::new(), |l| format!(" @ {l}"));
                    let detail = f.detail.as_ref().map_or(0, |d| d.lines().count());
                    let severity = format!("{:?}", f.severity).to_lowercase();
                    writeln!(out, "{severity} {}: {}{place} [{detail} lines]", f.rule, f.message).unwrap();
                }
                out
            }
        }
    }

    type ReadLines = dyn Fn(&mut dyn Iterator<Item = String>, &Places<'_>) -> Reading;

    /// Reads a text in a workspace that has a few files.
    pub(super) fn tried(read: &ReadLines, text: impl AsRef<str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        for file in [
            "src/lib.rs",
            "crates/b/src/lib.rs",
            "tests/test_a.py",
            "tests/test_b.py",
            "app/calc/sum_test.go",
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x\n").unwrap();
        }
        let text = text.as_ref().replace("WORKSPACE", dir.path().to_str().unwrap());
        let mut lines = Lines::new(text.as_bytes());
        shown(&read(&mut lines, &Places::new(dir.path(), ".")))
    }
}
