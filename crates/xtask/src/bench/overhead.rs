//! The loop's own time per attempt: an agent and a gate that do nothing, 100 files.

use serde_json::json;

use super::arena::{Arena, Bench, Plan, Timings};
use super::{Figures, median};

const AIM_MS: f64 = 15.0;
const RUNS: u32 = 5;
const ATTEMPTS: u32 = 50;

pub(crate) fn bench(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    for (key, name, git) in [("loop", "loop", false), ("loop_in_git", "loop in git", true)] {
        let arena = Arena::furnished(bench, &Plan { files: 100, git, attempts: ATTEMPTS })?;
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            arena.forget_runs();
            let output = arena.run("true").output().map_err(|e| format!("starting the run: {e}"))?;
            let timings = arena
                .timings(output.status.code(), ATTEMPTS)
                .map_err(|what| format!("{what}\n{}", String::from_utf8_lossy(&output.stderr).trim()))?;
            runs.push(timings);
        }
        put(key, name, &runs, figures);
    }
    Ok(())
}

fn put(key: &str, name: &str, runs: &[Timings], figures: &mut Figures) {
    let middle =
        |part: &dyn Fn(&Timings) -> f64| median(runs.iter().map(|run| run.each(part(run))).collect());
    let own = middle(&|run| run.own());
    let looks = middle(&|run| run.looks - run.tick_waits);
    let journal = middle(&|run| run.journal);
    let other = middle(&|run| run.own() - (run.looks - run.tick_waits) - run.journal);
    let ticks = middle(&|run| run.tick_waits);
    let agent = middle(&|run| run.agents);
    let gate = middle(&|run| run.gates);
    let total = middle(&|run| run.total);
    let lines = median(runs.iter().map(|run| run.each(super::real(run.journal_lines))).collect());
    let each: Vec<f64> = runs.iter().map(|run| run.each(run.own())).collect();
    let shown: Vec<String> = each.iter().map(|own| format!("{own:.1}")).collect();
    figures.put(
        key,
        name,
        json!({
            "own_ms": own, "aim_ms": AIM_MS, "looks_ms": looks, "journal_ms": journal, "other_ms": other,
            "tick_waits_ms": ticks, "agent_ms": agent, "gate_ms": gate, "total_ms": total,
            "journal_lines": lines, "own_ms_of_each_run": each,
        }),
        &format!(
            "{own:.1} ms an attempt (aim {AIM_MS}): looks {looks:.1}, journal {journal:.1} ({lines:.1} lines), other \
             {other:.1}; apart from it tick waits {ticks:.1}, starting the agent {agent:.1} and the gate {gate:.1}; \
             all in all {total:.1}\n{:22} median of {RUNS} runs with {ATTEMPTS} attempts each: {}",
            "",
            shown.join(" ")
        ),
    );
}
