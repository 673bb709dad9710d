//! `gc`: what goes, what stays and why, and that no only copy of anything is lost.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use triphammer_testkit::{Ran, TestHome, wait_until};

use crate::common::{git, strike};

/// The harshest limits there are.
const ALL: [&str; 6] = ["--keep-days", "0", "--max-runs", "0", "--max-size", "0"];

/// `gc --json` with more arguments; it must end well.
#[track_caller]
fn gc(home: &TestHome, more: &[&str]) -> Value {
    let ran = gc_ran(home, more);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn gc_ran(home: &TestHome, more: &[&str]) -> Ran {
    let mut args = vec!["gc", "--json"];
    args.extend(more);
    home.run(args)
}

fn runs_in(value: &Value, list: &str) -> Vec<String> {
    value[list].as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn reason(value: &Value, run: &str) -> String {
    let rows = value["kept"].as_array().unwrap().iter().chain(value["removed"].as_array().unwrap());
    let row = rows.into_iter().find(|row| row["run"] == run);
    row.unwrap_or_else(|| panic!("{run} is not in {value}"))["reason"].as_str().unwrap().to_owned()
}

/// A run that is accepted for having written `name`, which no run before it had.
fn accepted(home: &TestHome, name: &str, more: &[&str]) -> String {
    let agent = format!("echo 'work {name}' > {name}");
    let mut args = vec!["--allow-green"];
    args.extend(more);
    let ran = strike(home, &agent, &args);
    ran.expect("accepted", "unchecked", 1, 0);
    ran.done()["run"].as_str().unwrap().to_owned()
}

fn home() -> TestHome {
    TestHome::with_gates(&[("fine", "! test -f half.txt")])
}

/// Everything below a folder: inode, mode, size, times and bytes or target.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (u64, u32, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = path.symlink_metadata().unwrap();
        let bytes = if meta.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            Vec::new()
        } else {
            std::fs::read(&path).unwrap()
        };
        found.insert(path, (meta.ino(), meta.mode(), meta.mtime_nsec(), bytes));
    }
    found
}

fn store(home: &TestHome) -> PathBuf {
    home.path().join("runs/.store.git")
}

/// Git finds nothing wrong with the store and nothing in it that no ref keeps.
#[track_caller]
fn assert_clean(home: &TestHome) {
    let said = git(&store(home), &["fsck", "--full", "--strict", "--unreachable", "--no-progress"]);
    assert_eq!(said.lines().filter(|line| !line.starts_with("notice:")).count(), 0, "{said}");
}

