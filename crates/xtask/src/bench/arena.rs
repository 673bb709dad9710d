//! A home to run in, made for one benchmark and removed after it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::{Figures, median, real};

/// What is benchmarked, and where.
pub(crate) struct Bench {
    pub(crate) binary: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Bench {
    /// On what machine the figures were taken: they mean nothing without it.
    pub(crate) fn describe(&self, figures: &mut Figures) -> Result<(), String> {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let load = std::fs::read_to_string("/proc/loadavg").ok();
        let load = load.as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(&self.folder).output();
        let kind = kind.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
        let sync_ms = self.sync_ms()?;
        let shown_load = load.map_or_else(|| "unknown".to_owned(), |load| load.to_string());
        figures.put("binary", "binary", json!(self.binary), &self.binary.display().to_string());
        figures.put(
            "machine",
            "machine",
            json!({ "cores": cores, "load": load, "file_system": kind, "sync_ms": sync_ms }),
            &format!(
                "{cores} cores, load {shown_load}, {kind} at {}, where one sync takes {sync_ms:.2} ms",
                self.folder.display()
            ),
        );
        Ok(())
    }

    /// What a small append and its sync cost here, in the middle of 50.
    fn sync_ms(&self) -> Result<f64, String> {
        let arena = Arena::new(self)?;
        let path = arena.root.join("sync");
        let failed = |e| format!("writing {}: {e}", path.display());
        let mut file = File::create(&path).map_err(failed)?;
        let mut times = Vec::new();
        for _ in 0..50 {
            let began = Instant::now();
            file.write_all(&[b'x'; 500]).and_then(|()| file.sync_data()).map_err(failed)?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(times))
    }
}

/// What a run in an arena is like.
pub(crate) struct Plan {
    /// Files in the workspace.
    pub(crate) files: u32,
    /// Whether the workspace is a git repository.
    pub(crate) git: bool,
    /// The spec's attempts; the breaker never fires before them.
    pub(crate) attempts: u32,
}

/// A home with a workspace below it, and folders for everything that a run keeps outside them.
pub(crate) struct Arena<'a> {
    bench: &'a Bench,
    pub(crate) root: PathBuf,
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.root) {
            eprintln!("{} is left over: {e}", self.root.display());
        }
    }
}

impl<'a> Arena<'a> {
    fn new(bench: &'a Bench) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = bench.folder.join(format!("triphammer-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&root).map_err(|e| format!("making {}: {e}", root.display()))?;
        Ok(Self { bench, root })
    }

