//! What the guard says of commands that nobody asked it about.
//!
//! Where an agent does not ask before it runs a command, its claims are all that there is. They are judged afterwards, and
//! a person is told: nothing is decided from them.

use std::ffi::OsString;
use std::path::Path;

use triphammer_guard::{Irreversible, Place, classify};
use triphammer_model::{GuardReport, Receipt, Reported};

/// Commands of a report that are listed; those beyond are counted.
const LISTED: usize = 100;

/// The place of commands that run in this workspace, in an environment like ours.
pub(crate) fn place_here(workspace: &Path) -> Place {
    let home = std::env::var_os("HOME").map(|home| home.to_string_lossy().into_owned());
    Place::new(workspace.to_string_lossy(), home, std::env::temp_dir().to_string_lossy())
}

/// Commands of a receipt that cannot be undone, as commands that began in the workspace; `None` where there are none.
///
/// `env` is the agent's environment. The folder in which a command ran is not claimed, so that a relative path may lead
/// elsewhere than it looks.
pub fn guard_report(
    receipt: &Receipt,
    workspace: &Path,
    env: &[(OsString, OsString)],
) -> Option<GuardReport> {
    let var = |name: &str| {
        let found = env.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| value.starts_with('/'))
    };
    let temp = var("TMPDIR").unwrap_or_else(|| "/tmp".to_owned());
    let place = Place::new(workspace.to_string_lossy(), var("HOME"), temp);
    let mut report = GuardReport { schema: triphammer_model::SCHEMA, ..GuardReport::default() };
    let claimed = receipt.commands.iter().map(|claim| (claim.command.as_str(), false));
    let refused = receipt.refused.iter().map(|command| (command.as_str(), true));
    for (command, refused) in claimed.chain(refused) {
        let judgement = classify(command, &place);
        report.left_out += u64::try_from(judgement.left_out).unwrap_or(u64::MAX);
        for found in judgement.findings {
            let rule = rule(found.class).to_owned();
            let one = Reported { command: found.command, rule, why: found.why, sure: found.sure, refused };
            if report.reported.contains(&one) {
                continue;
            }
            if report.reported.len() < LISTED { report.reported.push(one) } else { report.left_out += 1 }
        }
    }
    (!report.reported.is_empty()).then_some(report)
}

/// A class as a rule's name. It is written down, so it stays when the guard's own words change.
fn rule(class: Irreversible) -> &'static str {
    match class {
        Irreversible::ForcePush => "guard/forced-push",
        Irreversible::LostWork => "guard/lost-work",
        Irreversible::DeletionOutside => "guard/deletion-outside",
        Irreversible::OverwriteOutside => "guard/overwriting-outside",
        Irreversible::Publish => "guard/publishing",
        Irreversible::Deploy => "guard/deployment",
        Irreversible::DataLoss => "guard/data-loss",
        Irreversible::Machine => "guard/machine",
        _ => "guard/other",
    }
}

#[cfg(test)]
mod tests {
    use triphammer_model::receipt::ClaimedCommand;

    use super::*;

    fn report(ran: &[&str], refused: &[&str]) -> Option<GuardReport> {
        let claim = |command: &&str| ClaimedCommand { command: (*command).to_owned(), exit: Some(0) };
        let receipt = Receipt {
            commands: ran.iter().map(claim).collect(),
            refused: refused.iter().map(|command| (*command).to_owned()).collect(),
            ..Receipt::default()
        };
        let env = [("HOME", "/home/u"), ("TMPDIR", "/scratch")].map(|(n, v)| (n.into(), v.into()));
        guard_report(&receipt, Path::new("/w"), &env)
    }

    #[test]
    fn what_cannot_be_undone_is_reported_once_and_in_its_place() {
        let report = report(
            &[
                "cargo test",
                "git push --force",
                "/bin/bash -lc 'git push --force'",
                "rm -rf target /scratch/x",
                "rm -rf ~/x",
            ],
            &["npm publish", "ls"],
        );
        let report = report.expect("there is something");
        let seen: Vec<_> = report
            .reported
            .iter()
            .map(|r| (r.command.as_str(), r.rule.as_str(), r.sure, r.refused))
            .collect();
        assert_eq!(
            seen,
            [
                ("git push --force", "guard/forced-push", true, false),
                ("rm -rf ~/x", "guard/deletion-outside", true, false),
                ("npm publish", "guard/publishing", true, true),
            ]
        );
        assert_eq!((report.schema, report.left_out), (triphammer_model::SCHEMA, 0));
    }

    #[test]
    fn nothing_to_report_is_no_report() {
        assert_eq!(report(&["cargo test", "echo 'git push --force'", "rm -rf target"], &["ls"]), None);
    }

    #[test]
    fn a_long_report_is_counted() {
        let commands: Vec<String> = (0..130).map(|n| format!("rm -rf /srv/{n}")).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let report = report(&commands, &["npm publish"]).expect("there is something");
        assert_eq!((report.reported.len(), report.left_out), (LISTED, 31));
    }

    #[test]
    fn each_class_has_a_rule() {
        for class in Irreversible::ALL {
            assert_ne!(rule(class), "guard/other", "{class:?}");
        }
    }
}
