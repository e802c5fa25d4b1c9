use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use warptrace_format::file::ClockReading;

use crate::Device;

/// Clock comparisons in a row; the narrowest one is used.
const READINGS: usize = 4;

/// A time of the host's clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The real-time clock, since 1970-01-01 UTC.
    pub realtime: u64,
    /// The monotonic clock.
    pub monotonic: u64,
}

/// Source of host time.
#[derive(Clone, Debug, Default)]
pub enum HostClock {
    /// The system clocks.
    #[default]
    System,
    /// A clock that advances with each reading, for tests.
    Steps(Steps),
}

/// A clock that advances by one step with each reading.
#[derive(Clone, Debug)]
pub struct Steps {
    start: Moment,
    step: u64,
    reads: Arc<AtomicU64>,
}

impl HostClock {
    /// Returns a clock that starts at `start` and advances by `step` nanoseconds with each reading.
    pub fn steps(start: Moment, step: u64) -> Self {
        Self::Steps(Steps { start, step, reads: Arc::default() })
    }

    /// Reads the clocks.
    pub fn now(&self) -> Moment {
        match self {
            Self::System => system(),
            Self::Steps(Steps { start, step, reads }) => {
                let since = step * reads.fetch_add(1, Relaxed);
                Moment { realtime: start.realtime + since, monotonic: start.monotonic + since }
            }
        }
    }

    /// Compares the clocks with the device's timer, if readable, a few times; returns the narrowest result.
    pub fn compare(&self, device: &mut dyn Device) -> ClockReading {
        let mut best: Option<ClockReading> = None;
        for _ in 0..READINGS {
            let before = self.now();
            let Some(timer) = device.clocks(false).ok().and_then(|clocks| clocks.timer) else {
                let Moment { realtime, monotonic } = before;
                return ClockReading { realtime, monotonic, timer: None, width: 0 };
            };
            let width = self.now().monotonic.saturating_sub(before.monotonic);
            if best.is_none_or(|best| width < best.width) {
                let [realtime, monotonic] = [before.realtime, before.monotonic].map(|time| time + width / 2);
                best = Some(ClockReading { realtime, monotonic, timer: Some(timer), width });
            }
        }
        best.expect("they were compared at least once")
    }
}

#[cfg(unix)]
fn system() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    let monotonic = clock_gettime(ClockId::Monotonic);
    let monotonic = (monotonic.tv_sec as u64).saturating_mul(1_000_000_000) + monotonic.tv_nsec as u64;
    Moment { realtime: realtime(), monotonic }
}

#[cfg(not(unix))]
fn system() -> Moment {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed().as_nanos();
    Moment { realtime: realtime(), monotonic: u64::try_from(since).unwrap_or(u64::MAX) }
}

fn realtime() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_clocks_go_on() {
        let [first, second] = [HostClock::System.now(), HostClock::System.now()];
        assert!(first.monotonic <= second.monotonic);
        // After 2020-01-01.
        assert!(first.realtime > 1_577_836_800_000_000_000);
    }

    #[test]
    fn a_clock_of_steps_is_shared_by_its_copies() {
        let clock = HostClock::steps(Moment { realtime: 1_000, monotonic: 5 }, 10);
        let copy = clock.clone();
        assert_eq!(clock.now(), Moment { realtime: 1_000, monotonic: 5 });
        assert_eq!(copy.now(), Moment { realtime: 1_010, monotonic: 15 });
        assert_eq!(clock.now(), Moment { realtime: 1_020, monotonic: 25 });
    }
}
