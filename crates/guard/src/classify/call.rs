//! A program's start, as the classes look at it.

use super::arg::Arg;
use super::feed::Feed;
use super::judgement::Irreversible;
use super::place::{Place, Spot};
use super::state::State;

/// A program with its arguments, unwrapped.
pub(super) struct Call<'a> {
    /// The program, without its folder.
    pub(super) name: &'a str,
    pub(super) args: &'a [Arg],
    pub(super) place: &'a Place,
    pub(super) state: &'a State,
    pub(super) feed: &'a Feed,
}

/// What a class says of a call.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) class: Irreversible,
    pub(super) why: String,
    pub(super) sure: bool,
}

impl Verdict {
    pub(super) fn sure(class: Irreversible, why: impl Into<String>) -> Self {
        Self { class, why: why.into(), sure: true }
    }
}

impl Call<'_> {
    /// Where a path leads.
    pub(super) fn spot(&self, arg: &Arg) -> Spot {
        spot(self.place, self.state, arg)
    }
}

/// Where a path leads; on another machine only the temporary folder is free.
pub(super) fn spot(place: &Place, state: &State, arg: &Arg) -> Spot {
    let spot = place.spot(state.cwd.as_deref(), arg);
    if !state.elsewhere {
        return spot;
    }
    match spot {
        Spot::Temporary | Spot::Unknown => spot,
        _ => Spot::Outside(arg.shown()),
    }
}
