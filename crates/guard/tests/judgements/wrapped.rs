//! What holds of every row: wrapping hides nothing, quoting hides everything, and nothing makes the guard fall over.

use proptest::prelude::*;
use triphammer_guard::parse::{Node, parse};
use triphammer_guard::{classify, tools};

use super::{Expect, place, rows};

/// The text as one word.
fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

fn refused_rows() -> Vec<&'static str> {
    rows()
        .into_iter()
        .filter(|(_, expected)| matches!(expected, Expect::Refused(_) | Expect::Unsure(_)))
        .map(|(line, _)| line)
        .filter(|line| parse(line).trouble.is_none())
        .collect()
}

/// Whether the line is a program with its arguments and nothing else, so that another program can stand in front.
fn is_program(line: &str) -> bool {
    let parsed = parse(line);
    let [Node::Simple(simple)] = parsed.script.nodes.as_slice() else { return false };
    let first = line.split_whitespace().next().unwrap_or_default();
    !simple.words.is_empty()
        && simple.assignments.is_empty()
        && !line.starts_with('\\')
        && !matches!(first, "alias" | "trap" | "a=(1")
}

fn check_refused(line: &str, why: &str) {
    let judgement = classify(line, &place());
    assert!(judgement.refused(), "{why}: {line}: {judgement:?}");
}

#[test]
fn wrapping_a_whole_line_hides_nothing() {
    let rows = refused_rows();
    assert!(rows.len() > 150);
    for line in rows {
        let text = quoted(line);
        for wrapped in [
            format!("sh -c {text}"),
            format!("/bin/bash -lc {text}"),
            format!("bash -euo pipefail -c {text}"),
            format!("env A=1 sh -c {text}"),
            format!("sudo -u root -- sh -c {text}"),
            format!("eval {text}"),
            format!("su - me -c {text}"),
            format!("({line}\n)"),
            format!("{{ {line}\n}}"),
            format!("if true; then {line}\nfi"),
            format!("while x; do {line}\ndone"),
            format!("f() {{ {line}\n}}"),
            format!("case a in a) {line}\n;; esac"),
            format!("x=$({line}\n)"),
            format!("echo \"$({line}\n)\""),
            format!("cat <({line}\n)"),
            format!("true && {line}"),
            format!("false || {{ {line}\n}}"),
            format!("echo a; {line}"),
            format!("echo a\n{line}"),
            format!("echo a & {line}"),
            format!("bash <<'END_OF_ROW'\n{line}\nEND_OF_ROW"),
            format!("echo {text} | sh"),
            format!("watch -n 1 {text}"),
            format!("ssh host {text}"),
            format!("timeout 5 bash -c {text}"),
            format!("sh -c {}", quoted(&format!("sh -c {text}"))),
        ] {
            // `echo` turns `\n` into a new line where the shell does; a row with a backslash means something else then.
            if line.contains('\\') && wrapped.starts_with("echo '") {
                continue;
            }
            // Another machine has no workspace whose paths could be compared.
            if wrapped.starts_with("ssh") && (line.contains("/work/app") || line.contains("..")) {
                continue;
            }
            check_refused(&wrapped, line);
        }
    }
}

#[test]
fn a_program_in_front_hides_nothing() {
    let mut checked = 0;
    for line in refused_rows().into_iter().filter(|line| is_program(line)) {
        for wrapper in [
            "sudo",
            "sudo -u root",
            "sudo -E -n",
            "doas",
            "env",
            "env -i",
            "env -u X A=1",
            "nice",
            "nice -n 5",
            "nice -5",
            "nohup",
            "time",
            "timeout 5",
            "timeout -k 1 5s",
            "stdbuf -oL",
            "setsid",
            "exec",
            "exec -a x",
            "command",
            "ionice -c 3",
            "sudo env X=1 nice",
            "time sudo -E",
            "xargs",
            "xargs -n 1",
            "busybox",
            "then=1",
            "A=b",
            "flock lock",
            "op run --",
            "mise exec --",
            "uv run",
            "!",
            "if true; then :; fi;",
        ] {
            check_refused(&format!("{wrapper} {line}"), line);
        }
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn quoting_a_line_makes_it_data() {
    for line in refused_rows() {
        let text = quoted(line);
        for data in [
            format!("echo {text}"),
            format!("printf '%s' {text}"),
            format!("git commit -m {text}"),
            format!("grep -n {text} x"),
            format!("x={text}"),
            format!("cat > x <<'END_OF_ROW'\n{line}\nEND_OF_ROW"),
            format!("# {}", line.replace('\n', " ")),
        ] {
            let judgement = classify(&data, &place());
            assert!(!judgement.refused(), "{data}: {judgement:?}");
        }
    }
}

#[test]
fn a_line_that_comes_as_a_list_is_the_same_line() {
    for line in refused_rows() {
        let input = serde_json::json!({ "command": ["bash", "-lc", line] });
        let command = tools::command_of("shell", &input).expect("a command");
        check_refused(&command, line);
    }
}

/// Pieces of shell syntax, whole and broken.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "'",
            "\"",
            "`",
            "$(",
            "$((",
            "))",
            ")",
            "(",
            "{",
            "}",
            "${",
            "${x:-",
            "<(",
            ">(",
            "<<E\n",
            "<<-'E'\n",
            "E\n",
            "<<<",
            "&&",
            "||",
            "|",
            "|&",
            ";",
            ";;",
            "&",
            "\n",
            " ",
            "\\",
            "\\\n",
            "if ",
            "then ",
            "fi ",
            "for x in ",
            "do ",
            "done ",
            "case x in ",
            "esac ",
            "function f ",
            "f() ",
            "[[ ",
            " ]]",
            "((",
            "! ",
            "#",
            "~",
            "*",
            "{a,b}",
            "a=(",
            "$'",
            "$x",
            "$",
            "\0",
            "rm -rf / ",
            "git push -f ",
            "sudo ",
            "sh -c ",
            "eval ",
            "find . -exec ",
            "xargs ",
            "cd / ",
            "x=/ ",
            "echo ",
            ">",
            "2>&1",
            "@(",
            "!(",
            "\r\n",
            "é",
            "\u{10ffff}",
            "-",
            "--",
            "=",
            "..",
            "{1..9}",
        ])
        .prop_map(str::to_owned),
        "[a-z/ .-]{0,6}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_make_the_guard_fall_over(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let line = String::from_utf8_lossy(&bytes);
        let judgement = classify(&line, &place());
        prop_assert_eq!(&judgement, &classify(&line, &place()));
    }

    #[test]
    fn no_syntax_makes_the_guard_fall_over(line in soup()) {
        let judgement = classify(&line, &place());
        prop_assert!(judgement.findings.len() + judgement.opaque.len() <= 100);
    }

    #[test]
    fn a_line_break_keeps_what_stands_behind_it(line in soup()) {
        // Where the first line is whole, the second one is judged whatever the first one was.
        let parsed = parse(&line);
        if parsed.trouble.is_some() || line.contains("<<") || line.ends_with('\\') {
            return Ok(());
        }
        let two = format!("{line}\nrm -rf /");
        prop_assert!(classify(&two, &place()).refused(), "{:?}", two);
    }
}
