//! The binary's contract: outcomes, exit codes, files, and a person's part.

mod accept;
mod bad_input;
mod breaker;
mod budget;
mod common;
mod contract;
mod kill;
mod plan;
mod resume;
