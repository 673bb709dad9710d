//! Bad input: one line that says what, where and what to do, the right exit code, and nothing half-written.

use std::process::Command;

use triphammer_testkit::{Ran, TestHome, binary, wait_until};

use crate::common::{Live, SPEC, pack, resume, spec, strike};

fn wants_done() -> TestHome {
    let home = TestHome::with_gates(&[("done", "test -f done.txt")]);
    home.write("specs/it.md", SPEC);
    home
}

/// That nothing of a run is left: no run directory, no workspace, no lease.
#[track_caller]
fn nothing_left(home: &TestHome) {
    assert!(home.runs().is_empty(), "a run directory was left behind: {:?}", home.runs());
    let mut files = Vec::new();
    let mut pending = vec![home.state()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let list = if entry.path().is_dir() { &mut pending } else { &mut files };
            list.push(entry.path());
        }
    }
    assert!(files.is_empty(), "left in the state folder: {files:?}");
}

/// That a command refused in `lines` lines, with that code, saying all of `words`.
#[track_caller]
fn refused(ran: &Ran, code: i32, lines: usize, words: &[&str]) {
    let talk = format!("{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(code), "{talk}");
    assert!(ran.stdout.is_empty(), "stdout is data: {talk}");
    assert!(ran.stderr.starts_with("error: "), "{talk}");
    assert_eq!(ran.stderr.lines().count(), lines, "{talk}");
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing: {talk}");
    }
}

#[track_caller]
fn refuses(home: &TestHome, args: &[&str], code: i32, words: &[&str]) {
    for json in [false, true] {
        let mut all = vec!["run"];
        all.extend(args);
        all.extend(json.then_some("--json"));
        refused(&home.run(all), code, 1, words);
        nothing_left(home);
    }
}

#[test]
fn a_missing_spec() {
    let home = wants_done();
    refuses(&home, &["specs/none.md", "--agent-cmd", "true"], 2, &["specs/none.md", "spec new"]);
    refuses(&home, &["specs", "--agent-cmd", "true"], 2, &["specs"]);
}

#[test]
fn a_spec_with_errors_names_each_line_and_its_cure() {
    let home = wants_done();
    home.write(
        "specs/it.md",
        "---\nstatus: locked\natempts: 3\nbudget: soon\nattempts: 99\n---\n# Goal\nDo it.\n## Chekcs\n- x: true\n## Checks\n- : true\n",
    );
    let ran = home.run(["run", "specs/it.md", "--agent-cmd", "true"]);
    refused(
        &ran,
        2,
        5,
        &[
            "specs/it.md:3:",
            "`attempts`",
            "specs/it.md:4:",
            "specs/it.md:5:",
            "50",
            "specs/it.md:9:",
            "Checks",
            "specs/it.md:12:",
        ],
    );
    nothing_left(&home);
}

#[test]
fn a_spec_that_is_no_text() {
    let home = wants_done();
    std::fs::write(home.path().join("specs/it.md"), b"---\nstatus: locked\n---\n# Goal\n\xff\n").unwrap();
    refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, &["specs/it.md:5:", "UTF-8"]);
    home.write("specs/it.md", "");
    let ran = home.run(["run", "specs/it.md", "--agent-cmd", "true"]);
    refused(&ran, 2, 2, &["specs/it.md:1:", "frontmatter", "no goal"]);
    nothing_left(&home);
}

