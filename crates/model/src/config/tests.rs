use std::collections::BTreeSet;

use std::ffi::OsString;

use crate::policy::{ClaimPolicy, MovementPolicy, Policy};

use super::*;

const FULL: &str = r#"
[run]
agent = ["smith", "second"]
attempts = 7
budget = "2h"
max_cost = 5
max_tokens = 2_000_000
policy = "fail-fast"
judge = "off"
isolate = "worktree"
env = ["CI_NODE", "MODE=a=b"]
retries = 0
retry_backoff = "250ms"
unknown_cost = "ignore"
flaky = "accept"
log_cap = 1048576

[agents.smith]
kind = "command"
argv = ["smith", "--quiet"]
prompt = "arg"
env = ["SMITH_API_KEY"]
timeout = "10m"
continue = true

[agents.second]
kind = "scripted"
script = "specs/roman/session.toml"

[secrets]
names = ["HOUSE_WORD"]

[breaker]
proofs = 4
movement = "stat"

[prices]
"smith-*" = { input = 1.5, output = 6 }

[sandbox]
fence = "bubblewrap"
writable = ["~/.smith", "/opt/smith"]
network = "loopback"
max_processes = 500
max_memory = "8G"

[workspace]
skip = ["out", "gen/**"]
setup = ["npm ci"]
carry = [".env"]
confirm_clean = false
"#;

#[test]
fn reads_everything() {
    let config = Config::parse("triphammer.toml", FULL).unwrap();
    let run = &config.run;
    assert_eq!(run.agent, Some(vec!["smith".into(), "second".into()]));
    assert_eq!((run.attempts, run.retries, run.log_cap), (Some(7), Some(0), Some(1 << 20)));
    assert_eq!((run.max_cost, run.max_tokens), (Some(MicroUsd::new(5_000_000)), Some(2_000_000)));
    assert_eq!((run.policy, run.isolate), (Some(PipelinePolicy::FailFast), Some(Isolation::Worktree)));
    assert_eq!((run.judge, run.flaky), (Some(JudgeMode::Off), Some(FlakyPolicy::Accept)));
    assert_eq!(
        run.env,
        Some(vec![
            EnvEntry::Pass("CI_NODE".to_owned()),
            EnvEntry::Set { name: "MODE".to_owned(), value: "a=b".to_owned() }
        ])
    );
    let smith = &config.agents[&AgentName::from("smith")];
    let argv = vec!["smith".to_owned(), "--quiet".to_owned()];
    assert_eq!(smith.kind, AgentKind::Command { argv, prompt: PromptWay::Arg });
    assert_eq!((smith.timeout, smith.idle_timeout), (Span::minutes(10), DEFAULT_IDLE_TIMEOUT));
    assert!(smith.continue_session);
    let second = &config.agents[&AgentName::from("second")];
    assert_eq!(second.kind, AgentKind::Scripted { script: "specs/roman/session.toml".to_owned() });
    assert_eq!(second.timeout, DEFAULT_TIMEOUT);
    assert_eq!(
        config.breaker.policy(),
        Policy { proofs: 4, movement: MovementPolicy::Stat, ..Policy::default() }
    );
    assert_eq!(config.workspace.confirm_clean, Some(false));
    let price = config.prices["smith-*"];
    assert_eq!((price.cached, price.output), (MicroUsd::new(1_500_000), MicroUsd::new(6_000_000)));
    let sandbox = &config.sandbox;
    assert_eq!(
        (sandbox.fence, sandbox.network),
        (Some(FenceChoice::Bubblewrap), Some(NetworkChoice::Loopback))
    );
    assert_eq!((sandbox.max_processes, sandbox.max_memory), (Some(500), Some(crate::Size::new(8 << 30))));
    let windows = format!("\u{feff}{}", FULL.replace('\n', "\r\n"));
    assert_eq!(Config::parse("triphammer.toml", windows).unwrap(), config);
    assert_eq!(Config::parse("triphammer.toml", "").unwrap(), Config::default());
    let one = Config::parse("x", "[run]\nagent = \"a\"\nmax_cost = 0.1").unwrap();
    assert_eq!((one.run.agent, one.run.max_cost), (Some(vec!["a".into()]), Some(MicroUsd::new(100_000))));
}