#[test]
fn without_a_limit_no_run_goes() {
    let home = home();
    let runs = [accepted(&home, "a.txt", &[]), accepted(&home, "b.txt", &[])];
    let done = gc(&home, &[]);
    assert_eq!((runs_in(&done, "removed").len(), runs_in(&done, "kept").len()), (0, 0));
    assert_eq!((done["schema"].as_u64(), done["objects"].as_str()), (Some(1), Some("pruned")));
    for run in &runs {
        let ran = home.run(["restore", run, "1", "--to", home.beside(run).to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    // Nor in a home where nothing ever ran.
    let empty = TestHome::new();
    let done = gc(&empty, &ALL);
    assert_eq!(done["objects"], "none");
    assert!(!empty.path().join("runs").exists());
}

#[test]
fn each_limit_takes_the_oldest() {
    for (limits, gone) in [
        (&["--max-runs", "2"][..], 2),
        (&["--max-runs", "4"], 0),
        (&["--keep-days", "1"], 0),
        (&["--keep-days", "0"], 4),
        (&["--max-size", "1G"], 0),
        (&["--max-size", "0"], 4),
        (&["--max-runs", "3", "--max-size", "1T"], 1),
    ] {
        let home = home();
        let runs: Vec<String> = (0..4).map(|n| accepted(&home, &format!("{n}.txt"), &[])).collect();
        let done = gc(&home, limits);
        assert_eq!(runs_in(&done, "removed"), runs[..gone], "{limits:?}");
        let left: Vec<String> = home.runs().iter().map(triphammer_testkit::RunFiles::id).collect();
        let mut expected = runs[gone..].to_vec();
        expected.sort();
        assert_eq!(left, expected, "{limits:?}");
        assert_clean(&home);
        let refs = git(&store(&home), &["for-each-ref", "--format=%(refname)"]);
        for run in &runs[..gone] {
            assert!(!refs.contains(run.as_str()), "{run} has refs: {refs}");
        }
        for run in &runs[gone..] {
            let ran = home.run(["restore", run, "1", "--to", home.beside(run).to_str().unwrap()]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        let bytes = &done["bytes"];
        assert_eq!(bytes["after"].as_u64() < bytes["before"].as_u64(), gone > 0, "{done}");
        // The workspace is nobody's business.
        assert!((0..4).all(|n| home.path().join(format!("{n}.txt")).exists()));
    }
}

/// A size that some of the runs fit into: only as many go as have to.
#[test]
fn a_size_is_reached_and_not_overdone() {
    let home = home();
    let agent = |n: u32| format!("head -c 400000 /dev/urandom > big.bin; echo {n} > n.txt");
    let mut runs = Vec::new();
    for n in 0..4 {
        let ran = strike(&home, &agent(n), &["--allow-green", "--isolate", "copy"]);
        ran.expect("accepted", "unchecked", 1, 0);
        runs.push(ran.done()["run"].as_str().unwrap().to_owned());
        let ran = home.run(["apply", runs.last().unwrap()]);
        assert!(ran.code == Some(0), "{ran:?}");
        git_init(&home);
        git(&home.path(), &["add", "big.bin", "n.txt"]);
        git(&home.path(), &["commit", "-q", "-m", "work"]);
    }
    let now = gc(&home, &[])["bytes"]["after"].as_u64().unwrap();
    let limit = now - 500_000;
    let planned = gc(&home, &["--dry-run", "--max-size", &limit.to_string()]);
    let done = gc(&home, &["--max-size", &limit.to_string()]);
    let after = done["bytes"]["after"].as_u64().unwrap();
    let removed = done["removed"].as_array().unwrap();
    assert_eq!(runs_in(&done, "removed"), runs[..removed.len()], "{done}");
    // The last that went had to go.
    let last = removed.last().unwrap()["bytes"].as_u64().unwrap();
    assert!(after <= limit && after + last > limit, "{after} {limit}: {done}");
    let about = planned["bytes"]["after"].as_u64().unwrap();
    assert!(about.abs_diff(after) < 100_000, "planned {about}, came to {after}");
}

fn git_init(home: &TestHome) {
    if !home.path().join(".git").exists() {
        git(&home.path(), &["init", "-q"]);
    }
}

#[test]
fn without_a_limit_nothing_is_said_to_be_kept_for_a_reason() {
    let home = home();
    accepted(&home, "a.txt", &[]);
    let ran = home.run(["gc", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("--max-runs") && !ran.stdout.contains("0 kept;"), "{}", ran.stdout);
    let limited = home.run(["gc", "--dry-run", "--max-runs", "5"]);
    assert!(!limited.stdout.contains("--max-runs"), "{}", limited.stdout);
}

#[test]
fn a_dry_run_says_the_same_and_touches_nothing() {
    let home = home();
    accepted(&home, "a.txt", &[]);
    accepted(&home, "b.txt", &["--isolate", "copy"]);
    let applied = accepted(&home, "c.txt", &["--isolate", "copy"]);
    assert_eq!(home.run(["apply", &applied]).code, Some(0));
    let orphan = accepted(&home, "d.txt", &[]);
    std::fs::remove_dir_all(home.path().join("runs").join(orphan)).unwrap();
    std::fs::create_dir_all(home.path().join("runs/.going-20200101-000000-x-0000/attempts")).unwrap();
    let before = (everything(&home.path()), everything(&home.state()));
    let mut args = ALL.to_vec();
    args.push("--orphans");
    for more in [&[][..], &["--orphans"]] {
        let args = [&ALL[..], more, &["--dry-run"]].concat();
        let planned = gc(&home, &args);
        assert_eq!(planned["dry_run"], true);
        assert!(planned["bytes"]["after"].as_u64() < planned["bytes"]["before"].as_u64(), "{planned}");
        let text = home.run([&["gc"][..], &args].concat());
        assert!(text.stdout.contains("would go") && text.stdout.contains("nothing was touched"), "{text:?}");
        assert!((everything(&home.path()), everything(&home.state())) == before, "something was touched");
    }
    let planned = gc(&home, &[&args[..], &["--dry-run"]].concat());
    let done = gc(&home, &args);
    for list in ["removed", "kept"] {
        assert_eq!(runs_in(&planned, list), runs_in(&done, list), "{planned}\n{done}");
    }
    let after = |value: &Value| value["bytes"]["after"].as_u64().unwrap();
    assert!(after(&planned).abs_diff(after(&done)) < 200 << 10, "{planned}\n{done}");
}

/// Isolated work that nobody applied is nowhere else; once it is applied it may go, with the folder it was made in.
#[test]
fn accepted_work_that_nobody_applied_stays() {
    for isolation in ["copy", "worktree"] {
        let home = home();
        home.write("there.txt", "there\n");
        home.write(".gitignore", "runs/\n");
        git_init(&home);
        git(&home.path(), &["add", "-A"]);
        git(&home.path(), &["commit", "-q", "-m", "start"]);
        let run = accepted(&home, "new.txt", &["--isolate", isolation]);
        let apart = home.state().join("triphammer/workspaces").join(&run);
        let done = gc(&home, &ALL);
        assert_eq!(runs_in(&done, "kept"), [run.as_str()]);
        let why = reason(&done, &run);
        assert!(why.contains("`new.txt`") && why.contains("never applied"), "{why}");
        assert!(apart.exists());
        assert_eq!(home.run(["apply", &run]).code, Some(0));
        // Applied and then changed: what was accepted is again nowhere else.
        home.write("new.txt", "edited\n");
        let why = reason(&gc(&home, &ALL), &run);
        assert!(why.contains("`new.txt`") && !why.contains("never applied"), "{why}");
        home.write("new.txt", "work new.txt\n");
        let done = gc(&home, &ALL);
        assert_eq!(runs_in(&done, "removed"), [run.as_str()], "{done}");
        assert!(home.runs().is_empty() && !apart.exists(), "{isolation}: {done}");
        assert_eq!(std::fs::read_dir(home.state().join("triphammer/workspaces")).unwrap().count(), 0);
        assert_clean(&home);
    }
}

/// Work that brings no content which was not there before: what the agent does, and how a person takes it back and does
/// it again.
const DEEDS: [(&str, &str, &str, &str); 5] = [
    ("`new.rs`", "mv old.rs new.rs", "mv new.rs old.rs", "mv old.rs new.rs"),
    ("`old.rs` (deleted)", "mv old.rs new.rs", "cp new.rs old.rs", "rm old.rs"),
    ("`tool.sh`", "chmod +x tool.sh", "chmod -x tool.sh", "chmod +x tool.sh"),
    ("`old.rs` (deleted)", "rm old.rs", "echo old > old.rs", "rm old.rs"),
    ("`a.txt` and 1 more", SWAP, SWAP, SWAP),
];
const SWAP: &str = "mv a.txt t; mv b.txt a.txt; mv t b.txt";

/// A home whose files are all committed.
fn committed_home() -> TestHome {
    let home = home();
    for name in ["old.rs", "a.txt", "b.txt", "tool.sh", "empty.txt", "rest/of/it.txt"] {
        home.write(name, &format!("{}\n", name.split('.').next().unwrap()));
    }
    home.write(".gitignore", "runs/\n");
    git_init(&home);
    git(&home.path(), &["add", "-A"]);
    git(&home.path(), &["commit", "-q", "-m", "start"]);
    home
}

fn sh(home: &TestHome, line: &str) {
    let status =
        std::process::Command::new("sh").args(["-c", line]).current_dir(home.path()).status().unwrap();
    assert!(status.success(), "{line}");
}

/// Where content stands, whether it can be executed and what is gone is work as well.
#[test]
fn work_without_new_content_stays_until_it_is_taken_over() {
    for isolation in ["worktree", "copy"] {
        for (named, act, back, again) in DEEDS {
            let case = format!("{isolation}: {act}");
            let home = committed_home();
            let ran = strike(&home, act, &["--allow-green", "--isolate", isolation]);
            ran.expect("accepted", "unchecked", 1, 0);
            let run = ran.done()["run"].as_str().unwrap().to_owned();
            let why = reason(&gc(&home, &ALL), &run);
            assert!(why.contains("never applied"), "{case}: {why}");
            // A person who does the same by hand has not said that it is this.
            sh(&home, act);
            assert_eq!(runs_in(&gc(&home, &ALL), "kept"), [run.as_str()], "{case}");
            git(&home.path(), &["checkout", "-q", "-f", "."]);
            git(&home.path(), &["clean", "-q", "-f", "-d"]);
            assert_eq!(home.run(["apply", &run]).code, Some(0), "{case}");
            sh(&home, back);
            let why = reason(&gc(&home, &ALL), &run);
            assert!(why.contains(named) && !why.contains("never applied"), "{case}: {why}");
            sh(&home, again);
            let done = gc(&home, &ALL);
            assert_eq!(runs_in(&done, "removed"), [run.as_str()], "{case}: {done}");
            assert!(!home.state().join("triphammer/workspaces").join(&run).exists(), "{case}: {done}");
            assert_clean(&home);
        }
    }
}

/// In place it is there at once; what is committed counts where it was committed, and what is deleted has to be gone.
#[test]
fn work_without_new_content_in_place() {
    for (named, act, back, again) in DEEDS {
        for committed in [false, true] {
            let case = format!("{act}, {back}, committed: {committed}");
            let home = committed_home();
            let ran = strike(&home, act, &["--allow-green"]);
            ran.expect("accepted", "unchecked", 1, 0);
            let run = ran.done()["run"].as_str().unwrap().to_owned();
            if committed {
                git(&home.path(), &["add", "-A"]);
                git(&home.path(), &["commit", "-q", "-m", "work"]);
            }
            sh(&home, back);
            let done = gc(&home, &ALL);
            let stays = !committed || act.contains("old.rs");
            assert_eq!(runs_in(&done, "kept").len(), usize::from(stays), "{case}: {done}");
            if stays {
                let why = reason(&done, &run);
                let named = if committed { "`old.rs` (deleted)" } else { named };
                assert!(why.contains(named), "{case}: {why}");
                sh(&home, again);
                assert_eq!(runs_in(&gc(&home, &ALL), "removed"), [run.as_str()], "{case}");
            }
        }
    }
}

/// A run that did the same and stays is a copy; one that only found it there is none.
#[test]
fn the_same_work_of_another_run_is_a_copy() {
    let home = committed_home();
    let isolated = |act: &str| {
        let ran = strike(&home, act, &["--allow-green", "--isolate", "copy"]);
        ran.expect("accepted", "unchecked", 1, 0);
        ran.done()["run"].as_str().unwrap().to_owned()
    };
    let swapped = isolated(SWAP);
    let more = isolated(&format!("{SWAP}; chmod +x tool.sh"));
    assert_eq!(runs_in(&gc(&home, &ALL), "removed"), [swapped]);
    let less = isolated("chmod +x tool.sh");
    let done = gc(&home, &ALL);
    assert_eq!((runs_in(&done, "removed"), runs_in(&done, "kept")), (vec![less], vec![more.clone()]));
    sh(&home, SWAP);
    let other = isolated("echo new > new.txt");
    assert!(reason(&gc(&home, &["--max-runs", "1"]), &more).contains("`a.txt` and 2 more"));
    assert!(home.runs().iter().any(|run| run.id() == other));
}

/// What was committed is kept by the person's own git, wherever the file went. A repository that only borrows from the
/// store keeps nothing.
#[test]
fn committed_work_may_go() {
    let home = home();
    git_init(&home);
    let run = accepted(&home, "new.txt", &[]);
    std::fs::rename(home.path().join("new.txt"), home.beside("new.txt")).unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "kept"), [run.as_str()]);
    let alternates = home.path().join(".git/objects/info/alternates");
    std::fs::write(&alternates, format!("{}\n", store(&home).join("objects").display())).unwrap();
    let why = reason(&gc(&home, &ALL), &run);
    assert!(why.contains("borrows its objects"), "{why}");
    std::fs::remove_file(&alternates).unwrap();
    std::fs::rename(home.beside("new.txt"), home.path().join("new.txt")).unwrap();
    git(&home.path(), &["add", "new.txt"]);
    git(&home.path(), &["commit", "-q", "-m", "work"]);
    git(&home.path(), &["mv", "new.txt", "moved.txt"]);
    std::fs::write(home.path().join("moved.txt"), "and changed").unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "removed"), [run]);
}

/// An object that no ref and no index leads to is dropped by git one day, so it is no copy; a reflog ends, too.
#[test]
fn what_git_would_drop_is_no_copy() {
    for (ways, kept) in [
        (&[&["hash-object", "-w", "new.txt"][..]][..], true),
        (&[&["add", "new.txt"], &["rm", "-q", "--cached", "new.txt"]], true),
        (&[&["add", "new.txt"], &["commit", "-q", "-m", "work"], &["reset", "-q", "--hard", "HEAD~1"]], true),
        (&[&["add", "new.txt"], &["stash", "-q"], &["stash", "drop", "-q"]], true),
        (&[&["add", "new.txt"]], false),
        (&[&["add", "new.txt"], &["stash", "-q"]], false),
        (
            &[
                &["checkout", "-q", "-b", "side"],
                &["add", "new.txt"],
                &["commit", "-q", "-m", "work"],
                &["checkout", "-q", "-"],
            ],
            false,
        ),
    ] {
        let home = home();
        home.write(".gitignore", "runs/\n");
        git_init(&home);
        git(&home.path(), &["add", "-A"]);
        git(&home.path(), &["commit", "-q", "-m", "start"]);
        let run = accepted(&home, "new.txt", &[]);
        for way in ways {
            git(&home.path(), way);
        }
        let _ = std::fs::remove_file(home.path().join("new.txt"));
        let done = gc(&home, &ALL);
        assert_eq!(runs_in(&done, if kept { "kept" } else { "removed" }), [run.as_str()], "{ways:?}: {done}");
    }
}

/// The same for commits that an agent made in its clone.
#[test]
fn commits_that_git_would_drop_are_no_copies() {
    for (to, stays) in [("HEAD", true), ("HEAD:refs/heads/saved", false)] {
        let home = home();
        home.write(".gitignore", "runs/\n");
        git_init(&home);
        git(&home.path(), &["add", "-A"]);
        git(&home.path(), &["commit", "-q", "-m", "start"]);
        let agent = "echo new > new.txt; git add new.txt; \
                     git -c user.name=a -c user.email=a@example.org commit -q -m work";
        let ran = strike(&home, agent, &["--allow-green", "--isolate", "worktree"]);
        ran.expect("accepted", "unchecked", 1, 0);
        let run = ran.done()["run"].as_str().unwrap().to_owned();
        let apart = home.state().join("triphammer/workspaces").join(&run);
        git(&home.path(), &["fetch", "-q", apart.to_str().unwrap(), to]);
        assert_eq!(home.run(["apply", &run]).code, Some(0));
        let done = gc(&home, &ALL);
        assert_eq!(runs_in(&done, "removed"), [run.as_str()], "{done}");
        assert_eq!(apart.exists(), stays, "{to}: {done}");
        let notes = done["notes"].to_string();
        assert_eq!(notes.contains("its clone has 1 commits"), stays, "{to}: {notes}");
    }
}

/// A file that says that it holds terabytes is not read to find out that it is something else.
#[test]
fn a_huge_file_holds_nobody_up() {
    let home = home();
    let huge = |path: &Path| std::fs::File::create(path).unwrap().set_len(8 << 40).unwrap();
    let run = accepted(&home, "new.txt", &["--isolate", "copy"]);
    assert_eq!(home.run(["apply", &run]).code, Some(0));
    let apart = home.state().join("triphammer/workspaces").join(&run);
    huge(&apart.join("huge.bin"));
    huge(&home.path().join("new.txt"));
    let done = gc(&home, &ALL);
    assert!(reason(&done, &run).contains("`new.txt`"), "{done}");
    home.write("new.txt", "work new.txt\n");
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "removed"), [run]);
    assert!(done["notes"].to_string().contains("`huge.bin`"), "{done}");
    assert!(apart.join("huge.bin").exists() && apart.join("new.txt").exists());
}

