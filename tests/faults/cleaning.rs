//! A crash and a clean-up, one after the other: no work is lost that was never committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use triphammer_testkit::Ran;

use crate::fake::{Fake, start};

/// The harshest limits there are.
const GC: [&str; 9] = ["gc", "--json", "--orphans", "--keep-days", "0", "--max-runs", "0", "--max-size", "0"];

/// The files of a folder with their bytes, but for the home's own.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in fs::read_dir(&path).unwrap().flatten() {
            let name = entry.path().strip_prefix(dir).unwrap().display().to_string();
            if name == "runs" {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn cleaned(fake: &Fake) -> serde_json::Value {
    let ran = fake.home.run(GC);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn kept_runs(done: &serde_json::Value) -> usize {
    assert_eq!(done["removed"].as_array().unwrap().len(), 0, "{done}");
    assert_eq!(done["objects"], "pruned", "{done}");
    done["kept"].as_array().unwrap().len()
}

/// What `restore` writes for an attempt.
fn restored(fake: &Fake, attempt: &str) -> BTreeMap<String, Vec<u8>> {
    let to = fake.beside(&format!("restored-{attempt}-{}", fastrand::u64(..)));
    let ran = fake.home.run(["restore", "latest", attempt, "--to", to.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    files(&to)
}

/// The agent of both cases: attempt 1 makes work that is nowhere else, attempt 2 destroys it.
const AGENT: &str = r#"if test $TRIPHAMMER_ATTEMPT = 1; then
    mkdir -p src; echo precious > src/new.txt; echo changed > old.txt; rm gone.txt
    head -c 300000 /dev/urandom > noise.bin
    test -f "$BESIDE/in-agent" && { echo $$ > "$BESIDE/pids"; touch "$BESIDE/ready"; sleep 9999; }
    exit 0
fi
rm -rf src old.txt noise.bin; touch work.txt"#;

/// Killed in the midst of an attempt: its work lies in the workspace, its start in a tree. Both outlast the clean-up.
#[test]
fn a_kill_in_an_attempt_and_a_clean_up_lose_nothing() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", AGENT);
    fake.home.write("old.txt", "old\n");
    fake.home.write("gone.txt", "was here\n");
    fs::write(fake.beside("in-agent"), "").unwrap();
    let at_start = files(&fake.home.path());
    let mut child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    let at_kill = files(&fake.home.path());
    assert!(at_kill.contains_key("noise.bin") && at_kill != at_start);
    let done = cleaned(&fake);
    assert_eq!(kept_runs(&done), 1);
    assert!(done["kept"][0]["reason"].as_str().unwrap().contains("resume"), "{done}");
    assert!(files(&fake.home.path()) == at_kill, "the workspace is nobody's business");
    assert!(restored(&fake, "0") == at_start);
    fake.resume().expect("accepted", "gates-passed", 2, 0);
    // The killed attempt's work was kept when the run went on, before the next attempt destroyed it.
    assert!(restored(&fake, "1") == at_kill);
    assert!(!fake.home.path().join("noise.bin").exists());
}

/// Killed between two attempts, while the gates judge: the attempt's tree is the only copy once the workspace is gone.
#[test]
fn a_kill_between_attempts_and_a_clean_up_lose_nothing() {
    let gate = r#"test -f work.txt && exit 0
        test -f "$BESIDE/again" && exit 1
        test -f src/new.txt || exit 1
        echo $$ > "$BESIDE/pids"; touch "$BESIDE/ready"; sleep 9999"#;
    let fake = Fake::new(&[("works", gate)]).agent("fa", "", AGENT);
    fake.home.write("old.txt", "old\n");
    fake.home.write("gone.txt", "was here\n");
    let at_start = files(&fake.home.path());
    let mut child = start(fake.forge_command([""; 0]));
    fake.wait_for("ready");
    let at_kill = files(&fake.home.path());
    child.kill().unwrap();
    child.wait().unwrap();
    fake.wait_dead("pids");
    // A person who cleans up thoroughly: all that the agent made is thrown away, and old runs with it.
    for name in ["src/new.txt", "noise.bin", "old.txt"] {
        fs::remove_file(fake.home.path().join(name)).unwrap();
    }
    assert_eq!(kept_runs(&cleaned(&fake)), 1);
    assert!(restored(&fake, "0") == at_start);
    assert!(restored(&fake, "1") == at_kill);
    fs::write(fake.beside("again"), "").unwrap();
    let ran = fake.resume();
    Ran::expect(&ran, "accepted", "gates-passed", 2, 0);
    // What was accepted is in the workspace; now the run may go, and takes nothing from there.
    let done = cleaned(&fake);
    assert_eq!(done["removed"].as_array().unwrap().len(), 1, "{done}");
    assert!(fake.home.path().join("work.txt").exists());
}

/// Isolated work that was accepted and never applied is nowhere else: it stays, and the clean-up says why. Once applied
/// it goes with all that belongs to it.
#[test]
fn accepted_work_goes_only_after_it_was_applied() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", "echo done > work.txt");
    fake.forge(["--isolate", "copy"]).expect("accepted", "gates-passed", 1, 0);
    let done = cleaned(&fake);
    assert_eq!(kept_runs(&done), 1);
    let why = done["kept"][0]["reason"].as_str().unwrap();
    assert!(why.contains("only copy of `work.txt`") && why.contains("never applied"), "{why}");
    assert_eq!(restored(&fake, "1")["work.txt"], b"done\n");
    assert_eq!(fake.home.run(["apply", "latest"]).code, Some(0));
    let done = cleaned(&fake);
    assert_eq!(done["removed"].as_array().unwrap().len(), 1, "{done}");
    assert!(fake.home.runs().is_empty());
    assert_eq!(fs::read_to_string(fake.home.path().join("work.txt")).unwrap(), "done\n");
    assert_eq!(fs::read_dir(fake.home.state().join("triphammer/workspaces")).unwrap().count(), 0);
}
