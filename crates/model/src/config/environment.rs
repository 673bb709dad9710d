//! Settings from the environment: `TRIPHAMMER_ATTEMPTS` and the like.

use std::ffi::OsString;
use std::str::FromStr;

use crate::money::MicroUsd;
use crate::span::Span;
use crate::spec::{JudgeMode, MAX_ATTEMPTS};
use crate::suggest::{closest, quote};

use super::breaker::word;
use super::read::{ConfigError, ConfigProblem};
use super::{Config, value};

/// The variables that settle something.
const KNOWN: [&str; 8] = [
    "TRIPHAMMER_AGENT",
    "TRIPHAMMER_ATTEMPTS",
    "TRIPHAMMER_BUDGET",
    "TRIPHAMMER_MAX_COST",
    "TRIPHAMMER_MAX_TOKENS",
    "TRIPHAMMER_JUDGE",
    "TRIPHAMMER_ISOLATE",
    "TRIPHAMMER_FENCE",
];

/// The variables that a run sets for its agent, and those that others read.
const OTHERS: [&str; 6] = [
    "TRIPHAMMER_RUN",
    "TRIPHAMMER_ATTEMPT",
    "TRIPHAMMER_BRIEF",
    "TRIPHAMMER_WORKSPACE",
    "TRIPHAMMER_RECEIPT",
    "TRIPHAMMER_HOME",
];

impl Config {
    /// Reads the settings among the variables of an environment. An empty value counts as unset. A name that is
    /// close to a known one is a typing error; others are none of its business.
    ///
    /// # Errors
    /// [`ConfigError`] with every variable that cannot be read.
    pub fn from_env(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut problems = Vec::new();
        let mut variables: Vec<(String, OsString)> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, value)| name.starts_with("TRIPHAMMER_") && !value.is_empty())
            .collect();
        variables.sort();
        for (name, value) in variables {
            let result = if KNOWN.contains(&name.as_str()) {
                match value.to_str() {
                    Some(text) => set(&mut config, &name, text.trim()),
                    None => Err("the value is not UTF-8; set it as text".to_owned()),
                }
            } else if OTHERS.contains(&name.as_str()) || name.starts_with("TRIPHAMMER_LOG") {
                Ok(())
            } else {
                closest(&name, KNOWN).map_or(Ok(()), |meant| Err(format!("unknown; did you mean `{meant}`?")))
            };
            if let Err(what) = result {
                problems.push(ConfigProblem {
                    file: "environment".to_owned(),
                    line: None,
                    what: format!("`{name}`: {what}"),
                });
            }
        }
        ConfigError::unless_empty(problems, config)
    }
}

fn set(config: &mut Config, name: &str, text: &str) -> Result<(), String> {
    let run = &mut config.run;
    match name {
        "TRIPHAMMER_AGENT" => {
            let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
            run.agent = Some(value::chain(&words)?);
        }
        "TRIPHAMMER_ATTEMPTS" => {
            let attempts: u32 = number(text)?;
            if !(1..=MAX_ATTEMPTS).contains(&attempts) {
                return Err(format!(
                    "`{attempts}` does not fit; set a whole number from 1 to {MAX_ATTEMPTS}"
                ));
            }
            run.attempts = Some(attempts);
        }
        "TRIPHAMMER_BUDGET" => run.budget = Some(text.parse::<Span>().map_err(|e| e.to_string())?),
        "TRIPHAMMER_MAX_COST" => run.max_cost = Some(text.parse::<MicroUsd>().map_err(|e| e.to_string())?),
        "TRIPHAMMER_MAX_TOKENS" => run.max_tokens = Some(number(text)?),
        "TRIPHAMMER_JUDGE" => {
            let mode: JudgeMode = word(text, &["auto", "required", "off"])
                .map_err(|cure| format!("{} does not fit; {cure}", quote(text)))?;
            run.judge = Some(mode);
        }
        "TRIPHAMMER_FENCE" => {
            let choice = word(text, &["auto", "landlock", "bubblewrap", "off"])
                .map_err(|cure| format!("{} does not fit; {cure}", quote(text)))?;
            config.sandbox.fence = Some(choice);
        }
        _ => run.isolate = Some(value::isolation_word(text)?),
    }
    Ok(())
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{} does not fit; set a whole number", quote(text)))
}
