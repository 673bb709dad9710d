//! What can be run: command gates and rule gates.

use std::fmt;

use triphammer_model::spec::{Check, Spec};
use triphammer_model::{GateKind, GateName, Span};

use crate::rules::RuleGate;

/// Where a gate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A pack, by name.
    Pack(String),
    /// A check of the spec: red before the work.
    Check,
    /// A keep-green of the spec: green before the work and after it.
    KeepGreen,
}

/// The report that a command gate promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReportKind {
    /// None: the exit code alone decides.
    #[default]
    None,
    /// Text of Rust's test harness on standard output.
    Libtest,
    /// `JUnit` XML in a file, relative to the gate's folder.
    Junit(String),
    /// Test Anything Protocol on standard output.
    Tap,
    /// Text of pytest on standard output.
    Pytest,
    /// `go test -json` on standard output.
    GoJson,
    /// SARIF 2.1.0 in a file, relative to the gate's folder.
    Sarif(String),
}

impl ReportKind {
    /// The file that the report is read from, relative to the gate's folder.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Junit(path) | Self::Sarif(path) => Some(path),
            _ => None,
        }
    }

    /// Whether it is read from standard output.
    pub(crate) const fn on_stdout(&self) -> bool {
        matches!(self, Self::Libtest | Self::Tap | Self::Pytest | Self::GoJson)
    }
}

impl fmt::Display for ReportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Libtest => f.write_str("libtest"),
            Self::Junit(path) => write!(f, "junit:{path}"),
            Self::Tap => f.write_str("tap"),
            Self::Pytest => f.write_str("pytest"),
            Self::GoJson => f.write_str("go-json"),
            Self::Sarif(path) => write!(f, "sarif:{path}"),
        }
    }
}

/// A gate that runs a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandGate {
    /// Its name.
    pub name: GateName,
    /// Its kind: its rank in the pipeline.
    pub kind: GateKind,
    /// Program and arguments; never empty.
    pub run: Vec<String>,
    /// Working directory, relative to the workspace; `.` is the workspace.
    pub dir: String,
    /// Paths or globs below `dir`; it is discovered when any exists.
    pub when: Vec<String>,
    /// The report that it promises.
    pub report: ReportKind,
    /// Fewest tests that must have been executed, where its report counts tests.
    pub min_tests: u64,
    /// Deadline.
    pub timeout: Span,
    /// Re-runs before a failure counts.
    pub confirm: u32,
    /// Whether the agent is asked to provide its tool.
    pub provision: bool,
    /// Where it comes from.
    pub origin: Origin,
}

/// Any gate.
#[derive(Clone, Debug)]
pub enum Gate {
    /// Runs a command.
    Command(CommandGate),
    /// Reads files.
    Rules(RuleGate),
}

impl Gate {
    /// Its name, unique in a run.
    pub fn name(&self) -> &GateName {
        match self {
            Self::Command(gate) => &gate.name,
            Self::Rules(gate) => &gate.name,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> GateKind {
        match self {
            Self::Command(gate) => gate.kind,
            Self::Rules(_) => GateKind::Static,
        }
    }

    /// Where it comes from.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Command(gate) => gate.origin.clone(),
            Self::Rules(gate) => Origin::Pack(gate.name.as_str().to_owned()),
        }
    }

    /// What it does, on one line for a person.
    pub fn command_line(&self) -> String {
        match self {
            Self::Command(gate) => {
                let line = match gate.run.as_slice() {
                    [sh, flag, script] if sh == "sh" && flag == "-c" => script.clone(),
                    argv => argv.iter().map(|a| quote(a)).collect::<Vec<_>>().join(" "),
                };
                if gate.dir == "." { line } else { format!("{line} (in {})", gate.dir) }
            }
            Self::Rules(gate) => {
                let count = gate.rules.len();
                format!("{count} {} read the workspace's files", if count == 1 { "rule" } else { "rules" })
            }
        }
    }

    /// Whether each of its findings points at one place of its own, so that those which were there before can
    /// be told from new ones.
    pub fn enumerates(&self) -> bool {
        match self {
            Self::Command(gate) => {
                gate.kind == GateKind::Static && matches!(gate.report, ReportKind::Sarif(_))
            }
            Self::Rules(_) => true,
        }
    }
}

fn quote(arg: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(safe) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

/// The spec's checks as gates `accept-<name>`, then its keep-greens as `keep-<name>`. The exit code decides.
pub fn spec_gates(spec: &Spec) -> Vec<Gate> {
    let gate = |prefix: &str, check: &Check, origin| {
        Gate::Command(CommandGate {
            name: GateName::new(format!("{prefix}-{}", check.name)),
            kind: GateKind::Test,
            run: vec!["sh".to_owned(), "-c".to_owned(), check.command.clone()],
            dir: ".".to_owned(),
            when: Vec::new(),
            report: ReportKind::None,
            min_tests: 0,
            // A check often builds first.
            timeout: Span::minutes(10),
            confirm: 0,
            provision: false,
            origin,
        })
    };
    let checks = spec.checks.iter().map(|c| gate("accept", c, Origin::Check));
    checks.chain(spec.keep_green.iter().map(|c| gate("keep", c, Origin::KeepGreen))).collect()
}