    /// Makes a home whose one gate is always red and costs next to nothing.
    pub(crate) fn furnished(bench: &'a Bench, plan: &Plan) -> Result<Self, String> {
        let arena = Self::new(bench)?;
        let proofs = plan.attempts.max(2);
        arena.write("home/triphammer.toml", &format!("[breaker]\nproofs = {proofs}\n"))?;
        arena.write(
            "home/gates/never.toml",
            "[[gate]]\nname = \"never\"\nkind = \"test\"\nrun = [\"false\"]\n",
        )?;
        arena.write(
            "home/specs/bench.md",
            &format!(
                "---\nstatus: locked\nattempts: {}\ngates: [never]\nworkspace: work\n---\n# Goal\nDo nothing.\n\n\
                 ## Acceptance\n- nothing moves\n",
                plan.attempts
            ),
        )?;
        for folder in ["user", "state", "config", "cache", "tmp", "home/work"] {
            let path = arena.root.join(folder);
            std::fs::create_dir_all(&path).map_err(|e| format!("making {}: {e}", path.display()))?;
        }
        arena.fill(plan.files)?;
        if plan.git {
            arena.commit()?;
        }
        Ok(arena)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.root.join(path);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("writing {}: {e}", path.display()))
    }

    /// Adds to a file that is there.
    pub(crate) fn add(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.root.join(path);
        let file = std::fs::OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| format!("adding to {}: {e}", path.display()))
    }

    /// Source files of some ten lines, a hundred in a folder; no two have the same content.
    fn fill(&self, files: u32) -> Result<(), String> {
        let mut text = String::new();
        for number in 0..files {
            text.clear();
            for line in 0..10 {
                let _ = writeln!(text, "pub fn f{number}_{line}() -> u32 {{ {number} + {line} }}");
            }
            self.write(&format!("home/work/part{}/file{number}.rs", number / 100), &text)?;
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), String> {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        for words in
            [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message", "start"]]
        {
            let mut git = self.command("git");
            git.current_dir(self.work()).args(identity).args(words);
            let status = git.status().map_err(|e| format!("starting git: {e}"))?;
            if !status.success() {
                return Err(format!("`git {}` failed ({status})", words.join(" ")));
            }
        }
        Ok(())
    }

    fn work(&self) -> PathBuf {
        self.root.join("home/work")
    }

    /// A program with an environment that is the same on every machine.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).current_dir(self.root.join("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let folders = [
            ("HOME", "user"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("TMPDIR", "tmp"),
        ];
        command.envs(folders.map(|(name, folder)| (name, self.root.join(folder))));
        command.env("LC_ALL", "C").env("TRIPHAMMER_TIMINGS", self.timings_file());
        command
    }

    /// The arguments of a run with that agent.
    pub(crate) fn arguments(agent: &str) -> [&str; 4] {
        ["run", "specs/bench.md", "--agent-cmd", agent]
    }

    /// The product, running the spec with that agent.
    pub(crate) fn run(&self, agent: &str) -> Command {
        let mut command = self.command(&self.bench.binary);
        command.args(Self::arguments(agent));
        command
    }

    fn timings_file(&self) -> PathBuf {
        self.root.join("timings.json")
    }

    /// Where the last run's time went. An error when the run did not go as planned: its figures would mean nothing.
    pub(crate) fn timings(&self, exit: Option<i32>, attempts: u32) -> Result<Timings, String> {
        // Exhausted or stalled, whichever the last attempt proves.
        if !matches!(exit, Some(1 | 3)) {
            return Err(format!(
                "the run ended with exit code {exit:?}, not as exhausted (1) or stalled (3)"
            ));
        }
        let path = self.timings_file();
        let text = std::fs::read(&path).map_err(|e| {
            format!("the binary left no timings (TRIPHAMMER_TIMINGS) at {}: {e}", path.display())
        })?;
        let _ = std::fs::remove_file(&path);
        let value = serde_json::from_slice(&text).map_err(|e| format!("reading {}: {e}", path.display()))?;
        let timings = Timings::read(&value)?;
        if timings.attempts != u64::from(attempts) {
            return Err(format!("the run made {} attempts, not {attempts}", timings.attempts));
        }
        Ok(timings)
    }

    /// Bytes on disk below the runs' folder: blocks, not lengths.
    pub(crate) fn runs_on_disk(&self) -> u64 {
        on_disk(&self.root.join("home/runs"))
    }

    /// Removes the runs, so that the next one starts like the first.
    pub(crate) fn forget_runs(&self) {
        let _ = std::fs::remove_dir_all(self.root.join("home/runs"));
    }
}

fn on_disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => on_disk(&entry.path()),
            Ok(found) => found.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Where a run's time went, as the binary says; times in milliseconds.
pub(crate) struct Timings {
    pub(crate) attempts: u64,
    pub(crate) tick_waits: f64,
    /// Tick waits included.
    pub(crate) looks: f64,
    pub(crate) agents: f64,
    pub(crate) gates: f64,
    pub(crate) journal: f64,
    pub(crate) journal_lines: u64,
    pub(crate) total: f64,
}

impl Timings {
    fn read(value: &Value) -> Result<Self, String> {
        let lacks = |name: &str| format!("the timings lack `{name}`");
        let time = |name: &str| value[name].as_f64().ok_or_else(|| lacks(name));
        let count = |name: &str| value[name].as_u64().ok_or_else(|| lacks(name));
        Ok(Self {
            attempts: count("attempts")?,
            tick_waits: time("tick_waits_ms")?,
            looks: time("looks_ms")?,
            agents: time("agents_ms")?,
            gates: time("gates_ms")?,
            journal: time("journal_ms")?,
            journal_lines: count("journal_lines")?,
            total: time("total_ms")?,
        })
    }

    /// A part's share of one attempt.
    pub(crate) fn each(&self, part: f64) -> f64 {
        part / real(self.attempts.max(1))
    }

    /// The loop's own time: not the agent's, not the gates', and not waiting for the clock that stamps files.
    pub(crate) fn own(&self) -> f64 {
        self.total - self.agents - self.gates - self.tick_waits
    }
}
