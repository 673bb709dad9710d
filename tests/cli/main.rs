//! The binary's contract: outcomes, exit codes, files, and a person's part.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails there; what was not run and the seed are said aloud"
)]

mod accept;
mod acp;
mod bad_input;
mod breaker;
mod budget;
mod common;
mod contract;
mod costs;
mod docs;
mod export;
mod fence;
mod gc;
mod hook;
mod hostile;
mod isolation;
mod kill;
mod native;
mod person;
mod plan;
mod replay;
mod restore;
mod resume;
mod store;
mod vendors;
