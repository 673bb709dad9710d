//! Agents with real processes: what they get, what they may claim, and what becomes of them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use triphammer_agent::{
    Adapter, CommandAgent, CommandConfig, ProcessLimits, ProcessSupervisor, Program, PromptBy, ScriptedAgent,
};
use triphammer_model::process::WaitStatus;
use triphammer_model::{
    Agent, AgentError, AgentName, Attempt, Cancel, Change, FaultKind, MicroUsd, Performance, Redactor, RunId,
    Task, Tokens,
};

const HOST: &str = env!("CARGO_BIN_EXE_agent-test-host");

struct Room {
    dir: TempDir,
    redactor: Redactor,
    limits: ProcessLimits,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "attempt"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self {
            dir,
            redactor: Redactor::new([("KEY".to_owned(), b"sk-live-0123456789".to_vec())]),
            limits: ProcessLimits { grace: Duration::from_millis(200), ..ProcessLimits::default() },
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }

    fn task(&self, brief: &str) -> Task {
        std::fs::write(self.at("attempt/brief.md"), brief).unwrap();
        Task {
            run: RunId::new("r1"),
            attempt: Attempt::new(2),
            try_no: 1,
            workspace: self.at("work"),
            brief: brief.to_owned(),
            brief_file: self.at("attempt/brief.md"),
            dir: self.at("attempt"),
            scratch: self.at("scratch"),
            fenced: false,
            session: None,
            env: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                ("API_KEY".into(), "sk-live-0123456789".into()),
            ],
        }
    }

    fn command(&self, program: Program, prompt: PromptBy) -> CommandAgent {
        CommandAgent::new(CommandConfig {
            adapter: Adapter {
                name: AgentName::new("tester"),
                limits: self.limits,
                env_names: vec!["API_KEY".to_owned()],
                redactor: self.redactor.clone(),
            },
            program,
            prompt,
        })
    }

    fn shell(&self, line: &str) -> CommandAgent {
        self.command(Program::Shell(line.to_owned()), PromptBy::Stdin)
    }

    fn scripted(&self, text: &str) -> ScriptedAgent {
        ScriptedAgent::new(
            AgentName::new("player"),
            "s.toml".into(),
            text,
            self.limits,
            self.redactor.clone(),
        )
    }

    fn try_run(&self, agent: &dyn Agent, task: &Task, cancel: &Cancel) -> Result<Performance, AgentError> {
        agent.implement(task, &ProcessSupervisor::new(HOST.into(), self.redactor.clone()), cancel)
    }

    fn run(&self, agent: &dyn Agent) -> Performance {
        self.try_run(agent, &self.task("the brief\n"), &Cancel::new()).unwrap()
    }
}

fn argv(parts: &[&str]) -> Program {
    Program::Argv(parts.iter().map(|p| (*p).to_owned()).collect())
}

#[test]
fn a_command_gets_the_contract() {
    let room = Room::new();
    let done = room.run(&room.shell(
        "cat; cat \"$TRIPHAMMER_BRIEF\"; echo $TRIPHAMMER_RUN $TRIPHAMMER_ATTEMPT $TRIPHAMMER_WORKSPACE; pwd; ls \"$TRIPHAMMER_RECEIPT\"",
    ));
    assert_eq!(done.wait, WaitStatus::Exited { code: 2 });
    let work = room.at("work");
    let work = work.display();
    assert_eq!(
        room.read("attempt/stdout.log"),
        format!("the brief\nthe brief\nr1 2 {work}\n{work}\n"),
        "and no receipt is there yet"
    );
    assert_eq!(done.receipt.agent, "tester");
    assert_eq!(
        (done.receipt.tokens, done.receipt.cost, done.receipt.fault),
        (None, None, None),
        "unknown, and a failing exit alone is no fault"
    );
}

