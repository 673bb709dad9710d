//! A model service that says what a script tells it.
//!
//! # Theory of operation
//!
//! A [`FakeModel`] listens on an ephemeral loopback port and speaks what agents speak: `OpenAI`'s chat completions and
//! responses, Anthropic's messages, Gemini's content generation, each plain and as a stream. A request is taken apart
//! by its interface ([`wire`]) into one form: prompts, tool results, tools on offer. The script sees that form only
//! and answers with a [`Step`]; which tool does what a step asks for, and how its arguments are named, is looked up in
//! the tools that the request itself offers. So one script drives every agent. All requests are kept for assertions.
//!
//! Usage is known to the token: a request that holds `n` tool results since its last prompt cost 1000 + n tokens of
//! input, 100 n of them from the cache, and 20 + n of output.

mod anthropic;
mod chat;
mod gemini;
mod http;
mod request;
mod responses;
mod schema;
mod script;
mod service;
mod tools;
mod wire;

#[cfg(test)]
mod tests;

pub use request::ModelRequest;
pub use script::{Failure, Script, Step};
pub use service::{FAKE_MODEL, FakeModel};
