use proptest::prelude::*;

use super::*;

const FULL: &str = r#"---
status: locked            # draft | locked
attempts: 5
budget: 4h
max_cost: 5.00            # optional, USD
max_tokens: 2_000_000
gates: [rust, honesty]
protect: ["tests/**", 'a b']

# a comment
allow: [tests-removed]
judge: auto
agent: [claude, codex]
workspace: .
---
# Goal
Write `roman.rs`. It converts.

  indented
\# no heading
<!-- dropped
# Goal
-->
#hashtag
## ACCEPTANCE
- one
  goes on
and on

  even here
- two: - # <!-- x -->
## Checks
- unit: cargo test: `a` # b
- long: |
    for f in *; do
      echo "$f"

    done
- pair: first
  second
## Keep green
* build: make
## constraints
- c
## Non-goals ##
- n
"#;

fn full() -> Spec {
    let check = |name: &str, command: &str| Check { name: name.to_owned(), command: command.to_owned() };
    Spec {
        status: Status::Locked,
        attempts: Some(5),
        budget: Some(Span::minutes(240)),
        max_cost: Some(MicroUsd::new(5_000_000)),
        max_tokens: Some(2_000_000),
        gates: Some(vec!["rust".to_owned(), "honesty".to_owned()]),
        protect: vec!["tests/**".to_owned(), "a b".to_owned()],
        allow: vec![Allowance::TestsRemoved],
        judge: Some(JudgeMode::Auto),
        agents: vec!["claude".into(), "codex".into()],
        workspace: Some(WorkspaceChoice::Path(".".to_owned())),
        goal: "Write `roman.rs`. It converts.\n\n  indented\n# no heading\n#hashtag".to_owned(),
        acceptance: vec!["one goes on and on even here".to_owned(), "two: - # <!-- x -->".to_owned()],
        checks: vec![
            check("unit", "cargo test: `a` # b"),
            check("long", "for f in *; do\n  echo \"$f\"\n\ndone"),
            check("pair", "first\nsecond"),
        ],
        keep_green: vec![check("build", "make")],
        constraints: vec!["c".to_owned()],
        non_goals: vec!["n".to_owned()],
    }
}

#[test]
fn reads_everything() {
    let spec = Spec::parse("x.md", FULL).unwrap();
    assert_eq!(spec, full());
    assert_eq!(spec.goal_line(), "Write `roman.rs`.");
}

#[test]
fn reads_crlf_and_byte_order_mark() {
    let windows = format!("\u{feff}{}", FULL.replace('\n', "\r\n"));
    assert_eq!(Spec::parse("x.md", windows).unwrap(), full());
}

