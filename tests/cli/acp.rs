//! A server of the Agent Client Protocol through whole runs, played by a shell script.

use rustix::process::Signal;
use triphammer_model::movement::Standing;
use triphammer_model::{Continuation, FaultKind, MicroUsd, WorkPath};
use triphammer_testkit::{Ran, TestHome, wait_until};

use crate::common::{Live, SPEC, left_over};

/// What the gate says of the first attempt's work, and in no other case: the brief shows its command line as well.
const FINDING: &str = "unfriendly: echo grumpy";

/// A gate that a friendly greeting passes.
const GATE: &str = "grep -q friendly hello.sh || { echo \"unfriendly: $(cat hello.sh)\"; exit 1; }";

/// A server that greets and does in a turn what `PROMPT` says. Functions help it: `result JSON` answers, `update JSON`
/// tells, `ask ID METHOD JSON` asks and keeps the answer in `$answer`, `permission ID COMMAND` asks for one. `$line` is
/// the message that it was sent.
const SERVER: &str = r#"
say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\",\"update\":$1}}"; }
ask() { say "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"method\":\"$2\",\"params\":$3}"; read -r answer; }
permission() {
    ask "p-$1" session/request_permission "{\"sessionId\":\"s-1\",\"toolCall\":{\"toolCallId\":\"$1\",\"kind\":\"execute\",\
\"title\":\"shell\",\"rawInput\":{\"command\":\"$2\"}},\"options\":[{\"optionId\":\"all\",\"kind\":\"allow_always\",\
\"name\":\"Always\"},{\"optionId\":\"once\",\"kind\":\"allow_once\",\"name\":\"Once\"},{\"optionId\":\"no\",\
\"kind\":\"reject_once\",\"name\":\"No\"}]}"
}
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%,*}
    case $line in
    *'"method":"initialize"'*) result '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"method":"session/new"'*) result '{"sessionId":"s-1"}' ;;
    *'"method":"session/load"'*)
        update '{"sessionUpdate":"tool_call","toolCallId":"old","kind":"execute","title":"old","status":"completed"}'
        result '{}' ;;
    *'"method":"session/prompt"'*)
        PROMPT
        ;;
    esac
done
"#;

/// A turn that writes a greeting by a shell's heredoc and notes through the client, and is refused what cannot be undone.
const TURN: &str = r#"
case $line in *"unfriendly: echo grumpy"*) greeting=friendly notes=notes-2.md ;; *) greeting=grumpy notes=notes-1.md ;; esac
permission c-1 'cat > hello.sh <<END'
case $answer in *'"optionId":"once"'*) cat > hello.sh <<END
echo $greeting
END
esac
update '{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"completed","rawOutput":{"exit":0}}'
permission c-2 'git push --force'
case $answer in *'"optionId":"no"'*) ;; *) touch pushed ;; esac
update '{"sessionUpdate":"tool_call_update","toolCallId":"c-2","status":"failed"}'
ask w-1 fs/write_text_file "{\"sessionId\":\"s-1\",\"path\":\"$PWD/$notes\",\"content\":\"what was done\\n\"}"
update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"All is done."}}'
update '{"sessionUpdate":"usage_update","used":9,"size":99,"cost":{"amount":0.5,"currency":"USD"}}'
result '{"stopReason":"end_turn"}'
"#;

/// A home whose agent `server` does this in each turn; `more` are lines of its table.
fn home_of(prompt: &str, more: &str) -> TestHome {
    let home = TestHome::with_gates(&[("greeting", GATE)]);
    let script = home.beside("server.sh");
    std::fs::write(&script, SERVER.replace("PROMPT", prompt)).unwrap();
    let config = home.read("triphammer.toml");
    let argv = format!("argv = [\"sh\", \"{}\"]", script.display());
    home.write("triphammer.toml", &format!("{config}\n[agents.server]\nkind = \"acp\"\n{argv}\n{more}"));
    home.write("specs/it.md", SPEC);
    home
}

fn run(home: &TestHome) -> Ran {
    home.forge(["specs/it.md", "--agent", "server", "--attempts", "3"])
}

#[test]
fn a_finding_is_mended() {
    let home = home_of(TURN, "");
    run(&home).expect("accepted", "gates-passed", 2, 0);
    let run = home.only_run();
    for (attempt, notes) in [(1, "notes-1.md"), (2, "notes-2.md")] {
        let movement = run.movement(attempt);
        let path = |name: &str| WorkPath::from_bytes(name.as_bytes());
        let observed: Vec<_> = movement.observed.iter().map(|seen| &seen.path).collect();
        assert_eq!(observed, [&path("hello.sh"), &path(notes)], "attempt {attempt}");
        let claimed: Vec<_> = movement.claimed.iter().map(|claim| (&claim.path, claim.standing)).collect();
        assert_eq!(claimed, [(&path(notes), Standing::Observed)], "what a shell wrote is not claimed");
        let receipt = run.receipt(attempt);
        assert_eq!(receipt.fault, None);
        let commands: Vec<_> = receipt.commands.iter().map(|ran| (ran.command.as_str(), ran.exit)).collect();
        assert_eq!(commands, [("cat > hello.sh <<END", Some(0))], "what was refused was not run");
        assert_eq!(receipt.troubles.len(), 1, "{:?}", receipt.troubles);
        assert!(receipt.troubles[0].starts_with("`git push --force` was not let through: "));
        assert_eq!(
            (receipt.session.as_deref(), receipt.continuation),
            (Some("s-1"), Some(Continuation::Fresh))
        );
        assert_eq!(receipt.stop_reason.as_deref(), Some("end_turn"));
        assert_eq!(receipt.last_words.as_deref(), Some("All is done."));
        assert_eq!((receipt.tokens, receipt.cost.map(MicroUsd::micros)), (None, Some(500_000)));
    }
    assert!(!home.path().join("pushed").exists());
    assert!(run.brief(2).contains(FINDING));
    let log = home.read(format!("runs/{}/attempts/002/stdout.log", run.id()));
    assert!(
        log.contains("\"type\":\"sent\"") && log.contains("\"type\":\"received\""),
        "what was said is kept"
    );
}

