//! Claude Code, through Anthropic's messages.

use triphammer_model::FaultKind;
use triphammer_testkit::FAKE_MODEL;

use crate::rig::{KEY, Real};
use crate::scenes;

static CLAUDE: Real = Real {
    kind: "claude",
    // As root it works without asking only where it is told that nothing can be broken; and it tries ten times by
    // default, which takes three minutes.
    exports: |url| {
        vec![
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ("ANTHROPIC_BASE_URL", url.to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
        ]
    },
    configure: |_, _| format!("model = \"{FAKE_MODEL}\"\n"),
    reports_files: true,
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

#[test]
fn a_forced_push_is_refused() {
    scenes::a_forced_push_is_refused(&CLAUDE, "");
}
