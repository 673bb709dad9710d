//! Runs looked at afterwards: whether the record holds, whether it is decided the same way, what another policy would have done.

use serde_json::Value;
use triphammer_testkit::{Ran, TestHome, files_below};

use crate::common::{SPEC, pack, rewrite_journal};

fn home(gate: &str) -> TestHome {
    let home = TestHome::with_gates(&[("done", gate)]);
    home.write("specs/it.md", SPEC);
    home
}

fn forge(home: &TestHome, line: &str, more: &[&str]) -> Ran {
    home.forge([&["specs/it.md", "--agent-cmd", line], more].concat())
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", ran.stdout, ran.stderr))
}

/// The record of the only run holds and is decided in the same way again.
fn holds(home: &TestHome, what: &str) {
    let verified = home.run(["verify", "latest", "--deep", "--json"]);
    let found = json(&verified);
    assert_eq!(
        (verified.code, found["holds"].as_bool()),
        (Some(0), Some(true)),
        "{what}: {}",
        verified.stdout
    );
    assert_eq!(found["found"]["flaws"], serde_json::json!([]), "{what}");
    let replayed = home.run(["replay", "latest", "--json"]);
    assert_eq!(
        (replayed.code, json(&replayed)["identical"].as_bool()),
        (Some(0), Some(true)),
        "{what}: {}",
        replayed.stdout
    );
}

