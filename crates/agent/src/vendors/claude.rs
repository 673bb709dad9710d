//! Claude Code.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::Claude;

pub(super) static CLAUDE: Vendor = Vendor {
    kind: "claude",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    seen: "2.1.332",
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    // As root it starts only with `IS_SANDBOX=1`. A failed call is tried ten times, for three minutes, unless told
    // otherwise.
    reads: &[
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CONFIG_DIR",
        "IS_SANDBOX",
    ],
    state: &[(".claude", "CLAUDE_CONFIG_DIR"), (".claude.json", "")],
    // Where a fence holds it, it need not ask an administrator whether he knows what he does.
    sets_fenced: &[("IS_SANDBOX", "1")],
    logins: &[".claude/.credentials.json"],
    continues: true,
    unknowns: &["files that its shell writes"],
    sets: &[
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Claude::default())),
    argv: |ask: &Ask<'_>| {
        let mut argv =
            words(["-p", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions"]);
        option(&mut argv, "--model", ask.model);
        option(&mut argv, "--resume", ask.session);
        argv
    },
    record: None,
};
