//! The gates from outside: commands run by a supervisor that the tests hold, whole pipelines, briefs.

#![expect(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod bench;
mod brief;
mod command;
mod honesty;
mod pipeline;
mod preflight;
