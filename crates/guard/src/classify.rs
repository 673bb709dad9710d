//! A line judged: what in it cannot be undone.

mod allow;
mod arg;
mod builtins;
mod call;
mod carriers;
mod classes;
mod command;
mod expand;
mod feed;
mod judgement;
mod options;
mod place;
mod shells;
mod state;
mod unknown_name;
mod walk;
mod wrappers;

pub use allow::{Allow, AllowError};
pub use judgement::{Found, Irreversible, Judgement, LISTED, Opaque, Refusal, What};
pub use place::Place;

use feed::Feed;
use state::State;
use walk::Judge;

/// Judges a line.
pub fn classify(line: &str, place: &Place) -> Judgement {
    classify_allowing(line, place, &Allow::default())
}

/// Judges a line but for the simple commands that a person has allowed.
pub fn classify_allowing(line: &str, place: &Place, allow: &Allow) -> Judgement {
    let mut judge = Judge::new(place, allow);
    let mut state = State::new(&place.cwd);
    judge.line(line, &mut state, &Feed::Terminal);
    judge.judgement
}
