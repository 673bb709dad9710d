//! Many sequences on many threads. Most of their time is waiting for the clock, so there are more threads than cores.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use triphammer_model::{Change, Content};

use crate::arena::{Arena, file_system};
use crate::plan::{Plan, Verb};
use crate::sequence::{self, Outcome};
use crate::shrink::shrink;

const THREADS: u64 = 16;

/// Sequences after which a thread begins with an empty store again: memory may be small where the store lies.
const LIFE: u64 = 50;

/// From so many sequences on, every verb must have been carried out: a trial of nothing shows nothing.
const ENOUGH: u64 = 2_000;

/// What a trial covered.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    place: String,
    first: u64,
    sequences: u64,
    restored: u64,
    done: BTreeMap<Verb, u64>,
    observed: BTreeMap<(Change, Content), u64>,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.sequences += 1;
        self.restored += u64::from(outcome.restored);
        for verb in &outcome.done {
            *self.done.entry(*verb).or_default() += 1;
        }
        for seen in &outcome.observed {
            *self.observed.entry(*seen).or_default() += 1;
        }
    }

    /// What should have happened and never did.
    fn lacks(&self) -> Option<String> {
        let verb = Verb::ALL.iter().find(|verb| !self.done.contains_key(verb));
        let all = [
            (Change::Added, Content::Changed),
            (Change::Changed, Content::Changed),
            (Change::Changed, Content::Same),
            (Change::Deleted, Content::Changed),
        ];
        let seen = all.iter().find(|seen| !self.observed.contains_key(seen));
        match (verb, seen, self.restored) {
            (Some(verb), ..) => Some(format!("{verb:?} was never carried out")),
            (_, Some(seen), _) => Some(format!("{seen:?} was never observed")),
            (.., 0) => Some("no tree was ever restored".to_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let acts: u64 = self.done.values().sum();
        writeln!(f, "{}: {} sequences from seed {}, {acts} acts", self.place, self.sequences, self.first)?;
        writeln!(f, "done: {:?}", self.done)?;
        write!(f, "observed: {:?}, trees restored: {}", self.observed, self.restored)
    }
}

/// Runs the sequences of `count` seeds from `first` on.
///
/// # Errors
/// The first failure, as short as it can be made.
pub(crate) fn run(place: &Path, first: u64, count: u64) -> Result<Tally, String> {
    let name = format!("{} at {}", file_system(place), place.display());
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let all = Mutex::new((Tally { place: name.clone(), first, ..Tally::default() }, None));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(count) {
            scope.spawn(|| {
                let mut arena = Arena::new(place);
                for done in 1.. {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if done % LIFE == 0 {
                        arena = Arena::new(place);
                    }
                    let seed = first.wrapping_add(number);
                    let plan = Plan::of(seed);
                    match attempt(&arena, &plan) {
                        Ok(outcome) => all.lock().unwrap().0.add(&outcome),
                        Err(what) => {
                            stop.store(true, Ordering::Relaxed);
                            let failure = told(&arena, &name, seed, &plan, &what);
                            all.lock().unwrap().1.get_or_insert(failure);
                        }
                    }
                }
            });
        }
    });
    let (tally, failure) = all.into_inner().unwrap();
    match failure.or_else(|| tally.lacks().filter(|_| count >= ENOUGH)) {
        Some(failure) => Err(failure),
        None => Ok(tally),
    }
}

/// A sequence's outcome; a panic of ours is a failure like any other, so that its seed is told.
fn attempt(arena: &Arena, plan: &Plan) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| sequence::run(arena, plan))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn told(arena: &Arena, place: &str, seed: u64, plan: &Plan, what: &str) -> String {
    let (shortest, now) = shrink(plan, |plan| attempt(arena, plan).err());
    let shortest = match now {
        Some(now) => format!("shortest that still fails:\n{shortest}\n{now}"),
        None => "it did not fail again, so it depends on the moment".to_owned(),
    };
    format!(
        "{place}, seed {seed} (again: TRIPHAMMER_SEED={seed} TRIPHAMMER_SEQUENCES=1)\n{what}\n{plan}\n{shortest}"
    )
}
