//! Agents by name through whole runs, with a stand-in for each program.

use std::os::unix::fs::PermissionsExt;

use triphammer_model::Continuation;
use triphammer_testkit::{Ran, TestHome};

use crate::common::SPEC;

/// Runs the spec with a program `name` that is this shell script, and with further variables.
pub(crate) fn run(home: &TestHome, name: &str, script: &str, vars: &[(&str, &str)], args: &[&str]) -> Ran {
    let bin = home.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    home.write("specs/it.md", SPEC);
    let mut command = home.command(["run", "--json", "specs/it.md"]);
    command.args(args).env("PATH", std::env::join_paths([bin, "/usr/bin".into(), "/bin".into()]).unwrap());
    command.envs(vars.iter().copied());
    Ran::of(command.output().unwrap())
}

#[test]
fn an_agent_needs_no_configuration_and_its_keys_reach_it_alone() {
    let home = TestHome::with_gates(&[("done", "test -f done && test -z \"$CODEX_API_KEY\"")]);
    let script = "test -n \"$CODEX_API_KEY\" && cat > brief && echo \"key $CODEX_API_KEY $CODEX_HOME\" && touch done
        echo '{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}'
        echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":30,\"cached_input_tokens\":10,\"output_tokens\":5}}'";
    let vars = [("CODEX_API_KEY", "sk-dummy-0123456789"), ("CODEX_HOME", "/nowhere/codex")];
    run(&home, "codex", script, &vars, &["--agent", "codex"]).expect("accepted", "gates-passed", 1, 0);
    let attempt = home.only_run().id();
    let log = home.read(format!("runs/{attempt}/attempts/001/stdout.log"));
    assert!(log.contains("/nowhere/codex") && !log.contains("sk-dummy"), "{log}");
    let receipt = home.read(format!("runs/{attempt}/attempts/001/receipt.json"));
    let receipt: triphammer_model::Receipt = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt.session.as_deref(), Some("t-1"));
    assert_eq!(receipt.tokens.map(|t| (t.input, t.cached, t.output)), Some((20, 10, 5)));
    assert!(home.read("brief").contains("Make the gates pass."));
}

#[test]
fn what_an_agent_reads_is_no_secret_and_a_model_may_be_named() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    let config = home.read("triphammer.toml");
    home.write("triphammer.toml", &format!("{config}\n[agents.q]\nkind = \"qwen\"\nmodel = \"model-7\"\n"));
    let vars = [("OPENAI_MODEL", "model-7"), ("OPENAI_API_KEY", "sk-dummy-0123456789")];
    let script = "echo \"$@\" > done";
    run(&home, "qwen", script, &vars, &["--agent", "q"]).expect("accepted", "gates-passed", 1, 0);
    assert!(home.read("done").contains("-m model-7"));
}

#[test]
fn a_session_goes_on_where_it_is_told_to_and_the_receipt_says_so() {
    let script = "echo \"$@\" >> ../asked; echo x >> work.txt
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-7\",\"model\":\"m\"}'
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\"}'";
    let session = Continuation::Session { id: "s-7".to_owned() };
    for (line, second, said) in [
        ("continue = true", session, "went on with its session s-7"),
        ("", Continuation::Fresh, "began afresh"),
    ] {
        let home = TestHome::with_gates(&[("never", "false")]);
        let config = home.read("triphammer.toml");
        home.write("triphammer.toml", &format!("{config}\n[agents.c]\nkind = \"claude\"\n{line}\n"));
        run(&home, "claude", script, &[], &["--agent", "c", "--attempts", "2"]);
        let files = home.only_run();
        assert_eq!(files.receipt(1).continuation, Some(Continuation::Fresh), "{line}");
        let asked = std::fs::read_to_string(home.path().join("../asked")).unwrap();
        let resumed: Vec<bool> = asked.lines().map(|line| line.contains("--resume s-7")).collect();
        assert_eq!(resumed, [false, second != Continuation::Fresh], "{asked}");
        assert_eq!(files.receipt(2).continuation, Some(second), "{line}");
        let shown = home.run(["show", "latest", "2"]).stdout;
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn the_next_of_the_chain_takes_over_from_one_that_may_not() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    let config = home.read("triphammer.toml");
    home.write(
        "triphammer.toml",
        &format!("{config}\n[agents.second]\nkind = \"command\"\nargv = [\"touch\", \"done\"]\n"),
    );
    let refused = "echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}'
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":401,\"result\":\"no\"}'; exit 1";
    let ran = run(&home, "claude", refused, &[], &["--agent", "claude,second"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn auto_is_the_first_that_is_found_and_can_work() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    // Found first, and without login or key.
    let bin = home.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("claude"), "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let none = run(&home, "codex", "touch done", &[], &["--agent", "auto"]);
    assert_eq!(none.code, Some(2));
    for part in ["claude is there, but neither logged in", "codex is there", "triphammer doctor"] {
        assert!(none.stderr.contains(part), "{}", none.stderr);
    }
    let key = [("CODEX_API_KEY", "sk-dummy-0123456789")];
    let ran = run(&home, "codex", "touch done", &key, &["--agent", "auto"]);
    ran.expect("accepted", "gates-passed", 1, 0);
    let policy = home.only_run().text("pinned/policy.toml");
    assert!(policy.contains("vendor = \"codex\""), "{policy}");
}

#[test]
fn an_agent_writes_its_own_state_and_no_other_agents() {
    if !triphammer_agent::Fence::is_available() {
        return;
    }
    let home = TestHome::with_gates(&[("done", "test -f done && ! touch ~/.codex/gate")]);
    home.set_user_config("");
    home.write("triphammer.toml", "[agents.mine]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"codex\"]\n");
    let script = "set -e; echo x > ~/.codex/session; ! mkdir -p ~/.qwen; ! touch ~/stray; touch done";
    // By its name, and behind a command of one's own whose line names it.
    for agent in ["codex", "mine"] {
        let ran = run(&home, "codex", script, &[], &["--agent", agent]);
        ran.expect("accepted", "gates-passed", 1, 0);
        std::fs::remove_file(home.beside("user/.codex/session")).unwrap();
        std::fs::remove_file(home.path().join("done")).unwrap();
    }
    assert!(!home.beside("user/.codex/gate").exists());
}
