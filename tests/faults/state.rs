//! State and work: budgets outlive the process, a broken run disturbs no other, no work is lost.

use std::fs;

use triphammer_model::{Event, MicroUsd};
use triphammer_testkit::{Ran, RunFiles};

use crate::fake::{Fake, end, signal, start, touched};

/// An agent that moves each time, and at attempt 3 waits to be stopped.
const STOP_AT_3: &str = r#"echo x >> work.txt
test $TRIPHAMMER_ATTEMPT = 3 && ! test -f "$BESIDE/ready" && { echo $$ > "$BESIDE/pids"; touch "$BESIDE/ready"; sleep 9999; }"#;

#[test]
fn attempts_are_not_given_back_by_an_interrupt() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", &format!("{STOP_AT_3}\ntrue"));
    let child = start(fake.forge_command(["--attempts", "5"]));
    fake.wait_for("ready");
    signal(&child, rustix::process::Signal::INT);
    end(child).expect("interrupted", "interrupted", 3, 130);
    fake.resume().expect("rejected", "attempts-exhausted", 5, 1);
    assert_eq!(fake.lines("fa"), ["1", "2", "3", "4", "5"], "two were left");
}

#[test]
fn attempts_are_not_given_back_by_a_kill() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", &format!("{STOP_AT_3}\ntrue"));
    let mut child = start(fake.forge_command(["--attempts", "5"]));
    fake.wait_for("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    fake.resume().expect("rejected", "attempts-exhausted", 5, 1);
    assert_eq!(fake.lines("fa"), ["1", "2", "3", "4", "5"], "two were left");
}

/// What a run has spent is in its journal: what the configuration says by now gives nothing back.
#[test]
fn limits_are_those_of_the_start() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", &format!("{STOP_AT_3}\ntrue"));
    let child = start(fake.forge_command(["--attempts", "4"]));
    fake.wait_for("ready");
    signal(&child, rustix::process::Signal::INT);
    end(child).expect("interrupted", "interrupted", 3, 130);
    fake.spec("attempts: 50\n", "");
    fake.home.write("triphammer.toml", "[run]\nattempts = 50\n");
    fake.resume().expect("rejected", "attempts-exhausted", 4, 1);
}

#[test]
fn money_tokens_and_time_are_not_given_back() {
    let receipt =
        r#"echo '{"cost_usd": 0.4, "tokens": {"input": 300, "output": 100}}' > "$TRIPHAMMER_RECEIPT""#;
    for (what, args) in [("money", ["--max-cost", "1.50"]), ("tokens", ["--max-tokens", "1500"])] {
        let fake = Fake::new(&[("works", "false")]).agent("fa", "", &format!("{receipt}\n{STOP_AT_3}\ntrue"));
        let child = start(fake.forge_command(args.iter().copied().chain(["--attempts", "50"])));
        fake.wait_for("ready");
        signal(&child, rustix::process::Signal::INT);
        end(child).expect("interrupted", "interrupted", 3, 130);
        // Three times 0.4 are spent; the fourth goes over the cap.
        fake.resume().expect("rejected", "budget-exhausted", 4, 4);
        assert_eq!(fake.launches("fa"), 4, "{what}");
        let cost = fake.run().summary()["spent"]["cost"].clone();
        assert_eq!(serde_json::from_value::<MicroUsd>(cost).unwrap(), MicroUsd::new(1_600_000), "{what}");
    }
}

/// The time at work adds up over processes; the time between does not count.
#[test]
fn time_at_work_adds_up() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", &format!("sleep 1\n{STOP_AT_3}\ntrue"));
    let child = start(fake.forge_command(["--attempts", "4"]));
    fake.wait_for("ready");
    signal(&child, rustix::process::Signal::INT);
    end(child).expect("interrupted", "interrupted", 3, 130);
    let spent = |run: &RunFiles| run.summary()["spent"]["active_ms"].as_u64().unwrap();
    let before = spent(&fake.run());
    assert!(before >= 3_000, "{before}");
    fake.resume().expect("rejected", "attempts-exhausted", 4, 1);
    let after = spent(&fake.run());
    let resumed = fake.run().journal().iter().rev().find_map(|l| match l.event {
        Event::Judged { .. } => Some(l.elapsed_ms),
        _ => None,
    });
    // The last process's clock began at 0 again.
    assert!(resumed.unwrap() >= 1_000 && after >= before + 1_000, "{before} {after} {resumed:?}");
}

