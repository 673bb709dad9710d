//! `cargo xtask bench workspace`: the fingerprint against others who look at the same tree, interleaved in one run. Only
//! the ratios carry over to another machine; they stand beside the targets that they are to reach.

mod contest;
mod forest;
mod peers;
mod rows;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::contest::Contest;
use self::forest::Forest;
use self::peers::Peer;
use self::rows::{Row, Table, label};
use super::{measure, median, real};
use crate::house;

/// Tree sizes when none are asked for. A million files are there on request.
const FILES: [u64; 2] = [10_000, 100_000];

/// Peak memory of one snapshot of a million files.
const AIM_MIB: u32 = 80;

/// Time of the difference of two attempts.
const AIM_DIFF_MS: u32 = 50;

/// What `bench workspace` was asked for.
pub(crate) struct Asked {
    json: bool,
    files: Vec<u64>,
    rounds: Option<u64>,
    contest: Option<PathBuf>,
    folder: Option<PathBuf>,
}

impl Asked {
    pub(crate) fn read(words: &[&str]) -> Result<Self, String> {
        let mut asked =
            Self { json: false, files: FILES.to_vec(), rounds: None, contest: None, folder: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let number = |text: &str| match text.parse() {
                Ok(0) | Err(_) => Err(format!("{word} {text}: a whole number above 0 is expected")),
                Ok(number) => Ok(number),
            };
            match *word {
                "--json" => asked.json = true,
                "--files" => asked.files = value()?.split(',').map(number).collect::<Result<_, _>>()?,
                "--rounds" => asked.rounds = Some(number(value()?)?),
                "--bin" => asked.contest = Some(PathBuf::from(value()?)),
                "--dir" => asked.folder = Some(PathBuf::from(value()?)),
                _ => return Err(format!("unknown: {word}")),
            }
        }
        Ok(asked)
    }

    /// An odd number, so that the median is a round; fewer where one takes long.
    fn rounds_for(&self, files: u64) -> u64 {
        self.rounds.unwrap_or(if files >= 1_000_000 { 3 } else { 11 })
    }
}

pub(crate) fn bench(asked: &Asked) -> Result<(), String> {
    let figures = figures(asked)?;
    if asked.json {
        println!("{figures:#}");
    }
    Ok(())
}

/// Measures, tells a person on the way, and returns what a program reads.
fn figures(asked: &Asked) -> Result<Value, String> {
    let contest = match &asked.contest {
        Some(contest) => contest.canonicalize().map_err(|e| format!("{}: {e}", contest.display()))?,
        None => build()?,
    };
    let folder = match &asked.folder {
        Some(folder) => folder.clone(),
        None => target()?.join("bench-trees"),
    };
    let mut report = Report::begin(asked.json, &folder)?;
    for files in &asked.files {
        let rounds = asked.rounds_for(*files);
        report.talk(&format!("\n{files} files, {rounds} rounds: building and checking the tree .."));
        let forest = Forest::plant(&folder, *files)?;
        measure_tree(&contest, &forest, rounds, &mut report)?;
    }
    Ok(report.end())
}

/// Builds the contenders as users get them.
fn build() -> Result<PathBuf, String> {
    let package = ["--package", "triphammer-workspace", "--example", "contest"];
    let words = ["build", "--release", "--locked"].into_iter().chain(package);
    let status = house::cargo(words).status().map_err(|e| format!("starting `cargo build`: {e}"))?;
    if !status.success() {
        return Err(format!("building the contenders failed ({status})"));
    }
    Ok(target()?.join("release/examples/contest"))
}