#[test]
fn a_byte_order_mark_and_crlf_are_no_errors() {
    let home = wants_done();
    home.write("specs/it.md", &format!("\u{feff}{}", SPEC.replace('\n', "\r\n")));
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn a_draft() {
    let home = wants_done();
    home.write("specs/it.md", &SPEC.replace("locked", "draft"));
    refuses(
        &home,
        &["specs/it.md", "--agent-cmd", "true"],
        2,
        &["specs/it.md", "draft", "spec lock", "--draft"],
    );
    strike(&home, "touch done.txt", &["--draft"]).expect("accepted", "gates-passed", 1, 0);
}

#[test]
fn agents_that_are_none() {
    let home = wants_done();
    home.write(
        "triphammer.toml",
        "[agents.mine]\nkind = \"command\"\nargv = [\"no-such-agent\", \"-p\"]\n\
         [agents.told]\nkind = \"scripted\"\nscript = \"specs/none.toml\"\n\
         [agents.able]\nkind = \"command\"\nargv = [\"true\"]\n",
    );
    refuses(&home, &["specs/it.md"], 2, &["no agent", "--agent-cmd"]);
    refuses(&home, &["specs/it.md", "--agent", "minee"], 2, &["`minee`", "triphammer.toml", "mine"]);
    refuses(&home, &["specs/it.md", "--agent", "mine"], 2, &["no-such-agent"]);
    refuses(&home, &["specs/it.md", "--agent", "told"], 2, &["specs/none.toml"]);
    refuses(&home, &["specs/it.md", "--agent", "able,able"], 2, &["able", "twice"]);
    refuses(&home, &["specs/it.md", "--agent-cmd", " "], 2, &["--agent-cmd is empty"]);
    refuses(&home, &["--task", " ", "--agent-cmd", "true"], 2, &["--task is empty"]);
    home.write("specs/none.toml", "[[attempt]]\n[[attempt.steps]]\nwrte = \"x\"\n");
    refuses(&home, &["specs/it.md", "--agent", "told"], 2, &["specs/none.toml", "wrte"]);
}

#[test]
fn packs_that_are_none() {
    let home = wants_done();
    spec(&home, "gates: [rsut]\n", "");
    refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, &["`rsut`", "rust"]);
    spec(&home, "gates: [check]\n", "");
    for (text, words) in [
        ("[[gate]\n", &["check.toml:1"][..]),
        ("[[gate]]\nname = \"a\"\nkind = \"tset\"\nrun = [\"true\"]\n", &["check.toml:3", "tset"]),
        ("[[gate]]\nname = \"a\"\nkind = \"test\"\nrnu = [\"true\"]\n", &["check.toml:4", "rnu", "`run`"]),
        ("[[gate]]\nname = \"a\"\nkind = \"test\"\n", &["check.toml", "run"]),
    ] {
        home.write("gates/check.toml", text);
        refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, words);
    }
}

#[test]
fn a_duplicate_gate_name() {
    let home = wants_done();
    home.write("gates/more.toml", &pack("done", "true", ""));
    refuses(
        &home,
        &["specs/it.md", "--agent-cmd", "true"],
        2,
        &["`done`", "check.toml", "more.toml", "rename"],
    );
    std::fs::remove_file(home.path().join("gates/more.toml")).unwrap();
    let twice = pack("done", "true", "") + &pack("done", "true", "");
    home.write("gates/check.toml", &twice);
    refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, &["`done`", "check.toml"]);
}

#[test]
fn config_with_errors() {
    let home = wants_done();
    for (text, words) in [
        ("[run]\natempts = 3\n", &["triphammer.toml:2", "[run] atempts", "attempts"][..]),
        ("[breaker]\nproofs = 1\n", &["triphammer.toml:2", "proofs"]),
        ("[breaker]\nmovement = \"some\"\n", &["triphammer.toml:2", "some", "content"]),
        ("[run\n", &["triphammer.toml:1"]),
        ("[nonsense]\n", &["triphammer.toml:1", "nonsense"]),
        ("[run]\nbudget = \"soon\"\n", &["triphammer.toml:2", "soon"]),
    ] {
        home.write("triphammer.toml", text);
        refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, words);
    }
    // Several unknown keys are named at once, one a line.
    home.write("triphammer.toml", "[run]\na = 1\nb = 2\n");
    let ran = home.run(["run", "specs/it.md", "--agent-cmd", "true"]);
    refused(&ran, 2, 2, &["triphammer.toml:2", "triphammer.toml:3"]);
}

#[test]
fn no_home() {
    let home = wants_done();
    let bare = home.beside("bare");
    std::fs::create_dir(&bare).unwrap();
    let path = bare.to_str().unwrap();
    refuses(
        &home,
        &["--task", "x", "--agent-cmd", "true", "--home", path],
        2,
        &[path, "triphammer.toml", "init"],
    );
    let none = Ran::of(
        home.command(["run", "--task", "x", "--agent-cmd", "true"]).current_dir(&bare).output().unwrap(),
    );
    refused(&none, 2, 1, &[path, "triphammer.toml", "init", "--home"]);
    for command in [&["runs"][..], &["show", "latest"], &["resume", "latest"], &["undo", "latest"]] {
        let ran = Ran::of(home.command(command).current_dir(&bare).output().unwrap());
        refused(&ran, 2, 1, &["init"]);
    }
}

