//! What the program is told to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use triphammer_llm::Api;

/// The task, as one JSON object on standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeTask {
    /// Goal and findings; stands whole in every request.
    pub brief: String,
    /// The folder to work in; the current one where it is missing, which is the way for a name that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The model's name.
    pub model: String,
    /// How its service is spoken to.
    pub api: Api,
    /// Where the service is; else by the environment, else its founder's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable that holds the key; else the common one, which may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// How the model says what it wants done.
    #[serde(default)]
    pub actions: Actions,
    /// How much chance; the service's own where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Bounds.
    #[serde(default)]
    pub limits: NativeLimits,
    /// What an earlier attempt found out, for this one to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// How the model says what it wants done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actions {
    /// By calls of tools, as long as the service takes them and the model makes any; else as JSON.
    #[default]
    Auto,
    /// By calls of tools.
    Tools,
    /// As JSON, under a schema where the service has them.
    Json,
}

/// Bounds of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NativeLimits {
    /// Calls of the model.
    pub steps: u64,
    /// Tokens in all, of every kind. Looked at before each call, so that the last one may pass it.
    pub tokens: u64,
    /// Tokens that one request may hold, the answer included.
    pub context: u64,
    /// Tokens of one answer.
    pub reply: u32,
    /// Bytes that the model is shown of the results of one answer.
    pub output: usize,
    /// Seconds for one command or search.
    pub tool_timeout: u64,
    /// Seconds for one call of the model.
    pub call_timeout: u64,
}

impl Default for NativeLimits {
    fn default() -> Self {
        Self {
            steps: 100,
            tokens: 2_000_000,
            context: 96_000,
            reply: 8_192,
            output: 24_000,
            tool_timeout: 300,
            call_timeout: 600,
        }
    }
}

impl NativeLimits {
    /// Bounds that can be worked with, or what is wrong with these.
    fn check(&self) -> Result<(), String> {
        let zero = [
            (self.steps == 0, "steps"),
            (self.tokens == 0, "tokens"),
            (self.reply == 0, "reply"),
            (self.tool_timeout == 0, "tool_timeout"),
            (self.call_timeout == 0, "call_timeout"),
        ];
        if let Some((_, name)) = zero.iter().find(|(zero, _)| *zero) {
            return Err(format!(
                "limits.{name} is 0, which leaves nothing to work with; leave it out or raise it"
            ));
        }
        if self.context < 2 * u64::from(self.reply) {
            return Err(format!(
                "limits.context is {} tokens and an answer takes {} of them; allow at least twice as many",
                self.context, self.reply
            ));
        }
        Ok(())
    }

    /// Bytes of results that fit into the context beside everything else, at most [`NativeLimits::output`].
    pub(super) fn shown(&self) -> usize {
        let room = (self.context - u64::from(self.reply)) * 3 / 4;
        self.output.min(usize::try_from(room).unwrap_or(usize::MAX)).max(500)
    }
}

impl NativeTask {
    /// Reads a task; the error says what is wrong with it.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let task: Self =
            serde_json::from_slice(text).map_err(|error| format!("the task on standard input: {error}"))?;
        for (name, value) in [("brief", &task.brief), ("model", &task.model)] {
            if value.trim().is_empty() {
                return Err(format!("the task on standard input: `{name}` is empty"));
            }
        }
        task.limits.check().map_err(|what| format!("the task on standard input: {what}"))?;
        Ok(task)
    }
}
