//! How long something takes, on the wall and on all processors.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Both times, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// Does it; dropping what comes of it is not counted.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (began, cpu_began) = (Instant::now(), cpu());
    let done = work();
    let (wall, cpu) = (began.elapsed(), cpu().saturating_sub(cpu_began));
    (done, Took { wall: ms(wall), cpu: ms(cpu) })
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Of all threads of this process.
fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Of this thread alone.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}
