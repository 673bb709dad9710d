//! `cargo xtask bench agents`: what an agent costs beyond itself, with a stand-in that prints a made-up session.
//!
//! Two questions. How much longer is an attempt than the agent alone: once behind its adapter only, and once in a whole
//! run, where looks, journal, brief and fence come on top. And what 100 MB of events cost to be understood, against others
//! who read the same pipe in the same rounds.

mod recording;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use self::recording::{Held, Voice};
use super::arena::{Arena, Bench, Plan};
use super::{Figures, measure, median, real};
use crate::house;

const AIM_OVERHEAD_MS: f64 = 50.0;
const AIM_CPU_S: f64 = 1.0;
const AIM_GROWN_MIB: f64 = 20.0;
/// Attempts of one run, which share what a run costs once.
const ATTEMPTS: u32 = 10;

/// A naive reader in another language: every line parsed, nothing kept.
const PYTHON: &str = "import sys, json\nfor line in sys.stdin.buffer:\n    json.loads(line)";

/// What `bench agents` was asked for.
pub(crate) struct Asked {
    json: bool,
    rounds: u32,
    megabytes: u64,
    binary: Option<PathBuf>,
    contest: Option<PathBuf>,
    folder: PathBuf,
}

impl Asked {
    pub(crate) fn read(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            json: false,
            rounds: 11,
            megabytes: 100,
            binary: None,
            contest: None,
            folder: std::env::temp_dir(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            let expected = || format!("{word}: a whole number above 0 is expected");
            match *word {
                "--json" => asked.json = true,
                "--rounds" => asked.rounds = value()?.parse().ok().filter(|n| *n > 0).ok_or_else(expected)?,
                "--mb" => asked.megabytes = value()?.parse().ok().filter(|n| *n > 0).ok_or_else(expected)?,
                "--bin" => asked.binary = Some(PathBuf::from(value()?)),
                "--contest" => asked.contest = Some(PathBuf::from(value()?)),
                "--dir" => asked.folder = PathBuf::from(value()?),
                _ => return Err(format!("unknown: {word}")),
            }
        }
        Ok(asked)
    }
}

pub(crate) fn bench(asked: &Asked) -> Result<(), String> {
    let found = |path: &PathBuf| path.canonicalize().map_err(|e| format!("{}: {e}", path.display()));
    let binary = asked.binary.as_ref().map_or_else(house::build_release, found)?;
    let contest = asked.contest.as_ref().map_or_else(build, found)?;
    let bench = Bench { binary, folder: found(&asked.folder)? };
    let mut figures = Figures::new(asked.json);
    bench.describe(&mut figures)?;
    for voice in Voice::ALL {
        let stage = Stage::new(&bench, &contest, voice, 0)?;
        stage.overhead(asked.rounds, &mut figures)?;
    }
    for voice in Voice::ALL {
        let stage = Stage::new(&bench, &contest, voice, asked.megabytes * 1_000_000)?;
        stage.events(asked.rounds, &mut figures)?;
    }
    figures.end();
    Ok(())
}

/// Builds the contenders as users get them.
fn build() -> Result<PathBuf, String> {
    let words = ["build", "--release", "--locked", "--package", "triphammer-agent", "--example", "contest"];
    let status = house::cargo(words).status().map_err(|e| format!("starting `cargo build`: {e}"))?;
    if !status.success() {
        return Err(format!("building the contenders failed ({status})"));
    }
    let metadata = house::metadata()?;
    let target = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join("release/examples/contest"))
}

/// An arena with a stand-in for one agent.
struct Stage<'a> {
    arena: Arena<'a>,
    bench: &'a Bench,
    contest: &'a Path,
    voice: Voice,
    session: PathBuf,
    program: PathBuf,
    held: Held,
}

