//! What holds a launch, with real processes: the write fence by each of its holders, the network, the limits.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use triphammer_agent::{Containment, Fence, Hold, ProcessSupervisor, TreeLimits, bubblewrap_program};
use triphammer_model::config::NetworkChoice;
use triphammer_model::process::{LaunchError, WaitStatus};
use triphammer_model::{Cancel, Ended, Launch, Redactor, Size, Supervisor as _};

const HOST: &str = env!("CARGO_BIN_EXE_agent-test-host");

/// Where each test works.
struct Bay(tempfile::TempDir);

impl Bay {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        for name in ["work/kept", "tmp", "outside", "logs"] {
            std::fs::create_dir_all(room.path().join(name)).unwrap();
        }
        std::fs::write(room.path().join("outside/old"), "old").unwrap();
        std::fs::write(room.path().join("work/kept/old"), "old").unwrap();
        Self(room)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn fence(&self, hold: &Hold) -> Containment {
        let fence = Fence {
            hold: hold.clone(),
            writable: vec![self.at("work"), self.at("tmp"), self.at("not-there")],
            read_only: Vec::new(),
        };
        Containment { fence: Some(fence), ..Containment::NONE }
    }

    fn run(&self, containment: Containment, argv: &[&str]) -> Result<Ended, LaunchError> {
        let supervisor =
            ProcessSupervisor::new(PathBuf::from(HOST), Redactor::default()).contained(containment);
        let launch = Launch {
            argv: argv.iter().map(OsString::from).collect(),
            dir: self.at("work"),
            env: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                ("OUT".into(), self.at("outside").into()),
            ],
            stdin: None,
            stdout: self.at("logs/out"),
            stderr: self.at("logs/out"),
            log_cap: 1 << 20,
            tail_cap: 1 << 12,
            timeout: Some(Duration::from_mins(1)),
            idle: None,
            grace: Duration::from_secs(1),
            pid_file: Some(self.at("logs/pid")),
        };
        supervisor.run(&launch, &Cancel::new())
    }

    fn shell(&self, containment: Containment, line: &str) -> (WaitStatus, String) {
        let ended = self.run(containment, &["sh", "-c", line]).unwrap();
        (ended.wait, String::from_utf8_lossy(&ended.stdout.tail).into_owned())
    }
}

/// The holders that this system has; where there is none, that it is refused is what is checked.
fn holders() -> Vec<Hold> {
    let mut holders = Vec::new();
    let bay = Bay::new();
    if Fence::is_available() {
        holders.push(Hold::Landlock);
    } else {
        let refused = bay.run(bay.fence(&Hold::Landlock), &["sh", "-c", "echo x > ran"]).unwrap_err();
        assert!(refused.to_string().contains("write fence"), "{refused}");
        assert!(!bay.at("work/ran").exists(), "nothing was run without it");
    }
    if let Some(program) = bubblewrap_program() {
        let hold = Hold::Bubblewrap(program);
        if bay.shell(bay.fence(&hold), "true").0.is_success() {
            holders.push(hold);
        }
    }
    holders
}

#[test]
fn writes_stay_inside() {
    for hold in holders() {
        let bay = Bay::new();
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
            "mount -o remount,rw / && echo x > $OUT/new",
            "mount -t tmpfs none $OUT && echo x > $OUT/new",
            "nsenter -t 1 -m sh -c \"echo x > $OUT/new\"",
            "echo x > /proc/1/root$OUT/new",
            "for p in /proc/[0-9]*; do echo x > $p/root$OUT/new; done; [ -e $OUT/new ]",
            ": > /proc/sys/vm/drop_caches",
            "[ -c /dev/kmsg ] && : > /dev/kmsg",
            "chroot /proc/1/root sh -c \"echo x > $OUT/new\"",
            "mknod disk b $((0x$(stat -c %D $OUT) >> 8)) $((0x$(stat -c %D $OUT) & 255))",
        ] {
            let (wait, said) = bay.shell(bay.fence(&hold), line);
            assert!(!wait.is_success(), "{hold:?}: {line}: {said}");
            assert_eq!(std::fs::read(bay.at("outside/old")).unwrap(), b"old", "{hold:?}: {line}");
            assert_eq!(std::fs::read_dir(bay.at("outside")).unwrap().count(), 1, "{hold:?}: {line}");
        }
    }
}

