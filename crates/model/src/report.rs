//! What the gates said about one attempt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::finding::Finding;
use crate::ids::GateName;

/// A gate's kind; its order is the pipeline's rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GateKind {
    /// Reads files: lints, rules, integrity.
    Static,
    /// Compiles or type-checks.
    Build,
    /// Runs tests and spec checks.
    Test,
    /// Measures.
    Eval,
    /// A model's opinion.
    Judge,
}

/// How many tests a gate's report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped or ignored.
    pub skipped: u64,
}

/// What a gate decided. A failure without a finding cannot be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It passed; findings are warnings, notes and excused errors.
    Pass(Vec<Finding>),
    /// It failed: the first finding and the rest.
    Fail(Findings),
    /// It could not do its job.
    Error(Findings),
    /// It did not run because of the named gate.
    Skip(GateName),
}

/// At least one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// One finding.
    pub fn one(finding: Finding) -> Self {
        Self(vec![finding])
    }

    /// All of them, or `None` when there is none.
    pub fn new(findings: Vec<Finding>) -> Option<Self> {
        if findings.is_empty() { None } else { Some(Self(findings)) }
    }

    /// All of them; never empty.
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }
}

/// The word for a judgement in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    /// Passed.
    Pass,
    /// Failed.
    Fail,
    /// Could not do its job.
    Error,
    /// Did not run.
    Skip,
}

/// One gate's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct GateVerdict {
    /// The gate.
    pub gate: GateName,
    /// Its kind.
    pub kind: GateKind,
    /// What it decided.
    pub judgement: Judgement,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// Test counts, where its report has them.
    pub counts: Option<Counts>,
    /// Its re-runs differed.
    pub flaky: bool,
}

impl GateVerdict {
    /// A verdict from findings: fail iff one of them fails its gate.
    pub fn from_findings(gate: GateName, kind: GateKind, findings: Vec<Finding>) -> Self {
        let judgement = if findings.iter().any(Finding::fails) {
            Findings::new(findings).map_or(Judgement::Pass(Vec::new()), Judgement::Fail)
        } else {
            Judgement::Pass(findings)
        };
        Self { gate, kind, judgement, duration_ms: 0, counts: None, flaky: false }
    }

    /// The word in JSON.
    pub const fn word(&self) -> VerdictWord {
        match self.judgement {
            Judgement::Pass(_) => VerdictWord::Pass,
            Judgement::Fail(_) => VerdictWord::Fail,
            Judgement::Error(_) => VerdictWord::Error,
            Judgement::Skip(_) => VerdictWord::Skip,
        }
    }

    /// All its findings.
    pub fn findings(&self) -> &[Finding] {
        match &self.judgement {
            Judgement::Pass(list) => list,
            Judgement::Fail(list) | Judgement::Error(list) => list.as_slice(),
            Judgement::Skip(_) => &[],
        }
    }

    /// The findings that fail it; empty unless it failed.
    pub fn failing(&self) -> impl Iterator<Item = &Finding> {
        let failed = matches!(self.judgement, Judgement::Fail(_));
        self.findings().iter().filter(move |f| failed && f.fails())
    }
}

/// The shape of a verdict in `report.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Wire {
    gate: GateName,
    kind: GateKind,
    verdict: VerdictWord,
    duration_ms: u64,
    findings: Vec<Finding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked_by: Option<GateName>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    flaky: bool,
}

impl From<GateVerdict> for Wire {
    fn from(verdict: GateVerdict) -> Self {
        let word = verdict.word();
        let (findings, blocked_by) = match verdict.judgement {
            Judgement::Pass(list) => (list, None),
            Judgement::Fail(list) | Judgement::Error(list) => (list.0, None),
            Judgement::Skip(by) => (Vec::new(), Some(by)),
        };
        Self {
            gate: verdict.gate,
            kind: verdict.kind,
            verdict: word,
            duration_ms: verdict.duration_ms,
            findings,
            counts: verdict.counts,
            blocked_by,
            flaky: verdict.flaky,
        }
    }
}

/// A stored verdict contradicts itself.
#[derive(Debug, thiserror::Error)]
pub enum BadVerdict {
    /// A fail or error without a finding.
    #[error("gate `{0}`: a failing verdict without a finding")]
    NoFinding(GateName),
    /// A skip that names no blocker.
    #[error("gate `{0}`: a skip that names no blocker")]
    NoBlocker(GateName),
}

