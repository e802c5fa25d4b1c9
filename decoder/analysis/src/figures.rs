//! Results of an analysis. All counts saturate at 2^64 - 1.

use std::collections::BTreeMap;

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use serde::Serialize;

use crate::counts::{Counts, Weight, share};
use crate::distribution::Distribution;
use crate::ends::WarpEnd;
use crate::host::HostSchedule;
use crate::roles::KernelRoles;
use crate::schedule::{Schedule, WarpRan};
use crate::times::{Time, WarpTime};
use crate::waits::WaitFigures;
use crate::warps::WarpTable;

/// Possible numbers of active lanes: 0 to 32. No event has 0.
pub const LANE_COUNTS: usize = 33;

pub(crate) fn as_text<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// Launch and linear index of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WarpName {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
}

/// A trace point, with the entries of the trace's location table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Point {
    /// Id of the location.
    pub location: u16,
    /// Name; `?` if the table does not contain the id.
    pub name: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

impl Point {
    /// Pseudo-location before the first event of a warp. No trace point has this id.
    pub const BEGIN: u16 = crate::transitions::OUTSIDE;

    /// Returns a key that is equal for points of the same line. A point without a line has a unique key.
    pub(crate) fn line_key(&self) -> (&str, u32, u16) {
        (&self.file, self.line, if self.line == 0 { self.location } else { 0 })
    }
}

/// A cause of idle lanes: a location after which lanes diverged. Each idle slot is charged to the location of
/// the last event that the idle lane shared with a currently active lane, or to [`Point::BEGIN`] if there is
/// none. The idle slots of all causes and of all locations have the same sum.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Cause {
    /// The location. [`Point::BEGIN`] if lanes diverged before their first event.
    #[serde(flatten)]
    pub point: Point,
    /// Idle slots charged to this location.
    pub idle: u64,
    /// Number of divergences: events here after which some lanes were idle while others were active.
    pub divergences: u64,
    /// Locations of the active lanes while these lanes were idle, by idle slots, descending.
    pub places: Vec<CausePlace>,
    /// Locations where diverged lanes first reconverged, by count, descending. Other divergences never did.
    pub reconvergences: Vec<Reconvergence>,
}

impl Cause {
    /// Counts the divergences that reconverged.
    pub fn reconverged(&self) -> u64 {
        self.reconvergences.iter().fold(0, |sum: u64, reconvergence| sum.saturating_add(reconvergence.times))
    }

    /// Counts the divergences that did not reconverge.
    pub fn never_reconverged(&self) -> u64 {
        self.divergences.saturating_sub(self.reconverged())
    }

    /// Returns the mean number of events between divergence and reconvergence; 0 without reconvergence.
    pub fn mean_events_diverged(&self) -> f64 {
        let events = self
            .reconvergences
            .iter()
            .fold(0, |sum: u64, reconvergence| sum.saturating_add(reconvergence.events));
        share(events, self.reconverged())
    }

    /// Returns the [decision](CausePlace::decision) with the most idle slots; this location without places.
    pub fn decision(&self) -> u16 {
        let mut sums = BTreeMap::<u16, u64>::new();
        for place in &self.places {
            let sum = sums.entry(place.decision).or_default();
            *sum = sum.saturating_add(place.idle);
        }
        // Of equal sums, the one with the lowest id.
        let greatest = sums.into_iter().rev().max_by_key(|(_, idle)| *idle);
        greatest.map_or(self.point.location, |(decision, _)| decision)
    }

    /// Returns true if lanes came here again while lanes that had been here with them had left the loop.
    pub fn is_of_loop(&self) -> bool {
        self.places.iter().any(|place| place.location == self.point.location)
            && self.point.location != Point::BEGIN
    }
}

/// Idle slots of one cause at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct CausePlace {
    /// Location of the active lanes.
    pub location: u16,
    /// The decision that separated the lanes: the outermost location that contains `location` but not the
    /// cause. If it is a side of a branch, the branch's first visited point, otherwise the cause.
    pub decision: u16,
    /// Idle slots.
    pub idle: u64,
}

/// Reconvergence of lanes that diverged at one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Reconvergence {
    /// Location of the first event with lanes of both sides.
    pub location: u16,
    /// Divergences that reconverged here.
    pub times: u64,
    /// Events of the warp between divergence and reconvergence, summed over these divergences.
    pub events: u64,
}

