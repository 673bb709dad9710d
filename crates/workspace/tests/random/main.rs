//! The eyes against chance: random work, at random moments, between two looks, and what was seen of it compared with
//! every byte.
//!
//! A sequence makes a few files, looks, works on them, and looks again. Nothing of it may be missed, and nothing may
//! be reported that did not happen: see [`sequence`] for what is compared. `TRIPHAMMER_SEQUENCES` sets how many
//! sequences each place gets, and `TRIPHAMMER_SEED` where their seeds begin; a failure names its seed and the shortest
//! work that still fails. `TRIPHAMMER_PLACE` names the folder to work in, for a file system of one's own.
//!
//! [`hole`] shows what no look at timestamps can see: stores through shared pages, by a process that lives across a
//! look. On tmpfs no time tells of a page that was read before it was stored into, which is why content is compared there.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod act;
#[cfg(test)]
mod arena;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod hole;
#[cfg(test)]
mod mapped;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod sequence;
#[cfg(test)]
mod shrink;
#[cfg(test)]
mod trial;
#[cfg(test)]
mod world;

#[cfg(test)]
use std::path::PathBuf;

/// Sequences for each of the two places.
#[cfg(test)]
const SEQUENCES: u64 = 12_000;

#[cfg(test)]
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a whole number is expected")))
}

#[cfg(test)]
fn check(place: PathBuf) {
    let place = std::env::var_os("TRIPHAMMER_PLACE").map_or(place, PathBuf::from);
    let count = setting("TRIPHAMMER_SEQUENCES").unwrap_or(SEQUENCES);
    let first = setting("TRIPHAMMER_SEED").unwrap_or_else(|| fastrand::u64(..1 << 48));
    match trial::run(&place, first, count) {
        Ok(tally) => println!("{tally}"),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn nothing_is_missed_in_the_temporary_folder() {
    check(std::env::temp_dir());
}

#[test]
fn nothing_is_missed_in_memory() {
    check(PathBuf::from(arena::MEMORY));
}