fn target() -> Result<PathBuf, String> {
    let metadata = house::metadata()?;
    let target = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target directory")?;
    Ok(PathBuf::from(target))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What is printed: lines as they come, or one object at the end.
struct Report {
    json: bool,
    values: Map<String, Value>,
    ratios: Map<String, Value>,
}

/// What is told of each tree beside the ratios, each under a key of its own.
const PARTS: [&str; 8] =
    ["trees", "rounds", "medians_ms", "ns_per_file", "floor", "least", "peak_mib", "attempts"];

impl Report {
    fn begin(json: bool, folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("making {}: {e}", folder.display()))?;
        let cores = cores();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<f64> = load.split(' ').take(3).filter_map(|number| number.parse().ok()).collect();
        let kind = std::process::Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output();
        let kind = kind.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
        let mut values = Map::new();
        values.insert("schema".to_owned(), json!(1));
        values.insert(
            "machine".to_owned(),
            json!({ "cores": cores, "load_average": load, "file_system": kind, "folder": folder }),
        );
        for part in PARTS {
            values.insert(part.to_owned(), json!({}));
        }
        values.insert("not_measured".to_owned(), json!([]));
        let report = Self { json, values, ratios: Map::new() };
        report.talk(&format!("{cores} cores, load {load:?}, {kind} at {}", folder.display()));
        Ok(report)
    }

    /// A line for a person.
    fn talk(&self, line: &str) {
        if !self.json {
            println!("{line}");
        }
    }

    /// A figure of one tree.
    fn put(&mut self, part: &str, tree: &str, value: Value) {
        if let Some(Value::Object(part)) = self.values.get_mut(part) {
            part.insert(tree.to_owned(), value);
        }
    }

    /// A row that could not be had, and why.
    fn lacks(&mut self, row: &str, why: &str) {
        self.talk(&format!("  {row:<24} not measured: {why}"));
        if let Some(Value::Array(all)) = self.values.get_mut("not_measured") {
            all.push(json!({ "row": row, "why": why }));
        }
    }

    /// A row of the table; `least` is what it would be for a walk that costs nothing but its system calls, spread
    /// over all cores.
    fn row(&mut self, name: String, row: &Row, least: Option<f64>) {
        let Row { wall, cpu, target, .. } = *row;
        let met = wall <= target;
        let told = if met { "met" } else { "MISSED" };
        let bound = least.map(|least| format!("  (the system calls alone {least:.3})")).unwrap_or_default();
        self.talk(&format!("  {name:<24} wall {wall:.3}  cpu {cpu:.3}  target {target:.2}  {told}{bound}"));
        if let Some(least) = least {
            self.put("least", &name, json!(least));
        }
        self.ratios.insert(name, json!({ "wall": wall, "cpu": cpu, "target": target, "met": met }));
    }

    fn end(mut self) -> Value {
        self.values.insert("ratios".to_owned(), Value::Object(self.ratios));
        Value::Object(self.values)
    }
}

/// All figures of one tree.
fn measure_tree(contest: &Path, forest: &Forest, rounds: u64, report: &mut Report) -> Result<(), String> {
    let tree = label(forest.files);
    let mut contest = Contest::begin(contest, forest)?;
    let peers = peers::installed();
    let set = contest.agreed(&peers)?;
    report.talk(&format!("  {} agree on {} files, sha256 {}", set.agreed.join(", "), set.files, set.sha256));
    report.put("trees", &tree, json!({ "files": set.files, "sha256": set.sha256, "agreed": set.agreed }));
    report.put("rounds", &tree, json!(rounds));

    let samples = contest.rounds(&peers, rounds)?;
    tell_times(&samples, forest.files, &tree, report);
    let floor = contest.floor().map(|calls| Floor::new(calls, forest.files));
    if let Some(floor) = &floor {
        tell_floor(floor, &samples, &tree, report);
    }
    let peak = contest.peak_mib()?;
    let aim = if forest.files >= 1_000_000 { format!(" (aim {AIM_MIB})") } else { String::new() };
    report.talk(&format!("  one walk as a process: peak {peak:.1} MiB{aim}"));
    report.put("peak_mib", &tree, json!(peak));

    for (name, row) in rows::of(&samples, forest.files) {
        let name = format!("{name}@{tree}");
        match row {
            Ok(row) => {
                let least = floor.as_ref().and_then(|floor| row.least(floor.walk_ms, cores()));
                report.row(name, &row, least);
            }
            Err(why) => report.lacks(&name, &why),
        }
    }
    if peers.contains(&Peer::GitStatus) {
        return attempts(&contest, forest, rounds, &tree, report);
    }
    report.lacks(&format!("tree/restat@{tree}"), "git, which tells differences, is not installed");
    Ok(())
}

fn tell_times(samples: &Table, files: u64, tree: &str, report: &mut Report) {
    let (mut medians, mut each) = (Map::new(), Map::new());
    for (who, all) in samples {
        let per_file = all.wall() * 1e6 / real(files);
        report.talk(&format!(
            "  {who:<24} {:>9.2} ms wall {:>9.2} ms cpu {per_file:>7.0} ns a file",
            all.wall(),
            all.cpu()
        ));
        medians.insert(who.clone(), json!({ "wall": all.wall(), "cpu": all.cpu(), "all": all.walls() }));
        each.insert(who.clone(), json!(per_file));
    }
    report.put("medians_ms", tree, Value::Object(medians));
    report.put("ns_per_file", tree, Value::Object(each));
}

/// What the system calls cost by themselves, on one thread.
struct Floor {
    calls: Value,
    files: u64,
    walk_ms: f64,
    restat_ms: f64,
}

impl Floor {
    fn new(calls: Value, files: u64) -> Self {
        let of = |name: &str| calls[name].as_f64().unwrap_or(f64::NAN);
        Self { walk_ms: of("walk_ms"), restat_ms: of("restat_ms"), calls, files }
    }
}

