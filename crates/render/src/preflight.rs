//! What the gates said about the untouched workspace.

use triphammer_model::event::PreflightFacts;

use crate::text::count;

/// The preflight on one line.
pub fn preflight_line(facts: &PreflightFacts) -> String {
    if facts.gates == 0 {
        return "preflight: no gate applies yet".to_owned();
    }
    let mut parts = vec![count(u64::from(facts.gates), "gate")];
    if facts.green {
        parts.push("all green before any work".to_owned());
    }
    let names = |what: &str, gates: &[triphammer_model::GateName]| {
        let list: Vec<&str> = gates.iter().map(triphammer_model::GateName::as_str).collect();
        format!("{what}: {}", list.join(", "))
    };
    if !facts.red_checks.is_empty() {
        parts.push(names("red, to turn green", &facts.red_checks));
    } else if !facts.green {
        parts.push("no check that could turn green".to_owned());
    }
    if !facts.vacuous.is_empty() {
        parts.push(names("green already, proving nothing", &facts.vacuous));
    }
    if !facts.keep_green_red.is_empty() {
        parts.push(names("cannot be kept green, red now", &facts.keep_green_red));
    }
    if !facts.tools_missing.is_empty() {
        let list: Vec<String> = facts.tools_missing.iter().map(|(g, tool)| format!("{g} ({tool})")).collect();
        parts.push(format!("without their tool: {}", list.join(", ")));
    }
    format!("preflight: {}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_counts() {
        let line = preflight_line(&PreflightFacts {
            gates: 4,
            green: false,
            tools_missing: [("zig-test".into(), "zig".to_owned())].into(),
            vacuous: vec!["accept-a".into()],
            keep_green_red: vec!["keep-b".into()],
            red_checks: vec!["accept-c".into(), "rust-test".into()],
        });
        insta::assert_snapshot!(line, @"preflight: 4 gates; red, to turn green: accept-c, rust-test; green already, proving nothing: accept-a; cannot be kept green, red now: keep-b; without their tool: zig-test (zig)");
        insta::assert_snapshot!(preflight_line(&PreflightFacts::default()), @"preflight: no gate applies yet");
        insta::assert_snapshot!(preflight_line(&PreflightFacts { gates: 1, green: true, ..PreflightFacts::default() }), @"preflight: 1 gate; all green before any work");
    }
}
