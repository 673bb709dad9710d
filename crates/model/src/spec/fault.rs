//! What can be wrong with a spec, each with its place and its cure.

use std::fmt;

use crate::suggest::{hint, quote};

/// Everything that is wrong with a spec, in the order of its lines. Prints one line an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecErrors(Vec<SpecError>);

impl SpecErrors {
    /// The errors; never empty.
    pub fn as_slice(&self) -> &[SpecError] {
        &self.0
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}

/// One error with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {fault}")]
pub struct SpecError {
    /// The spec's file, as the caller named it.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub fault: SpecFault,
}

/// What is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecFault {
    /// Bytes that are no UTF-8.
    #[error("the text is not UTF-8 here; save the file as UTF-8")]
    NotUtf8,
    /// A NUL byte.
    #[error("a NUL byte; remove it")]
    Nul,
    /// The file does not begin with `---`.
    #[error(
        "no frontmatter; begin the file with a line `---`, keys such as `status: draft`, and a line `---`"
    )]
    NoFrontmatter,
    /// The second `---` is missing.
    #[error("the frontmatter that begins here has no end; put a line `---` after its last key")]
    UnterminatedFrontmatter,
    /// A line of the frontmatter that is not `key: value`.
    #[error("{} is not `key: value`; write one key a line, and a list as `key: [a, b]`", quote(.0))]
    NotKeyValue(String),
    /// A key that specs do not have.
    #[error("unknown key {}{}", quote(.key), known(.meant.as_deref(), super::front::KEYS))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The key that was probably meant.
        meant: Option<String>,
    },
    /// A key that was there before.
    #[error("key `{key}` again, first on line {first}; keep one of them")]
    RepeatedKey {
        /// The key.
        key: String,
        /// The line of the first one.
        first: usize,
    },
    /// A key with nothing after its colon.
    #[error("`{key}` has no value; {cure}, or remove the line")]
    NoValue {
        /// The key.
        key: String,
        /// What to write.
        cure: String,
    },
    /// A value that its key does not take.
    #[error("`{key}`: {what}; {cure}")]
    BadValue {
        /// The key.
        key: String,
        /// What is wrong with it.
        what: String,
        /// What to write instead.
        cure: String,
    },
    /// A heading that specs do not have.
    #[error("unknown section {}{}", quote(.name), known_section(.meant.as_deref()))]
    UnknownSection {
        /// The heading as written.
        name: String,
        /// The section that was probably meant.
        meant: Option<String>,
    },
    /// A section that was there before.
    #[error("section `{name}` again, first on line {first}; join them")]
    RepeatedSection {
        /// The section.
        name: String,
        /// The line of the first one.
        first: usize,
    },
    /// There is no `# Goal`.
    #[error("no goal; add `# Goal` and, below it, one imperative sentence that says what to build")]
    NoGoal,
    /// `# Goal` with nothing below.
    #[error("the goal is empty; write one imperative sentence below `# Goal` that says what to build")]
    EmptyGoal,
    /// `<!--` without `-->`.
    #[error("the comment that begins here has no end; add `-->`")]
    UnterminatedComment,
    /// More text on the line on which a comment ends.
    #[error("{} after a comment's end; put it on a line of its own", quote(.0))]
    TextAfterComment(String),
    /// Text before the first section.
    #[error("{} stands in no section; move it below a heading such as `# Goal`", quote(.0))]
    TextOutside(String),
    /// Text where a bullet must be.
    #[error("{} in section `{section}` belongs to no bullet; {}", quote(.found), bullet_cure(section))]
    BulletExpected {
        /// The section.
        section: &'static str,
        /// The line.
        found: String,
    },
    /// A bullet without text.
    #[error("an empty bullet in section `{section}`; write its text after `- `, or remove it")]
    EmptyBullet {
        /// The section.
        section: &'static str,
    },
    /// A check that is no `name: command`.
    #[error("{} in section `{section}` has no name; write `- name: command`", quote(.found))]
    UnnamedCheck {
        /// The section.
        section: &'static str,
        /// The bullet's text.
        found: String,
    },
    /// A check's name that cannot name a gate.
    #[error("{} cannot name a check; use letters, digits, `-` and `_`, as in `- name: command`", quote(.0))]
    BadCheckName(String),
    /// A check with nothing after its colon.
    #[error("check `{name}` has no command; write `- {name}: command`")]
    EmptyCommand {
        /// The check.
        name: String,
    },
    /// Two checks, or a check and a keep-green, of one name.
    #[error("check `{name}` again, first on line {first}; give each check and keep-green a name of its own")]
    RepeatedCheck {
        /// The name.
        name: String,
        /// The line of the first one.
        first: usize,
    },
}

fn known(meant: Option<&str>, all: &[&str]) -> String {
    if meant.is_some() { hint(meant) } else { format!("; known are {}", all.join(", ")) }
}

fn known_section(meant: Option<&str>) -> String {
    let text = if meant.is_some() { "" } else { "; to keep the line as text of the goal, write `\\#`" };
    known(meant, super::body::TITLES) + text
}

fn bullet_cure(section: &str) -> &'static str {
    if [super::body::CHECKS, super::body::KEEP_GREEN].contains(&section) {
        "begin it with `- name: `, or indent it to continue the command above"
    } else {
        "begin it with `- `, or indent it to continue the bullet above"
    }
}

/// The errors found so far.
#[derive(Debug)]
pub(super) struct Faults<'a> {
    file: &'a str,
    found: Vec<SpecError>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self { file, found: Vec::new() }
    }

    pub(super) fn push(&mut self, line: usize, fault: SpecFault) {
        self.found.push(SpecError { file: self.file.to_owned(), line, fault });
    }

    /// `value` if nothing is wrong.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, SpecErrors> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|e| e.line);
        Err(SpecErrors(self.found))
    }
}
