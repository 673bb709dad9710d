//! The preflight's facts, grandfathering and the ratchet, end to end.

use triphammer_gate::{Discovered, PackTexts, Packs, PipelinePolicy, applying};
use triphammer_model::Spec;
use triphammer_model::spec::Check;

use crate::bench::{Bench, Real, gate, shown};

fn spec() -> Spec {
    let check = |name: &str, command: &str| Check { name: name.into(), command: command.into() };
    Spec {
        checks: vec![
            check("red", "test -f made"),
            check("vacuous", "true"),
            check("gone", "no-such-tool --check"),
        ],
        keep_green: vec![check("kept", "true"), check("broken", "false")],
        ..Spec::default()
    }
}

#[test]
fn facts() {
    let bench = Bench::new();
    bench.put("a", "");
    let pack = [gate("unit", "test", "exit 1", ""), gate("build", "build", "exit 1", "")].concat();
    let tool = "[[gate]]\nname = \"lint\"\nkind = \"static\"\nrun = [\"no-linter\"]\n";
    let asked = "[[gate]]\nname = \"asked\"\nkind = \"static\"\nrun = [\"no-linter\"]\nprovision = true\n";
    let names = vec!["p".to_owned()];
    let texts = PackTexts::from([("p.toml".to_owned(), [&pack, tool, asked].concat().into_bytes())]);
    let packs = Packs::parse(&texts, Some(&names)).unwrap();
    let gates = applying(&packs, &Discovered::default(), &spec());
    let facts = bench.preflight(&Real, &gates, false).facts;
    let list = |names: &[triphammer_model::GateName]| {
        names.iter().map(|n| n.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((facts.gates, facts.green), (9, false));
    let missing: Vec<String> = facts.tools_missing.iter().map(|(g, t)| format!("{g}={t}")).collect();
    assert_eq!(missing, ["accept-gone=no-such-tool", "lint=no-linter"]);
    assert_eq!(list(&facts.vacuous), "accept-vacuous");
    assert_eq!(list(&facts.keep_green_red), "keep-broken");
    assert_eq!(list(&facts.red_checks), "unit accept-red");
    let facts = bench.preflight(&Real, &gates, true).facts;
    assert_eq!(list(&facts.red_checks), "accept-red", "an empty folder has no test to turn green");
    assert_eq!(bench.preflight(&Real, &[], false).facts, triphammer_model::event::PreflightFacts::default());
}

#[test]
fn what_was_there_is_excused_and_what_is_new_is_not() {
    let bench = Bench::new();
    bench.put("src/old.rs", "fn a() {\n    todo!()\n}\n");
    let names = vec!["honesty".to_owned()];
    let texts = triphammer_gate::collect(Some(&names), &bench.ws().join("none")).unwrap();
    let packs = Packs::parse(&texts, Some(&names)).unwrap();
    let before = bench.preflight(&Real, packs.gates(), false);
    assert!(before.facts.green);
    assert_eq!(before.grandfathered.len(), 1);
    let old = "honesty: pass\n  error honesty/stub-rust: a stub stands where code should be @ src/old.rs:2:5 (Grandfathered)\n";
    assert_eq!(shown(&before.report), old);

    // It survives storage, as a resumed run needs it.
    let stored = serde_json::from_str(&serde_json::to_string(&before.grandfathered).unwrap()).unwrap();
    bench.put("src/old.rs", "//! Moved down.\nfn a() {\n    todo!()\n}\n");
    bench.put("src/new.rs", "fn b() { todo!() }\n");
    let (report, _) = bench.pipeline(&Real, packs.gates(), PipelinePolicy::Staged, &stored).unwrap();
    assert_eq!(
        shown(&report),
        "honesty: fail\n  error honesty/stub-rust: a stub stands where code should be @ src/new.rs:1:10\n  error honesty/stub-rust: a stub stands where code should be @ src/old.rs:3:5 (Grandfathered)\n"
    );
    assert_eq!(report.facts().findings, 1);
}

#[test]
fn the_committed_baseline_excuses_by_its_own_name() {
    let bench = Bench::new();
    let home = tempfile::tempdir().unwrap();
    bench.put("a.rs", "fn a() { todo!() }\n");
    let names = vec!["honesty".to_owned()];
    let load = || {
        let texts = triphammer_gate::collect(Some(&names), home.path()).unwrap();
        Packs::parse(&texts, Some(&names)).unwrap()
    };
    let first = bench.preflight(&Real, load().gates(), false);
    let files = triphammer_gate::WorkFiles::walk(&bench.ws());
    let known = triphammer_gate::collect_known(&first.report, &files, load().gates());
    triphammer_gate::write_baseline(&home.path().join(triphammer_gate::BASELINE), &known, false).unwrap();
    let packs = load();
    let got = bench.with(&Real, |ctx| {
        triphammer_gate::preflight(ctx, packs.gates(), packs.baseline(), false, &|_| {}).unwrap()
    });
    assert!(shown(&got.report).contains("(Baseline)"), "{}", shown(&got.report));
    let rule = std::fs::read_to_string(home.path().join(triphammer_gate::BASELINE)).unwrap();
    assert!(rule.contains("\"line\": \"fn a() { todo!() }\""), "{rule}");
}