/// Each row: the text, and the errors as they are shown.
#[test]
fn names_line_fault_and_cure() {
    let mut shown = Vec::new();
    for text in [
        "[run]\n\natempts = 3\ncolour = 1\n",
        "[rum]\nattempts = 3\n",
        "budget = \"4h\"\n",
        "[run]\nagents = \"a\"\n[agents.x]\nkind = \"command\"\nargv = [\"x\"]\ntime_out = \"1m\"\n",
        "[judge]\nmodel = \"m\"\n",
        "[run]\nattempts = 0\n",
        "[run]\nattempts = \"three\"\n",
        "[run]\nattempts = -1\n",
        "[run]\nattempts = 3\nattempts = 4\n",
        "[run\nattempts = 3\n",
        "[run]\nbudget = \"4 hours\"\n",
        "[run]\nmax_cost = -1\n",
        "[run]\nmax_cost = nan\n",
        "[run]\nmax_cost = \"5\"\n",
        "[run]\npolicy = \"quick\"\n",
        "[run]\nisolate = \"new\"\n",
        "[run]\nagent = []\n",
        "[run]\nagent = [\"a\", \"a\"]\n",
        "[run]\nagent = 3\n",
        "[run]\nagent = [\"a\", 3]\n",
        "[run]\nenv = [\"A\", \"B C=hush\"]\n",
        "[run]\nenv = [\"TRIPHAMMER_RUN=1\"]\n",
        "[run]\nlog_cap = 10\n",
        "[run]\nretries = 100\n",
        "[agents.x]\nkind = \"acp\"\n",
        "[agents.x]\nkind = \"acp\"\nargv = [\"x\"]\nmodel = \"m\"\n",
        "[agents.x]\nkind = \"auto\"\nargv = [\"x\"]\n",
        "[prices]\nm = { input = -1, output = 2 }\n",
        "[prices]\nm = { input = 1, output = 2, cache = 3 }\n",
        "[sandbox]\nfence = \"jail\"\n",
        "[sandbox]\nwritable = [\"cache\", \"/a/../b\"]\n",
        "[sandbox]\nmax_memory = \"8 giga\"\n",
        "[sandbox]\nnetwork = \"some\"\n",
        "[agents.x]\nargv = [\"x\"]\n",
        "\n[agents.x]\nkind = \"command\"\nscript = \"x\"\n",
        "[agents.x]\nkind = \"command\"\nargv = []\n",
        "[agents.x]\nkind = \"scripted\"\n",
        "[agents.x]\nkind = \"scripted\"\nscript = \"s\"\nprompt = \"stdin\"\n",
        "[agents.x]\nkind = \"scripted\"\nscript = \"s\"\ntimeout = \"0s\"\n",
        "[agents.\"a/b\"]\nkind = \"command\"\nargv = [\"x\"]\n",
        "[agents.command]\nkind = \"command\"\nargv = [\"x\"]\n",
        "[secrets]\nnames = [\"hush hush\"]\n",
        "[breaker]\nproofs = 1\n",
        "[breaker]\nclaims = \"some\"\n",
        "[workspace]\nskip = [\"a{\"]\n",
        "[workspace]\ncarry = [\"../x\"]\n",
        "[workspace]\nsetup = [\" \"]\n",
        "run = 3\n",
        "[run]\ncolour = 1\nattempts = 99\nretries = 77\n[agents.x]\nfoo = 1\n[agents.y]\nkind = 3\n",
        "colour = 1\n",
        "agents = 3\nsecrets = 4\nworkspace = 5\nbreaker = 6\n",
        "[run]\nenv = \"A=hush\"\n[secrets]\nnames = \"hush\"\n",
        "[run]\nenv = [\"A=hush]\n",
        "[agents]\nx = 3\n",
        "[run.sub]\nx = 3\n",
    ] {
        shown.push(Config::parse("t.toml", text).expect_err(text).to_string());
    }
    shown.push(Config::parse("t.toml", b"[run]\n# \xff").unwrap_err().to_string());
    let shown = shown.join("\n");
    assert!(!shown.contains("hush"), "a message repeats what may be a secret");
    insta::assert_snapshot!(shown, @r##"
    t.toml:3: unknown key `[run] atempts`; did you mean `attempts`?
    t.toml:4: unknown key `[run] colour`; known are agent, attempts, budget, max_cost, max_tokens, policy, judge, isolate, env, retries, retry_backoff, unknown_cost, flaky, log_cap
    t.toml:1: unknown key `[rum]`; did you mean `run`?
    t.toml:1: unknown key `budget` outside of any section; write `budget` below a line `[run]`
    t.toml:2: unknown key `[run] agents`; did you mean `agent`?
    t.toml:6: unknown key `[agents.x] time_out`; did you mean `timeout`?
    t.toml:1: section `[judge]` is not known to this version of triphammer; remove it
    t.toml:2: `[run] attempts`: `0` does not fit; write a whole number from 1 to 50
    t.toml:2: `[run] attempts`: invalid type: string "three", expected a whole number
    t.toml:2: `[run] attempts`: invalid value: integer `-1`, expected a whole number
    t.toml:3: no valid TOML: duplicate key at `attempts`; mend the line
    t.toml:1: no valid TOML: unclosed table, expected `]`; mend the line
    t.toml:2: `[run] budget`: `4 hours` is not a duration: write a number and a unit, such as 90s, 45m, 4h or 1h30m
    t.toml:2: `[run] max_cost`: no amount of dollars; write a number such as 5.00
    t.toml:2: `[run] max_cost`: no amount of dollars; write a number such as 5.00
    t.toml:2: `[run] max_cost`: invalid type: string "5", expected dollars as a number, such as 5.00
    t.toml:2: `[run] policy`: unknown variant `quick`, expected one of `staged`, `fail-fast`, `collect-all`
    t.toml:2: `[run] isolate`: `new` does not fit; write `in-place`, `worktree` or `copy`
    t.toml:2: `[run] agent`: no agent; write an agent's name, or a list as a fallback chain
    t.toml:2: `[run] agent`: agent `a` twice in the chain; keep one of them
    t.toml:2: `[run] agent`: invalid type: integer `3`, expected an agent's name or a list of names
    t.toml:2: `[run] agent`: invalid type: integer `3`, expected a string
    t.toml:2: `[run] env`: `B C` is no variable; write `NAME` to pass one on, or `NAME=value`
    t.toml:2: `[run] env`: `TRIPHAMMER_RUN` is set by each run itself; remove it
    t.toml:2: `[run] log_cap`: `10` does not fit; write a whole number from 1024 to 1099511627776
    t.toml:2: `[run] retries`: `100` does not fit; write a whole number from 0 to 10
    t.toml:1: `[agents.x]`: kind `acp` needs `argv`; write `argv = ["program", "argument"]`
    t.toml:1: `[agents.x]`: kind `acp` has no `model`; remove the key
    t.toml:1: `[agents.x]`: kind `auto` has no `argv`; remove the key
    t.toml:2: `[prices.m]`: `-1` is no price; write dollars per million tokens, such as 2.50
    t.toml:2: unknown key `[prices.m] cache`; did you mean `cached`?
    t.toml:2: `[sandbox] fence`: unknown variant `jail`, expected one of `auto`, `landlock`, `bubblewrap`, `off`
    t.toml:2: `[sandbox] writable`: `cache` is no place; write an absolute path, or one that begins with ~/
    t.toml:2: `[sandbox] max_memory`: `8 giga` is no size: write a number and a unit, such as 500M or 20G
    t.toml:2: `[sandbox] network`: unknown variant `some`, expected one of `all`, `loopback`, `none`
    t.toml:1: `[agents.x]`: no `kind`; write `kind = "command"`, `kind = "scripted"` or a known agent such as `kind = "claude"`
    t.toml:2: `[agents.x]`: kind `command` has no `script`; remove the key
    t.toml:1: `[agents.x]`: kind `command` needs `argv`; write `argv = ["program", "argument"]`
    t.toml:1: `[agents.x]`: kind `scripted` needs `script`; write `script = "path/from/the/home"`
    t.toml:1: `[agents.x]`: kind `scripted` has no `prompt`; remove the key
    t.toml:1: `[agents.x]`: a timeout of 0 leaves no time to work; write a duration such as 45m
    t.toml:1: `[agents.a/b]`: `a/b` cannot name an agent; use letters, digits, `-`, `_` and `.`, with no dot in front
    t.toml:1: `[agents.command]`: agent `command` is what `--agent-cmd` is called; give this one another name
    t.toml:2: `[secrets] names`: an entry is no variable's name; write names, never values
    t.toml:2: `[breaker] proofs`: `1` does not fit; write a whole number from 2 to 50
    t.toml:2: `[breaker] claims`: unknown variant `some`, expected one of `not-disproved`, `corroborated`, `all`
    t.toml:2: `[workspace] skip`: `a{` is no glob (unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)); write paths or globs below the workspace
    t.toml:2: `[workspace] carry`: `../x` leads out of the workspace; write paths or globs below the workspace
    t.toml:2: `[workspace] setup`: an empty command; remove it
    t.toml:1: `run`: invalid type: integer `3`, expected a section `[run]`
    t.toml:2: unknown key `[run] colour`; known are agent, attempts, budget, max_cost, max_tokens, policy, judge, isolate, env, retries, retry_backoff, unknown_cost, flaky, log_cap
    t.toml:3: `[run] attempts`: `99` does not fit; write a whole number from 1 to 50
    t.toml:4: `[run] retries`: `77` does not fit; write a whole number from 0 to 10
    t.toml:5: `[agents.x]`: no `kind`; write `kind = "command"`, `kind = "scripted"` or a known agent such as `kind = "claude"`
    t.toml:6: unknown key `[agents.x] foo`; known are kind, argv, script, model, api, base_url, key_env, prompt, env, timeout, idle_timeout, continue
    t.toml:8: `[agents.y] kind`: not a word in quotes; write one
    t.toml:1: unknown key `colour` outside of any section; a key stands below its section, such as `[run]`
    t.toml:1: `agents`: invalid type: integer `3`, expected a map
    t.toml:2: `secrets`: invalid type: integer `4`, expected a section `[secrets]`
    t.toml:3: `workspace`: invalid type: integer `5`, expected a section `[workspace]`
    t.toml:4: `breaker`: invalid type: integer `6`, expected a section `[breaker]`
    t.toml:2: `[run] env`: one text does not fit; write a list such as ["NAME"]
    t.toml:4: `[secrets] names`: one text does not fit; write a list such as ["NAME"]
    t.toml:2: no valid TOML: unclosed array, expected `]`; mend the line
    t.toml:2: no valid TOML: invalid basic string, expected `"`; mend the line
    t.toml:2: `[agents] x`: invalid type: integer `3`, expected a section `[agents.NAME]`
    t.toml:1: unknown key `[run.sub]`; known are agent, attempts, budget, max_cost, max_tokens, policy, judge, isolate, env, retries, retry_backoff, unknown_cost, flaky, log_cap
    t.toml:2: the text is not UTF-8 here; save the file as UTF-8
    "##);
}

