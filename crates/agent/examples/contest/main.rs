//! The hands' contenders for `cargo xtask bench agents`, which starts this program and reads what it prints.
//!
//! ```text
//! contest rounds VENDOR PROGRAM ROUNDS DIR   PROGRAM bare and behind the adapter, in turn: milliseconds of each
//! contest hear VENDOR PROGRAM DIR            what PROGRAM prints, through the adapter
//! contest drain VENDOR PROGRAM DIR           the same launch, read and logged by the same supervisor, understood by nobody
//! contest values PROGRAM                     a pipe, and every line of it parsed into a `serde_json::Value`
//! contest pipe PROGRAM                       a pipe whose reader drops it
//! ```
//!
//! All but `rounds` print what this process used: processor time, wall clock, and by how much its memory grew.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is there to print")]

mod used;

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use triphammer_agent::{Adapter, ProcessLimits, ProcessSupervisor, Vendor, VendorAgent, VendorConfig};
use triphammer_model::config::VendorName;
use triphammer_model::{
    Agent as _, AgentName, Attempt, Cancel, Launch, Performance, Redactor, RunId, Supervisor as _, Task,
};

use crate::used::{Used, ms};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|mode| mode == triphammer_agent::shim::COMMAND) {
        args.next();
        return triphammer_agent::shim::main(args);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done =
        triphammer_agent::become_subreaper().map_err(Into::into).and_then(|()| match words.as_slice() {
            ["rounds", vendor, program, rounds, dir] => rounds_of(&Stage::new(vendor, program, dir)?, rounds),
            ["hear", vendor, program, dir] => hear(&Stage::new(vendor, program, dir)?),
            ["drain", vendor, program, dir] => drain(&Stage::new(vendor, program, dir)?),
            ["values", program] => values(program),
            ["pipe", program] => pipe(program),
            _ => Err("rounds, hear, drain, values or pipe? see the source".into()),
        });
    match done {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("contest: {error}");
            ExitCode::FAILURE
        }
    }
}

/// An agent and a folder to work in.
struct Stage {
    agent: VendorAgent,
    program: PathBuf,
    dir: PathBuf,
}

impl Stage {
    fn new(vendor: &str, program: &str, dir: &str) -> Result<Self> {
        let name: VendorName = serde_json::from_value(json!(vendor))?;
        let agent = VendorAgent::new(VendorConfig {
            adapter: Adapter {
                name: AgentName::new(vendor),
                limits: ProcessLimits::default(),
                env_names: Vec::new(),
                redactor: redactor(),
            },
            vendor: Vendor::of(name),
            argv: vec![program.to_owned()],
            model: None,
        });
        let dir = PathBuf::from(dir);
        for folder in ["work", "attempt"] {
            std::fs::create_dir_all(dir.join(folder))?;
        }
        std::fs::write(dir.join("attempt/brief.md"), "do it\n")?;
        Ok(Self { agent, program: program.into(), dir })
    }

    fn task(&self) -> Task {
        Task {
            run: RunId::new("bench"),
            attempt: Attempt::FIRST,
            try_no: 1,
            workspace: self.dir.join("work"),
            brief: "do it\n".to_owned(),
            brief_file: self.dir.join("attempt/brief.md"),
            dir: self.dir.join("attempt"),
            scratch: self.dir.join("scratch"),
            session: None,
            fenced: false,
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        }
    }

    fn perform(&self) -> Result<Performance> {
        let supervisor = ProcessSupervisor::of_this_binary(redactor())?;
        Ok(self.agent.implement(&self.task(), &supervisor, &Cancel::new())?)
    }

    /// The same program with the same input, started and waited for, and nothing else.
    fn bare(&self) -> Result<()> {
        let input = std::fs::File::open(self.dir.join("attempt/brief.md"))?;
        let mut child = start(Command::new(&self.program).current_dir(self.dir.join("work")).stdin(input))?;
        drop_all(&mut child)?;
        finish(child)
    }
}

/// As in a run where a person's key is known: redaction is part of the way.
fn redactor() -> Redactor {
    Redactor::new([("BENCH_API_KEY".to_owned(), b"sk-bench-0123456789abcdef".to_vec())])
}

