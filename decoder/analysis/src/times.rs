//! Where time is spent: cycles of lanes and of warps at each location, from when their runs began.
//!
//! A run is a row of equal events of a warp: its lanes pass one location, once or more often. Of each run the
//! trace says when it began, and of none when it ended:
//!
//! - A lane's time from the begin of one of its runs to the begin of its next belongs to the first of them, whatever
//!   other lanes do meanwhile: *lane-cycles*.
//! - A warp's time from the begin of a run to the begin of the warp's next run, whoever has that, belongs to
//!   the first of them: *warp-cycles*. So each cycle of a warp counts once.
//!
//! The time behind the last run of a lane or a warp is not known and not counted. A run that began before the
//! one ahead of it counts as begun with that.

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;
use warptrace_format::Event;

use crate::counts::share;
use crate::visits::{AtLocation, Locations};

/// Time spent at a location, or at several, in cycles of the multiprocessor's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Time {
    /// From a lane's run here to the lane's next run, summed over runs and lanes.
    pub lane_cycles: u64,
    /// From a run here to the warp's next run, summed over the runs.
    pub warp_cycles: u64,
    /// The run's lanes times its warp-cycles, summed over the runs.
    pub active_lane_cycles: u64,
    /// The warp's other lanes times the run's warp-cycles, summed over the runs: what divergence costs here.
    pub idle_lane_cycles: u64,
    /// Visits whose warp-cycles are known: all but those of warps' last runs and of runs next to missing
    /// times.
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

    /// Warp-cycles of a visit in the mean; 0 if none is known.
    pub fn per_visit(&self) -> f64 {
        share(self.warp_cycles, self.timed_visits)
    }

    /// Active lanes in the mean over time, and lanes of the warp; 0 if no time was spent.
    pub fn mean_lanes(&self) -> [f64; 2] {
        let all = self.active_lane_cycles.saturating_add(self.idle_lane_cycles);
        [self.active_lane_cycles, all].map(|lanes| share(lanes, self.warp_cycles))
    }
}

/// Time of a warp, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WarpTime {
    /// From its first run to its last; if one location is looked at, its warp-cycles there.
    pub cycles: u64,
    /// That of the median warp of its launch and role, of those that are looked at and have events.
    pub median_cycles: u64,
}

/// A warp's last run.
struct Last {
    event: Event,
    visits: u64,
    /// When it began, as the trace says.
    begin: u64,
}

/// Attributes the time of warps that are given one after the other.
#[derive(Default)]
pub(crate) struct Clocks {
    /// Lanes that the warp has.
    lanes: u32,
    /// When the last run began.
    now: u64,
    last: Option<Last>,
}

/// The figures of a location that was visited before.
#[inline(always)]
fn at(locations: &mut Locations, location: u16) -> Option<&mut AtLocation> {
    locations.get_mut(usize::from(location))?.as_deref_mut()
}

/// Charges lane-cycles to the location from which lanes came.
#[inline(always)]
pub(crate) fn spend_lanes(locations: &mut Locations, location: u16, cycles: u64) {
    if let Some(at) = at(locations, location) {
        at.spend_lanes(cycles);
    }
}

impl Clocks {
    /// Begins a warp with these lanes.
    pub(crate) fn begin(&mut self, lanes: u32) {
        *self = Self { lanes, ..Self::default() };
    }

    /// Takes events of which it is not known when they began, so that of the run before it is not known when
    /// it ended.
    #[inline(always)]
    pub(crate) fn lose(&mut self) {
        self.last = None;
    }

    /// Takes the warp's next run, whose visits `locations` have already, given when it began; returns when it
    /// counts as begun.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event, visits: u64, begin: u64, locations: &mut Locations) -> u64 {
        if let Some(last) = &mut self.last
            && (last.event, last.begin) == (event, begin)
        {
            // The rest of a run that several chunks hold.
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
