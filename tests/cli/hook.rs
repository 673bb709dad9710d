//! The guard for agents that ask: what it answers, how it is installed and taken out, and what is reported of an agent
//! that does not ask.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use triphammer_testkit::{FakeModel, Ran, Step, TestHome, binary, wait_until};

use crate::common::{SPEC, strike};

/// `hook pre-tool` with this on its standard input, and with further variables.
fn told(home: &TestHome, input: &[u8], vars: &[(&str, &str)]) -> Ran {
    let mut command = home.command(["hook", "pre-tool"]);
    command.envs(vars.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // All of it is taken, whatever the answer is: an agent's pipe does not break.
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

fn bash(cwd: &str, command: &str) -> Vec<u8> {
    let call = json!({
        "session_id": "s", "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": command},
    });
    call.to_string().into_bytes()
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

#[track_caller]
fn let_through(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn what_cannot_be_undone_is_refused_with_its_reason() {
    let home = TestHome::new();
    refused(
        &told(&home, &bash("/w", "cargo test && git push -uf origin main"), &[]),
        "`git push -uf origin main`: ",
    );
    let gemini = json!({"cwd": "/w", "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
        "tool_input": {"command": "rm -rf ../sub", "dir_path": "other"}});
    let_through(&told(&home, gemini.to_string().as_bytes(), &[]));
    let gemini = gemini.to_string().replace("other", ".");
    refused(&told(&home, gemini.as_bytes(), &[]), "`rm -rf ../sub`: ");
    for line in ["cargo test", "git commit -m 'no git push --force'", "git push origin main", "rm -rf target"]
    {
        let_through(&told(&home, &bash("/w", line), &[]));
    }
    let write = json!({"cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": {"file_path": "/etc/x", "content": "git push --force"}});
    let_through(&told(&home, write.to_string().as_bytes(), &[]));
}

#[test]
fn the_workspace_is_the_runs_or_the_agents_or_the_folder() {
    let home = TestHome::new();
    let call = bash("/w/sub", "rm -rf ../target");
    refused(&told(&home, &call, &[]), "deletes a directory tree");
    let_through(&told(&home, &call, &[("CLAUDE_PROJECT_DIR", "/w")]));
    let_through(&told(&home, &call, &[("TRIPHAMMER_WORKSPACE", "/w"), ("CLAUDE_PROJECT_DIR", "/w/sub")]));
    refused(&told(&home, &call, &[("TRIPHAMMER_WORKSPACE", "/other")]), "deletes a directory tree");
    // A link to the workspace is the workspace.
    let work = home.beside("work");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    let link = home.beside("link");
    symlink(&work, &link).unwrap();
    let call = bash(work.join("sub").to_str().unwrap(), "rm -rf ../target");
    let vars = [("TRIPHAMMER_WORKSPACE", link.to_str().unwrap()), ("TMPDIR", "/elsewhere")];
    let_through(&told(&home, &call, &vars));
    refused(&told(&home, &call, &vars[1..]), "deletes a directory tree");
}

#[test]
fn a_command_is_judged_wherever_the_call_holds_it() {
    let home = TestHome::new();
    let told = |input: Value| {
        let call = json!({"tool_name": "Bash", "cwd": "/w", "tool_input": input});
        told(&home, call.to_string().as_bytes(), &[("TRIPHAMMER_WORKSPACE", "/w")])
    };
    for input in [
        json!({"program": "git", "args": ["push", "--force"]}),
        json!({"commands": ["echo '", "git push --force"]}),
        json!({"command": "make", "script": "git push --force"}),
    ] {
        refused(&told(input), "`--force` overwrites");
    }
    refused(&told(json!({"command": "rm -rf b", "workdir": "../x"})), "deletes a directory tree");
    let_through(&told(json!({"command": "rm -rf b", "workdir": "x"})));
}

#[test]
fn what_is_not_understood_is_refused_and_says_why() {
    let home = TestHome::new();
    for (input, why) in [
        (&b""[..], "it is empty"),
        (b"git push --force", "it is no JSON"),
        (b"{\"tool_name\":\"Bash\"", "it is no JSON"),
        (b"\xff\xfe\x00", "it is no JSON"),
        (b"{}", "it names no tool"),
        (b"{\"tool_name\":\"Bash\",\"tool_input\":{}}", "is not found"),
    ] {
        refused(&told(&home, input, &[]), why);
    }
    let huge = bash("/w", &"x".repeat(9 << 20));
    refused(&told(&home, &huge, &[]), &format!("it is {} bytes long, and 4194304 are read", huge.len()));
    // The guard reads no line of more than a mebibyte, and nothing that is nested without end.
    for line in [format!("echo {}; git push --force", "x".repeat(2 << 20)), "$(".repeat(100)] {
        refused(&told(&home, &bash("/w", &line), &[]), "It is nested too deeply or too long to be read.");
    }
    // What it does not see is let through.
    for line in ["./release.sh", "python3 -c 'print(1)'", "echo $(("] {
        let_through(&told(&home, &bash("/w", line), &[]));
    }
}

/// An event that comes before no tool must not be refused: an agent that may not stop goes on for ever.
#[test]
fn another_event_is_let_through_and_said() {
    let ran = told(&TestHome::new(), br#"{"hook_event_name":"Stop","session_id":"s"}"#, &[]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("`Stop` comes before no tool"), "{}", ran.stderr);
}

#[test]
fn a_pipe_that_stays_open_is_not_waited_for_for_ever() {
    let home = TestHome::new();
    let mut command = home.command(["hook", "pre-tool"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&bash("/w", "ls")).unwrap();
    let mut status = None;
    wait_until("an answer without the end of its input", Duration::from_secs(30), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(2));
}

/// A file of settings of a person, with its odd ways.
const SETTINGS: &str = "{\n    \"model\": \"opus\", \"n\": 1.0e2,\n    \"hooks\": {\n        \"PreToolUse\": [\n            \
    {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n        ]\n    }\n}";

fn settings(home: &TestHome) -> PathBuf {
    home.beside("user/.claude/settings.json")
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn get(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn install(home: &TestHome, more: &[&str]) -> Value {
    let mut args = vec!["hook", "install", "--json"];
    args.extend(more);
    let ran = home.run(args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_hook_is_merged_once_and_taken_out_without_a_trace() {
    let home = TestHome::new();
    let file = settings(&home);
    put(&file, SETTINGS);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let done = install(&home, &[]);
    assert_eq!(
        (&done["schema"], &done["agent"], &done["did"]),
        (&json!(1), &json!("claude"), &json!("installed"))
    );
    assert_eq!(done["file"], file.to_str().unwrap());
    let backup = PathBuf::from(done["backup"].as_str().unwrap());
    assert_eq!((get(&backup).as_str(), backup.parent()), (SETTINGS, file.parent()));
    let installed = get(&file);
    let value: Value = serde_json::from_str(&installed).unwrap();
    let groups = value["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(groups[0]["hooks"][0]["command"], "mine");
    assert_eq!(groups[1]["hooks"][0]["command"], done["command"]);
    assert!(installed.starts_with(SETTINGS.split("\n        ]").next().unwrap()), "{installed}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&backup)), (0o640, 0o640));
    // The command is one that sh can start, from wherever it is.
    assert_eq!(done["command"], format!("{} hook pre-tool", binary().canonicalize().unwrap().display()));

    assert_eq!(install(&home, &[])["did"], "already-installed");
    assert_eq!(
        (get(&file), files(file.parent().unwrap()).len()),
        (installed, 2),
        "nothing is written for nothing"
    );

    assert_eq!(install(&home, &["--undo"])["did"], "restored");
    assert_eq!((get(&file).as_str(), mode(&file)), (SETTINGS, 0o640));
    assert_eq!(files(file.parent().unwrap()), ["settings.json"]);
    assert_eq!(install(&home, &["--undo"])["did"], "not-installed");
}

#[test]
fn where_there_was_no_file_there_is_none_afterwards() {
    let home = TestHome::new();
    let done = install(&home, &[]);
    assert_eq!((&done["did"], &done["backup"]), (&json!("installed"), &Value::Null));
    let ran = home.run(["hook", "install"]);
    assert!(ran.stdout.contains("nothing to do"), "{}", ran.stdout);
    assert_eq!(install(&home, &["--undo"])["did"], "restored");
    assert!(!settings(&home).exists());
}

#[test]
fn what_a_person_changed_since_stays() {
    let home = TestHome::new();
    let file = settings(&home);
    put(&file, "{\"a\": 1}");
    install(&home, &[]);
    let changed = get(&file).replace("\"a\": 1", "\"a\": 2, \"b\": [3]");
    put(&file, &changed);
    let done = install(&home, &["--undo"]);
    assert_eq!((done["did"].as_str(), get(&file).as_str()), (Some("removed"), "{\"a\": 2, \"b\": [3]}"));
    assert_eq!(get(Path::new(done["backup"].as_str().unwrap())), changed);
}

#[test]
fn a_link_is_written_through() {
    let home = TestHome::new();
    let (file, real) = (settings(&home), home.beside("dotfiles/claude.json"));
    put(&real, SETTINGS);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(&real, &file).unwrap();
    let done = install(&home, &[]);
    assert_eq!(done["file"], real.canonicalize().unwrap().to_str().unwrap());
    assert!(file.is_symlink() && get(&real).contains("hook pre-tool"));
    install(&home, &["--undo"]);
    assert!(file.is_symlink());
    assert_eq!(
        (get(&real).as_str(), files(real.parent().unwrap())),
        (SETTINGS, vec!["claude.json".to_owned()])
    );
    std::fs::remove_file(&real).unwrap();
    let ran = home.run(["hook", "install"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("a link that leads nowhere"), "{}", ran.stderr);
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let home = TestHome::new();
    let file = settings(&home);
    for (text, words) in [
        ("{\n\"a\": 1,\n}", "line 3: the file is no JSON"),
        ("{\n// why\n}", "line 2: the file is no JSON"),
        ("{\"hooks\": 7}", "line 1: the file has a `hooks` that is no object"),
    ] {
        put(&file, text);
        for args in [&["hook", "install"][..], &["hook", "install", "--undo"]] {
            let ran = home.run(args);
            assert_eq!(ran.code, Some(1), "{text}");
            assert!(
                ran.stderr.contains(file.to_str().unwrap()) && ran.stderr.contains(words),
                "{}",
                ran.stderr
            );
            assert_eq!((get(&file).as_str(), files(file.parent().unwrap()).len()), (text, 1));
        }
    }
}

#[test]
fn each_agent_has_its_file_in_a_project_too() {
    let home = TestHome::new();
    let project = home.beside("a project");
    std::fs::create_dir(&project).unwrap();
    for (agent, file) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("qwen", ".qwen/settings.json"),
        ("opencode", ".opencode/plugins/triphammer.js"),
        ("pi", ".pi/extensions/triphammer.js"),
    ] {
        let args = ["--agent", agent, "--project", project.to_str().unwrap()];
        let done = install(&home, &args);
        let path = project.join(file);
        assert_eq!(
            (done["did"].as_str(), done["file"].as_str()),
            (Some("installed"), path.to_str()),
            "{agent}"
        );
        assert!(get(&path).contains("pre-tool"));
        assert_eq!(done["note"].is_string(), agent == "codex", "{agent}");
        assert_eq!(install(&home, &args)["did"], "already-installed", "{agent}");
        let undo = [&args[..], &["--undo"]].concat();
        assert_eq!(install(&home, &undo)["did"], "restored", "{agent}");
        assert_eq!(files(path.parent().unwrap()), [""; 0], "{agent}");
    }
    let ran = home.run(["hook", "install", "--project", "/no/such/folder"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn a_plugin_of_somebody_else_stays() {
    let home = TestHome::new();
    let file = home.beside("user/.pi/agent/extensions/triphammer.js");
    put(&file, "export default 1;\n");
    let ran = home.run(["hook", "install", "--agent", "pi"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is not of ours"), "{}", ran.stderr);
    assert_eq!(install(&home, &["--agent", "pi", "--undo"])["did"], "not-installed");
    assert_eq!(get(&file), "export default 1;\n");
}

/// An agent that does its work and claims that it ran these commands.
fn claiming(commands: &[&str]) -> String {
    let receipt = json!({"commands": commands});
    format!("touch done; cat > \"$TRIPHAMMER_RECEIPT\" <<'END'\n{receipt}\nEND\n")
}

/// An agent that does not ask: what it claims is judged afterwards, reported as a claim, and decides nothing.
#[test]
fn what_an_agent_says_it_ran_is_reported() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    let ran = strike(&home, &claiming(&["cargo test", "git push --force origin main", "npm publish"]), &[]);
    ran.expect("accepted", "gates-passed", 1, 0);
    let remarks: Vec<String> = ran
        .lines()
        .iter()
        .filter(|line| line["type"] == "remark")
        .filter_map(|line| line["text"].as_str().map(str::to_owned))
        .filter(|text| text.contains("the agent says"))
        .collect();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("`git push --force origin main`") && remarks[0].contains("nobody saw it"));
    assert!(remarks[0].contains("and 1 more"), "{remarks:?}");

    let run = home.only_run();
    let guard: Value = serde_json::from_str(&run.text("attempts/001/guard.json")).unwrap();
    assert_eq!(guard["schema"], 1);
    let rules: Vec<&str> =
        guard["reported"].as_array().unwrap().iter().filter_map(|one| one["rule"].as_str()).collect();
    assert_eq!(rules, ["guard/forced-push", "guard/publishing"]);
    assert_eq!(guard["reported"][0]["refused"], false);
    // It is sealed as what else lies there.
    let sealed = run.text("journal.jsonl");
    assert!(sealed.lines().last().unwrap().contains("attempts/001/guard.json"));

    let shown = home.run(["show", "latest", "1"]).stdout;
    assert!(shown.contains("claimed as run: `git push --force origin main`"), "{shown}");
    let shown: Value = serde_json::from_str(&home.run(["show", "latest", "1", "--json"]).stdout).unwrap();
    assert_eq!(shown["attempt"]["guard"], guard);
}

#[test]
fn an_attempt_without_such_claims_has_no_report() {
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    let agent = claiming(&["cargo test", "git commit -m 'git push --force'"]);
    strike(&home, &agent, &[]).expect("accepted", "gates-passed", 1, 0);
    let run = home.only_run();
    assert_eq!(run.receipt(1).commands.len(), 2);
    assert!(!run.path().join("attempts/001/guard.json").exists());
    let shown: Value = serde_json::from_str(&home.run(["show", "latest", "1", "--json"]).stdout).unwrap();
    assert_eq!((&shown["attempt"]["guard"], &shown["attempt"]["missing"]), (&Value::Null, &json!({})));
}

/// An agent that asks and is refused did not run it, and nobody says that it did.
#[test]
fn what_an_agent_was_refused_is_no_claim() {
    let model = FakeModel::saying([
        Step::ShellCall("touch done; git push --force".to_owned()),
        Step::ShellCall("touch done".to_owned()),
        Step::Text("Done.".to_owned()),
    ]);
    let home = TestHome::with_gates(&[("done", "test -f done")]);
    home.write("specs/it.md", SPEC);
    home.write(
        "triphammer.toml",
        &format!(
            "[agents.coder]\nkind = \"native\"\nmodel = \"fake-1\"\nbase_url = \"{}/v1\"\n",
            model.url()
        ),
    );
    let ran = home.forge(["specs/it.md", "--agent", "coder"]);
    ran.expect("accepted", "gates-passed", 1, 0);
    assert!(ran.stdout.contains("the agent asked for `git push --force` and was refused"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("the agent says that it ran"), "{}", ran.stdout);
    let run = home.only_run();
    let receipt = run.receipt(1);
    assert_eq!(receipt.refused, ["touch done; git push --force"]);
    assert_eq!(receipt.commands.iter().map(|c| c.command.as_str()).collect::<Vec<_>>(), ["touch done"]);
    let guard: Value = serde_json::from_str(&run.text("attempts/001/guard.json")).unwrap();
    assert_eq!((&guard["reported"][0]["refused"], &guard["reported"][1]), (&json!(true), &Value::Null));
    let shown = home.run(["show", "latest", "1"]).stdout;
    assert!(shown.contains("refused, not run: `git push --force`"), "{shown}");
}
