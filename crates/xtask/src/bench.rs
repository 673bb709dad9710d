//! `cargo xtask bench`: figures, each beside its aim. Nothing here passes or fails on a figure.

mod agents;
mod arena;
mod build;
mod files;
pub(crate) mod flood;
mod help;
pub(crate) mod measure;
mod overhead;
mod syncs;
mod workspace;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::house;

/// What a benchmark prints: lines for a person, or one JSON object.
pub(crate) struct Figures {
    json: bool,
    values: Map<String, Value>,
}

impl Figures {
    fn new(json: bool) -> Self {
        let mut values = Map::new();
        values.insert("schema".to_owned(), json!(1));
        Self { json, values }
    }

    /// A figure under its key, and how it reads under its name.
    fn put(&mut self, key: &str, name: &str, value: Value, line: &str) {
        if !self.json {
            println!("{name:<22} {line}");
        }
        self.values.insert(key.to_owned(), value);
    }

    fn end(self) {
        if self.json {
            println!("{:#}", Value::Object(self.values));
        }
    }
}

/// The parts of `bench loop`.
const PARTS: [&str; 5] = ["loop", "syncs", "files", "output", "help"];

/// What `bench loop` was asked for.
struct Asked {
    json: bool,
    parts: Vec<String>,
    binary: Option<PathBuf>,
    folder: PathBuf,
}

impl Asked {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            json: false,
            parts: PARTS.map(str::to_owned).to_vec(),
            binary: None,
            folder: std::env::temp_dir(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match *word {
                "--json" => asked.json = true,
                "--only" => asked.parts = value()?.split(',').map(str::to_owned).collect(),
                "--bin" => asked.binary = Some(PathBuf::from(value()?)),
                "--dir" => asked.folder = PathBuf::from(value()?),
                _ => return Err(format!("unknown: {word}")),
            }
        }
        match asked.parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
            Some(part) => Err(format!("--only: no part {part}; there are {}", PARTS.join(", "))),
            None => Ok(asked),
        }
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.iter().any(|wanted| wanted == part)
    }
}

pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    match words {
        ["build"] => build::bench(Figures::new(false)),
        ["build", "--json"] => build::bench(Figures::new(true)),
        ["agents", rest @ ..] => agents::bench(&agents::Asked::read(rest)?),
        ["loop", rest @ ..] => bench_loop(&Asked::read(rest)?),
        ["workspace", rest @ ..] => workspace::bench(&workspace::Asked::read(rest)?),
        _ => Err("bench what? `bench loop`, `bench agents`, `bench workspace` or `bench build`".to_owned()),
    }
}

fn bench_loop(asked: &Asked) -> Result<(), String> {
    let binary = match &asked.binary {
        Some(binary) => binary.canonicalize().map_err(|e| format!("{}: {e}", binary.display()))?,
        None => house::build_release()?,
    };
    let folder = asked.folder.canonicalize().map_err(|e| format!("{}: {e}", asked.folder.display()))?;
    let bench = arena::Bench { binary, folder };
    let mut figures = Figures::new(asked.json);
    bench.describe(&mut figures)?;
    if asked.wants("help") {
        help::bench(&bench, &mut figures)?;
    }
    if asked.wants("loop") {
        overhead::bench(&bench, &mut figures)?;
    }
    if asked.wants("syncs") {
        syncs::bench(&bench, &mut figures)?;
    }
    if asked.wants("files") {
        files::bench(&bench, &mut figures)?;
    }
    if asked.wants("output") {
        flood::bench(&bench, &mut figures)?;
    }
    figures.end();
    Ok(())
}

/// A count as a real number; no figure here comes near the 2^53 where that would lose anything.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(count: u64) -> f64 {
    count as f64
}

/// The middle value; the lower one of two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_value() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn reads_what_is_asked_for() {
        let asked = Asked::read(&["--only", "loop,help", "--json"]).unwrap();
        assert!(asked.json && asked.wants("help") && !asked.wants("files"));
        assert!(Asked::read(&[]).unwrap().wants("files"));
        assert!(Asked::read(&["--only", "nothing"]).is_err());
        assert!(Asked::read(&["--only"]).is_err());
        assert!(Asked::read(&["--quick"]).is_err());
    }
}
