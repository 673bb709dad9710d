//! mini-swe-agent, through `OpenAI`'s chat completions. It has a shell and no sessions.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real};
use crate::scenes;

static MINI: Real = Real {
    kind: "mini",
    // The model has no price, and nobody is to be asked for one.
    exports: |url| {
        vec![
            ("OPENAI_API_KEY", KEY.to_owned()),
            ("OPENAI_API_BASE", format!("{url}/v1")),
            ("MSWEA_COST_TRACKING", "ignore_errors".to_owned()),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
        ]
    },
    configure: |_, _| format!("model = \"openai/{FAKE_MODEL}\"\n"),
    reports_files: false,
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
