//! Reading `triphammer.toml`, with every error at its line.

use std::fmt;
use std::ops::Range;

use serde::Deserialize as _;
use serde_ignored::Path;
use toml::de::{DeTable, DeValue};

use crate::suggest::{closest, hint, quote};

use super::{Config, json_schema};

/// Sections of the format that come with later features.
const LATER: [&str; 9] =
    ["prices", "judge", "drift", "trajectory", "sandbox", "notify", "retention", "ship", "daemon"];

/// What is wrong with a configuration. Prints one line a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Vec<ConfigProblem>);

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file, as the caller named it, or `environment`.
    pub file: String,
    /// Line from 1, where it has one.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub what: String,
}

impl ConfigError {
    /// The problems; never empty.
    pub fn as_slice(&self) -> &[ConfigProblem] {
        &self.0
    }

    pub(super) fn unless_empty<T>(mut problems: Vec<ConfigProblem>, value: T) -> Result<T, Self> {
        if problems.is_empty() {
            return Ok(value);
        }
        problems.sort_by_key(|p| p.line);
        Err(Self(problems))
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a `triphammer.toml`. `file` is its name in errors.
    ///
    /// # Errors
    /// [`ConfigError`]: every unknown key with its path, and the first value that does not fit.
    pub fn parse(file: &str, text: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        let bytes = text.as_ref();
        let problem =
            |line: usize, what: String| ConfigProblem { file: file.to_owned(), line: Some(line), what };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => {
                let line = line_at(bytes, error.valid_up_to());
                let what = "the text is not UTF-8 here; save the file as UTF-8".to_owned();
                return Err(ConfigError(vec![problem(line, what)]));
            }
        };
        let line = |span: Option<Range<usize>>| line_at(text.as_bytes(), span.map_or(0, |s| s.start));
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let told = |e: &toml::de::Error| {
                // Only a key is repeated: a broken value may be a secret.
                let is_key = e.message() == "duplicate key";
                let at = e.span().filter(|_| is_key).and_then(|s| text.get(s));
                let at = at.map_or_else(String::new, |at| format!(" at {}", quote(at)));
                problem(
                    line(e.span()),
                    format!("no valid TOML: {}{at}; mend the line", in_words(e.message())),
                )
            };
            let problems = errors.iter().map(told).collect();
            return ConfigError::unless_empty(problems, Self::default());
        }
        let root = table.get_ref();
        let mut problems: Vec<ConfigProblem> = Vec::new();
        let mut unknown: Vec<Vec<String>> = Vec::new();
        let mut told: Vec<Vec<String>> = Vec::new();
        let mut rest = table.clone();
        // A value that does not fit ends the reading; it is taken out and the rest read, so that one look at the
        // file mends it all. Each round takes a key out, so there is an end.
        let config = loop {
            let mut take = |path: Path<'_>| unknown.push(segments(&path));
            let deserializer = toml::Deserializer::from(rest.clone());
            let error = match Self::deserialize(serde_ignored::Deserializer::new(deserializer, &mut take)) {
                Ok(config) => break config,
                Err(error) => error,
            };
            let span = error.span();
            let path = span.as_ref().map(|s| path_at(rest.get_ref(), s)).unwrap_or_default();
            let holds_variables = path.last().is_some_and(|key| key == "env" || key == "names");
            let what = if holds_variables && error.message().starts_with("invalid type: string") {
                // The text may be a secret.
                "one text does not fit; write a list such as [\"NAME\"]".to_owned()
            } else {
                in_words(error.message())
            };
            let what = if path.is_empty() { what } else { format!("`{}`: {what}", shown(root, &path)) };
            // What a section now lacks only because it was taken out is no news.
            if path.is_empty() || !told.iter().any(|earlier: &Vec<String>| earlier.starts_with(&path)) {
                problems.push(problem(line(span), what));
            }
            told.push(path.clone());
            if !remove(rest.get_mut(), &path) {
                break Self::default();
            }
        };
        unknown.sort();
        unknown.dedup();
        problems.extend(unknown.iter().map(|path| {
            let is_section = value_at(root, path).is_some_and(|v| matches!(v, DeValue::Table(_)));
            problem(line(key_span(root, path)), unknown_key(path, is_section))
        }));
        ConfigError::unless_empty(problems, config)
    }
}

fn line_at(bytes: &[u8], offset: usize) -> usize {
    bytes[..offset.min(bytes.len())].split(|b| *b == b'\n').count()
}

