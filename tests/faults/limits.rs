//! Limits, money, output and secrets.

use std::path::Path;

use triphammer_model::{Event, Outcome};
use triphammer_testkit::RunFiles;

use crate::fake::{Fake, agent_ends, end, start, touched};

/// A script that writes a receipt.
fn receipt(json: &str) -> String {
    format!("cat > \"$TRIPHAMMER_RECEIPT\" <<'RECEIPT'\n{json}\nRECEIPT\n")
}

/// The reset time with which the run is parked.
fn parked_until(run: &RunFiles) -> Option<String> {
    run.journal().iter().rev().find_map(|line| {
        line.effects.iter().find_map(|effect| match effect {
            triphammer_model::Effect::End { outcome: Outcome::Suspended { until, .. } } => {
                until.map(|u| u.to_string())
            }
            _ => None,
        })
    })
}

/// A quota that is gone parks the run until its reset: one launch, no charge, the same number when it goes on.
#[test]
fn a_spent_quota_parks_the_run_until_its_reset() {
    for (kind, reason) in [("quota", "quota"), ("rate-limit", "rate-limit")] {
        let fault = format!(r#"{{"fault": {{"kind": "{kind}", "reset_at": "2031-05-06T07:08:09Z"}}}}"#);
        let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
            "fa",
            "",
            &format!("test -f \"$BESIDE/reset\" && {{ touch work.txt; exit; }}\n{}exit 1", receipt(&fault)),
        );
        fake.forge(["--attempts", "1"]).expect("suspended", reason, 0, 5);
        assert_eq!(fake.lines("fa"), ["1"], "{kind}: launched once");
        assert_eq!(parked_until(&fake.run()).as_deref(), Some("2031-05-06T07:08:09Z"), "{kind}");
        let shown = fake.home.run(["show", "latest"]);
        assert!(shown.stdout.contains("2031-05-06"), "{kind}: {}", shown.stdout);
        // Too early: parked again, under the same number, still not charged.
        fake.resume().expect("suspended", reason, 0, 5);
        std::fs::write(fake.beside("reset"), "").unwrap();
        fake.resume().expect("accepted", "gates-passed", 1, 0);
        assert_eq!(fake.lines("fa"), ["1", "1", "1"], "{kind}");
    }
}

