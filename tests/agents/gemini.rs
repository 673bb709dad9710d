//! Gemini CLI, through Gemini's content generation.

use serde_json::json;
use triphammer_model::FaultKind;

use crate::rig::{KEY, Real};
use crate::scenes;

static GEMINI: Real = Real {
    kind: "gemini",
    exports: |url| vec![("GEMINI_API_KEY", KEY.to_owned()), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())],
    configure: |rig, _| {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
        });
        rig.write(".gemini/settings.json", &settings.to_string());
        // It accepts the names of its own models only.
        "model = \"gemini-2.5-flash\"\n".to_owned()
    },
    reports_files: true,
    refusal: FaultKind::Authentication,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&GEMINI);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&GEMINI);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&GEMINI);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&GEMINI);
}

#[test]
fn a_forced_push_is_refused() {
    scenes::a_forced_push_is_refused(&GEMINI, "");
}