/// Figures of a location.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct LocationFigures {
    /// The location.
    #[serde(flatten)]
    pub point: Point,
    /// Counts of visits, lanes and slots.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time; `None`, here and in all other figures, if the trace has no times.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Warp-cycles of the [timed visits](Time::timed_visits). A run's visits have equal shares of its cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit_cycles: Option<Distribution>,
    /// Lane-cycles of the loop with inner loops, only at its head in [`roll_up`](crate::roll_up).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_lane_cycles: Option<u64>,
    /// Idle slots, here and elsewhere, whose [decision](CausePlace::decision) is this location.
    pub caused: u64,
    /// Warps that visited it, of all launches.
    pub warps: u64,
    /// Visits by number of active lanes, 0 to 32.
    pub active: Vec<u64>,
    /// Visits after which lanes went to different locations. The end of a lane counts as a location.
    pub splits: u64,
    /// Lanes whose last known event is here, in warps that lost events or did not finish.
    pub cut_lanes: u64,
    /// Trips: a lane's visits here until it leaves the loop, each time it comes. Heads of loops have several.
    pub trips: Distribution,
    /// Number of visits by each warp that visited it.
    pub warp_visits: Distribution,
}

/// Figures of a source line: the sums over its locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct LineFigures {
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, from 1; 0 if unknown. Each location without a line has its own row.
    pub line: u32,
    /// Names of its visited locations.
    pub names: Vec<String>,
    /// Ids of these locations.
    pub locations: Vec<u16>,
    /// Counts of visits, lanes and slots.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Idle slots, here and elsewhere, whose [decision](CausePlace::decision) is one of these locations.
    pub caused: u64,
    /// Warps that visited it, of all launches.
    pub warps: u64,
    /// Visits by number of active lanes, 0 to 32.
    pub active: Vec<u64>,
    /// Visits after which lanes went to different locations.
    pub splits: u64,
}

/// Figures of a kernel: the sums over its launches.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct KernelFigures {
    /// Name of the kernel.
    pub kernel: String,
    /// Launches analysed.
    pub launches: u64,
    /// Counts of visits, lanes and slots.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Warps with events.
    pub warps: u64,
    /// Visits by number of active lanes, 0 to 32.
    pub active: Vec<u64>,
    /// Idle slots by the location of their cause, including [`Point::BEGIN`].
    pub causes: BTreeMap<u16, u64>,
    /// Counts by location. [`Analysis::locations`] has their sums over all kernels.
    #[serde(skip)]
    pub locations: BTreeMap<u16, Counts>,
    /// Time by location, for locations with a known time.
    #[serde(skip)]
    pub times: BTreeMap<u16, Time>,
    /// Edges, by `from` and `to`. [`Analysis::edges`] has their sums over all kernels.
    #[serde(skip)]
    pub edges: Vec<Edge>,
    /// Events of each warp that has events.
    pub warp_events: Distribution,
}

/// A transition of lanes from one event to their next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Edge {
    /// Location that lanes came from; `None` if the event at `to` is their first.
    pub from: Option<u16>,
    /// Location that lanes went to; `None` if the event at `from` is their last and they have ended.
    pub to: Option<u16>,
    /// Pairs of events with at least one lane that went directly from the first to the second.
    pub visits: u64,
    /// Number of such lanes, summed over the pairs.
    pub lanes: u64,
}

/// Returns the edges from a location; for `None`, those to first events. `edges` must be sorted by `from`.
pub fn edges_from(edges: &[Edge], location: Option<u16>) -> &[Edge] {
    let from = edges.partition_point(|edge| edge.from < location);
    let count = edges[from..].partition_point(|edge| edge.from == location);
    &edges[from..from + count]
}

/// Counts the lanes on all edges from a location. Parameters as in [`edges_from`].
pub fn lanes_from(edges: &[Edge], location: Option<u16>) -> u64 {
    edges_from(edges, location).iter().fold(0, |sum, edge| sum.saturating_add(edge.lanes))
}

/// Figures of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpFigures {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Counts of its events.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time of the warp.
    #[serde(flatten)]
    pub time: Option<WarpTime>,
    /// Where and when it ran; `None` if the trace does not record it.
    #[serde(flatten)]
    pub ran: Option<WarpRan>,
    /// Median event count of the analysed warps with events in the same launch and role.
    pub median: u64,
    /// Digest of its events in order, below 2^61 - 1: equal for equal paths. A string in JSON, because many
    /// JSON readers keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub path: u64,
    /// Location of its last event.
    pub last: u16,
    /// State of the warp at its end.
    pub end: WarpEnd,
    /// Role, an index from 1 into [`Analysis::roles`]; `None` if all warps of the launch have one role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<u8>,
}

// The memory figures in the docs of `analyse` and `WarpTable` depend on this size.
const _: () = assert!(size_of::<WarpFigures>() == 128);

impl WarpFigures {
    /// Returns the absolute difference of its event count from the median of its launch and role.
    pub const fn distance(&self) -> u64 {
        self.counts.visits.abs_diff(self.median)
    }
}

