//! Shows a run: pure projections from stored types to text and JSON.
//!
//! # Theory of operation
//!
//! Nothing here reads a file or a clock: whoever shows a run hands over what was read, or says why it could not be
//! read. An artifact that is missing is a line like any other ([`Artifact`]), so that a run that died half-way can
//! be looked at.
//!
//! Two promises hold for every text. What others wrote (an agent, a gate, a file's name) carries no control
//! characters and no marks that turn the direction of writing ([`marked`](triphammer_model::text::marked)). And whatever is cut says exactly how much
//! was left out and where all of it is ([`Bounded`]).

mod atif;
mod attempt;
mod bounded;
mod clean;
mod exported;
mod github;
mod junit;
mod outcome;
mod outlook;
mod plan;
mod preflight;
mod proof;
mod regated;
mod run;
#[cfg(test)]
mod samples;
mod sarif;
#[cfg(test)]
mod schema_check;
mod story;
mod table;
mod text;
mod verdict;

pub use atif::atif;
pub use attempt::{Artifact, AttemptView, attempt_json, show_attempt};
pub use bounded::{Bounded, bounded_lines};
pub use clean::Clean;
pub use exported::{ExportView, ExportedAttempt};
pub use github::{github_commands, github_summary};
pub use junit::junit;
pub use outcome::{done_line, next_commands};
pub use outlook::{Outlook, TradeOff, WouldHave, outlook_json, outlook_text, trade_off_table};
pub use plan::{plan_json, plan_line, plan_text};
pub use preflight::preflight_line;
pub use proof::StallProof;
pub use regated::{regated_json, regated_text};
pub use run::{RunView, show_run};
pub use sarif::sarif;
pub use story::Story;
pub use table::{RunRow, runs_table};
pub use text::{count, one_line, seconds};
pub use verdict::{report_line, show_verdict, verdict_line};