impl TryFrom<Wire> for GateVerdict {
    type Error = BadVerdict;

    fn try_from(wire: Wire) -> Result<Self, BadVerdict> {
        let some = |list: Vec<Finding>| Findings::new(list).ok_or(BadVerdict::NoFinding(wire.gate.clone()));
        let judgement = match wire.verdict {
            VerdictWord::Pass => Judgement::Pass(wire.findings),
            VerdictWord::Fail => Judgement::Fail(some(wire.findings)?),
            VerdictWord::Error => Judgement::Error(some(wire.findings)?),
            VerdictWord::Skip => {
                Judgement::Skip(wire.blocked_by.ok_or(BadVerdict::NoBlocker(wire.gate.clone()))?)
            }
        };
        Ok(Self {
            gate: wire.gate,
            kind: wire.kind,
            judgement,
            duration_ms: wire.duration_ms,
            counts: wire.counts,
            flaky: wire.flaky,
        })
    }
}

/// `report.json`: all verdicts of an attempt, in pack order, with the report's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Schema version of this file.
    pub schema: u32,
    /// Whether every gate passed, and there was at least one.
    pub ok: bool,
    /// SHA-256 over the sorted identity lines, byte for byte.
    pub identity: Digest,
    /// The same with volatile parts of messages masked.
    pub identity_normalised: Digest,
    /// All verdicts, in pack order.
    pub verdicts: Vec<GateVerdict>,
}

impl Report {
    /// Folds verdicts into a report. An empty list is never ok: no result is not a good result.
    pub fn new(verdicts: Vec<GateVerdict>) -> Self {
        let ok = !verdicts.is_empty() && verdicts.iter().all(|v| v.word() == VerdictWord::Pass);
        let digest = |mask: bool| {
            let mut text = identity_lines(&verdicts, mask).join("\n");
            text.push('\n');
            Digest::of(text)
        };
        Self { schema: 1, ok, identity: digest(false), identity_normalised: digest(true), verdicts }
    }

    /// The facts that the machine decides from.
    pub fn facts(&self) -> ReportFacts {
        let count = |word| self.verdicts.iter().map(|v| u32::from(v.word() == word)).sum();
        ReportFacts {
            ok: self.ok,
            identity: self.identity.clone(),
            identity_normalised: self.identity_normalised.clone(),
            passed: count(VerdictWord::Pass),
            failed: count(VerdictWord::Fail),
            errors: count(VerdictWord::Error),
            skipped: count(VerdictWord::Skip),
            findings: self.verdicts.iter().map(|v| v.failing().count() as u64).sum(),
            flaky: self.verdicts.iter().any(|v| v.flaky && v.word() == VerdictWord::Pass),
            rank: self
                .verdicts
                .iter()
                .filter(|v| matches!(v.word(), VerdictWord::Fail | VerdictWord::Error))
                .map(|v| v.kind)
                .min(),
        }
    }
}

/// The sorted lines that make a report's identity: `rule:message` of failing findings, `error:gate`, `skip:gate`.
/// With `mask`, numbers, addresses, times and temporary paths in messages are masked by [`normalise`].
pub fn identity_lines(verdicts: &[GateVerdict], mask: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for verdict in verdicts {
        match &verdict.judgement {
            Judgement::Pass(_) => {}
            Judgement::Fail(_) => lines.extend(verdict.failing().map(|f| {
                if mask {
                    format!("{}:{}", f.rule, normalise(&f.message))
                } else {
                    format!("{}:{}", f.rule, f.message)
                }
            })),
            Judgement::Error(_) => lines.push(format!("error:{}", verdict.gate)),
            Judgement::Skip(_) => lines.push(format!("skip:{}", verdict.gate)),
        }
    }
    lines.sort();
    lines
}

