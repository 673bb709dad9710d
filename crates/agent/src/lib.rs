//! The hands: whatever writes the code, behind one trait, and the supervision of its processes.
//!
//! # Theory of operation
//!
//! An agent is asked to work on a [task](triphammer_model::Task) and answers with what it claims (a receipt) and how its
//! process ended. Claims decide nothing here; they are carried to where the world is looked at.
//!
//! Agents that people know by name are [vendors](Vendor): how each is started stands in `vendors/`, what its event stream
//! means in `dialects/`, one file each; [`native`] is a loop of our own, which runs as a process like theirs, and [`acp`] a
//! program of our own that drives any server of the Agent Client Protocol. A stream is read as it comes, in bounded
//! memory, and what it says is collected in one place (`heard.rs`), of which the receipt is made. What holds a
//! launch (where it may write, its network, its limits) is a [`Containment`], which the shim lays.
//!
//! Every process of an agent or a gate is started through a [shim]: this same binary under a hidden name, between
//! the [`ProcessSupervisor`] and the program. Three facts make sure that nothing outlives its launch:
//!
//! - the shim is a subreaper, so everything below it stays below it, however often it forks or changes its session;
//! - the shim's control channel closes when the supervisor dies, in whatever way, and then it kills everything;
//! - when the shim itself is killed, its orphans come to the main process, [a subreaper too](become_subreaper), which
//!   tells them by their session and kills them.
//!
//! The shim says "done" only when the kernel says that it has no child left. A pid file names the shim by number, start
//! time and boot for a process that comes later ([`end_left_over`]).
//!
//! Output runs through pipes that the supervisor reads on one thread: redacted, counted, streamed to a log that keeps head
//! and tail under a fixed cap, with a short tail in memory. The end of a launch is the leader's end: whoever still holds a
//! pipe is dead by then.

pub mod acp;
mod adapter;
mod beneath;
mod capped_log;
mod children;
mod command;
mod containment;
mod dialects;
mod event;
mod faults;
mod guarded;
mod heard;
mod holder;
mod last_words;
mod limits;
pub mod native;
mod own_program;
mod pid_file;
mod plain_file;
mod process_tree;
mod receipt_file;
mod reset_time;
mod script;
mod scripted;
pub mod shim;
mod stream;
mod subreaper;
mod supervisor;
mod transcript;
mod vendor;
mod vendors;

pub use adapter::Adapter;
pub use command::{CommandAgent, CommandConfig, Program, PromptBy};
pub use containment::{Containment, Fence, Hold, TreeLimits, bubblewrap_program};
pub use guarded::guard_report;
pub use limits::ProcessLimits;
pub use pid_file::{LeftOverError, PID_FILE, end_left_over};
pub use script::{Script, ScriptError};
pub use scripted::ScriptedAgent;
pub use subreaper::become_subreaper;
pub use supervisor::ProcessSupervisor;
pub use vendor::{VendorAgent, VendorConfig};
pub use vendors::{Login, Vendor, named_in};
