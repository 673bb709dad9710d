//! Qwen Code, through `OpenAI`'s chat completions.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{Real, THREE_REQUESTS};
use crate::scenes;

static QWEN: Real = Real {
    kind: "qwen",
    secrets: &["OPENAI_API_KEY"],
    env: |url| vec![format!("OPENAI_BASE_URL={url}/v1"), format!("OPENAI_MODEL={FAKE_MODEL}")],
    configure: |_, _| format!("argv = [\"qwen\", \"--auth-type\", \"openai\"]\nmodel = \"{FAKE_MODEL}\"\n"),
    reports_files: true,
    tokens: Some(THREE_REQUESTS),
    // A failed call becomes a message of the model, with the status in its text.
    refusal: FaultKind::Overloaded,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&QWEN);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&QWEN);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&QWEN);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&QWEN);
}
