//! Work apart: worktree, copy, new; what comes along, what must not be touched, and the proof on a fresh checkout.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use triphammer_model::report::VerdictWord;
use triphammer_testkit::TestHome;

use crate::common::{failing_rules, git, pack, spec, strike};

/// A home, and a repository beside it with committed, staged, edited, untracked and ignored work.
fn repository(gate: &str) -> (TestHome, PathBuf) {
    let home = TestHome::with_gates(&[("done", gate)]);
    let repo = home.beside("repo");
    std::fs::create_dir_all(repo.join("src")).unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["config", "user.name", "Ann"]);
    git(&repo, &["config", "user.email", "ann@localhost"]);
    put(&repo, ".gitignore", "*.log\n.env\nnode_modules/\n");
    put(&repo, "src/a.txt", "one\ntwo\nthree\nfour\nfive\n");
    put(&repo, "src/b.txt", "committed\n");
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "start"]);
    put(&repo, "staged.txt", "staged\n");
    git(&repo, &["add", "staged.txt"]);
    put(&repo, "src/b.txt", "edited\n");
    put(&repo, "untracked.txt", "untracked\n");
    put(&repo, ".env", "MODE=local\n");
    (home, repo)
}

fn put(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

/// Everything there is in a folder, `.git` included, byte by byte.
fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn workspace(home: &TestHome) -> PathBuf {
    PathBuf::from(home.only_run().summary()["workspace"].as_str().unwrap())
}

#[test]
fn a_worktree_is_a_repository_of_its_own_and_the_origin_stays_untouched() {
    let (home, repo) = repository("test -f done.txt");
    let before = everything(&repo);
    let agent = "touch done.txt; git add -A && git commit -q -m work && git log --oneline > ../log.txt
        test \"$(cat src/b.txt staged.txt untracked.txt)\" = \"edited
staged
untracked\" || rm done.txt";
    let ran = strike(&home, agent, &["--workspace", repo.to_str().unwrap(), "--isolate", "worktree"]);
    ran.expect("accepted", "gates-passed", 1, 0);
    assert_eq!(everything(&repo), before, "HEAD, index, objects and files of the origin are as they were");
    let at = workspace(&home);
    assert!(at.starts_with(home.state()), "{}", at.display());
    assert_eq!(git(&at, &["log", "--format=%s"]), "work\nstart\n");
    assert_eq!(git(&at, &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
    assert_eq!(git(&at, &["log", "-1", "--format=%an"]), "Ann\n");
    assert_eq!(git(&at, &["remote"]), "", "nothing leads back");
    let run = home.only_run();
    assert!(
        run.report(1)
            .verdicts
            .iter()
            .any(|v| v.gate.as_str() == "confirm-clean" && v.word() == VerdictWord::Pass)
    );
    assert_eq!(run.summary()["isolation"], "worktree");
}

#[test]
fn commits_alone_are_seen_as_work() {
    let (home, repo) = repository("git log --format=%s | grep -qx work");
    put(&repo, "note", "x");
    let agent = "echo more >> src/a.txt; git commit -q -a -m work";
    strike(
        &home,
        agent,
        &["--workspace", repo.to_str().unwrap(), "--isolate", "worktree", "--attempts", "1"],
    );
    let moved: Vec<String> =
        home.only_run().movement(1).observed.iter().map(|o| o.path.to_string()).collect();
    assert_eq!(moved, ["src/a.txt"]);
}

#[test]
fn a_part_of_a_repository_is_worked_on_as_that_part() {
    let (home, repo) = repository("test -f done.txt");
    let sub = repo.join("src");
    let before = everything(&repo);
    let agent = "test -f b.txt && touch done.txt && git status --porcelain > ../status.txt";
    strike(&home, agent, &["--workspace", sub.to_str().unwrap(), "--isolate", "worktree"]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    assert_eq!(everything(&repo), before);
    assert!(workspace(&home).ends_with("src"));
}

#[test]
fn a_copy_holds_uncommitted_work_and_the_origin_stays_untouched() {
    let (home, repo) = repository("test -f done.txt");
    let before = everything(&repo);
    let agent = "cat src/b.txt staged.txt untracked.txt > seen.txt; rm -rf src; touch done.txt";
    strike(&home, agent, &["--workspace", repo.to_str().unwrap(), "--isolate", "copy"]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    assert_eq!(everything(&repo), before);
    let at = workspace(&home);
    assert_eq!(std::fs::read_to_string(at.join("seen.txt")).unwrap(), "edited\nstaged\nuntracked\n");
    assert!(!at.join("src").exists());
}

#[test]
fn a_new_workspace_is_empty_and_outside_any_repository() {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    spec(&home, "workspace: new\n", "");
    git(&home.path(), &["init", "-q"]);
    let agent = "[ -z \"$(ls -A)\" ] && ! git rev-parse 2>/dev/null && touch done.txt";
    strike(&home, agent, &[]).expect("accepted", "unchecked", 1, 0);
    assert!(workspace(&home).starts_with(home.state()));
    assert!(!home.path().join("done.txt").exists());
}

#[test]
fn leftovers_prove_nothing_on_a_fresh_checkout() {
    // The gate is green only thanks to a cache that is no part of the tree.
    let gate = "test -f node_modules/lib.js && test -f work.txt";
    let agent = "mkdir -p node_modules; touch node_modules/lib.js; echo $TRIPHAMMER_ATTEMPT > work.txt";
    let (home, repo) = repository(gate);
    let args = ["--workspace", repo.to_str().unwrap(), "--isolate", "copy", "--attempts", "2"];
    strike(&home, agent, &args).expect("rejected", "attempts-exhausted", 2, 1);
    let report = home.only_run().report(1);
    let clean = report.verdicts.iter().find(|v| v.gate.as_str() == "confirm-clean").expect("a verdict");
    assert_eq!(clean.word(), VerdictWord::Fail);
    assert!(report.verdicts.iter().any(|v| v.gate.as_str() == "done" && v.word() == VerdictWord::Pass));
    assert!(home.only_run().brief(2).contains("fresh checkout"), "{}", home.only_run().brief(2));

    let (home, repo) = repository(gate);
    home.write("triphammer.toml", "[workspace]\nconfirm_clean = false\n");
    let args = ["--workspace", repo.to_str().unwrap(), "--isolate", "copy", "--attempts", "2"];
    strike(&home, agent, &args).expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn an_agent_cannot_pass_by_a_local_git_ignore() {
    // What git ignores is deliverable all the same unless it is a cache: the tree holds it.
    let (home, repo) = repository("test -f out.log");
    strike(&home, "echo x > out.log", &["--workspace", repo.to_str().unwrap(), "--isolate", "worktree"])
        .expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn set_up_and_carried_files_make_it_usable_also_on_the_fresh_checkout() {
    for isolate in ["worktree", "copy"] {
        let (home, repo) = repository("grep -q local .env && test -f node_modules/ready && test -f done.txt");
        home.write(
            "triphammer.toml",
            "[workspace]\ncarry = [\".env\"]\nsetup = [\"mkdir -p node_modules\", \"touch node_modules/ready\"]\n",
        );
        let args = ["--workspace", repo.to_str().unwrap(), "--isolate", isolate];
        strike(&home, "touch done.txt", &args).expect("accepted", "gates-passed", 1, 0);
        assert!(!repo.join("node_modules").exists());
        let moved: Vec<String> =
            home.only_run().movement(1).observed.iter().map(|o| o.path.to_string()).collect();
        assert_eq!(moved, ["done.txt"], "set-up is nobody's work");
    }
}

#[test]
fn a_set_up_that_fails_ends_the_run_before_it_begins() {
    let (home, repo) = repository("test -f done.txt");
    home.write("triphammer.toml", "[workspace]\nsetup = [\"echo no network; exit 3\"]\n");
    strike(&home, "touch done.txt", &["--workspace", repo.to_str().unwrap(), "--isolate", "copy"]).expect(
        "failed",
        "setup-failed",
        0,
        5,
    );
    let detail = home.only_run().summary()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("exit 3"), "{detail}");
}

#[test]
fn a_state_folder_inside_a_repository_is_refused() {
    let (home, repo) = repository("test -f done.txt");
    home.write("specs/it.md", crate::common::SPEC);
    let mut command = home.command([
        "run",
        "specs/it.md",
        "--agent-cmd",
        "true",
        "--isolate",
        "copy",
        "--workspace",
        repo.to_str().unwrap(),
    ]);
    let before = git(&repo, &["status", "--porcelain"]);
    let out = command.env("XDG_STATE_HOME", repo.join("state")).output().unwrap();
    assert_eq!(out.status.code(), Some(5));
    let talk = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(talk.contains("XDG_STATE_HOME"), "{talk}");
    assert!(home.runs().is_empty());
    assert_eq!(git(&repo, &["status", "--porcelain"]).replace("?? state/\n", ""), before);
}

#[test]
fn protected_files_and_movement_work_apart_as_in_place() {
    let (home, repo) = repository("false");
    spec(&home, "protect: [\"src/a.txt\"]\nattempts: 4\n", "");
    let ran = strike(
        &home,
        "echo $TRIPHAMMER_ATTEMPT > src/a.txt; echo $TRIPHAMMER_ATTEMPT > work.txt",
        &["--workspace", repo.to_str().unwrap(), "--isolate", "worktree"],
    );
    ran.expect("rejected", "tampered", 2, 1);
    assert!(failing_rules(&home.only_run(), 1).contains(&"integrity/protected".to_owned()));
    assert_eq!(
        std::fs::read_to_string(workspace(&home).join("src/a.txt")).unwrap(),
        "one\ntwo\nthree\nfour\nfive\n"
    );
}

#[test]
fn hostile_git_config_of_the_agent_runs_nothing_of_ours() {
    let (home, repo) = repository("test -f done.txt");
    let mark = home.beside("hooked");
    let hook = format!("#!/bin/sh\\ntouch {}\\n", mark.display());
    let agent = format!(
        "printf '{hook}' > .git/evil.sh; chmod +x .git/evil.sh; cp .git/evil.sh .git/hooks/post-checkout 2>/dev/null
         git config core.fsmonitor .git/evil.sh; git config core.hooksPath .git
         git config filter.x.clean .git/evil.sh; git config filter.x.smudge .git/evil.sh
         git config diff.external .git/evil.sh; git config core.pager .git/evil.sh
         echo '* filter=x' > .gitattributes; rm -f {}; touch done.txt",
        mark.display()
    );
    strike(&home, &agent, &["--workspace", repo.to_str().unwrap(), "--isolate", "worktree"]).expect(
        "accepted",
        "gates-passed",
        1,
        0,
    );
    for args in [&["diff", "latest", "0", "1"][..], &["show", "latest", "1"], &["apply", "latest"]] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    }
    assert!(!mark.exists(), "something of the agent's was run by us");
}

#[test]
fn packs_of_the_home_hold_in_a_workspace_elsewhere() {
    let (home, repo) = repository("true");
    std::fs::create_dir_all(repo.join("gates")).unwrap();
    put(&repo, "gates/check.toml", &pack("mine", "true", ""));
    home.write("gates/check.toml", &pack("theirs", "test -f done.txt", ""));
    let ran = strike(&home, "touch done.txt", &["--workspace", repo.to_str().unwrap()]);
    ran.expect("accepted", "gates-passed", 1, 0);
    let gates: Vec<String> = home.only_run().report(1).verdicts.iter().map(|v| v.gate.to_string()).collect();
    assert!(gates.contains(&"theirs".to_owned()) && !gates.contains(&"mine".to_owned()), "{gates:?}");
}