/// What is in the way of one removal is told, and in nobody else's way.
#[test]
fn a_leftover_that_cannot_go_holds_nobody_up() {
    let home = home();
    let run = accepted(&home, "new.txt", &[]);
    let runs = home.path().join("runs");
    // No run can have had this name, so nobody knows which trees would be its.
    for name in [".going-no..run", ".going-20200101-000000-x-0000"] {
        std::fs::create_dir_all(runs.join(name).join("attempts")).unwrap();
    }
    let apart = home.state().join("triphammer/workspaces");
    let _ = std::fs::remove_dir_all(&apart);
    std::fs::create_dir_all(apart.parent().unwrap()).unwrap();
    std::fs::write(&apart, "no folder").unwrap();
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "removed"), ["20200101-000000-x-0000", run.as_str()], "{done}");
    assert_eq!(runs_in(&done, "kept"), ["no..run"], "{done}");
    let why = reason(&done, "no..run");
    assert!(why.contains("begun earlier") && why.contains(".going-no..run"), "{why}");
    assert!(done["notes"].to_string().contains(apart.to_str().unwrap()), "{done}");
    assert!(runs.join(".going-no..run").exists());
    assert_clean(&home);
}

/// A workspace that cannot be asked is no reason to throw work away.
#[test]
fn work_whose_place_is_gone_stays() {
    let home = home();
    let place = home.beside("place");
    std::fs::create_dir(&place).unwrap();
    let run = accepted(&home, "new.txt", &["--workspace", place.to_str().unwrap()]);
    std::fs::rename(&place, home.beside("elsewhere")).unwrap();
    let why = reason(&gc(&home, &ALL), &run);
    assert!(why.contains("does not exist") && why.contains(place.to_str().unwrap()), "{why}");
    // A link to the store's own folder of trees is no place either.
    std::fs::create_dir(&place).unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "kept"), [run.as_str()]);
    std::fs::remove_dir(&place).unwrap();
    std::fs::rename(home.beside("elsewhere"), &place).unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "removed"), [run]);
}

