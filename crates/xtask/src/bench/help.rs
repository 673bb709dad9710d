//! What it costs to be asked for help.

use std::process::{Command, Stdio};

use serde_json::json;

use super::arena::Bench;
use super::{Figures, measure, median};

const AIM_MS: f64 = 3.0;
const RUNS: u32 = 50;

pub(crate) fn bench(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let mut times = Vec::new();
    let mut walls = Vec::new();
    for _ in 0..RUNS {
        let mut command = Command::new(&bench.binary);
        // What `cargo run` adds for the loader would have it look in more places.
        command.arg("--help").env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::null());
        let usage = measure::run(&mut command)?;
        if !usage.status.success() {
            return Err(format!("`--help` failed ({})", usage.status));
        }
        times.push(usage.cpu.as_secs_f64() * 1e3);
        walls.push(usage.wall.as_secs_f64() * 1e3);
    }
    let (cpu, wall) = (median(times), median(walls));
    figures.put(
        "help",
        "--help",
        json!({ "cpu_ms": cpu, "aim_ms": AIM_MS, "wall_ms": wall, "runs": RUNS }),
        &format!("{cpu:.2} ms of CPU (aim {AIM_MS}), {wall:.2} ms wall, median of {RUNS}"),
    );
    Ok(())
}
