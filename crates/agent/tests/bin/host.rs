//! Stands in for the product's binary in the tests: a shim, and a supervising process that can be killed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use triphammer_agent::ProcessSupervisor;
use triphammer_model::{Cancel, Launch, Redactor, Supervisor as _};

/// `host __shim ...`, or `host supervise DIR LINE`: runs a shell line with its logs and pid file in a folder.
fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(mode) = args.next() else { return ExitCode::from(2) };
    if mode == triphammer_agent::shim::COMMAND {
        return triphammer_agent::shim::main(args);
    }
    let (Some(dir), Some(line)) = (args.next().map(PathBuf::from), args.next()) else {
        return ExitCode::from(2);
    };
    triphammer_agent::become_subreaper().expect("a subreaper");
    let launch = Launch {
        argv: vec!["sh".into(), "-c".into(), line],
        dir: dir.clone(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        stdin: None,
        stdout: dir.join("out"),
        stderr: dir.join("err"),
        log_cap: 64 * 1024 * 1024,
        tail_cap: 64 * 1024,
        timeout: None,
        idle: None,
        grace: Duration::from_secs(1),
        pid_file: Some(dir.join(triphammer_agent::PID_FILE)),
    };
    let redactor = Redactor::new([("TOKEN".to_owned(), b"sk-never-printed".to_vec())]);
    let supervisor = ProcessSupervisor::of_this_binary(redactor).expect("a path");
    let ended = supervisor.run(&launch, &Cancel::new()).expect("supervision");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    let report = format!("{}\n{}\n{:?}\n{peak}\n", ended.wait, ended.stdout.bytes, ended.duration);
    std::fs::write(dir.join("report"), report).expect("a report");
    ExitCode::SUCCESS
}