#[test]
fn inside_everything_works() {
    for hold in holders() {
        let bay = Bay::new();
        let line =
            "set -e; echo a > f; mkdir -p d/e; mv f d/e/g; ln d/e/g h; ln -s h i; chmod 755 h; rm i; mkfifo p
            echo x > ../tmp/t; cat ../tmp/t > moved; cat moved > /dev/null; echo gone > /dev/stdout
            cat /etc/passwd > copy; echo x > /dev/shm/triphammer-test-$$; rm /dev/shm/triphammer-test-$$
            (sleep 0.01; echo late > late) & wait";
        let (wait, said) = bay.shell(bay.fence(&hold), line);
        assert!(wait.is_success(), "{hold:?}: {wait}: {said}");
        assert_eq!(said, "gone\n", "{hold:?}");
        assert_eq!(std::fs::read(bay.at("work/late")).unwrap(), b"late\n", "{hold:?}");
    }
}

#[test]
fn a_file_can_be_moved_between_writable_places() {
    if !holders().contains(&Hold::Landlock) {
        return;
    }
    let bay = Bay::new();
    // Not with bubblewrap: there the two are mounts of their own.
    let (wait, said) = bay.shell(bay.fence(&Hold::Landlock), "echo x > ../tmp/t && mv ../tmp/t moved");
    assert!(wait.is_success() && bay.at("work/moved").exists(), "{said}");
}

#[test]
fn bubblewrap_keeps_a_folder_of_a_writable_one() {
    for hold in holders().into_iter().filter(|hold| *hold != Hold::Landlock) {
        let bay = Bay::new();
        std::fs::create_dir(bay.at("work/kept/scratch")).unwrap();
        let mut containment = bay.fence(&hold);
        let fence = containment.fence.as_mut().unwrap();
        fence.read_only.push(bay.at("work/kept"));
        fence.writable.push(bay.at("work/kept/scratch"));
        for line in ["echo x > kept/new", "rm kept/old", "mv kept gone", "umount kept; echo x > kept/new"] {
            let (wait, said) = bay.shell(containment.clone(), line);
            assert!(!wait.is_success(), "{line}: {said}");
            assert_eq!(std::fs::read_dir(bay.at("work/kept")).unwrap().count(), 2, "{line}");
        }
        let (wait, said) = bay.shell(containment, "echo x > kept/scratch/new && echo x > new");
        assert!(wait.is_success(), "{said}");
    }
}

#[test]
fn what_ends_a_program_and_what_it_leaves_is_seen_through_each_holder() {
    for hold in holders() {
        let bay = Bay::new();
        let missing = bay.run(bay.fence(&hold), &["no-such-program-here"]).unwrap();
        assert!(
            matches!(missing.wait, WaitStatus::NotStarted { errno: Some(2) }),
            "{hold:?}: {:?}",
            missing.wait
        );
        assert_eq!(bay.shell(bay.fence(&hold), "exit 7").0, WaitStatus::Exited { code: 7 }, "{hold:?}");
        let killed = bay.shell(bay.fence(&hold), "kill -9 $$").0;
        let expected = match hold {
            Hold::Landlock => WaitStatus::Signalled { signal: 9 },
            Hold::Bubblewrap(_) => WaitStatus::Exited { code: 137 },
        };
        assert_eq!(killed, expected);
        // Told from every other by how long it sleeps: inside, its number may be another one than outside.
        let mark = format!("300.{}", 100_000 + fastrand());
        let line = format!(
            "setsid sh -c 'sleep {mark} & echo x > pid; wait' > /dev/null 2>&1 & while [ ! -s pid ]; do sleep 0.01; done"
        );
        bay.run(bay.fence(&hold), &["sh", "-c", &line]).unwrap();
        assert!(bay.at("work/pid").exists(), "{hold:?}");
        std::fs::remove_file(bay.at("work/pid")).unwrap();
        let lives = std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            std::fs::read(process.path().join("cmdline")).is_ok_and(|line| {
                line.starts_with(b"sleep") && line.windows(mark.len()).any(|part| part == mark.as_bytes())
            })
        });
        assert!(!lives, "{hold:?}: it lives");
    }
}

/// A number of this process's and this moment's own.
fn fastrand() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.subsec_nanos() % 800_000 + std::process::id() % 1_000
}

