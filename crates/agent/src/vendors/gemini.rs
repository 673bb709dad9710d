//! Gemini CLI.

use super::{Ask, Prompt, Speaks, Vendor, option, words};
use crate::dialects::Gemini;

pub(super) static GEMINI: Vendor = Vendor {
    kind: "gemini",
    program: "gemini",
    install: "npm install -g @google/gemini-cli",
    seen: "0.61.0",
    keys: &["GEMINI_API_KEY"],
    // `GOOGLE_API_KEY` counts only with `GOOGLE_GENAI_USE_VERTEXAI=true`. Where an address is set, its settings have to
    // name a way to log in as well (`security.auth.selectedType`).
    reads: &[
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ],
    state: &[(".gemini", "")],
    sets_fenced: &[],
    logins: &[".gemini/oauth_creds.json"],
    continues: true,
    unknowns: &[
        "its cost, without a price for its model",
        "exit codes of its commands",
        "files that its shell writes",
    ],
    sets: &[],
    prompt: Prompt::Stdin,
    speaks: Speaks::Stream(|| Box::new(Gemini::default())),
    argv: |ask: &Ask<'_>| {
        let mut argv = words(["--skip-trust", "-y", "-o", "stream-json"]);
        option(&mut argv, "-m", ask.model);
        option(&mut argv, "--resume", ask.session);
        argv
    },
    record: None,
};
