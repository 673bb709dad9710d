//! The supervisor with real processes: whatever they do, nothing of them is alive afterwards.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use triphammer_agent::{PID_FILE, ProcessSupervisor, end_left_over};
use triphammer_model::process::WaitStatus;
use triphammer_model::{Cancel, Ended, Launch, Redactor, Supervisor as _};

const HOST: &str = env!("CARGO_BIN_EXE_agent-test-host");
/// Bounds a wait that only ends early; no test asserts a time.
const PATIENCE: Duration = Duration::from_mins(1);

struct Room {
    dir: TempDir,
}

impl Room {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn launch(&self, line: &str) -> Launch {
        Launch {
            argv: ["sh", "-c", line].map(OsString::from).to_vec(),
            dir: self.dir.path().to_owned(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            stdin: None,
            stdout: self.at("out"),
            stderr: self.at("err"),
            log_cap: 1024 * 1024,
            tail_cap: 4096,
            timeout: Some(PATIENCE),
            idle: None,
            grace: Duration::from_millis(200),
            pid_file: Some(self.at(PID_FILE)),
        }
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.at(name)).unwrap()).into_owned()
    }

    /// Process ids that a script wrote, one a line.
    fn pids(&self, name: &str) -> Vec<i32> {
        self.read(name).lines().map(|l| l.trim().parse().unwrap()).collect()
    }
}

fn run(launch: &Launch) -> Ended {
    run_with(launch, &Redactor::default(), &Cancel::new())
}

fn run_with(launch: &Launch, redactor: &Redactor, cancel: &Cancel) -> Ended {
    ProcessSupervisor::new(HOST.into(), redactor.clone()).run(launch, cancel).unwrap()
}

