//! A home with a real agent in it.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use triphammer_model::{FaultKind, Tokens};
use triphammer_testkit::{FakeModel, Ran, TestHome, files_below, is_alive, wait_until};

/// Where the installed agents' programs are; set by `cargo xtask agents`.
const PROGRAMS: &str = "TRIPHAMMER_AGENTS_PATH";

/// A key that no service would take.
pub(crate) const KEY: &str = "dummy-key-7351";

/// The workspace, below the home.
pub(crate) const WORK: &str = "work";

/// A real agent, and what is known of it.
pub(crate) struct Real {
    /// Its kind and its name.
    pub(crate) kind: &'static str,
    /// What a person would export for a service at this address: the agent's own variables, of which the binary
    /// passes on those that it knows.
    pub(crate) exports: fn(&str) -> Vec<(&'static str, String)>,
    /// Writes its configuration for a service at this address; returns more lines of its table.
    pub(crate) configure: fn(&Rig, &str) -> String,
    /// Whether it reports files that its own tools write.
    pub(crate) reports_files: bool,
    /// What a refused key looks like in what it says.
    pub(crate) refusal: FaultKind,
}

/// What the three requests of an attempt cost, the cache apart.
pub(crate) const THREE_REQUESTS: Tokens = Tokens { input: 2703, cached: 300, output: 63 };

/// A run in the background, killed with SIGKILL when it is let go.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The home.
pub(crate) struct Rig {
    pub(crate) home: TestHome,
    real: &'static Real,
    url: OnceCell<String>,
}

impl Rig {
    /// A home where the agent works in a folder of its own, held by one gate.
    pub(crate) fn new(real: &'static Real, gate: &str) -> Self {
        let rig = Self { home: TestHome::with_gates(&[("greeting", gate)]), real, url: OnceCell::new() };
        // As a person's first run is: nothing says which fence, or what else may be written.
        std::fs::remove_dir_all(rig.home.beside("user/.config")).unwrap();
        rig.home.write(format!("{WORK}/README.md"), "# Greetings\n");
        std::fs::create_dir(rig.home.beside("tmp")).unwrap();
        rig.home.write(
            "specs/it.md",
            &format!(
                "---\nstatus: locked\nworkspace: {WORK}\n---\n# Goal\nWrite a greeting into hello.sh.\n"
            ),
        );
        rig
    }

    /// Points the agent at a service; `more` are lines of its table.
    pub(crate) fn configure(&self, url: &str, more: &str) {
        let kind = self.real.kind;
        self.url.set(url.to_owned()).unwrap();
        let table = (self.real.configure)(self, url);
        let config = format!("[agents.{kind}]\nkind = \"{kind}\"\ntimeout = \"3m\"\n{table}{more}");
        self.home.write("triphammer.toml", &config);
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.home.path().join(WORK)
    }

    /// Writes a file below the user's folder, with its folders.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.home.beside("user").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("writing {}: {e}", path.display()));
    }

    /// The files below the user's folder, as paths from there.
    pub(crate) fn user_files(&self) -> Vec<PathBuf> {
        let user = self.home.beside("user");
        let below = |file: PathBuf| file.strip_prefix(&user).unwrap().to_owned();
        files_below(&user).into_iter().map(below).collect()
    }

    /// `triphammer run` with the agent, not started yet.
    pub(crate) fn command(&self) -> Command {
        let mut command =
            self.home.command(["run", "--json", "specs/it.md", "--agent", self.real.kind, "--attempts", "3"]);
        let programs = std::env::var_os(PROGRAMS)
            .unwrap_or_else(|| panic!("{PROGRAMS} is not set: run these tests by `cargo xtask agents`"));
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> =
            std::env::split_paths(&programs).chain(std::env::split_paths(&usual)).collect();
        command.env("PATH", std::env::join_paths(path).unwrap());
        command.envs((self.real.exports)(self.url.get().unwrap()));
        // Codex makes no helpers where its own folder lies below the temporary one.
        command.env("TMPDIR", self.home.beside("tmp")).env_remove("TRIPHAMMER_FENCE");
        command
    }

    /// Runs it to its end, and shows what the agent said where the test fails.
    pub(crate) fn run(&self) -> Ran {
        let ran = Ran::of(self.command().output().unwrap());
        for run in self.home.runs() {
            for attempt in 1..=3 {
                for file in ["receipt.json", "stdout.log", "stderr.log"] {
                    let path = run.path().join(format!("attempts/{attempt:03}/{file}"));
                    let text = std::fs::read(&path).unwrap_or_default();
                    let text = String::from_utf8_lossy(&text);
                    let shown: String = text.chars().take(4000).collect();
                    eprintln!("--- {}, {} bytes\n{shown}", path.display(), text.len());
                }
            }
        }
        ran
    }

    /// Starts it, waits until the service was asked, kills it with SIGKILL, and waits until nothing of it is alive.
    pub(crate) fn kill_while_it_asks(&self, model: &FakeModel) {
        let mut command = self.command();
        let mut run = Background(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_until("the agent's first request", Duration::from_mins(2), || {
            let ended = run.0.try_wait().unwrap();
            assert!(ended.is_none(), "the run ended before its agent asked anything");
            !model.working_requests().is_empty()
        });
        // The binary itself and its shim are two; the agent is at least one more.
        let before = self.alive();
        assert!(before.len() > 2, "{before:?}");
        drop(run);
        wait_until("the death of all that the agent started", Duration::from_secs(10), || {
            self.alive().is_empty()
        });
    }

    /// Living processes whose environment or folder shows that they belong to this home, with their programs.
    fn alive(&self) -> Vec<(u32, String)> {
        let mark = self.home.beside("user").into_os_string().into_encoded_bytes();
        let folder = self.home.path();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let by_mark = environ.windows(mark.len()).any(|part| part == mark);
            let by_folder =
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
            if (by_mark || by_folder) && is_alive(pid) {
                let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                found.push((pid, name.trim().to_owned()));
            }
        }
        found
    }
}
