//! A signal at a moment at which nothing runs.

use std::path::Path;

use triphammer_model::config::{PromptWay, SandboxConfig};
use triphammer_model::event::Isolation;
use triphammer_model::policy::PipelinePolicy;
use triphammer_model::{AgentName, Cancel, Event, Limits, Outcome, Policy, Span, Spec};
use triphammer_runner::{AgentKind, AgentSettings, Notice, Place, Request, Settings, Watcher, prepare};

/// Raises the signal as soon as an attempt's start is in the journal, before its agent is begun.
struct Between(Cancel);

impl Watcher for Between {
    fn notice(&self, notice: &Notice<'_>) {
        if let Notice::Recorded(line) = notice
            && matches!(line.event, Event::Looked { .. })
        {
            self.0.raise();
        }
    }
}

fn request(dir: &Path) -> Request {
    let spec = Spec::for_task("Do it.");
    let agent = AgentSettings {
        name: AgentName::new("a"),
        prompt: PromptWay::Stdin,
        env: Vec::new(),
        timeout: Span::minutes(1),
        idle_timeout: Span::minutes(1),
        continue_session: false,
        kind: AgentKind::Shell { line: "true".to_owned() },
    };
    Request {
        home: dir.join("home"),
        runs: dir.join("home/runs"),
        state: dir.join("state"),
        spec_text: spec.print().into_bytes(),
        spec,
        spec_name: "task".to_owned(),
        spec_path: None,
        place: Place::New,
        settings: Settings {
            sandbox: SandboxConfig::default(),
            prices: std::collections::BTreeMap::new(),
            stages: PipelinePolicy::default(),
            isolation: Isolation::New,
            allow_green: true,
            confirm_clean: true,
            log_cap: 1 << 20,
            gates: None,
            env: Vec::new(),
            secrets: Vec::new(),
            skip: Vec::new(),
            setup: Vec::new(),
            carry: Vec::new(),
            limits: Limits::default(),
            policy: Policy::default(),
            chain: vec![agent],
        },
    }
}

#[test]
fn between_look_and_agent_it_ends_the_run_as_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("home")).unwrap();
    let cancel = Cancel::new();
    let watcher = Between(cancel.clone());
    let mut run = prepare(request(dir.path()), cancel, &watcher).unwrap();
    let finished = run.drive().unwrap();
    assert_eq!(finished.outcome, Outcome::Interrupted);
    assert_eq!(finished.summary.spent.cost_unknown, 0, "what never ran has cost nothing");
}
