//! Stall detectors that are wrong: movement is what the folder shows, whatever git or a label says.

use triphammer_testkit::RunFiles;

use crate::fake::{Fake, GIT, git, observed, touched};

fn moved_each_time(run: &RunFiles, attempts: u32, path: &str) {
    for attempt in 1..=attempts {
        assert_eq!(touched(run, attempt), [path], "attempt {attempt}");
    }
}

#[test]
fn an_agent_that_commits_everything_is_not_stalled() {
    let fake = Fake::new(&[("works", "false")]).agent(
        "fa",
        "",
        &format!("echo x >> work.txt; git add work.txt; {GIT} commit -qm step"),
    );
    git(&fake.home.path(), &["init", "-q"]);
    fake.forge([""; 0]).expect("rejected", "attempts-exhausted", 5, 1);
    moved_each_time(&fake.run(), 5, "work.txt");
}

#[test]
fn movement_is_seen_without_git() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", "echo x >> work.txt");
    fake.forge([""; 0]).expect("rejected", "attempts-exhausted", 5, 1);
    moved_each_time(&fake.run(), 5, "work.txt");
}

/// A repository below the workspace, several of them, a work tree's `.git` file, one that git ignores.
#[test]
fn movement_is_seen_in_nested_repositories() {
    for (what, outer) in [("in a plain folder", false), ("in a repository", true)] {
        let fake = Fake::new(&[("works", "false")]).agent(
            "fa",
            "",
            &format!(
                "n=$TRIPHAMMER_ATTEMPT
                 case $n in 1) dir=parts/a ;; 2) dir=parts/b ;; 3) dir=tree ;; *) dir=parts/ignored ;; esac
                 echo $n >> $dir/f
                 (cd $dir && git add f && {GIT} commit -qm step)"
            ),
        );
        let home = fake.home.path();
        if outer {
            git(&home, &["init", "-q"]);
            fake.home.write(".gitignore", "parts/ignored\n");
        }
        for dir in ["parts/a", "parts/b", "parts/ignored"] {
            fake.home.write(format!("{dir}/f"), "0\n");
            git(&home.join(dir), &["init", "-q"]);
            git(&home.join(dir), &["add", "f"]);
            git(&home.join(dir), &["commit", "-qm", "start"]);
        }
        git(&home.join("parts/a"), &["worktree", "add", "-q", "../../tree"]);
        fake.forge(["--attempts", "4"]).expect("rejected", "attempts-exhausted", 4, 1);
        let run = fake.run();
        for (attempt, path) in [(1, "parts/a/f"), (2, "parts/b/f"), (3, "tree/f"), (4, "parts/ignored/f")] {
            assert_eq!(touched(&run, attempt), [path], "{what}");
        }
    }
}

/// Five items, one an attempt, and a gate that says the same until all are there: no stall.
#[test]
fn one_item_an_attempt_is_progress_under_an_unchanging_label() {
    let fake = Fake::new(&[("works", "test -f item5 || { echo 'status: in progress'; exit 1; }")]).agent(
        "fa",
        "",
        "touch item$TRIPHAMMER_ATTEMPT; echo 'status: in progress'",
    );
    let ran = fake.forge([""; 0]);
    ran.expect("accepted", "gates-passed", 5, 0);
    let run = fake.run();
    let identities: Vec<_> = (1..=4).map(|n| run.report(n).identity).collect();
    assert!(identities.windows(2).all(|w| w[0] == w[1]), "the reports do repeat each other");
}

/// Every way to change a file counts, however the agent covers its tracks.
#[test]
fn any_change_of_content_mode_or_target_is_movement() {
    let fake = Fake::new(&[("works", "false")]).agent(
        "fa",
        "",
        "case $TRIPHAMMER_ATTEMPT in
           1) printf 'b' > same-size; touch -d '2001-01-01' same-size ;;
           2) printf 'c' > .new; touch -r same-size .new; mv .new same-size ;;
           3) chmod 755 same-size ;;
           4) ln -sfn other link ;;
           5) rm same-size ;;
           6) mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml ;;
         esac",
    );
    fake.home.write("same-size", "a");
    std::os::unix::fs::symlink("same-size", fake.home.path().join("link")).unwrap();
    fake.forge(["--attempts", "6"]).expect("rejected", "attempts-exhausted", 6, 1);
    let run = fake.run();
    for (attempt, path) in [
        (1, "same-size"),
        (2, "same-size"),
        (3, "same-size"),
        (4, "link"),
        (5, "same-size"),
        (6, ".github/workflows/ci.yml"),
    ] {
        assert_eq!(touched(&run, attempt), [path], "attempt {attempt}");
    }
}

