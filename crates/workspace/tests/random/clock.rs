//! The clock that stamps files, and how long to wait for it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment's pause before something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// At once.
    None,
    /// So many microseconds, less than the clock takes to advance.
    Within(u64),
    /// Until the clock has advanced.
    Past,
}

impl Pause {
    pub(crate) fn random(random: &mut fastrand::Rng) -> Self {
        match random.u8(..16) {
            0..=10 => Self::None,
            11..=13 => Self::Within(random.u64(50..1_500)),
            _ => Self::Past,
        }
    }

    pub(crate) fn take(self) {
        match self {
            Self::None => {}
            Self::Within(micros) => std::thread::sleep(Duration::from_micros(micros)),
            Self::Past => {
                let began = coarse();
                while coarse() == began {
                    std::thread::sleep(Duration::from_micros(500));
                }
            }
        }
    }
}

fn coarse() -> (i64, i64) {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}
