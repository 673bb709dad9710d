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
    /// Our own loop.
    Native {
        /// The model's name.
        model: String,
        /// How its service is spoken to.
        api: ModelApi,
        /// Where the service is; else by the environment, else its founder's.
        base_url: Option<String>,
        /// The variable that holds the key; else the common one.
        key_env: Option<String>,
    },
    /// A server of the Agent Client Protocol.
    Acp {
        /// Program and arguments; never empty.
        argv: Vec<String>,
    },
    /// The first known agent that is found and is logged in or has its key.
    Auto,
    /// An agent that people know by name.
    Vendor {
        /// Which.
        vendor: VendorName,
        /// Its program, and arguments that stand before ours; empty is the usual program.
        argv: Vec<String>,
        /// The model to ask for; its own choice where none is named.
        model: Option<String>,
    },
}

/// How a model's service is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// Chat completions, as `OpenAI` has them and most others copy them.
    #[default]
    Openai,
    /// Messages, as Anthropic has them.
    Anthropic,
}

/// An agent that people know by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VendorName {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
    /// mini-swe-agent.
    Mini,
}

impl VendorName {
    /// All of them, in the order in which `auto` looks for them.
    pub const ALL: [Self; 7] =
        [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini, Self::Qwen, Self::Pi, Self::Mini];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Pi => "pi",
            Self::Mini => "mini",
        }
    }

    /// The one that this word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.as_str() == word)
    }
}

impl fmt::Display for VendorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
    /// mini-swe-agent.
    Mini,
    /// Our own loop, for whoever has a key or a local server.
    Native,
    /// A server of the Agent Client Protocol, version 1, on standard input and output.
    Acp,
    /// The first known agent that is found and is logged in or has its key.
    Auto,
}

impl KindWord {
    /// The agent that people know by this word.
    const fn vendor(self) -> Option<VendorName> {
        Some(match self {
            Self::Command | Self::Scripted | Self::Native | Self::Acp | Self::Auto => return None,
            Self::Claude => VendorName::Claude,
            Self::Codex => VendorName::Codex,
            Self::Opencode => VendorName::Opencode,
            Self::Gemini => VendorName::Gemini,
            Self::Qwen => VendorName::Qwen,
            Self::Pi => VendorName::Pi,
            Self::Mini => VendorName::Mini,
        })
    }
}

impl fmt::Display for KindWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self, self.vendor()) {
            (_, Some(vendor)) => vendor.as_str(),
            (Self::Scripted, None) => "scripted",
            (Self::Native, None) => "native",
            (Self::Acp, None) => "acp",
            (Self::Auto, None) => "auto",
            (_, None) => "command",
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
    /// For `command` and `acp`: program and arguments, one entry each. For an agent known by name: its program where it is
    /// not the usual one, and arguments that stand before ours.
    #[serde(default)]
    argv: Option<Vec<String>>,
    /// For `scripted`: the recorded session's file, as a path from the home.
    #[serde(default)]
    script: Option<String>,
    /// For `native`: the model, which has to be named. For an agent known by name: the model to ask for.
    #[serde(default)]
    model: Option<String>,
    /// For `native`: how the model's service is spoken to; `openai` by default, which most services understand.
    #[serde(default)]
    api: Option<ModelApi>,
    /// For `native`: where the service is, such as `http://127.0.0.1:8080/v1`.
    #[serde(default)]
    base_url: Option<String>,
    /// For `native`: the variable that holds the key; `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` by default.
    #[serde(default)]
    key_env: Option<String>,
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
    #[error(
        "no `kind`; write `kind = \"command\"`, `kind = \"scripted\"` or a known agent such as `kind = \"claude\"`"
    )]
    NoKind,
    #[error("kind `{0}` needs `{1}`; write `{1} = {2}`")]
    Missing(KindWord, &'static str, &'static str),
    #[error("kind `{0}` has no `{1}`; remove the key")]
    Stray(KindWord, &'static str),
    #[error("a timeout of 0 leaves no time to work; write a duration such as 45m")]
    NoTime,
}

