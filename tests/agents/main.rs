//! Real agents, as their registries have them, through whole runs: each against a model service that says what a
//! script tells it. `cargo xtask agents` installs them and runs these tests; nothing else does.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says why and fails there"
)]

mod acp;
mod claude;
mod codex;
mod gemini;
mod mini;
mod opencode;
mod pi;
mod qwen;
mod rig;
mod scenes;
