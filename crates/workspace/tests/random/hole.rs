//! Stores through shared pages, by processes of their own.
//!
//! The kernel stamps a file when a page of it that was clean is written through a mapping. A later store into the same
//! page, as long as the mapping is there and the page was not written back, moves no time. So a process that lives
//! across a look can change a file unseen. One that lives between two looks cannot: its mapping was not there at the
//! first one, so its first store is stamped after it. The loop makes all agents such processes, since it looks before
//! an agent starts and after all of its processes are dead.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use triphammer_model::{Change, Content, Observed};
use triphammer_workspace::moved;

use crate::arena::{Arena, MEMORY};
use crate::clock::Pause;
use crate::mapped::Mapped;
use crate::sequence::{check_movement, check_tree};
use crate::world::World;

/// Names the file that a process is to map.
const FILE: &str = "TRIPHAMMER_MAPPED";

const ROUNDS: u64 = 40;

/// A process that maps a file and stores into it when told: this test program once more, running the same test.
struct Process {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(test: &str, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, orders, answers }
    }

    /// Returns once it is done.
    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        for line in self.answers.by_ref().lines() {
            if line.unwrap() == "done" {
                return;
            }
        }
        panic!("the process ended early");
    }

    fn store(&mut self, at: usize, byte: u8) {
        self.order(&format!("store {at} {byte}"));
    }

    fn load(&mut self, at: usize) {
        self.order(&format!("load {at}"));
    }

    /// Returns once it is dead, by a signal or of its own will.
    fn die(mut self, killed: bool) {
        if killed {
            self.child.kill().unwrap();
        }
        drop(self.orders);
        // It says farewell, and would complain if nobody listened.
        std::io::copy(&mut self.answers, &mut std::io::sink()).unwrap();
        self.child.wait().unwrap();
    }
}

/// In the process: carries out orders until there are no more.
fn serve() -> bool {
    let Some(file) = std::env::var_os(FILE) else { return false };
    let mut mapped = Mapped::open(Path::new(&file)).unwrap();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["load", at] => drop(mapped.load(at.parse().unwrap())),
            ["store", at, byte] => mapped.store(at.parse().unwrap(), byte.parse().unwrap()),
            other => panic!("no order: {other:?}"),
        }
        // What the test runner printed may have left an open line.
        println!("\ndone");
    }
    true
}

fn arenas() -> impl Iterator<Item = Arena> {
    [std::env::temp_dir(), PathBuf::from(MEMORY)].into_iter().map(|place| {
        let arena = Arena::new(&place);
        std::fs::write(arena.at(b"mapped"), [b'-'; 5_000]).unwrap();
        std::fs::write(arena.at(b"plain"), "-").unwrap();
        arena
    })
}

fn of<'a>(path: &str, observed: &'a [Observed]) -> Option<&'a Observed> {
    observed.iter().find(|one| one.path.as_bytes() == path.as_bytes())
}

/// Between two looks: however it stores, and however it ends.
#[test]
fn a_process_between_two_looks_hides_nothing() {
    if serve() {
        return;
    }
    for arena in arenas() {
        let mut last = arena.eyes.look(None).unwrap();
        for round in 0..ROUNDS {
            let mut random = fastrand::Rng::with_seed(round);
            let before = World::read(&arena.work());
            let mut process =
                Process::start("hole::a_process_between_two_looks_hides_nothing", &arena.at(b"mapped"));
            if random.bool() {
                process.load(0);
            }
            for _ in 0..random.usize(1..5) {
                process.store(random.usize(..5_000), random.alphanumeric() as u8);
                Pause::random(&mut random).take();
            }
            // No byte of before is a digit of this round's.
            process.store(0, u8::try_from(round).unwrap() + 128);
            process.die(random.bool());
            let look = arena.eyes.look(Some(&last)).unwrap();
            let after = World::read(&arena.work());
            let kept = arena.eyes.keep(&look, &arena.run, "after").unwrap();
            let seen = check_movement(&moved(&last, &look), &before, &after);
            let seen = seen.and_then(|()| check_tree(&arena, &kept, &after));
            assert_eq!(seen, Ok(()), "{}, round {round}", arena.file_system);
            last = look;
        }
    }
}

/// Across a look: what it stores there may be missed, and that is all that may be missed. A look that reads everything
/// has the bytes.
#[test]
fn a_process_that_lives_across_a_look_hides_at_most_its_own_stores() {
    if serve() {
        return;
    }
    for arena in arenas() {
        let mut process = Process::start(
            "hole::a_process_that_lives_across_a_look_hides_at_most_its_own_stores",
            &arena.at(b"mapped"),
        );
        process.store(0, b'1');
        let first = arena.eyes.look(None).unwrap();
        process.store(0, b'2');
        std::fs::write(arena.at(b"plain"), "2").unwrap();
        let second = arena.eyes.look(Some(&first)).unwrap();
        process.die(true);
        let observed = moved(&first, &second);
        let plain = of("plain", &observed).map(|one| (one.change, one.content));
        assert_eq!(plain, Some((Change::Changed, Content::Changed)), "{observed:?}");
        let hidden = of("mapped", &observed);
        assert!(hidden.is_none_or(|one| one.content == Content::Changed), "{observed:?}");
        println!(
            "{}: a second store into one page, across a look, was {}",
            arena.file_system,
            if hidden.is_some() { "seen" } else { "missed" }
        );
        all_is_read(&arena);
    }
}

/// On tmpfs no time tells of a store by a process between two looks that read the page through the same mapping first;
/// it is seen all the same, by its content.
#[test]
fn a_store_after_a_load_is_seen_even_in_memory() {
    if serve() {
        return;
    }
    for arena in arenas() {
        let first = arena.eyes.look(None).unwrap();
        let mut process =
            Process::start("hole::a_store_after_a_load_is_seen_even_in_memory", &arena.at(b"mapped"));
        process.load(0);
        process.store(0, b'2');
        process.die(false);
        let second = arena.eyes.look(Some(&first)).unwrap();
        let observed = moved(&first, &second);
        let seen = of("mapped", &observed).is_some_and(|one| one.content == Content::Changed);
        assert!(seen, "{}: {observed:?}", arena.file_system);
        println!(
            "{}: a store into a page that was read first was {}",
            arena.file_system,
            if seen { "seen" } else { "missed" }
        );
        all_is_read(&arena);
    }
}

/// A look without a last one takes every byte from the disk.
fn all_is_read(arena: &Arena) {
    let look = arena.eyes.look(None).unwrap();
    let kept = arena.eyes.keep(&look, &arena.run, "after").unwrap();
    assert_eq!(check_tree(arena, &kept, &World::read(&arena.work())), Ok(()));
}
