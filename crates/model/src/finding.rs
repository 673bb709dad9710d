//! A finding: what a gate has to say about the work (a subset of SARIF's result).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WorkPath;

/// How much a finding weighs. Only an error fails a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Fails its gate.
    Error,
    /// Shown, fails nothing.
    Warning,
    /// Shown, fails nothing.
    Note,
}

/// Where a finding points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// The file, relative to the workspace.
    pub path: WorkPath,
    /// Line from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// Why an error-severity finding does not fail its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excuse {
    /// It was there on the untouched workspace.
    Grandfathered,
    /// It is in the committed ratchet baseline.
    Baseline,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule, stable across runs, such as `test/failed` or `clippy::unwrap_used`.
    pub rule: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What is wrong. Stable: no durations, thread ids, addresses or temporary paths, since it is part of the
    /// report's identity.
    pub message: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Raw output; outside the identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why it does not fail its gate although it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<Excuse>,
}

impl Finding {
    /// An error-severity finding with a rule and a stable message.
    pub fn error(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            severity: Severity::Error,
            message: message.into(),
            location: None,
            fix: None,
            detail: None,
            excuse: None,
        }
    }

    /// The same at another severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// The same with a hint at what to do.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The same with raw output.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Whether it fails its gate.
    pub fn fails(&self) -> bool {
        self.severity == Severity::Error && self.excuse.is_none()
    }
}
