//! The decisions of the forge loop: what to do after each thing that happened.
//!
//! # Theory of operation
//!
//! [`Machine::handle`] takes an event with the time at which it happened and returns effects. It reads no clock,
//! does no I/O and draws no random number, so a journal fed through it a second time yields the same effects, and
//! the first one that differs is where two versions, or two policies, disagree ([`replay()`], [`what_if`]).
//!
//! An attempt walks through look, implement, observe, judge; [`Machine`] keeps where it stands and what the run
//! has spent. After each report it decides in a fixed order: accepted, tampered, parked, stalled, verifier
//! broken, attempts used up, budget used up, cost unknown, next attempt. The [`Breaker`] is the
//! only part that calls a run immobile, and it does so on proof alone.

mod breaker;
mod fault;
mod machine;
mod replay;
mod spending;

pub use breaker::{Breaker, Entry, Proof};
pub use fault::{FaultAction, action_for};
pub use machine::{MACHINE_VERSION, Machine};
pub use replay::{Beyond, Divergence, WhatIf, Would, replay, what_if};
pub use spending::Spending;
