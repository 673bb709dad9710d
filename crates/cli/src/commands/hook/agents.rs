//! Which agents ask before they run a tool, and where each keeps what it asks.
//!
//! | agent | seen at | where | an answer of 2 |
//! |---|---|---|---|
//! | claude | 2.1.332 | `settings.json`, `hooks.PreToolUse`, seconds | blocks; stderr goes to the model |
//! | codex | 0.171.0 | `hooks.json`, the same shape; runs what a person has trusted | the same |
//! | gemini | 0.61.0 | `settings.json`, `hooks.BeforeTool`, milliseconds | the same |
//! | qwen | 0.15.10 | `settings.json`, `hooks.PreToolUse`, milliseconds | the same |
//! | opencode | 1.18.33 | a plugin, `tool.execute.before` that throws | |
//! | pi | 0.73.1 | an extension, `tool_call` that returns `block` | |
//!
//! mini-swe-agent has nothing of the kind; our own loop asks the guard by itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::settings::Entry;
use crate::args::HookAgent;

/// How an agent keeps its hooks.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// In a file of settings, among others.
    Settings(Entry),
    /// In a file of its own, which this function writes for a program at this path.
    Plugin(fn(&str) -> String),
}

/// An agent that asks.
pub(super) struct Asking {
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// The file below a project's folder.
    pub(super) project: &'static str,
    /// Variables that move the agent's own folder, with what is below it; the first one that is set counts.
    folders: &'static [(&'static str, &'static str)],
    /// The file below the user's home folder.
    user: &'static str,
    /// What a person has to do or know besides.
    pub(super) note: Option<&'static str>,
}

/// The hook waits for five seconds at most; agents run the tool when the time that they give it is over.
const SECONDS: u64 = 10;

static CLAUDE: Asking = Asking {
    name: "claude",
    form: Form::Settings(Entry {
        event: "PreToolUse",
        matcher: "^(Bash|Monitor|mcp__.+)$",
        timeout: SECONDS,
    }),
    project: ".claude/settings.json",
    folders: &[("CLAUDE_CONFIG_DIR", "settings.json")],
    user: ".claude/settings.json",
    note: None,
};

static CODEX: Asking = Asking {
    name: "codex",
    form: Form::Settings(Entry { event: "PreToolUse", matcher: "^(Bash|mcp__.+)$", timeout: SECONDS }),
    project: ".codex/hooks.json",
    folders: &[("CODEX_HOME", "hooks.json")],
    user: ".codex/hooks.json",
    note: Some(
        "codex runs no hook that you have not trusted, and says nothing about it: start `codex`, open `/hooks` and \
         trust this one; after a change of the file, again",
    ),
};

static GEMINI: Asking = Asking {
    name: "gemini",
    form: Form::Settings(Entry {
        event: "BeforeTool",
        matcher: "^(run_shell_command|mcp_.+)$",
        timeout: SECONDS * 1000,
    }),
    project: ".gemini/settings.json",
    folders: &[("GEMINI_CLI_HOME", ".gemini/settings.json")],
    user: ".gemini/settings.json",
    note: None,
};

static QWEN: Asking = Asking {
    name: "qwen",
    form: Form::Settings(Entry {
        event: "PreToolUse",
        matcher: "^(run_shell_command|monitor|mcp__.+)$",
        timeout: SECONDS * 1000,
    }),
    project: ".qwen/settings.json",
    folders: &[("QWEN_HOME", "settings.json")],
    user: ".qwen/settings.json",
    note: None,
};

static OPENCODE: Asking = Asking {
    name: "opencode",
    form: Form::Plugin(opencode),
    project: ".opencode/plugins/triphammer.js",
    folders: &[("XDG_CONFIG_HOME", "opencode/plugins/triphammer.js")],
    user: ".config/opencode/plugins/triphammer.js",
    note: None,
};

static PI: Asking = Asking {
    name: "pi",
    form: Form::Plugin(pi),
    project: ".pi/extensions/triphammer.js",
    folders: &[("PI_CODING_AGENT_DIR", "extensions/triphammer.js")],
    user: ".pi/agent/extensions/triphammer.js",
    note: None,
};