fn is_alive(pid: i32) -> bool {
    // The state follows the last `)`.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|s| !matches!(s.rsplit(')').next().unwrap().trim_start().chars().next(), Some('Z' | 'X')))
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn has_lines(path: &Path, n: usize) -> bool {
    std::fs::read_to_string(path).is_ok_and(|t| t.ends_with('\n') && t.lines().count() >= n)
}

#[test]
fn tells_how_the_leader_ended() {
    for (line, wait) in [
        ("exit 0", WaitStatus::Exited { code: 0 }),
        ("exit 3", WaitStatus::Exited { code: 3 }),
        ("kill -9 $$", WaitStatus::Signalled { signal: 9 }),
        ("kill -TERM $$", WaitStatus::Signalled { signal: 15 }),
    ] {
        let room = Room::new();
        let ended = run(&room.launch(line));
        assert_eq!(ended.wait, wait, "{line}");
        assert_eq!(ended.killed, 0);
        assert!(!room.at(PID_FILE).exists());
    }
}

#[test]
fn gives_exactly_what_the_launch_says() {
    let room = Room::new();
    std::fs::write(room.at("brief"), "the brief").unwrap();
    std::fs::create_dir(room.at("w")).unwrap();
    let mut launch = room.launch("cat; pwd; env; ls -l /proc/$$/fd >&2");
    launch.stdin = Some(room.at("brief"));
    launch.dir = room.at("w");
    launch.env.push(("MARK".into(), "here".into()));
    let ended = run(&launch);
    assert!(ended.wait.is_success());
    let out = room.read("out");
    assert!(out.starts_with("the brief"), "{out}");
    assert!(out.contains(&format!("{}\n", room.at("w").display())));
    assert!(out.contains("MARK=here\n"));
    let names: Vec<&str> =
        out.lines().skip(1).filter_map(|l| l.split_once('=')).map(|(name, _)| name).collect();
    for name in names {
        assert!(
            ["PATH", "MARK", "PWD", "OLDPWD", "SHLVL", "_", "TRIPHAMMER_KEEPER"].contains(&name),
            "{name}"
        );
    }
    assert_eq!(ended.stdout.tail, std::fs::read(room.at("out")).unwrap());
    assert!(!room.read("err").contains("socket"), "the control channel leaks: {}", room.read("err"));
}

#[test]
fn input_is_empty_without_a_file_and_never_a_link_or_fifo() {
    let room = Room::new();
    assert!(run(&room.launch("cat")).wait.is_success());
    Command::new("mkfifo").arg(room.at("fifo")).status().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", room.at("link")).unwrap();
    for name in ["fifo", "link", "missing"] {
        let mut launch = room.launch("cat");
        launch.stdin = Some(room.at(name));
        let error = ProcessSupervisor::new(HOST.into(), Redactor::default())
            .run(&launch, &Cancel::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(name), "{error}");
        assert_eq!(room.read("out"), "");
    }
}

#[test]
fn what_cannot_be_executed_has_not_started() {
    let room = Room::new();
    std::fs::write(room.at("text"), "no program").unwrap();
    let huge = "x".repeat(200 * 1024);
    let text = room.at("text").into_os_string();
    for (argv, errno) in [
        (vec![OsString::from("no-such-program-here")], 2),
        (vec![text], 13),
        (vec!["echo".into(), huge.into()], 7),
        (vec!["echo".into(), "a\0b".into()], 22),
    ] {
        let mut launch = room.launch("");
        launch.argv = argv;
        assert_eq!(run(&launch).wait, WaitStatus::NotStarted { errno: Some(errno) });
        assert!(!room.at(PID_FILE).exists());
    }
    let mut launch = room.launch("true");
    launch.dir = room.at("nowhere");
    assert_eq!(run(&launch).wait, WaitStatus::NotStarted { errno: Some(2) });
}

#[test]
fn a_shim_that_is_none_is_an_error_of_supervision() {
    let room = Room::new();
    for shim in ["/bin/true", "/no/such/shim"] {
        let error = ProcessSupervisor::new(shim.into(), Redactor::default())
            .run(&room.launch("true"), &Cancel::new())
            .unwrap_err();
        assert!(error.to_string().contains(shim), "{error}");
    }
}

#[test]
fn a_leader_that_ignores_term_is_killed_after_the_grace() {
    let room = Room::new();
    let mut launch = room.launch("trap '' TERM; echo $$ > pid; while :; do sleep 1; done");
    launch.timeout = Some(Duration::from_millis(300));
    assert_eq!(run(&launch).wait, WaitStatus::TimedOut { code: None, signal: Some(9) });
    assert!(!is_alive(room.pids("pid")[0]));
}

#[test]
fn a_leader_that_heeds_term_ends_its_own_way() {
    let room = Room::new();
    let mut launch = room.launch("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done");
    launch.timeout = Some(Duration::from_millis(500));
    launch.grace = PATIENCE;
    assert_eq!(run(&launch).wait, WaitStatus::TimedOut { code: Some(5), signal: None });
    assert!(room.read("out").ends_with("bye\n"));
}

#[test]
fn silence_is_told_from_a_deadline() {
    let room = Room::new();
    let mut launch = room.launch("echo once; sleep 1000");
    launch.idle = Some(Duration::from_millis(200));
    assert_eq!(run(&launch).wait, WaitStatus::Idle { code: None, signal: Some(15) });
    let mut launch = room.launch("while :; do echo x; sleep 0.02; done");
    launch.timeout = Some(Duration::from_millis(700));
    launch.idle = Some(Duration::from_secs(20));
    assert!(matches!(run(&launch).wait, WaitStatus::TimedOut { .. }));
    let mut launch = room.launch("while :; do echo x >&2; sleep 0.02; done");
    launch.timeout = Some(Duration::from_millis(700));
    launch.idle = Some(Duration::from_secs(20));
    assert!(matches!(run(&launch).wait, WaitStatus::TimedOut { .. }), "standard error is noise too");
}

#[test]
fn a_raised_cancel_ends_it_and_an_urgent_one_without_grace() {
    let room = Room::new();
    let cancel = Cancel::new();
    let mut launch = room.launch("trap '' TERM; echo $$ > pid; while :; do sleep 1; done");
    launch.grace = Duration::from_hours(1);
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_with(&launch, &Redactor::default(), &cancel));
        await_that("the program starts", || has_lines(&room.at("pid"), 1));
        cancel.raise();
        cancel.raise();
        running.join().unwrap()
    });
    assert_eq!(ended.wait, WaitStatus::Cancelled { code: None, signal: Some(9) });
    assert!(!is_alive(room.pids("pid")[0]));

    std::fs::remove_file(room.at("pid")).unwrap();
    let ended = run_with(&launch, &Redactor::default(), &cancel);
    assert_eq!(ended.wait, WaitStatus::Cancelled { code: None, signal: None });
    assert!(!room.at("pid").exists(), "nothing starts once it is raised");
}

