//! The integrity gate: protected files, tools and tests, compared with the start of the run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use triphammer_model::spec::Allowance;
use triphammer_model::{Change, Finding, GateKind, GateName, GateVerdict, Location, Severity, WorkPath};

use crate::census::{TestCensus, TestFn};
use crate::stable::short;
use crate::tool;

/// A protected path that the attempt changed; its bytes are restored already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offence {
    /// The path.
    pub path: WorkPath,
    /// What was done to it.
    pub change: Change,
}

/// A program in `.local/bin` whose name resolved elsewhere when the run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The program's name.
    pub name: String,
    /// Where it was found at the start.
    pub was: String,
}

/// What the integrity gate judges.
pub struct IntegrityInput<'a> {
    /// Protected paths that were changed and restored.
    pub offences: &'a [Offence],
    /// New files under protected globs: reported, no offences.
    pub additions: &'a [WorkPath],
    /// Tools that `.local/bin` replaces.
    pub shadowed: &'a [Shadowed],
    /// The tests at the start.
    pub census_start: &'a TestCensus,
    /// The tests now.
    pub census_now: &'a TestCensus,
    /// What the spec permits.
    pub allow: &'a [Allowance],
}

/// The gate `integrity`: always there, always first.
pub fn integrity(input: &IntegrityInput<'_>) -> GateVerdict {
    let at = |path: &WorkPath| Location { path: path.clone(), line: None, column: None };
    let mut findings = Vec::new();
    for offence in input.offences {
        let what = match offence.change {
            Change::Added => "was added",
            Change::Changed => "was changed",
            Change::Deleted => "was deleted",
        };
        findings.push(
            Finding::error(
                "integrity/protected",
                format!("{} is protected and {what}; it has been restored", offence.path),
            )
            .at(at(&offence.path))
            .with_fix("leave protected files as they are; a second change ends the run"),
        );
    }
    for path in input.additions {
        findings.push(
            Finding::error("integrity/added", format!("{path} is new where files are protected"))
                .with_severity(Severity::Note)
                .at(at(path)),
        );
    }
    for tool in input.shadowed {
        findings.push(
            Finding::error(
                "integrity/shadowed-tool",
                format!(".local/bin/{} replaces a tool that was there at the start", tool.name),
            )
            .with_fix(format!("remove .local/bin/{}; use the tool that the machine has", tool.name))
            .with_detail(format!("at the start it was {}", tool.was)),
        );
    }
    let severity =
        if input.allow.contains(&Allowance::TestsRemoved) { Severity::Note } else { Severity::Error };
    for finding in weakened(input.census_start, input.census_now) {
        findings.push(finding.with_severity(severity));
    }
    GateVerdict::from_findings(GateName::new("integrity"), GateKind::Static, findings)
}

/// Tests that are gone, emptied or newly ignored, one finding a test.
fn weakened(start: &TestCensus, now: &TestCensus) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Tests that the start does not know in their file: where a missing one may have gone to.
    let mut arrived: Vec<&TestFn> = Vec::new();
    for (path, tests) in &now.files {
        let known = start.files.get(path).map_or(&[][..], Vec::as_slice);
        let mut left: Vec<&str> = known.iter().map(|t| t.name.as_str()).collect();
        for test in tests {
            match left.iter().position(|n| *n == test.name) {
                Some(i) => {
                    left.swap_remove(i);
                }
                None => arrived.push(test),
            }
        }
    }
    for (path, tests) in &start.files {
        let mut here: Vec<&TestFn> = now.files.get(path).map_or(Vec::new(), |t| t.iter().collect());
        for was in tests {
            let mut moved_by = |same: &dyn Fn(&TestFn) -> bool| {
                arrived.iter().position(|t| same(t)).map(|i| arrived.swap_remove(i))
            };
            let is = match here.iter().position(|t| t.name == was.name) {
                Some(i) => Some(here.remove(i)),
                // Moved to another file, or renamed with the same body.
                None => moved_by(&|t| t.name == was.name)
                    .or_else(|| moved_by(&|t| !was.empty && t.body == was.body)),
            };
            findings.extend(compare(path, was, is));
        }
    }
    for path in now.exclusive.difference(&start.exclusive) {
        findings.push(
            Finding::error(
                "integrity/tests-ignored",
                format!("{path} has an exclusive test that silences the others"),
            )
            .at(Location { path: path.clone(), line: None, column: None })
            .with_fix("remove the `only` mark"),
        );
    }
    findings
}

