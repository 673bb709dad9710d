//! What the kernel says a program used.
//!
//! A process learns what its children used, together, once it has waited for them, and the peak memory of the
//! largest of them. So that one program's peak is not hidden behind an earlier one's, it is measured by a process of
//! its own: this binary as `xtask measured`.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

use super::real;

/// How often a running program's peak is looked at. It only grows, so the last look misses the last moment only.
const PERIOD: Duration = Duration::from_millis(2);

/// What a program and its children used.
pub(crate) struct Usage {
    pub(crate) status: ExitStatus,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

/// Runs a program and its children to their end.
pub(crate) fn run(command: &mut Command) -> Result<Usage, String> {
    let before = cpu()?;
    let began = Instant::now();
    let status =
        command.status().map_err(|e| format!("starting {}: {e}", command.get_program().to_string_lossy()))?;
    Ok(Usage { status, wall: began.elapsed(), cpu: cpu()?.saturating_sub(before) })
}

/// Processor time of all children so far.
fn cpu() -> Result<Duration, String> {
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| format!("asking for used resources: {e}"))?;
    let time = |value: TimeVal| {
        let micros = value.tv_sec().saturating_mul(1_000_000).saturating_add(value.tv_usec());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// Peaks of a program's memory.
pub(crate) struct Peak {
    pub(crate) exit: i32,
    pub(crate) wall_ms: f64,
    /// Of the program's own process; `None` where the kernel does not say.
    pub(crate) own_mib: Option<f64>,
    /// Of the largest of all its processes.
    pub(crate) largest_mib: f64,
}

/// Runs a program under a process that measures it. What it says is kept beside the report, see [`said`].
pub(crate) fn peak(command: &Command, report: &Path) -> Result<Peak, String> {
    let this = std::env::current_exe().map_err(|e| format!("finding this program: {e}"))?;
    let mut wrapped = Command::new(this);
    wrapped.args(["measured".as_ref(), report.as_os_str(), "--".as_ref(), command.get_program()]);
    wrapped.args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    let talk = File::create(talk(report)).map_err(|e| format!("making {}: {e}", talk(report).display()))?;
    wrapped.stdin(Stdio::null()).stdout(Stdio::null()).stderr(talk);
    let status = wrapped.status().map_err(|e| format!("starting the measuring process: {e}"))?;
    if !status.success() {
        return Err(said(format!("the measuring process failed ({status})"), report));
    }
    let text = std::fs::read(report).map_err(|e| format!("reading {}: {e}", report.display()))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|e| format!("reading {}: {e}", report.display()))?;
    let number =
        |name: &str| value[name].as_f64().ok_or_else(|| format!("the measuring process gave no {name}"));
    Ok(Peak {
        exit: value["exit"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(-1),
        wall_ms: number("wall_ms")?,
        own_mib: number("own_kib").ok().map(|kib| kib / 1024.0),
        largest_mib: number("largest_kib")? / 1024.0,
    })
}

fn talk(report: &Path) -> PathBuf {
    report.with_extension("stderr")
}

/// Adds to a fault what the measured program said.
pub(crate) fn said(what: String, report: &Path) -> String {
    match std::fs::read(talk(report)) {
        Ok(text) => format!("{what}\n{}", String::from_utf8_lossy(&text).trim()),
        Err(_) => what,
    }
}

/// `xtask measured REPORT -- PROGRAM..`: runs it and writes what the kernel says.
pub(crate) fn child(report: &str, command: &[&str]) -> Result<(), String> {
    let [program, arguments @ ..] = command else { return Err("measured what?".to_owned()) };
    let began = Instant::now();
    let mut child =
        Command::new(program).args(arguments).spawn().map_err(|e| format!("starting {program}: {e}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let (ended, running) = channel();
    let looking = std::thread::spawn(move || {
        let mut own = None;
        while running.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            own = own.max(high_water(&status_file));
        }
        own
    });
    let status = child.wait().map_err(|e| format!("waiting for {program}: {e}"))?;
    let wall = began.elapsed();
    let _ = ended.send(());
    let own = looking.join().unwrap_or_default();
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| format!("asking for used resources: {e}"))?;
    let largest = u64::try_from(usage.max_rss()).unwrap_or(0);
    // Linux counts in KiB, macOS in bytes.
    let largest = if cfg!(target_os = "macos") { largest / 1024 } else { largest };
    let value = json!({
        "exit": status.code().or(status.signal().map(|signal| 128 + signal)),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "own_kib": own.map(real),
        "largest_kib": real(largest),
    });
    std::fs::write(report, value.to_string()).map_err(|e| format!("writing {report}: {e}"))
}

/// `VmHWM` of a process's status file, in KiB.
fn high_water(status_file: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status_file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_this_process() {
        assert!(!cfg!(target_os = "linux") || high_water("/proc/self/status").is_some_and(|kib| kib > 100));
        assert_eq!(high_water("/no/such/file"), None);
    }

    #[test]
    fn counts_what_a_child_burns() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
        let usage = run(&mut command).unwrap();
        assert!(usage.status.success() && usage.cpu > Duration::ZERO);
    }
}