impl Asking {
    pub(super) const fn of(agent: HookAgent) -> &'static Self {
        match agent {
            HookAgent::Claude => &CLAUDE,
            HookAgent::Codex => &CODEX,
            HookAgent::Gemini => &GEMINI,
            HookAgent::Qwen => &QWEN,
            HookAgent::Opencode => &OPENCODE,
            HookAgent::Pi => &PI,
        }
    }

    /// The file of a user; `var` reads the environment. `None` where there is no home folder.
    pub(super) fn user_file(&self, var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| var(name).filter(|value| Path::new(value).is_absolute()).map(PathBuf::from);
        let moved = self.folders.iter().find_map(|(name, below)| Some(set(name)?.join(below)));
        moved.or_else(|| Some(set("HOME")?.join(self.user)))
    }
}

/// The first words of a plugin of ours.
pub(super) const MARK: &str = "// triphammer: ";

const HEAD: &str =
    "asks the guard before a shell command runs. Written by `triphammer hook install`; `--undo` removes it.";

/// Both kinds of plugins ask in the same way.
const ASK: &str = r#"import { spawnSync } from "node:child_process";

const PROGRAM = {program};

// Why a call is refused; undefined where it is not. A guard that cannot be asked refuses.
function refused(cwd, tool, args) {
  if (tool !== "bash" && !["command", "cmd", "script"].some((name) => name in args)) return undefined;
  const call = { hook_event_name: "PreToolUse", cwd, tool_name: tool, tool_input: args };
  const asked = spawnSync(PROGRAM, ["hook", "pre-tool"], { input: JSON.stringify(call), encoding: "utf8", timeout: 10000 });
  if (asked.status === 0) return undefined;
  const why = asked.error ?? `it ended with ${asked.status ?? asked.signal}`;
  return asked.stderr || `The guard ${PROGRAM} could not be asked: ${why}. Nothing was run.`;
}
"#;

fn plugin(program: &str, rest: &str) -> String {
    let ask = ASK.replace("{program}", &Value::from(program).to_string());
    format!("{MARK}{HEAD}\n{ask}\n{rest}")
}

fn opencode(program: &str) -> String {
    plugin(
        program,
        r#"export const Triphammer = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const why = refused(directory, input.tool, output.args ?? {});
    if (why) throw new Error(why);
  },
});
"#,
    )
}

fn pi(program: &str) -> String {
    plugin(
        program,
        r#"export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const why = refused(ctx.cwd, event.toolName, event.input ?? {});
    return why ? { block: true, reason: why } : undefined;
  });
}
"#,
    )
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn files_follow_the_agents_own_variables() {
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/home/u"));
        let all: Vec<String> = HookAgent::value_variants()
            .iter()
            .filter_map(|agent| Some(Asking::of(*agent).user_file(home)?.display().to_string()))
            .collect();
        assert_eq!(
            all,
            [
                "/home/u/.claude/settings.json",
                "/home/u/.codex/hooks.json",
                "/home/u/.gemini/settings.json",
                "/home/u/.qwen/settings.json",
                "/home/u/.config/opencode/plugins/triphammer.js",
                "/home/u/.pi/agent/extensions/triphammer.js",
            ]
        );
        let moved = |name: &str| match name {
            "CLAUDE_CONFIG_DIR" => Some(OsString::from("/c")),
            "CODEX_HOME" => Some(OsString::from("relative")),
            _ => home(name),
        };
        assert_eq!(CLAUDE.user_file(moved), Some("/c/settings.json".into()));
        assert_eq!(CODEX.user_file(moved), Some("/home/u/.codex/hooks.json".into()));
        assert_eq!(CLAUDE.user_file(|_| None), None);
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for agent in HookAgent::value_variants() {
            let value = agent.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(value.as_deref(), Some(Asking::of(*agent).name));
        }
    }

    #[test]
    fn a_program_is_a_literal_of_a_plugin() {
        let text = opencode("/a \"b\"/triphammer");
        assert!(
            text.starts_with(MARK) && text.contains(r#"const PROGRAM = "/a \"b\"/triphammer";"#),
            "{text}"
        );
    }
}
