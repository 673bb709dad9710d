//! opencode, through `OpenAI`'s chat completions.

use serde_json::json;
use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real, Rig};
use crate::scenes;

static OPENCODE: Real = Real {
    kind: "opencode",
    exports: |_| vec![("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned())],
    configure: |rig, url| {
        configure(rig, url, 0, "allow");
        format!("model = \"fake/{FAKE_MODEL}\"\n")
    },
    reports_files: true,
    refusal: FaultKind::Authentication,
};

/// Its configuration for a service at this address, with a price in dollars per million tokens (twice that for what is written)
/// and its word on what its tools may do.
pub(crate) fn configure(rig: &Rig, url: &str, price: u32, permission: &str) {
    let model = json!({
        "name": FAKE_MODEL,
        "cost": {"input": price, "output": 2 * price},
        "limit": {"context": 128_000, "output": 4096},
        "tool_call": true,
    });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "fake",
        "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
        "models": {FAKE_MODEL: model},
    });
    let config = json!({
        "provider": {"fake": provider},
        "model": format!("fake/{FAKE_MODEL}"),
        "permission": {"edit": permission, "bash": permission},
    });
    rig.write(".config/opencode/opencode.json", &config.to_string());
}

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&OPENCODE);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&OPENCODE);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&OPENCODE);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&OPENCODE);
}

#[test]
fn a_forced_push_is_refused() {
    scenes::a_forced_push_is_refused(&OPENCODE, "");
}