#[test]
fn the_brief_arrives_each_way() {
    let room = Room::new();
    let path = room.at("attempt/brief.md");
    let path = path.to_str().unwrap();
    for (program, prompt, said) in [
        (argv(&["cat"]), PromptBy::Stdin, "the brief\n".to_owned()),
        (argv(&["echo", "a"]), PromptBy::File, format!("a {path}\n")),
        (argv(&["echo", "--f={brief}", "z"]), PromptBy::File, format!("--f={path} z\n")),
        (argv(&["echo", "-n"]), PromptBy::Argument, "the brief\n".to_owned()),
        (argv(&["echo", "-n", "<{prompt}>", "z"]), PromptBy::Argument, "<the brief\n> z".to_owned()),
        (Program::Shell("echo \"$1\"; cat".into()), PromptBy::File, format!("{path}\n")),
        (Program::Shell("printf %s \"$1\"".into()), PromptBy::Argument, "the brief\n".to_owned()),
    ] {
        let agent = room.command(program.clone(), prompt);
        agent.check(&std::env::var_os("PATH").unwrap(), &room.at("work")).unwrap();
        assert!(room.run(&agent).wait.is_success());
        assert_eq!(room.read("attempt/stdout.log"), said, "{program:?}");
    }
}

#[test]
fn a_brief_is_never_run() {
    let room = Room::new();
    let task = room.task("$(touch pwned) `touch pwned` '; touch pwned");
    for prompt in [PromptBy::Argument, PromptBy::File, PromptBy::Stdin] {
        let agent = room.command(Program::Shell("echo {prompt} \"$1\"".into()), prompt);
        room.try_run(&agent, &task, &Cancel::new()).unwrap();
        assert!(!room.at("work/pwned").exists());
    }
}

#[test]
fn a_brief_too_long_for_an_argument_is_refused_with_the_way_out() {
    let room = Room::new();
    let limit = 128 * 1024 - 1;
    let agent = room.command(argv(&["true"]), PromptBy::Argument);
    let run = |len: usize| room.try_run(&agent, &room.task(&"x".repeat(len)), &Cancel::new());
    assert!(run(limit).unwrap().wait.is_success(), "the system takes what we let through");
    let error = run(limit + 1).unwrap_err().to_string();
    assert!(error.contains("131072 bytes") && error.contains("prompt = \"stdin\""), "{error}");
}

#[test]
fn checks_before_anything_is_spent() {
    let room = Room::new();
    let path = std::env::var_os("PATH").unwrap();
    let check = |agent: &dyn Agent| agent.check(&path, &room.at("work")).unwrap_err().to_string();
    for (program, prompt, named) in [
        (argv(&["no-such-agent-here"]), PromptBy::Stdin, "no-such-agent-here"),
        (argv(&["./absent"]), PromptBy::Stdin, "./absent"),
        (argv(&[]), PromptBy::Stdin, "empty"),
        (argv(&[""]), PromptBy::Stdin, "empty"),
        (Program::Shell("  ".into()), PromptBy::Stdin, "empty"),
        (argv(&["cat", "{brief}"]), PromptBy::Stdin, "prompt = \"file\""),
        (argv(&["cat", "{prompt}"]), PromptBy::File, "prompt = \"arg\""),
    ] {
        let error = check(&room.command(program, prompt));
        assert!(error.contains("`tester`") && error.contains(named), "{error}");
    }
    assert!(check(&room.scripted("[[attempt]]\nx = 1")).contains("s.toml:2: "));
}

#[test]
fn the_receipt_file_is_read_and_an_earlier_one_is_not() {
    let room = Room::new();
    let agent = room.shell(
        r#"printf '%s' '{"files":[{"path":"a","kind":"added"}],"commands":["make"],"tokens":{"input":5},"cost_usd":1.5,"fault":{"kind":"authentication"},"why":1}' > "$TRIPHAMMER_RECEIPT"; exit 1"#,
    );
    let receipt = room.run(&agent).receipt;
    assert_eq!((receipt.files[0].path.as_str(), receipt.files[0].kind), ("a", Change::Added));
    assert_eq!(receipt.commands[0].command, "make");
    assert_eq!(receipt.tokens, Some(Tokens { input: 5, cached: 0, output: 0 }));
    assert_eq!(receipt.cost, Some(MicroUsd::new(1_500_000)));
    assert_eq!(receipt.fault.unwrap().kind, FaultKind::Authentication);
    assert_eq!(receipt.troubles.len(), 1);

    let receipt = room.run(&room.shell("true")).receipt;
    assert_eq!((receipt.files.len(), receipt.cost, receipt.fault), (0, None, None));
    // Whatever lies in its place is neither followed nor in the way of the next try.
    for leave in [
        "mkdir -p $TRIPHAMMER_RECEIPT/x",
        "mkfifo $TRIPHAMMER_RECEIPT",
        "ln -s /etc/passwd $TRIPHAMMER_RECEIPT",
    ] {
        let receipt = room.run(&room.shell(leave)).receipt;
        assert_eq!(receipt.troubles.len(), 1, "{leave}");
    }
    assert_eq!(room.run(&room.shell("true")).receipt.troubles.len(), 0);
}