/// An overloaded service is tried again a few times within the attempt, then the run is parked.
#[test]
fn an_overload_is_retried_a_bounded_number_of_times() {
    for (kind, reason) in [("overloaded", "overloaded"), ("rate-limit", "rate-limit")] {
        let fault = receipt(&format!(r#"{{"fault": {{"kind": "{kind}"}}}}"#));
        let fake =
            Fake::with_run(&[("works", "false")], "retries = 3").agent("fa", "", &format!("{fault}exit 1"));
        fake.forge([""; 0]).expect("suspended", reason, 0, 5);
        assert_eq!(fake.lines("fa"), ["1"; 4], "{kind}: one launch and three retries of the same attempt");
    }
}

#[test]
fn a_retry_that_succeeds_costs_no_attempt() {
    let fault = receipt(r#"{"fault": {"kind": "overloaded"}}"#);
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        &format!("test $(wc -l < \"$BESIDE/fa\") = 3 && {{ touch work.txt; exit; }}\n{fault}exit 1"),
    );
    fake.forge(["--attempts", "1"]).expect("accepted", "gates-passed", 1, 0);
    let tries: Vec<u32> = agent_ends(&fake.run()).iter().map(|(n, _)| *n).collect();
    assert_eq!(tries, [1, 1, 1]);
    // What the earlier tries said is kept.
    assert!(fake.run().path().join("attempts/001/tries/2/receipt.json").is_file());
}

/// Caps hold at the next border of an attempt: what is known to be spent ends the run.
#[test]
fn caps_end_a_run_that_moves_but_does_not_arrive() {
    for (what, args, usage, launches) in [
        ("money", ["--max-cost", "1.00"], r#"{"cost_usd": 0.5}"#, 2),
        ("money to the cent", ["--max-cost", "0.30"], r#"{"cost_usd": 0.1}"#, 3),
        (
            "tokens",
            ["--max-tokens", "1000"],
            r#"{"tokens": {"input": 100, "cached": 200, "output": 100}}"#,
            3,
        ),
        (
            "more tokens than can be counted",
            ["--max-tokens", "1000"],
            r#"{"tokens": {"input": 18446744073709551615, "output": 18446744073709551615}}"#,
            1,
        ),
        ("one large bill", ["--max-cost", "1"], r#"{"cost_usd": 900}"#, 1),
    ] {
        let fake = Fake::new(&[("works", "false")]).agent(
            "fa",
            "",
            &format!("echo x >> work.txt\n{}", receipt(usage)),
        );
        let ran = fake.forge(args.iter().copied().chain(["--attempts", "20"]));
        assert_eq!(fake.launches("fa"), launches, "{what}: {}", ran.stdout);
        ran.expect("rejected", "budget-exhausted", launches as u64, 4);
    }
}

/// The same caps as settings of the home and of the spec.
#[test]
fn caps_hold_wherever_they_are_set() {
    let usage = receipt(r#"{"cost_usd": 0.5, "tokens": {"input": 500}}"#);
    for (what, keys, front) in [
        ("home, money", "max_cost = 1.0", ""),
        ("home, tokens", "max_tokens = 1000", ""),
        ("spec, money", "", "max_cost: 1.00\n"),
        ("spec, tokens", "", "max_tokens: 1000\n"),
    ] {
        let fake = Fake::with_run(&[("works", "false")], keys).agent(
            "fa",
            "",
            &format!("echo x >> work.txt\n{usage}"),
        );
        fake.spec(front, "");
        let ran = fake.forge([""; 0]);
        assert_eq!(fake.launches("fa"), 2, "{what}");
        ran.expect("rejected", "budget-exhausted", 2, 4);
    }
}

/// Under a cap, what is not known is not nothing: the run is parked until a person agrees.
#[test]
fn an_unknown_cost_under_a_cap_parks_the_run() {
    for (what, args, usage, reason) in [
        ("no receipt", ["--max-cost", "1.00"], None, "cost-unknown"),
        ("no number", ["--max-cost", "1.00"], Some(r#"{"files": []}"#), "cost-unknown"),
        ("a word", ["--max-cost", "1.00"], Some(r#"{"cost_usd": "free"}"#), "cost-unknown"),
        ("a negative one", ["--max-cost", "1.00"], Some(r#"{"cost_usd": -5}"#), "cost-unknown"),
        ("null", ["--max-cost", "1.00"], Some(r#"{"cost_usd": null}"#), "cost-unknown"),
        ("tokens are no money", ["--max-cost", "1.00"], Some(r#"{"tokens": {"input": 1}}"#), "cost-unknown"),
        ("torn", ["--max-cost", "1.00"], Some(r#"{"cost_usd": 0.1"#), "cost-unknown"),
        ("no tokens", ["--max-tokens", "1000"], Some(r#"{"cost_usd": 0.1}"#), "tokens-unknown"),
        ("empty tokens", ["--max-tokens", "1000"], Some(r#"{"tokens": {}}"#), "tokens-unknown"),
    ] {
        let script = format!("echo x >> work.txt\n{}", usage.map(receipt).unwrap_or_default());
        let fake = Fake::new(&[("works", "false")]).agent("fa", "", &script);
        let ran = fake.forge(args);
        assert_eq!(fake.launches("fa"), 1, "{what}: {}", ran.stdout);
        let done = ran.done();
        assert_eq!(
            (done["outcome"].as_str(), done["reason"].as_str()),
            (Some("suspended"), Some(reason)),
            "{what}"
        );
        assert_eq!(ran.code, Some(5), "{what}");
        // Going on is consent to what is unknown so far, and to no more.
        let again = fake.resume();
        assert_eq!((again.code, fake.launches("fa")), (Some(5), 2), "{what}: {}", again.stdout);
    }
}

#[test]
fn without_a_cap_or_with_consent_an_unknown_cost_stops_nobody() {
    for (keys, args) in [("", vec![]), ("unknown_cost = \"ignore\"", vec!["--max-cost", "1.00"])] {
        let fake = Fake::with_run(&[("works", "false")], keys).agent("fa", "", "echo x >> work.txt");
        fake.forge(args).expect("rejected", "attempts-exhausted", 5, 1);
    }
    // Nothing spent is known to be nothing.
    let fake = Fake::new(&[("works", "false")]).agent(
        "fa",
        "",
        &format!("echo x >> work.txt\n{}", receipt(r#"{"cost_usd": 0}"#)),
    );
    fake.forge(["--max-cost", "1.00"]).expect("rejected", "attempts-exhausted", 5, 1);
}

/// Work that is good is accepted, whatever it cost.
#[test]
fn an_acceptance_is_not_lost_to_a_cap() {
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent(
        "fa",
        "",
        &format!("touch work.txt\n{}", receipt(r#"{"cost_usd": 7}"#)),
    );
    fake.forge(["--max-cost", "1.00"]).expect("accepted", "gates-passed", 1, 0);
    let fake = Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", "touch work.txt");
    fake.forge(["--max-cost", "1.00"]).expect("accepted", "gates-passed", 1, 0);
}

/// Bytes that agent and gate print in a flood.
const FLOOD: u64 = 5_000_000_000;
/// Bytes of a stream that are kept on disk.
const CAP: u64 = 64 << 20;
/// Highest resident memory, with room for a build without optimisation.
const MEMORY_KIB: u64 = 40 << 10;

/// Runs to the end and returns the highest resident memory that the kernel saw, in KiB.
fn run_watched(fake: &Fake) -> (triphammer_testkit::Ran, u64) {
    let mut child = start(fake.forge_command([""; 0]));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The kernel's own high-water mark, so that nothing is missed between two looks.
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = peak.max(mark.and_then(|m| m.trim().parse().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (end(child), peak)
}

/// Bytes below a folder, as the disk holds them.
fn disk(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::symlink_metadata(path).unwrap();
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    own + std::fs::read_dir(path).unwrap().map(|e| disk(&e.unwrap().path())).sum::<u64>()
}

/// The number of bytes that a log says it leaves out.
fn left_out(log: &Path) -> u64 {
    let bytes = std::fs::read(log).unwrap();
    let mark = b"\n[triphammer: ";
    let at = bytes.windows(mark.len()).position(|w| w == mark).expect("a marker");
    let text = std::str::from_utf8(&bytes[at + mark.len()..at + mark.len() + 40]).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn flood() -> String {
    format!("yes \"$(printf '%8000s' | tr ' ' y)\" 2>/dev/null | head -c {FLOOD}")
}

#[test]
fn a_flood_from_the_agent_is_bounded_in_memory_and_on_disk() {
    let fake =
        Fake::new(&[("works", "test -f work.txt")]).agent("fa", "", &format!("{}\ntouch work.txt", flood()));
    let (ran, peak) = run_watched(&fake);
    ran.expect("accepted", "gates-passed", 1, 0);
    assert!((1..=MEMORY_KIB).contains(&peak), "{peak} KiB");
    let run = fake.run();
    let log = run.path().join("attempts/001/stdout.log");
    let kept = std::fs::metadata(&log).unwrap().len();
    assert!(kept <= CAP, "{kept}");
    // The marker is counted among what is left out, so that what the file holds of the stream adds up.
    let marker = 96;
    assert_eq!(left_out(&log) + kept - marker, FLOOD);
    assert!(disk(&fake.home.path().join("runs")) <= CAP + (4 << 20));
}

#[test]
fn a_flood_from_a_gate_is_bounded_in_memory_and_on_disk() {
    let gate = format!("test -f work.txt || exit 1; {}; test -f never", flood());
    let fake = Fake::new(&[("floods", &gate)]).agent("fa", "", "touch work.txt");
    fake.spec("attempts: 1\n", "");
    let (ran, peak) = run_watched(&fake);
    ran.expect("rejected", "attempts-exhausted", 1, 1);
    assert!((1..=MEMORY_KIB).contains(&peak), "{peak} KiB");
    let run = fake.run();
    let log = run.path().join("attempts/001/gates/floods.log");
    let kept = std::fs::metadata(&log).unwrap().len();
    assert!(kept <= CAP, "{kept}");
    assert_eq!(left_out(&log) + kept - 96, FLOOD);
    assert!(disk(&fake.home.path().join("runs")) <= CAP + (4 << 20));
    // What a person and the next agent read of it is bounded too.
    assert!(std::fs::metadata(run.path().join("attempts/001/report.json")).unwrap().len() < 64 << 10);
}

/// Both streams, no line end at all, and a cap of the person's own.
#[test]
fn floods_without_a_line_end_are_bounded_by_the_cap_that_is_set() {
    let zeros = "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2";
    let fake = Fake::with_run(&[("works", &format!("{zeros}; test -f work.txt"))], "log_cap = 100000").agent(
        "fa",
        "",
        &format!("{zeros}\ntouch work.txt"),
    );
    fake.forge([""; 0]).expect("accepted", "gates-passed", 1, 0);
    let run = fake.run();
    for log in ["attempts/001/stdout.log", "attempts/001/stderr.log", "attempts/001/gates/works.log"] {
        let path = run.path().join(log);
        let kept = std::fs::metadata(&path).unwrap().len();
        assert!(kept <= 100_000, "{log}: {kept}");
        assert!(left_out(&path) >= 49_900_000, "{log}");
    }
    let words = run.receipt(1).last_words.unwrap_or_default();
    assert!(words.len() <= 1 << 20, "{}", words.len());
}

/// The work itself as a flood: large and many files, text, zeros and holes.
#[test]
fn a_flood_of_files_is_bounded_in_memory_and_in_the_record() {
    let fake = Fake::with_run(&[("works", "test -f work.txt")], "log_cap = 1000000").agent(
        "fa",
        "",
        "yes 'a line of text that repeats itself' | head -c 300000000 > huge.txt
         head -c 20000000 huge.txt > large.txt
         head -c 300000000 /dev/zero > large.bin
         truncate -s 300M hole.bin
         mkdir many; for i in 1 2 3 4 5 6 7 8 9; do seq $i 700000 > many/$i; done
         touch work.txt",
    );
    let (ran, peak) = run_watched(&fake);
    ran.expect("accepted", "gates-passed", 1, 0);
    assert!((1..=MEMORY_KIB).contains(&peak), "{peak} KiB");
    let run = fake.run();
    assert_eq!(touched(&run, 1).len(), 4 + 9 + 1);
    let attempt = run.path().join("attempts/001");
    assert!(disk(&attempt) < 3 << 20, "{}", disk(&attempt));
    let patch = run.text("attempts/001/diff.patch");
    assert!(patch.contains(" more bytes are left out here]"), "the cut is told");
    assert!(patch.contains("b/large.txt differ"), "what is too large to be read is named");
}

/// A receipt as a flood: each attempt writes one as large as is read, and the record stays small.
#[test]
fn a_flood_of_claims_is_bounded_in_the_record() {
    let lists = r#"printf '{"files": ['; i=0
        while test $i -lt 50000; do printf '{"path": "p/%s", "kind": "added"},' $i; i=$((i+1)); done
        printf '{"path": "last", "kind": "added"}]}'"#;
    let message = r#"printf '{"fault": {"kind": "crashed", "message": "'; head -c 7000000 /dev/zero | tr '\0' m; printf '"}}'"#;
    for (what, writer) in [("claims", lists), ("message", message)] {
        let fake = Fake::new(&[("works", "false")]).agent(
            "fa",
            "",
            &format!("{{ {writer}; }} > \"$TRIPHAMMER_RECEIPT\""),
        );
        fake.forge([""; 0]).expect("rejected", "stalled", 3, 3);
        let run = fake.run();
        let size = std::fs::metadata(run.path().join("journal.jsonl")).unwrap().len();
        assert!(size < 128 << 10, "{what}: a journal of {size} bytes");
        let whole = disk(run.path());
        assert!(whole < 24 << 20, "{what}: {whole} bytes in the record");
        let receipt = run.receipt(1);
        let told = match what {
            "claims" => receipt.troubles.iter().any(|t| t.contains("40001 more")),
            _ => receipt.fault.and_then(|f| f.message).is_some_and(|m| m.contains("6998000 more")),
        };
        assert!(told, "{what}: what was left out is told");
    }
}

const KEY: &str = "sk-test-0123456789abcdef\"q";
const PLAIN: &str = "a plain but private value";

/// All files below a folder that hold any of `needles`, the object store aside: a tree holds a file's own bytes.
fn holding(folder: &Path, needles: &[&str], found: &mut Vec<String>, seen: &mut u32) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_none_or(|n| n != ".store.git") {
                holding(&path, needles, found, seen);
            }
            continue;
        }
        *seen += 1;
        let bytes = std::fs::read(&path).unwrap();
        for needle in needles {
            if bytes.windows(needle.len()).any(|w| w == needle.as_bytes()) {
                found.push(format!("{} holds {needle}", path.display()));
            }
        }
    }
}

/// Secrets by name and by configuration, on every way into the record, also in pieces.
#[test]
fn secrets_are_written_nowhere() {
    let json = serde_json::to_string(KEY).unwrap();
    let escaped = json[1..json.len() - 1].to_owned();
    let fake = Fake::with_run(
        &[
            ("leaks", "cat leak.txt; cat leak.txt >&2; test -f done.txt"),
            ("apart", "test -z \"$MY_API_KEY\" || { echo the gate has the key; exit 1; }"),
        ],
        "policy = \"collect-all\"",
    )
    .agent(
        "fa",
        "env = [\"MY_API_KEY\", \"NOTE\"]",
        r#"env
env >&2
printf 'in pieces: '; k=$MY_API_KEY
while test -n "$k"; do rest=${k#?}; printf '%s' "${k%"$rest"}"; k=$rest; sleep 0.02; done; echo
head -c 262140 /dev/zero | tr '\0' x; echo "$MY_API_KEY"
echo "$MY_API_KEY" > leak.txt; echo "$NOTE" >> leak.txt
printf 'a\0%s\0%s' "$MY_API_KEY" "$NOTE" > leak.bin
e=$(printf %s "$MY_API_KEY" | sed 's/"/\\"/g')
printf '{"files": [{"path": "%s", "kind": "added"}], "commands": ["curl -H %s"], "fault": {"kind": "refused", "message": "bad key %s"}}' "$e" "$e" "$e" > "$TRIPHAMMER_RECEIPT"
test $TRIPHAMMER_ATTEMPT = 2 && touch done.txt
tail -c 300 "$TRIPHAMMER_BRIEF" > /dev/null
echo "the key is $MY_API_KEY, the note is $NOTE""#,
    )
    .section("[secrets]\nnames = [\"NOTE\"]");
    let mut command = fake.forge_command([""; 0]);
    command.env("MY_API_KEY", KEY).env("NOTE", PLAIN).env("OTHER_TOKEN", "tok-that-nobody-asked-for");
    let ran = end(start(command));
    ran.expect("accepted", "gates-passed", 2, 0);
    let needles = [KEY, &escaped, PLAIN, "tok-that-nobody-asked-for", "0123456789abcdef\""];
    let mut found = Vec::new();
    let mut seen = 0;
    holding(&fake.home.path().join("runs"), &needles, &mut found, &mut seen);
    assert_eq!(found, [""; 0]);
    assert!(seen > 20, "{seen} files were looked at");
    for needle in needles {
        assert!(!ran.stdout.contains(needle) && !ran.stderr.contains(needle), "printed: {needle}");
    }
    let run = fake.run();
    // Encoded bytes would be the secret all the same.
    let patch = run.text("attempts/001/diff.patch");
    assert!(patch.contains("leak.bin") && !patch.contains("GIT binary patch"), "{patch}");
    for file in ["attempts/001/stdout.log", "attempts/001/stderr.log", "attempts/001/gates/leaks.log"] {
        assert!(run.text(file).contains("[redacted:"), "{file}");
    }
    assert!(run.text("attempts/001/stdout.log").contains("in pieces: [redacted:MY_API_KEY]"));
    assert!(run.brief(2).contains("[redacted:MY_API_KEY]"), "the finding came through, the key did not");
    // Whoever was not given it does not have it.
    assert!(!run.text("attempts/001/stdout.log").contains("OTHER_TOKEN"));
    assert!(!run.journal().iter().any(|l| matches!(l.event, Event::Hindered { .. })));
}