/// A home with a run of each kind of damage, and one that is whole and can be resumed.
struct Wrecks {
    fake: Fake,
    whole: String,
}

impl Wrecks {
    fn new() -> Self {
        let login = r#"test -f "$BESIDE/login" && { touch work.txt; exit; }
                       echo '{"fault": {"kind": "authentication"}}' > "$TRIPHAMMER_RECEIPT""#;
        let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", login);
        let ran = fake.forge([""; 0]);
        ran.expect("suspended", "authentication", 0, 5);
        let whole = ran.done()["run"].as_str().unwrap().to_owned();
        Self { fake, whole }
    }

    /// Copies the whole run and damages the copy.
    fn wreck(&self, name: &str, damage: impl FnOnce(&std::path::Path)) -> String {
        let runs = self.fake.home.path().join("runs");
        let id = format!("20200101-000000-{name}");
        copy(&runs.join(&self.whole), &runs.join(&id));
        damage(&runs.join(&id));
        id
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn edit(file: &std::path::Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// Damage of all kinds: each run that has it is named with what is wrong, and everything else goes on.
#[test]
fn a_broken_run_is_named_and_the_rest_works() {
    let wrecks = Wrecks::new();
    let journal = |dir: &std::path::Path| dir.join("journal.jsonl");
    let broken = [
        wrecks.wreck("flipped", |d| {
            edit(&journal(d), |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            });
        }),
        wrecks.wreck("first-line", |d| edit(&journal(d), |bytes| bytes[10] ^= 0x20)),
        wrecks.wreck("line-lost", |d| {
            edit(&journal(d), |bytes| {
                let ends: Vec<usize> =
                    bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i).collect();
                bytes.drain(ends[0] + 1..=ends[1]);
            });
        }),
        wrecks.wreck("emptied", |d| edit(&journal(d), Vec::clear)),
        wrecks.wreck("zeros", |d| edit(&journal(d), |bytes| bytes.fill(0))),
        wrecks.wreck("gone", |d| fs::remove_file(journal(d)).unwrap()),
        wrecks.wreck("folder", |d| {
            fs::remove_file(journal(d)).unwrap();
            fs::create_dir(journal(d)).unwrap();
        }),
        wrecks.wreck("fifo", |d| {
            fs::remove_file(journal(d)).unwrap();
            fifo(&journal(d));
        }),
        wrecks.wreck("noise", |d| fs::write(journal(d), [0xff, 0xfe, b'\n', 0, b'\n']).unwrap()),
    ];
    let list = wrecks.fake.home.run(["runs", "--json"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    let listed: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let ids: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().filter_map(|r| r["run"].as_str()).collect();
    assert_eq!(ids, [wrecks.whole.as_str()]);
    let text = wrecks.fake.home.run(["runs"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let told = format!("{}{}", text.stdout, text.stderr);
    for id in &broken {
        assert!(told.contains(id.as_str()), "{id} is not named in:\n{told}");
        for command in
            [vec!["resume", id, "--json"], vec!["show", id], vec!["restore", id, "9", "--to", "nowhere"]]
        {
            let ran = wrecks.fake.home.run(command.clone());
            assert!(!matches!(ran.code, Some(0 | 101) | None), "{command:?}: {ran:?}");
            assert!(!ran.stderr.is_empty() && ran.stderr.lines().count() <= 3, "{command:?}: {}", ran.stderr);
        }
    }
    // The rest works: the whole run is resumed, and a new one runs to its end beside the wrecks.
    std::fs::write(wrecks.fake.beside("login"), "").unwrap();
    Ran::expect(&wrecks.fake.home.run(["resume", &wrecks.whole, "--json"]), "accepted", "gates-passed", 1, 0);
    std::fs::remove_file(wrecks.fake.home.path().join("work.txt")).unwrap();
    wrecks.fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    // Nothing of the wrecks was touched.
    assert_eq!(
        fs::read(wrecks.fake.home.path().join("runs").join(&broken[3]).join("journal.jsonl")).unwrap(),
        b""
    );
}

fn fifo(path: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
}

/// A journal that ends in the midst of a line is what a crash leaves: the line is cut off and named, the run goes on.
#[test]
fn a_torn_last_line_is_cut_off_and_named() {
    let wrecks = Wrecks::new();
    let id = wrecks.whole.clone();
    edit(&wrecks.fake.run().path().join("journal.jsonl"), |bytes| {
        let len = bytes.len();
        bytes.truncate(len - 30);
    });
    std::fs::write(wrecks.fake.beside("login"), "").unwrap();
    let ran = wrecks.fake.home.run(["resume", &id, "--json"]);
    ran.expect("accepted", "gates-passed", 1, 0);
    assert!(ran.stdout.contains("was not finished"), "{}", ran.stdout);
    let run = wrecks.fake.home.run_files(&triphammer_model::RunId::new(id));
    let torn =
        run.journal().iter().any(|l| matches!(l.event, Event::Resumed { torn_bytes, .. } if torn_bytes > 0));
    assert!(torn);
}

/// A derived file that is lost or spoiled is made again.
#[test]
fn the_summary_is_only_derived() {
    let wrecks = Wrecks::new();
    let dir = wrecks.fake.home.path().join("runs").join(&wrecks.whole);
    for spoil in ["", "{", "[]"] {
        fs::write(dir.join("run.json"), spoil).unwrap();
        let list = wrecks.fake.home.run(["runs", "--json"]);
        assert!(list.code == Some(0) && list.stdout.contains(&wrecks.whole), "{list:?}");
    }
    fs::remove_file(dir.join("run.json")).unwrap();
    std::fs::write(wrecks.fake.beside("login"), "").unwrap();
    wrecks.fake.resume().expect("accepted", "gates-passed", 1, 0);
    assert_eq!(wrecks.fake.run().summary()["outcome"], "accepted");
}

/// Work that was never committed survives a kill and whatever the next attempt does to it.
#[test]
fn uncommitted_work_of_a_killed_attempt_can_be_restored() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        r#"if test $TRIPHAMMER_ATTEMPT = 1; then
             mkdir -p src; echo precious > src/new.txt; echo changed > old.txt; rm gone.txt
             echo $$ > "$BESIDE/pids"; touch "$BESIDE/ready"; sleep 9999
           fi
           rm -rf src old.txt; touch work.txt"#,
    );
    fake.home.write("old.txt", "old\n");
    fake.home.write("gone.txt", "was here\n");
    let mut child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    fake.resume().expect("accepted", "gates-passed", 2, 0);
    assert_eq!(touched(&fake.run(), 1), ["gone.txt", "old.txt", "src/new.txt"]);
    for (attempt, old, new, gone) in [
        ("0", Some("old\n"), None, true),
        ("1", Some("changed\n"), Some("precious\n"), false),
        ("2", None, None, false),
    ] {
        let to = fake.beside(&format!("restored-{attempt}"));
        let ran = fake.home.run(["restore", "latest", attempt, "--to", to.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let text = |name: &str| fs::read_to_string(to.join(name)).ok();
        assert_eq!(text("old.txt").as_deref(), old, "{attempt}");
        assert_eq!(text("src/new.txt").as_deref(), new, "{attempt}");
        assert_eq!(text("gone.txt").is_some(), gone, "{attempt}");
    }
}
