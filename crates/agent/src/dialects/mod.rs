//! What the agents' event streams mean, one file a vendor.
//!
//! A dialect takes claims, tokens, cost, session, model, stop reason, last words and faults out of a stream. Only fields
//! decide: exit codes and cheerful results are not believed, and no text is searched for words. Each file says which
//! shapes were seen in recorded streams and which were only read about in the vendor's sources or documentation.
//!
//! Common to all:
//!
//! - A file is claimed when the call of its tool succeeded. What a shell writes is no claim in any of them.
//! - A command is claimed with its exit status where the stream tells one, whether it succeeded or not. One that was
//!   asked for and refused was not run.
//! - Tokens read from a cache are apart from the input; those written to it are input; reasoning is output.
//! - A failed call to the model is a fault, unless a later one was answered.
//! - A failure that no field explains is [`Overloaded`](triphammer_model::FaultKind::Overloaded) where the model was not
//!   heard: to wait costs less than to burn attempts against a service that is down.
//! - A stream without the event that ends it [breaks off](crate::heard::Heard::breaks_off).

mod calls;
mod claude;
mod codex;
mod codex_rollout;
mod fields;
mod gemini;
mod messages;
mod mini;
mod opencode;
mod own;
mod pi;
mod qwen;

#[cfg(test)]
mod tests;

pub(crate) use claude::Claude;
pub(crate) use codex::Codex;
pub(crate) use codex_rollout::{add_rollout, rollout_path};
pub(crate) use gemini::Gemini;
pub(crate) use mini::read_trajectory;
pub(crate) use opencode::Opencode;
pub(crate) use own::{Own, OwnEvent};
pub(crate) use pi::Pi;
pub(crate) use qwen::Qwen;
