//! The house's own chores: `cargo xtask test`, `gen` and `bench`.
//!
//! Theory of operation: every chore is a list of steps, and a step is mostly another program (cargo, apt-get, the
//! product's binary). What those programs report is read and added up ([`tally`]); nothing that was not run is ever
//! counted as passed. Checks on the sources that no compiler makes are in [`tidy`]. Figures are printed beside their
//! aims ([`bench`]) and never judged: a busy machine is no defect of the product.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore's whole purpose is to tell a person")]

mod agents;
mod bench;
mod generated;
mod house;
mod steps;
mod suite;
mod tally;
mod tidy;
mod tools;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <chore>

  test [--fail-fast]   install what the tests need (as root on Debian), then check and test everything, the real agents
                       codex, pi, mini and opencode included
  agents [NAME..]      install real agents below the target folder and run their tests; without a name, those of
                       codex, pi, mini and opencode, and with TRIPHAMMER_ALL_AGENTS=1 those of all
  gen [--check]        write the generated files, or say which are stale
  tidy                 the checks on the sources that no compiler makes
  bench agents [--json] [--rounds N] [--mb N] [--bin FILE] [--contest FILE] [--dir DIR]
                       what an agent costs beyond itself, and what N megabytes of its events cost to be understood
  bench build [--json] seconds and crates of a cold release build
  bench loop [--json] [--only PART,..] [--bin FILE] [--dir DIR]
                       time, syncs and memory of runs; PART is loop, syncs, files, output or help
  bench workspace [--json] [--files N,..] [--rounds N] [--bin FILE] [--dir DIR]
                       the fingerprint against its peers, on trees of 10,000 and 100,000 files or as many as N
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => suite::test(false),
        ["test", "--fail-fast"] => suite::test(true),
        ["agents", names @ ..] => agents::test(names),
        ["gen"] => generated::write(),
        ["gen", "--check"] => generated::check(),
        ["tidy"] => tidy::check(),
        ["bench", rest @ ..] => bench::run(rest),
        // What a benchmark starts of itself.
        ["measured", report, "--", command @ ..] => bench::measure::child(report, command),
        ["flood", bytes] => bench::flood::print(bytes),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            if !what.is_empty() {
                eprintln!("xtask: {what}");
            }
            ExitCode::FAILURE
        }
    }
}
