//! The binary's contract: outcomes, exit codes, files, and a person's part.

mod accept;
mod breaker;
mod budget;
mod common;
mod kill;
mod resume;
