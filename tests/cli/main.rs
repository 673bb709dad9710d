//! The binary's contract: outcomes, exit codes, files, and a person's part.

mod accept;
mod breaker;
mod budget;
mod common;
mod contract;
mod kill;
mod plan;
mod resume;