#[test]
fn workspaces_that_are_none() {
    let home = wants_done();
    let args = |dir: &'static str| ["specs/it.md", "--agent-cmd", "true", "--workspace", dir];
    refuses(&home, &args("specs/it.md"), 2, &["specs/it.md", "folder"]);
    refuses(&home, &args("nowhere"), 2, &["nowhere"]);
    spec(&home, "workspace: nowhere\n", "");
    refuses(&home, &["specs/it.md", "--agent-cmd", "true"], 2, &["nowhere"]);
    home.write("specs/it.md", SPEC);
    refuses(
        &home,
        &["specs/it.md", "--agent-cmd", "true", "--isolate", "worktree"],
        5,
        &["no git repository", "--isolate copy"],
    );
    refuses(
        &home,
        &["specs/it.md", "--agent-cmd", "true", "--workspace", "new", "--isolate", "copy"],
        2,
        &["--isolate"],
    );
}

#[test]
fn a_workspace_that_another_run_holds() {
    let home = wants_done();
    home.write("sub/notes.txt", "");
    let (at, hang) = (home.beside("at-work"), home.beside("hang"));
    std::fs::write(&hang, "").unwrap();
    let agent = format!("echo > {}; while test -e {}; do sleep 0.02; done", at.display(), hang.display());
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent-cmd", &agent]));
    wait_until("the agent at work", std::time::Duration::from_mins(1), || at.exists());
    let holder = home.only_run().id();
    for more in [&[][..], &["--workspace", "sub"]] {
        let mut args = vec!["run", "specs/it.md", "--agent-cmd", "true"];
        args.extend(more);
        refused(&home.run(args), 5, 1, &["held by", &holder, "--isolate copy"]);
        assert_eq!(home.runs().len(), 1, "nothing of the second run is left");
    }
    // What is isolated is held by nobody.
    let apart = strike(&home, "touch done.txt", &["--isolate", "copy"]);
    apart.expect("accepted", "gates-passed", 1, 0);
    std::fs::remove_file(hang).unwrap();
    let _ = live.end();
}