#[test]
fn how_it_ended_becomes_a_fault_only_where_it_says_one() {
    let mut room = Room::new();
    room.limits.timeout = Some(Duration::from_millis(300));
    let fault = |done: &Performance| done.receipt.fault.as_ref().map(|f| f.kind);
    let done = room.run(&room.shell("sleep 1000"));
    assert!(matches!(done.wait, WaitStatus::TimedOut { .. }));
    assert_eq!(fault(&done), Some(FaultKind::TimedOut));
    let done =
        room.run(&room.shell("echo '{\"fault\":{\"kind\":\"quota\"}}' > $TRIPHAMMER_RECEIPT; sleep 1000"));
    assert_eq!(fault(&done), Some(FaultKind::Quota), "its own word is more precise");
    room.limits.timeout = None;
    room.limits.idle = Some(Duration::from_millis(300));
    let done = room.run(&room.shell("sleep 1000"));
    assert_eq!(fault(&done), Some(FaultKind::Idle));
    let done = room.run(&room.command(argv(&["no-such-agent-here"]), PromptBy::Stdin));
    assert_eq!(fault(&done), Some(FaultKind::Crashed));
    assert!(done.receipt.fault.unwrap().message.unwrap().contains("No such file"));
    for line in ["exit 3", "kill -9 $$"] {
        assert_eq!(fault(&room.run(&room.shell(line))), None, "{line}");
    }
}

#[test]
fn last_words_are_plain_and_secrets_stay_out_of_everything() {
    let room = Room::new();
    let agent = room.command(
        argv(&[
            "sh",
            "-c",
            "printf '\\033[1mWhich database?\\033[0m %s\\n' $API_KEY; echo $API_KEY >&2",
            "sk-live-0123456789",
        ]),
        PromptBy::Stdin,
    );
    let done = room.run(&agent);
    assert_eq!(done.receipt.last_words.as_deref(), Some("Which database? [redacted:KEY]"));
    assert_eq!(room.read("attempt/stderr.log"), "[redacted:KEY]\n");
    assert_eq!(agent.plan(true).argv[3], "[redacted:KEY]");
    let transcript = room.read("attempt/transcript.jsonl");
    let kinds: Vec<String> = transcript
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["start", "end"]);
    for name in ["stdout.log", "stderr.log", "transcript.jsonl"] {
        assert!(!room.read(&format!("attempt/{name}")).contains("sk-live"), "{name}");
    }
}

const SESSION: &str = r#"
[[attempt]]
steps = []

[[attempt]]
exit = 3
steps = [
  { say = "starting with sk-live-0123456789" },
  { write = "src/a", content = "one\n" },
  { write = "src/a", content = "two\n" },
  { write = "quiet", content = "", claim = false },
  { shell = "cat src/a; echo $TRIPHAMMER_ATTEMPT >&2; cat > from-shell <<'E'\nheredoc\nE\nexit 9" },
  { delete = "quiet" },
  { claim = "phantom", kind = "changed" },
  { usage = { input = 1, output = 2 } },
  { usage = { cached = 5 } },
  { cost_usd = 0.25 },
  { cost_usd = 0.5 },
  { fault = "overloaded", message = "busy" },
  { say = "What next?" },
]
"#;

