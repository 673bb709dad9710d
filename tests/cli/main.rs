//! The binary's contract: outcomes, exit codes, files, and a person's part.

mod accept;
mod bad_input;
mod breaker;
mod budget;
mod common;
mod contract;
mod isolation;
mod kill;
mod person;
mod plan;
mod resume;