#[test]
fn a_gate_command_that_does_not_exist() {
    let home = wants_done();
    home.write(
        "gates/check.toml",
        "[[gate]]\nname = \"lint\"\nkind = \"test\"\nrun = [\"no-such-tool\", \"-x\"]\n",
    );
    let ran = home.run(["run", "specs/it.md", "--agent-cmd", "touch called.txt"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let line = ran.stderr.lines().find(|l| l.contains("gate-tool-missing")).unwrap_or_default();
    assert!(line.contains("lint") && line.contains("no-such-tool"), "{}", ran.stderr);
    assert!(!home.path().join("called.txt").exists());
}

#[test]
fn a_secret_in_what_a_run_is_judged_by() {
    // Written down without it, a gate would be another one when the run is resumed.
    let home = wants_done();
    let refuses = |secret: &str, args: &[&str], words: &[&str]| {
        let mut command = home.command(["run", "specs/it.md", "--agent-cmd", "touch done.txt"]);
        let ran = Ran::of(command.args(args).env("API_TOKEN", secret).output().unwrap());
        refused(&ran, 2, 1, words);
        assert!(!ran.stderr.contains(secret), "{}", ran.stderr);
        nothing_left(&home);
    };
    refuses("done.txt", &[], &["`API_TOKEN`", "gates/check.toml", "by name"]);
    home.write("specs/it.md", &SPEC.replace("gates pass", "gates pass with hunter2-hunter2"));
    refuses("hunter2-hunter2", &[], &["`API_TOKEN`", "spec.md"]);
    // One that stands nowhere is none of the run's business.
    home.write("specs/it.md", SPEC);
    let mut command = home.command(["run", "specs/it.md", "--agent-cmd", "touch done.txt"]);
    assert_eq!(command.env("API_TOKEN", "hunter2-hunter2").output().unwrap().status.code(), Some(0));
}

#[test]
fn a_judge_that_there_is_not() {
    let home = wants_done();
    refuses(&home, &["specs/it.md", "--agent-cmd", "true", "--judge", "required"], 2, &["judge"]);
}

#[test]
fn flags_that_make_no_sense() {
    let home = wants_done();
    for (more, word) in [
        (&["--attempts", "0"][..], "--attempts"),
        (&["--attempts", "51"], "--attempts"),
        (&["--budget", "soon"], "--budget"),
        (&["--max-cost=-1"], "--max-cost"),
        (&["--agent", "x"], "--agent"),
        (&["--frobnicate"], "--frobnicate"),
        (&["--task", "both"], "--task"),
    ] {
        let mut args = vec!["run", "specs/it.md", "--agent-cmd", "true"];
        args.extend(more);
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{more:?}: {}", ran.stderr);
        nothing_left(&home);
    }
}

/// Runs a shell script in a mount namespace of its own, where `$T` is the binary. `None`, said aloud, where this
/// machine does not let us.
fn with_mounts(home: &TestHome, script: &str) -> Option<Ran> {
    let may = Command::new("unshare").args(["-m", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !may.is_ok_and(|o| o.status.success()) {
        println!("not run: this needs the right to mount (root) and `unshare`");
        return None;
    }
    let mut command = home.command(["--version"]);
    let envs: Vec<_> = command.get_envs().filter_map(|(n, v)| Some((n.to_owned(), v?.to_owned()))).collect();
    command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script])
        .current_dir(home.path())
        .env_clear()
        .envs(envs)
        .env("T", binary());
    Some(Ran::of(command.output().expect("unshare starts")))
}

#[test]
fn a_workspace_that_is_read_only() {
    let home = wants_done();
    std::fs::create_dir(home.path().join("work")).unwrap();
    let script = "mount -t tmpfs none work && touch work/x && mount -o remount,ro work && exec \
                  $T run specs/it.md --agent-cmd true --workspace work";
    let Some(ran) = with_mounts(&home, script) else { return };
    refused(&ran, 5, 1, &["work", "read-only", "make it writable"]);
    nothing_left(&home);
}

#[test]
fn a_home_that_is_read_only() {
    let home = wants_done();
    std::fs::create_dir(home.path().join("runs")).unwrap();
    let script =
        "mount -t tmpfs none runs && mount -o remount,ro runs && exec $T run specs/it.md --agent-cmd true";
    let Some(ran) = with_mounts(&home, script) else { return };
    refused(&ran, 5, 1, &["runs"]);
    nothing_left(&home);
}

#[test]
fn no_space_for_a_run() {
    let home = wants_done();
    std::fs::create_dir(home.path().join("runs")).unwrap();
    let script = "mount -t tmpfs -o size=16k none runs && $T run specs/it.md --agent-cmd true; code=$?
                  ls runs > ../left; exit $code";
    let Some(ran) = with_mounts(&home, script) else { return };
    refused(&ran, 5, 1, &["runs", "No space left"]);
    let left = std::fs::read_to_string(home.beside("left")).unwrap();
    assert_eq!(left, "", "nothing of the run is left");
}

#[test]
fn space_that_ends_while_a_run_is_under_way_parks_it() {
    let home = wants_done();
    std::fs::create_dir(home.path().join("runs")).unwrap();
    // The agent fills the disk that the run is written to. Whatever is written next fails; what was written stays.
    let script = "mount -t tmpfs -o size=4m none runs || exit 99
        $T run --json specs/it.md --agent-cmd 'test -e ../again || cat /dev/zero > runs/fill; touch done.txt' > ../first
        echo $? > ../code
        $T runs > ../listed 2>&1 || exit 98
        rm runs/fill; touch ../again
        exec $T resume latest --json";
    let Some(ran) = with_mounts(&home, script) else { return };
    let read = |name: &str| std::fs::read_to_string(home.beside(name)).unwrap();
    assert_eq!(read("code"), "5\n", "{}\n{}", read("first"), ran.stderr);
    let done = ran.done();
    assert_eq!(done["outcome"], "accepted", "{}\n{}\n{}", read("first"), ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_run_that_cannot_be_read_disturbs_no_other() {
    let home = wants_done();
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
    std::fs::create_dir_all(home.path().join("runs/20200101-000000-broken-0000")).unwrap();
    home.write("runs/20200101-000001-broken-0001/journal.jsonl", "{\n");
    let listed = home.run(["runs", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
    let ran = resume(&home, "20200101-000001");
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    std::fs::remove_file(home.path().join("done.txt")).unwrap();
    strike(&home, "touch done.txt", &[]).expect("accepted", "gates-passed", 1, 0);
}
