//! Why a call failed: a closed set, each with what to do.

use std::fmt;

use jiff::Timestamp;
use triphammer_model::{Fault, FaultKind, Tokens};

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LlmFault {
    /// The key is missing, wrong or not allowed to do this.
    Authentication,
    /// Too many requests; passes by itself.
    RateLimit,
    /// The money or the quota is spent.
    Quota,
    /// The service is overloaded or broken.
    Overloaded,
    /// The request is larger than the model's context.
    ContextOverflow,
    /// The model or its service will not answer this.
    Refused,
    /// The service does not understand or not know what it was asked for: a parameter, a feature, a model.
    BadRequest,
    /// The answer is none that the service's interface knows.
    Protocol,
    /// There was no whole answer in time.
    Timeout,
    /// The service could not be reached, or the connection broke.
    Network,
}

impl LlmFault {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authentication => "not let in",
            Self::RateLimit => "too many requests",
            Self::Quota => "the quota is spent",
            Self::Overloaded => "overloaded or broken",
            Self::ContextOverflow => "larger than the model's context",
            Self::Refused => "refused",
            Self::BadRequest => "not understood",
            Self::Protocol => "no answer as it should be",
            Self::Timeout => "no answer in time",
            Self::Network => "out of reach",
        }
    }

    /// What to do.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Authentication => "check the key and what it is allowed to do",
            Self::RateLimit => "wait until the limit resets",
            Self::Quota => "add credit, wait for the quota to be renewed, or take another model",
            Self::Overloaded => "try again later",
            Self::ContextOverflow => "send less, or take a model with a larger context",
            Self::Refused => "ask otherwise, or take another model",
            Self::BadRequest => {
                "check the model's name, the base URL and whether the service has the feature"
            }
            Self::Protocol => "check that the base URL is the one of such a service",
            Self::Timeout => "allow more time, or ask for a shorter answer",
            Self::Network => "check the base URL, the network and that the server is running",
        }
    }

    /// The same in the words of a receipt.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::Authentication => FaultKind::Authentication,
            Self::RateLimit => FaultKind::RateLimit,
            Self::Quota => FaultKind::Quota,
            // The service is no help now and may be later: nothing that an attempt is charged for.
            Self::Overloaded | Self::Timeout | Self::Network => FaultKind::Overloaded,
            Self::ContextOverflow => FaultKind::ContextOverflow,
            Self::Refused => FaultKind::Refused,
            Self::BadRequest | Self::Protocol => FaultKind::Protocol,
        }
    }
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmError {
    /// What kind of failure.
    pub fault: LlmFault,
    /// The HTTP status, where an answer came.
    pub status: Option<u16>,
    /// When a limit resets.
    pub reset_at: Option<Timestamp>,
    /// What the call used all the same.
    pub usage: Option<Tokens>,
    /// What a person is told.
    pub told: Box<Told>,
}

/// What a person is told about a call that failed. Nothing is decided from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The URL that was asked. No key is in it.
    pub place: String,
    /// The model that was asked.
    pub model: String,
    /// What was said, bounded and in one line.
    pub message: String,
    /// The service's name for this call.
    pub request_id: Option<String>,
}

impl LlmError {
    /// The same for a receipt.
    pub fn to_fault(&self) -> Fault {
        Fault { kind: self.fault.kind(), reset_at: self.reset_at, message: Some(self.to_string()) }
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { place, model, message, request_id } = &*self.told;
        write!(f, "asking `{model}` at {place}: {}", self.fault.name())?;
        if let Some(status) = self.status {
            write!(f, " (status {status})")?;
        }
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        write!(f, "; {}", self.fault.advice())?;
        if let Some(at) = self.reset_at {
            write!(f, " (at {at})")?;
        }
        if let Some(id) = request_id {
            write!(f, "; request {id}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LlmError {}
