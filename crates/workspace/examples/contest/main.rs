//! The eyes' contenders for `cargo xtask bench workspace`, which starts this program and reads what it prints.
//!
//! ```text
//! contest zones FILE               writes the zones of an empty workspace, for `once`
//! contest once TREE FILE           one full walk as a whole process: prints its count and its peak of memory
//! contest list TREE WHO            the paths that WHO sees, each ended by a zero byte
//! contest serve TREE               for each line WHO on stdin one run of WHO: prints how long it took
//! contest attempts TREE STORE ROUNDS CHANGED
//!                                  looks, trees and differences of attempts that change so many files
//! ```
//!
//! WHO is `walk`, `restat`, `walkdir` or `ignore`; `serve` also knows `floor`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is there to print")]

mod attempts;
#[cfg(target_os = "linux")]
mod floor;
mod peers;
mod stopwatch;

use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use triphammer_workspace::{Root, Snapshot, ZoneConfig, ZoneMap};

use crate::peers::Peers;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["zones", file] => write_zones(Path::new(file)),
        ["once", tree, zones] => once(Path::new(tree), Path::new(zones)),
        ["list", tree, who] => list(Path::new(tree), who),
        ["serve", tree] => serve(Path::new(tree)),
        ["attempts", tree, store, rounds, changed] => {
            attempts::run(Path::new(tree), Path::new(store), rounds, changed)
        }
        _ => Err("zones, once, list, serve or attempts? see the source".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contest: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The zones of a workspace in which nothing is special.
fn plain_zones() -> Result<ZoneMap> {
    let empty = tempfile::tempdir()?;
    Ok(ZoneMap::capture(&Root::open(empty.path())?, &ZoneConfig::default())?)
}

fn write_zones(file: &Path) -> Result<()> {
    Ok(std::fs::write(file, serde_json::to_vec(&plain_zones()?)?)?)
}

fn once(tree: &Path, zones: &Path) -> Result<()> {
    let zones: ZoneMap = serde_json::from_slice(&std::fs::read(zones)?)?;
    let snapshot = Snapshot::deliverable(&Root::open(tree)?, &zones)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: Option<u64> = peak.and_then(|text| text.split_whitespace().next()?.parse().ok());
    println!("{}", json!({ "count": snapshot.len(), "peak_kib": peak }));
    Ok(())
}

fn list(tree: &Path, who: &str) -> Result<()> {
    let mut out = stdout().lock();
    for path in Peers::new(tree)?.paths(who)? {
        out.write_all(&path)?;
        out.write_all(b"\0")?;
    }
    Ok(out.flush()?)
}

fn serve(tree: &Path) -> Result<()> {
    let peers = Peers::new(tree)?;
    for line in stdin().lines() {
        let line = line?;
        let told = match line.as_str() {
            #[cfg(target_os = "linux")]
            "floor" => floor::measure(tree)?,
            who => peers.run(who)?,
        };
        println!("{told}");
    }
    Ok(())
}
