//! The write fence with real processes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use triphammer_agent::{Fence, ProcessSupervisor};
use triphammer_model::process::WaitStatus;
use triphammer_model::{Cancel, Launch, Redactor, Supervisor as _};

const HOST: &str = env!("CARGO_BIN_EXE_agent-test-host");

/// Runs a shell line in `work`, with `work` and `tmp` writable; says how it ended and what it printed. Where the system
/// cannot hold a fence nothing is run, and the refusal is what is checked.
fn fenced(room: &tempfile::TempDir, line: &str) -> Option<(WaitStatus, String)> {
    let at = |name: &str| room.path().join(name);
    for name in ["work", "tmp", "outside", "logs"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    let fence = Fence { writable: vec![at("work"), at("tmp"), at("not-there")] };
    let supervisor = ProcessSupervisor::new(PathBuf::from(HOST), Redactor::default()).fenced(fence);
    let launch = Launch {
        argv: ["sh", "-c", line].map(OsString::from).to_vec(),
        dir: at("work"),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("OUT".into(), at("outside").into())],
        stdin: None,
        stdout: at("logs/out"),
        stderr: at("logs/out"),
        log_cap: 1 << 20,
        tail_cap: 1 << 12,
        timeout: Some(Duration::from_mins(1)),
        idle: None,
        grace: Duration::from_secs(1),
        pid_file: Some(at("logs/pid")),
    };
    let ended = supervisor.run(&launch, &Cancel::new());
    if !Fence::is_available() {
        assert!(ended.unwrap_err().to_string().contains("write fence"));
        assert_eq!(std::fs::read_dir(at("work")).unwrap().count(), 0, "nothing was run without it");
        return None;
    }
    let ended = ended.unwrap();
    Some((ended.wait, String::from_utf8_lossy(&ended.stdout.tail).into_owned()))
}

#[test]
fn writes_stay_inside() {
    let room = tempfile::tempdir().unwrap();
    std::fs::create_dir(room.path().join("outside")).unwrap();
    std::fs::write(room.path().join("outside/old"), "old").unwrap();
    for line in [
        "echo x > $OUT/new",
        "echo x >> $OUT/old",
        ": > $OUT/old",
        "rm $OUT/old",
        "mkdir $OUT/dir",
        "mv $OUT/old .",
        "ln $OUT/old mine && echo x > mine",
        "mkfifo $OUT/pipe",
        "ln -s /etc $OUT/link",
        "truncate -s 0 $OUT/old",
        "sh -c 'setsid sh -c \"echo x > $OUT/new\"'",
        "ln -s $OUT way && echo x > way/new",
    ] {
        let Some((wait, said)) = fenced(&room, line) else { return };
        assert!(!wait.is_success(), "{line}: {said}");
        assert_eq!(std::fs::read(room.path().join("outside/old")).unwrap(), b"old", "{line}");
        assert_eq!(std::fs::read_dir(room.path().join("outside")).unwrap().count(), 1, "{line}");
    }
}

#[test]
fn inside_everything_works() {
    let room = tempfile::tempdir().unwrap();
    let line = "set -e; echo a > f; mkdir -p d/e; mv f d/e/g; ln d/e/g h; ln -s h i; chmod 755 h; rm i; mkfifo p
        echo x > ../tmp/t; mv ../tmp/t moved; cat moved > /dev/null; echo gone > /dev/stdout; cat /etc/passwd > copy
        (sleep 0.01; echo late > late) & wait";
    let Some((wait, said)) = fenced(&room, line) else { return };
    assert!(wait.is_success(), "{wait}: {said}");
    assert_eq!(said, "gone\n");
    assert_eq!(std::fs::read(room.path().join("work/late")).unwrap(), b"late\n");
}

#[test]
fn the_system_says_whether_it_can() {
    let first = Fence::is_available();
    // Trying left nothing on this thread, and says the same again.
    let room = tempfile::tempdir().unwrap();
    std::fs::write(room.path().join("free"), "x").unwrap();
    assert_eq!(Fence::is_available(), first);
}
