//! What this process uses from one moment to another.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::{Result, account};

/// A beginning.
pub(crate) struct Used {
    began: Instant,
    cpu: Duration,
    kib: u64,
}

impl Used {
    pub(crate) fn begin() -> Result<Self> {
        Ok(Self { began: Instant::now(), cpu: cpu(), kib: account("VmRSS")? })
    }

    /// All threads' processor time, without that of other processes; the peak of memory above what there was.
    pub(crate) fn end(self) -> Result<Value> {
        let (wall, cpu) = (self.began.elapsed(), cpu().saturating_sub(self.cpu));
        let grown = account("VmHWM")?.saturating_sub(self.kib);
        Ok(json!({ "wall_ms": ms(wall), "cpu_ms": ms(cpu), "grown_kib": grown }))
    }
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}
