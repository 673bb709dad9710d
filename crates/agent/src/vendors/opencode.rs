//! opencode.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::Opencode;

pub(super) static OPENCODE: Vendor = Vendor {
    kind: "opencode",
    program: "opencode",
    install: "npm install -g opencode-ai",
    seen: "1.18.33",
    keys: &[
        "OPENCODE_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "GEMINI_API_KEY",
    ],
    reads: &[
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_PERMISSION",
    ],
    state: &[
        (".local/share/opencode", ""),
        (".config/opencode", ""),
        (".cache/opencode", ""),
        (".local/state/opencode", ""),
    ],
    sets_fenced: &[],
    logins: &[".local/share/opencode/auth.json"],
    continues: true,
    unknowns: &["files that its shell writes"],
    sets: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Opencode::default())),
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["run", "--format", "json"]);
        option(&mut argv, "-m", ask.model);
        option(&mut argv, "-s", ask.session);
        argv
    },
    record: None,
};
