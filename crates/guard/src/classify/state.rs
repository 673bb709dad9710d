//! What a line has set so far: its current directory and its variables.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::arg::Arg;

/// Variables that are followed; those beyond are unknown.
const VARIABLES: usize = 32;

/// Values that a variable may have at once (a loop over words).
const VALUES: usize = 16;

/// Bytes of a value that is followed; it bounds what doubling a variable over and over can cost.
const VALUE: usize = 1024;

/// What is set, shared between the states of subshells until one of them sets something.
type Variables = Rc<BTreeMap<String, Rc<[Arg]>>>;

/// What a line has set so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The current directory, where it is known.
    pub(crate) cwd: Option<String>,
    /// The one before the last `cd`.
    pub(crate) previous: Option<String>,
    variables: Variables,
    /// The commands run on another machine or in a container: none of our paths is there.
    pub(crate) elsewhere: bool,
}

impl State {
    pub(crate) fn new(cwd: &str) -> Self {
        Self { cwd: Some(cwd.to_owned()), previous: None, variables: Rc::default(), elsewhere: false }
    }

    /// On another machine: nothing is known of it.
    pub(crate) fn elsewhere() -> Self {
        Self { cwd: None, previous: None, variables: Rc::default(), elsewhere: true }
    }

    /// In a shell that this one starts: what was not exported is not there, so that nothing is known of variables.
    pub(crate) fn child(&self) -> Self {
        Self { variables: Rc::default(), ..self.clone() }
    }

    /// Sets what `$1`, `$@` and so on stand for; an empty list says that they are not known.
    pub(crate) fn set_arguments(&mut self, args: &[Arg]) {
        let old: Vec<String> = self.variables.keys().filter(|name| is_argument(name)).cloned().collect();
        for name in old {
            self.set(&name, Vec::new());
        }
        for (index, arg) in args.iter().enumerate().take(9) {
            self.set(&(index + 1).to_string(), vec![arg.clone()]);
        }
        self.set("@", args.to_vec());
        self.set("*", args.to_vec());
    }

    /// The values of a variable that the line has set; none when they are not known.
    pub(crate) fn values(&self, name: &str) -> Option<Rc<[Arg]>> {
        self.variables.get(name).cloned()
    }

    /// Sets a variable; an empty list says that its value is not known.
    pub(crate) fn set(&mut self, name: &str, values: Vec<Arg>) {
        if name.len() > 64 || (self.variables.len() >= VARIABLES && !self.variables.contains_key(name)) {
            return;
        }
        let followed = values.len() <= VALUES && values.iter().all(|value| value.text.len() <= VALUE);
        let values: Rc<[Arg]> = if followed { values.into() } else { Rc::from([]) };
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), values);
    }

    /// What is known after either of two ways through the line.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self == other {
            return;
        }
        if self.cwd != other.cwd {
            self.cwd = None;
        }
        if self.previous != other.previous {
            self.previous = None;
        }
        let names: Vec<String> = self.variables.keys().chain(other.variables.keys()).cloned().collect();
        for name in names {
            let (own, others) = (self.values(&name), other.values(&name));
            if own == others {
                continue;
            }
            // Where one way leaves the variable unknown, that is one value more.
            let list = |values: Option<Rc<[Arg]>>| match values {
                Some(values) if !values.is_empty() => values.to_vec(),
                _ => vec![Arg::unknown()],
            };
            let (mut both, others) = (list(own), list(others));
            both.extend(others.into_iter().filter(|value| !both.contains(value)).collect::<Vec<_>>());
            self.set(&name, both);
        }
    }
}

/// `1`, `@`, `*`: what a script or a function was called with.
fn is_argument(name: &str) -> bool {
    matches!(name, "@" | "*") || name.bytes().all(|b| b.is_ascii_digit())
}
