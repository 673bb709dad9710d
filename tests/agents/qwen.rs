//! Qwen Code, through `OpenAI`'s chat completions.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real};
use crate::scenes;

static QWEN: Real = Real {
    kind: "qwen",
    exports: |url| vec![("OPENAI_API_KEY", KEY.to_owned()), ("OPENAI_BASE_URL", format!("{url}/v1"))],
    // By itself it takes a key from the environment only where a model is named there too.
    configure: |_, _| {
        let argv = "[\"qwen\", \"--auth-type\", \"openai\"]";
        format!("argv = {argv}\nmodel = \"{FAKE_MODEL}\"\n")
    },
    reports_files: true,
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

#[test]
fn a_forced_push_is_refused() {
    scenes::a_forced_push_is_refused(&QWEN, "");
}