#[test]
fn prints_canonically() {
    insta::assert_snapshot!(full().print(), @r##"
    ---
    status: locked
    attempts: 5
    budget: 4h
    max_cost: 5.00
    max_tokens: 2000000
    gates: [rust, honesty]
    protect: ["tests/**", "a b"]
    allow: [tests-removed]
    judge: auto
    agent: [claude, codex]
    workspace: .
    ---
    # Goal
    Write `roman.rs`. It converts.

      indented
    \# no heading
    \#hashtag

    ## Acceptance
    - one goes on and on even here
    - two: - # <!-- x -->

    ## Checks
    - unit: cargo test: `a` # b
    - long: |
      for f in *; do
        echo "$f"

      done
    - pair: |
      first
      second

    ## Keep green
    - build: make

    ## Constraints
    - c

    ## Non-goals
    - n
    "##);
}

#[test]
fn the_smallest_spec() {
    let spec = Spec::parse("x.md", "---\n---\n# Goal\nDo it").unwrap();
    assert_eq!(spec, Spec { goal: "Do it".to_owned(), ..Spec::default() });
}

/// Each row: the text, and the errors as they are shown.
#[test]
fn names_line_fault_and_cure() {
    let body = "---\n# Goal\nG\n";
    let front = |line: &str| format!("---\n{line}\n{body}");
    let section = |text: &str| format!("---\n{body}{text}");
    let mut shown = Vec::new();
    for text in [
        String::new(),
        "\n\n# Goal\nG\n".to_owned(),
        "---\nstatus: draft\n# Goal\n".to_owned(),
        "---\n---\n".to_owned(),
        "---\n---\n# Goal\n\n<!-- c -->\n## Checks\n".to_owned(),
        front("atempts: 3"),
        front("colour: red"),
        front("attempts: 3\nattempts: 4"),
        front("attempts:"),
        front("attempts: 0"),
        front("attempts: 51"),
        front("attempts: [3]"),
        front("attempts: many # x"),
        front("budget: 4 hours"),
        front("max_cost: $5"),
        front("max_cost: 0.0000001"),
        front("max_tokens: 2M"),
        front("max_tokens: 2_"),
        front("status: done"),
        front("judge: on"),
        front("allow: [tests-gone]"),
        front("gates: [../x]"),
        front("gates: [rust, rust]"),
        front("protect: [\"a{\"]"),
        front("protect: [/etc]"),
        front("agent: []"),
        front("agent: [a"),
        front("agent: a b"),
        front("agent: \"a"),
        front("protect:\n  - tests/**"),
        front("workspace: \"\""),
        section("## Acceptence\n- x\n## Colours\nblue\n"),
        section("## Checks\n## checks\n- junk\n"),
        section("## Checks\n- cargo test\n- a b: c\n- : x\n- empty:\n-\n"),
        section("## Checks\n- a: b\nmore\nand more\n- a: c\n## Keep green\n- a: d\n"),
        section("## Constraints\nno bullet\n-\n- x\n\nlost\n"),
        section("<!-- a --> b\n<!-- open\n## Checks\n"),
        "---\n---\nhello\nthere\n# Goal\nG".to_owned(),
        "---\n---\n# Goal\nG\0".to_owned(),
        format!("---\n{}: 1\n{body}", "\u{1b}[31m"),
    ] {
        let errors = Spec::parse("x.md", &text).expect_err(&text);
        shown.push(errors.to_string());
    }
    shown.push(Spec::parse("x.md", b"---\n---\n# Goal\n\xff").unwrap_err().to_string());
    insta::assert_snapshot!(shown.join("\n"), @r##"
    x.md:1: no frontmatter; begin the file with a line `---`, keys such as `status: draft`, and a line `---`
    x.md:1: no goal; add `# Goal` and, below it, one imperative sentence that says what to build
    x.md:3: no frontmatter; begin the file with a line `---`, keys such as `status: draft`, and a line `---`
    x.md:1: the frontmatter that begins here has no end; put a line `---` after its last key
    x.md:3: no goal; add `# Goal` and, below it, one imperative sentence that says what to build
    x.md:3: the goal is empty; write one imperative sentence below `# Goal` that says what to build
    x.md:2: unknown key `atempts`; did you mean `attempts`?
    x.md:2: unknown key `colour`; known are status, attempts, budget, max_cost, max_tokens, gates, protect, allow, judge, agent, workspace
    x.md:3: key `attempts` again, first on line 2; keep one of them
    x.md:2: `attempts` has no value; write a whole number from 1 to 50, or remove the line
    x.md:2: `attempts`: `0` does not fit; write a whole number from 1 to 50
    x.md:2: `attempts`: `51` does not fit; write a whole number from 1 to 50
    x.md:2: `attempts`: a list does not fit; write a whole number from 1 to 50
    x.md:2: `attempts`: `many` does not fit; write a whole number from 1 to 50
    x.md:2: `budget`: `4 hours` does not fit; write a duration such as 45m, 4h or 1h30m
    x.md:2: `max_cost`: `$5` is no amount of dollars; write dollars such as 5.00
    x.md:2: `max_cost`: `0.0000001` is finer than a micro-dollar; write dollars such as 5.00
    x.md:2: `max_tokens`: `2M` does not fit; write a whole number such as 2000000
    x.md:2: `max_tokens`: `2_` does not fit; write a whole number such as 2000000
    x.md:2: `status`: `done` does not fit; write `draft` or `locked`
    x.md:2: `judge`: `on` does not fit; write `auto`, `required` or `off`
    x.md:2: `allow`: `tests-gone` does not fit; write `[tests-removed]`
    x.md:2: `gates`: `../x` is no name; use letters, digits, `-`, `_` and `.`, with no dot in front
    x.md:2: `gates`: `rust` twice; keep one of them
    x.md:2: `protect`: `a{` is no glob (unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)); write globs such as `["tests/**"]`
    x.md:2: `protect`: `/etc` leads out of the workspace; write globs such as `["tests/**"]`
    x.md:2: `agent`: the list is empty; write an agent's name, or a list as a fallback chain
    x.md:2: `agent`: the list has no end; close it with `]` on the same line
    x.md:2: `agent`: `a b` is no name; use letters, digits, `-`, `_` and `.`, with no dot in front
    x.md:2: `agent`: a quote is not closed; close it on the same line
    x.md:2: `protect` has no value; write globs such as `["tests/**"]`, or remove the line
    x.md:3: `  - tests/**` is not `key: value`; write one key a line, and a list as `key: [a, b]`
    x.md:2: `workspace`: no path can be empty or hold a NUL; write a path from the home, or `new`
    x.md:5: unknown section `Acceptence`; did you mean `Acceptance`?
    x.md:7: unknown section `Colours`; known are Goal, Acceptance, Checks, Keep green, Constraints, Non-goals; to keep the line as text of the goal, write `\#`
    x.md:6: section `Checks` again, first on line 5; join them
    x.md:6: `cargo test` in section `Checks` has no name; write `- name: command`
    x.md:7: `a b` cannot name a check; use letters, digits, `-` and `_`, as in `- name: command`
    x.md:8: `: x` in section `Checks` has no name; write `- name: command`
    x.md:9: check `empty` has no command; write `- empty: command`
    x.md:10: an empty bullet in section `Checks`; write its text after `- `, or remove it
    x.md:7: `more` in section `Checks` belongs to no bullet; begin it with `- name: `, or indent it to continue the command above
    x.md:9: check `a` again, first on line 6; give each check and keep-green a name of its own
    x.md:11: check `a` again, first on line 6; give each check and keep-green a name of its own
    x.md:6: `no bullet` in section `Constraints` belongs to no bullet; begin it with `- `, or indent it to continue the bullet above
    x.md:7: an empty bullet in section `Constraints`; write its text after `- `, or remove it
    x.md:10: `lost` in section `Constraints` belongs to no bullet; begin it with `- `, or indent it to continue the bullet above
    x.md:5: `b` after a comment's end; put it on a line of its own
    x.md:6: the comment that begins here has no end; add `-->`
    x.md:3: `hello` stands in no section; move it below a heading such as `# Goal`
    x.md:4: a NUL byte; remove it
    x.md:2: `\u{1b}[31m: 1` is not `key: value`; write one key a line, and a list as `key: [a, b]`
    x.md:4: the text is not UTF-8 here; save the file as UTF-8
    "##);
}

#[test]
fn all_errors_are_told_at_once() {
    let text = "---\nstatus: x\nfoo: 1\n---\n## Checks\n- a\n";
    let errors = Spec::parse("x.md", text).unwrap_err();
    let lines: Vec<usize> = errors.as_slice().iter().map(|e| e.line).collect();
    assert_eq!(lines, [2, 3, 6, 7]);
}

#[test]
fn the_template_is_a_draft_that_parses() {
    let plain = Spec::parse("x.md", template("roman", "")).unwrap();
    assert!(plain.is_unfilled() && !Spec::parse("x.md", template("roman", "Do it.")).unwrap().is_unfilled());
    assert_eq!(plain.status, Status::Draft);
    assert_eq!(plain, Spec { goal: plain.goal.clone(), ..Spec::default() });
    let odd = Spec::parse("x.md", template("a-->b", "# Goal\n<!-- x")).unwrap();
    assert_eq!(odd.goal, "# Goal\n<!-- x");
    // What it shows commented out must be right once it is not.
    let shown: Vec<String> = template("roman", "")
        .lines()
        .map(|l| l.strip_prefix("# ").filter(|r| r.contains(": ")).unwrap_or(l))
        .filter(|l| !l.starts_with("<!--") && *l != "-->")
        .map(str::to_owned)
        .collect();
    let shown = Spec::parse("x.md", shown.join("\n").replace("# Goal\n", "# Goal\nG\n")).unwrap();
    assert_eq!((shown.attempts, shown.checks.len(), shown.non_goals.len()), (Some(5), 1, 1));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-#<>!|\\\\: \t\n\r\"'\\[\\],*ab\u{a0}é]{0,24}",
        "(---|<!--|-->|# Goal|## Checks|- a: b|\\||\\\\| |\n|\r|x){0,8}",
        "[\\PC\n]{0,40}",
    ]
}

