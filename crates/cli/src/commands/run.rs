//! `triphammer run`: from a spec, or a task in words, to an outcome.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use triphammer_agent::{Vendor, native};
use triphammer_model::config::{
    AgentConfig, Config, DEFAULT_IDLE_TIMEOUT, DEFAULT_LOG_CAP, DEFAULT_TIMEOUT, EnvEntry, PromptWay,
    VendorName,
};
use triphammer_model::event::Isolation;
use triphammer_model::spec::{JudgeMode, Status, WorkspaceChoice};
use triphammer_model::{AgentName, Cancel, Limits, Spec};
use triphammer_runner::{AgentKind, AgentSettings, Place, Request, Settings, prepare};

use crate::args::{Isolate, Judge, RunArgs};
use crate::commands::auto;
use crate::commands::probe::set_aside;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::{self, Home};
use crate::output::Terminal;
use crate::{say, signals};

pub(crate) fn run(args: &RunArgs) -> Outcome {
    let home = Home::find(args.home.as_deref())?;
    let request = request(args, &home)?;
    let cancel = Cancel::new();
    signals::watch(&cancel).map_err(|e| Failure::code(format!("listening for signals: {e}"), 5))?;
    if args.plan {
        return plan(request, cancel, args.json);
    }
    drive(request, cancel, args.json)
}

fn drive(request: Request, cancel: Cancel, json: bool) -> Outcome {
    let terminal = Terminal::new(json);
    let mut run = prepare(request, cancel, &terminal).map_err(|e| Failure::code(&e, e.exit_code()))?;
    finish(&mut run)
}

/// Works on a run until it is over, for now or for good.
pub(crate) fn finish(run: &mut triphammer_runner::Run<'_>) -> Outcome {
    let _ = triphammer_agent::become_subreaper();
    let finished = run.drive().map_err(|e| Failure::code(e, 5))?;
    write_timings(run, finished.summary.attempts);
    Ok(Exit::Code(finished.outcome.exit_code()))
}

/// For the benchmark: where the loop's time went.
fn write_timings(run: &triphammer_runner::Run<'_>, attempts: u32) {
    let Some(file) = std::env::var_os("TRIPHAMMER_TIMINGS") else { return };
    let t = run.timings();
    let total = run.elapsed();
    let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    let json = serde_json::json!({
        "attempts": attempts,
        "tick_waits_ms": ms(t.tick_waits),
        "looks_ms": ms(t.looks),
        "agents_ms": ms(t.agents),
        "gates_ms": ms(t.gates),
        "journal_ms": ms(t.journal),
        "journal_lines": t.lines,
        "total_ms": ms(total),
    });
    if let Err(error) = std::fs::write(&file, json.to_string()) {
        say::talk(&format!("writing `{}`: {error}", Path::new(&file).display()));
    }
}

/// Everything up to the first agent, in a folder of its own that is removed again.
fn plan(mut request: Request, cancel: Cancel, json: bool) -> Outcome {
    let scratch =
        tempfile::tempdir().map_err(|e| Failure::code(format!("making a scratch folder: {e}"), 5))?;
    set_aside(&mut request, scratch.path());
    let mut run =
        prepare(request, cancel, &triphammer_runner::Silent).map_err(|e| Failure::code(&e, e.exit_code()))?;
    let _ = triphammer_agent::become_subreaper();
    let plan = run.plan().map_err(|e| Failure::code(e, 5))?;
    if json {
        say::data(&triphammer_render::plan_json(&plan).to_string());
    } else {
        say::data(triphammer_render::plan_text(&plan).trim_end());
    }
    Ok(Exit::Done)
}

/// Puts flags over spec over configuration over defaults.
pub(crate) fn request(args: &RunArgs, home: &Home) -> Result<Request, Failure> {
    let (spec, spec_text, spec_name, spec_path) = spec(args, home)?;
    let config = &home.config;
    judge_mode(args, &spec, config)?;
    let (place, isolation) = place(args, &spec, home)?;
    let settings = Settings {
        stages: config.run.policy.unwrap_or_default(),
        isolation,
        allow_green: args.allow_green || args.task.is_some(),
        confirm_clean: config.workspace.confirm_clean.unwrap_or(isolation.is_apart()),
        log_cap: config.run.log_cap.unwrap_or(DEFAULT_LOG_CAP),
        gates: spec.gates.clone(),
        env: entries(config.run.env.as_deref().unwrap_or_default()),
        secrets: config.secrets.names.clone(),
        skip: config.workspace.skip.clone().unwrap_or_default(),
        setup: config.workspace.setup.clone().unwrap_or_default(),
        carry: config.workspace.carry.clone().unwrap_or_default(),
        limits: limits(args, &spec, config),
        policy: config.breaker.policy(),
        sandbox: config.sandbox.clone(),
        prices: config.prices.clone(),
        chain: chain(args, &spec, config)?,
    };
    Ok(Request {
        home: home.path.clone(),
        runs: home.path.join("runs"),
        state: home::state()?,
        spec,
        spec_text,
        spec_name,
        spec_path,
        place,
        settings,
    })
}

