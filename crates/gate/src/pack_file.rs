//! One pack's text: the format of a pack file and what may be wrong with it.

use std::collections::BTreeSet;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::bytes::RegexBuilder;
use serde::Deserialize;
use triphammer_model::{GateKind, GateName, Severity, Span};

use crate::gate::{CommandGate, Gate, Origin, ReportKind};
use crate::mask::Language;
use crate::rules::{Rule, RuleGate, Scope};

/// A pack's text is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFileError {
    /// The pack's file name.
    pub file: String,
    /// Line from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub what: String,
}

impl fmt::Display for PackFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gates/{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for PackFileError {}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    gate: Vec<GateWire>,
    #[serde(default)]
    rule: Vec<RuleWire>,
}

#[derive(Deserialize)]
struct GateWire {
    name: String,
    kind: GateKind,
    run: Vec<String>,
    dir: Option<String>,
    #[serde(default)]
    when: Vec<String>,
    report: Option<String>,
    min_tests: Option<u64>,
    timeout: Option<Span>,
    confirm: Option<u32>,
    #[serde(default)]
    provision: bool,
}

#[derive(Deserialize)]
struct RuleWire {
    id: String,
    pattern: String,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    languages: Vec<String>,
    severity: Option<Severity>,
    message: String,
    fix: Option<String>,
    scope: Option<Scope>,
}

const GATE_KEYS: [&str; 10] =
    ["name", "kind", "run", "dir", "when", "report", "min_tests", "timeout", "confirm", "provision"];
const RULE_KEYS: [&str; 9] =
    ["id", "pattern", "files", "exclude", "languages", "severity", "message", "fix", "scope"];

/// Names of gates that are not a pack's to give.
const RESERVED: [&str; 3] = ["integrity", "forge", "judge"];

/// Whether `name` can name a pack, gate or rule: it also names a file.
pub(crate) fn is_name(name: &str) -> bool {
    let ok = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
    !name.is_empty() && name.len() <= 80 && name.bytes().all(ok) && name.as_bytes()[0].is_ascii_alphanumeric()
}

/// Where in the text something is: which table and which key.
struct Place<'a> {
    file: &'a str,
    text: &'a str,
    table: &'static str,
    index: usize,
}

impl Place<'_> {
    /// The line of `key` in this table, or of the table's header.
    fn line(&self, key: &str) -> Option<usize> {
        let header = format!("[[{}]]", self.table);
        let mut seen = 0;
        let mut begin = None;
        for (i, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with("[[") {
                if seen > self.index {
                    break;
                }
                seen += usize::from(line.replace(' ', "").starts_with(&header));
                if seen == self.index + 1 && begin.is_none() {
                    begin = Some(i + 1);
                }
                continue;
            }
            let names = line.split('=').next().unwrap_or("").trim().trim_matches(['"', '\'']);
            if seen == self.index + 1 && names == key {
                return Some(i + 1);
            }
        }
        begin
    }

    fn wrong(&self, key: &str, what: impl Into<String>) -> PackFileError {
        PackFileError { file: self.file.to_owned(), line: self.line(key), what: what.into() }
    }
}

/// Parses one pack. Its rules, if any, become one static gate named after the pack, placed first.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Gate>, PackFileError> {
    let wrong = |line, what: String| PackFileError { file: file.to_owned(), line, what };
    let line_at = |text: &str, at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].split(|b| *b == b'\n').count();
        wrong(Some(line), "the text is not UTF-8".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let in_toml = |e: &toml::de::Error| {
        let line = e.span().map(|span| line_at(text, span.start));
        wrong(line, e.message().lines().collect::<Vec<_>>().join("; "))
    };
    let mut unknown: Vec<String> = Vec::new();
    let de = toml::Deserializer::parse(text).map_err(|e| in_toml(&e))?;
    let wire: Result<Wire, _> = serde_ignored::deserialize(de, |path| unknown.push(path.to_string()));
    // Before what is missing: a slip in a key is why.
    if let Some(path) = unknown.first() {
        return Err(unknown_key(file, text, path));
    }
    let wire = wire.map_err(|e| in_toml(&e))?;
    let pack = file.strip_suffix(".toml").unwrap_or(file);
    let mut gates = Vec::new();
    if !wire.rule.is_empty() {
        gates.push(Gate::Rules(rule_gate(pack, file, text, wire.rule)?));
    }
    for (index, gate) in wire.gate.into_iter().enumerate() {
        let place = Place { file, text, table: "gate", index };
        gates.push(Gate::Command(command_gate(pack, &place, gate)?));
    }
    if gates.is_empty() {
        return Err(wrong(None, "the pack is empty: add a [[gate]] or a [[rule]]".to_owned()));
    }
    Ok(gates)
}