#[test]
fn a_scripted_session_really_runs() {
    let room = Room::new();
    let agent = room.scripted(SESSION);
    agent.check(&std::env::var_os("PATH").unwrap(), &room.at("work")).unwrap();
    let done = room.run(&agent);
    assert_eq!(done.wait, WaitStatus::Exited { code: 3 });
    assert_eq!(room.read("work/src/a"), "two\n");
    assert_eq!(room.read("work/from-shell"), "heredoc\n");
    assert!(!room.at("work/quiet").exists());
    let receipt = done.receipt;
    let files: Vec<(&str, Change)> = receipt.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
    assert_eq!(
        files,
        [
            ("src/a", Change::Added),
            ("src/a", Change::Changed),
            ("quiet", Change::Deleted),
            ("phantom", Change::Changed)
        ],
        "what a shell step wrote is not claimed"
    );
    assert_eq!(receipt.commands.len(), 1);
    assert_eq!(receipt.commands[0].exit, Some(9));
    assert_eq!(receipt.tokens, Some(Tokens { input: 1, cached: 5, output: 2 }));
    assert_eq!(receipt.cost, Some(MicroUsd::new(750_000)));
    assert_eq!(receipt.fault.unwrap().kind, FaultKind::Overloaded);
    assert_eq!(receipt.last_words.as_deref(), Some("What next?"));
    assert_eq!(room.read("attempt/stdout.log"), "starting with [redacted:KEY]\ntwo\nWhat next?\n");
    assert_eq!(room.read("attempt/stderr.log"), "2\n");
    let transcript = room.read("attempt/transcript.jsonl");
    assert_eq!(transcript.lines().count(), 14, "one line a step, and the end");
    assert!(!transcript.contains("sk-live"));
}

#[test]
fn attempts_beyond_the_last_do_as_the_script_says() {
    let room = Room::new();
    let mut task = room.task("b");
    task.attempt = Attempt::new(7);
    for (head, said) in [("", "x\n"), ("repeat = \"none\"\n", "")] {
        let agent = room.scripted(&format!("{head}[[attempt]]\nsteps = [{{ say = \"x\" }}]"));
        let done = room.try_run(&agent, &task, &Cancel::new()).unwrap();
        assert!(done.wait.is_success());
        assert_eq!(room.read("attempt/stdout.log"), said);
    }
}

#[test]
fn a_scripted_session_can_be_cut_short() {
    let mut room = Room::new();
    room.limits.timeout = Some(Duration::from_millis(300));
    for step in ["shell = \"sleep 1000\"", "sleep_ms = 1000000"] {
        let agent = room.scripted(&format!(
            "[[attempt]]\nsteps = [{{ {step} }}, {{ write = \"late\", content = \"\" }}]"
        ));
        let done = room.run(&agent);
        assert!(matches!(done.wait, WaitStatus::TimedOut { .. }), "{step}");
        assert_eq!(done.receipt.fault.unwrap().kind, FaultKind::TimedOut);
        assert!(!room.at("work/late").exists());
    }
    room.limits.timeout = None;
    let agent = room.scripted("[[attempt]]\nsteps = [{ shell = \"touch up; sleep 1000\" }]");
    let (task, cancel) = (room.task("b"), Cancel::new());
    let done = std::thread::scope(|scope| {
        let running = scope.spawn(|| room.try_run(&agent, &task, &cancel).unwrap());
        let deadline = Instant::now() + Duration::from_mins(1);
        while !room.at("work/up").exists() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(2));
        }
        cancel.raise();
        running.join().unwrap()
    });
    assert!(matches!(done.wait, WaitStatus::Cancelled { .. }));
    assert_eq!(done.receipt.fault, None);
}

#[test]
fn a_step_never_leaves_the_workspace_by_a_link() {
    let room = Room::new();
    std::fs::create_dir(room.at("outside")).unwrap();
    std::os::unix::fs::symlink(room.at("outside"), room.at("work/way")).unwrap();
    let agent = room.scripted("[[attempt]]\nsteps = [{ write = \"way/x\", content = \"\" }]");
    let done = room.run(&agent);
    assert_eq!(done.wait, WaitStatus::Exited { code: 1 });
    assert_eq!(done.receipt.troubles.len(), 1);
    assert!(!room.at("outside/x").exists());
}