#[test]
fn layers() {
    let home = "[run]\nattempts = 2\nenv = [\"A\"]\n[agents.x]\nkind = \"command\"\nargv = [\"home\"]\n\
                [secrets]\nnames = [\"B\"]\n[breaker]\nproofs = 2\n[workspace]\nskip = []\n";
    let user = "[run]\nattempts = 9\nbudget = \"1h\"\nenv = [\"B\"]\n[agents.x]\nkind = \"command\"\n\
                argv = [\"user\"]\nenv = [\"KEY\"]\n[agents.y]\nkind = \"command\"\nargv = [\"y\"]\n\
                [secrets]\nnames = [\"A\", \"B\"]\n[breaker]\nproofs = 9\nclaims = \"all\"\n\
                [workspace]\nskip = [\"out\"]\nconfirm_clean = true\n";
    let home = Config::parse("h", home).unwrap();
    let user = Config::parse("u", user).unwrap();
    let both = home.clone().over(user.clone());
    assert_eq!((both.run.attempts, both.run.budget), (Some(2), Some(Span::minutes(60))));
    assert_eq!(both.run.env, home.run.env);
    assert_eq!(
        both.agents[&"x".into()],
        home.agents[&"x".into()],
        "the person's secrets stay with their command"
    );
    assert_eq!(both.agents[&"y".into()], user.agents[&"y".into()]);
    assert_eq!(both.secrets.names, ["A", "B"]);
    assert_eq!(both.breaker.policy(), Policy { proofs: 2, claims: ClaimPolicy::All, ..Policy::default() });
    assert_eq!((both.workspace.skip, both.workspace.confirm_clean), (Some(vec![]), Some(true)));
    assert_eq!(home.clone().over(Config::default()), home);
    assert_eq!(Config::default().over(home.clone()), home);
}

