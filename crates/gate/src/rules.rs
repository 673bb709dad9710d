//! Rule gates: regular expressions over files chosen by globs and language.

use std::collections::BTreeSet;

use globset::GlobSet;
use regex::bytes::Regex;
use serde::Deserialize;
use triphammer_model::text::stripped;
use triphammer_model::{Finding, GateKind, GateName, GateVerdict, Location, Severity, WorkPath};

use crate::files::WorkFiles;
use crate::mask::{Class, Language, classify, keep};
use crate::stable::short;

/// Larger files are not read by rules; how many is said in a finding.
const FILE_CAP: u64 = 8 << 20;

/// Most hits that a gate lists one by one.
const HITS: usize = 10_000;

/// What of a file a rule reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Code; the insides of strings and comments are blanked.
    #[default]
    Code,
    /// Code with its strings; comments are blanked and a hit must begin in code.
    CodeWithStrings,
    /// Comments only.
    Comments,
    /// Everything.
    All,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name in findings: `<pack>/<id>`.
    pub rule: String,
    /// Files it reads; `None` is every file of its languages.
    pub files: Option<GlobSet>,
    /// Files it does not read.
    pub exclude: GlobSet,
    /// Languages it reads; empty is any file.
    pub languages: BTreeSet<Language>,
    /// What it looks for.
    pub pattern: Regex,
    /// How much a hit weighs.
    pub severity: Severity,
    /// What is wrong with a hit.
    pub message: String,
    /// What to do.
    pub fix: Option<String>,
    /// What it reads.
    pub scope: Scope,
}

impl Rule {
    fn reads(&self, path: &WorkPath, language: Option<Language>) -> bool {
        let by_language = self.languages.is_empty() || language.is_some_and(|l| self.languages.contains(&l));
        by_language
            && self.files.as_ref().is_none_or(|set| set.is_match(path.as_path()))
            && !self.exclude.is_match(path.as_path())
    }
}

/// All rules of one pack: one static gate.
#[derive(Clone, Debug)]
pub struct RuleGate {
    /// Named after the pack.
    pub name: GateName,
    /// Its rules, in file order.
    pub rules: Vec<Rule>,
}

/// One file, and its views as far as rules asked for them.
struct Source {
    raw: Vec<u8>,
    classes: Option<Vec<Class>>,
}

impl Source {
    fn hits(&self, rule: &Rule) -> Vec<usize> {
        let find = |text: &[u8]| rule.pattern.find_iter(text).map(|m| m.start()).collect::<Vec<_>>();
        let Some(classes) = &self.classes else { return find(&self.raw) };
        match rule.scope {
            Scope::All => find(&self.raw),
            Scope::Code => find(&keep(&self.raw, classes, &[Class::Code])),
            Scope::Comments => find(&keep(&self.raw, classes, &[Class::Comment])),
            Scope::CodeWithStrings => {
                let mut hits = find(&keep(&self.raw, classes, &[Class::Code, Class::Text]));
                hits.retain(|at| classes.get(*at) == Some(&Class::Code));
                hits
            }
        }
    }
}

/// Where each line of a file begins.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(source: &[u8]) -> Self {
        let breaks = source.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// Line and column from 1 of a byte offset, and the line's text.
    fn place(&self, source: &[u8], at: usize) -> (u32, u32, String) {
        let line = self.0.partition_point(|start| *start <= at);
        let start = self.0[line - 1];
        let end = self.0.get(line).map_or(source.len(), |next| next - 1);
        // No more than what is shown is worth decoding.
        let text = String::from_utf8_lossy(&source[start..end.min(start + 1_000)]);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (number(line), number(at - start + 1), short(&stripped(&text), 200))
    }
}

impl RuleGate {
    /// Reads the files and says what it found, sorted by file, line and rule.
    pub fn check(&self, files: &WorkFiles) -> GateVerdict {
        let mut findings = Vec::new();
        let mut more = 0_u64;
        let mut unread: Vec<&WorkPath> = Vec::new();
        for path in files.paths() {
            let language = Language::of(path);
            let rules: Vec<&Rule> = self.rules.iter().filter(|r| r.reads(path, language)).collect();
            if rules.is_empty() {
                continue;
            }
            let Ok(raw) = files.read(path, FILE_CAP) else {
                unread.push(path);
                continue;
            };
            let classes = language.map(|l| classify(l, &raw));
            let source = Source { raw, classes };
            let starts = LineStarts::new(&source.raw);
            for rule in rules {
                for at in source.hits(rule) {
                    if findings.len() >= HITS {
                        more += 1;
                        continue;
                    }
                    let (line, column, text) = starts.place(&source.raw, at);
                    let mut finding = Finding::error(rule.rule.clone(), rule.message.clone())
                        .with_severity(rule.severity)
                        .at(Location { path: path.clone(), line: Some(line), column: Some(column) })
                        .with_detail(text);
                    finding.fix.clone_from(&rule.fix);
                    findings.push(finding);
                }
            }
        }
        findings.sort_by(|a, b| (&a.location, &a.rule).cmp(&(&b.location, &b.rule)));
        if more > 0 {
            let message = format!("{more} more hits of these rules are not listed");
            findings.push(Finding::error(format!("{}/more", self.name), message));
        }
        if let Some(first) = unread.first() {
            let message = format!(
                "{} files could not be read as text of at most {} MiB and were not checked, the first is {first}",
                unread.len(),
                FILE_CAP >> 20
            );
            findings.push(Finding::error("gate/unread", message).with_severity(Severity::Warning));
        }
        GateVerdict::from_findings(self.name.clone(), GateKind::Static, findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;

    fn gate() -> RuleGate {
        let text = "[[rule]]\nid = \"a\"\npattern = 'x!'\nmessage = \"m\"\nfiles = [\"**/*.txt\"]\n\
                    exclude = [\"no/**\"]\nscope = \"all\"\nseverity = \"warning\"\n";
        match crate::pack_file::parse("g.toml", text.as_bytes()).unwrap().remove(0) {
            Gate::Rules(rules) => rules,
            Gate::Command(_) => panic!("rules make a rule gate"),
        }
    }

    #[test]
    fn places_globs_and_severity() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("no")).unwrap();
        std::fs::write(dir.path().join("a.txt"), "x!\nü x! \r\nlast x!").unwrap();
        std::fs::write(dir.path().join("a.md"), "x!").unwrap();
        std::fs::write(dir.path().join("no/b.txt"), "x!").unwrap();
        let verdict = gate().check(&WorkFiles::walk(dir.path()));
        let seen: Vec<String> = verdict
            .findings()
            .iter()
            .map(|f| format!("{} {}", f.location.as_ref().unwrap(), f.detail.as_deref().unwrap()))
            .collect();
        assert_eq!(seen, ["a.txt:1:1 x!", "a.txt:2:4 ü x!", "a.txt:3:6 last x!"]);
        assert_eq!(verdict.failing().count(), 0);
    }

    #[test]
    fn many_hits_are_counted_and_what_is_unread_is_said() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "x!".repeat(HITS + 5)).unwrap();
        std::fs::write(dir.path().join("b.txt"), "x!").unwrap();
        std::fs::File::create(dir.path().join("c.txt")).unwrap().set_len(FILE_CAP + 1).unwrap();
        let verdict = gate().check(&WorkFiles::walk(dir.path()));
        let last: Vec<&str> = verdict.findings()[HITS..].iter().map(|f| f.message.as_str()).collect();
        assert_eq!(last[0], "6 more hits of these rules are not listed");
        assert!(last[1].starts_with("1 files could not be read") && last[1].ends_with("the first is c.txt"));
    }
}
