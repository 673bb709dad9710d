//! What goes wrong for users of such programs, each with a shell script that stands in for the agent or the gate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod cleaning;
mod done;
mod fake;
mod gates;
mod limits;
mod processes;
mod recorded;
mod seeing;
mod stalls;
mod state;
mod tampering;