fn unknown_key(file: &str, text: &str, path: &str) -> PackFileError {
    let parts: Vec<&str> = path.split('.').collect();
    let key = *parts.last().unwrap_or(&path);
    let (line, known): (Option<usize>, &[&str]) =
        if let [table @ ("gate" | "rule"), index, rest @ ..] = parts.as_slice() {
            let is_gate = *table == "gate";
            let index = index.parse().unwrap_or(0);
            let place = Place { file, text, table: if is_gate { "gate" } else { "rule" }, index };
            (place.line(rest.first().unwrap_or(&key)), if is_gate { &GATE_KEYS } else { &RULE_KEYS })
        } else {
            let begins = |l: &str| {
                let l = l.trim().trim_start_matches('[').trim_start();
                l.strip_prefix(key).is_some_and(|r| r.trim_start().starts_with(['=', ']', '.']))
            };
            (text.lines().position(begins).map(|i| i + 1), &["gate", "rule"])
        };
    let hint = match closest(key, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are: {}", known.join(", ")),
    };
    PackFileError { file: file.to_owned(), line, what: format!("unknown key `{path}`; {hint}") }
}

/// The known word nearest to `word`, when it is near enough to be a slip.
fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().map(|k| (distance(word, k), *k)).filter(|(d, k)| *d <= 1 + k.len() / 4).min().map(|(_, k)| k)
}

/// Edit distance with adjacent swaps counted once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let swap = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + swap);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

fn command_gate(pack: &str, place: &Place<'_>, wire: GateWire) -> Result<CommandGate, PackFileError> {
    let name = wire.name;
    if !is_name(&name) {
        return Err(
            place.wrong("name", format!("gate name `{name}`: use lower-case letters, digits, `-` and `_`"))
        );
    }
    if RESERVED.contains(&name.as_str()) || name.starts_with("accept-") || name.starts_with("keep-") {
        return Err(place
            .wrong("name", format!("gate name `{name}` is reserved for triphammer's own; choose another")));
    }
    if wire.kind == GateKind::Judge {
        return Err(place.wrong("kind", "a pack's gate is static, build, test or eval"));
    }
    if wire.run.first().is_none_or(String::is_empty) {
        return Err(place.wrong("run", format!("gate `{name}`: `run` needs a program")));
    }
    if wire.run.iter().any(|a| a.contains('\0')) {
        return Err(place.wrong("run", format!("gate `{name}`: an argument holds a NUL byte")));
    }
    let dir = wire.dir.unwrap_or_else(|| ".".to_owned());
    check_below(&dir).map_err(|what| place.wrong("dir", format!("gate `{name}`: dir `{dir}` {what}")))?;
    for entry in &wire.when {
        check_below(entry)
            .map_err(|what| place.wrong("when", format!("gate `{name}`: when `{entry}` {what}")))?;
        glob(entry).map_err(|e| place.wrong("when", format!("gate `{name}`: when `{entry}`: {e}")))?;
    }
    let report = match wire.report {
        Some(text) => report_kind(&text)
            .map_err(|what| place.wrong("report", format!("gate `{name}`: report `{text}` {what}")))?,
        None => ReportKind::None,
    };
    let timeout = wire.timeout.unwrap_or(Span::minutes(5));
    if timeout.as_millis() == 0 {
        return Err(place.wrong("timeout", format!("gate `{name}`: a timeout of zero lets nothing run")));
    }
    let confirm = wire.confirm.unwrap_or(0);
    if confirm > 10 {
        return Err(place.wrong("confirm", format!("gate `{name}`: confirm is at most 10")));
    }
    Ok(CommandGate {
        name: GateName::new(name),
        kind: wire.kind,
        run: wire.run,
        dir,
        when: wire.when,
        report,
        min_tests: wire.min_tests.unwrap_or(1),
        timeout,
        confirm,
        provision: wire.provision,
        origin: Origin::Pack(pack.to_owned()),
    })
}

