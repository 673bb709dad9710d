//! `[agents.NAME]`: an agent as it is configured.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use crate::ids::AgentName;
use crate::span::Span;
use crate::spec::is_name;

use super::value::EnvEntry;

/// Hard deadline of one try when none is configured.
pub const DEFAULT_TIMEOUT: Span = Span::minutes(45);

/// Longest silence of an agent when none is configured.
pub const DEFAULT_IDLE_TIMEOUT: Span = Span::minutes(15);

/// The name that `--agent-cmd` works under.
const RESERVED: &str = "command";

/// How the brief reaches a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromptWay {
    /// On standard input.
    #[default]
    Stdin,
    /// As the path of a file, in its last argument.
    File,
    /// As the text of its last argument.
    Arg,
}

/// What an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// A command.
    Command {
        /// Program and arguments; never empty.
        argv: Vec<String>,
        /// How the brief reaches it.
        prompt: PromptWay,
    },
    /// A recorded session.
    Scripted {
        /// Its file, as a path from the home.
        script: String,
    },
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
#[schemars(with = "Written")]
pub struct AgentConfig {
    /// What it is.
    pub kind: AgentKind,
    /// What it gets beyond the shared environment; this is how a secret reaches it.
    pub env: Vec<EnvEntry>,
    /// Hard deadline of one try.
    pub timeout: Span,
    /// Longest silence on both of its streams.
    pub idle_timeout: Span,
    /// Whether it goes on with its session at the next attempt, where its kind has sessions.
    pub continue_session: bool,
}

/// The word for a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum KindWord {
    /// A command.
    Command,
    /// A recorded session.
    Scripted,
}

impl fmt::Display for KindWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "command",
            Self::Scripted => "scripted",
        })
    }
}

/// An agent as the file has it.
#[derive(Deserialize, JsonSchema)]
#[serde(expecting = "a section `[agents.NAME]`")]
#[schemars(rename = "AgentConfig", deny_unknown_fields)]
struct Written {
    /// What it is.
    #[serde(default)]
    #[schemars(with = "KindWord", required)]
    kind: Option<KindWord>,
    /// For `command`: program and arguments, one entry each.
    #[serde(default)]
    argv: Option<Vec<String>>,
    /// For `scripted`: the recorded session's file, as a path from the home.
    #[serde(default)]
    script: Option<String>,
    /// For `command`: how the brief reaches it; `stdin` by default.
    #[serde(default)]
    prompt: Option<PromptWay>,
    /// Variables beyond the shared environment: `NAME` passes one on, `NAME=value` sets one.
    #[serde(default)]
    env: Vec<EnvEntry>,
    /// Hard deadline of one try; `45m` by default.
    #[serde(default)]
    timeout: Option<Span>,
    /// Longest silence; `15m` by default.
    #[serde(default)]
    idle_timeout: Option<Span>,
    /// Whether it goes on with its session at the next attempt, where its kind has sessions.
    #[serde(default, rename = "continue")]
    continue_session: bool,
}

/// An agent's keys contradict each other.
#[derive(Debug, thiserror::Error)]
enum BadAgent {
    #[error("no `kind`; write `kind = \"command\"` or `kind = \"scripted\"`")]
    NoKind,
    #[error("kind `{0}` needs `{1}`; write `{1} = {2}`")]
    Missing(KindWord, &'static str, &'static str),
    #[error("kind `{0}` has no `{1}`; remove the key")]
    Stray(KindWord, &'static str),
    #[error("a timeout of 0 leaves no time to work; write a duration such as 45m")]
    NoTime,
}

impl TryFrom<Written> for AgentConfig {
    type Error = BadAgent;

    fn try_from(written: Written) -> Result<Self, BadAgent> {
        let word = written.kind.ok_or(BadAgent::NoKind)?;
        let kind = match word {
            KindWord::Command => {
                if written.script.is_some() {
                    return Err(BadAgent::Stray(word, "script"));
                }
                let argv =
                    written.argv.filter(|argv| argv.first().is_some_and(|program| !program.is_empty()));
                let argv = argv.ok_or(BadAgent::Missing(word, "argv", "[\"program\", \"argument\"]"))?;
                AgentKind::Command { argv, prompt: written.prompt.unwrap_or_default() }
            }
            KindWord::Scripted => {
                if written.argv.is_some() {
                    return Err(BadAgent::Stray(word, "argv"));
                }
                if written.prompt.is_some() {
                    return Err(BadAgent::Stray(word, "prompt"));
                }
                let script = written.script.filter(|script| !script.is_empty());
                let script = script.ok_or(BadAgent::Missing(word, "script", "\"path/from/the/home\""))?;
                AgentKind::Scripted { script }
            }
        };
        let timeout = written.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let idle_timeout = written.idle_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT);
        if timeout.as_millis() == 0 || idle_timeout.as_millis() == 0 {
            return Err(BadAgent::NoTime);
        }
        Ok(Self { kind, env: written.env, timeout, idle_timeout, continue_session: written.continue_session })
    }
}

/// Reads `[agents.*]` and refuses names that cannot be used.
pub(super) fn named<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<AgentName, AgentConfig>, D::Error> {
    let agents = BTreeMap::<AgentName, AgentConfig>::deserialize(deserializer)?;
    for name in agents.keys() {
        let quoted = crate::suggest::quote(name.as_str());
        if name.as_str() == RESERVED {
            return Err(D::Error::custom(format!(
                "agent {quoted} is what `--agent-cmd` is called; give this one another name"
            )));
        }
        if !is_name(name.as_str()) {
            return Err(D::Error::custom(format!(
                "{quoted} cannot name an agent; use letters, digits, `-`, `_` and `.`, with no dot in front"
            )));
        }
    }
    Ok(agents)
}