/// Of two runs that brought the same work one is enough, and one stays.
#[test]
fn the_last_of_several_copies_stays() {
    let home = home();
    let runs: Vec<String> = (0..3).map(|_| accepted(&home, "same.txt", &["--isolate", "copy"])).collect();
    let done = gc(&home, &ALL);
    assert_eq!((runs_in(&done, "removed"), runs_in(&done, "kept")), (runs[..2].to_vec(), runs[2..].to_vec()));
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "kept"), runs[2..]);
    assert_clean(&home);
}

/// A person's edits that a forced undo overwrote are in the run's trees and nowhere else.
#[test]
fn edits_that_an_undo_overwrote_stay() {
    let home = home();
    home.write("mine.txt", "mine\n");
    let run = accepted(&home, "new.txt", &[]);
    home.write("mine.txt", "edited since\n");
    assert_eq!(home.run(["undo", &run, "--force"]).code, Some(0));
    home.write("new.txt", "work new.txt\n");
    let why = reason(&gc(&home, &ALL), &run);
    assert!(why.contains("`mine.txt`"), "{why}");
    home.write("mine.txt", "edited since\n");
    assert_eq!(runs_in(&gc(&home, &ALL), "removed"), [run]);
}

/// What a person added to an isolated workspace is theirs.
#[test]
fn a_workspace_that_holds_more_stays() {
    let home = home();
    home.write("there.txt", "there\n");
    let run = accepted(&home, "new.txt", &["--isolate", "copy"]);
    assert_eq!(home.run(["apply", &run]).code, Some(0));
    let apart = home.state().join("triphammer/workspaces").join(&run);
    std::fs::create_dir(apart.join("locked")).unwrap();
    std::fs::write(apart.join("locked/note.txt"), "a person's note").unwrap();
    let ran = gc_ran(&home, &ALL);
    let done: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(runs_in(&done, "removed"), [run]);
    assert!(ran.stderr.contains("locked/note.txt") && ran.stderr.contains("stays"), "{}", ran.stderr);
    assert!(done["notes"][0].as_str().unwrap().contains(apart.to_str().unwrap()));
    assert!(apart.join("new.txt").exists());
}