/// Masks what differs between two runs of the same failure: every run of hexadecimal digits that holds a decimal
/// digit becomes `#`, and paths below `/tmp` and `/var/tmp` lose all but their first part.
pub fn normalise(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(c) = rest.chars().next() {
        if let Some(tail) = ["/tmp/", "/var/tmp/"].iter().find_map(|p| rest.strip_prefix(p)) {
            let end = tail.find(|c: char| c.is_whitespace() || "'\"`:,;()".contains(c)).unwrap_or(tail.len());
            out.push_str("/tmp/#");
            rest = &tail[end..];
            continue;
        }
        if c.is_ascii_alphanumeric() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let word = &rest[..end];
            mask_word(word, &mut out);
            rest = &rest[end..];
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

fn mask_word(word: &str, out: &mut String) {
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let has_digit = hex.bytes().any(|b| b.is_ascii_digit());
    if has_digit && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        out.push('#');
        return;
    }
    // `12ms`, `x86`: digits are masked, letters stay.
    let mut in_digits = false;
    for c in word.chars() {
        if c.is_ascii_digit() {
            if !in_digits {
                out.push('#');
            }
            in_digits = true;
        } else {
            in_digits = false;
            out.push(c);
        }
    }
}

/// What the machine needs to know of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportFacts {
    /// Whether every gate passed.
    pub ok: bool,
    /// Byte identity.
    pub identity: Digest,
    /// Masked identity.
    pub identity_normalised: Digest,
    /// Gates that passed.
    pub passed: u32,
    /// Gates that failed.
    pub failed: u32,
    /// Gates that could not do their job.
    pub errors: u32,
    /// Gates that did not run.
    pub skipped: u32,
    /// Failing findings.
    pub findings: u64,
    /// A gate passed only on a re-run.
    pub flaky: bool,
    /// The lowest kind that did not pass, `None` when all passed: how far the attempt got.
    pub rank: Option<GateKind>,
}

impl ReportFacts {
    /// Not ok, and nothing but errors (and what they blocked) to say.
    pub const fn errors_only(&self) -> bool {
        !self.ok && self.failed == 0 && self.errors > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(gate: &str, judgement: Judgement) -> GateVerdict {
        GateVerdict {
            gate: gate.into(),
            kind: GateKind::Test,
            judgement,
            duration_ms: 1,
            counts: None,
            flaky: false,
        }
    }

    #[test]
    fn nothing_is_not_fine() {
        assert!(!Report::new(vec![]).ok);
        assert!(Report::new(vec![verdict("a", Judgement::Pass(vec![]))]).ok);
        assert!(!Report::new(vec![verdict("a", Judgement::Skip("b".into()))]).ok);
    }

    #[test]
    fn identity_ignores_detail_location_and_order() {
        let fail = |m: &str, d: &str| Judgement::Fail(Findings::one(Finding::error("r", m).with_detail(d)));
        let one = Report::new(vec![verdict("a", fail("x", "took 3 ms")), verdict("b", fail("y", ""))]);
        let two = Report::new(vec![verdict("b", fail("y", "")), verdict("a", fail("x", "took 4 ms"))]);
        assert_eq!(one.identity, two.identity);
        let other = Report::new(vec![verdict("a", fail("x 2", ""))]);
        let same_but_number = Report::new(vec![verdict("a", fail("x 3", ""))]);
        assert_ne!(other.identity, same_but_number.identity);
        assert_eq!(other.identity_normalised, same_but_number.identity_normalised);
        assert_eq!(
            identity_lines(
                &[
                    verdict("z", Judgement::Skip("a".into())),
                    verdict("a", fail("m", "")),
                    verdict("e", Judgement::Error(Findings::one(Finding::error("env/x", "gone")))),
                ],
                false
            ),
            ["error:e", "r:m", "skip:z"]
        );
    }

    #[test]
    fn normalises() {
        for (raw, masked) in [
            ("took 12ms at 0xdeadbeef1", "took #ms at #"),
            ("thread 'main' (81234) panicked", "thread 'main' (#) panicked"),
            ("in /tmp/abc.XyZ/file.rs: no", "in /tmp/#: no"),
            ("2026-11-30T17:05:00Z", "#-#-#T#:#:#Z"),
            ("commit 3fa9c", "commit #"),
            ("face the facade", "face the facade"),
            ("héllo 1", "héllo #"),
        ] {
            assert_eq!(normalise(raw), masked, "{raw}");
        }
    }

    #[test]
    fn wire_refuses_a_failure_without_a_finding() {
        let json = r#"{"gate":"t","kind":"test","verdict":"fail","duration_ms":1,"findings":[]}"#;
        assert!(serde_json::from_str::<GateVerdict>(json).is_err());
        let json = r#"{"gate":"t","kind":"test","verdict":"skip","duration_ms":1,"findings":[]}"#;
        assert!(serde_json::from_str::<GateVerdict>(json).is_err());
    }
}
