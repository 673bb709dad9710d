//! Names and numbers that tell things apart.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the name as it is.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }
    };
}

name! {
    /// A run's id: UTC start time, the spec's name and four random digits, such as
    /// `20261130-170601-roman-3fa9`. Ids sort by start time; a unique prefix names the run.
    RunId
}
name! {
    /// An agent's name in the configuration, or `command` for `--agent-cmd`.
    AgentName
}
name! {
    /// A gate's name, unique in a run.
    GateName
}
name! {
    /// A git tree's object id in `runs/.store.git`, in hexadecimal.
    TreeId
}

/// An attempt's number, from 1. Printed unpadded; [`Attempt::dir_name`] is the padded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Attempt(u32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Self = Self(1);

    /// Attempt `number`; numbers start at 1.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number, from 1.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The attempt after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The folder's name below `attempts/`: at least three digits, `001`.
    pub fn dir_name(self) -> String {
        format!("{:03}", self.0)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