#[test]
fn runs_of_every_outcome_hold_and_are_decided_the_same_way() {
    let accepted = home("test -f done");
    forge(&accepted, "touch done", &[]).expect("accepted", "gates-passed", 1, 0);
    holds(&accepted, "accepted");
    let run = accepted.only_run();
    let proof: Value = serde_json::from_str(&run.text("proof.json")).unwrap();
    assert_eq!(proof["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(proof["subject"][0]["digest"]["gitTree"], run.summary()["tree"]);
    let predicate = &proof["predicate"];
    assert_eq!(
        predicate["agents"],
        serde_json::json!([{"name": "command", "kind": {"shell": {"line": "touch done"}}}])
    );
    assert_eq!(
        (&predicate["reason"], &predicate["attempts"][0]["verdicts"][1]["gate"]),
        (&"gates-passed".into(), &"done".into())
    );
    assert_eq!(predicate["spec"]["sha256"], triphammer_model::Digest::of(SPEC).as_str());
    let undone = accepted.run(["undo", "latest"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    holds(&accepted, "undone afterwards");

    let stalled = home("false");
    forge(&stalled, "true", &["--attempts", "9"]).expect("rejected", "stalled", 3, 3);
    holds(&stalled, "stalled");
    assert!(!stalled.only_run().path().join("proof.json").exists(), "nothing was accepted");

    let exhausted = home("false");
    forge(&exhausted, "date +%N > x", &["--attempts", "2"]).expect("rejected", "attempts-exhausted", 2, 1);
    holds(&exhausted, "exhausted");

    let suspended = home("test -f done");
    let fault = "echo '{\"fault\": {\"kind\": \"quota\"}}' > $TRIPHAMMER_RECEIPT; test -f ../go && touch done && \
                 echo '{}' > $TRIPHAMMER_RECEIPT; true";
    forge(&suspended, fault, &[]).expect("suspended", "quota", 0, 5);
    holds(&suspended, "suspended");
    std::fs::write(suspended.beside("go"), "").unwrap();
    let resumed = suspended.run(["resume", "latest", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.stdout, resumed.stderr);
    holds(&suspended, "resumed");

    let apart = home("test -f done");
    forge(&apart, "touch done", &["--isolate", "copy"]).expect("accepted", "gates-passed", 1, 0);
    assert_eq!(apart.run(["apply", "latest"]).code, Some(0));
    holds(&apart, "applied");

    let nothing = home("true");
    forge(&nothing, "true", &[]).expect("nothing-to-do", "all-green", 0, 6);
    holds(&nothing, "nothing to do");

    let tampered = home("false");
    tampered.write("held.txt", "held\n");
    tampered
        .write("specs/it.md", &SPEC.replacen("status: locked\n", "status: locked\nprotect: [held.txt]\n", 1));
    forge(&tampered, "date +%N > held.txt", &[]).expect("rejected", "tampered", 2, 1);
    holds(&tampered, "tampered");
}

/// The agent's parent is its shim, and the shim's is the run's own process.
#[test]
fn runs_that_were_stopped_in_the_middle_hold_and_so_do_those_that_went_on() {
    let ours = "$(awk '{print $4}' /proc/$PPID/stat)";
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let home = home("test -f done");
        let line = format!(
            "[ -e ../stopped ] && touch done && exit; touch ../stopped work; kill -{signal} {ours}; sleep 60"
        );
        let ran = forge(&home, &line, &[]);
        assert_eq!(ran.code, code, "{signal}: {}", ran.stderr);
        holds(&home, signal);
        let verified = json(&home.run(["verify", "latest", "--json"]));
        let unsealed = verified["found"]["notes"].to_string().contains("the journal has no seal");
        assert_eq!(unsealed, signal == "KILL", "{verified}");
        let resumed = home.run(["resume", "latest", "--json"]);
        assert_eq!(resumed.code, Some(0), "{signal}: {}{}", resumed.stdout, resumed.stderr);
        holds(&home, "resumed after it");
    }
}

/// Every file of the record has one bit of a random byte turned, again and again: the file is named each time.
#[test]
fn a_flipped_bit_anywhere_in_a_run_is_named() {
    let home = home("test -f done");
    forge(&home, "echo $TRIPHAMMER_ATTEMPT > n; test $TRIPHAMMER_ATTEMPT = 2 && touch done; true", &[])
        .expect("accepted", "gates-passed", 2, 0);
    holds(&home, "before");
    let dir = home.only_run().path().to_owned();
    let mut flips = 0;
    for file in files_below(&dir) {
        let whole = std::fs::read(&file).unwrap();
        let name = file.strip_prefix(&dir).unwrap().display().to_string();
        // A journal has the most to lose.
        for _ in 0..if name == "journal.jsonl" { 40 } else { 4 }.min(whole.len()) {
            let mut bytes = whole.clone();
            let at = fastrand::usize(..bytes.len());
            bytes[at] ^= 1 << fastrand::u32(..8);
            std::fs::write(&file, &bytes).unwrap();
            let ran = home.run(["verify", "latest", "--json"]);
            let found = json(&ran);
            let flaws = found["found"]["flaws"].as_array().unwrap();
            let is_named = flaws.iter().any(|flaw| flaw["place"].as_str().unwrap().starts_with(&name));
            assert!(ran.code == Some(1) && is_named, "{name}, byte {at}: {}", ran.stdout);
            flips += 1;
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(flips > 100, "{flips}");
    holds(&home, "after");
    // So is what was added, and what is gone.
    std::fs::write(dir.join("attempts/001/more"), "").unwrap();
    let added = home.run(["verify", "latest"]);
    assert!(added.code == Some(1) && added.stdout.contains("attempts/001/more"), "{}", added.stdout);
    std::fs::remove_file(dir.join("attempts/001/more")).unwrap();
    std::fs::remove_file(dir.join("attempts/001/brief.md")).unwrap();
    let gone = home.run(["verify", "latest"]);
    assert!(
        gone.code == Some(1) && gone.stdout.contains("attempts/001/brief.md: it is gone"),
        "{}",
        gone.stdout
    );
}

/// The places of what does not hold.
fn flaws(home: &TestHome) -> Vec<String> {
    let found = json(&home.run(["verify", "latest", "--json"]));
    let flaws = found["found"]["flaws"].as_array().unwrap();
    flaws.iter().map(|flaw| flaw["place"].as_str().unwrap().to_owned()).collect()
}

/// What a person does with a run afterwards seals it anew; damage stays damage.
#[test]
fn no_act_makes_damage_whole() {
    let accepted = |more: &[&str]| {
        let home = home("test -f done");
        forge(&home, "touch done", more).expect("accepted", "gates-passed", 1, 0);
        home
    };
    let parked = |gate: &str| {
        let home = home(gate);
        let fault = "echo '{\"fault\": {\"kind\": \"quota\"}}' > $TRIPHAMMER_RECEIPT; touch moved";
        let ran = forge(&home, fault, &[]);
        assert_eq!(ran.done()["outcome"], "suspended", "{}", ran.stdout);
        home
    };
    // Red at each first try, green at the second once the work is done.
    let flaky = || {
        let home = TestHome::new();
        let line =
            "n=$(cat $HOME/n || echo 0); echo $((n + 1)) > $HOME/n; test -f done && test $((n % 2)) = 1";
        home.write("gates/check.toml", &pack("shaky", line, "confirm = 1\n"));
        home.write("specs/it.md", SPEC);
        forge(&home, "touch done", &[]).expect("suspended", "needs-review", 1, 5);
        home
    };
    for (home, act) in [
        (accepted(&[]), vec!["undo", "latest"]),
        (accepted(&["--isolate", "copy"]), vec!["apply", "latest"]),
        (parked("false"), vec!["tell", "latest", "go on"]),
        (flaky(), vec!["decide", "latest", "accept", "--why", "seen by eye"]),
    ] {
        let dir = home.only_run().path().to_owned();
        let gone = dir.join("attempts/001/start.fp");
        let gone = if gone.exists() { gone } else { dir.join("attempts/001/movement.json") };
        let gone_place = gone.strip_prefix(&dir).unwrap().display().to_string();
        let brief = dir.join("attempts/001/brief.md");
        let whole = std::fs::read(&brief).unwrap();
        let mut bytes = whole.clone();
        bytes[0] ^= 1;
        std::fs::write(&brief, bytes).unwrap();
        std::fs::write(dir.join("attempts/001/more"), "").unwrap();
        let lost = std::fs::read(&gone).unwrap();
        std::fs::remove_file(&gone).unwrap();
        let places = ["attempts/001/brief.md", "attempts/001/more", gone_place.as_str()];
        for is_done in [false, true] {
            if is_done {
                let ran = home.run(&act);
                assert_eq!(ran.code, Some(0), "{act:?}: {}", ran.stderr);
            }
            let found = flaws(&home);
            for place in places {
                assert!(found.iter().any(|at| at == place), "{act:?}, done: {is_done}: {place} in {found:?}");
            }
        }
        std::fs::write(&brief, whole).unwrap();
        std::fs::write(&gone, lost).unwrap();
        std::fs::remove_file(dir.join("attempts/001/more")).unwrap();
        holds(&home, "put back");
    }
}

/// A resume that finds its pins altered works on nothing, and makes nothing else whole.
#[test]
fn a_run_that_is_ended_for_its_pins_keeps_its_damage() {
    let home = home("false");
    let fault = "echo '{\"fault\": {\"kind\": \"quota\"}}' > $TRIPHAMMER_RECEIPT; touch moved";
    assert_eq!(forge(&home, fault, &[]).done()["outcome"], "suspended");
    let dir = home.only_run().path().to_owned();
    std::fs::write(dir.join("pinned/spec.md"), "another").unwrap();
    std::fs::write(dir.join("attempts/001/brief.md"), "another").unwrap();
    assert_eq!(home.run(["resume", "latest"]).code, Some(1));
    let found = flaws(&home);
    for place in ["pinned/spec.md", "attempts/001/brief.md"] {
        assert!(found.iter().any(|at| at == place), "{place} in {found:?}");
    }
    assert_eq!(home.only_run().summary()["outcome"], "rejected");
}

/// Runs of before there were proofs have none, and lack nothing.
#[test]
fn a_proof_is_missed_where_it_was_sealed() {
    let home = home("test -f done");
    forge(&home, "touch done", &[]).expect("accepted", "gates-passed", 1, 0);
    let run = home.only_run();
    std::fs::remove_file(run.path().join("proof.json")).unwrap();
    assert!(flaws(&home).contains(&"proof.json".to_owned()));
    rewrite_journal(&run, |line| {
        if let Some(artifacts) = line["event"]["artifacts"].as_object_mut() {
            artifacts.remove("proof.json").expect("it is sealed nowadays");
        }
    });
    holds(&home, "older");
    let verified = home.run(["verify", "latest"]);
    assert!(verified.stdout.contains("note  the run has no proof.json"), "{}", verified.stdout);
    // An act seals such a run as it is.
    assert_eq!(home.run(["undo", "latest"]).code, Some(0));
    holds(&home, "older, and undone");
}

#[test]
fn a_tree_that_is_gone_or_damaged_is_named() {
    let home = home("test -f done");
    forge(&home, "echo content of its own > own; touch done", &[]).expect("accepted", "gates-passed", 1, 0);
    let store = home.path().join("runs/.store.git");
    let objects = files_below(&store.join("objects"));
    let mut seen = 0;
    for object in objects.iter().filter(|file| file.extension().is_none()) {
        let whole = std::fs::read(object).unwrap();
        // Of the byte before the checksum some bits mean nothing.
        for at in (0..whole.len()).step_by(5).filter(|at| *at != whole.len() - 5) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::remove_file(object).unwrap();
            std::fs::write(object, &bytes).unwrap();
            let ran = home.run(["verify", "latest", "--deep", "--json"]);
            assert_eq!(ran.code, Some(1), "byte {at} of {}: {}", object.display(), ran.stdout);
            seen += 1;
        }
        // Gone is told without reading anything.
        std::fs::remove_file(object).unwrap();
        let gone = home.run(["verify", "latest"]);
        assert_eq!(gone.code, Some(1), "{}: {}", object.display(), gone.stdout);
        std::fs::write(object, &whole).unwrap();
    }
    assert!(seen > 5, "{seen}");
    holds(&home, "put back");
    std::fs::remove_dir_all(&store).unwrap();
    let gone = home.run(["verify", "latest"]);
    assert!(gone.code == Some(1) && gone.stdout.contains("the trees are gone"), "{}", gone.stdout);
}

#[test]
fn another_decision_is_shown_with_both_sides() {
    let home = home("false");
    forge(&home, "true", &[]).expect("rejected", "stalled", 3, 3);
    // A whole new chain over another last decision: forged, and still not what the machine decides.
    rewrite_journal(&home.only_run(), |line| {
        if line["effects"][0]["type"] == "end" {
            line["effects"][0]["outcome"]["reason"] = "attempts-exhausted".into();
        }
    });
    let ran = home.run(["replay", "latest"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("after `judged`"), "{}", ran.stdout);
    assert!(ran.stdout.contains("attempts-exhausted") && ran.stdout.contains("stalled"), "{}", ran.stdout);
}

#[test]
fn another_policy_ends_sooner_kills_or_cannot_be_known() {
    // The third attempt does it: a breaker that asks for two equal reports would have ended the run before.
    let late = home("test -f done");
    forge(&late, "test $TRIPHAMMER_ATTEMPT = 3 && touch done; true", &[]).expect(
        "accepted",
        "gates-passed",
        3,
        0,
    );
    let killed = json(&late.run(["replay", "latest", "--policy", "breaker.proofs=2", "--json"]));
    assert_eq!(killed["recorded"]["outcome"], "accepted");
    assert_eq!(
        (&killed["would"]["outcome"], &killed["would"]["reason"]),
        (&"rejected".into(), &"stalled".into())
    );
    assert_eq!((&killed["would"]["attempts"], &killed["killed"]), (&2.into(), &true.into()));

    let stalled = home("false");
    forge(&stalled, "true", &["--attempts", "9"]).expect("rejected", "stalled", 3, 3);
    let sooner = json(&stalled.run(["replay", "latest", "--policy", "proofs=2", "--json"]));
    assert_eq!((&sooner["would"]["attempts"], &sooner["saved"]["attempts"]), (&2.into(), &1.into()));
    assert_eq!((&sooner["saved"]["cost_unknown"], &sooner["killed"]), (&1.into(), &false.into()));
    let later = json(&stalled.run(["replay", "latest", "--policy", "breaker.proofs=4", "--json"]));
    assert_eq!((&later["would"]["outcome"], &later["would"]["attempts"]), (&"unknown".into(), &Value::Null));
    assert_eq!((&later["saved"], &later["killed"]), (&Value::Null, &Value::Null));
    let same = json(&stalled.run(["replay", "latest", "--policy", "breaker.movement=stat", "--json"]));
    assert_eq!((&same["would"]["outcome"], &same["would"]["attempts"]), (&"rejected".into(), &3.into()));

    forge(&stalled, "true", &["--attempts", "9"]).expect("rejected", "stalled", 3, 3);
    let all = json(&stalled.run(["replay", "--all", "--json"]));
    assert_eq!((&all["runs"], &all["diverging"]), (&2.into(), &serde_json::json!([])));
    let first = &all["policies"][0];
    assert_eq!(
        (&first["policy"]["proofs"], &first["ended_sooner"], &first["saved"]["attempts"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!(
        first["policy"],
        serde_json::json!({"proofs": 2, "identity": "bytes"}),
        "only what is changed"
    );
    let table = stalled.run(["replay", "--all"]);
    assert!(table.stdout.contains("proofs=2 identity=bytes"), "{}", table.stdout);

    for (policy, why) in [
        ("breaker.prof=2", "did you mean `breaker.proofs`?"),
        ("breaker.proofs=many", "write a whole number from 2 to 50"),
        ("breaker.proofs", "write a whole number"),
    ] {
        let ran = stalled.run(["replay", "latest", "--policy", policy]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{policy}: {}", ran.stderr);
    }
    assert_eq!(stalled.run(["replay", "no-such-run"]).code, Some(1));
    assert_eq!(stalled.run(["replay"]).code, Some(2));
}

/// A change is one of the policy that each run had, not of what a policy is without one.
#[test]
fn over_all_runs_each_keeps_the_policy_that_it_had() {
    let home = home("false");
    home.write("triphammer.toml", "[breaker]\nproofs = 4\n");
    forge(&home, "true", &["--attempts", "9"]).expect("rejected", "stalled", 4, 3);
    home.write("triphammer.toml", "");
    forge(&home, "true", &["--attempts", "9"]).expect("rejected", "stalled", 3, 3);
    let all = json(&home.run(["replay", "--all", "--policy", "breaker.identity=normalised", "--json"]));
    let row = &all["policies"][0];
    assert_eq!((&row["runs"], &row["as_recorded"]), (&2.into(), &2.into()), "{row}");
    assert_eq!(row["policy"], serde_json::json!({"identity": "normalised"}));
    let table = home.run(["replay", "--all", "--policy", "breaker.identity=normalised"]);
    assert!(table.stdout.lines().nth(1).unwrap().starts_with("identity=normalised  2"), "{}", table.stdout);
}

/// A run that died of a broken environment: which of its attempts would have passed?
#[test]
fn the_gates_again_on_each_tree() {
    let home = TestHome::new();
    let tool = home.beside("tool");
    std::fs::write(&tool, "#!/bin/sh\nexit 9\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.write(
        "gates/check.toml",
        &format!(
            "[[gate]]\nname = \"works\"\nkind = \"test\"\nrun = [\"sh\", \"-c\", \"{} && grep -q 2 n\"]\n",
            tool.display()
        ),
    );
    home.write("specs/it.md", SPEC);
    forge(&home, "echo $TRIPHAMMER_ATTEMPT > n", &["--attempts", "3"]).expect(
        "rejected",
        "attempts-exhausted",
        3,
        1,
    );
    let before = files_below(&home.path())
        .into_iter()
        .map(|f| (f.clone(), std::fs::read(f).unwrap()))
        .collect::<Vec<_>>();
    std::fs::write(&tool, "#!/bin/sh\nexit 0\n").unwrap();
    let ran = home.run(["replay", "latest", "--gates", "--json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let all = json(&ran)["attempts"].clone();
    let passes: Vec<bool> =
        all.as_array().unwrap().iter().map(|a| a["now"]["ok"].as_bool().unwrap()).collect();
    assert_eq!(passes, [false, true, false]);
    assert_eq!(all[1]["changed"], serde_json::json!([{"gate": "works", "recorded": "fail", "now": "pass"}]));
    let text = home.run(["replay", "latest", "--gates", "--attempt", "2"]);
    assert!(text.stdout.contains("* works  fail -> pass"), "{}", text.stdout);
    // Another pack, by name and by file.
    home.write(
        "gates/other.toml",
        "[[gate]]\nname = \"other\"\nkind = \"test\"\nrun = [\"grep\", \"-q\", \"3\", \"n\"]\n",
    );
    for gates in ["other", "gates/other.toml"] {
        let ran = home.run(["replay", "latest", "--gates", gates, "--attempt", "3", "--json"]);
        assert_eq!(json(&ran)["attempts"][0]["now"]["ok"], true, "{gates}: {}{}", ran.stdout, ran.stderr);
    }
    std::fs::remove_file(home.path().join("gates/other.toml")).unwrap();
    // Neither record nor workspace was touched, and no tree is left lying about.
    let after = files_below(&home.path())
        .into_iter()
        .map(|f| (f.clone(), std::fs::read(f).unwrap()))
        .collect::<Vec<_>>();
    assert!(before == after);
    assert_eq!(std::fs::read_dir(home.state().join("triphammer/regate")).unwrap().count(), 0);
    for (args, why) in [(["--gates", "none-such"], "none-such"), (["--gates", "no/file.toml"], "file.toml")] {
        let ran = home.run([&["replay", "latest"], &args[..]].concat());
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{why}: {:?} {}", ran.code, ran.stderr);
    }
    let ran = home.run(["replay", "latest", "--gates", "--attempt", "7"]);
    assert!(ran.stderr.contains("attempt 7") && ran.stderr.contains("1, 2, 3"), "{}", ran.stderr);
}

/// What a workspace had beside its tree is there as far as it can be, and what is not is said.
#[test]
fn the_gates_again_have_what_the_workspace_is_set_up_with() {
    let home = home("test -f done && test -f node_modules/made && test -f local.env");
    home.write(
        "triphammer.toml",
        "[workspace]\nsetup = [\"mkdir -p node_modules && touch node_modules/made\"]\ncarry = [\"local.env\"]\n",
    );
    home.write(".gitignore", "local.env\n");
    home.write("local.env", "x\n");
    home.write("node_modules/made", "");
    forge(&home, "touch done", &[]).expect("accepted", "gates-passed", 1, 0);
    // One that was killed left its tree behind; one that still works has its own.
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let regate = home.state().join("triphammer/regate");
    let left = regate.join(format!("{}-some-run-1-abc", dead.id()));
    let others = regate.join(format!("{}-some-run-1-abc", std::process::id()));
    for folder in [&left, &others] {
        std::fs::create_dir_all(folder.join("tree")).unwrap();
    }
    let ran = home.run(["replay", "latest", "--gates", "--json"]);
    let found = json(&ran);
    assert_eq!(found["attempts"][0]["now"]["ok"], true, "{}{}", ran.stdout, ran.stderr);
    assert!(found["notes"].to_string().contains("node_modules"), "{}", found["notes"]);
    let text = home.run(["replay", "latest", "--gates"]);
    assert!(text.stderr.contains("node_modules"), "{}{}", text.stdout, text.stderr);
    assert_eq!((left.exists(), others.exists()), (false, true));
}