/// Warps of a kernel that took the same path: the same events in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathGroup {
    /// Digest of the path; a string in JSON.
    #[serde(serialize_with = "as_text")]
    pub path: u64,
    /// Warps in the group.
    pub warps: u64,
    /// Number of the launch of the first warp in the group.
    pub launch: u32,
    /// Linear index of the first warp in its launch.
    pub warp: u32,
    /// Role, as in [`WarpFigures::role`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<u8>,
    /// Counts of each warp in the group.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Missing data of the selected launches and warps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Losses {
    /// Reason why the file is incomplete; `None` if it is complete.
    pub cut_off: Option<String>,
    /// Lost events.
    pub lost_events: u64,
    /// Warps that lost events.
    pub lossy_warps: u64,
    /// Warps that did not finish.
    pub unfinished_warps: u64,
    /// Warps without an account in the file.
    pub unaccounted_warps: u64,
    /// Events without a time; `None` if the trace has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untimed_events: Option<u64>,
    /// Warps without start and end times; `None` if they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced_warps: Option<u64>,
    /// Warps that were not chosen to be recorded. This is not a loss.
    pub unchosen_warps: u64,
    /// Assumption of the recording about the kernel; `None` if the events are exact. Not a loss.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub assumed: Option<&'static str>,
    /// Sentence that names the launches that were not traced; `None` if all were. This is not a loss.
    #[serde(skip)]
    pub not_traced: Option<String>,
}

impl Losses {
    /// Returns true if all events of all warps are present, with all recorded times.
    pub const fn is_whole(&self) -> bool {
        self.cut_off.is_none()
            && self.lost_events == 0
            && self.unfinished_warps == 0
            && self.unaccounted_warps == 0
            && matches!(self.untimed_events, None | Some(0))
            && matches!(self.unplaced_warps, None | Some(0))
    }

    /// Returns true if the trace is whole, nothing was assumed, and all launches were traced.
    pub const fn is_plain(&self) -> bool {
        self.is_whole() && self.assumed.is_none() && self.not_traced.is_none()
    }
}

/// Figures of the selected part of a trace.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
#[non_exhaustive]
pub struct Analysis {
    /// Missing data.
    pub losses: Losses,
    /// Unit of slots.
    pub weight: Weight,
    /// Launches analysed.
    pub launches: u64,
    /// Sums of visits, lanes and slots.
    pub counts: Counts,
    /// Time, summed over the analysed warps.
    pub time: Option<Time>,
    /// Visits by number of active lanes, 0 to 32.
    pub active: Vec<u64>,
    /// Kernels with launches, in the order of the trace's table.
    pub kernels: Vec<KernelFigures>,
    /// Visited locations, by id.
    pub locations: Vec<LocationFigures>,
    /// Visited lines, by file and line. Unknown files and lines come first.
    pub lines: Vec<LineFigures>,
    /// Edges, by `from` and `to`.
    pub edges: Vec<Edge>,
    /// Causes of idle lanes, by idle slots, descending, then by id.
    pub causes: Vec<Cause>,
    /// Warps with events, by launch and index.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub warps: WarpTable,
    /// Events of each warp that has events.
    pub warp_events: Distribution,
    /// Groups of warps with the same path, by number of warps, descending, then by the first warp.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub paths: Vec<PathGroup>,
    /// Roles of warps, for kernels with more than one role, by the first launch.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub roles: Vec<KernelRoles>,
    /// Run times of launches, blocks and warps; `None` if they were not recorded.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub schedule: Option<Schedule>,
    /// Run times of launches by the host's clocks; `None` if they were not recorded.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub host: Option<HostSchedule>,
    /// Waits, by lane-cycles, descending. Empty if the trace has no times or no trace points at waits.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub waits: Vec<WaitFigures>,
}

/// Counts and time of an analysis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// Sums of visits, lanes and slots.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time, summed over the analysed warps.
    #[serde(flatten)]
    pub time: Option<Time>,
}

impl Analysis {
    /// Returns the sums over all analysed warps.
    pub const fn totals(&self) -> Totals {
        Totals { counts: self.counts, time: self.time }
    }

    /// Returns the figures of a location; `None` if no warp visited it.
    pub fn location(&self, id: u16) -> Option<&LocationFigures> {
        let at = self.locations.binary_search_by_key(&id, |location| location.point.location);
        at.ok().map(|at| &self.locations[at])
    }

    /// Returns the heads of loops: locations that a lane visited more than once before it left the loop.
    pub fn loops(&self) -> impl Iterator<Item = &LocationFigures> {
        self.locations.iter().filter(|location| location.trips.max() > 1)
    }

    /// Counts the lanes whose last event was at a location.
    pub fn ended_at(&self, location: u16) -> u64 {
        self.edges_from(location).iter().filter(|edge| edge.to.is_none()).map(|edge| edge.lanes).sum()
    }

    /// Returns the edges from a location.
    pub fn edges_from(&self, location: u16) -> &[Edge] {
        edges_from(&self.edges, Some(location))
    }
}