fn compare(path: &WorkPath, was: &TestFn, is: Option<&TestFn>) -> Option<Finding> {
    let name = short(&was.name, 200);
    let (rule, what, fix) = match is {
        None => ("integrity/tests-removed", "is gone", "put the test back; mend the code that it tests"),
        Some(is) if is.ignored && !was.ignored => {
            ("integrity/tests-ignored", "is now ignored", "let the test run; mend the code that it tests")
        }
        Some(is) if is.empty && !was.empty => {
            ("integrity/tests-emptied", "is now empty", "put the test's body back")
        }
        Some(is) if !is.asserts && was.asserts => {
            ("integrity/tests-emptied", "asserts nothing any more", "put the test's assertions back")
        }
        Some(_) => return None,
    };
    let location = Location { path: path.clone(), line: None, column: None };
    Some(Finding::error(rule, format!("test `{name}` of {path} {what}")).at(location).with_fix(fix))
}

/// Where each program on `PATH` was found at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    programs: BTreeMap<String, String>,
}

/// The folder of a workspace that comes first in everybody's `PATH`.
fn local_bin(workspace: &Path) -> PathBuf {
    workspace.join(".local/bin")
}

impl Resolution {
    /// Lists what the `PATH` of `env` offers. A name that `.local/bin` already provides is left out: it resolved
    /// there at the start.
    pub fn take(env: &[(OsString, OsString)], workspace: &Path) -> Self {
        let own = local_bin(workspace);
        let mut programs = BTreeMap::new();
        let path = tool::variable(env, "PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
        for entry in path.as_bytes().split(|b| *b == b':').filter(|e| e.starts_with(b"/")) {
            let dir = Path::new(OsStr::from_bytes(entry));
            if dir == own {
                continue;
            }
            for name in names(dir) {
                let found = dir.join(&name);
                programs.entry(name).or_insert_with(|| found.display().to_string());
            }
        }
        for name in names(&own) {
            programs.remove(&name);
        }
        Self { programs }
    }
}

/// Names in a folder that is no link, without looking into the files.
fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Programs that `.local/bin` has now and that resolved elsewhere at the start, by name.
pub fn shadowed(start: &Resolution, workspace: &Path) -> Vec<Shadowed> {
    names(&local_bin(workspace))
        .into_iter()
        .filter_map(|name| {
            let was = start.programs.get(&name)?.clone();
            Some(Shadowed { name, was })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use triphammer_model::report::VerdictWord;

    use super::*;

    fn census(files: &[(&str, &str)]) -> TestCensus {
        TestCensus::take(files.iter().map(|(p, s)| (WorkPath::from(*p), s.as_bytes().to_vec())))
    }

    fn said(start: &TestCensus, now: &TestCensus) -> Vec<String> {
        weakened(start, now).iter().map(|f| format!("{}: {}", f.rule, f.message)).collect()
    }

    #[test]
    fn sees_tests_weakened() {
        let a = "#[test] fn a() { assert!(f()) }";
        let b = "#[test] fn b() { assert!(g()) }";
        let start = census(&[("x.rs", &format!("{a}\n{b}"))]);
        for (now, want) in [
            (vec![("x.rs", format!("{b} {a}"))], vec![]),
            (vec![("x.rs", a.to_owned())], vec!["integrity/tests-removed: test `b` of x.rs is gone"]),
            (
                vec![],
                vec![
                    "integrity/tests-removed: test `a` of x.rs is gone",
                    "integrity/tests-removed: test `b` of x.rs is gone",
                ],
            ),
            (vec![("x.rs", a.to_owned()), ("y.rs", b.to_owned())], vec![]),
            (vec![("x.rs", format!("{a} {}", b.replace("fn b", "fn renamed")))], vec![]),
            (
                vec![("x.rs", format!("{a} {}", b.replace("assert!(g())", "assert!(true)")))],
                vec!["integrity/tests-emptied: test `b` of x.rs asserts nothing any more"],
            ),
            (
                vec![("x.rs", format!("{a} {}", b.replace("assert!(g())", "")))],
                vec!["integrity/tests-emptied: test `b` of x.rs is now empty"],
            ),
            (
                vec![("x.rs", format!("{a} #[ignore] {b}"))],
                vec!["integrity/tests-ignored: test `b` of x.rs is now ignored"],
            ),
            (
                vec![("x.rs", a.to_owned()), ("y.rs", b.replace("assert!(g())", ""))],
                vec!["integrity/tests-emptied: test `b` of x.rs is now empty"],
            ),
            (
                vec![("x.rs", format!("{a} /* {b} */"))],
                vec!["integrity/tests-removed: test `b` of x.rs is gone"],
            ),
        ] {
            let files: Vec<(&str, &str)> = now.iter().map(|(p, s)| (*p, s.as_str())).collect();
            assert_eq!(said(&start, &census(&files)), want, "{now:?}");
        }
    }

    #[test]
    fn two_tests_of_one_name_are_two() {
        let a = "mod x { #[test] fn a() { assert!(f()) } } mod y { #[test] fn a() { assert!(g()) } }";
        let start = census(&[("x.rs", a)]);
        let now = census(&[("x.rs", "mod x { #[test] fn a() { assert!(f()) } }")]);
        assert_eq!(said(&start, &now).len(), 1);
        assert!(said(&start, &start).is_empty());
    }

    #[test]
    fn exclusive_marks_silence_others() {
        let start = census(&[("a.test.js", "it('a', () => { expect(1) }); it('b', () => { expect(2) })")]);
        let now = census(&[("a.test.js", "it.only('a', () => { expect(1) }); it('b', () => { expect(2) })")]);
        assert_eq!(
            said(&start, &now),
            ["integrity/tests-ignored: a.test.js has an exclusive test that silences the others"]
        );
    }

    #[test]
    fn verdicts() {
        let (full, none) = (census(&[("x.rs", "#[test] fn a() { assert!(f()) }")]), TestCensus::default());
        let input = |start, now, allow| IntegrityInput {
            offences: &[],
            additions: &[],
            shadowed: &[],
            census_start: start,
            census_now: now,
            allow,
        };
        assert_eq!(integrity(&input(&full, &full, &[])).word(), VerdictWord::Pass);
        assert_eq!(integrity(&input(&full, &none, &[])).word(), VerdictWord::Fail);
        assert_eq!(integrity(&input(&full, &none, &[Allowance::TestsRemoved])).word(), VerdictWord::Pass);
        let offence = [Offence { path: "t/a.rs".into(), change: Change::Deleted }];
        let added = [WorkPath::from("t/b.rs")];
        let verdict =
            integrity(&IntegrityInput { offences: &offence, additions: &added, ..input(&full, &full, &[]) });
        let rules: Vec<&str> = verdict.findings().iter().map(|f| f.rule.as_str()).collect();
        assert_eq!(rules, ["integrity/protected", "integrity/added"]);
        assert_eq!(verdict.failing().count(), 1);
    }

    #[test]
    fn sees_a_shadowed_tool() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, ws) = (dir.path().join("bin"), dir.path().join("ws"));
        std::fs::create_dir_all(ws.join(".local/bin")).unwrap();
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join("cargo"), "").unwrap();
        std::fs::write(bin.join("old"), "").unwrap();
        std::fs::write(ws.join(".local/bin/old"), "").unwrap();
        let path = format!("{}:{}", ws.join(".local/bin").display(), bin.display());
        let start = Resolution::take(&[("PATH".into(), path.into())], &ws);
        assert!(shadowed(&start, &ws).is_empty());
        std::fs::write(ws.join(".local/bin/cargo"), "").unwrap();
        std::fs::write(ws.join(".local/bin/new"), "").unwrap();
        let names: Vec<String> = shadowed(&start, &ws).into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["cargo"]);
    }
}
