//! Homes whose agent is a shell script, and what that script leaves behind.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use triphammer_model::event::AgentFacts;
use triphammer_model::report::VerdictWord;
use triphammer_model::{Event, GateVerdict, Report};
use triphammer_testkit::{Ran, RunFiles, TestHome, is_alive, wait_until};

/// Long enough for a machine that does much else; nothing waits that long when all is well.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// A home at work.
pub(crate) struct Fake {
    pub(crate) home: TestHome,
    config: String,
}

impl Fake {
    /// A home whose gates are shell lines. Agent and gates find a folder that no run looks at in `$BESIDE`.
    pub(crate) fn new(gates: &[(&str, &str)]) -> Self {
        Self::with_run(gates, "")
    }

    /// The same with more keys for `[run]`.
    pub(crate) fn with_run(gates: &[(&str, &str)], keys: &str) -> Self {
        let home = if gates.is_empty() { TestHome::new() } else { TestHome::with_gates(gates) };
        let beside = home.beside("beside");
        std::fs::create_dir(&beside).unwrap();
        let config =
            format!("[run]\nretry_backoff = \"10ms\"\nenv = [\"BESIDE={}\"]\n{keys}\n", beside.display());
        let fake = Self { home, config };
        fake.home.write("triphammer.toml", &fake.config);
        fake.spec("", "");
        fake
    }

    /// Adds an agent: a shell script and more keys of its configuration. Each launch leaves a line in `$BESIDE/NAME`.
    pub(crate) fn agent(mut self, name: &str, keys: &str, script: &str) -> Self {
        let file = self.beside(&format!("{name}.sh"));
        std::fs::write(&file, format!("echo $TRIPHAMMER_ATTEMPT >> \"$BESIDE/{name}\"\n{script}\n")).unwrap();
        let section =
            format!("[agents.{name}]\nkind = \"command\"\nargv = [\"sh\", \"{}\"]\n{keys}\n", file.display());
        self.config.push_str(&section);
        self.home.write("triphammer.toml", &self.config);
        self
    }

    /// Adds whole sections to the configuration.
    pub(crate) fn section(mut self, text: &str) -> Self {
        self.config.push_str(text);
        self.config.push('\n');
        self.home.write("triphammer.toml", &self.config);
        self
    }

    /// Writes the spec: more front matter, and sections after the goal.
    pub(crate) fn spec(&self, front: &str, sections: &str) {
        self.home.write(
            "specs/work.md",
            &format!("---\nstatus: locked\n{front}---\n# Goal\nDo the work.\n{sections}"),
        );
    }

    /// A path in the folder beside the home.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.home.beside("beside").join(name)
    }

    /// The lines of a file beside the home; none when it is missing.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.beside(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often an agent was launched.
    pub(crate) fn launches(&self, agent: &str) -> usize {
        self.lines(agent).len()
    }

    /// Runs the spec with the agent `fa` and more arguments.
    pub(crate) fn forge<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(self.forge_command(args).output().unwrap())
    }

    /// The command of [`Fake::forge`], not started.
    pub(crate) fn forge_command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.home.command(["run", "--json", "specs/work.md"]);
        let args: Vec<_> = args.into_iter().map(|a| a.as_ref().to_owned()).collect();
        if !args.iter().any(|a| a == "--agent") {
            command.args(["--agent", "fa"]);
        }
        command.args(args);
        command
    }

    /// Resumes the only run.
    pub(crate) fn resume(&self) -> Ran {
        self.home.run(["resume", "latest", "--json"])
    }

    /// The only run.
    pub(crate) fn run(&self) -> RunFiles {
        self.home.only_run()
    }

    /// Waits for a mark that a script leaves beside the home.
    pub(crate) fn wait_for(&self, name: &str) {
        let path = self.beside(name);
        wait_until(&format!("the file {name}"), LIMIT, || path.exists());
    }

    /// The process ids in a file beside the home; at least one.
    pub(crate) fn pids(&self, name: &str) -> Vec<u32> {
        let pids: Vec<u32> = self.lines(name).iter().map(|l| l.trim().parse().unwrap()).collect();
        assert!(!pids.is_empty(), "no process id in {name}");
        pids
    }

    /// Those of a file's processes that are alive. A number that went to a stranger since does not count: ours carry
    /// the folder beside the home in their environment.
    pub(crate) fn alive(&self, name: &str) -> Vec<u32> {
        let mark = format!("BESIDE={}", self.home.beside("beside").display());
        let ours = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|v| v == mark.as_bytes())
        };
        self.pids(name).into_iter().filter(|pid| is_alive(*pid) && ours(pid)).collect()
    }

    /// Asserts that every process whose id a script wrote down is gone.
    #[track_caller]
    pub(crate) fn assert_dead(&self, name: &str) {
        assert_eq!(self.alive(name), [0; 0], "alive of {name}");
    }

    /// Waits until every process whose id a script wrote down is gone.
    pub(crate) fn wait_dead(&self, name: &str) {
        wait_until("the agent's processes to end with the run", LIMIT, || self.alive(name).is_empty());
    }
}

/// Starts a command with its output caught.
pub(crate) fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal to a child that was started here.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits for a child's end.
pub(crate) fn end(child: Child) -> Ran {
    let output: Output = child.wait_with_output().unwrap();
    Ran::of(output)
}

/// What the journal says about how each of an attempt's tries ended.
pub(crate) fn agent_ends(run: &RunFiles) -> Vec<(u32, AgentFacts)> {
    run.journal()
        .into_iter()
        .filter_map(|line| match line.event {
            Event::AgentEnded { attempt, facts, .. } => Some((attempt.get(), facts)),
            _ => None,
        })
        .collect()
}

/// A gate's verdict.
#[track_caller]
pub(crate) fn verdict<'r>(report: &'r Report, gate: &str) -> &'r GateVerdict {
    let found = report.verdicts.iter().find(|v| v.gate.as_str() == gate);
    found.unwrap_or_else(|| panic!("no gate {gate} in {:?}", report.verdicts))
}

/// Asserts a gate's verdict and, if it is not a pass, that a finding has this rule.
#[track_caller]
pub(crate) fn assert_verdict(report: &Report, gate: &str, word: VerdictWord, rule: &str) {
    let verdict = verdict(report, gate);
    assert_eq!(verdict.word(), word, "{verdict:?}");
    if !rule.is_empty() {
        assert!(verdict.findings().iter().any(|f| f.rule == rule), "no {rule} in {verdict:?}");
    }
}

/// The paths of a list, as text.
pub(crate) fn paths<'a>(list: impl IntoIterator<Item = &'a triphammer_model::WorkPath>) -> Vec<String> {
    list.into_iter().map(ToString::to_string).collect()
}

/// What an attempt's movement shows as observed.
pub(crate) fn observed(run: &RunFiles, attempt: u32) -> Vec<String> {
    paths(run.movement(attempt).observed.iter().map(|o| &o.path))
}

/// What counts as touched in an attempt.
pub(crate) fn touched(run: &RunFiles, attempt: u32) -> Vec<String> {
    paths(&run.movement(attempt).touched)
}

/// Runs git in a folder with an identity of its own.
#[track_caller]
pub(crate) fn git(dir: &std::path::Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The same for scripts: the words before a git command.
pub(crate) const GIT: &str = "git -c user.name=t -c user.email=t@example.org";