type SpecParts = (Spec, Vec<u8>, String, Option<String>);

fn spec(args: &RunArgs, home: &Home) -> Result<SpecParts, Failure> {
    if let Some(task) = &args.task {
        if task.trim().is_empty() {
            return Err(Failure::usage("--task is empty: say what is to be done"));
        }
        let spec = Spec::for_task(task);
        let text = spec.print().into_bytes();
        return Ok((spec, text, "task".to_owned(), None));
    }
    let given = args.spec.as_deref().unwrap_or(Path::new(""));
    let (file, text) = read_spec(given, home)?;
    let spec = Spec::parse(&given.display().to_string(), &text).map_err(Failure::usage)?;
    if spec.status == Status::Draft && !args.draft {
        return Err(Failure::usage(format!(
            "{}: the spec is a draft; `triphammer spec lock {}` locks it, --draft runs it all the same",
            given.display(),
            given.display()
        )));
    }
    let name = file.file_stem().map_or_else(|| "spec".into(), OsStr::to_string_lossy).into_owned();
    Ok((spec, text, name, Some(given.display().to_string())))
}

/// A spec is read by people; what is larger is no spec.
const LARGEST_SPEC: u64 = 16 << 20;

/// Reads a spec's file: from the current folder, or from the home.
pub(crate) fn read_spec(given: &Path, home: &Home) -> Result<(PathBuf, Vec<u8>), Failure> {
    let candidates = [home::absolute(given)?, home.path.join(given)];
    let file = candidates.iter().find(|f| f.is_file()).unwrap_or(&candidates[0]);
    let refused =
        |why: &dyn std::fmt::Display| Failure::usage(format!("reading spec `{}`: {why}", given.display()));
    let text = match std::fs::canonicalize(file) {
        // Never opened as it is: a FIFO would be waited for, a device has no end.
        Ok(real) => triphammer_store::read_bounded(&real, LARGEST_SPEC).map_err(|e| refused(&e))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::usage(format!(
                "there is no spec `{}`; `triphammer spec new {}` writes a draft",
                given.display(),
                given.display()
            )));
        }
        Err(e) => return Err(refused(&e)),
    };
    Ok((file.clone(), text))
}

fn judge_mode(args: &RunArgs, spec: &Spec, config: &Config) -> Result<(), Failure> {
    let flag = args.judge.map(|j| match j {
        Judge::Auto => JudgeMode::Auto,
        Judge::Required => JudgeMode::Required,
        Judge::Off => JudgeMode::Off,
    });
    if flag.or(spec.judge).or(config.run.judge) == Some(JudgeMode::Required) {
        return Err(Failure::usage(
            "judge: required, but this version has no judge; use `auto` (no judge is configured) or `off`",
        ));
    }
    Ok(())
}

fn place(args: &RunArgs, spec: &Spec, home: &Home) -> Result<(Place, Isolation), Failure> {
    let flag = args.isolate.map(|i| match i {
        Isolate::InPlace => Isolation::InPlace,
        Isolate::Worktree => Isolation::Worktree,
        Isolate::Copy => Isolation::Copy,
    });
    let place = match (&args.workspace, &spec.workspace) {
        (Some(dir), _) if dir.as_os_str() == "new" => Place::New,
        (Some(dir), _) => Place::Folder(home::absolute(dir)?),
        (None, Some(WorkspaceChoice::New)) => Place::New,
        (None, Some(WorkspaceChoice::Path(path))) => Place::Folder(home.path.join(path)),
        (None, None) => Place::Folder(home.path.clone()),
    };
    match (&place, flag) {
        (Place::New, Some(_)) => {
            Err(Failure::usage("--isolate does not go with a new workspace: a new one is apart already"))
        }
        (Place::New, None) => Ok((place, Isolation::New)),
        (Place::Folder(_), flag) => {
            let isolation = flag.or(home.config.run.isolate).unwrap_or_default();
            Ok((place, isolation))
        }
    }
}

fn limits(args: &RunArgs, spec: &Spec, config: &Config) -> Limits {
    let default = Limits::default();
    let run = &config.run;
    Limits {
        attempts: args.attempts.or(spec.attempts).or(run.attempts).unwrap_or(default.attempts),
        budget: args.budget.or(spec.budget).or(run.budget).unwrap_or(default.budget),
        max_cost: args.max_cost.or(spec.max_cost).or(run.max_cost),
        max_tokens: args.max_tokens.or(spec.max_tokens).or(run.max_tokens),
        unknown_cost: run.unknown_cost.unwrap_or_default(),
        flaky: run.flaky.unwrap_or_default(),
        retries: run.retries.unwrap_or(default.retries),
        backoff: run.retry_backoff.unwrap_or(default.backoff),
    }
}

