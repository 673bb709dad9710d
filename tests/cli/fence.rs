//! What holds agent and gates in whole runs, with nothing configured but what a test is about.

use std::path::Path;

use triphammer_agent::{Fence, bubblewrap_program};
use triphammer_testkit::{Ran, TestHome};

use crate::common::SPEC;

/// A home whose only gate passes once there is a `done` in its workspace.
fn home(workspace: &str) -> TestHome {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    home.set_user_config("");
    home.write(
        "specs/it.md",
        &SPEC.replacen("status: locked\n", &format!("status: locked\nworkspace: {workspace}\n"), 1),
    );
    std::fs::create_dir_all(home.path().join(workspace)).unwrap();
    std::fs::create_dir(home.beside("outside")).unwrap();
    home
}

/// Runs with a shell line as the agent, as a person would: nothing says which fence.
fn forge(home: &TestHome, line: &str) -> Ran {
    let mut command = home.command(["run", "--json", "specs/it.md", "--attempts", "1", "--agent-cmd", line]);
    command.env_remove("TRIPHAMMER_FENCE").env("OUT", home.beside("outside"));
    Ran::of(command.output().unwrap())
}

/// Whether there is a fence at all, and bubblewrap's.
fn has() -> (bool, bool) {
    let room = tempfile::tempdir().unwrap();
    let try_bubblewrap = |program: std::path::PathBuf| {
        let tried = std::process::Command::new(program)
            .args(["--ro-bind", "/", "/", "true"])
            .current_dir(&room)
            .status();
        tried.is_ok_and(|status| status.success())
    };
    (Fence::is_available(), bubblewrap_program().is_some_and(try_bubblewrap))
}

/// What a line left behind, by whether each of these files is there.
fn there(home: &TestHome, files: &[&str]) -> Vec<bool> {
    files.iter().map(|file| home.path().join(file).exists()).collect()
}

#[test]
fn an_agent_writes_in_its_workspace_and_in_its_temporary_folder() {
    if !has().0 {
        return;
    }
    let home = home("work");
    let out = home.beside("outside");
    let line = format!(
        "echo x > {out}/agent; echo x > ../gates/more.toml; echo x > ../specs/more.md; echo x > ../runs/more; \
         echo x > ~/more; echo x > /tmp/triphammer-stray-$$; echo $TMPDIR > tmp; echo x > $TMPDIR/scratch && \
         echo '{{\"files\": []}}' > $TRIPHAMMER_RECEIPT && mkdir -p ~/.cache/tool && touch done",
        out = out.display()
    );
    forge(&home, &line).expect("accepted", "unchecked", 1, 0);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    let stray = ["gates/more.toml", "specs/more.md", "runs/more", "../user/more"];
    assert_eq!(there(&home, &stray), [false; 4]);
    assert!(home.beside("user/.cache/tool").is_dir(), "a cache of tools");
    let temp = home.read("work/tmp");
    assert!(temp.contains("/triphammer-") && !Path::new(temp.trim()).exists(), "{temp} goes with the run");
    let stderr = home.only_run().text("attempts/001/stderr.log");
    let denied =
        stderr.lines().filter(|l| l.contains("ermission denied") || l.contains("annot create")).count();
    assert_eq!(denied, 6, "{stderr}");
}

#[test]
fn gates_are_held_as_well() {
    if !has().0 {
        return;
    }
    let home = home("work");
    let out = home.beside("outside");
    // The gate runs what the agent wrote; the agent's scratch folder is not for it.
    home.write("gates/check.toml", "[[gate]]\nname = \"done\"\nkind = \"test\"\nrun = [\"sh\", \"done\"]\n");
    let gate = format!("echo x > {}/gate; echo x > $TMPDIR/x && echo x > made", out.display());
    let line = format!("cat > done <<'END'\n{gate}\nEND");
    forge(&home, &line).expect("accepted", "unchecked", 1, 0);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    assert_eq!(there(&home, &["work/made"]), [true]);
}