fn report_kind(text: &str) -> Result<ReportKind, String> {
    let path = |path: &str| {
        check_below(path)?;
        if path.is_empty() { Err("needs a path after the colon".to_owned()) } else { Ok(path.to_owned()) }
    };
    match text.split_once(':') {
        None => match text {
            "none" => Ok(ReportKind::None),
            "libtest" => Ok(ReportKind::Libtest),
            "tap" => Ok(ReportKind::Tap),
            "pytest" => Ok(ReportKind::Pytest),
            "go-json" => Ok(ReportKind::GoJson),
            "junit" | "sarif" => Err(format!("needs a path: write `{text}:PATH`")),
            _ => Err("is none of: none, libtest, junit:PATH, tap, pytest, go-json, sarif:PATH".to_owned()),
        },
        Some(("junit", rest)) => Ok(ReportKind::Junit(path(rest)?)),
        Some(("sarif", rest)) => Ok(ReportKind::Sarif(path(rest)?)),
        Some(_) => Err("is none of: none, libtest, junit:PATH, tap, pytest, go-json, sarif:PATH".to_owned()),
    }
}

fn check_below(path: &str) -> Result<(), String> {
    if path.starts_with('/') || path.split('/').any(|p| p == "..") || path.contains('\0') {
        return Err("leaves the workspace; paths are relative and hold no `..`".to_owned());
    }
    Ok(())
}

/// One glob; `*` stays within a part of a path.
pub(crate) fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern)).literal_separator(true).build()
}

fn rule_gate(pack: &str, file: &str, text: &str, wires: Vec<RuleWire>) -> Result<RuleGate, PackFileError> {
    if !is_name(pack) || RESERVED.contains(&pack) {
        return Err(PackFileError {
            file: file.to_owned(),
            line: None,
            what: format!(
                "the gate of these rules would be named `{pack}`; rename the file to letters, digits, `-`"
            ),
        });
    }
    let mut ids = BTreeSet::new();
    let mut rules = Vec::new();
    for (index, wire) in wires.into_iter().enumerate() {
        let place = Place { file, text, table: "rule", index };
        if !is_name(&wire.id) {
            return Err(place
                .wrong("id", format!("rule id `{}`: use lower-case letters, digits, `-` and `_`", wire.id)));
        }
        if !ids.insert(wire.id.clone()) {
            return Err(place.wrong("id", format!("rule id `{}` is already in this pack", wire.id)));
        }
        rules.push(rule(pack, &place, wire)?);
    }
    Ok(RuleGate { name: GateName::new(pack), rules })
}