impl<'a> Stage<'a> {
    fn new(bench: &'a Bench, contest: &'a Path, voice: Voice, bytes: u64) -> Result<Self, String> {
        let arena = Arena::furnished(bench, &Plan { files: 100, git: false, attempts: ATTEMPTS })?;
        let session = arena.root.join("session.jsonl");
        let held = recording::write(voice, bytes, &session)?;
        let program = arena.root.join(voice.name());
        let script = format!("#!/bin/sh\nexec cat '{}'\n", session.display());
        std::fs::write(&program, script)
            .and_then(|()| std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)))
            .map_err(|e| format!("writing {}: {e}", program.display()))?;
        let agent = format!(
            "\n[agents.stand-in]\nkind = \"{}\"\nargv = [{}]\n",
            voice.name(),
            json!(program.to_string_lossy())
        );
        arena.add("home/triphammer.toml", &agent)?;
        Ok(Self { arena, bench, contest, voice, session, program, held })
    }

    fn overhead(&self, rounds: u32, figures: &mut Figures) -> Result<(), String> {
        let (mut bare, mut behind, mut whole, mut ticks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let told = self.contest(&["rounds", self.voice.name()], &[ATTEMPTS.to_string()])?;
            bare.push(mean(&told["bare_ms"]));
            behind.push(mean(&told["behind_adapter_ms"]));
            let (attempt, tick) = self.run()?;
            whole.push(attempt);
            ticks.push(tick);
        }
        let over = |all: &[f64]| median(all.iter().zip(&bare).map(|(all, bare)| all - bare).collect());
        let (adapter, attempt) = (over(&behind), over(&whole));
        let (bare, behind, whole, ticks) =
            (median(bare.clone()), median(behind), median(whole), median(ticks));
        let (name, each) = (self.voice.name(), median_of_one(rounds));
        figures.put(
            &format!("overhead_{name}"),
            &format!("overhead, {name}"),
            json!({
                "bare_ms": bare, "behind_adapter_ms": behind, "adapter_adds_ms": adapter,
                "attempt_ms": whole, "attempt_adds_ms": attempt, "tick_waits_ms": ticks,
                "aim_ms": AIM_OVERHEAD_MS, "rounds": rounds, "attempts_a_round": ATTEMPTS,
            }),
            &format!(
                "an attempt of a whole run adds {attempt:.1} ms (aim {AIM_OVERHEAD_MS}, {}), of which the adapter and its \
                 supervision {adapter:.1} ms and waiting for the clock that stamps files {ticks:.1} ms\n{:22} bare {bare:.1} \
                 ms, behind the adapter {behind:.1} ms ({:.1} times as long), whole attempt {whole:.1} ms ({:.1} times); {each}",
                told(attempt <= AIM_OVERHEAD_MS),
                "",
                behind / bare,
                whole / bare,
            ),
        );
        Ok(())
    }

    /// Milliseconds of one attempt of a run without its gates, and of it those spent waiting for the clock.
    fn run(&self) -> Result<(f64, f64), String> {
        self.arena.forget_runs();
        let mut command = self.arena.command(&self.bench.binary);
        command.args(["run", "specs/bench.md", "--agent", "stand-in"]);
        let output = command.output().map_err(|e| format!("starting the run: {e}"))?;
        let timings = self
            .arena
            .timings(output.status.code(), ATTEMPTS)
            .map_err(|what| format!("{what}\n{}", String::from_utf8_lossy(&output.stderr).trim()))?;
        Ok((timings.each(timings.total - timings.gates), timings.each(timings.tick_waits)))
    }

    /// What the same events cost each of those who read them.
    fn events(&self, rounds: u32, figures: &mut Figures) -> Result<(), String> {
        let mut all: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut python = Vec::new();
        for _ in 0..rounds {
            for who in ["hear", "drain"] {
                let told = self.contest(&[who, self.voice.name()], &[])?;
                all.entry(who).or_default().push(told);
            }
            for who in ["values", "pipe"] {
                let told = output(Command::new(self.contest).arg(who).arg(&self.program))?;
                all.entry(who).or_default().push(told);
            }
            python.extend(self.python());
        }
        self.check(&all)?;
        let of = |who: &str, what: &str| -> Vec<f64> {
            all[who].iter().map(|told| told[what].as_f64().unwrap_or(f64::NAN)).collect()
        };
        let cpu = |who: &str| median(of(who, "cpu_ms")) / 1e3;
        let (hear, drain, values, pipe) = (cpu("hear"), cpu("drain"), cpu("values"), cpu("pipe"));
        let parsing =
            median(of("hear", "cpu_ms").iter().zip(of("drain", "cpu_ms")).map(|(a, b)| a - b).collect())
                / 1e3;
        let naive = values - pipe;
        let grown = median(of("hear", "grown_kib")) / 1024.0;
        let python_s = (!python.is_empty()).then(|| median(python));
        let python_told = python_s
            .map_or_else(|| "no python3 here".to_owned(), |s| format!("python3's json.loads {s:.2} s"));
        let (name, mb) = (self.voice.name(), real(self.held.bytes) / 1e6);
        figures.put(
            &format!("events_{name}"),
            &format!("events, {name}"),
            json!({
                "bytes": self.held.bytes, "events": self.held.events, "longest_line": self.held.longest,
                "parsing_cpu_s": parsing, "aim_cpu_s": AIM_CPU_S, "adapter_cpu_s": hear, "drain_cpu_s": drain,
                "values_cpu_s": values, "pipe_cpu_s": pipe, "python_cpu_s": python_s,
                "grown_mib": grown, "aim_grown_mib": AIM_GROWN_MIB, "rounds": rounds,
            }),
            &format!(
                "{mb:.0} MB, {} events: {parsing:.3} s of CPU to understand them (aim {AIM_CPU_S}, {}); memory grows by {grown:.1} \
                 MiB (aim {AIM_GROWN_MIB}, {})\n{:22} whole adapter {hear:.3} s, without understanding {drain:.3} s; every line a \
                 serde_json::Value {naive:.3} s ({:.1} times ours) beside its pipe's {pipe:.3} s; {python_told}\n{:22} CPU of the \
                 reading process by its own clock; ours is the adapter's less the same launch read and logged unheard; {}",
                self.held.events,
                told(parsing <= AIM_CPU_S),
                told(grown <= AIM_GROWN_MIB),
                "",
                naive / parsing,
                "",
                median_of_one(rounds),
            ),
        );
        Ok(())
    }

    /// A reader that is fast because it reads something else has won nothing.
    fn check(&self, all: &BTreeMap<&str, Vec<Value>>) -> Result<(), String> {
        for told in &all["hear"] {
            let receipt = &told["receipt"];
            let commands = self.held.commands.min(10_000);
            let right = told["bytes"] == self.held.bytes
                && told["events"] == self.held.events
                && receipt["commands"] == commands
                && receipt["fault"].is_null()
                && receipt["tokens"]["output"] == 63;
            if !right {
                return Err(format!("the session {:?} was heard as {told}", self.held));
            }
        }
        let events = all["values"].iter().all(|told| told["events"] == self.held.events);
        let bytes = all["drain"].iter().all(|told| told["bytes"] == self.held.bytes);
        if events && bytes { Ok(()) } else { Err("not everybody read the whole session".to_owned()) }
    }

    fn contest(&self, words: &[&str], more: &[String]) -> Result<Value, String> {
        let mut command = Command::new(self.contest);
        command.args(words).arg(&self.program).args(more).arg(self.arena.root.join("stage"));
        output(&mut command)
    }

    /// Seconds of CPU; nothing where there is no python.
    fn python(&self) -> Option<f64> {
        let file = std::fs::File::open(&self.session).ok()?;
        let mut command = Command::new("python3");
        command.args(["-c", PYTHON]).stdin(file).stdout(Stdio::null()).stderr(Stdio::null());
        let usage = measure::run(&mut command).ok()?;
        usage.status.success().then_some(usage.cpu.as_secs_f64())
    }
}

/// What a program prints, as JSON.
fn output(command: &mut Command) -> Result<Value, String> {
    command.stdin(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().map_err(|e| format!("starting {name}: {e}"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return Err(format!("{name} failed ({}): {said}", out.status));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| format!("reading what {name} printed: {e}"))
}

fn mean(list: &Value) -> f64 {
    let all: Vec<f64> = list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    all.iter().sum::<f64>() / real(all.len() as u64)
}

const fn told(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn median_of_one(rounds: u32) -> String {
    format!("medians of {rounds} rounds, all in turn")
}
