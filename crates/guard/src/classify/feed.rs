//! What a command finds on its standard input.

use super::arg::Arg;

/// What a command finds on its standard input.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    /// Nothing that the line says anything about.
    Terminal,
    /// This text; what is not known of it is a NUL.
    Text(String),
    /// Paths, one a line.
    Paths(Vec<Arg>),
    /// What came from the network.
    Download,
    /// What a program prints.
    Program,
    /// A file.
    File,
}
