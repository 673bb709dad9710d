//! The table of faults in the documents says what the decisions do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use triphammer_forge::{FaultAction, action_for};
use triphammer_model::{FaultKind, SuspendReason, TakeOver};

const BEGIN: &str = "<!-- made from the decisions: begin -->\n";
const END: &str = "<!-- made from the decisions: end -->\n";

fn told(action: FaultAction) -> String {
    let again = "again after a pause, `retries` times, not charged";
    match action {
        FaultAction::RetryThenCount => format!("{again}; then the attempt counts"),
        FaultAction::RetryThenPark(reason) => format!("{again}; then parked as `{reason}`"),
        FaultAction::ParkOrTakeOver(reason, why) => {
            let same = matches!(
                (reason, why),
                (SuspendReason::Authentication, TakeOver::Authentication)
                    | (SuspendReason::Quota, TakeOver::Quota)
            );
            assert!(same, "who waits and who takes over do so for one reason: {reason}, {why:?}");
            format!("parked as `{reason}`, not charged; the next agent of a chain takes over instead")
        }
        FaultAction::Park(reason) => format!("parked as `{reason}`, not charged"),
        FaultAction::Count => "the attempt counts".to_owned(),
    }
}

fn table() -> String {
    let mut text = "| fault | what it does | where its reset time is known |\n|---|---|---|\n".to_owned();
    for kind in FaultKind::ALL {
        let (plain, dated) = (told(action_for(kind, false)), told(action_for(kind, true)));
        let dated = if dated == plain { "the same".to_owned() } else { dated };
        writeln!(text, "| `{}` | {plain} | {dated} |", kind.word()).unwrap();
    }
    text
}

#[test]
fn the_documents_have_the_table_that_decides() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents/faults.md");
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (_, rest) = text.split_once(BEGIN).expect("the mark of its beginning");
    let (kept, _) = rest.split_once(END).expect("the mark of its end");
    assert_eq!(kept, table(), "put this between the marks in {file}:\n{}", table());
}