fn tell_floor(floor: &Floor, samples: &Table, tree: &str, report: &mut Report) {
    let mut values = floor.calls.clone();
    for (who, ms) in [("walk", floor.walk_ms), ("restat", floor.restat_ms)] {
        let each = ms * 1e6 / real(floor.files);
        let above = samples.get(who).map_or(f64::NAN, |all| all.cpu() / ms);
        report.talk(&format!(
            "  the system calls of a {who}, on one thread: {each:.0} ns a file; ours uses {above:.2} of that as cpu"
        ));
        values[format!("{who}_ns_per_file")] = json!(each);
        values[format!("{who}_cpu_to_floor")] = json!(above);
    }
    let calls = ["null", "statx", "open", "getdents", "getdents_end", "close", "path_open", "path_close"];
    let told = |call: &&str| {
        let ns = floor.calls[format!("{call}_ns")].as_f64().unwrap_or(f64::NAN);
        format!("{call} {ns:.0}")
    };
    let told: Vec<String> = calls.iter().map(told).collect();
    report.talk(&format!("  ns a call: {}", told.join(", ")));
    report.put("floor", tree, values);
}

/// Reading and keeping what an attempt changed, against one re-stat; and the difference of two attempts.
fn attempts(
    contest: &Contest<'_>,
    forest: &Forest,
    rounds: u64,
    tree: &str,
    report: &mut Report,
) -> Result<(), String> {
    let changed = rows::CHANGED.min(forest.files.div_ceil(2));
    let attempts = contest.attempts(rounds, changed)?;
    let [restat, look, keep, diff] = ["restat", "look", "keep", "diff"].map(|part| &attempts[part]);
    report.talk(&format!(
        "  after {changed} changed files: re-stat {:.2} ms, look {:.2}, tree {:.2}; difference of two attempts {:.2} ms (aim {AIM_DIFF_MS})",
        restat.wall(),
        look.wall(),
        keep.wall(),
        diff.wall()
    ));
    let values: Map<String, Value> = attempts
        .iter()
        .map(|(part, all)| (format!("{part}_ms"), json!({ "wall": all.wall(), "cpu": all.cpu() })))
        .collect();
    report.put("attempts", tree, Value::Object(values));
    if forest.files >= rows::LARGE {
        report.row(format!("tree/restat@{tree}"), &rows::tree(restat, look, keep), None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a tree that is built in a moment; its figures mean nothing, but all who are installed take part.
    #[test]
    fn a_small_contest_has_the_shape_of_a_large_one() {
        let built =
            house::cargo(["build", "--locked", "--package", "triphammer-workspace", "--example", "contest"])
                .status()
                .unwrap();
        assert!(built.success());
        let folder = std::env::temp_dir().join(format!("triphammer-bench-test-{}", std::process::id()));
        let contest = target().unwrap().join("debug/examples/contest");
        let (contest, place) = (contest.to_str().unwrap(), folder.to_str().unwrap());
        let words = ["--files", "200", "--rounds", "1", "--json", "--bin", contest, "--dir", place];
        let figures = figures(&Asked::read(&words).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        let figures = figures.unwrap();

        let ratios = figures["ratios"].as_object().unwrap();
        let mut expected = vec!["restat/walk@200", "walk/ignore@200", "walk/walkdir@200"];
        expected.extend(crate::tools::is_on_path("find").then_some("walk/find@200"));
        expected.extend(crate::tools::is_on_path("git").then_some("walk/git-status@200"));
        expected.sort_unstable();
        let mut names: Vec<&str> = ratios.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, expected);
        for (name, row) in ratios {
            let number =
                |key: &str| row[key].as_f64().filter(|n| *n > 0.0).unwrap_or_else(|| panic!("{name} {row}"));
            let (wall, target) = (number("wall"), number("target"));
            assert!(number("cpu") > 0.0 && row.as_object().unwrap().len() == 4, "{name} {row}");
            assert_eq!(row["met"], wall <= target, "{name} {row}");
        }
        assert!(figures["peak_mib"]["200"].as_f64().unwrap() > 0.5);
        assert_eq!(figures["trees"]["200"]["files"], 200);
        let agreed = figures["trees"]["200"]["agreed"].as_array().unwrap();
        assert_eq!(agreed.len(), 4 + peers::installed().len());
        let parts = ["restat_ms", "look_ms", "keep_ms", "diff_ms"];
        for part in parts.iter().filter(|_| peers::installed().contains(&Peer::GitStatus)) {
            assert!(figures["attempts"]["200"][part]["wall"].as_f64().unwrap() > 0.0, "{part}");
        }
        for part in ["walk_ns_per_file", "restat_ns_per_file", "statx_ns", "null_ns"] {
            assert!(figures["floor"]["200"][part].as_f64().unwrap() > 0.0, "{part}");
        }
        assert_eq!(figures["rounds"]["200"], 1);
        assert!(figures["machine"]["cores"].as_u64().unwrap() > 0);
    }

    #[test]
    fn reads_what_is_asked_for() {
        let asked = Asked::read(&["--files", "200,1000000", "--json", "--rounds", "5"]).unwrap();
        assert!(asked.json && asked.files == [200, 1_000_000] && asked.rounds_for(200) == 5);
        let asked = Asked::read(&[]).unwrap();
        assert_eq!((asked.rounds_for(100_000), asked.rounds_for(1_000_000)), (11, 3));
        for wrong in [&["--files"][..], &["--files", "0"], &["--files", "1,x"], &["--rounds", "-1"], &["x"]] {
            assert!(Asked::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
