//! Peak memory of a run on a large workspace.

use serde_json::json;

use super::Figures;
use super::arena::{Arena, Bench, Plan};
use super::measure;

const AIM_MIB: f64 = 150.0;
const FILES: u32 = 100_000;
const ATTEMPTS: u32 = 3;

pub(crate) fn bench(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let arena = Arena::furnished(bench, &Plan { files: FILES, git: false, attempts: ATTEMPTS })?;
    let report = arena.root.join("peak.json");
    let peak = measure::peak(&arena.run("true"), &report)?;
    let timings = arena.timings(Some(peak.exit), ATTEMPTS).map_err(|what| measure::said(what, &report))?;
    let own = timings.each(timings.own());
    let shown = peak.own_mib.map_or_else(|| "unknown".to_owned(), |mib| format!("{mib:.1} MiB"));
    figures.put(
        "many_files", "100,000 files",
        json!({
            "peak_mib": peak.own_mib, "aim_mib": AIM_MIB, "largest_process_mib": peak.largest_mib,
            "wall_ms": peak.wall_ms, "attempts": ATTEMPTS, "own_ms_an_attempt": own,
        }),
        &format!(
            "peak {shown} (aim {AIM_MIB} MiB), the largest of all its processes {:.1} MiB; {ATTEMPTS} attempts in \
             {:.1} s, start included",
            peak.largest_mib,
            peak.wall_ms / 1e3
        ),
    );
    Ok(())
}