#[test]
fn unfinished_and_unreadable_runs_stay() {
    let home = home();
    home.write("specs/parked.md", "---\nstatus: locked\n---\n# Goal\nx\n");
    let parked =
        r#"echo half > half.txt; echo '{"fault": {"kind": "authentication"}}' > "$TRIPHAMMER_RECEIPT""#;
    let ran = home.forge(["specs/parked.md", "--allow-green", "--agent-cmd", parked, "--isolate", "copy"]);
    ran.expect("suspended", "authentication", 0, 5);
    let parked = ran.done()["run"].as_str().unwrap().to_owned();
    let fine = accepted(&home, "a.txt", &[]);
    let spoiled = accepted(&home, "b.txt", &[]);
    let unsealed = accepted(&home, "c.txt", &[]);
    let runs = home.path().join("runs");
    std::fs::write(runs.join(&spoiled).join("journal.jsonl"), "junk\n").unwrap();
    let journal = runs.join(&unsealed).join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let whole: Vec<&str> = text.lines().collect();
    std::fs::write(&journal, whole[..whole.len() - 1].join("\n") + "\n").unwrap();
    std::fs::create_dir(runs.join("20200101-000000-empty-0000")).unwrap();
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "removed"), [fine]);
    for (run, why) in [
        (parked.as_str(), "`resume` goes on with it"),
        (&spoiled, "cannot be read"),
        (&unsealed, "sealed"),
        ("20200101-000000-empty-0000", "cannot be read"),
    ] {
        assert!(reason(&done, run).contains(why), "{run}: {}", reason(&done, run));
        assert!(runs.join(run).exists());
    }
    assert!(home.state().join("triphammer/workspaces").join(&parked).join("half.txt").exists());
    // Without a limit too, what cannot be read is named.
    assert_eq!(runs_in(&gc(&home, &[]), "kept").len(), 2);
}