#[test]
fn a_home_that_is_its_own_workspace_keeps_gates_specs_and_runs() {
    let (fence, bubblewrap) = has();
    if !fence && !bubblewrap {
        return;
    }
    let home = home(".");
    let line = "echo x > gates/more.toml; echo x >> specs/it.md; echo x > runs/more; mv gates gone; rm -rf runs; \
                echo '{\"files\": []}' > $TRIPHAMMER_RECEIPT; touch done";
    let ran = forge(&home, line);
    if bubblewrap {
        ran.expect("accepted", "gates-passed", 1, 0);
        assert_eq!(
            there(&home, &["gates/more.toml", "runs/more", "gone", "gates/check.toml"]),
            [false, false, false, true]
        );
        assert!(
            !home.read("specs/it.md").contains("x\n\n")
                && home.only_run().text("run.json").contains("accepted")
        );
        assert!(!ran.stderr.contains("only comparison"), "{}", ran.stderr);
    } else {
        assert!(ran.stderr.contains("bubblewrap is not installed") && ran.stderr.contains("only comparison"));
    }
    // Where bubblewrap is not to be had the run says what guards them.
    let mut command = home.command(["run", "specs/it.md", "--plan"]);
    command.args(["--agent-cmd", "true"]).env("TRIPHAMMER_FENCE", "landlock");
    let plan = Ran::of(command.output().unwrap());
    assert!(plan.stdout.contains("held by    write fence by Landlock"), "{}{}", plan.stdout, plan.stderr);
}