fn chain(args: &RunArgs, spec: &Spec, config: &Config) -> Result<Vec<AgentSettings>, Failure> {
    if let Some(line) = &args.agent_cmd {
        if line.trim().is_empty() {
            return Err(Failure::usage("--agent-cmd is empty: give a shell line, such as 'claude -p'"));
        }
        return Ok(vec![AgentSettings {
            name: AgentName::new("command"),
            prompt: PromptWay::Stdin,
            env: args.agent_env.clone(),
            timeout: DEFAULT_TIMEOUT,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            continue_session: false,
            kind: AgentKind::Shell { line: line.clone() },
        }]);
    }
    let names: Vec<AgentName> = if !args.agent.is_empty() {
        args.agent.iter().map(|n| AgentName::new(n.trim())).collect()
    } else if !spec.agents.is_empty() {
        spec.agents.clone()
    } else {
        config.run.agent.clone().unwrap_or_default()
    };
    if names.is_empty() {
        return Err(Failure::usage(
            "no agent: give --agent-cmd 'SH LINE', --agent NAME, `agent: NAME` in the spec, or `agent` under [run] in \
             triphammer.toml",
        ));
    }
    let mut chain: Vec<AgentSettings> = Vec::new();
    for name in names {
        // What works is named in every record, not how it was found.
        let name = if name.as_str() == "auto" && !config.agents.contains_key(&name) {
            AgentName::new(auto::first()?.as_str())
        } else {
            name
        };
        let by_name = || AgentConfig::of_word(name.as_str());
        let Some(agent) = config.agents.get(&name).cloned().or_else(by_name) else {
            let own = config.agents.keys().map(AgentName::as_str);
            let known = VendorName::ALL.map(VendorName::as_str);
            let both: Vec<&str> = own.chain(known).chain(["auto"]).collect();
            return Err(Failure::usage(format!(
                "there is no agent `{name}`: add [agents.{name}] to triphammer.toml, or name one of {}",
                both.join(", ")
            )));
        };
        if chain.iter().any(|a| a.name == name) {
            return Err(Failure::usage(format!("agent `{name}` is in the chain twice; name each one once")));
        }
        chain.push(configured(name, &agent)?);
    }
    Ok(chain)
}

/// An agent as a run has it.
pub(crate) fn configured(name: AgentName, agent: &AgentConfig) -> Result<AgentSettings, Failure> {
    use triphammer_model::config::AgentKind as Configured;
    let (kind, prompt) = match &agent.kind {
        Configured::Command { argv, prompt } => (AgentKind::Command { argv: argv.clone() }, *prompt),
        Configured::Scripted { script } => (AgentKind::Scripted { script: script.clone() }, PromptWay::Stdin),
        Configured::Native { model, api, base_url, key_env } => {
            let (model, base_url) = (model.clone(), base_url.clone());
            let kind = AgentKind::Native { model, api: *api, base_url, key_env: key_env.clone() };
            (kind, PromptWay::Stdin)
        }
        Configured::Auto => {
            let vendor = auto::first()?;
            (AgentKind::Vendor { vendor, argv: Vec::new(), model: None }, PromptWay::Stdin)
        }
        Configured::Acp { argv } => (AgentKind::Acp { argv: argv.clone() }, PromptWay::Stdin),
        Configured::Vendor { vendor, argv, model } => {
            let kind = AgentKind::Vendor { vendor: *vendor, argv: argv.clone(), model: model.clone() };
            (kind, PromptWay::Stdin)
        }
    };
    let mut env = entries(&agent.env);
    if let AgentKind::Vendor { vendor, .. } = &kind {
        let vendor = Vendor::of(*vendor);
        // Its own variables reach it alone, and only where they are set.
        let passed = vendor.keys.iter().chain(vendor.reads).filter(|name| std::env::var_os(name).is_some());
        env.extend(passed.map(|name| (*name).to_owned()));
    }
    if let AgentKind::Native { api, key_env, .. } = &kind {
        let read = native::variables(*api, key_env.as_deref());
        env.extend(read.into_iter().filter(|name| std::env::var_os(name).is_some()));
    }
    Ok(AgentSettings {
        name,
        prompt,
        env,
        timeout: agent.timeout,
        idle_timeout: agent.idle_timeout,
        continue_session: agent.continue_session,
        kind,
    })
}

fn entries(entries: &[EnvEntry]) -> Vec<String> {
    entries.iter().cloned().map(String::from).collect()
}