/// Refs are files that an agent can reach: what they say must agree with the journal before anything is judged by them.
#[test]
fn refs_that_do_not_agree_with_the_journal_prove_nothing() {
    let home = home();
    let run = accepted(&home, "new.txt", &["--isolate", "copy"]);
    let named = |kind: &str, name: &str| {
        git(&store(&home), &["rev-parse", &format!("refs/{kind}/{run}/{name}")]).trim().to_owned()
    };
    let both = |name: &str| (named("runs", name), named("manifests", name));
    let (start, work) = (both("0"), both("001"));
    for (name, other, own) in [("001", &start, &work), ("0", &work, &start)] {
        let set = |kind: &str, to: &str| {
            git(&store(&home), &["update-ref", &format!("refs/{kind}/{run}/{name}"), to])
        };
        set("runs", &other.0);
        let done = gc(&home, &["--keep-days", "0"]);
        assert!(reason(&done, &run).contains("belongs to another tree"), "{done}");
        set("manifests", &other.1);
        let done = gc(&home, &["--keep-days", "0"]);
        assert!(reason(&done, &run).contains("its journal says"), "{done}");
        set("runs", &own.0);
        set("manifests", &own.1);
    }
    // Nor is a run going because a folder says so that anybody can make.
    std::fs::create_dir(home.path().join("runs").join(format!(".going-{run}"))).unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "kept"), [run.as_str()]);
    assert_eq!((both("0"), both("001")), (start, work));
}

