//! Codex, through `OpenAI`'s responses.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real};
use crate::scenes;

static CODEX: Real = Real {
    kind: "codex",
    exports: |_| vec![("OPENAI_API_KEY", KEY.to_owned())],
    configure: |rig, url| {
        rig.write(
            ".codex/config.toml",
            &format!(
                "model_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"{url}/v1\"\n\
                 env_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n"
            ),
        );
        format!("model = \"{FAKE_MODEL}\"\n")
    },
    reports_files: true,
    refusal: FaultKind::Authentication,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&CODEX);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&CODEX);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&CODEX);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&CODEX);
}

/// It runs only hooks that a person has trusted, unless it is told that somebody else vets them.
#[test]
fn a_forced_push_is_refused() {
    let trusting = "argv = [\"codex\", \"--dangerously-bypass-hook-trust\"]\n";
    scenes::a_forced_push_is_refused(&CODEX, trusting);
}
