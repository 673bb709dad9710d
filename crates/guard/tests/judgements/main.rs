//! Lines and what the guard says of them: one table a class, and what holds of all rows.

mod allowed;
mod data;
mod deletion;
mod deploy;
mod fine;
mod lost_work;
mod machine;
mod opaque;
mod overwrite;
mod publish;
mod push;
mod wrapped;

use triphammer_guard::{Irreversible, Judgement, Place, What, classify};

/// Where the lines run.
pub(crate) fn place() -> Place {
    Place::new("/work/app", Some("/home/me".to_owned()), "/tmp")
}

/// What a row expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing found, nothing opaque.
    Fine,
    /// Found, of this class only.
    Refused(Irreversible),
    /// The same, but it hangs on what only the shell knows.
    Unsure(Irreversible),
    /// Nothing found, but a part could not be judged.
    Opaque(What),
}

/// What was said, in the words of a row; `None` where a row has no words for it.
fn said(judgement: &Judgement) -> Option<Expect> {
    let first = judgement.findings.first();
    match (first, judgement.opaque.first()) {
        (None, None) => Some(Expect::Fine),
        (None, Some(opaque)) => Some(Expect::Opaque(opaque.what)),
        (Some(found), _) if judgement.findings.iter().all(|other| other.class == found.class) => {
            let sure = judgement.findings.iter().any(|found| found.sure);
            Some(if sure { Expect::Refused(found.class) } else { Expect::Unsure(found.class) })
        }
        _ => None,
    }
}

/// Judges all rows, and tells of all that came out otherwise.
pub(crate) fn check(rows: &[(&str, Expect)]) {
    let mut wrong = Vec::new();
    for (line, expected) in rows {
        let judgement = classify(line, &place());
        if said(&judgement) != Some(*expected) {
            wrong.push(format!("{line}\n    expected {expected:?}, got {judgement:?}"));
        }
        let given_up = judgement.opaque.iter().any(|opaque| opaque.what == What::Bounds);
        assert_eq!(judgement.refused(), !judgement.findings.is_empty() || given_up);
        for found in &judgement.findings {
            assert!(!found.command.is_empty() && !found.why.is_empty(), "{line}: {found:?}");
            assert!(!found.command.contains('\0') && !found.why.contains('\0'), "{line}: {found:?}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// All rows of the tables.
pub(crate) fn rows() -> Vec<(&'static str, Expect)> {
    [
        push::ROWS,
        lost_work::ROWS,
        deletion::ROWS,
        overwrite::ROWS,
        publish::ROWS,
        deploy::ROWS,
        data::ROWS,
        machine::ROWS,
        opaque::ROWS,
        fine::ROWS,
    ]
    .concat()
}

#[test]
fn every_class_has_a_name_a_sentence_and_a_refused_row() {
    let rows = rows();
    for class in Irreversible::ALL {
        assert!(!class.to_string().is_empty() && class.sentence().ends_with('.'));
        assert!(rows.iter().any(|(_, expected)| *expected == Expect::Refused(class)), "{class:?}");
    }
    assert!(rows.len() >= 250, "{} rows", rows.len());
}
