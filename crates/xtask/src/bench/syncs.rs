//! How often an attempt makes the disk catch up.

use serde_json::{Value, json};

use super::arena::{Arena, Bench, Plan};
use super::{Figures, real};
use crate::tools;

const AIM: f64 = 4.0;

/// Two lengths of a run: what they differ by is what attempts cost, without start and end.
const FEW: u32 = 10;
const MANY: u32 = 30;

const CALLS: [&str; 5] = ["fsync(", "fdatasync(", "syncfs(", "sync(", "sync_file_range("];

pub(crate) fn bench(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    if !tools::is_on_path("strace") {
        figures.put("syncs", "syncs", Value::Null, "not measured: strace is not installed");
        return Ok(());
    }
    let few = count(bench, FEW)?;
    let many = count(bench, MANY)?;
    let each = (real(many) - real(few)) / f64::from(MANY - FEW);
    let beside = real(few) - each * f64::from(FEW);
    figures.put(
        "syncs",
        "syncs",
        json!({ "an_attempt": each, "aim": AIM, "start_and_end": beside }),
        &format!("{each:.2} an attempt (aim {AIM}), and {beside:.0} at start and end of the run"),
    );
    Ok(())
}

/// Syncs of a run with so many attempts, by all of its processes.
fn count(bench: &Bench, attempts: u32) -> Result<u64, String> {
    let arena = Arena::furnished(bench, &Plan { files: 100, git: false, attempts })?;
    let log = arena.root.join("strace.log");
    let mut command = arena.command("strace");
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync,syncfs,sync_file_range", "-o"]).arg(&log);
    command.arg(&bench.binary).args(Arena::arguments("true"));
    let output = command.output().map_err(|e| format!("starting strace: {e}"))?;
    arena
        .timings(output.status.code(), attempts)
        .map_err(|what| format!("{what}\n{}", String::from_utf8_lossy(&output.stderr).trim()))?;
    let text = std::fs::read(&log).map_err(|e| format!("reading {}: {e}", log.display()))?;
    Ok(calls(&String::from_utf8_lossy(&text)))
}

/// Calls in a log of strace, which writes one in two halves when another process speaks in between.
fn calls(log: &str) -> u64 {
    let begins = |line: &str| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        CALLS.iter().any(|name| call.starts_with(name))
    };
    log.lines().map(|line| u64::from(begins(line))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_call_once() {
        let log = "12 fsync(3) = 0\n12 fdatasync(4 <unfinished ...>\n13 sync() = 0\n12 <... fdatasync resumed>) = 0\n\
                   14 +++ exited with 0 +++\nfsync(5) = 0\n";
        assert_eq!(calls(log), 4);
    }
}
