//! Model clients: the one place of the house that calls a model.
//!
//! # Theory of operation
//!
//! A [`Request`] is what all services can be asked: a system text, messages, and what shape the answer shall have
//! ([`Shape`]: text, calls of tools, or JSON under a schema). A [`Client`] sends it and answers with a [`Reply`] or an
//! [`LlmError`]. [`HttpClient`] speaks both wire formats that nearly every service understands ([`Api`]); where a
//! service lacks a feature it says so with an error, and what to do about that is the caller's decision.
//!
//! Three rules hold for every call:
//!
//! - one deadline for all of it, from the name's look-up to the last byte of the answer, and one bound on its size;
//! - one request: nothing is asked twice behind the caller's back, because a second answer costs money and may differ.
//!   Only a connection that nobody accepts is tried again for a second, for a server that is just starting;
//! - errors are a closed set ([`LlmFault`]), read from the status and from fields made for it, never from the words of a
//!   message; each says what to do. What was used up is kept even where the answer is an error.
//!
//! A count of tokens that a service does not send is unknown (`None`), never zero; so is the price of a model that the
//! [`Prices`] do not name. Keys are [`Key`]s: they are neither printed nor part of an error.

mod anthropic;
mod base;
mod client;
mod codes;
mod error;
mod http;
mod key;
mod openai;
mod prices;
mod reply;
mod request;
mod reset;

pub use base::{BadUrl, BaseUrl};
pub use client::{Api, Client, Endpoint, HttpClient, SetupError, UnknownApi};
pub use error::{LlmError, LlmFault, Told};
pub use key::{BadKey, Key};
pub use prices::{BadPrices, Prices};
pub use reply::{Reply, Stop, ToolCall};
pub use request::{Message, Request, Schema, Shape, Tool, ToolResult};
pub use triphammer_model::Price;