fn rule(pack: &str, place: &Place<'_>, wire: RuleWire) -> Result<Rule, PackFileError> {
    let id = &wire.id;
    let mut languages = BTreeSet::new();
    for word in &wire.languages {
        languages.insert(Language::from_word(word).ok_or_else(|| {
            let known = Language::ALL.map(Language::word).join(", ");
            place.wrong("languages", format!("rule `{id}`: unknown language `{word}`; known are: {known}"))
        })?);
    }
    if wire.files.is_empty() && languages.is_empty() {
        return Err(place.wrong("id", format!("rule `{id}` reads no file: give `files` or `languages`")));
    }
    let scope = wire.scope.unwrap_or_default();
    if scope != Scope::All && languages.is_empty() {
        return Err(place.wrong(
            "scope",
            format!("rule `{id}`: to tell code from comments give `languages`, or set scope = \"all\""),
        ));
    }
    // A generous bound: matching is linear in any case.
    let pattern =
        RegexBuilder::new(&wire.pattern).multi_line(true).size_limit(4 << 20).build().map_err(|e| {
            let last = e.to_string().lines().last().unwrap_or("").trim().to_owned();
            place.wrong("pattern", format!("rule `{id}`: the pattern is no regular expression: {last}"))
        })?;
    if pattern.is_match(b"") {
        return Err(
            place.wrong("pattern", format!("rule `{id}`: the pattern matches nothing at all, everywhere"))
        );
    }
    let set = |key: &str, globs: &[String]| -> Result<GlobSet, PackFileError> {
        let mut set = GlobSetBuilder::new();
        for text in globs {
            let glob =
                glob(text).map_err(|e| place.wrong(key, format!("rule `{id}`: glob `{text}`: {e}")))?;
            set.add(glob);
        }
        set.build().map_err(|e| place.wrong(key, format!("rule `{id}`: {e}")))
    };
    Ok(Rule {
        rule: format!("{pack}/{id}"),
        files: if wire.files.is_empty() { None } else { Some(set("files", &wire.files)?) },
        exclude: set("exclude", &wire.exclude)?,
        languages,
        pattern,
        severity: wire.severity.unwrap_or(Severity::Error),
        message: wire.message,
        fix: wire.fix,
        scope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse("p.toml", text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn reads_every_key() {
        let text = r#"
            [[gate]]
            name = "unit"
            kind = "test"
            run = ["cargo", "test"]
            dir = "crates/a"
            when = ["Cargo.toml", "src/**/*.rs"]
            report = "junit:out/report.xml"
            min_tests = 3
            timeout = "1m30s"
            confirm = 2
            provision = true
        "#;
        let gates = parse("p.toml", text.as_bytes()).unwrap();
        let [Gate::Command(gate)] = gates.as_slice() else { panic!("{gates:?}") };
        assert_eq!(gate.report, ReportKind::Junit("out/report.xml".to_owned()));
        assert_eq!((gate.min_tests, gate.timeout, gate.confirm), (3, Span::secs(90), 2));
        assert_eq!(gate.origin, Origin::Pack("p".to_owned()));
    }

    #[test]
    fn errors_name_line_key_and_fix() {
        let ok = "[[gate]]\nname = \"a\"\nkind = \"test\"\nrun = [\"true\"]\n";
        for (text, want) in [
            (format!("{ok}rnu = 1\n"), "gates/p.toml:5: unknown key `gate.0.rnu`; did you mean `run`?"),
            (
                format!("{ok}\n[[gate]]\nname = \"b\"\nkind = \"test\"\nrun = [\"x\"]\ncolour = 1\n"),
                "gates/p.toml:10: unknown key `gate.1.colour`; known are: name, kind, run, dir, when, report, \
                 min_tests, timeout, confirm, provision",
            ),
            (ok.replace("run =", "rnu ="), "gates/p.toml:4: unknown key `gate.0.rnu`; did you mean `run`?"),
            (format!("{ok}[gates]\nx = 1\n"), "gates/p.toml:5: unknown key `gates`; did you mean `gate`?"),
            (format!("{ok}timeout = \"soon\"\n"), "gates/p.toml:5: `soon` is not a duration"),
            (format!("{ok}report = \"junit\"\n"), "gates/p.toml:5: gate `a`: report `junit` needs a path"),
            (
                format!("{ok}report = \"junit:../x\"\n"),
                "gates/p.toml:5: gate `a`: report `junit:../x` leaves",
            ),
            (format!("{ok}dir = \"/\"\n"), "gates/p.toml:5: gate `a`: dir `/` leaves the workspace"),
            (format!("{ok}confirm = 11\n"), "gates/p.toml:5: gate `a`: confirm is at most 10"),
            (ok.replace("\"a\"", "\"A b\""), "gates/p.toml:2: gate name `A b`"),
            (ok.replace("\"a\"", "\"accept-x\""), "gates/p.toml:2: gate name `accept-x` is reserved"),
            (ok.replace("\"test\"", "\"judge\""), "gates/p.toml:3: a pack's gate is static"),
            (ok.replace("[\"true\"]", "[]"), "gates/p.toml:4: gate `a`: `run` needs a program"),
            (ok.replace("kind = \"test\"\n", ""), "gates/p.toml:1: missing field `kind`"),
            (ok.replace("\"test\"", "\"tset\""), "gates/p.toml:3: unknown variant `tset`"),
            (String::new(), "gates/p.toml: the pack is empty"),
            ("[[gate\n".to_owned(), "gates/p.toml:1: "),
        ] {
            let got = wrong(&text);
            assert!(got.starts_with(want), "{got}\nwanted {want}");
        }
    }

    #[test]
    fn errors_in_rules() {
        let ok = "[[rule]]\nid = \"a\"\npattern = \"x\"\nmessage = \"m\"\nlanguages = [\"rust\"]\n";
        assert!(parse("p.toml", ok.as_bytes()).is_ok());
        for (text, want) in [
            (ok.replace("\"x\"", "\"(\""), "gates/p.toml:3: rule `a`: the pattern is no regular expression"),
            (ok.replace("\"x\"", "\"x*\""), "gates/p.toml:3: rule `a`: the pattern matches nothing"),
            (ok.replace("rust", "cobol"), "gates/p.toml:5: rule `a`: unknown language `cobol`"),
            (ok.replace("languages", "files"), "gates/p.toml:1: rule `a`: to tell code from comments"),
            (format!("{ok}{ok}"), "gates/p.toml:7: rule id `a` is already in this pack"),
            (
                format!("{ok}serverity = \"error\"\n"),
                "gates/p.toml:6: unknown key `rule.0.serverity`; did you",
            ),
        ] {
            let got = wrong(&text);
            assert!(got.starts_with(want), "{got}\nwanted {want}");
        }
    }
}