fn rounds_of(stage: &Stage, rounds: &str) -> Result<Value> {
    let (mut bare, mut behind) = (Vec::new(), Vec::new());
    for round in 0..=rounds.parse::<u32>()? {
        let began = Instant::now();
        stage.bare()?;
        let alone = began.elapsed();
        let began = Instant::now();
        let done = stage.perform()?;
        let behind_adapter = began.elapsed();
        if done.receipt.fault.is_some() || done.receipt.tokens.is_none() {
            return Err(format!("the agent was not understood: {:?}", done.receipt).into());
        }
        // The first round is the one that finds nothing in any cache.
        if round > 0 {
            bare.push(ms(alone));
            behind.push(ms(behind_adapter));
        }
    }
    Ok(json!({ "bare_ms": bare, "behind_adapter_ms": behind }))
}

fn hear(stage: &Stage) -> Result<Value> {
    let used = Used::begin()?;
    let done = stage.perform()?;
    let mut told = used.end()?;
    let transcript = std::fs::read_to_string(stage.dir.join("attempt/transcript.jsonl"))?;
    let last: Value = serde_json::from_str(transcript.lines().last().unwrap_or_default())?;
    told["bytes"] = last["stdout_bytes"].clone();
    told["events"] = last["events"].clone();
    told["receipt"] = json!({
        "files": done.receipt.files.len(),
        "commands": done.receipt.commands.len(),
        "tokens": done.receipt.tokens,
        "fault": done.receipt.fault,
        "troubles": done.receipt.troubles,
    });
    Ok(told)
}

fn drain(stage: &Stage) -> Result<Value> {
    let at = |name: &str| stage.dir.join("attempt").join(name);
    let launch = Launch {
        argv: vec![stage.program.clone().into_os_string()],
        dir: stage.dir.join("work"),
        env: stage.task().env,
        stdin: Some(at("brief.md")),
        stdout: at("stdout.log"),
        stderr: at("stderr.log"),
        log_cap: ProcessLimits::default().log_cap,
        tail_cap: ProcessLimits::default().tail_cap,
        timeout: None,
        idle: None,
        grace: Duration::from_secs(1),
        pid_file: Some(at(triphammer_agent::PID_FILE)),
    };
    let used = Used::begin()?;
    let mut bytes = 0;
    let supervisor = ProcessSupervisor::of_this_binary(redactor())?;
    supervisor.run_heard(&launch, &Cancel::new(), &mut |piece| bytes += piece.len())?;
    let mut told = used.end()?;
    told["bytes"] = json!(bytes);
    Ok(told)
}

fn values(program: &str) -> Result<Value> {
    let used = Used::begin()?;
    let mut child = start(&mut Command::new(program))?;
    let mut lines = BufReader::with_capacity(1 << 18, child.stdout.take().ok_or("no pipe")?);
    let (mut line, mut events) = (Vec::new(), 0_u64);
    while lines.read_until(b'\n', &mut line)? > 0 {
        let event: Value = serde_json::from_slice(&line)?;
        events += u64::from(event.is_object());
        line.clear();
    }
    finish(child)?;
    let mut told = used.end()?;
    told["events"] = json!(events);
    Ok(told)
}

fn pipe(program: &str) -> Result<Value> {
    let used = Used::begin()?;
    let mut child = start(&mut Command::new(program))?;
    drop_all(&mut child)?;
    finish(child)?;
    used.end()
}

fn start(command: &mut Command) -> Result<Child> {
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?)
}

fn drop_all(child: &mut Child) -> Result<()> {
    let mut out = child.stdout.take().ok_or("no pipe")?;
    let mut buffer = vec![0; 1 << 18];
    while out.read(&mut buffer)? > 0 {}
    Ok(())
}

fn finish(mut child: Child) -> Result<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the program ended with {status}").into()) }
}

/// Reads a number of kibibytes from this process's own account.
fn account(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(Path::new("/proc/self/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("the kernel says nothing of {name}").into())
}
