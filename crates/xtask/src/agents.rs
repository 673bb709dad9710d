//! `cargo xtask agents`: real agents installed once a machine, and the tests that need them.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::house::{self, cargo};
use crate::steps::{self, Ended, Steps};
use crate::tally::Tally;
use crate::{suite, tools};

/// The variable that asks for the agents that are not free software or that take long.
const ALL: &str = "TRIPHAMMER_ALL_AGENTS";

/// The variable that tells the tests where the agents' programs are.
const PROGRAMS: &str = "TRIPHAMMER_AGENTS_PATH";

/// Where an agent is published.
#[derive(Clone, Copy)]
enum Published {
    /// With npm, as this package.
    Npm(&'static str),
    /// With pip, as this package.
    Pip(&'static str),
}

/// An agent at the version that the tests were written for.
struct Pinned {
    /// Its name, which is its program's and its tests'.
    name: &'static str,
    published: Published,
    version: &'static str,
    /// Whether its tests are run without being asked for.
    always: bool,
}

const AGENTS: [Pinned; 7] = [
    npm("codex", "@openai/codex", "0.171.0", true),
    npm("pi", "@mariozechner/pi-coding-agent", "0.73.1", true),
    Pinned { name: "mini", published: Published::Pip("mini-swe-agent"), version: "2.4.6", always: true },
    npm("opencode", "opencode-ai", "1.18.33", true),
    npm("claude", "@anthropic-ai/claude-code", "2.1.332", false),
    npm("gemini", "@google/gemini-cli", "0.61.0", false),
    // The newest that works with Node.js 20.
    npm("qwen", "@qwen-code/qwen-code", "0.15.10", false),
];

const fn npm(name: &'static str, package: &'static str, version: &'static str, always: bool) -> Pinned {
    Pinned { name, published: Published::Npm(package), version, always }
}

/// Installs the agents of these names, or the usual ones, and runs their tests.
pub(crate) fn test(names: &[&str]) -> Result<(), String> {
    if let Some(stranger) = names.iter().find(|name| AGENTS.iter().all(|agent| agent.name != **name)) {
        let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        return Err(format!("no agent `{stranger}`; there are {}", known.join(", ")));
    }
    let mut steps = Steps::begin(false);
    add_steps(&mut steps, names, None)?;
    steps.end()
}

/// The same as steps of a longer list. Without a binary one is built.
pub(crate) fn add_steps(steps: &mut Steps, names: &[&str], binary: Option<&Path>) -> Result<(), String> {
    let all = std::env::var_os(ALL).is_some_and(|value| value == "1");
    let wanted = |agent: &Pinned| {
        if names.is_empty() { agent.always || all } else { names.contains(&agent.name) }
    };
    let folder = house::target()?.join("agents");
    let mut tests = Vec::new();
    steps.step("agents' tests", || match build(binary) {
        Ok(found) => {
            tests = found;
            Ok(()).into()
        }
        Err(what) => Err(what).into(),
    });
    if tests.is_empty() {
        return Ok(());
    }
    for agent in &AGENTS {
        let own: Vec<&str> =
            tests.iter().map(String::as_str).filter(|test| agent.is_tested_by(test)).collect();
        let count = own.len() as u64;
        if !wanted(agent) {
            if names.is_empty() {
                // Asked for by whoever has them; nobody else misses them.
                println!("{}: its {count} tests are run with {ALL}=1", agent.name);
            }
            continue;
        }
        match agent.lacks() {
            Some(tool) => steps.not_run(agent.name, count, &format!("{tool} is missing")),
            None => steps.step(agent.name, || match agent.install(&folder) {
                Ok(programs) => run(&own, programs, binary),
                Err(what) => Ended::Failed(Tally::default(), what),
            }),
        }
    }
    Ok(())
}

impl Pinned {
    /// Whether this is a test of it: by its own name, or as a protocol server.
    fn is_tested_by(&self, test: &str) -> bool {
        let test = test.strip_prefix("acp::").unwrap_or(test);
        test.strip_prefix(self.name).is_some_and(|rest| rest.starts_with("::"))
    }

    /// What it needs and this machine has not.
    fn lacks(&self) -> Option<&'static str> {
        let tool = match self.published {
            Published::Npm(_) => "npm",
            Published::Pip(_) => "python3",
        };
        (!tools::is_on_path(tool)).then_some(tool)
    }

    /// The folder that holds its program and nothing else; installs it where that was not done yet.
    fn install(&self, folder: &Path) -> Result<PathBuf, String> {
        let own = folder.join(format!("{}-{}", self.name, self.version));
        let programs = own.join("programs");
        let link = programs.join(self.name);
        // The link is made last: where it leads somewhere, the installation came to its end.
        if link.is_file() {
            println!("{} {} is there", self.name, self.version);
            return Ok(programs);
        }
        let failed = |e: std::io::Error| format!("installing {} in {}: {e}", self.name, own.display());
        if own.exists() {
            std::fs::remove_dir_all(&own).map_err(failed)?;
        }
        std::fs::create_dir_all(&programs).map_err(failed)?;
        let installed = match self.published {
            Published::Npm(package) => {
                let mut command = gently("npm");
                command.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix"]);
                command.arg(&own).arg(format!("{package}@{}", self.version));
                steps::run(command)?;
                "node_modules/.bin"
            }
            Published::Pip(package) => {
                let mut command = gently("python3");
                command.args(["-m", "venv"]).arg(own.join("venv"));
                steps::run(command)?;
                let mut command = gently(own.join("venv/bin/pip"));
                command.args(["install", "--quiet", &format!("{package}=={}", self.version)]);
                steps::run(command)?;
                "venv/bin"
            }
        };
        let program = own.join(installed).join(self.name);
        if !program.is_file() {
            return Err(format!("installing {} left no {}", self.name, program.display()));
        }
        symlink(program, link).map_err(failed)?;
        Ok(programs)
    }
}

/// A program that others on this machine do not notice.
fn gently(program: impl Into<OsString>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n".into(), "10".into(), program.into()]).stdin(Stdio::null());
    command
}

/// Builds the tests, and the binary where there is none, and returns the tests' names.
fn build(binary: Option<&Path>) -> Result<Vec<String>, String> {
    if binary.is_none() {
        steps::run(cargo(["build", "--locked", "--package", "triphammer"]))?;
    }
    let mut command = cargo(["test", "--locked", "--package", "triphammer-tests", "--test", "agents"]);
    command.args(["--", "--list", "--format", "terse"]).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("listing the tests: {e}"))?;
    if !output.status.success() {
        return Err(format!("listing the tests failed ({})", output.status));
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    Ok(listed.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect())
}

fn run(tests: &[&str], programs: PathBuf, binary: Option<&Path>) -> Ended {
    if tests.is_empty() {
        return Ended::Failed(Tally::default(), "it has no tests".to_owned());
    }
    let (words, kind) = suite::runner();
    let mut command = cargo(words.iter().copied());
    command.args(["--locked", "--package", "triphammer-tests", "--test", "agents", "--no-fail-fast"]);
    command.args(["--", "--exact"]).args(tests).env(PROGRAMS, programs);
    if let Some(binary) = binary {
        command.env(suite::BINARY, binary);
    }
    // The tests of other agents are left out on purpose; those that are not run are counted where they belong.
    let own = |tally: Tally| Tally { skipped: 0, ..tally };
    match steps::run_tests(command, kind) {
        Ended::Well(tally) => Ended::Well(own(tally)),
        Ended::Failed(tally, what) => Ended::Failed(own(tally), what),
        ended @ Ended::NotRun(..) => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_distinct() {
        let mut names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), AGENTS.len());
        let refused = test(&["codex", "no-such-agent"]).unwrap_err();
        assert!(refused.contains("`no-such-agent`") && refused.contains("opencode"), "{refused}");
    }

    /// `doctor` says with which version an agent was seen.
    #[test]
    fn the_product_names_the_same_versions() {
        for agent in &AGENTS {
            let file = house::root().join(format!("crates/agent/src/vendors/{}.rs", agent.name));
            let text = std::fs::read_to_string(&file).expect("an agent's file");
            assert!(text.contains(&format!("seen: \"{}\",", agent.version)), "{}", file.display());
        }
    }

    #[test]
    fn tests_belong_to_the_agent_whose_name_they_bear() {
        let pi = npm("pi", "pi", "1.0.0", true);
        assert!(pi.is_tested_by("pi::works") && pi.is_tested_by("acp::pi::works"));
        assert!(!pi.is_tested_by("pip::works") && !pi.is_tested_by("acp::works"));
    }

    #[test]
    fn what_is_installed_is_not_installed_again() {
        let folder = std::env::temp_dir().join(format!("triphammer-xtask-{}", std::process::id()));
        let agent = npm("sh", "no-such-package", "1.0.0", true);
        let programs = folder.join("sh-1.0.0/programs");
        std::fs::create_dir_all(&programs).unwrap();
        symlink("/bin/sh", programs.join("sh")).unwrap();
        let found = agent.install(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Ok(programs));
    }
}
