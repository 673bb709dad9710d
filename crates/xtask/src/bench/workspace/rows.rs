//! The rows of the table: who is compared with whom, and what is to be reached.

use std::collections::BTreeMap;

use super::super::median;

/// From so many files on, what a program needs to start no longer counts.
pub(crate) const LARGE: u64 = 100_000;

/// Files that an attempt changes.
pub(crate) const CHANGED: u64 = 100;

/// Ours, the other, and the ratio of medians to stay below, on two free cores.
const ROWS: [(&str, &str, &str, f64); 7] = [
    ("walk/walkdir", "walk", "walkdir", 0.32),
    ("walk/ignore", "walk", "ignore", 0.45),
    ("walk/find", "once", "find", 0.50),
    ("walk/git-status", "once", "git-status", 0.50),
    ("restat/walk", "restat", "walk", 0.75),
    ("walk/node-sync", "once", "node-sync", 0.20),
    ("walk/node-async", "once", "node-async", 0.05),
];

/// A tree of an attempt's changes against one re-stat.
const TREE: f64 = 2.0;

/// The times of one contender, round by round, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    taken: Vec<(f64, f64)>,
}

impl Samples {
    pub(crate) fn take(&mut self, wall: f64, cpu: f64) {
        self.taken.push((wall, cpu));
    }

    pub(crate) fn walls(&self) -> Vec<f64> {
        self.taken.iter().map(|(wall, _)| *wall).collect()
    }

    pub(crate) fn wall(&self) -> f64 {
        median(self.walls())
    }

    pub(crate) fn cpu(&self) -> f64 {
        median(self.taken.iter().map(|(_, cpu)| *cpu).collect())
    }
}

/// Samples by contender or by part.
pub(crate) type Table = BTreeMap<String, Samples>;

/// One ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) target: f64,
    /// How long the other took, where it is a full walk of ours that is compared.
    other: Option<f64>,
}

impl Row {
    /// The ratio of a walk that takes `floor` milliseconds on one thread, spread over all cores; no walk reaches less.
    pub(crate) fn least(&self, floor: f64, cores: usize) -> Option<f64> {
        let cores = super::super::real(cores as u64);
        self.other.map(|other| floor / cores / other)
    }
}

/// All rows of a tree: the ratio, or why there is none.
pub(crate) fn of(samples: &Table, files: u64) -> Vec<(&'static str, Result<Row, String>)> {
    let counts = |other: &str| files >= LARGE || !other.starts_with("node");
    ROWS.iter()
        .filter(|(_, _, other, _)| counts(other))
        .map(|(name, who, other, target)| {
            let row = match (samples.get(*who), samples.get(*other)) {
                (Some(ours), Some(other)) => Ok(Row {
                    wall: ours.wall() / other.wall(),
                    cpu: ours.cpu() / other.cpu(),
                    target: *target,
                    other: (*who != "restat").then(|| other.wall()),
                }),
                _ => Err(format!("{other} is not installed")),
            };
            (*name, row)
        })
        .collect()
}

/// What an attempt costs beyond its own re-stat, against one re-stat: a look re-stats, and reads what changed.
pub(crate) fn tree(restat: &Samples, look: &Samples, keep: &Samples) -> Row {
    let beyond = |restat: f64, look: f64, keep: f64| ((look - restat).max(0.0) + keep) / restat;
    Row {
        wall: beyond(restat.wall(), look.wall(), keep.wall()),
        cpu: beyond(restat.cpu(), look.cpu(), keep.cpu()),
        target: TREE,
        other: None,
    }
}

/// How a tree size is written behind a row's name.
pub(crate) fn label(files: u64) -> String {
    match files {
        n if n.is_multiple_of(1_000_000) => format!("{}m", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!("{}k", n / 1_000),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(all: &[(f64, f64)]) -> Samples {
        Samples { taken: all.to_vec() }
    }

    fn close(row: Row, wall: f64, cpu: f64) {
        assert!((row.wall - wall).abs() < 1e-9 && (row.cpu - cpu).abs() < 1e-9, "{row:?}");
    }

    #[test]
    fn ratios_are_of_medians() {
        let mut table = Table::new();
        table.insert("walk".to_owned(), samples(&[(9.0, 2.0), (1.0, 2.0), (2.0, 9.0)]));
        table.insert("walkdir".to_owned(), samples(&[(8.0, 4.0)]));
        let rows = of(&table, 10_000);
        assert_eq!(rows.len(), 5);
        close(rows[0].1.clone().unwrap(), 0.25, 0.5);
        assert_eq!(rows[0].1.as_ref().unwrap().least(4.0, 2), Some(0.25));
        assert!(rows[1].1.as_ref().unwrap_err().contains("ignore"));
        assert_eq!(of(&table, 100_000).len(), 7);
    }

    #[test]
    fn a_tree_is_what_comes_on_top_of_its_re_stat() {
        let (restat, look, keep) = ([(10.0, 20.0)], [(14.0, 26.0)], [(6.0, 4.0)]);
        close(tree(&samples(&restat), &samples(&look), &samples(&keep)), 1.0, 0.5);
        // Never less than the tree itself.
        close(tree(&samples(&look), &samples(&restat), &samples(&keep)), 6.0 / 14.0, 4.0 / 26.0);
    }

    #[test]
    fn sizes_are_short() {
        let labels = [200, 10_000, 100_000, 1_000_000, 1_500_000].map(label);
        assert_eq!(labels, ["200", "10k", "100k", "1m", "1500k"]);
    }
}
