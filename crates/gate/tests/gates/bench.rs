//! A workspace, a run directory and supervisors to try gates on.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;
use triphammer_gate::{
    Gate, GateContext, GateProgress, Interrupted, Known, PackTexts, Packs, PipelinePolicy, Plan, Preflight,
    WorkFiles, preflight, run,
};
use triphammer_model::process::{Captured, Ear, LaunchError, WaitStatus};
use triphammer_model::report::VerdictWord;
use triphammer_model::{Cancel, Ended, GateVerdict, Judgement, Launch, Report, Supervisor};

/// A workspace and what gates need around it.
pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) cancel: Cancel,
    pub(crate) log_cap: u64,
    pub(crate) path: Option<OsString>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("ws")).unwrap();
        std::fs::create_dir(dir.path().join("attempt")).unwrap();
        Self { dir, cancel: Cancel::new(), log_cap: 1 << 20, path: None }
    }

    pub(crate) fn ws(&self) -> std::path::PathBuf {
        self.dir.path().join("ws")
    }

    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("attempt/gates").join(name)).unwrap()
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.ws().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let path = self.path.clone().or_else(|| std::env::var_os("PATH")).unwrap();
        vec![("PATH".into(), path), ("CI".into(), "no".into())]
    }

    pub(crate) fn with<T>(&self, supervisor: &dyn Supervisor, act: impl FnOnce(&GateContext<'_>) -> T) -> T {
        let (ws, attempt, env) = (self.ws(), self.dir.path().join("attempt"), self.env());
        let files = WorkFiles::walk(&ws);
        act(&GateContext {
            workspace: &ws,
            dir: &attempt,
            env: &env,
            supervisor,
            cancel: &self.cancel,
            log_cap: self.log_cap,
            pid_file: None,
            files: &files,
        })
    }

    /// Runs gates under a policy, with the progress that was told.
    pub(crate) fn pipeline(
        &self,
        supervisor: &dyn Supervisor,
        gates: &[Gate],
        policy: PipelinePolicy,
        grandfathered: &Known,
    ) -> Result<(Report, String), Interrupted> {
        let told = RefCell::new(String::new());
        let progress = |p: GateProgress<'_>| {
            let mut told = told.borrow_mut();
            match p {
                GateProgress::Started { gate, .. } => write!(told, "{gate}.. ").unwrap(),
                GateProgress::Finished { verdict } => {
                    write!(told, "{}={:?} ", verdict.gate, verdict.word()).unwrap();
                }
            }
        };
        let report = self.with(supervisor, |ctx| {
            let plan = Plan { gates, integrity: None, grandfathered, baseline: None, policy };
            run(ctx, plan, &progress)
        })?;
        Ok((report, told.into_inner()))
    }

    /// Runs the gates of a pack's text, all of them.
    pub(crate) fn judge(&self, supervisor: &dyn Supervisor, pack: &str) -> Report {
        let gates = gates(pack);
        self.pipeline(supervisor, &gates, PipelinePolicy::CollectAll, &Known::default()).unwrap().0
    }

    pub(crate) fn preflight(&self, supervisor: &dyn Supervisor, gates: &[Gate], empty: bool) -> Preflight {
        self.with(supervisor, |ctx| preflight(ctx, gates, None, empty, &|_| {})).unwrap()
    }
}

/// The gates of a pack's text.
pub(crate) fn gates(pack: &str) -> Vec<Gate> {
    let names = vec!["p".to_owned()];
    let texts = PackTexts::from([("p.toml".to_owned(), pack.as_bytes().to_vec())]);
    Packs::parse(&texts, Some(&names)).unwrap().gates().to_vec()
}

/// A gate's text.
pub(crate) fn gate(name: &str, kind: &str, script: &str, more: &str) -> String {
    format!(
        "[[gate]]\nname = \"{name}\"\nkind = \"{kind}\"\nrun = [\"sh\", \"-c\", '''{script}''']\n{more}\n"
    )
}

