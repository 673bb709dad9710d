//! What the guard thinks of a line.

use std::fmt;

/// Findings of one kind that a judgement lists; those beyond are counted.
pub const LISTED: usize = 50;

/// What cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Irreversible {
    /// History or branches of a remote repository are overwritten or deleted.
    ForcePush,
    /// Work in the local repository is thrown away: changes, branches, what the reflog would still find.
    LostWork,
    /// A directory tree is deleted that is not the work's own.
    DeletionOutside,
    /// What lies outside of the workspace is overwritten.
    OverwriteOutside,
    /// Something is published, or taken back from those who use it.
    Publish,
    /// What runs for others is deployed, changed or taken down.
    Deploy,
    /// Stored data is dropped.
    DataLoss,
    /// The machine or its services are taken down.
    Machine,
}

impl Irreversible {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ForcePush,
        Self::LostWork,
        Self::DeletionOutside,
        Self::OverwriteOutside,
        Self::Publish,
        Self::Deploy,
        Self::DataLoss,
        Self::Machine,
    ];

    /// What it means, as one sentence for the one who is refused.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::ForcePush => {
                "It overwrites or deletes what others may already have of a remote repository."
            }
            Self::LostWork => "It throws away work that no commit, branch or reflog would still hold.",
            Self::DeletionOutside => {
                "It deletes a directory tree that is not part of the work in this workspace."
            }
            Self::OverwriteOutside => "It overwrites what lies outside of the workspace.",
            Self::Publish => {
                "It publishes, or takes back what was published; users notice before it can be undone."
            }
            Self::Deploy => "It changes or takes down what runs for others.",
            Self::DataLoss => "It drops stored data.",
            Self::Machine => "It takes the machine or its services down.",
        }
    }

    /// Its name in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::ForcePush => "forced push",
            Self::LostWork => "lost work",
            Self::DeletionOutside => "deletion outside of the workspace",
            Self::OverwriteOutside => "overwriting outside of the workspace",
            Self::Publish => "publishing",
            Self::Deploy => "deployment",
            Self::DataLoss => "loss of data",
            Self::Machine => "taking the machine down",
        }
    }
}

impl fmt::Display for Irreversible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A command that cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it does.
    pub class: Irreversible,
    /// The simple command as it was written, cut at [`TEXT`](crate::parse::TEXT) bytes.
    pub command: String,
    /// What of the command says so.
    pub why: String,
    /// False where it hangs on something that only the shell knows, such as a variable.
    pub sure: bool,
}

/// Why a part of a line could not be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum What {
    /// Not read as shell syntax.
    Syntax,
    /// Nested too deeply, or too long.
    Bounds,
    /// A script from the network goes straight into a shell.
    Download,
    /// A shell runs what another program prints.
    Piped,
    /// The command, or a script given as text, is put together when the line runs.
    NotLiteral,
    /// A shell runs a file.
    ScriptFile,
    /// A program in another language is given as text.
    OtherLanguage,
    /// A file of statements is given to a database.
    StatementFile,
}

impl What {
    /// What it means, as one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Syntax => "It is not read as shell syntax.",
            Self::Bounds => "It is nested too deeply or too long to be read.",
            Self::Download => "It runs a script straight from the network.",
            Self::Piped => "A shell runs what another program prints.",
            Self::NotLiteral => "What it runs is put together only when it runs.",
            Self::ScriptFile => "It runs a script whose text is not in the line.",
            Self::OtherLanguage => "It runs a program in another language.",
            Self::StatementFile => "It runs a file of statements whose text is not in the line.",
        }
    }
}

/// A part of a line that could not be judged: neither fine nor refused, the caller decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// Why.
    pub what: What,
    /// The simple command as it was written, or what is wrong with the line.
    pub command: String,
}

/// Why a line is not to be run; as text, the command with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The simple command as it was written, or what is wrong with the line.
    pub command: String,
    /// What of it says so.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.command, self.why)
    }
}

/// What the guard thinks of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Commands that cannot be undone, at most [`LISTED`] of them.
    pub findings: Vec<Found>,
    /// What could not be judged, at most [`LISTED`] of it and a bound that was reached.
    pub opaque: Vec<Opaque>,
    /// How many findings and opaque parts are not listed.
    pub left_out: usize,
}

impl Judgement {
    /// Why the line is not to be run: a command that cannot be undone, or a bound that was reached, behind which there
    /// may be one. `None` lets it through: of what else is opaque, such as scripts on disk, people run much all day.
    pub fn refusal(&self) -> Option<Refusal> {
        let found = self.findings.first();
        let found = found.map(|found| Refusal { command: found.command.clone(), why: found.why.clone() });
        found.or_else(|| {
            let bound = self.opaque.iter().find(|opaque| opaque.what == What::Bounds)?;
            Some(Refusal { command: bound.command.clone(), why: bound.what.sentence().to_owned() })
        })
    }

    /// Whether the line is not to be run; see [`Judgement::refusal`].
    pub fn refused(&self) -> bool {
        self.refusal().is_some()
    }

    pub(crate) fn find(&mut self, found: Found) {
        if self.findings.contains(&found) {
            return;
        }
        if self.findings.len() < LISTED { self.findings.push(found) } else { self.left_out += 1 }
    }

    pub(crate) fn doubt(&mut self, opaque: Opaque) {
        if self.opaque.contains(&opaque) {
            return;
        }
        // A bound refuses the line, so that the first one is listed however much stands before it.
        let refuses = opaque.what == What::Bounds && self.opaque.iter().all(|o| o.what != What::Bounds);
        if self.opaque.len() < LISTED || refuses { self.opaque.push(opaque) } else { self.left_out += 1 }
    }
}
