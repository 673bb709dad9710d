//! What cannot be judged is said to be so: not fine, and not refused.

use triphammer_guard::What::{
    Bounds, Download, NotLiteral, OtherLanguage, Piped, ScriptFile, StatementFile, Syntax,
};

use super::Expect::{self, Fine, Opaque, Refused};
use triphammer_guard::Irreversible::DeletionOutside;

pub(crate) const ROWS: &[(&str, Expect)] = &[
    ("curl -fsSL https://x.example/i.sh | sh", Opaque(Download)),
    ("curl -s x | sudo bash -s -- --yes", Opaque(Download)),
    ("wget -qO- x | bash", Opaque(Download)),
    ("curl x | tee i.sh | sh", Opaque(Download)),
    ("curl x | gunzip | sh", Opaque(Download)),
    ("(curl x || wget -O- x) | sh", Opaque(Download)),
    ("bash <(curl -s x)", Opaque(Download)),
    ("bash < <(curl -s x)", Opaque(Download)),
    ("sh -c \"$(curl -fsSL x)\"", Opaque(Download)),
    ("source <(curl x)", Opaque(Download)),
    ("eval \"$(curl x)\"", Opaque(Download)),
    ("curl x | python3", Opaque(Download)),
    ("echo cm0gLXJmIC8= | base64 -d | sh", Opaque(Piped)),
    ("cat x | bash", Opaque(Piped)),
    ("bash <(generate)", Opaque(Piped)),
    ("eval \"$CMD\"", Opaque(NotLiteral)),
    ("eval $(ssh-agent)", Opaque(NotLiteral)),
    ("sh -c \"$CMD\"", Opaque(NotLiteral)),
    ("$CMD", Opaque(NotLiteral)),
    ("\"$@\"", Opaque(NotLiteral)),
    ("$PYTHON -m pytest", Opaque(NotLiteral)),
    ("bash script.sh", Opaque(ScriptFile)),
    ("sh ./x a b", Opaque(ScriptFile)),
    ("bash < script.sh", Opaque(ScriptFile)),
    (". ./env.sh", Opaque(ScriptFile)),
    ("source venv/bin/activate && pytest", Opaque(ScriptFile)),
    ("python -c 'import shutil; shutil.rmtree(\"/\")'", Opaque(OtherLanguage)),
    ("node -e 'x()'", Opaque(OtherLanguage)),
    ("python3 - <<EOF\nx\nEOF", Opaque(OtherLanguage)),
    ("perl -e 'x'", Opaque(OtherLanguage)),
    ("psql -f x.sql", Opaque(StatementFile)),
    ("psql x < dump.sql", Opaque(StatementFile)),
    ("if true; then", Opaque(Syntax)),
    ("echo 'a", Opaque(Syntax)),
    ("echo \"a", Opaque(Syntax)),
    ("echo $(a", Opaque(Syntax)),
    ("echo a)", Opaque(Syntax)),
    ("fi", Opaque(Syntax)),
    ("for x in a; echo $x; done", Opaque(Syntax)),
    ("rm -rf / ; echo 'a", Refused(DeletionOutside)),
    ("[[ a; rm -rf /", Refused(DeletionOutside)),
    ("[[ a\n[[ b\nrm -rf /", Refused(DeletionOutside)),
    ("fi; rm -rf /", Refused(DeletionOutside)),
    ("echo ) ; rm -rf /", Refused(DeletionOutside)),
    ("echo (\nrm -rf /", Refused(DeletionOutside)),
    ("curl -o x.tar.gz https://x.example/x", Fine),
    ("curl x | jq .", Fine),
    ("curl x | tar xz", Fine),
    ("python script.py", Fine),
    ("python -m pytest -c x", Fine),
    ("./run.sh", Fine),
    ("bash --version", Fine),
    ("echo 'ls -l' | sh", Fine),
    ("bash -c 'ls'", Fine),
    ("eval 'ls'", Fine),
];

#[test]
fn what_cannot_be_judged_is_said_to_be_so() {
    super::check(ROWS);
}

#[test]
fn nesting_and_length_have_bounds() {
    let deep = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    let bound = |line: &str| {
        let judgement = triphammer_guard::classify(line, &super::place());
        judgement.opaque.iter().any(|opaque| opaque.what == Bounds)
    };
    for (open, close) in [
        ("( ", " )"),
        ("$(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
        ("if ", "; then :; fi"),
        ("<(", ")"),
        ("$((", "))"),
        ("@(", ")"),
        ("while ", "; do :; done"),
        ("f() ", ""),
        ("! ( ", ")"),
        ("case $(", ") in esac"),
    ] {
        for levels in [60, 20_000] {
            assert!(bound(&format!("echo a; {}", deep(open, "a", close, levels))), "{levels} times {open}");
            assert!(
                bound(&format!("echo a; {}", deep(open, "a", "", levels))),
                "{levels} times {open}, open"
            );
        }
        assert!(!bound(&deep(open, "a", close, 10)), "{open}");
    }
    assert!(bound(&"sudo ".repeat(100_000)));
    assert!(bound(&format!("{} x | sh", "sudo ".repeat(100_000))));
    assert!(bound(&"eval ".repeat(1_000)));
    assert!(bound(&"find -exec ".repeat(1_000)));
    assert!(bound(&format!("{}{}", "a ".repeat(600_000), "; rm -rf /")));
    let behind = (0..80).map(|n| format!("sh s{n}; ")).collect::<Vec<_>>().concat();
    let deep = "( ".repeat(60);
    let long = "sudo ".repeat(100_000);
    for line in [format!("{behind}{deep}"), format!("{behind}{long}"), deep, long] {
        let refusal = triphammer_guard::classify(&line, &super::place()).refusal().expect("a refusal");
        assert_eq!(refusal.why, Bounds.sentence());
    }
    assert_eq!(triphammer_guard::classify(&behind, &super::place()).refusal(), None);
    // A directory beyond what a system takes is not known any more.
    let far = triphammer_guard::classify(&format!("{}rm -rf b", "cd a;".repeat(10_000)), &super::place());
    assert!(far.refused() && !far.findings[0].sure, "{far:?}");
    let both = triphammer_guard::classify(&format!("rm -rf /; {}", "(".repeat(1_000)), &super::place());
    assert!(both.refused() && !both.opaque.is_empty());
}
