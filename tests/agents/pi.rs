//! pi, through `OpenAI`'s chat completions.

use serde_json::json;
use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real};
use crate::scenes;

static PI: Real = Real {
    kind: "pi",
    exports: |_| Vec::new(),
    configure: |rig, url| {
        let model = json!({
            "id": FAKE_MODEL,
            "name": FAKE_MODEL,
            "reasoning": false,
            "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 128_000,
            "maxTokens": 4096,
        });
        let provider = json!({
            "baseUrl": format!("{url}/v1"),
            "api": "openai-completions",
            "apiKey": KEY,
            "models": [model],
        });
        rig.write(".pi/agent/models.json", &json!({"providers": {"fake": provider}}).to_string());
        format!("model = \"fake/{FAKE_MODEL}\"\n")
    },
    reports_files: true,
    // Its stream has the status of a failed call in a text for people only.
    refusal: FaultKind::Overloaded,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&PI);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&PI);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&PI);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&PI);
}

#[test]
fn a_forced_push_is_refused() {
    scenes::a_forced_push_is_refused(&PI, "");
}
