//! What earlier runs of this home teach the next first brief: rules and counts, no words of anybody.

use triphammer_gate::{Lesson, lessons};
use triphammer_model::Report;
use triphammer_store::{Runs, read_bounded};

/// How many of the latest runs are read.
const RUNS: usize = 20;
/// Larger reports are passed over.
const LARGEST_REPORT: u64 = 4 << 20;

/// Folds the reports of the latest runs into lessons. What cannot be read teaches nothing.
pub(crate) fn learn(runs: &Runs) -> Vec<Lesson> {
    let mut reports: Vec<Report> = Vec::new();
    let ids = runs.ids().unwrap_or_default();
    for id in ids.iter().rev().take(RUNS) {
        let attempts = runs.path().join(id.as_str()).join("attempts");
        let Ok(entries) = std::fs::read_dir(attempts) else { continue };
        let mut folders: Vec<_> = entries.flatten().map(|e| e.path()).collect();
        folders.sort();
        for folder in folders {
            if let Ok(bytes) = read_bounded(&folder.join("report.json"), LARGEST_REPORT)
                && let Ok(report) = serde_json::from_slice(&bytes)
            {
                reports.push(report);
            }
        }
    }
    lessons(&reports)
}
