//! The pipeline: ranks, policies, blockers, crashes, interrupts.

use std::os::unix::fs::PermissionsExt;

use triphammer_gate::{Gate, Known, PipelinePolicy};
use triphammer_model::process::WaitStatus;

use crate::bench::{Bench, Real, Scripted, gate, gates, shown};

/// A pack in an order that is not that of the ranks.
fn pack(failing: &[&str]) -> Vec<Gate> {
    let one = |name: &str, kind: &str| {
        gate(name, kind, if failing.contains(&name) { "exit 1" } else { "true" }, "")
    };
    gates(
        &[one("t1", "test"), one("b1", "build"), one("s1", "static"), one("b2", "build"), one("e1", "eval")]
            .concat(),
    )
}

fn words(failing: &[&str], policy: PipelinePolicy) -> String {
    let bench = Bench::new();
    let (report, told) = bench.pipeline(&Real, &pack(failing), policy, &Known::default()).unwrap();
    assert_eq!(told.matches('=').count(), 5, "every gate is told: {told}");
    let text = shown(&report);
    text.lines().filter(|l| !l.starts_with(' ')).collect::<Vec<_>>().join(", ")
}

#[test]
fn policies() {
    use PipelinePolicy::{CollectAll, FailFast, Staged};
    let all = "t1: pass, b1: pass, s1: pass, b2: pass, e1: pass";
    for (failing, policy, want) in [
        (&[][..], Staged, all),
        (&["b2", "b1"], Staged, "t1: skip by b1, b1: fail, s1: pass, b2: fail, e1: skip by b1"),
        (&["b2"], Staged, "t1: skip by b2, b1: pass, s1: pass, b2: fail, e1: skip by b2"),
        (&["s1", "t1"], Staged, "t1: skip by s1, b1: skip by s1, s1: fail, b2: skip by s1, e1: skip by s1"),
        (&["b1", "b2"], FailFast, "t1: skip by b1, b1: fail, s1: pass, b2: skip by b1, e1: skip by b1"),
        (&["s1", "t1"], CollectAll, "t1: fail, b1: pass, s1: fail, b2: pass, e1: pass"),
    ] {
        assert_eq!(words(failing, policy), want, "{failing:?} {policy:?}");
    }
}

#[test]
fn ranks_run_in_order_and_are_told() {
    let bench = Bench::new();
    let (_, told) = bench.pipeline(&Real, &pack(&["b1"]), PipelinePolicy::Staged, &Known::default()).unwrap();
    assert_eq!(told, "s1.. s1=Pass b1.. b1=Fail b2.. b2=Pass t1=Skip e1=Skip ");
}

#[test]
fn no_gate_is_no_pass() {
    let bench = Bench::new();
    let (report, _) = bench.pipeline(&Real, &[], PipelinePolicy::Staged, &Known::default()).unwrap();
    assert!(!report.ok);
    assert_eq!(
        shown(&report),
        "forge: fail\n  error forge/no-gates: no gate applies, so that nothing could judge the work\n"
    );
}

#[test]
fn a_crash_is_an_error_and_an_interrupt_has_no_report() {
    let bench = Bench::new();
    let crashing = Scripted::new(|_, call, _| {
        assert!(call > 1, "on purpose");
        WaitStatus::Exited { code: 0 }
    });
    let report = bench.judge(&crashing, &[gate("a", "test", "x", ""), gate("b", "test", "x", "")].concat());
    assert_eq!(shown(&report), "a: error\n  error gate/crashed: `a` crashed inside triphammer\nb: pass\n");

    let raising = Scripted::new(|_, _, cancel| {
        cancel.raise();
        WaitStatus::Cancelled { code: None, signal: Some(15) }
    });
    let run = |s| bench.pipeline(s, &pack(&[]), PipelinePolicy::Staged, &Known::default());
    assert!(run(&raising).is_err());
    assert_eq!(raising.calls(), 1);
    assert!(run(&raising).is_err(), "nothing starts once it is raised");
    assert_eq!(raising.calls(), 1);
}

#[test]
fn shell_pack_checks_every_script() {
    let bench = Bench::new();
    let names = vec!["shell".to_owned()];
    let texts = triphammer_gate::collect(Some(&names), &bench.ws().join("none")).unwrap();
    let packs = triphammer_gate::Packs::parse(&texts, Some(&names)).unwrap();
    let judge =
        || bench.pipeline(&Real, packs.gates(), PipelinePolicy::Staged, &Known::default()).unwrap().0.ok;
    bench.put("a.sh", "#!/bin/sh\necho fine\n");
    bench.put("b c.sh", "#!/bin/bash\na=(1 2)\n");
    bench.put(".hidden/x.sh", "if\n");
    bench.put("node_modules/x.sh", "if\n");
    assert!(judge());
    bench.put("z.sh", "if true\n");
    assert!(!judge());
}

#[test]
fn named_tools_are_found_on_the_gates_own_path() {
    let mut bench = Bench::new();
    bench.put(".local/bin/tool", "#!/bin/sh\nexit 0\n");
    let tool = bench.ws().join(".local/bin/tool");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = bench.ws().join(".local/bin").into_os_string();
    path.push(":/usr/bin:/bin");
    bench.path = Some(path);
    assert_eq!(shown(&bench.judge(&Real, &gate("g", "test", "tool", ""))), "g: pass\n");
}
