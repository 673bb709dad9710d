//! Real agents as servers of the Agent Client Protocol: what they do through us is what they do by themselves.

use serde_json::json;
use triphammer_model::movement::Standing;
use triphammer_model::{Continuation, FaultKind, MicroUsd, Tokens, WorkPath};
use triphammer_testkit::{FAKE_MODEL, FakeModel, Step};

use crate::rig::{KEY, Real, Rig, THREE_REQUESTS};
use crate::scenes;

/// A server, and what it tells.
struct Server {
    real: Real,
    /// The tokens of three requests.
    tokens: Option<Tokens>,
    /// What they cost.
    cost: Option<MicroUsd>,
    /// How its shell's command ended.
    exit: Option<i32>,
}

/// A run of two attempts, in which the server writes through us.
fn a_finding_is_mended(server: &'static Server) {
    let (rig, requests) = scenes::strike(&server.real, "");
    scenes::the_finding_is_told(&requests);
    let run = rig.home.only_run();
    for (attempt, notes) in [(1, "notes-1.md"), (2, "notes-2.md")] {
        let movement = run.movement(attempt);
        let path = |name: &str| WorkPath::from_bytes(name.as_bytes());
        let observed: Vec<&WorkPath> = movement.observed.iter().map(|seen| &seen.path).collect();
        assert_eq!(observed, [&path("hello.sh"), &path(notes)], "attempt {attempt}");
        let claimed: Vec<_> = movement.claimed.iter().map(|claim| (&claim.path, claim.standing)).collect();
        assert_eq!(claimed, [(&path(notes), Standing::Observed)], "what its shell wrote is not claimed");
        let receipt = run.receipt(attempt);
        assert_eq!((receipt.fault, receipt.troubles.as_slice()), (None, [].as_slice()));
        assert_eq!(receipt.files[0].tool.as_deref(), Some("fs/write_text_file"), "it was written through us");
        let commands: Vec<_> =
            receipt.commands.iter().map(|ran| (ran.command.contains("END_OF_FILE"), ran.exit)).collect();
        assert_eq!(commands, [(true, server.exit)], "{:?}", receipt.commands);
        assert_eq!((receipt.tokens, receipt.cost), (server.tokens, server.cost), "attempt {attempt}");
        assert_eq!(receipt.stop_reason.as_deref(), Some("end_turn"));
        assert_eq!(receipt.last_words.as_deref(), Some("All is done."));
        assert!(receipt.model.is_some() && receipt.session.is_some());
        assert_eq!(receipt.continuation, Some(Continuation::Fresh));
    }
}

/// The second brief goes into the session of the first, and costs what it costs.
fn a_session_is_continued(server: &'static Server) {
    let (rig, requests) = scenes::strike(&server.real, "continue = true\n");
    let run = rig.home.only_run();
    let (first, second) = (run.receipt(1), run.receipt(2));
    let id = first.session.unwrap();
    assert_eq!(second.continuation, Some(Continuation::Session { id }));
    let last = requests.last().unwrap().text();
    assert!(
        last.contains("echo grumpy") && last.contains(scenes::FINDING),
        "the first attempt is in its context"
    );
    assert_eq!((second.commands.len(), second.files.len()), (1, 1), "what was done before is no claim");
    // A sum over the whole session says nothing of this attempt where what it was before is not told.
    assert_eq!((second.tokens, second.cost), (server.tokens, None));
}

/// A command that cannot be undone is refused when the server asks, and the run goes on.
fn a_forced_push_is_refused(server: &'static Server) {
    let rig = Rig::new(&server.real, "test -f done.txt");
    let model = FakeModel::start(|request| {
        let told = request.prompt().contains("attempt 2 of");
        let line = if told { "touch done.txt" } else { "touch pushed.txt; git push --force origin main" };
        triphammer_testkit::Script::new([
            Step::ShellCall(line.to_owned()),
            Step::Text("All is done.".to_owned()),
        ])
        .step(request)
    });
    rig.configure(&model.url(), "");
    let ran = rig.run();
    let run = rig.home.only_run();
    let receipt = run.receipt(1);
    assert_eq!(receipt.commands, [], "{:?}", ran.stderr);
    assert!(receipt.troubles[0].contains("git push --force origin main` was not let through"), "{receipt:?}");
    assert_eq!(receipt.fault, None);
    let moved: Vec<String> = run.movement(1).observed.iter().map(|seen| seen.path.to_string()).collect();
    assert_eq!(moved, [] as [&str; 0], "the line was not run");
    ran.expect("accepted", "gates-passed", 2, 0);
}