#[test]
fn landlock_over_a_home_that_is_its_own_workspace_says_what_it_does_not_keep() {
    if !has().0 {
        return;
    }
    let home = home(".");
    let mut command = home.command(["run", "specs/it.md", "--agent-cmd", "touch done"]);
    command.env("TRIPHAMMER_FENCE", "landlock");
    let ran = Ran::of(command.output().unwrap());
    for part in ["home/gates`", "home/specs`", "home/runs`", "only comparison before and after guards"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn what_a_person_names_is_writable_and_off_is_off() {
    if !has().0 {
        return;
    }
    let named = home("work");
    let out = named.beside("outside").display().to_string();
    named.write("triphammer.toml", &format!("[sandbox]\nwritable = [\"{out}\", \"~/mine\"]\n"));
    std::fs::create_dir(named.beside("user/mine")).unwrap();
    let line = format!("set -e; echo x > {out}/agent; echo x > ~/mine/agent; touch done");
    forge(&named, &line).expect("accepted", "unchecked", 1, 0);
    let off = home("work");
    let out = off.beside("outside").display().to_string();
    off.write("triphammer.toml", "[sandbox]\nfence = \"off\"\n");
    let ran = forge(&off, &format!("echo x > {out}/agent && touch done"));
    ran.expect("accepted", "unchecked", 1, 0);
    assert!(ran.stdout.contains("no write fence holds it"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_held_is_refused_before_anything_runs() {
    let home = home("work");
    home.write("triphammer.toml", "[sandbox]\nfence = \"bubblewrap\"\n");
    let mut command = home.command(["run", "--json", "specs/it.md", "--agent-cmd", "touch done"]);
    // A program of that name which is none.
    let bin = home.beside("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("bwrap"), "#!/bin/sh\necho 'no namespaces here' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(bin.join("bwrap"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let usual = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(bin).chain(std::env::split_paths(&usual));
    command.env_remove("TRIPHAMMER_FENCE").env("PATH", std::env::join_paths(path).unwrap());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("fence = \"bubblewrap\" cannot be held here"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no namespaces here"), "{}", ran.stderr);
    assert!(home.runs().is_empty(), "nothing of the run is left behind");
    assert!(!home.path().join("work/done").exists());
}

#[test]
fn a_network_of_its_own_is_for_agent_and_gates() {
    let home = home("work");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let call = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'");
    let line = format!("{call} && touch reached; touch done");
    home.write("triphammer.toml", "[sandbox]\nnetwork = \"loopback\"\n");
    let ran = forge(&home, &line);
    if ran.code == Some(2) {
        assert!(ran.stderr.contains("cannot be held here"), "{}", ran.stderr);
        return;
    }
    ran.expect("accepted", "unchecked", 1, 0);
    assert!(!home.path().join("work/reached").exists());
    home.write("triphammer.toml", "");
    std::fs::remove_file(home.path().join("work/done")).unwrap();
    forge(&home, &line).expect("accepted", "unchecked", 1, 0);
    assert!(home.path().join("work/reached").exists(), "the call itself works");
}

#[test]
fn cargo_builds_and_tests_inside() {
    if !has().0 {
        return;
    }
    let home = TestHome::new();
    home.set_user_config("");
    home.write("specs/it.md", SPEC);
    home.write("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    home.write("src/lib.rs", "#[test]\nfn answer() {\n    assert_eq!(6 * 7, 41);\n}\n");
    let ran = forge(&home, "sed -i s/41/42/ src/lib.rs");
    ran.expect("accepted", "gates-passed", 1, 0);
    let said = home.only_run().text("attempts/001/report.json");
    assert!(!said.contains("ermission denied") && !said.contains("Read-only"), "{said}");
}

/// What decides about later runs is not for this one to write, whoever of agent and gates does it.
#[test]
fn gates_specs_and_configuration_of_a_home_in_the_workspace() {
    let pack = "[[gate]]\nname = \"made\"\nkind = \"test\"\nrun = [\"true\"]\n";
    let plant = format!(
        "mkdir -p gates && printf '{}' > gates/rust.toml",
        pack.replace('"', "\\\"").replace('\n', "\\n")
    );
    for (fence, works) in [("landlock", has().0), ("bubblewrap", has().1), ("off", true)] {
        if !works {
            continue;
        }
        // By the agent, where there was no such folder.
        let home = TestHome::new();
        home.set_user_config("");
        home.write("specs/it.md", &format!("{SPEC}## Checks\n- done: test -f done\n"));
        let mut command = home.command(["run", "--json", "specs/it.md", "--attempts", "1", "--agent-cmd"]);
        command.arg(format!("touch done; {plant}")).env("TRIPHAMMER_FENCE", fence);
        let ran = Ran::of(command.output().unwrap());
        let (accepted, there) = (ran.code == Some(0), home.path().join("gates/rust.toml").exists());
        assert_eq!(
            (accepted, there),
            if fence == "bubblewrap" { (true, false) } else { (false, true) },
            "{fence}: {}",
            ran.stdout
        );
        if fence != "bubblewrap" {
            let report = home.only_run().text("attempts/001/report.json");
            assert!(report.contains("gates/rust.toml is not as it was at the start"), "{fence}: {report}");
        }
        // By a gate, which runs what the agent wrote.
        let home = TestHome::new();
        home.set_user_config("");
        home.write("triphammer.toml", "# mine\n");
        home.write("specs/it.md", &format!("{SPEC}## Checks\n- done: sh test.sh\n"));
        let mut command = home.command(["run", "--json", "specs/it.md", "--attempts", "1", "--agent-cmd"]);
        command
            .arg("echo 'echo \"# theirs\" >> triphammer.toml; true' > test.sh")
            .env("TRIPHAMMER_FENCE", fence);
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(home.read("triphammer.toml"), "# mine\n", "{fence}");
        assert_eq!(ran.code == Some(0), fence == "bubblewrap", "{fence}: {}", ran.stdout);
    }
}

#[test]
fn bubblewrap_keeps_a_home_whose_parent_is_moved_away() {
    if !has().1 {
        return;
    }
    let home = home(".");
    let outer = home.path();
    let inner = outer.join("a/b");
    std::fs::create_dir_all(inner.join("specs")).unwrap();
    std::fs::create_dir_all(inner.join("gates")).unwrap();
    std::fs::write(inner.join("triphammer.toml"), "").unwrap();
    std::fs::write(
        inner.join("specs/it.md"),
        SPEC.replacen("status: locked\n", "status: locked\nworkspace: ../..\n", 1),
    )
    .unwrap();
    std::fs::write(inner.join("gates/check.toml"), home.read("gates/check.toml")).unwrap();
    let mut command = home.command([
        "run",
        "--json",
        "specs/it.md",
        "--attempts",
        "1",
        "--workspace",
        "../..",
        "--agent-cmd",
    ]);
    command
        .arg("mv a c; mkdir -p a && cp -a c/b a/; echo x > a/b/gates/more.toml; touch done")
        .current_dir(&inner);
    command.env("TRIPHAMMER_FENCE", "bubblewrap");
    let ran = Ran::of(command.output().unwrap());
    assert!(ran.code == Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(!inner.join("gates/more.toml").exists() && !outer.join("c").exists());
}

#[test]
fn a_plan_makes_nothing_and_a_variable_opens_no_home() {
    let home = home("work");
    let before = std::fs::read_dir(home.beside("user")).unwrap().count();
    let mut command = home.command(["run", "specs/it.md", "--plan", "--agent", "codex"]);
    let bin = home.beside("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("codex"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(bin.join("codex"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let usual = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(bin).chain(std::env::split_paths(&usual));
    command.env("PATH", std::env::join_paths(path).unwrap());
    let plan = Ran::of(command.output().unwrap());
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert_eq!(std::fs::read_dir(home.beside("user")).unwrap().count(), before, "{}", plan.stdout);
    if !has().0 {
        return;
    }
    let mut command = home.command([
        "run",
        "specs/it.md",
        "--attempts",
        "1",
        "--agent-cmd",
        "echo x > ~/stray; touch done",
    ]);
    command.env_remove("TRIPHAMMER_FENCE").env("CARGO_TARGET_DIR", "/");
    let ran = Ran::of(command.output().unwrap());
    assert!(
        ran.stderr.contains("`/` is named as a tool's or an agent's own and stays closed"),
        "{}",
        ran.stderr
    );
    assert!(!home.beside("user/stray").exists());
}

#[test]
fn a_failure_that_the_fence_may_have_made_is_hinted_at() {
    if !has().0 {
        return;
    }
    let home = home("work");
    home.write(
        "gates/check.toml",
        "[[gate]]\nname = \"done\"\nkind = \"test\"\nrun = [\"sh\", \"-c\", \"echo x > $HOME/.tool-cache && test -f done\"]\n",
    );
    let mut command = home.command(["run", "specs/it.md", "--attempts", "1", "--agent-cmd", "touch done"]);
    command.env_remove("TRIPHAMMER_FENCE");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("it may be the write fence"), "{}", ran.stderr);
}

#[test]
fn a_home_that_is_reached_by_a_link_is_kept_as_well() {
    if !has().1 {
        return;
    }
    let home = home(".");
    let way = home.beside("way");
    std::os::unix::fs::symlink(home.path(), &way).unwrap();
    let line = "mv gates gone; echo x > gates/more.toml; echo x >> triphammer.toml; touch done";
    let mut command = home.command(["run", "--json", "specs/it.md", "--attempts", "1", "--agent-cmd", line]);
    command.arg("--home").arg(&way).current_dir(&way).env("TRIPHAMMER_FENCE", "bubblewrap");
    Ran::of(command.output().unwrap()).expect("accepted", "gates-passed", 1, 0);
    assert_eq!(there(&home, &["gates/more.toml", "gone", "gates/check.toml"]), [false, false, true]);
    assert_eq!(home.read("triphammer.toml"), "");
}
