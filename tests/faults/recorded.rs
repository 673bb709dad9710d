//! Rows 8 and 20 once more, with what real agents were recorded printing when a service turned them away: a login that is
//! refused ends the launching, a limit parks the run until its reset, and neither is charged.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use triphammer_model::{Effect, FaultKind, Outcome};

use crate::fake::{Fake, agent_ends};

/// A recording of the agents' room, with how its agent's process ended.
struct Recorded {
    vendor: &'static str,
    name: &'static str,
    exit: i32,
}

const fn recorded(vendor: &'static str, name: &'static str, exit: i32) -> Recorded {
    Recorded { vendor, name, exit }
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/agent/tests/streams").join(name)
}

impl Recorded {
    /// A home whose agent `fa` is a stand-in that prints the recording.
    fn fake(&self) -> Fake {
        let fake = Fake::with_run(&[("works", "test -f work.txt")], "retries = 2");
        let program = fake.beside(self.vendor);
        let stream = recording(&format!("{}.jsonl", self.name));
        let text = std::fs::read_to_string(&stream).unwrap();
        let script = format!("#!/bin/sh\ncat '{}'\nexit {}\n", stream.display(), self.exit);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Codex tells in its own record what its stream leaves out.
        let record = recording(&format!("{}.rollout", self.name));
        if record.is_file() {
            let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let day = fake.beside("state/sessions/2026/11/30");
            std::fs::create_dir_all(&day).unwrap();
            let thread = first["thread_id"].as_str().unwrap();
            std::fs::copy(&record, day.join(format!("rollout-2026-{thread}.jsonl"))).unwrap();
        }
        let state = fake.beside("state");
        let env = if self.vendor == "codex" {
            format!("env = [\"CODEX_HOME={}\"]\n", state.display())
        } else {
            String::new()
        };
        let (vendor, program) = (self.vendor, program.display());
        fake.section(&format!("[agents.fa]\nkind = \"{vendor}\"\nargv = [\"{program}\"]\n{env}"))
    }

    /// Runs it: the fault, how often the agent was launched, why the run is parked, and whether until a known time.
    #[track_caller]
    fn runs(&self) -> (FaultKind, usize, String, bool) {
        let fake = self.fake();
        let ran = fake.forge(["--attempts", "3"]);
        let done = ran.done();
        assert_eq!(
            (ran.code, done["outcome"].as_str(), done["attempts"].as_u64()),
            (Some(5), Some("suspended"), Some(0)),
            "{}: parked, and nothing is charged: {}",
            self.name,
            ran.stdout
        );
        let ends = agent_ends(&fake.run());
        let kinds: Vec<_> = ends.iter().map(|(_, facts)| facts.fault.as_ref().map(|f| f.kind)).collect();
        let kind = kinds[0].unwrap_or_else(|| panic!("{}: no fault", self.name));
        assert!(kinds.iter().all(|k| *k == Some(kind)), "{}: {kinds:?}", self.name);
        let until = fake.run().journal().iter().flat_map(|line| line.effects.clone()).any(|effect| {
            matches!(effect, Effect::End { outcome: Outcome::Suspended { until: Some(_), .. } })
        });
        // Taken up again it is the same attempt.
        fake.resume();
        assert!(agent_ends(&fake.run()).iter().all(|(attempt, _)| *attempt == 1), "{}", self.name);
        (kind, ends.len(), done["reason"].as_str().unwrap_or_default().to_owned(), until)
    }
}

#[test]
fn a_login_that_is_refused_ends_the_launching_with_each_agent() {
    for agent in [
        recorded("claude", "claude-401", 1),
        recorded("codex", "codex-401", 1),
        // The whole status is in no field of gemini's; the end of its process has eight bits of it.
        recorded("gemini", "gemini-401", 145),
        recorded("opencode", "opencode-401", 0),
    ] {
        let (kind, launches, reason, _) = agent.runs();
        assert_eq!((kind, launches), (FaultKind::Authentication, 1), "{}", agent.name);
        assert_eq!(reason, "authentication", "{}", agent.name);
    }
}

#[test]
fn a_login_that_is_refused_in_words_alone_is_tried_again_and_parked() {
    // Qwen has the refusal in the text of an answer, which decides nothing: a service out of reach, by its fields.
    let (kind, launches, reason, _) = recorded("qwen", "qwen-401", 0).runs();
    assert_eq!((kind, launches, reason.as_str()), (FaultKind::Overloaded, 3, "overloaded"));
}

#[test]
fn a_quota_that_is_spent_parks_the_run_and_launches_nobody_again() {
    let (kind, launches, reason, _) = recorded("codex", "codex-quota", 1).runs();
    assert_eq!((kind, launches, reason.as_str()), (FaultKind::Quota, 1, "quota"));
}

#[test]
fn a_limit_with_its_reset_parks_the_run_until_then() {
    // Its time is long past in the recording, and is all the same when the run is said to go on.
    let (kind, launches, reason, until) = recorded("opencode", "opencode-429", 0).runs();
    assert_eq!((kind, launches, reason.as_str()), (FaultKind::RateLimit, 1, "rate-limit"));
    assert!(until, "the reset time is kept");
}

#[test]
fn a_limit_without_a_reset_is_tried_again_a_few_times_and_parked() {
    for agent in [recorded("pi", "pi-429", 0), recorded("gemini", "gemini-quota", 173)] {
        let (kind, launches, reason, until) = agent.runs();
        assert_eq!((kind, launches, until), (FaultKind::RateLimit, 3, false), "{}", agent.name);
        assert_eq!(reason, "rate-limit", "{}", agent.name);
    }
}

#[test]
fn a_service_that_is_down_is_tried_again_a_few_times_and_parked() {
    for agent in [
        recorded("claude", "claude-529", 1),
        recorded("codex", "codex-server-down", 1),
        recorded("pi", "pi-server-down", 0),
        recorded("qwen", "qwen-server-down", 0),
    ] {
        let (kind, launches, reason, _) = agent.runs();
        assert_eq!((kind, launches), (FaultKind::Overloaded, 3), "{}", agent.name);
        assert_eq!(reason, "overloaded", "{}", agent.name);
    }
}

/// With another agent in the chain that one takes over from the refused or spent one; the record says why.
#[test]
fn the_next_of_the_chain_takes_over_from_a_real_refusal() {
    for (agent, why) in [
        (recorded("claude", "claude-401", 1), "its login is missing or expired"),
        (recorded("codex", "codex-quota", 1), "its quota is spent"),
    ] {
        let fake = agent.fake().agent("fb", "", "touch work.txt");
        fake.forge(["--agent", "fa,fb"]).expect("accepted", "gates-passed", 1, 0);
        let brief = fake.run().brief(1);
        assert!(brief.contains(&format!("You take over from agent `fa`: {why}.")), "{brief}");
        let shown = fake.home.run(["show", "latest"]).stdout;
        assert!(shown.contains("fb took over at attempt 1") && shown.contains(why), "{shown}");
    }
}