/// A message of the TOML reader on one line, without the names of Rust's types.
fn in_words(message: &str) -> String {
    if message == "wanted string or table" {
        return "not a word in quotes; write one".to_owned();
    }
    let line = message.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    ["u32", "u64", "i64"].iter().fold(line, |line, number| {
        let typed = format!("expected {number}");
        if line.ends_with(&typed) { line.replace(&typed, "expected a whole number") } else { line }
    })
}

fn segments(path: &Path<'_>) -> Vec<String> {
    let (parent, own) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(index.to_string())),
        Path::Map { parent, key } => (parent, Some(key.clone())),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    let mut all = segments(parent);
    all.extend(own);
    all
}

/// `[agents.x] argv`, or `[agents.x]` for a section.
fn shown(root: &DeTable<'_>, path: &[String]) -> String {
    match value_at(root, path) {
        Some(DeValue::Table(_)) => format!("[{}]", path.join(".")),
        _ => in_section(path),
    }
}

fn in_section(path: &[String]) -> String {
    match path.split_last() {
        Some((key, [])) => key.clone(),
        Some((key, section)) => format!("[{}] {key}", section.join(".")),
        None => String::new(),
    }
}

fn unknown_key(path: &[String], is_section: bool) -> String {
    let Some((key, section)) = path.split_last() else { return "unknown key".to_owned() };
    if section.is_empty() && LATER.contains(&key.as_str()) {
        return format!("section `[{key}]` is not known to this version of triphammer; remove it");
    }
    if section.is_empty() && !is_section {
        let run = known_keys(&["run".to_owned()]);
        let cure = match closest(key, run.iter().map(String::as_str)) {
            Some(meant) => format!("write `{meant}` below a line `[run]`"),
            None => "a key stands below its section, such as `[run]`".to_owned(),
        };
        return format!("unknown key {} outside of any section; {cure}", quote(key));
    }
    let known = known_keys(section);
    let meant = closest(key, known.iter().map(String::as_str));
    let known = if meant.is_some() { String::new() } else { format!("; known are {}", known.join(", ")) };
    let what = if is_section { format!("[{}]", path.join(".")) } else { in_section(path) };
    format!("unknown key {}{}{known}", quote(&what), hint(meant))
}

/// The keys that may stand in a section, read from the schema so that the two cannot disagree.
fn known_keys(section: &[String]) -> Vec<String> {
    let schema = json_schema();
    let resolve = |node: serde_json::Value| match node.get("$ref").and_then(|r| r.as_str()) {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).cloned().unwrap_or_default(),
        None => node,
    };
    let mut node = schema.clone();
    for part in section {
        let next = node.pointer(&format!("/properties/{part}")).or_else(|| node.get("additionalProperties"));
        node = resolve(next.cloned().unwrap_or_default());
    }
    node.get("properties")
        .and_then(|p| p.as_object())
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default()
}

/// Where the key at `path` stands.
fn key_span(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first.as_str())?;
    match value.get_ref() {
        DeValue::Table(inner) if !rest.is_empty() => key_span(inner, rest).or(Some(key.span())),
        _ => Some(key.span()),
    }
}

/// What stands at `path`.
fn value_at<'t, 'i>(table: &'t DeTable<'i>, path: &[String]) -> Option<&'t DeValue<'i>> {
    let (first, rest) = path.split_first()?;
    let (_, value) = table.iter().find(|(key, _)| key.get_ref() == first.as_str())?;
    match value.get_ref() {
        DeValue::Table(inner) if !rest.is_empty() => value_at(inner, rest),
        value => rest.is_empty().then_some(value),
    }
}

/// Takes out what stands at `path`; whether something did.
fn remove(table: &mut DeTable<'_>, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    if rest.is_empty() {
        let key = table.keys().find(|key| key.get_ref() == first.as_str()).cloned();
        return key.is_some_and(|key| table.remove(&key).is_some());
    }
    for (key, value) in table.iter_mut() {
        if key.get_ref() == first.as_str()
            && let DeValue::Table(inner) = value.get_mut()
        {
            return remove(inner, rest);
        }
    }
    false
}

/// The path of the innermost key whose key or value holds the place.
fn path_at(table: &DeTable<'_>, place: &Range<usize>) -> Vec<String> {
    for (key, value) in table {
        let inner = match value.get_ref() {
            DeValue::Table(inner) => path_at(inner, place),
            _ => Vec::new(),
        };
        let holds = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
        if !inner.is_empty() || holds(key.span()) || holds(value.span()) {
            let mut path = vec![key.get_ref().to_string()];
            path.extend(inner);
            return path;
        }
    }
    Vec::new()
}
