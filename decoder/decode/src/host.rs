//! Times of launches by the host's clocks.

use std::collections::BTreeMap;

use warptrace_format::file::{ClockReading, HostLaunch};

use crate::file::TraceFile;

#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) launches: BTreeMap<u32, HostLaunch>,
    pub(crate) readings: Vec<ClockReading>,
}

/// A time of the device's global timer, on the host's real-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnHost {
    /// Nanoseconds since 1970-01-01 UTC.
    pub realtime: u64,
    /// Maximum error in nanoseconds due to the duration of clock readings. Excludes drift between readings.
    pub within: u64,
}

impl TraceFile {
    /// Returns the host times of a launch; `None` if the file has none.
    pub fn host_launch(&self, launch: u32) -> Option<&HostLaunch> {
        self.host.launches.get(&launch)
    }

    /// Returns the launches with host times, by number.
    pub fn host_launches(&self) -> impl ExactSizeIterator<Item = &HostLaunch> {
        self.host.launches.values()
    }

    /// Returns the readings of the host's clocks and the device's timer, in file order.
    pub fn clock_readings(&self) -> &[ClockReading] {
        &self.host.readings
    }

    /// Converts a time of the device's global timer to the host's real-time clock. Interpolates linearly
    /// between the first and the last reading of both clocks; outside, adds the distance to the nearer
    /// reading. Returns `None` if the two were never read together, as on the simulator.
    pub fn on_host(&self, timer: u64) -> Option<OnHost> {
        let mut both = self.host.readings.iter().filter_map(|reading| Some((reading.timer?, reading)));
        let first = both.next()?;
        let last = both.next_back().unwrap_or(first);
        let within = first.1.width.max(last.1.width).div_ceil(2);
        let (near, length) = if timer > last.0 { (last, 0) } else { (first, last.0.saturating_sub(first.0)) };
        let since = i128::from(timer) - i128::from(near.0);
        let since = if length > 0 && since >= 0 {
            let host = i128::from(last.1.realtime) - i128::from(first.1.realtime);
            // Both factors are below 2^64.
            since.saturating_mul(host) / i128::from(length)
        } else {
            since
        };
        let realtime = (i128::from(near.1.realtime) + since).max(0);
        Some(OnHost { realtime: u64::try_from(realtime).unwrap_or(u64::MAX), within })
    }
}
