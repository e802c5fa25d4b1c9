//! Time of lanes and warps at each location, computed from the start times of runs.
//!
//! A run is a sequence of equal events of a warp. The trace has the start time of each run and no end times:
//! the time from the start of a run to the start of the next run counts for the first of the two.
//! *Lane-cycles* count from run to run of a lane, independent of other lanes; *warp-cycles* from run to run
//! of a warp, independent of the lanes, so that each cycle of a warp counts once.
//!
//! The time after the last run of a lane or warp is unknown and not counted. A run with an earlier start time
//! than the previous run gets the start time of that run.

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;
use warptrace_format::Event;

use crate::counts::share;
use crate::visits::{AtLocation, Locations};

/// Time at one or several locations, in cycles of the multiprocessor's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Time {
    /// Time from a lane's run here to the lane's next run, summed over runs and lanes.
    pub lane_cycles: u64,
    /// Time from a run here to the warp's next run, summed over the runs.
    pub warp_cycles: u64,
    /// Warp-cycles of each run times its lanes, summed over the runs.
    pub active_lane_cycles: u64,
    /// Warp-cycles of each run times the warp's other lanes, summed over the runs: the cost of divergence.
    pub idle_lane_cycles: u64,
    /// Visits with known warp-cycles: not in a warp's last run, or next to missing times.
    pub timed_visits: u64,
}

impl Time {
    /// Adds other time.
    pub fn add(&mut self, other: &Self) {
        let Self { lane_cycles, warp_cycles, active_lane_cycles, idle_lane_cycles, timed_visits } = other;
        for (sum, more) in [
            (&mut self.lane_cycles, lane_cycles),
            (&mut self.warp_cycles, warp_cycles),
            (&mut self.active_lane_cycles, active_lane_cycles),
            (&mut self.idle_lane_cycles, idle_lane_cycles),
            (&mut self.timed_visits, timed_visits),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Returns the mean warp-cycles of a visit; 0 if none are known.
    pub fn per_visit(&self) -> f64 {
        share(self.warp_cycles, self.timed_visits)
    }

    /// Returns the means over time of the active lanes and of all lanes of the warp; 0 if no time was spent.
    pub fn mean_lanes(&self) -> [f64; 2] {
        let all = self.active_lane_cycles.saturating_add(self.idle_lane_cycles);
        [self.active_lane_cycles, all].map(|lanes| share(lanes, self.warp_cycles))
    }
}

/// Time of a warp, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WarpTime {
    /// From its first run to its last. With a focus on one location, the warp-cycles there.
    pub cycles: u64,
    /// Median of the analysed warps with events in the same launch and role.
    pub median_cycles: u64,
}

struct Last {
    event: Event,
    visits: u64,
    begin: u64,
}

#[derive(Default)]
pub(crate) struct Clocks {
    lanes: u32,
    now: u64,
    last: Option<Last>,
}

#[inline(always)]
fn at(locations: &mut Locations, location: u16) -> Option<&mut AtLocation> {
    locations.get_mut(usize::from(location))?.as_deref_mut()
}

#[inline(always)]
pub(crate) fn spend_lanes(locations: &mut Locations, location: u16, cycles: u64) {
    if let Some(at) = at(locations, location) {
        at.spend_lanes(cycles);
    }
}

impl Clocks {
    pub(crate) fn begin(&mut self, lanes: u32) {
        *self = Self { lanes, ..Self::default() };
    }

    /// Takes events without a start time. The end of the run before them is then unknown.
    #[inline(always)]
    pub(crate) fn lose(&mut self) {
        self.last = None;
    }

    /// Takes the warp's next run, whose visits `locations` already has. Returns its adjusted start time.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event, visits: u64, begin: u64, locations: &mut Locations) -> u64 {
        if let Some(last) = &mut self.last
            && (last.event, last.begin) == (event, begin)
        {
            // The rest of a run that spans several chunks.
            last.visits = last.visits.saturating_add(visits);
            return self.now;
        }
        let cycles = begin.saturating_sub(self.now);
        self.now = self.now.max(begin);
        if let Some(Last { event, visits, .. }) = self.last.replace(Last { event, visits, begin })
            && let Some(at) = at(locations, event.location)
        {
            at.spend(event.mask, self.lanes, visits, cycles);
        }
        self.now
    }
}
