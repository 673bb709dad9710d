//! Builds the chain's agents from what is pinned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use triphammer_agent::acp::{AcpAgent, AcpConfig};
use triphammer_agent::native::{NativeAgent, NativeConfig};
use triphammer_agent::{
    CommandAgent, CommandConfig, ProcessLimits, Program, PromptBy, ScriptedAgent, Vendor, VendorAgent,
    VendorConfig,
};
use triphammer_model::config::PromptWay;
use triphammer_model::{Agent, AgentName, Redactor};

use crate::settings::{AgentKind, AgentSettings, Settings};

/// Agents by name.
pub(crate) type Agents = BTreeMap<AgentName, Box<dyn Agent>>;

/// Builds every agent of the chain. `script` gives the pinned text of a session file.
pub(crate) fn build(
    settings: &Settings,
    redactor: &Redactor,
    script: impl Fn(&AgentName) -> Option<String>,
) -> Agents {
    let mut agents = Agents::new();
    for agent in &settings.chain {
        let limits = limits(agent, settings.log_cap);
        let built: Box<dyn Agent> = match &agent.kind {
            AgentKind::Command { argv } => command(agent, Program::Argv(argv.clone()), limits, redactor),
            AgentKind::Shell { line } => command(agent, Program::Shell(line.clone()), limits, redactor),
            AgentKind::Native { model, api, base_url, key_env } => Box::new(NativeAgent::new(NativeConfig {
                name: agent.name.clone(),
                model: model.clone(),
                api: *api,
                base_url: base_url.clone(),
                key_env: key_env.clone(),
                limits,
                env_names: env_names(agent),
                redactor: redactor.clone(),
            })),
            AgentKind::Acp { argv } => Box::new(AcpAgent::new(AcpConfig {
                name: agent.name.clone(),
                argv: argv.clone(),
                limits,
                env_names: env_names(agent),
                redactor: redactor.clone(),
            })),
            AgentKind::Vendor { vendor, argv, model } => Box::new(VendorAgent::new(VendorConfig {
                name: agent.name.clone(),
                vendor: Vendor::of(*vendor),
                argv: argv.clone(),
                model: model.clone(),
                limits,
                env_names: env_names(agent),
                redactor: redactor.clone(),
            })),
            AgentKind::Scripted { script: file } => Box::new(ScriptedAgent::new(
                agent.name.clone(),
                PathBuf::from(file),
                &script(&agent.name).unwrap_or_default(),
                limits,
                redactor.clone(),
            )),
        };
        agents.insert(agent.name.clone(), built);
    }
    agents
}

fn limits(agent: &AgentSettings, log_cap: u64) -> ProcessLimits {
    ProcessLimits {
        timeout: Some(agent.timeout.as_duration()),
        idle: Some(agent.idle_timeout.as_duration()),
        log_cap,
        ..ProcessLimits::default()
    }
}

fn command(
    agent: &AgentSettings,
    program: Program,
    limits: ProcessLimits,
    redactor: &Redactor,
) -> Box<dyn Agent> {
    Box::new(CommandAgent::new(CommandConfig {
        name: agent.name.clone(),
        program,
        prompt: match agent.prompt {
            PromptWay::Stdin => PromptBy::Stdin,
            PromptWay::File => PromptBy::File,
            PromptWay::Arg => PromptBy::Argument,
        },
        limits,
        env_names: env_names(agent),
        redactor: redactor.clone(),
    }))
}

fn env_names(agent: &AgentSettings) -> Vec<String> {
    agent.env.iter().map(|e| e.split('=').next().unwrap_or_default().to_owned()).collect()
}

/// The file below `pinned/` that holds an agent's session.
pub(crate) fn script_pin(agent: &AgentName) -> String {
    let safe: String = agent
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .collect();
    format!("scripts/{safe}.toml")
}

/// Reads the session files of a chain, keyed by agent.
pub(crate) fn read_scripts(
    settings: &Settings,
    home: &Path,
) -> Result<BTreeMap<AgentName, Vec<u8>>, (String, std::io::Error)> {
    let mut texts = BTreeMap::new();
    for agent in &settings.chain {
        if let AgentKind::Scripted { script } = &agent.kind {
            let path = home.join(script);
            let text = std::fs::read(&path).map_err(|e| (path.display().to_string(), e))?;
            texts.insert(agent.name.clone(), text);
        }
    }
    Ok(texts)
}