#[test]
fn daemons_die_with_the_leader() {
    let room = Room::new();
    let ended = run(&room.launch(
        "(setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 1000 & echo $! >> pids) & echo $$ >> pids; exec >/dev/null 2>&1 </dev/null; sleep 1000' &) ; while [ \"$(wc -l < pids)\" != 2 ]; do sleep 0.01; done",
    ));
    assert!(ended.wait.is_success());
    assert!(ended.killed >= 2, "{}", ended.killed);
    let pids = room.pids("pids");
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn a_grandchild_that_holds_the_pipes_does_not_hold_the_end() {
    let room = Room::new();
    let ended = run(&room.launch("sleep 1000 & echo $! > pid; echo done"));
    assert!(ended.wait.is_success());
    assert_eq!((ended.killed, ended.stdout.bytes), (1, 5));
    assert_eq!(room.read("out"), "done\n");
    assert!(!is_alive(room.pids("pid")[0]));
}

#[test]
fn closing_the_streams_is_no_end() {
    let room = Room::new();
    let ended = run(&room.launch("exec >&- 2>&-; sleep 0.3; echo late > file; exit 4"));
    assert_eq!(ended.wait, WaitStatus::Exited { code: 4 });
    assert_eq!(room.read("file"), "late\n");
}

#[test]
fn a_program_that_forks_without_end_is_caught() {
    let room = Room::new();
    // Bounded in number, endless in time: each of 32 leaves hands over to a child, in a session of its own, and goes.
    let script = "echo $$ >> pids\nif [ $1 = 0 ]; then setsid sh f.sh 0 & exit; fi\nsh f.sh $(($1 - 1)) &\nsh f.sh $(($1 - 1)) &\n";
    std::fs::write(room.at("f.sh"), script).unwrap();
    let mut launch = room.launch(
        "trap '' TERM; sh f.sh 5; while [ \"$(wc -l < pids)\" -lt 200 ]; do sleep 0.01; done; exit 6",
    );
    launch.grace = Duration::from_millis(50);
    let ended = run(&launch);
    assert_eq!(ended.wait, WaitStatus::Exited { code: 6 });
    assert!(ended.killed > 0, "{ended:?}: {} {}", room.read("err"), room.read("pids").lines().count());
    let after = room.read("pids").len();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(room.read("pids").len(), after, "something still runs");
}

#[test]
fn both_streams_in_one_file_keep_their_order() {
    let room = Room::new();
    let mut launch = room.launch("echo 1; echo 2 >&2; echo 3");
    launch.stderr = launch.stdout.clone();
    let ended = run(&launch);
    assert!(ended.wait.is_success(), "{ended:?}");
    assert_eq!(room.read("out"), "1\n2\n3\n");
    assert_eq!((ended.stdout.bytes, ended.stderr.bytes), (6, 0));
}

#[test]
fn large_output_is_capped_with_the_exact_count() {
    let room = Room::new();
    let mut launch = room.launch("head -c 200000000 /dev/zero | tr '\\0' x; echo END");
    launch.log_cap = 1_000_000;
    let ended = run(&launch);
    assert!(ended.wait.is_success());
    assert_eq!(ended.stdout.bytes, 200_000_004);
    assert_eq!(ended.stdout.tail.len(), 4096);
    let log = room.read("out");
    assert_eq!(log.len(), 1_000_000);
    assert!(log.ends_with("xEND\n"));
    let (head, rest) = log.split_once("\n[triphammer: ").unwrap();
    let (marker, tail) = rest.split_once("]\n").unwrap();
    let omitted: usize = marker.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(head.len() + omitted + tail.len(), 200_000_004);
}

#[test]
fn secrets_are_taken_out_across_chunk_borders() {
    let room = Room::new();
    let redactor = Redactor::new([("TOKEN".to_owned(), b"sk-live-0123456789".to_vec())]);
    let launch =
        room.launch("printf 'a sk-live-'; sleep 0.1; printf '0123456789 b'; printf sk-live-0123456789 >&2");
    let ended = run_with(&launch, &redactor, &Cancel::new());
    assert_eq!(room.read("out"), "a [redacted:TOKEN] b");
    assert_eq!(room.read("err"), "[redacted:TOKEN]");
    assert_eq!(ended.stdout.tail, b"a [redacted:TOKEN] b");
    assert_eq!(ended.stdout.bytes, 22, "bytes are counted as they were written");
}

#[test]
fn a_log_that_cannot_be_opened_starts_nothing() {
    let room = Room::new();
    std::os::unix::fs::symlink(room.at("victim"), room.at("out")).unwrap();
    std::fs::write(room.at("victim"), "keep").unwrap();
    let launch = room.launch("touch ran");
    let error = ProcessSupervisor::new(HOST.into(), Redactor::default()).run(&launch, &Cancel::new());
    assert!(error.unwrap_err().to_string().contains("out"));
    assert_eq!(room.read("victim"), "keep");
    assert!(!room.at("ran").exists());
}

/// A separate process that supervises `line`, and the shim's process id.
fn supervise(room: &Room, line: &str) -> (std::process::Child, i32) {
    let host = Command::new(HOST)
        .args([OsString::from("supervise"), room.dir.path().into(), line.into()])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    await_that("a pid file", || has_lines(&room.at(PID_FILE), 1));
    let pid = room.read(PID_FILE).split(' ').next().unwrap().parse().unwrap();
    (host, pid)
}

const FAMILY: &str = "trap '' TERM HUP; echo $$ >> pids; (setsid sleep 1000 & echo $! >> pids); sleep 1000";

#[test]
fn a_killed_supervisor_leaves_nothing() {
    let room = Room::new();
    let (mut host, shim) = supervise(&room, FAMILY);
    await_that("the family", || has_lines(&room.at("pids"), 2));
    host.kill().unwrap();
    host.wait().unwrap();
    let mut pids = room.pids("pids");
    pids.push(shim);
    await_that("all dead", || pids.iter().all(|pid| !is_alive(*pid)));
    assert_eq!(end_left_over(&room.at(PID_FILE)).unwrap(), None);
}

#[test]
fn a_tree_whose_supervisor_died_is_ended_through_its_pid_file() {
    let room = Room::new();
    let (mut host, shim) = supervise(&room, FAMILY);
    await_that("the family", || has_lines(&room.at("pids"), 2));
    // A stopped shim cannot do its work when the channel closes.
    let signal = |pid: i32, how: &str| Command::new("kill").args([how, &pid.to_string()]).status().unwrap();
    signal(shim, "-STOP");
    await_that("the shim stands still", || {
        std::fs::read_to_string(format!("/proc/{shim}/stat")).unwrap().contains(") T ")
    });
    host.kill().unwrap();
    host.wait().unwrap();
    let mut pids = room.pids("pids");
    pids.push(shim);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert_eq!(end_left_over(&room.at(PID_FILE)).unwrap(), u32::try_from(shim).ok());
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(!room.at(PID_FILE).exists());
}

#[test]
fn a_tree_that_lost_supervisor_and_shim_is_found_by_its_mark() {
    let room = Room::new();
    let (mut host, shim) = supervise(&room, FAMILY);
    await_that("the family", || has_lines(&room.at("pids"), 2));
    for (pid, how) in [(i32::try_from(host.id()).unwrap(), "-STOP"), (shim, "-KILL")] {
        Command::new("kill").args([how, &pid.to_string()]).status().unwrap();
    }
    await_that("the shim is dead", || !is_alive(shim));
    host.kill().unwrap();
    host.wait().unwrap();
    let pids = room.pids("pids");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert_eq!(end_left_over(&room.at(PID_FILE)).unwrap(), None);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn killing_the_shim_saves_nobody() {
    let room = Room::new();
    let (mut host, _) = supervise(
        &room,
        "echo $$ >> pids; (setsid sleep 1000 & echo $! >> pids); kill -9 $PPID; while :; do sleep 0.01; done",
    );
    host.wait().unwrap();
    let pids = room.pids("pids");
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
    assert!(room.read("report").starts_with(&WaitStatus::Unknown.to_string()), "{}", room.read("report"));
}

#[test]
fn stopping_the_shim_delays_nobody_for_long() {
    let room = Room::new();
    let mut launch = room.launch("kill -STOP $PPID; exit 7");
    launch.timeout = None;
    assert_eq!(run(&launch).wait, WaitStatus::Exited { code: 7 });
}