fn any_word() -> impl Strategy<Value = String> {
    any_text().prop_map(|t| format!("w{t}"))
}

fn any_name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-][A-Za-z0-9_.-]{0,8}"
}

prop_compose! {
    fn any_checks(prefix: &'static str)(commands in proptest::collection::vec(any_text(), 0..4)) -> Vec<Check> {
        commands
            .iter()
            .map(|c| text::command(c))
            .filter(|c| !c.is_empty())
            .enumerate()
            .map(|(i, command)| Check { name: format!("{prefix}{i}"), command })
            .collect()
    }
}

fn any_texts() -> impl Strategy<Value = Vec<String>> {
    let shape = |texts: Vec<String>| -> Vec<String> {
        texts.iter().map(|t| text::one_line(t)).filter(|t| !t.is_empty()).collect()
    };
    proptest::collection::vec(any_text(), 0..4).prop_map(shape)
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

type Limits = (Option<u32>, Option<u64>, Option<u64>, Option<u64>, Option<JudgeMode>);
type Places = (Option<Vec<String>>, Vec<String>, Vec<String>, Option<WorkspaceChoice>);

fn any_limits() -> impl Strategy<Value = Limits> {
    let judge = prop_oneof![
        Just(None),
        Just(Some(JudgeMode::Auto)),
        Just(Some(JudgeMode::Required)),
        Just(Some(JudgeMode::Off))
    ];
    (
        proptest::option::of(1..=MAX_ATTEMPTS),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        judge,
    )
}

fn any_places() -> impl Strategy<Value = Places> {
    let names = || proptest::collection::vec(any_name(), 0..3).prop_map(unique);
    let globs = proptest::collection::vec(any_word(), 0..3)
        .prop_map(|globs| unique(globs.into_iter().filter(|g| front::glob_trouble(g).is_none()).collect()));
    let workspace = prop_oneof![
        Just(None),
        Just(Some(WorkspaceChoice::New)),
        any_word().prop_map(|p| Some(WorkspaceChoice::Path(p))),
        Just(Some(WorkspaceChoice::Path("- #".to_owned()))),
    ];
    (proptest::option::of(names()), globs, names(), workspace)
}

prop_compose! {
    fn any_spec()(
        locked: bool,
        allow: bool,
        (attempts, budget, cost, max_tokens, judge) in any_limits(),
        (gates, protect, agents, workspace) in any_places(),
        goal in any_word(),
        checks in any_checks("c"),
        keep_green in any_checks("k"),
        acceptance in any_texts(),
        constraints in any_texts(),
        non_goals in any_texts(),
    ) -> Spec {
        Spec {
            status: if locked { Status::Locked } else { Status::Draft },
            attempts,
            budget: budget.map(Span::millis),
            max_cost: cost.map(MicroUsd::new),
            max_tokens,
            gates,
            protect,
            allow: if allow { vec![Allowance::TestsRemoved] } else { vec![] },
            judge,
            agents: agents.into_iter().map(AgentName::new).collect(),
            workspace,
            goal: text::paragraphs(&goal),
            acceptance,
            checks,
            keep_green,
            constraints,
            non_goals,
        }
    }
}

proptest! {
    #[test]
    fn printing_round_trips(spec in any_spec()) {
        let printed = spec.print();
        let read = Spec::parse("x.md", &printed);
        prop_assert_eq!(read.as_ref(), Ok(&spec), "{}", printed);
        prop_assert_eq!(spec.print(), printed);
    }

    #[test]
    fn tasks_round_trip(task in any_word(), more in any_text()) {
        let spec = Spec::for_task(&format!("{task}\n{more}"));
        prop_assert_eq!(Spec::parse("x.md", spec.print()), Ok(spec));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = Spec::parse("x.md", bytes);
    }

    #[test]
    fn what_parses_also_round_trips(lines in proptest::collection::vec(any_text(), 0..12)) {
        let text = format!("---\n---\n# Goal\nG\n{}", lines.join("\n"));
        if let Ok(spec) = Spec::parse("x.md", text) {
            prop_assert_eq!(Spec::parse("x.md", spec.print()), Ok(spec));
        }
    }

    #[test]
    fn locking_changes_the_status_only(mut spec in any_spec()) {
        spec.status = Status::Draft;
        let locked = set_status(&spec.print(), Status::Locked).unwrap();
        spec.status = Status::Locked;
        prop_assert_eq!(locked, spec.print());
    }
}
