//! mini-swe-agent, through `OpenAI`'s chat completions. It has a shell and no sessions.

use serde_json::json;
use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{Real, THREE_REQUESTS};
use crate::scenes;

static MINI: Real = Real {
    kind: "mini",
    secrets: &["OPENAI_API_KEY"],
    // The model has no price, and nobody is to be asked for one.
    env: |_| {
        vec!["MSWEA_COST_TRACKING=ignore_errors".to_owned(), "LITELLM_LOCAL_MODEL_COST_MAP=True".to_owned()]
    },
    configure: |_, url| {
        let base = format!("model.model_kwargs.api_base={url}/v1");
        let argv = json!(["mini", "-c", "mini.yaml", "-c", base]);
        format!("argv = {argv}\nmodel = \"openai/{FAKE_MODEL}\"\n")
    },
    reports_files: false,
    tokens: Some(THREE_REQUESTS),
    refusal: FaultKind::Authentication,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&MINI);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&MINI);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&MINI);
}
