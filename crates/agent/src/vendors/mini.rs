//! mini-swe-agent.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::read_trajectory;

const TRAJECTORY: &str = "trajectory.json";

pub(super) static MINI: Vendor = Vendor {
    kind: "mini",
    program: "mini",
    install: "pip install mini-swe-agent",
    seen: "2.4.6",
    keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
    reads: &[
        "MSWEA_MODEL_NAME",
        "MSWEA_GLOBAL_CONFIG_DIR",
        "MSWEA_COST_TRACKING",
        "OPENAI_API_BASE",
        "LITELLM_LOCAL_MODEL_COST_MAP",
    ],
    state: &[(".config/mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR")],
    sets_fenced: &[],
    logins: &[".config/mini-swe-agent/.env"],
    continues: false,
    unknowns: &["which files it touches: it has a shell only"],
    sets: &[("MSWEA_CONFIGURED", "true"), ("MSWEA_SILENT_STARTUP", "1")],
    prompt: Prompt::Argument,
    speaks: Speaks::File(TRAJECTORY, read_trajectory),
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["-y", "--exit-immediately"]);
        option(&mut argv, "-m", ask.model);
        option(&mut argv, "-o", Some(ask.scratch.join(TRAJECTORY)));
        option(&mut argv, "-t", Some(ask.prompt));
        argv
    },
    record: None,
};