/// Trees whose run's folder somebody deleted: nobody knows what they are worth, so a person says.
#[test]
fn trees_without_a_run_go_only_when_a_person_says_so() {
    let home = home();
    let run = accepted(&home, "a.txt", &[]);
    std::fs::remove_dir_all(home.path().join("runs").join(&run)).unwrap();
    let done = gc(&home, &ALL);
    let why = reason(&done, &run);
    assert!(why.contains("--orphans") && why.contains("archive"), "{why}");
    let tar = home.beside("saved.tar");
    git(&store(&home), &["archive", "-o", tar.to_str().unwrap(), &format!("refs/runs/{run}/001")]);
    assert!(tar.exists());
    assert_eq!(runs_in(&gc(&home, &["--orphans"]), "removed"), [run]);
    assert_eq!(git(&store(&home), &["for-each-ref"]), "");
    assert_clean(&home);
}

/// A run at work is left alone with all its objects; what else may go, goes.
#[test]
fn a_run_at_work_is_left_alone() {
    let home = home();
    let old = accepted(&home, "a.txt", &[]);
    let agent = format!(
        "echo new > new.txt; touch {0}/ready; while ! test -f {0}/go; do sleep 0.05; done",
        home.beside("").display()
    );
    home.write("specs/live.md", "---\nstatus: locked\n---\n# Goal\nx\n");
    let mut live = home.command(["run", "--json", "specs/live.md", "--allow-green", "--agent-cmd", &agent]);
    let live = live.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the agent", Duration::from_mins(1), || home.beside("ready").exists());
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "removed"), [old]);
    assert!(done["objects"].as_str().unwrap().starts_with("left: "), "{done}");
    assert_eq!(done["kept"].as_array().unwrap().len(), 1);
    assert!(done["kept"][0]["reason"].as_str().unwrap().contains("a process works on it"), "{done}");
    std::fs::write(home.beside("go"), "").unwrap();
    let ran = Ran::of(live.wait_with_output().unwrap());
    ran.expect("accepted", "unchecked", 1, 0);
    assert_eq!(gc(&home, &[])["objects"], "pruned");
    assert_clean(&home);
    let to = home.beside("restored");
    assert_eq!(home.run(["restore", "latest", "1", "--to", to.to_str().unwrap()]).code, Some(0));
    assert!(to.join("new.txt").exists());
}

/// A run that begins while the store is being cleaned up waits for the end of that.
#[test]
fn a_run_that_begins_meanwhile_waits() {
    let home = home();
    accepted(&home, "a.txt", &[]);
    let folder = std::fs::File::open(store(&home)).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut command =
        home.command(["run", "--json", "specs/it.md", "--allow-green", "--agent-cmd", "touch b.txt"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has made its folder and waits for the store: nothing further happens.
    wait_until("the new run's folder", Duration::from_mins(1), || home.runs().len() == 2);
    assert!(!home.path().join("b.txt").exists());
    drop(folder);
    Ran::of(child.wait_with_output().unwrap()).expect("accepted", "unchecked", 1, 0);
}

#[test]
fn a_lock_that_git_left_stops_it_before_anything_goes() {
    let home = home();
    let run = accepted(&home, "a.txt", &[]);
    let lock = store(&home).join("packed-refs.lock");
    std::fs::write(&lock, "").unwrap();
    let ran = gc_ran(&home, &ALL);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("packed-refs.lock"), "{}", ran.stderr);
    assert!(home.path().join("runs").join(run).exists());
    std::fs::remove_file(lock).unwrap();
    assert_eq!(runs_in(&gc(&home, &ALL), "removed").len(), 1);
}

/// Objects that are damaged stop the part that would drop objects, and it is said.
#[test]
fn a_damaged_store_loses_nothing() {
    let home = home();
    let old = accepted(&home, "a.txt", &[]);
    accepted(&home, "b.txt", &["--isolate", "copy"]);
    let blob =
        git(&store(&home), &["hash-object", "-t", "blob", "--", home.path().join("a.txt").to_str().unwrap()]);
    let (first, rest) = blob.trim().split_at(2);
    std::fs::remove_file(store(&home).join("objects").join(first).join(rest)).unwrap();
    let before = std::fs::read_dir(store(&home).join("objects")).unwrap().count();
    let ran = gc_ran(&home, &["--max-runs", "1"]);
    let done: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, runs_in(&done, "removed")), (Some(1), vec![old]), "{ran:?}");
    assert!(ran.stderr.contains("fsck") && ran.stderr.contains(blob.trim()), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(store(&home).join("objects")).unwrap().count(), before);
}

