//! `cargo xtask test`: everything that is checked before work is called done, the cheap checks first.

use std::process::{Command, Stdio};

use crate::house::{self, cargo};
use crate::steps::{self, Ended, Steps};
use crate::tally::Runner;
use crate::{agents, generated, tidy, tools};

/// The variable that tells end-to-end tests where the binary is.
pub(crate) const BINARY: &str = "TRIPHAMMER_BIN";

/// Targets that hold tests; doctests are a step of their own.
const TARGETS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

pub(crate) fn test(fail_fast: bool) -> Result<(), String> {
    let mut steps = Steps::begin(fail_fast);

    let mut missing = Vec::new();
    steps.step("set-up", || {
        missing = tools::set_up();
        Ok(()).into()
    });
    steps.step("format", || {
        if has("fmt") {
            steps::run(cargo(["fmt", "--all", "--check"])).into()
        } else {
            Ended::NotRun(1, "rustfmt is missing: `rustup component add rustfmt`".to_owned())
        }
    });
    steps.step("tidy", || tidy::check().into());
    steps.step("generated files", || generated::check().into());
    steps.step("clippy", || {
        if has("clippy") {
            let arguments =
                ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
            steps::run(lean(cargo(arguments))).into()
        } else {
            Ended::NotRun(1, "clippy is missing: `rustup component add clippy`".to_owned())
        }
    });

    let mut binary = None;
    steps.step("release binary", || match house::build_release() {
        Ok(built) => {
            binary = Some(built);
            Ok(()).into()
        }
        Err(what) => Err(what).into(),
    });

    let blocked = match house::metadata() {
        Ok(metadata) => tools::blocked(&missing, &package_names(&metadata)),
        Err(what) => return Err(what),
    };
    for (package, tool) in &blocked {
        let why = format!("the tests of {package} need {tool}");
        match count_tests(package) {
            Ok(count) => steps.not_run("tests", count, &why),
            Err(what) => steps.step("tests", || Ended::Failed(crate::tally::Tally::default(), what)),
        }
    }
    let excluded: Vec<&str> = blocked.iter().flat_map(|(name, _)| ["--exclude", name.as_str()]).collect();
    let runner = |with: &[&'static str]| {
        let mut command = lean(cargo(with.iter().copied()));
        command.args(["--workspace", "--locked", "--no-fail-fast"]).args(&excluded);
        if let Some(binary) = &binary {
            command.env(BINARY, binary);
        }
        command
    };
    steps.step("tests", || {
        let (words, kind) = self::runner();
        let mut command = runner(words);
        command.args(TARGETS);
        steps::run_tests(command, kind)
    });
    steps.step("doctests", || steps::run_tests(runner(&["test", "--doc"]), Runner::Libtest));
    agents::add_steps(&mut steps, &[], binary.as_deref())?;
    steps.end()
}

/// How tests are run here: the words for cargo, and who counts.
pub(crate) fn runner() -> (&'static [&'static str], Runner) {
    if has("nextest") { (&["nextest", "run"], Runner::Nextest) } else { (&["test"], Runner::Libtest) }
}

/// Whether cargo has that command.
fn has(command: &str) -> bool {
    let mut probe = cargo([command, "--version"]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// A machine that builds once gains nothing from incremental compilation and pays for it in time and disk.
fn lean(mut command: Command) -> Command {
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

fn package_names(metadata: &serde_json::Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    packages.iter().filter_map(|package| package["name"].as_str().map(str::to_owned)).collect()
}

/// How many tests a package has, without running them.
fn count_tests(package: &str) -> Result<u64, String> {
    let mut command = lean(cargo(["test", "--locked", "--package", package, "--all-targets"]));
    command.args(["--", "--list", "--format", "terse"]).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("listing the tests of {package}: {e}"))?;
    if !output.status.success() {
        return Err(format!("listing the tests of {package} failed ({})", output.status));
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    Ok(listed.lines().map(|line| u64::from(line.ends_with(": test"))).sum())
}
