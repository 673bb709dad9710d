//! `triphammer verify`: whether a run's record holds together.

use serde_json::json;
use triphammer_render::{count, one_line};

use crate::args::VerifyArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::home::Home;
use crate::say;

/// What holding together does not say.
const BOUND: &str = "the chain finds damage, not forgery by someone who can write the whole record anew";

pub(crate) fn verify(args: &VerifyArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::refused)?;
    let verified = triphammer_runner::verify(&runs, &id, args.deep);
    let holds = verified.holds();
    if args.home.json {
        let object = json!({
            "schema": 1, "run": id, "holds": holds, "deep": args.deep, "found": verified, "bound": BOUND,
        });
        say::data(&object.to_string());
    } else {
        for flaw in &verified.flaws {
            say::text(&format!(
                "{}  {}: {}",
                flaw.area,
                one_line(&flaw.place, 300),
                one_line(&flaw.what, 1_000)
            ));
        }
        for note in &verified.notes {
            say::text(&format!("note  {}", one_line(note, 600)));
        }
        say::text(&format!(
            "{} {id}: {}, {}, {}, {} of {}; {BOUND}",
            if holds { "holds" } else { "DOES NOT HOLD" },
            count(verified.lines, "journal line"),
            count(verified.pins, "pinned input"),
            count(verified.artifacts, "artifact"),
            count(verified.trees, "tree"),
            count(verified.blobs, "file"),
        ));
    }
    Ok(if holds { Exit::Done } else { Exit::Refused })
}