mod opencode {
    use super::*;

    static OPENCODE: Server = Server {
        real: Real {
            kind: "acp",
            exports: |_| Vec::new(),
            configure: |rig, url| {
                crate::opencode::configure(rig, url, 1, "ask");
                let env = "env = [\"OPENCODE_DISABLE_MODELS_FETCH=1\", \"OPENCODE_DISABLE_AUTOUPDATE=1\"]\n";
                format!("argv = [\"opencode\", \"acp\"]\n{env}")
            },
            reports_files: true,
            // Of a failed call it tells that there was one.
            refusal: FaultKind::Overloaded,
        },
        // It tells those of its last request.
        tokens: None,
        cost: Some(MicroUsd::new(2829)),
        exit: Some(0),
    };

    #[test]
    fn a_finding_is_mended() {
        super::a_finding_is_mended(&OPENCODE);
    }

    #[test]
    fn a_session_is_continued() {
        super::a_session_is_continued(&OPENCODE);
    }

    #[test]
    fn a_forced_push_is_refused() {
        super::a_forced_push_is_refused(&OPENCODE);
    }

    #[test]
    fn nothing_outlives_a_kill() {
        scenes::nothing_outlives_a_kill(&OPENCODE.real);
    }

    #[test]
    fn a_refused_key_suspends() {
        scenes::a_refused_key_suspends(&OPENCODE.real);
    }
}

mod gemini {
    use super::*;

    static GEMINI: Server = Server {
        real: Real {
            kind: "acp",
            exports: |url| {
                vec![("GEMINI_API_KEY", KEY.to_owned()), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())]
            },
            configure: |rig, _| {
                let settings = json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "privacy": {"usageStatisticsEnabled": false},
                });
                rig.write(".gemini/settings.json", &settings.to_string());
                let env = "env = [\"GEMINI_API_KEY\", \"GOOGLE_GEMINI_BASE_URL\"]\n";
                format!(
                    "argv = [\"gemini\", \"--acp\", \"--skip-trust\", \"-m\", \"gemini-2.5-flash\"]\n{env}"
                )
            },
            reports_files: true,
            refusal: FaultKind::Authentication,
        },
        // It does not tell the cache apart.
        tokens: Some(Tokens { input: 3003, cached: 0, output: 63 }),
        cost: None,
        exit: None,
    };

    #[test]
    fn a_finding_is_mended() {
        super::a_finding_is_mended(&GEMINI);
    }

    #[test]
    fn a_forced_push_is_refused() {
        super::a_forced_push_is_refused(&GEMINI);
    }

    #[test]
    fn a_refused_key_suspends() {
        scenes::a_refused_key_suspends(&GEMINI.real);
    }
}

mod qwen {
    use super::*;

    static QWEN: Server = Server {
        real: Real {
            kind: "acp",
            exports: |url| vec![("OPENAI_API_KEY", KEY.to_owned()), ("OPENAI_BASE_URL", format!("{url}/v1"))],
            configure: |_, _| {
                let env = format!("[\"OPENAI_API_KEY\", \"OPENAI_BASE_URL\", \"OPENAI_MODEL={FAKE_MODEL}\"]");
                format!("argv = [\"qwen\", \"--acp\", \"--auth-type\", \"openai\"]\nenv = {env}\n")
            },
            reports_files: true,
            // Of a failed call it tells a text.
            refusal: FaultKind::Overloaded,
        },
        tokens: Some(THREE_REQUESTS),
        cost: None,
        exit: None,
    };

    #[test]
    fn a_finding_is_mended() {
        super::a_finding_is_mended(&QWEN);
    }

    #[test]
    fn a_session_is_continued() {
        super::a_session_is_continued(&QWEN);
    }

    #[test]
    fn a_forced_push_is_refused() {
        super::a_forced_push_is_refused(&QWEN);
    }

    #[test]
    fn a_refused_key_suspends() {
        scenes::a_refused_key_suspends(&QWEN.real);
    }
}
