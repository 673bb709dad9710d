//! Agents that people know by name, with a stand-in for each that prints what the real one was recorded printing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use triphammer_agent::{Adapter, Login, ProcessLimits, ProcessSupervisor, Vendor, VendorAgent, VendorConfig};
use triphammer_model::config::VendorName;
use triphammer_model::{
    Agent as _, AgentName, Attempt, Cancel, Continuation, FaultKind, Performance, Receipt, Redactor, RunId,
    Task,
};

const HOST: &str = env!("CARGO_BIN_EXE_agent-test-host");

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name)
}

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        for name in ["work", "attempt", "bin", "home"] {
            std::fs::create_dir(room.at(name)).unwrap();
        }
        room
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }

    /// A stand-in for the program `name`: notes how it is called, then runs `line`.
    fn stand_in(&self, name: &str, line: &str) {
        let notes = self.0.path().display();
        let text = format!(
            "#!/bin/sh\nfor arg in \"$@\"; do printf '%s\\n' \"$arg\"; done > '{notes}/argv'\ncat > '{notes}/stdin'\n\
             env > '{notes}/env'\n{line}\n"
        );
        let path = self.at("bin").join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn argv(&self) -> Vec<String> {
        self.read("argv").lines().map(ToOwned::to_owned).collect()
    }

    fn agent(vendor: VendorName, model: Option<&str>) -> VendorAgent {
        let limits = ProcessLimits { grace: Duration::from_millis(200), ..ProcessLimits::default() };
        Self::bounded(vendor, model, limits)
    }

    fn bounded(vendor: VendorName, model: Option<&str>, limits: ProcessLimits) -> VendorAgent {
        VendorAgent::new(VendorConfig {
            adapter: Adapter {
                name: AgentName::new(vendor.as_str()),
                limits,
                env_names: Vec::new(),
                redactor: Redactor::default(),
            },
            vendor: Vendor::of(vendor),
            argv: Vec::new(),
            model: model.map(ToOwned::to_owned),
        })
    }

    fn task(&self, brief: &str, session: Option<&str>) -> Task {
        std::fs::write(self.at("attempt/brief.md"), brief).unwrap();
        let path = std::env::join_paths([self.at("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
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
            session: session.map(ToOwned::to_owned),
            env: vec![("PATH".into(), path), ("HOME".into(), self.at("home").into())],
        }
    }

    fn run(agent: &VendorAgent, task: &Task) -> Performance {
        let supervisor = ProcessSupervisor::new(HOST.into(), Redactor::default());
        agent.implement(task, &supervisor, &Cancel::new()).unwrap()
    }

    /// What becomes of a recorded stream, and how the stand-in was called.
    fn played(&self, vendor: VendorName, stream: &str, then: &str) -> Performance {
        let program = Vendor::of(vendor).program;
        self.stand_in(program, &format!("cat '{}'\n{then}", recording(stream).display()));
        Self::run(&Self::agent(vendor, Some("m-1")), &self.task("do it\n", None))
    }
}

/// The receipt of a recording, of a first attempt.
fn golden(name: &str) -> Receipt {
    let receipt: Receipt = serde_json::from_slice(&std::fs::read(recording(name)).unwrap()).unwrap();
    Receipt { continuation: Some(Continuation::Fresh), ..receipt }
}

#[test]
fn each_is_heard_as_it_was_recorded() {
    let streams = VendorName::ALL.into_iter().filter(|vendor| *vendor != VendorName::Mini);
    for vendor in streams {
        let room = Room::new();
        let done = room.played(vendor, &format!("{vendor}.jsonl"), "");
        assert_eq!(done.receipt, golden(&format!("{vendor}.receipt.json")), "{vendor}");
        let argv = room.argv();
        assert!(argv.contains(&"m-1".to_owned()), "{vendor}: {argv:?}");
        assert_eq!(room.read("stdin"), "do it\n", "{vendor}");
        let lines: Vec<Value> = room
            .read("attempt/transcript.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["kind"], vendor.as_str());
        assert!(lines[1]["events"].as_u64().unwrap() > 2, "{vendor}");
    }
}

#[test]
fn mini_is_read_from_its_file() {
    let room = Room::new();
    room.stand_in(
        "mini",
        &format!(
            "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && cp '{}' \"$2\"; shift; done",
            recording("mini.json").display()
        ),
    );
    let done = Room::run(&Room::agent(VendorName::Mini, None), &room.task("do it", None));
    assert_eq!(done.receipt, golden("mini.receipt.json"));
    let argv = room.argv();
    assert_eq!(argv[argv.iter().position(|arg| arg == "-t").unwrap() + 1], "do it");

    // Without its file it said nothing; that is no silence that could be taken for success.
    room.stand_in("mini", "");
    let nothing = Room::run(&Room::agent(VendorName::Mini, None), &room.task("do it", None));
    assert!(nothing.receipt.troubles[0].contains("trajectory.json"), "{:?}", nothing.receipt);
    assert_eq!((nothing.receipt.tokens, nothing.receipt.cost), (None, None));
}

#[test]
fn a_long_brief_is_named_where_an_argument_would_have_to_hold_it() {
    let room = Room::new();
    room.stand_in("mini", "");
    let brief = "x".repeat(200_000);
    Room::run(&Room::agent(VendorName::Mini, None), &room.task(&brief, None));
    let argv = room.argv();
    let prompt = &argv[argv.iter().position(|arg| arg == "-t").unwrap() + 1];
    assert!(prompt.contains(room.at("attempt/brief.md").to_str().unwrap()), "{prompt}");
}

#[test]
fn sessions_go_on_where_the_agent_can() {
    for (vendor, flag) in [
        (VendorName::Claude, "--resume"),
        (VendorName::Codex, "resume"),
        (VendorName::Opencode, "-s"),
        (VendorName::Gemini, "--resume"),
        (VendorName::Qwen, "--resume"),
        (VendorName::Pi, "--session"),
    ] {
        let room = Room::new();
        room.stand_in(Vendor::of(vendor).program, "");
        let done = Room::run(&Room::agent(vendor, None), &room.task("more", Some("s-77")));
        assert_eq!(done.receipt.continuation, Some(Continuation::Session { id: "s-77".to_owned() }));
        let argv = room.argv();
        assert!(
            argv.iter().any(|arg| arg == flag) && argv.iter().any(|arg| arg == "s-77"),
            "{vendor}: {argv:?}"
        );
    }
    let room = Room::new();
    room.stand_in("mini", "");
    let done = Room::run(&Room::agent(VendorName::Mini, None), &room.task("more", Some("s-77")));
    assert_eq!(done.receipt.continuation, Some(Continuation::Fresh), "it has no sessions");
    assert!(!room.argv().contains(&"s-77".to_owned()));
}

#[test]
fn an_exit_status_is_believed_in_nobody() {
    // A stream whose calls failed ends well; a stream that ends well is followed by a failing exit.
    let down = Room::new().played(VendorName::Pi, "pi-server-down.jsonl", "exit 0");
    assert_eq!(down.receipt.fault.map(|fault| fault.kind), Some(FaultKind::Overloaded));
    let fine = Room::new().played(VendorName::Claude, "claude.jsonl", "exit 3");
    assert_eq!(fine.receipt.fault, None);
    // Gemini tells the status of its failed call in its own; codex keeps it in a record of the session.
    let refused = Room::new().played(VendorName::Gemini, "gemini-401.jsonl", "exit 145");
    assert_eq!(refused.receipt.fault.map(|fault| fault.kind), Some(FaultKind::Authentication));
    let room = Room::new();
    let stream = std::fs::read_to_string(recording("codex-401.jsonl")).unwrap();
    let first: Value = serde_json::from_str(stream.lines().next().unwrap()).unwrap();
    let thread = first["thread_id"].as_str().unwrap();
    let sessions = room.at("home/.codex/sessions/2026/11/30");
    std::fs::create_dir_all(&sessions).unwrap();
    let record = sessions.join(format!("rollout-2026-11-30T12-00-00-{thread}.jsonl"));
    std::fs::copy(recording("codex-401.rollout"), record).unwrap();
    let refused = room.played(VendorName::Codex, "codex-401.jsonl", "exit 1");
    assert_eq!(refused.receipt.fault.map(|fault| fault.kind), Some(FaultKind::Authentication));
}

#[test]
fn how_it_was_ended_counts_where_it_said_nothing_else() {
    let room = Room::new();
    room.stand_in("claude", "sleep 60");
    let limits = ProcessLimits {
        timeout: Some(Duration::from_millis(300)),
        grace: Duration::from_millis(100),
        ..ProcessLimits::default()
    };
    let agent = Room::bounded(VendorName::Claude, None, limits);
    let late = Room::run(&agent, &room.task("x", None));
    assert_eq!(late.receipt.fault.map(|fault| fault.kind), Some(FaultKind::TimedOut));
    let room = Room::new();
    let cut = room.played(VendorName::Claude, "claude.jsonl", "kill -9 $$");
    assert_eq!(cut.receipt.fault.map(|fault| fault.kind), Some(FaultKind::Crashed));
}

#[test]
fn a_program_that_is_missing_is_named_with_its_cure() {
    let agent = Room::agent(VendorName::Qwen, None);
    let error = agent.check("/nowhere".as_ref(), Path::new("/")).unwrap_err().to_string();
    assert!(
        error.contains("`qwen` is not found") && error.contains("npm install -g @qwen-code/qwen-code"),
        "{error}"
    );
}

#[test]
fn a_login_is_a_key_or_a_file() {
    let home = tempfile::tempdir().unwrap();
    let codex = Vendor::of(VendorName::Codex);
    let none = |_: &str| None;
    assert_eq!(codex.login(none, Some(home.path())), Login::Nothing);
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    std::fs::write(home.path().join(".codex/auth.json"), "{}").unwrap();
    assert_eq!(codex.login(none, Some(home.path())), Login::File(home.path().join(".codex/auth.json")));
    let key = |name: &str| (name == "CODEX_API_KEY").then(|| "dummy".into());
    assert_eq!(codex.login(key, Some(home.path())), Login::Key("CODEX_API_KEY".to_owned()));
    let empty = |_: &str| Some("".into());
    assert_eq!(codex.login(empty, None), Login::Nothing);
}
