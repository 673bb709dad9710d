//! Builds the chain's agents from what is pinned.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use triphammer_agent::acp::{AcpAgent, AcpConfig};
use triphammer_agent::native::{NativeAgent, NativeConfig};
use triphammer_agent::{
    Adapter, CommandAgent, CommandConfig, ProcessLimits, Program, PromptBy, ScriptedAgent, Vendor,
    VendorAgent, VendorConfig,
};
use triphammer_model::config::PromptWay;
use triphammer_model::{Agent, AgentName, Redactor};

use crate::error::StartError;
use crate::settings::{AgentKind, AgentSettings, Settings};

/// Agents by name.
pub(crate) type Agents = BTreeMap<AgentName, Box<dyn Agent>>;

/// Builds every agent of the chain. `script` gives the pinned text of a session file.
pub(crate) fn build(
    settings: &Settings,
    redactor: &Redactor,
    script: impl Fn(&AgentName) -> Option<String>,
) -> Agents {
    let of = |agent: &AgentSettings| {
        let script = script(&agent.name).unwrap_or_default();
        (agent.name.clone(), one(agent, settings.log_cap, redactor, &script))
    };
    settings.chain.iter().map(of).collect()
}

/// Whether an agent could work: its program is there, its session can be read.
///
/// # Errors
/// What is missing, and what to do.
pub fn check_agent(
    agent: &AgentSettings,
    home: &Path,
    path_var: &OsStr,
    workspace: &Path,
) -> Result<(), StartError> {
    let script = match &agent.kind {
        AgentKind::Scripted { script } => {
            let file = home.join(script);
            let read = std::fs::read_to_string(&file);
            read.map_err(|e| StartError::Config(format!("reading `{}`: {e}", file.display())))?
        }
        _ => String::new(),
    };
    one(agent, 0, &Redactor::default(), &script).check(path_var, workspace).map_err(StartError::config)
}

fn one(agent: &AgentSettings, log_cap: u64, redactor: &Redactor, script: &str) -> Box<dyn Agent> {
    let adapter = Adapter {
        name: agent.name.clone(),
        limits: ProcessLimits {
            timeout: Some(agent.timeout.as_duration()),
            idle: Some(agent.idle_timeout.as_duration()),
            log_cap,
            ..ProcessLimits::default()
        },
        env_names: agent.env.iter().map(|e| e.split('=').next().unwrap_or_default().to_owned()).collect(),
        redactor: redactor.clone(),
    };
    let prompt = match agent.prompt {
        PromptWay::Stdin => PromptBy::Stdin,
        PromptWay::File => PromptBy::File,
        PromptWay::Arg => PromptBy::Argument,
    };
    match &agent.kind {
        AgentKind::Command { argv } => {
            let program = Program::Argv(argv.clone());
            Box::new(CommandAgent::new(CommandConfig { adapter, program, prompt }))
        }
        AgentKind::Shell { line } => {
            let program = Program::Shell(line.clone());
            Box::new(CommandAgent::new(CommandConfig { adapter, program, prompt }))
        }
        AgentKind::Native { model, api, base_url, key_env } => Box::new(NativeAgent::new(NativeConfig {
            adapter,
            model: model.clone(),
            api: *api,
            base_url: base_url.clone(),
            key_env: key_env.clone(),
        })),
        AgentKind::Acp { argv } => Box::new(AcpAgent::new(AcpConfig { adapter, argv: argv.clone() })),
        AgentKind::Vendor { vendor, argv, model } => Box::new(VendorAgent::new(VendorConfig {
            adapter,
            vendor: Vendor::of(*vendor),
            argv: argv.clone(),
            model: model.clone(),
        })),
        AgentKind::Scripted { script: file } => {
            let Adapter { name, limits, redactor, .. } = adapter;
            Box::new(ScriptedAgent::new(name, PathBuf::from(file), script, limits, redactor))
        }
    }
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
