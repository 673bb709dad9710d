//! Carries out what the machine wants done, on the real world.
//!
//! # Theory of operation
//!
//! A [`Run`] owns everything that one run needs: its journal, its machine, its eyes on the workspace, its gates and
//! its agents. [`prepare`] builds one from a [`Request`]; [`reopen`] builds one from a run directory, feeding the
//! journal through the same machine. [`Run::drive`] then loops: take an effect, do it, and record the event that it
//! led to together with the effects that the machine answers with; the line is on disk before the next effect starts.
//!
//! What goes wrong around the work (a full disk, an unreadable workspace) is an event like any other and suspends the
//! run. Only a journal that cannot be written ends the process without one: what was not recorded did not happen.

mod acts;
mod agents;
mod attempt;
mod confirm;
mod containment;
mod cost;
mod environment;
mod error;
mod folder;
mod gates;
mod gc;
mod lessons;
mod notice;
mod observe;
mod pins;
mod places;
mod plan;
mod prepare;
mod proof;
mod redaction;
mod regate;
mod resume;
mod run;
mod set_up;
mod settings;
mod tool_caches;
mod verify;

pub use acts::{ActError, PutBack, apply, decide, restore, tell, undo};
pub use agents::check_agent;
pub use error::{RunError, StartError};
pub use gc::{GcError, GcReport, GcRequest, GcRow, Objects, gc};
pub use notice::{Notice, Silent, Watcher};
pub use prepare::{Place, Request, prepare};
pub use redaction::redactor_of;
pub use regate::{RegateRequest, Regated, WhichGates, regate, which_gates};
pub use resume::reopen;
pub use run::{Finished, Run, Timings};
pub use settings::{AgentKind, AgentSettings, Settings};
pub use verify::{Flaw, Verified, verify};
