//! What the model does, step by step.

use serde_json::Value;

use super::request::ModelRequest;

/// What comes of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Calls the agent's shell with this line.
    ShellCall(String),
    /// Writes a file with the tool that the agent has for it, or through its shell where it has none.
    WriteCall {
        /// The file's absolute path: some agents take no other.
        path: String,
        /// All that is in it; ends with a line feed.
        content: String,
    },
    /// Says this and ends its turn.
    Text(String),
    /// Fails as this service would, with more headers.
    Fails(Failure, Vec<(String, String)>),
    /// Answers with this status, whatever it means.
    Status {
        /// The status code.
        code: u16,
        /// More headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: Value,
    },
    /// Never answers.
    Hang,
    /// Closes the connection without a word.
    Drop,
    /// Answers with half of a reply.
    Malformed,
}

impl Step {
    /// A file written through the shell, which no agent reports as a file.
    pub fn heredoc(path: &str, content: &str) -> Self {
        Self::ShellCall(super::tools::heredoc(path, content))
    }
}

/// How a service fails; each interface has its own status and words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The key is not accepted.
    Authentication,
    /// Too many requests in a short time.
    RateLimit,
    /// The quota is spent.
    Quota,
    /// The service is overloaded.
    Overloaded,
    /// The prompt is longer than the context window.
    ContextOverflow,
    /// Something broke inside.
    Server,
}

/// Steps in order, counted from the last prompt: a request that holds two tool results since then gets the third.
#[derive(Clone, Debug)]
pub struct Script(Vec<Step>);

impl Script {
    /// A script; a request beyond its end gets the last step again.
    ///
    /// # Panics
    /// When there is no step.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Step> = steps.into_iter().collect();
        assert!(!steps.is_empty(), "a script has at least one step");
        Self(steps)
    }

    /// The step that a request gets.
    pub fn step(&self, request: &ModelRequest) -> Step {
        self.0[request.results().min(self.0.len() - 1)].clone()
    }
}
