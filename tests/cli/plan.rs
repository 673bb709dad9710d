//! `run --plan` spends nothing and shows what would happen.

use serde_json::Value;
use triphammer_testkit::TestHome;

use crate::common::{SPEC, spec};

fn home() -> TestHome {
    let home = TestHome::with_gates(&[("done", "test -f done.txt"), ("sound", "true")]);
    home.write(
        "triphammer.toml",
        "[run]\nmax_tokens = 9000\n[agents.mine]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"touch called.txt\"]\nenv = [\"MODE=fast\"]\n",
    );
    spec(
        &home,
        "agent: mine\nattempts: 7\nbudget: 90m\nmax_cost: 2.50\n",
        "## Checks\n- real: test -f real.txt\n",
    );
    home
}

#[test]
fn a_plan_shows_everything_and_calls_nobody() {
    let home = home();
    let ran = home.run(["run", "specs/it.md", "--plan"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = &ran.stdout;
    for word in [
        "Make the gates pass.",
        "in place",
        "mine",
        "touch called.txt",
        "MODE",
        "done",
        "sound",
        "accept-real",
        "7 attempts",
        "2.50",
        "9000",
        "PATH",
        "held by    ",
    ] {
        assert!(text.contains(word), "`{word}` is missing:\n{text}");
    }
    assert!(!home.path().join("called.txt").exists(), "no agent was called");
    assert!(!home.path().join("runs").exists(), "no run is left behind");
    assert!(!home.state().exists(), "nor anything in the state folder");
}

#[test]
fn a_plan_is_json_as_well() {
    let home = home();
    let ran = home.run(["run", "specs/it.md", "--plan", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plan["schema"], 1);
    assert_eq!(plan["limits"]["attempts"], 7);
    assert_eq!(plan["isolation"], "in-place");
    assert_eq!(plan["agents"][0]["name"], "mine");
    let facts = &plan["preflight"]["facts"];
    assert_eq!(facts["green"], false, "{plan}");
    let red: Vec<&str> = facts["red_checks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(red, ["done", "accept-real"]);
    assert!(!home.path().join("runs").exists());
}

#[test]
fn a_plan_of_isolated_work_leaves_no_folder_behind() {
    let home = home();
    let ran = home.run(["run", "specs/it.md", "--plan", "--isolate", "copy", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plan["isolation"], "copy");
    assert!(!home.state().exists());
    let new = home.run(["run", "--task", "x", "--agent-cmd", "true", "--workspace", "new", "--plan"]);
    assert_eq!(new.code, Some(0), "{}", new.stderr);
    assert!(!home.state().exists());
}

#[test]
fn a_plan_tells_what_would_stop_the_run() {
    let home = TestHome::new();
    home.write(
        "gates/check.toml",
        "[[gate]]\nname = \"lint\"\nkind = \"static\"\nrun = [\"no-such-tool\"]\n",
    );
    home.write("specs/it.md", SPEC);
    let ran = home.run(["run", "specs/it.md", "--plan", "--agent-cmd", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("no-such-tool"), "{}", ran.stdout);
}