impl AgentConfig {
    /// An agent that people know by name, as it is where nothing is configured.
    pub fn of_vendor(vendor: VendorName) -> Self {
        Self::of_kind(AgentKind::Vendor { vendor, argv: Vec::new(), model: None })
    }

    /// What `word` means where nothing is configured under it: an agent that people know by name, or `auto`.
    pub fn of_word(word: &str) -> Option<Self> {
        if word == "auto" {
            return Some(Self::of_kind(AgentKind::Auto));
        }
        VendorName::from_word(word).map(Self::of_vendor)
    }

    const fn of_kind(kind: AgentKind) -> Self {
        Self {
            kind,
            env: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            continue_session: false,
        }
    }
}

impl Written {
    /// Refuses the first of these keys that is there.
    fn has_none(&self, word: KindWord, keys: &[&'static str]) -> Result<(), BadAgent> {
        let is_there = |key: &str| match key {
            "argv" => self.argv.is_some(),
            "script" => self.script.is_some(),
            "model" => self.model.is_some(),
            "prompt" => self.prompt.is_some(),
            "api" => self.api.is_some(),
            "base_url" => self.base_url.is_some(),
            "key_env" => self.key_env.is_some(),
            _ => false,
        };
        keys.iter().find(|key| is_there(key)).map_or(Ok(()), |key| Err(BadAgent::Stray(word, key)))
    }
}

impl TryFrom<Written> for AgentConfig {
    type Error = BadAgent;

    fn try_from(written: Written) -> Result<Self, BadAgent> {
        let word = written.kind.ok_or(BadAgent::NoKind)?;
        if word != KindWord::Native {
            written.has_none(word, &["api", "base_url", "key_env"])?;
        }
        let kind = match word {
            KindWord::Command => {
                written.has_none(word, &["script", "model"])?;
                let argv =
                    written.argv.filter(|argv| argv.first().is_some_and(|program| !program.is_empty()));
                let argv = argv.ok_or(BadAgent::Missing(word, "argv", "[\"program\", \"argument\"]"))?;
                AgentKind::Command { argv, prompt: written.prompt.unwrap_or_default() }
            }
            KindWord::Scripted => {
                written.has_none(word, &["argv", "prompt", "model"])?;
                let script = written.script.filter(|script| !script.is_empty());
                let script = script.ok_or(BadAgent::Missing(word, "script", "\"path/from/the/home\""))?;
                AgentKind::Scripted { script }
            }
            KindWord::Native => {
                written.has_none(word, &["argv", "script", "prompt"])?;
                let model = written.model.filter(|model| !model.is_empty());
                AgentKind::Native {
                    model: model.ok_or(BadAgent::Missing(word, "model", "\"the model's name\""))?,
                    api: written.api.unwrap_or_default(),
                    base_url: written.base_url,
                    key_env: written.key_env,
                }
            }
            KindWord::Acp => {
                written.has_none(word, &["script", "model", "prompt"])?;
                let argv =
                    written.argv.filter(|argv| argv.first().is_some_and(|program| !program.is_empty()));
                let argv = argv.ok_or(BadAgent::Missing(word, "argv", "[\"program\", \"argument\"]"))?;
                AgentKind::Acp { argv }
            }
            KindWord::Auto => {
                written.has_none(word, &["argv", "script", "model", "prompt"])?;
                AgentKind::Auto
            }
            _ => {
                let vendor = word.vendor().ok_or(BadAgent::NoKind)?;
                written.has_none(word, &["script", "prompt"])?;
                let argv = written.argv.unwrap_or_default();
                if argv.first().is_some_and(String::is_empty) {
                    return Err(BadAgent::Missing(word, "argv", "[\"program\", \"argument\"]"));
                }
                AgentKind::Vendor { vendor, argv, model: written.model.filter(|model| !model.is_empty()) }
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
