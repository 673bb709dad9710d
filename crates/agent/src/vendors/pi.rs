//! pi.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::Pi;

pub(super) static PI: Vendor = Vendor {
    kind: "pi",
    program: "pi",
    install: "npm install -g @mariozechner/pi-coding-agent",
    seen: "0.73.1",
    keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
    reads: &["PI_CODING_AGENT_DIR"],
    state: &[(".pi", "PI_CODING_AGENT_DIR")],
    sets_fenced: &[],
    logins: &[".pi/agent/auth.json", ".pi/agent/models.json"],
    continues: true,
    unknowns: &["exit codes of its commands", "files that its shell writes"],
    // No look for updates at the start.
    sets: &[("PI_OFFLINE", "1")],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Pi::default())),
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["-p", "--mode", "json"]);
        option(&mut argv, "--model", ask.model);
        option(&mut argv, "--session", ask.session);
        argv
    },
    record: None,
};
