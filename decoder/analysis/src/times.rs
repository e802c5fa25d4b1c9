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

use serde::Serialize;
use warptrace_decoder::WarpItem;
use warptrace_format::Event;

use crate::counts::share;
use crate::distribution::Distribution;
use crate::tally::AtLocation;

/// Time spent at a location, or at several, in cycles of the multiprocessor's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// Time at a location.
#[derive(Default)]
pub(crate) struct TimeAt {
    pub(crate) time: Time,
    /// Warp-cycles of each visit. Those of a run are spread over its visits evenly, in whole cycles.
    pub(crate) visits: Distribution,
}

impl TimeAt {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.time.add(&other.time);
        self.visits.merge(&other.visits);
    }
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
    /// Location to which the time of warps is confined.
    focus: Option<u16>,
    /// Lanes that the warp has.
    lanes: u32,
    /// When the last run began.
    now: u64,
    last: Option<Last>,
    /// Warp-cycles so far.
    cycles: u64,
}

type Locations = [Option<Box<AtLocation>>];

/// The time at a location that was counted before.
fn at(locations: &mut Locations, location: u16) -> Option<&mut TimeAt> {
    Some(locations.get_mut(usize::from(location))?.as_mut()?.time.get_or_insert_default())
}

/// Charges lane-cycles to the location from which lanes came.
#[inline]
pub(crate) fn spend_lanes(locations: &mut Locations, location: u16, cycles: u64) {
    if let Some(at) = at(locations, location) {
        at.time.lane_cycles = at.time.lane_cycles.saturating_add(cycles);
    }
}

impl Clocks {
    pub(crate) fn new(focus: Option<u16>) -> Self {
        Self { focus, ..Self::default() }
    }

    /// Begins a warp with these lanes.
    pub(crate) fn begin(&mut self, lanes: u32) {
        (self.lanes, self.now, self.last, self.cycles) = (lanes, 0, None, 0);
    }

    /// Ends the warp; returns its cycles.
    pub(crate) fn end(&self) -> u64 {
        self.cycles
    }

    /// Takes the warp's next item, whose visits `locations` have already. Returns when it counts as begun;
    /// `None` if that is not known.
    #[inline(always)]
    pub(crate) fn push(&mut self, found: &WarpItem<'_>, locations: &mut Locations) -> Option<u64> {
        let (&[event], Some(begin)) = (found.item.body(), found.begin) else {
            // When the run before ended is not known.
            self.last = None;
            return None;
        };
        let visits = u64::from(found.item.times());
        if let Some(last) = &mut self.last
            && (last.event, last.begin) == (event, begin)
        {
            // The rest of a run that several chunks hold.
            last.visits = last.visits.saturating_add(visits);
            return Some(self.now);
        }
        let cycles = begin.saturating_sub(self.now);
        self.now = self.now.max(begin);
        if let Some(last) = self.last.replace(Last { event, visits, begin }) {
            self.spend(&last, cycles, locations);
        }
        Some(self.now)
    }

    /// Charges warp-cycles to a run that is over.
    #[inline(always)]
    fn spend(&mut self, Last { event, visits, .. }: &Last, cycles: u64, locations: &mut Locations) {
        if self.focus.is_none_or(|focus| focus == event.location) {
            self.cycles = self.cycles.saturating_add(cycles);
        }
        let Some(at) = at(locations, event.location) else { return };
        let of = |lanes: u32| cycles.saturating_mul(lanes.count_ones().into());
        at.time.add(&Time {
            lane_cycles: 0,
            warp_cycles: cycles,
            active_lane_cycles: of(event.mask),
            idle_lane_cycles: of(self.lanes & !event.mask),
            timed_visits: *visits,
        });
        let (each, more) = (cycles / visits, cycles % visits);
        at.visits.add(each, visits - more);
        at.visits.add(each.saturating_add(1), more);
    }
}
