//! The tick: timestamps that are too fresh to trust are waited out.
//!
//! A file system stamps a change with a clock that advances in ticks of a few milliseconds. A file that changed
//! twice within one tick carries the same time after both, so a look in between would miss the second change. A
//! time that lies before the current tick is safe: every later change carries a later one. So what was stamped in
//! the current tick is looked at again once the clock has passed it.

use std::time::{Duration, Instant};

/// How far ahead of the clock a time may lie and still be waited for. Beyond it the clock was set back, or a
/// program set the time; waiting would not end.
const PATIENCE_NS: i64 = 1_000_000_000;

/// The clock that stamps files, in nanoseconds since 1970.
pub(crate) fn coarse_ns() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Realtime;
    let now = rustix::time::clock_gettime(clock);
    nanos(now.tv_sec, now.tv_nsec)
}

/// Seconds and nanoseconds as nanoseconds; times beyond the year 2262 are held at the end.
pub(crate) fn nanos(sec: impl Into<i64>, nsec: impl TryInto<i64>) -> i64 {
    sec.into().saturating_mul(1_000_000_000).saturating_add(nsec.try_into().unwrap_or(0))
}

/// What a time says, compared with the clock that was read before the stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Every later change will carry a later time.
    Settled,
    /// It was stamped in the current tick, at this time.
    Fresh(i64),
    /// It lies so far ahead that a later change may carry an earlier or the same time.
    Ahead,
}

/// Judges the times of one stat. A modification time ahead of the clock alone is harmless, since anyone can set it
/// and a later change moves the change time as well.
pub(crate) fn freshness(mtime: i64, ctime: i64, clock: i64) -> Freshness {
    if ctime >= clock.saturating_add(PATIENCE_NS) {
        Freshness::Ahead
    } else if mtime >= clock && mtime < clock.saturating_add(PATIENCE_NS) {
        Freshness::Fresh(mtime.max(ctime))
    } else if ctime >= clock {
        Freshness::Fresh(ctime)
    } else {
        Freshness::Settled
    }
}

/// Waits until the stamping clock has passed `time`, and says how long that took.
pub(crate) fn wait_past(time: i64) -> Duration {
    let start = Instant::now();
    loop {
        let behind = time.saturating_sub(coarse_ns());
        if behind < 0 {
            return start.elapsed();
        }
        let nap = u64::try_from(behind).unwrap_or(0).clamp(500_000, 4_000_000);
        std::thread::sleep(Duration::from_nanos(nap));
        // The clock was set back while waiting: what is left is ahead of it, and is treated so.
        if start.elapsed() > Duration::from_secs(3) {
            return start.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_fresh_from_settled() {
        let now = 1_000_000_000_000;
        assert_eq!(freshness(now - 1, now - 1, now), Freshness::Settled);
        assert_eq!(freshness(now - 1, now, now), Freshness::Fresh(now));
        assert_eq!(freshness(now, now - 1, now), Freshness::Fresh(now));
        assert_eq!(freshness(i64::MAX, now + 3, now), Freshness::Fresh(now + 3));
        assert_eq!(freshness(i64::MAX, now - 1, now), Freshness::Settled);
        assert_eq!(freshness(now, now + 5_000_000_000, now), Freshness::Ahead);
    }

    #[test]
    fn waiting_ends_past_the_time() {
        let now = coarse_ns();
        wait_past(now);
        assert!(coarse_ns() > now);
    }
}
