//! The values that need more than their type to be right.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::event::Isolation;
use crate::ids::AgentName;
use crate::money::MicroUsd;
use crate::policy::PROOFS;
use crate::spec::{MAX_ATTEMPTS, glob_trouble, is_name};
use crate::suggest::quote;

/// A variable for a process: passed on, or set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum EnvEntry {
    /// `NAME`: with the value that Triphammer itself has, where it has one.
    Pass(String),
    /// `NAME=value`.
    Set {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
}

impl EnvEntry {
    /// The variable's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Pass(name) | Self::Set { name, .. } => name,
        }
    }
}

/// A text is no `NAME` or `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEnvEntry {
    /// Its name is none.
    #[error("{} is no variable; write `NAME` to pass one on, or `NAME=value`", quote(.0))]
    Shape(String),
    /// Its name is one that a run sets.
    #[error("`{0}` is set by each run itself; remove it")]
    Reserved(String),
}

impl TryFrom<String> for EnvEntry {
    type Error = BadEnvEntry;

    fn try_from(text: String) -> Result<Self, BadEnvEntry> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_str(), None),
        };
        if !is_variable(name) || text.contains('\0') {
            // What stands after the `=` may be a secret.
            return Err(BadEnvEntry::Shape(name.to_owned()));
        }
        if name.starts_with("TRIPHAMMER_") {
            return Err(BadEnvEntry::Reserved(name.to_owned()));
        }
        let name = name.to_owned();
        Ok(match value {
            Some(value) => Self::Set { name, value: value.to_owned() },
            None => Self::Pass(name),
        })
    }
}

impl From<EnvEntry> for String {
    fn from(entry: EnvEntry) -> Self {
        match entry {
            EnvEntry::Pass(name) => name,
            EnvEntry::Set { name, value } => format!("{name}={value}"),
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// "`a`, `b` or `c`".
pub(super) fn choice(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// A fallback chain from its words.
pub(super) fn chain(words: &[String]) -> Result<Vec<AgentName>, String> {
    if words.is_empty() {
        return Err("no agent; write an agent's name, or a list as a fallback chain".to_owned());
    }
    for (i, word) in words.iter().enumerate() {
        if !is_name(word) {
            return Err(format!("{} is no agent's name; name one of `[agents.NAME]`", quote(word)));
        }
        if words[..i].contains(word) {
            return Err(format!("agent {} twice in the chain; keep one of them", quote(word)));
        }
    }
    Ok(words.iter().map(|w| AgentName::new(w.as_str())).collect())
}

/// How the words of [`agents`] appear in the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum AgentsSchema {
    One(String),
    Many(Vec<String>),
}

/// A name or a list of names.
pub(super) fn agents<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<AgentName>>, D::Error> {
    struct Words;

    impl<'de> Visitor<'de> for Words {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an agent's name or a list of names")
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Vec<String>, E> {
            Ok(vec![word.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = list.next_element()? {
                words.push(word);
            }
            Ok(words)
        }
    }

    let words = d.deserialize_any(Words)?;
    chain(&words).map(Some).map_err(D::Error::custom)
}

/// Dollars as a number, whole or with a fraction.
pub(super) fn dollars<'de, D: Deserializer<'de>>(d: D) -> Result<Option<MicroUsd>, D::Error> {
    struct Number;

    impl Visitor<'_> for Number {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("dollars as a number, such as 5.00")
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }

        #[expect(clippy::cast_precision_loss, reason = "exact for every amount that is accepted below")]
        fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }
    }

    let number = d.deserialize_any(Number)?;
    MicroUsd::from_dollars(number)
        .map(Some)
        .ok_or_else(|| D::Error::custom("no amount of dollars; write a number such as 5.00"))
}

/// The schema of [`isolation`].
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum IsolationSchema {
    InPlace,
    Worktree,
    Copy,
}

/// The word of [`isolation`] and of `TRIPHAMMER_ISOLATE`. An empty workspace is a spec's choice, not a default.
pub(super) fn isolation_word(word: &str) -> Result<Isolation, String> {
    match word {
        "in-place" => Ok(Isolation::InPlace),
        "worktree" => Ok(Isolation::Worktree),
        "copy" => Ok(Isolation::Copy),
        _ => Err(format!("{} does not fit; write `in-place`, `worktree` or `copy`", quote(word))),
    }
}

pub(super) fn isolation<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Isolation>, D::Error> {
    isolation_word(&String::deserialize(d)?).map(Some).map_err(D::Error::custom)
}

fn within<'de, D: Deserializer<'de>, T>(d: D, range: &RangeInclusive<T>) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de> + PartialOrd + fmt::Display,
{
    let number = T::deserialize(d)?;
    if range.contains(&number) {
        return Ok(Some(number));
    }
    let (start, end) = (range.start(), range.end());
    Err(D::Error::custom(format!("`{number}` does not fit; write a whole number from {start} to {end}")))
}

pub(super) fn attempts<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    within(d, &(1..=MAX_ATTEMPTS))
}

pub(super) fn retries<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    within(d, &(0..=10))
}

pub(super) fn proofs<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    within(d, &PROOFS)
}

/// At least a kibibyte: head, marker and tail need room.
pub(super) fn log_cap<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(d, &(1024..=1 << 40))
}

pub(super) fn checked<'de, D: Deserializer<'de>>(
    d: D,
    trouble: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(d)?;
    match words.iter().find_map(|word| trouble(word)) {
        Some(what) => Err(D::Error::custom(what)),
        None => Ok(words),
    }
}

pub(super) fn globs<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<String>>, D::Error> {
    let trouble = |glob: &str| {
        glob_trouble(glob).map(|what| format!("{what}; write paths or globs below the workspace"))
    };
    checked(d, trouble).map(Some)
}

pub(super) fn shell_lines<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<String>>, D::Error> {
    let trouble = |line: &str| line.trim().is_empty().then(|| "an empty command; remove it".to_owned());
    checked(d, trouble).map(Some)
}

pub(super) fn variable_names<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    checked(d, |name| {
        // Somebody may have put the secret itself here: its text is not repeated.
        (!is_variable(name)).then(|| "an entry is no variable's name; write names, never values".to_owned())
    })
}
