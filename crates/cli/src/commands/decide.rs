//! `triphammer decide`: a person's decision about a run that is suspended as needs-review.

use serde_json::json;

use crate::args::{DecideArgs, Decision};
use crate::commands::tell::who;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

pub(crate) fn decide(args: &DecideArgs) -> Outcome {
    if args.why.trim().is_empty() {
        return Err(Failure::usage("--why is empty: say why; it is kept beside the decision"));
    }
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let by = who();
    let accept = args.decision == Decision::Accept;
    let decided = triphammer_runner::decide(&runs, &id, accept, &by, &args.why).map_err(Failure::refused)?;
    let outcome = decided.outcome;
    if args.home.json {
        let object = json!({
            "schema": 1, "run": id, "by": by, "outcome": outcome.word(), "reason": outcome.reason(),
        });
        say::data(&object.to_string());
    } else {
        say::talk(&format!("run {id}: {} by {by}", outcome.word()));
        say::talk(&triphammer_render::next_commands(&id, &outcome, decided.summary.isolation, false));
    }
    Ok(Exit::Done)
}
