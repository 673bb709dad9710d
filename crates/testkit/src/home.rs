//! A home in a temporary folder, and the binary at work in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use triphammer_model::RunId;

use crate::binary::binary;
use crate::run_files::RunFiles;

/// A home with its own state folder and `HOME`, removed at the end.
#[derive(Debug)]
pub struct TestHome {
    dir: TempDir,
}

impl TestHome {
    /// An empty home: an empty `triphammer.toml`, nothing else.
    ///
    /// # Panics
    /// When the temporary folder cannot be used.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("triphammer-test-").tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("home")).expect("the home");
        std::fs::create_dir(dir.path().join("user")).expect("the user's folder");
        let home = Self { dir };
        home.write("triphammer.toml", "");
        home.set_user_config(&format!("[sandbox]\nwritable = [\"{}\"]\n", home.dir.path().display()));
        home
    }

    /// A home whose gates are shell lines: `[(name, line)]`, each a test gate of a pack `check` without a report.
    ///
    /// # Panics
    /// When the temporary folder cannot be used.
    pub fn with_gates(gates: &[(&str, &str)]) -> Self {
        let home = Self::new();
        let tables: Vec<String> = gates
            .iter()
            .map(|(name, line)| {
                let line = serde_json::to_string(line).expect("text");
                format!("[[gate]]\nname = \"{name}\"\nkind = \"test\"\nrun = [\"sh\", \"-c\", {line}]\n")
            })
            .collect();
        home.write("gates/check.toml", &tables.concat());
        home
    }

    /// The person's own configuration. At first it lets agents and gates write wherever this home's folders lie: fakes
    /// leave counters and marks beside their workspace.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn set_user_config(&self, text: &str) {
        let folder = self.dir.path().join("user/.config/triphammer");
        std::fs::create_dir_all(&folder).expect("folders");
        std::fs::write(folder.join("config.toml"), text).expect("the person's configuration");
    }

    /// The home's folder.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A folder beside the home that no run looks at: for counters and marks of fake agents.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The state folder that the binary is given.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Writes a file below the home, with its folders.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("writing {}: {e}", path.display()));
    }

    /// Reads a file below the home.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.path().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("reading {}: {e}", path.display()))
    }

    /// The binary with arguments, in the home, with a clean environment; not started yet.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.path()).env_clear().stdin(Stdio::null());
        for name in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "LANG", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // cargo and rustup find their folders below HOME unless told.
        if let Some(user) = std::env::var_os("HOME") {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                if std::env::var_os(name).is_none() {
                    command.env(name, PathBuf::from(&user).join(folder));
                }
            }
        }
        command.env("HOME", self.dir.path().join("user")).env("XDG_STATE_HOME", self.state());
        // Not bubblewrap, which would keep an agent from what tests of tampering have it do.
        let fence = if triphammer_agent::Fence::is_available() { "landlock" } else { "off" };
        command.env("TRIPHAMMER_FENCE", fence);
        command
    }

    /// Runs the binary to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(self.command(args).output().expect("the binary starts"))
    }

    /// `triphammer run --json` with more arguments.
    pub fn forge<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let mut all: Vec<std::ffi::OsString> = vec!["run".into(), "--json".into()];
        all.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self.run(all)
    }

    /// The run directories, oldest first.
    ///
    /// # Panics
    /// When they cannot be listed.
    pub fn runs(&self) -> Vec<RunFiles> {
        let runs = triphammer_store::Runs::new(self.path().join("runs"));
        let ids = runs.ids().expect("the runs can be listed");
        ids.iter().map(|id| RunFiles::new(self.path().join("runs").join(id.as_str()))).collect()
    }

    /// The only run.
    ///
    /// # Panics
    /// When there is none or more than one.
    pub fn only_run(&self) -> RunFiles {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "one run expected");
        runs.remove(0)
    }

    /// A run by its id.
    pub fn run_files(&self, id: &RunId) -> RunFiles {
        RunFiles::new(self.path().join("runs").join(id.as_str()))
    }
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// From what the standard library collected.
    #[expect(clippy::needless_pass_by_value, reason = "it is used up: nobody reads it twice")]
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The JSON objects of standard output, one a line.
    ///
    /// # Panics
    /// When a line is no JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON ({e}): {l}")))
            .collect()
    }

    /// The `done` object of `run --json`.
    ///
    /// # Panics
    /// When there is none: the process crashed.
    pub fn done(&self) -> Value {
        let last = self.lines().pop().unwrap_or_else(|| panic!("nothing on stdout; stderr: {}", self.stderr));
        assert_eq!(last["type"], "done", "the last line is `done`; stderr: {}", self.stderr);
        last
    }

    /// Asserts outcome, reason, attempts and exit code at once.
    ///
    /// # Panics
    /// When one differs, with all that was printed.
    #[track_caller]
    pub fn expect(&self, outcome: &str, reason: &str, attempts: u64, code: i32) {
        let done = self.done();
        let got = (
            done["outcome"].as_str().unwrap_or_default(),
            done["reason"].as_str().unwrap_or_default(),
            done["attempts"].as_u64().unwrap_or_default(),
            self.code,
        );
        assert_eq!(got, (outcome, reason, attempts, Some(code)), "{}\n{}", self.stdout, self.stderr);
    }
}

/// The files and links below a folder, sorted.
///
/// # Panics
/// When a folder cannot be listed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("listing {}: {e}", folder.display()));
        for entry in entries {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("its kind").is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}