/// Lists the interfaces that are up, and whether a loopback connection can be made.
const NETWORK: &str = "ip -o link show up 2> /dev/null | wc -l; python3 -c '
import socket
server = socket.socket(); server.bind((\"127.0.0.1\", 0)); server.listen()
socket.create_connection(server.getsockname(), 2); print(\"loopback\")'";

#[test]
fn a_network_of_its_own() {
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let call = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'");
    let network = |network| Containment { network, ..Containment::NONE };
    for choice in [NetworkChoice::Loopback, NetworkChoice::None] {
        let bay = Bay::new();
        let ended = match bay.run(network(choice), &["sh", "-c", &call]) {
            Ok(ended) => ended,
            Err(error) => {
                assert!(error.to_string().contains("a network of its own"), "{error}");
                continue;
            }
        };
        assert!(!ended.wait.is_success(), "{choice:?} reaches a server of ours");
        assert!(
            !bay.shell(network(choice), &format!("nsenter -t 1 -n {call}")).0.is_success(),
            "{choice:?} goes back"
        );
        let (_, said) = bay.shell(network(choice), NETWORK);
        assert_eq!(said.contains("loopback"), choice == NetworkChoice::Loopback, "{choice:?}: {said}");
    }
    let bay = Bay::new();
    assert!(bay.shell(network(NetworkChoice::All), &call).0.is_success());
}

#[test]
fn no_more_processes_memory_and_bytes_in_a_file_than_allowed() {
    let limits = |limits| Containment { limits, ..Containment::NONE };
    let bay = Bay::new();
    let few = TreeLimits { processes: Some(10), ..TreeLimits::NONE };
    let line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 1 & done; echo all > all; wait";
    match bay.run(limits(few), &["sh", "-c", line]) {
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stdout.tail).into_owned();
            assert!(!bay.at("work/all").exists() && said.contains("fork"), "{said}");
            assert!(bay.shell(limits(few), "sleep 0 & wait").0.is_success(), "the bound is of one launch");
        }
        Err(error) => assert!(error.to_string().contains("setting its limits"), "{error}"),
    }
    let little = TreeLimits { memory: Some(Size::new(64 << 20)), ..TreeLimits::NONE };
    let hungry = "python3 -c 'x = bytearray(512 << 20); print(len(x))'";
    match bay.run(limits(little), &["sh", "-c", hungry]) {
        Ok(ended) => {
            assert!(!ended.wait.is_success(), "{:?}", String::from_utf8_lossy(&ended.stdout.tail));
            assert!(bay.shell(limits(little), "python3 -c 'print(1)'").0.is_success());
        }
        Err(error) => assert!(error.to_string().contains("setting its limits"), "{error}"),
    }
    let small = TreeLimits { file_size: Some(Size::new(1 << 20)), ..TreeLimits::NONE };
    let (wait, said) = bay.shell(limits(small), "head -c 2000000 /dev/zero > big");
    assert!(!wait.is_success(), "{said}");
    assert_eq!(std::fs::metadata(bay.at("work/big")).unwrap().len(), 1 << 20);
}

#[test]
fn the_system_says_whether_it_can() {
    let first = Fence::is_available();
    // Trying left nothing on this thread, and says the same again.
    let room = tempfile::tempdir().unwrap();
    std::fs::write(room.path().join("free"), "x").unwrap();
    assert_eq!(Fence::is_available(), first);
}

/// Takes the channel of each process above it and says down it that all ended well.
const FORGER: &str = "
import ctypes, os, struct
libc = ctypes.CDLL(None)
pid, took = os.getppid(), 0
for _ in range(3):
    fd = libc.syscall(434, pid, 0)
    if fd < 0: break
    for number in range(64):
        got = libc.syscall(438, fd, number, 0)
        if got >= 0:
            took += 1
            try: os.write(got, b'L' + struct.pack('<ii', 0, 0) + b'D' + struct.pack('<ii', 0, 0))
            except OSError: pass
    try: pid = int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
    except OSError: break
print('took', took, flush=True)
os._exit(7)
";

/// The program shares a user with its shim where that user is no administrator. What says how it ended is out of its reach.
#[test]
fn nobody_speaks_for_the_shim() {
    for hold in holders() {
        let bay = Bay::new();
        let ended = bay.run(bay.fence(&hold), &["python3", "-c", FORGER]).unwrap();
        let said = String::from_utf8_lossy(&ended.stdout.tail).into_owned();
        assert_eq!(ended.wait, WaitStatus::Exited { code: 7 }, "{hold:?}: {said}");
    }
}

#[test]
fn what_the_caller_left_open_does_not_reach_the_program() {
    let bay = Bay::new();
    let file = std::fs::File::create(bay.at("outside/left-open")).unwrap();
    // As a shell's `9>>file` would be: without close-on-exec.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let line = "ls -l /proc/self/fd | grep -c left-open";
    assert_eq!(bay.shell(Containment::NONE, line).1.trim(), "0");
    for hold in holders() {
        assert_eq!(bay.shell(bay.fence(&hold), line).1.trim(), "0", "{hold:?}");
    }
}