#[test]
fn a_session_is_continued() {
    let home = home_of(TURN, "continue = true\n");
    run(&home).expect("accepted", "gates-passed", 2, 0);
    let receipt = home.only_run().receipt(2);
    assert_eq!(receipt.continuation, Some(Continuation::Session { id: "s-1".to_owned() }));
    assert_eq!(receipt.session.as_deref(), Some("s-1"));
    assert!(receipt.commands.iter().all(|ran| ran.command != "old"), "what was replayed is no claim");
}

#[test]
fn a_server_that_does_not_leave_and_what_it_leaves_behind_are_killed() {
    let leave = "(setsid sh -c 'echo $$ > left; exec sleep 1000' >/dev/null 2>&1 &)
        while ! test -s left; do :; done
        echo friendly > hello.sh
        result '{\"stopReason\":\"end_turn\"}'
        echo $$ > server
        exec sleep 1000";
    let home = home_of(leave, "");
    run(&home).expect("accepted", "gates-passed", 1, 0);
    for file in ["left", "server"] {
        let id: u32 = home.read(file).trim().parse().unwrap();
        assert!(!triphammer_testkit::is_alive(id), "{file}");
    }
    assert_eq!(left_over(&home), [0; 0]);
}

#[test]
fn a_server_that_dies_in_its_turn_is_a_crash() {
    let home = home_of("echo 'lost my mind' >&2; exit 7", "");
    let ran = home.forge(["specs/it.md", "--agent", "server", "--attempts", "1"]);
    let run = home.only_run();
    let fault = run.receipt(1).fault.unwrap();
    assert_eq!(fault.kind, FaultKind::Crashed, "{}", ran.stderr);
    let message = fault.message.unwrap_or_default();
    assert_eq!(message, "the server ended (exit status: 7) before it answered `session/prompt`");
    let log = home.read(format!("runs/{}/attempts/001/stderr.log", run.id()));
    assert!(log.contains("lost my mind"), "{log}");
}

#[test]
fn a_server_that_wants_a_login_suspends_the_run() {
    let home = home_of("", "");
    let script = home.beside("server.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    let ways = "result '{\"protocolVersion\":1,\"authMethods\":[{\"id\":\"l\",\"name\":\"Log in\",\"description\":\"Run x\"}]}'";
    let text =
        text.replace("result '{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}'", ways);
    let refused = "say \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"error\\\":{\\\"code\\\":-32000,\\\"message\\\":\\\"Who?\\\"}}\"";
    std::fs::write(&script, text.replace("result '{\"sessionId\":\"s-1\"}'", refused)).unwrap();
    run(&home).expect("suspended", "authentication", 0, 5);
    let message = home.only_run().receipt(1).fault.and_then(|fault| fault.message).unwrap_or_default();
    assert!(message.contains("Who?") && message.contains("Log in (Run x)"), "{message}");
}

#[test]
fn an_interrupt_cancels_the_turn_first() {
    let wait = "trap '' TERM
        touch turn
        while read -r line; do
            case $line in *session/cancel*) touch cancelled; result '{\"stopReason\":\"cancelled\"}' ;; esac
        done";
    let home = home_of(wait, "");
    let turn = home.path().join("turn");
    let live = Live::start(home.command(["run", "--json", "specs/it.md", "--agent", "server"]));
    wait_until("the turn", std::time::Duration::from_mins(1), || turn.exists());
    live.signal(Signal::TERM);
    let (code, done) = live.end();
    assert_eq!(code, Some(130), "{done:?}");
    assert!(home.path().join("cancelled").exists());
    let receipt = home.only_run().receipt(1);
    assert_eq!((receipt.fault, receipt.stop_reason.as_deref()), (None, Some("cancelled")));
    assert_eq!(left_over(&home), [0; 0]);
}

#[test]
fn a_server_that_is_not_there_is_named_before_the_run() {
    let home = home_of("", "");
    let config = home.read("triphammer.toml").replace("\"sh\"", "\"no-such-server\"");
    home.write("triphammer.toml", &config);
    let ran = run(&home);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("its server `no-such-server` is not found"), "{}", ran.stderr);
    let doctor = home.run(["doctor"]);
    assert!(doctor.stdout.contains("its server `no-such-server` is not found"), "{}", doctor.stdout);
}