fn env(pairs: &[(&str, &str)]) -> Result<Config, String> {
    let pairs = pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::from_env(pairs).map_err(|e| e.to_string())
}

#[test]
fn reads_the_environment() {
    let config = env(&[
        ("PATH", "/bin"),
        ("TRIPHAMMER_AGENT", "a, b"),
        ("TRIPHAMMER_ATTEMPTS", "3"),
        ("TRIPHAMMER_BUDGET", "1h"),
        ("TRIPHAMMER_MAX_COST", "0.25"),
        ("TRIPHAMMER_MAX_TOKENS", "10"),
        ("TRIPHAMMER_JUDGE", "required"),
        ("TRIPHAMMER_ISOLATE", "copy"),
        ("TRIPHAMMER_FENCE", "off"),
        ("TRIPHAMMER_ATTEMPT", "x"),
        ("TRIPHAMMER_RUN", "x"),
        ("TRIPHAMMER_LOG_LEVEL", "x"),
        ("TRIPHAMMER_SHIM", "x"),
    ])
    .unwrap();
    let run = RunConfig {
        agent: Some(vec!["a".into(), "b".into()]),
        attempts: Some(3),
        budget: Some(Span::minutes(60)),
        max_cost: Some(MicroUsd::new(250_000)),
        max_tokens: Some(10),
        judge: Some(JudgeMode::Required),
        isolate: Some(Isolation::Copy),
        ..RunConfig::default()
    };
    let sandbox = SandboxConfig { fence: Some(FenceChoice::Off), ..SandboxConfig::default() };
    assert_eq!(config, Config { run, sandbox, ..Config::default() });
    assert_eq!(env(&[("TRIPHAMMER_ATTEMPTS", "")]), Ok(Config::default()));
    let errors = env(&[
        ("TRIPHAMMER_ATEMPTS", "3"),
        ("TRIPHAMMER_ATTEMPTS", "51"),
        ("TRIPHAMMER_AGENT", "a,,b"),
        ("TRIPHAMMER_BUDGET", "soon"),
        ("TRIPHAMMER_MAX_COST", "$5"),
        ("TRIPHAMMER_MAX_TOKENS", "-1"),
        ("TRIPHAMMER_JUDGE", "on"),
        ("TRIPHAMMER_ISOLATE", "new"),
    ]);
    insta::assert_snapshot!(errors.unwrap_err(), @r##"
    environment: `TRIPHAMMER_AGENT`: `` is no agent's name; name one of `[agents.NAME]`
    environment: `TRIPHAMMER_ATEMPTS`: unknown; did you mean `TRIPHAMMER_ATTEMPTS`?
    environment: `TRIPHAMMER_ATTEMPTS`: `51` does not fit; set a whole number from 1 to 50
    environment: `TRIPHAMMER_BUDGET`: `soon` is not a duration: write a number and a unit, such as 90s, 45m, 4h or 1h30m
    environment: `TRIPHAMMER_ISOLATE`: `new` does not fit; write `in-place`, `worktree` or `copy`
    environment: `TRIPHAMMER_JUDGE`: `on` does not fit; write `auto`, `required` or `off`
    environment: `TRIPHAMMER_MAX_COST`: `$5` is no amount of dollars: write digits and a point, such as 5.00
    environment: `TRIPHAMMER_MAX_TOKENS`: `-1` does not fit; set a whole number
    "##);
}

#[test]
fn sets_single_policies() {
    let mut policy = Policy::default();
    for (key, value) in [
        ("breaker.proofs", "2"),
        ("movement", "stat"),
        ("breaker.identity", "normalised"),
        ("breaker.claims", "all"),
        ("breaker.infrastructure", "ignore"),
    ] {
        set_policy(&mut policy, key, value).unwrap();
    }
    let words = serde_json::to_string(&policy).unwrap();
    assert_eq!(
        words,
        r#"{"proofs":2,"movement":"stat","identity":"normalised","claims":"all","infrastructure":"ignore"}"#
    );
    let before = policy;
    let mut shown = Vec::new();
    for (key, value) in [("breaker.proof", "2"), ("x", "2"), ("breaker.proofs", "1"), ("claims", "none")] {
        shown.push(set_policy(&mut policy, key, value).unwrap_err().to_string());
    }
    assert_eq!(policy, before);
    insta::assert_snapshot!(shown.join("\n"), @r##"
    unknown policy `breaker.proof`; did you mean `breaker.proofs`?; known are proofs, movement, identity, claims, infrastructure of `breaker`
    unknown policy `x`; known are proofs, movement, identity, claims, infrastructure of `breaker`
    policy `breaker.proofs`: `1` does not fit; write a whole number from 2 to 50
    policy `claims`: `none` does not fit; write `not-disproved`, `corroborated` or `all`
    "##);
}

#[test]
fn the_schema_is_strict_and_complete() {
    let schema = json_schema();
    assert_eq!(schema["additionalProperties"], false);
    for section in ["RunConfig", "AgentConfig", "SecretsConfig", "BreakerConfig", "WorkspaceConfig"] {
        let part = &schema["$defs"][section];
        assert_eq!(part["additionalProperties"], false, "{section}");
        for (key, value) in part["properties"].as_object().unwrap() {
            assert!(value["description"].is_string(), "{section}.{key} has no description");
        }
    }
    // Every key that the full example uses is in the schema.
    let full: toml::Table = FULL.parse().unwrap();
    let run = schema["$defs"]["RunConfig"]["properties"].as_object().unwrap();
    let used: BTreeSet<_> = full["run"].as_table().unwrap().keys().collect();
    assert_eq!(run.keys().collect::<BTreeSet<_>>(), used);
}
