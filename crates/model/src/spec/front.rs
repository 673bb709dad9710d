//! The frontmatter: flat keys, one a line.

use crate::ids::AgentName;
use crate::suggest::{closest, quote};

use super::fault::{Faults, SpecFault};
use super::parse::Line;
use super::text::is_name;
use super::value::{self, Value};
use super::{Allowance, JudgeMode, MAX_ATTEMPTS, Spec, Status, WorkspaceChoice};

/// All keys, in the order in which they are printed.
pub(super) const KEYS: &[&str] = &[
    "status",
    "attempts",
    "budget",
    "max_cost",
    "max_tokens",
    "gates",
    "protect",
    "allow",
    "judge",
    "agent",
    "workspace",
];

/// Where the frontmatter lies in a spec's lines.
pub(super) enum Extent {
    /// No `---` where it must begin; the index is where text begins.
    Missing(usize),
    /// The index of the `---` that nothing closes.
    Unterminated(usize),
    /// The indices of both `---`.
    Between(usize, usize),
}

/// Finds the frontmatter.
pub(super) fn extent<'a>(lines: impl IntoIterator<Item = &'a str>) -> Extent {
    let mut open = None;
    let mut last = 0;
    for (i, line) in lines.into_iter().enumerate() {
        let line = line.trim_end();
        match open {
            None if line.is_empty() => {}
            None if line == "---" => open = Some(i),
            None => return Extent::Missing(i),
            Some(open) if line == "---" => return Extent::Between(open, i),
            Some(_) => {}
        }
        last = i;
    }
    open.map_or(Extent::Missing(last), Extent::Unterminated)
}

/// Splits a line into key and the rest after the colon; `None` when it is neither that nor blank nor a comment.
pub(super) fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let word = key.trim_end();
    let is_key =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (is_key && !word.starts_with('-')).then_some((word, rest))
}

/// Reads the lines between the two `---` into `spec`.
pub(super) fn read(lines: &[Line<'_>], spec: &mut Spec, faults: &mut Faults<'_>) {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for line in lines {
        let text = line.text.trim_end();
        if text.trim_start().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, rest)) = key_of(text) else {
            faults.push(line.number, SpecFault::NotKeyValue(text.to_owned()));
            continue;
        };
        if !KEYS.contains(&key) {
            let meant = closest(key, KEYS.iter().copied()).map(str::to_owned);
            faults.push(line.number, SpecFault::UnknownKey { key: key.to_owned(), meant });
            continue;
        }
        if let Some((_, first)) = seen.iter().find(|(k, _)| *k == key) {
            faults.push(line.number, SpecFault::RepeatedKey { key: key.to_owned(), first: *first });
            continue;
        }
        seen.push((key, line.number));
        let value = match value::read(rest) {
            Ok(Value::Nothing) => {
                let fault = SpecFault::NoValue { key: key.to_owned(), cure: cure(key).to_owned() };
                faults.push(line.number, fault);
                continue;
            }
            Ok(value) => value,
            Err((what, cure)) => {
                faults.push(line.number, bad(key, what, cure));
                continue;
            }
        };
        if let Err(fault) = set(spec, key, value) {
            faults.push(line.number, fault);
        }
    }
}

/// What to write after a key.
fn cure(key: &str) -> &'static str {
    match key {
        "status" => "write `draft` or `locked`",
        "attempts" => "write a whole number from 1 to 50",
        "budget" => "write a duration such as 45m, 4h or 1h30m",
        "max_cost" => "write dollars such as 5.00",
        "max_tokens" => "write a whole number such as 2000000",
        "gates" => "write pack names such as `[rust, honesty]`",
        "protect" => "write globs such as `[\"tests/**\"]`",
        "allow" => "write `[tests-removed]`",
        "judge" => "write `auto`, `required` or `off`",
        "agent" => "write an agent's name, or a list as a fallback chain",
        _ => "write a path from the home, or `new`",
    }
}

fn bad(key: &str, what: impl Into<String>, cure: &str) -> SpecFault {
    SpecFault::BadValue { key: key.to_owned(), what: what.into(), cure: cure.to_owned() }
}

