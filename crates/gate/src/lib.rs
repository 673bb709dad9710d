//! The checks: what judges an attempt, and what its agent is told about it.
//!
//! # Theory of operation
//!
//! A run's gates come from **packs** (TOML) and from its spec. [`collect`] reads the packs' texts once, at the
//! start; the runner pins them, and [`Packs::parse`] reads gates from pinned texts only, so that what lies in the
//! workspace is never what the work is judged against. Before each pipeline [`Discovered::look`] asks which gates
//! have something to do; a gate once discovered stays.
//!
//! [`run`] takes the applying gates through the ranks static, build, test, eval. A command gate is run by the
//! runner's supervisor; its exit status **and** what a reader counts in its report decide. Text that a reader does
//! not recognise is an error, never zero tests and never a pass. A rule gate reads files itself, with strings and
//! comments told from code by a masker. The integrity gate compares protected bytes, tools and tests with the
//! start. Findings that were there before ([`preflight`]) or are in the committed baseline are shown and excused.
//!
//! A finding's message is part of the report's identity, by which a run is proven immobile: it is stable, and what
//! varies from run to run goes to its detail. [`write_brief`] turns the report into the next attempt's brief:
//! the same report gives the same bytes.
//!
//! Everything in the workspace was written by an agent. No link is followed, no FIFO opened, every read is bounded,
//! and text is stripped of terminal escapes before anybody reads it.

mod beneath;
mod brief;
mod census;
mod command;
mod discovery;
mod files;
mod gate;
mod integrity;
mod lessons;
mod locate;
mod mask;
mod pack;
mod pack_file;
mod pipeline;
mod preflight;
mod ratchet;
mod readers;
mod rules;
mod stable;
mod tool;

pub use brief::{BriefInput, Tell, write_brief};
pub use census::TestCensus;
pub use command::{GateContext, Interrupted};
pub use discovery::{Discovered, applying};
pub use files::WorkFiles;
pub use gate::{CommandGate, Gate, Origin, ReportKind, spec_gates};
pub use integrity::{IntegrityInput, Offence, Resolution, Shadowed, integrity, shadowed};
pub use lessons::{Lesson, lessons};
pub use mask::Language;
pub use pack::{BASELINE, PackError, PackTexts, Packs, collect, shipped_names, shipped_text};
pub use pack_file::PackFileError;
pub use pipeline::{GateProgress, Plan, run};
pub use preflight::{Preflight, preflight};
pub use ratchet::{Known, RatchetError, collect_known, parse_baseline, write_baseline};
pub use rules::{Rule, RuleGate, Scope};
pub use triphammer_model::policy::PipelinePolicy;
