//! Claude Code, through Anthropic's messages.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{Real, THREE_REQUESTS};
use crate::scenes;

static CLAUDE: Real = Real {
    kind: "claude",
    secrets: &["ANTHROPIC_API_KEY"],
    // As root it works without asking only where it is told that nothing can be broken.
    env: |url| {
        vec![
            format!("ANTHROPIC_BASE_URL={url}"),
            "IS_SANDBOX=1".to_owned(),
            // Ten by default, which takes three minutes.
            "CLAUDE_CODE_MAX_RETRIES=2".to_owned(),
        ]
    },
    configure: |_, _| format!("model = \"{FAKE_MODEL}\"\n"),
    reports_files: true,
    tokens: Some(THREE_REQUESTS),
    refusal: FaultKind::Authentication,
};

#[test]
fn a_finding_is_mended() {
    scenes::a_finding_is_mended(&CLAUDE);
}

#[test]
fn a_session_is_continued() {
    scenes::a_session_is_continued(&CLAUDE);
}

#[test]
fn nothing_outlives_a_kill() {
    scenes::nothing_outlives_a_kill(&CLAUDE);
}

#[test]
fn a_refused_key_suspends() {
    scenes::a_refused_key_suspends(&CLAUDE);
}
