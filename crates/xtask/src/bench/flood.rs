//! An agent that prints 5 GB: memory, throughput, and what is kept of it on disk.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::arena::{Arena, Bench, Plan};
use super::{Figures, measure, real};

const AIM_MIB: f64 = 30.0;
const AIM_MB_S: f64 = 200.0;
const BYTES: u64 = 5_000_000_000;

/// `xtask flood BYTES`: prints that many bytes, in lines of 80, as fast as they are taken.
pub(crate) fn print(bytes: &str) -> Result<(), String> {
    let mut left: usize = bytes.parse().map_err(|e| format!("flood {bytes}: {e}"))?;
    let line = "the agent says the same thing over and over, and somebody has to write it down\n\n";
    let chunk = &line.as_bytes()[..80].repeat(1024);
    let mut out = std::io::stdout().lock();
    while left > 0 {
        let count = left.min(chunk.len());
        out.write_all(&chunk[..count]).map_err(|e| format!("printing: {e}"))?;
        left -= count;
    }
    Ok(())
}

pub(crate) fn bench(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|e| format!("finding this program: {e}"))?;
    let this = this.to_str().ok_or("this program's path is not UTF-8")?;
    let pipe = pipe_mb_s(this)?;
    let arena = Arena::furnished(bench, &Plan { files: 10, git: false, attempts: 1 })?;
    let agent = format!("'{}' flood {BYTES}", this.replace('\'', r"'\''"));
    let report = arena.root.join("peak.json");
    let peak = measure::peak(&arena.run(&agent), &report)?;
    let timings = arena.timings(Some(peak.exit), 1).map_err(|what| measure::said(what, &report))?;
    let rate = real(BYTES) / 1e6 / (timings.agents / 1e3);
    let disk = real(arena.runs_on_disk()) / f64::from(1 << 20);
    let shown = peak.own_mib.map_or_else(|| "unknown".to_owned(), |mib| format!("{mib:.1} MiB"));
    figures.put(
        "output",
        "agent prints 5 GB",
        json!({
            "peak_mib": peak.own_mib, "aim_mib": AIM_MIB, "largest_process_mib": peak.largest_mib,
            "mb_s": rate, "aim_mb_s": AIM_MB_S, "plain_pipe_mb_s": pipe, "runs_on_disk_mib": disk,
        }),
        &format!(
            "peak {shown} (aim {AIM_MIB} MiB), the largest of all processes, the agent included, {:.1} MiB; \
             {rate:.0} MB/s (aim {AIM_MB_S}; a plain pipe {pipe:.0}); {disk:.1} MiB on disk",
            peak.largest_mib
        ),
    );
    Ok(())
}

/// How fast the same flood goes through a pipe whose reader drops it.
fn pipe_mb_s(this: &str) -> Result<f64, String> {
    let bytes = BYTES / 5;
    let failed = |e| format!("measuring a pipe: {e}");
    let began = Instant::now();
    let mut child = Command::new(this)
        .args(["flood", &bytes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut chunk = vec![0; 1 << 16];
    if let Some(mut out) = child.stdout.take() {
        while out.read(&mut chunk).map_err(failed)? > 0 {}
    }
    child.wait().map_err(failed)?;
    Ok(real(bytes) / 1e6 / began.elapsed().as_secs_f64())
}
