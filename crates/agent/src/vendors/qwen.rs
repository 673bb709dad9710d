//! Qwen Code.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::Qwen;

pub(super) static QWEN: Vendor = Vendor {
    kind: "qwen",
    program: "qwen",
    install: "npm install -g @qwen-code/qwen-code",
    seen: "0.15.10",
    keys: &["DASHSCOPE_API_KEY", "OPENAI_API_KEY"],
    // Unless its settings or `--auth-type` say how to log in, it takes a key only with both of these beside it.
    reads: &["OPENAI_BASE_URL", "OPENAI_MODEL", "QWEN_HOME"],
    state: &[(".qwen", "QWEN_HOME")],
    sets_fenced: &[],
    logins: &[".qwen/oauth_creds.json"],
    continues: true,
    unknowns: &["its cost, without a price for its model", "files that its shell writes"],
    sets: &[],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Qwen::default())),
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["-y", "-o", "stream-json"]);
        option(&mut argv, "-m", ask.model);
        option(&mut argv, "--resume", ask.session);
        argv
    },
    record: None,
};
