//! When launches ran by the host's clocks.

use std::collections::BTreeMap;

use warptrace_format::file::{ClockReading, HostLaunch};

use crate::file::TraceFile;

/// What a file says of the host's clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) launches: BTreeMap<u32, HostLaunch>,
    pub(crate) readings: Vec<ClockReading>,
}

/// A moment of the device's global timer by the host's real-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnHost {
    /// Nanoseconds since 1970-01-01 UTC.
    pub realtime: u64,
    /// By how much it may be off, as far as readings of both clocks took time; what the clocks do between two
    /// readings is not known.
    pub within: u64,
}

impl TraceFile {
    /// Returns when a launch ran by the host's clocks; `None` if the file does not say.
    pub fn host_launch(&self, launch: u32) -> Option<&HostLaunch> {
        self.host.launches.get(&launch)
    }

    /// Goes through the launches of which the file says when they ran by the host's clocks, by number.
    pub fn host_launches(&self) -> impl ExactSizeIterator<Item = &HostLaunch> {
        self.host.launches.values()
    }

    /// Returns the readings of the host's clocks and the device's timer, in the order of the file.
    pub fn clock_readings(&self) -> &[ClockReading] {
        &self.host.readings
    }

    /// Puts a moment of the device's global timer on the host's real-time clock: between the first and the
    /// last reading of both in proportion, else at their distance from the nearer one. `None` if they were
    /// never read together, as on the simulator.
    pub fn on_host(&self, timer: u64) -> Option<OnHost> {
        let mut both = self.host.readings.iter().filter_map(|reading| Some((reading.timer?, reading)));
        let first = both.next()?;
        let last = both.next_back().unwrap_or(first);
        let within = first.1.width.max(last.1.width).div_ceil(2);
        let (near, length) = if timer > last.0 { (last, 0) } else { (first, last.0.saturating_sub(first.0)) };
        let since = i128::from(timer) - i128::from(near.0);
        let since = if length > 0 && since >= 0 {
            let host = i128::from(last.1.realtime) - i128::from(first.1.realtime);
            // Both are below 2^64.
            since.saturating_mul(host) / i128::from(length)
        } else {
            since
        };
        let realtime = (i128::from(near.1.realtime) + since).max(0);
        Some(OnHost { realtime: u64::try_from(realtime).unwrap_or(u64::MAX), within })
    }
}