/// The reverse: what is no work does not pass for it.
#[test]
fn churn_that_changes_nothing_stalls() {
    for (what, script) in [
        ("timestamps", "touch work.txt"),
        ("the same bytes again", "cp work.txt .w && mv .w work.txt"),
        ("a cache", "mkdir -p node_modules/x && date +%s%N > node_modules/x/f"),
        ("there and back", "echo y > work.txt && printf 'x' > work.txt"),
        ("a git folder", "git init -q . ; date > .git/description"),
        ("outside", "date >> \"$BESIDE/elsewhere\""),
    ] {
        let fake = Fake::new(&[("works", "false")]).agent("fa", "", script);
        fake.home.write("work.txt", "x");
        fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
        assert!((1..=3).all(|n| touched(&fake.run(), n).is_empty()), "{what}");
    }
}

/// Gates that write into the workspace save nobody.
#[test]
fn a_gate_that_writes_does_not_move_the_agent() {
    let fake = Fake::new(&[("works", "date +%s%N >> coverage.txt; false")]).agent("fa", "", "true");
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
    assert!((1..=3).all(|n| observed(&fake.run(), n).is_empty()));
}

const LOGGED_OUT: &str = r#"echo '{"fault": {"kind": "authentication", "message": "token expired"}}' > "$TRIPHAMMER_RECEIPT"
exit 1"#;

/// An expired login ends the launching at once; a person is told.
#[test]
fn an_expired_login_parks_the_run_at_the_first_failure() {
    let fake = Fake::new(&[("works", "false")]).agent("fa", "", LOGGED_OUT);
    let ran = fake.forge([""; 0]);
    ran.expect("suspended", "authentication", 0, 5);
    assert_eq!(fake.launches("fa"), 1, "it is launched once, not again and again");
    // Plain output says what happened and how to go on.
    let shown = fake.home.run(["show", "latest"]);
    assert!(shown.stdout.contains("authentication") && shown.stdout.contains("resume"), "{}", shown.stdout);
    // Resumed without a login it parks again, under the same number.
    let again = fake.resume();
    again.expect("suspended", "authentication", 0, 5);
    assert_eq!(fake.lines("fa"), ["1", "1"]);
}

#[test]
fn with_a_login_again_the_run_goes_on_with_all_its_attempts() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        &format!("if test -f \"$BESIDE/login\"; then touch work.txt; exit; fi\n{LOGGED_OUT}"),
    );
    fake.forge(["--attempts", "1"]).expect("suspended", "authentication", 0, 5);
    std::fs::write(fake.beside("login"), "").unwrap();
    fake.resume().expect("accepted", "gates-passed", 1, 0);
}

/// With another agent in the chain that one takes over; the fault stays on record.
#[test]
fn the_next_agent_takes_over_from_one_that_is_logged_out() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", LOGGED_OUT).agent(
        "fb",
        "",
        "touch work.txt",
    );
    fake.forge(["--agent", "fa,fb"]).expect("accepted", "gates-passed", 1, 0);
    assert_eq!((fake.launches("fa"), fake.launches("fb")), (1, 1));
}

/// The same words in its output are words: only structured fields make a fault.
#[test]
fn talk_of_authentication_is_no_fault() {
    let fake = Fake::new(&[("works", "false")]).agent(
        "fa",
        "",
        "echo '{\"error\": {\"type\": \"authentication_error\", \"message\": \"401 invalid x-api-key\"}}'\n\
         echo 'rate limit exceeded, quota exhausted' >&2; exit 1",
    );
    fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
}
