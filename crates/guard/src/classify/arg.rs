//! An argument, as far as it is known before the line runs.

/// An argument after expansion. No argument of a process can hold a NUL, so that a NUL stands for text that only the
/// running shell knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arg {
    /// The text.
    pub(crate) text: String,
    /// Its glob characters were not quoted.
    pub(crate) glob: bool,
    /// The variable that it is, when it is nothing but one of unknown value.
    pub(crate) variable: Option<String>,
}

/// Text that only the running shell knows.
pub(crate) const UNKNOWN: char = '\0';

impl Arg {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: false, variable: None }
    }

    pub(crate) fn unknown() -> Self {
        Self::new(UNKNOWN)
    }

    /// Everything about it is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.text.starts_with(text)
    }

    /// An option rather than an operand.
    pub(crate) fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-')
    }

    /// For a person: with `…` for what is not known.
    pub(crate) fn shown(&self) -> String {
        self.text.replace(UNKNOWN, "…")
    }
}

/// The arguments as one text, as `eval` and `ssh` join them.
pub(crate) fn joined(args: &[Arg]) -> String {
    args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ")
}