fn set(spec: &mut Spec, key: &str, value: Value) -> Result<(), SpecFault> {
    let refuse = |word: &str| bad(key, format!("{} does not fit", quote(word)), cure(key));
    match key {
        "status" => {
            let word = one(key, value)?;
            spec.status = match word.as_str() {
                "draft" => Status::Draft,
                "locked" => Status::Locked,
                _ => return Err(refuse(&word)),
            };
        }
        "attempts" => {
            let word = one(key, value)?;
            let number = whole(&word).and_then(|n| u32::try_from(n).ok());
            let number = number.filter(|n| (1..=MAX_ATTEMPTS).contains(n)).ok_or_else(|| refuse(&word))?;
            spec.attempts = Some(number);
        }
        "budget" => {
            let word = one(key, value)?;
            spec.budget = Some(word.parse().map_err(|_| refuse(&word))?);
        }
        "max_cost" => {
            let word = one(key, value)?;
            let parsed = word.parse();
            spec.max_cost = Some(parsed.map_err(|e: crate::money::BadMoney| bad(key, e.what(), cure(key)))?);
        }
        "max_tokens" => {
            let word = one(key, value)?;
            spec.max_tokens = Some(whole(&word).ok_or_else(|| refuse(&word))?);
        }
        "gates" => spec.gates = Some(names(key, value)?),
        "protect" => {
            let globs = many(key, value)?;
            for glob in &globs {
                if let Some(what) = glob_trouble(glob) {
                    return Err(bad(key, what, cure(key)));
                }
            }
            spec.protect = globs;
        }
        "allow" => {
            let words = many(key, value)?;
            let read =
                |w: &String| if w == "tests-removed" { Ok(Allowance::TestsRemoved) } else { Err(refuse(w)) };
            spec.allow = words.iter().map(read).collect::<Result<_, _>>()?;
        }
        "judge" => {
            let word = one(key, value)?;
            spec.judge = Some(match word.as_str() {
                "auto" => JudgeMode::Auto,
                "required" => JudgeMode::Required,
                "off" => JudgeMode::Off,
                _ => return Err(refuse(&word)),
            });
        }
        "agent" => {
            let words = names(key, value)?;
            if words.is_empty() {
                return Err(bad(key, "the list is empty", cure(key)));
            }
            spec.agents = words.into_iter().map(AgentName::new).collect();
        }
        _ => {
            let word = one(key, value)?;
            if word.is_empty() || word.contains('\0') {
                return Err(bad(key, "no path can be empty or hold a NUL", cure(key)));
            }
            spec.workspace =
                Some(if word == "new" { WorkspaceChoice::New } else { WorkspaceChoice::Path(word) });
        }
    }
    Ok(())
}

fn one(key: &str, value: Value) -> Result<String, SpecFault> {
    match value {
        Value::One(word) => Ok(word),
        Value::Many(_) | Value::Nothing => Err(bad(key, "a list does not fit", cure(key))),
    }
}

/// A list without repeats; a single word is a list of one.
fn many(key: &str, value: Value) -> Result<Vec<String>, SpecFault> {
    let words = match value {
        Value::One(word) => vec![word],
        Value::Many(words) => words,
        Value::Nothing => Vec::new(),
    };
    for (i, word) in words.iter().enumerate() {
        if words[..i].contains(word) {
            return Err(bad(key, format!("{} twice", quote(word)), "keep one of them"));
        }
    }
    Ok(words)
}

fn names(key: &str, value: Value) -> Result<Vec<String>, SpecFault> {
    let words = many(key, value)?;
    match words.iter().find(|w| !is_name(w)) {
        Some(word) => Err(bad(
            key,
            format!("{} is no name", quote(word)),
            "use letters, digits, `-`, `_` and `.`, with no dot in front",
        )),
        None => Ok(words),
    }
}

/// A whole number in digits, with `_` between them where it helps the eye.
fn whole(word: &str) -> Option<u64> {
    let between = word.starts_with(|c: char| c.is_ascii_digit()) && !word.ends_with('_');
    if between && word.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        word.replace('_', "").parse().ok()
    } else {
        None
    }
}

/// Why a text is no glob for files below the workspace; `None` when it is one.
pub(crate) fn glob_trouble(glob: &str) -> Option<String> {
    if glob.is_empty() {
        return Some("an empty glob".to_owned());
    }
    if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
        return Some(format!("{} leads out of the workspace", quote(glob)));
    }
    globset::Glob::new(glob).err().map(|e| format!("{} is no glob ({})", quote(glob), e.kind()))
}
