//! The words of Triphammer as types, shared by every room of the house.
//!
//! # Theory of operation
//!
//! Everything that a decision depends on enters the [machine](../triphammer_forge) as an [`Event`]; everything
//! that the machine wants done leaves it as an [`Effect`]. Both are plain data and are written to the journal
//! before an effect runs. The other types are what those two carry: what the world showed ([`Movement`]), what
//! the agent claimed ([`Receipt`]), what the gates found ([`Report`]), and what was consented to ([`Spec`],
//! [`Policy`], [`Limits`]).
//!
//! This crate does no I/O, reads no clock and draws no random number. It also holds the traits that cross rooms
//! ([`Agent`], [`Supervisor`]), so that rooms need not know each other.

pub mod agent;
pub mod config;
pub mod digest;
pub mod effect;
pub mod environment;
pub mod event;
pub mod finding;
pub mod guarded;
pub mod ids;
pub mod journal;
pub mod money;
pub mod movement;
pub mod outcome;
pub mod path;
pub mod plan;
pub mod policy;
pub mod price;
pub mod process;
pub mod receipt;
pub mod redact;
pub mod report;
pub mod size;
pub mod span;
pub mod spec;
mod suggest;
pub mod summary;
pub mod text;

pub use agent::{Agent, AgentError, Performance, Task};
pub use digest::Digest;
pub use effect::{Effect, TakeOver};
pub use event::{Event, Stamp};
pub use finding::{Finding, Location, Severity};
pub use guarded::{GuardReport, Reported};
pub use ids::{AgentName, Attempt, GateName, RunId, TreeId};
pub use journal::{JournalLine, SCHEMA};
pub use money::MicroUsd;
pub use movement::{Bounds, Change, Claim, Content, Movement, Observed, Standing};
pub use outcome::{AcceptedAs, FailReason, Outcome, RejectReason, SuspendReason};
pub use path::WorkPath;
pub use plan::Plan;
pub use policy::{Limits, Policy};
pub use price::Price;
pub use process::{Cancel, Ended, Launch, Supervisor};
pub use receipt::{ClaimKind, ClaimedFile, Continuation, CostBy, Fault, FaultKind, Receipt, Tokens};
pub use redact::Redactor;
pub use report::{Counts, GateKind, GateVerdict, Judgement, Report};
pub use size::Size;
pub use span::Span;
pub use spec::Spec;
pub use summary::RunSummary;
