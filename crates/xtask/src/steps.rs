//! The steps of a chore: a header line each, what came of it, and the sum.

use std::io::{IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::tally::{Runner, Tally};

/// How a step ended.
pub(crate) enum Ended {
    /// All is well.
    Well(Tally),
    /// Something failed, with what was counted nevertheless.
    Failed(Tally, String),
    /// It was not run: how many tests or checks that are, and why.
    NotRun(u64, String),
}

impl From<Result<(), String>> for Ended {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Well(Tally::default()),
            Err(what) => Self::Failed(Tally::default(), what),
        }
    }
}

/// What was done so far.
pub(crate) struct Steps {
    began: Instant,
    fail_fast: bool,
    lines: Vec<(&'static str, Duration, String)>,
    sum: Tally,
}

impl Steps {
    pub(crate) fn begin(fail_fast: bool) -> Self {
        Self { began: Instant::now(), fail_fast, lines: Vec::new(), sum: Tally::default() }
    }

    /// Runs a step. A step that fails stops nothing, unless that was asked for: the steps are ordered so that what is
    /// cheap speaks first, and one report shows everything that is wrong.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Ended) {
        if self.fail_fast && self.sum.failed > 0 {
            self.not_run(name, 1, "an earlier step failed");
            return;
        }
        println!("==> {name} (at {})", seconds(self.began.elapsed()));
        let began = Instant::now();
        let ended = work();
        let took = began.elapsed();
        let line = match ended {
            Ended::Well(tally) => {
                self.sum += tally;
                if tally == Tally::default() { "ok".to_owned() } else { tally.to_string() }
            }
            Ended::Failed(tally, what) => {
                self.sum += tally;
                // A step that fails without a failed test (a compiler error, a lint) must not vanish in the sum.
                if tally.failed == 0 {
                    self.sum.failed += 1;
                }
                eprintln!("{name}: {what}");
                format!("FAILED: {}", what.lines().next().unwrap_or_default())
            }
            Ended::NotRun(count, why) => {
                self.not_run(name, count, &why);
                return;
            }
        };
        self.lines.push((name, took, line));
    }

    /// Counts what was not run.
    pub(crate) fn not_run(&mut self, name: &'static str, count: u64, why: &str) {
        println!("{name}: not run: {why}");
        self.sum.skipped += count;
        self.lines.push((name, Duration::ZERO, format!("not run ({count}): {why}")));
    }

    /// Prints what came of it; an error when anything failed or nothing was tested.
    pub(crate) fn end(self) -> Result<(), String> {
        let _ = std::io::stderr().flush();
        println!("==> all steps, {}", seconds(self.began.elapsed()));
        for (name, took, line) in &self.lines {
            println!("    {:>8}  {name}: {line}", seconds(*took));
        }
        if self.sum.passed == 0 && self.sum.failed == 0 {
            println!("    no test ran, and that is no success");
        }
        println!("{}", self.sum);
        if self.sum.failed > 0 || self.sum.passed == 0 { Err(String::new()) } else { Ok(()) }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Runs a program; an error when it does not end well.
pub(crate) fn run(mut command: Command) -> Result<(), String> {
    let shown = shown(&command);
    let status = command.status().map_err(|e| format!("starting `{shown}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

/// Runs a test runner, shows what it prints, and counts.
pub(crate) fn run_tests(mut command: Command, runner: Runner) -> Ended {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    count_tests(command, runner, std::io::stdout(), std::io::stderr())
}

fn count_tests(mut command: Command, runner: Runner, out: impl Write + Send, err: impl Write) -> Ended {
    let shown = shown(&command);
    let (status, out, err) = match tee(&mut command, out, err) {
        Ok(ended) => ended,
        Err(e) => return Ended::Failed(Tally::default(), format!("running `{shown}`: {e}")),
    };
    match runner.count(&out, &err) {
        None if status.success() => Ended::Failed(
            Tally::default(),
            format!("`{shown}` printed no summary; its tests are not counted"),
        ),
        counted if !status.success() => {
            Ended::Failed(counted.unwrap_or_default(), format!("`{shown}` failed ({status})"))
        }
        Some(tally) if tally.failed > 0 => Ended::Failed(tally, format!("`{shown}` names failed tests")),
        counted => Ended::Well(counted.unwrap_or_default()),
    }
}

/// Passes on what a program prints and keeps it.
fn tee(
    command: &mut Command,
    to_out: impl Write + Send,
    to_err: impl Write,
) -> std::io::Result<(ExitStatus, String, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = thread::scope(|scope| {
        let out = scope.spawn(|| pass_on(out, to_out));
        let err = pass_on(err, to_err);
        (out.join().unwrap_or_default(), err)
    });
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((child.wait()?, text(out), text(err)))
}

fn pass_on(from: Option<impl Read>, mut to: impl Write) -> Vec<u8> {
    let Some(mut from) = from else { return Vec::new() };
    let mut kept = Vec::new();
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        // Whoever reads along may have gone; the count still matters.
        let _ = to.write_all(&chunk[..count]).and_then(|()| to.flush());
        kept.extend_from_slice(&chunk[..count]);
    }
    kept
}

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a test runner that is this shell line. Its summaries must not reach the output of this test,
    /// where they would be counted as real ones.
    fn ran(line: &str, runner: Runner) -> (Tally, bool) {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        sum_of(count_tests(command, runner, std::io::sink(), std::io::sink()))
    }

    fn sum_of(ended: Ended) -> (Tally, bool) {
        let mut steps = Steps::begin(false);
        steps.step("one", || ended);
        (steps.sum, steps.end().is_ok())
    }

    #[test]
    fn only_counted_passes_are_a_success() {
        let summary = "echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out;'";
        let tally = |passed, failed, skipped| Tally { passed, failed, skipped };
        assert_eq!(ran(summary, Runner::Libtest), (tally(2, 0, 1), true));
        // Exit status and counts must agree.
        assert_eq!(ran(&format!("{summary}; exit 1"), Runner::Libtest), (tally(2, 1, 1), false));
        let failed = "echo 'Summary [ 1s] 1 test run: 0 passed, 1 failed' >&2";
        assert_eq!(ran(failed, Runner::Nextest), (tally(0, 1, 0), false));
        assert_eq!(ran("true", Runner::Libtest), (tally(0, 1, 0), false));
        assert_eq!(ran("exit 101", Runner::Nextest), (tally(0, 1, 0), false));
        // Nothing ran.
        assert_eq!(sum_of(Ended::Well(Tally::default())), (tally(0, 0, 0), false));
        assert_eq!(sum_of(Ended::NotRun(3, "no tool".to_owned())), (tally(0, 0, 3), false));
    }

    #[test]
    fn fail_fast_counts_what_it_leaves_out() {
        let mut steps = Steps::begin(true);
        steps.step("first", || Ended::Failed(Tally::default(), "broken".to_owned()));
        steps.step("second", || Ended::Well(Tally { passed: 5, failed: 0, skipped: 0 }));
        assert_eq!(steps.sum, Tally { passed: 0, failed: 1, skipped: 1 });
    }
}