/// A report on one line a verdict, with the findings' rules and messages.
pub(crate) fn shown(report: &Report) -> String {
    let mut out = String::new();
    for verdict in &report.verdicts {
        out.push_str(&line(verdict));
        for f in verdict.findings() {
            let place = f.location.as_ref().map_or(String::new(), |l| format!(" @ {l}"));
            let excuse = f.excuse.map_or(String::new(), |e| format!(" ({e:?})"));
            let severity = format!("{:?}", f.severity).to_lowercase();
            writeln!(out, "  {severity} {}: {}{place}{excuse}", f.rule, f.message).unwrap();
        }
    }
    out
}

fn line(verdict: &GateVerdict) -> String {
    let word = match &verdict.judgement {
        Judgement::Skip(by) => format!("skip by {by}"),
        _ => format!("{:?}", verdict.word()).to_lowercase(),
    };
    let counts =
        verdict.counts.map_or(String::new(), |c| format!(" {}/{}/{}", c.passed, c.failed, c.skipped));
    format!("{}: {word}{counts}{}\n", verdict.gate, if verdict.flaky { " flaky" } else { "" })
}

pub(crate) fn word(report: &Report) -> VerdictWord {
    report.verdicts[0].word()
}

/// Really runs commands; a stand-in for the agents' supervisor without deadlines.
pub(crate) struct Real;

impl Supervisor for Real {
    fn run_heard(&self, launch: &Launch, _cancel: &Cancel, _ear: Ear<'_>) -> Result<Ended, LaunchError> {
        assert!(launch.stdin.is_none() && launch.timeout.is_some());
        let stdout = File::create(&launch.stdout).unwrap();
        let stderr = if launch.stderr == launch.stdout {
            stdout.try_clone().unwrap()
        } else {
            File::create(&launch.stderr).unwrap()
        };
        let spawned = Command::new(&launch.argv[0])
            .args(&launch.argv[1..])
            .current_dir(&launch.dir)
            .env_clear()
            .envs(launch.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .status();
        let wait = match spawned {
            Err(e) => WaitStatus::NotStarted { errno: e.raw_os_error() },
            Ok(status) => {
                use std::os::unix::process::ExitStatusExt;
                match status.code() {
                    Some(code) => WaitStatus::Exited { code },
                    None => WaitStatus::Signalled { signal: status.signal().unwrap() },
                }
            }
        };
        Ok(ended(launch, wait))
    }
}

/// What lies in the log, as a capture.
pub(crate) fn ended(launch: &Launch, wait: WaitStatus) -> Ended {
    let captured = |path: &Path| {
        let tail = std::fs::read(path).unwrap_or_default();
        Captured {
            bytes: tail.len() as u64,
            tail: tail[tail.len().saturating_sub(launch.tail_cap)..].to_vec(),
        }
    };
    let stderr = if launch.stderr == launch.stdout { Captured::default() } else { captured(&launch.stderr) };
    Ended { wait, duration: Duration::from_millis(7), stdout: captured(&launch.stdout), stderr, killed: 0 }
}

type Act = dyn Fn(&Launch, usize, &Cancel) -> WaitStatus + Send + Sync;

/// Does what a test says, and counts the calls.
pub(crate) struct Scripted {
    calls: Mutex<usize>,
    act: Box<Act>,
}

impl Scripted {
    pub(crate) fn new(act: impl Fn(&Launch, usize, &Cancel) -> WaitStatus + Send + Sync + 'static) -> Self {
        Self { calls: Mutex::new(0), act: Box::new(act) }
    }

    pub(crate) fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

impl Supervisor for Scripted {
    fn run_heard(&self, launch: &Launch, cancel: &Cancel, _ear: Ear<'_>) -> Result<Ended, LaunchError> {
        let call = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        Ok(ended(launch, (self.act)(launch, call, cancel)))
    }
}