#[test]
fn what_is_no_limit_is_a_typing_error() {
    let home = home();
    for wrong in [
        &["--max-size", "5X"][..],
        &["--max-size", ""],
        &["--keep-days", "-1"],
        &["--keep-days", "soon"],
        &["--max-runs", "many"],
        &["RUN"],
    ] {
        let ran = gc_ran(&home, wrong);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{wrong:?}");
    }
}

/// A process that is killed while git works for it leaves a folder among the temporary ones.
#[test]
fn what_a_killed_process_left_among_temporary_folders_goes() {
    let home = home();
    accepted(&home, "a.txt", &[]);
    let temporary = home.beside("temporary");
    let old = temporary.join("tmp_triphammer_git_0123456789abcdef");
    std::fs::create_dir_all(old.join("objects")).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
    std::fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
    let mine = temporary.join("mine");
    std::fs::create_dir(&mine).unwrap();
    for (more, left) in [(&["--dry-run"][..], true), (&[], false)] {
        let ran = Ran::of(home.command([&["gc"], more].concat()).env("TMPDIR", &temporary).output().unwrap());
        assert_eq!((ran.code, old.exists(), mine.exists()), (Some(0), left, true), "{ran:?}");
    }
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1, "nor does it leave its own");
}

/// Killed again and again, it never loses what must stay, and comes to its end.
#[test]
fn a_kill_at_any_time_is_made_good_by_the_next() {
    let home = home();
    let mut dice = fastrand::Rng::with_seed(15);
    for n in 0..300 {
        home.write(format!("many/{n}.txt"), &format!("{n}"));
    }
    let mut gone = Vec::new();
    for n in 0..6 {
        gone.push(accepted(&home, &format!("{n}.txt"), &[]));
    }
    let keeps = accepted(&home, "keeps.txt", &["--isolate", "copy"]);
    let mut kills = 0;
    for _ in 0..200 {
        let mut child = home.command([&["gc"][..], &ALL].concat());
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(dice.u64(500..40_000)));
        let ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        kills += usize::from(!ended);
        if ended {
            break;
        }
    }
    assert!(kills > 0, "it was never killed");
    let done = gc(&home, &ALL);
    assert_eq!(runs_in(&done, "kept"), [keeps.as_str()]);
    let left: Vec<String> = home.runs().iter().map(triphammer_testkit::RunFiles::id).collect();
    assert_eq!(left, [keeps.as_str()], "all of {gone:?} are gone");
    let names: Vec<_> =
        std::fs::read_dir(home.path().join("runs")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(!names.iter().any(|n| n.to_string_lossy().starts_with(".going")), "{names:?}");
    assert_clean(&home);
    let to = home.beside("restored");
    assert_eq!(home.run(["restore", &keeps, "1", "--to", to.to_str().unwrap()]).code, Some(0));
    assert_eq!(std::fs::read_dir(to.join("many")).unwrap().count(), 300);
    assert!(to.join("keeps.txt").exists());
}

/// A process that was killed could not take its temporary folder away.
#[test]
fn temporary_folders_of_runs_at_rest_go() {
    let home = TestHome::with_gates(&[("never", "false")]);
    strike(&home, "true", &["--attempts", "1"]);
    let digest = triphammer_model::Digest::of(home.only_run().id());
    let folder = std::env::temp_dir().join(format!("triphammer-{}", &digest.as_str()[..10]));
    assert!(!folder.exists(), "the run took it away itself");
    std::fs::create_dir_all(folder.join("left")).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(home.run(["gc"]).code, Some(0));
    assert!(folder.exists(), "one that others can enter is none of ours");
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(home.run(["gc", "--dry-run"]).code, Some(0));
    assert!(folder.exists(), "a trial touches nothing");
    assert_eq!(home.run(["gc"]).code, Some(0));
    assert!(!folder.exists());
}
