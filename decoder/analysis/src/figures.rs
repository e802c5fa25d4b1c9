//! What an analysis answers. All counts stop at 2^64 - 1 instead of overflowing.

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

/// Numbers of active lanes: 0 (which no event has) to 32.
pub const LANE_COUNTS: usize = 33;

pub(crate) fn as_text<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// A warp, by its launch and its linear index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WarpName {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
}

/// A trace point, as far as the trace's table says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Point {
    /// Id of the location.
    pub location: u16,
    /// Its name; `?` if the table does not have the id.
    pub name: String,
    /// Source file, or empty when it is not known.
    pub file: String,
    /// Line from 1, or 0 when it is not known.
    pub line: u32,
    /// Column from 1, or 0 when it is not known.
    pub column: u32,
}

impl Point {
    /// Id of the begin of a warp, which is before its first event. No trace point has it.
    pub const BEGIN: u16 = crate::transitions::OUTSIDE;

    /// What points of one line have in common; a point without a line stands alone.
    pub(crate) fn line_key(&self) -> (&str, u32, u16) {
        (&self.file, self.line, if self.line == 0 { self.location } else { 0 })
    }
}

/// Why lanes were idle: what parted them.
///
/// Each idle slot is charged to the location of the last event that the absent lane shared with a lane that
/// is active now: what follows that location sent them different ways. Lanes that never were together are
/// charged to the begin. So the idle slots of all causes are those of all locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Cause {
    /// The location; [`Point::BEGIN`]: lanes part before their first event.
    #[serde(flatten)]
    pub point: Point,
    /// Idle slots.
    pub idle: u64,
    /// Events here after which lanes parted, and some then were idle while others were active.
    pub partings: u64,
    /// Where these lanes were idle: most idle slots first.
    pub places: Vec<CausePlace>,
    /// Where lanes of both sides came together again for the first time: most times first. Lanes of the other
    /// partings never did.
    pub meetings: Vec<Meeting>,
}

impl Cause {
    /// Partings after which lanes met again.
    pub fn met(&self) -> u64 {
        self.meetings.iter().fold(0, |sum: u64, meeting| sum.saturating_add(meeting.times))
    }

    /// Events from a parting until lanes met again, in the mean, without both ends; 0 if they never did.
    pub fn mean_events_apart(&self) -> f64 {
        let events = self.meetings.iter().fold(0, |sum: u64, meeting| sum.saturating_add(meeting.events));
        share(events, self.met())
    }

    /// Location that stands for what parted most of the lanes: the greatest [`CausePlace::decision`].
    pub fn decision(&self) -> u16 {
        let mut sums = BTreeMap::<u16, u64>::new();
        for place in &self.places {
            let sum = sums.entry(place.decision).or_default();
            *sum = sum.saturating_add(place.idle);
        }
        // Of equal ones the first.
        let greatest = sums.into_iter().rev().max_by_key(|(_, idle)| *idle);
        greatest.map_or(self.point.location, |(decision, _)| decision)
    }

    /// Whether lanes came here again while others, which were here with them, stayed away: they left a loop.
    pub fn is_of_loop(&self) -> bool {
        self.places.iter().any(|place| place.location == self.point.location)
            && self.point.location != Point::BEGIN
    }
}

/// Idle slots of one cause at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct CausePlace {
    /// Where the active lanes were.
    pub location: u16,
    /// Location that stands for what kept the others away: the first point of the branch behind the cause in
    /// which the active lanes were, or the cause itself.
    pub decision: u16,
    /// Idle slots.
    pub idle: u64,
}

/// Where lanes met again that one cause had parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Meeting {
    /// Location of the first event with lanes of both sides.
    pub location: u16,
    /// Partings that ended here.
    pub times: u64,
    /// Events of the warp between parting and meeting, summed over them.
    pub events: u64,
}

/// What happened at a location.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct LocationFigures {
    /// The location.
    #[serde(flatten)]
    pub point: Point,
    /// Visits.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time; `None` if the trace has no times, here and in all other figures.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Warp-cycles of each of the [timed visits](Time::timed_visits). Those of a run are spread over its
    /// visits evenly, in whole cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visit_cycles: Option<Distribution>,
    /// Of the head of a loop: lane-cycles of all locations of the loop, with the loops in it, as
    /// [`roll_up`](crate::roll_up) has them. `None` if that knows no loop with this head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_lane_cycles: Option<u64>,
    /// Idle slots, here and elsewhere, for which this location [is to blame](CausePlace::decision).
    pub caused: u64,
    /// Warps that came, of all launches.
    pub warps: u64,
    /// Visits by 0 to 32 lanes.
    pub active: Vec<u64>,
    /// Visits after which lanes went to different locations; ending is one of them.
    pub splits: u64,
    /// Lanes whose last known event is here, of warps that lost events or did not finish: where they went is
    /// not known.
    pub cut_lanes: u64,
    /// Trips: how often a lane came before it left the loop here. Locations with more than one are heads of
    /// loops; see [`Analysis::loops`].
    pub trips: Distribution,
    /// Visits by each of the warps that came.
    pub warp_visits: Distribution,
}

/// What happened at a line of the source: the sums over its locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct LineFigures {
    /// Source file, or empty when it is not known.
    pub file: String,
    /// Line from 1, or 0 when it is not known; locations without a line have a row each.
    pub line: u32,
    /// Names of the line's locations that warps came to.
    pub names: Vec<String>,
    /// Ids of these locations.
    pub locations: Vec<u16>,
    /// Visits.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Idle slots, here and elsewhere, for which one of its locations [is to blame](CausePlace::decision).
    pub caused: u64,
    /// Warps that came, of all launches.
    pub warps: u64,
    /// Visits by 0 to 32 lanes.
    pub active: Vec<u64>,
    /// Visits after which lanes went to different locations.
    pub splits: u64,
}

/// What happened in the launches of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct KernelFigures {
    /// Name of the kernel.
    pub kernel: String,
    /// Launches looked at.
    pub launches: u64,
    /// Visits.
    #[serde(flatten)]
    pub counts: Counts,
    /// Time.
    #[serde(flatten)]
    pub time: Option<Time>,
    /// Warps with events.
    pub warps: u64,
    /// Visits by 0 to 32 lanes.
    pub active: Vec<u64>,
    /// Idle slots by the location that is their cause; [`Point::BEGIN`] is one, too.
    pub causes: BTreeMap<u16, u64>,
    /// Visits by location: [`Analysis::locations`] has their sums over all kernels.
    #[serde(skip)]
    pub locations: BTreeMap<u16, Counts>,
    /// Time by location, of those where some was spent.
    #[serde(skip)]
    pub times: BTreeMap<u16, Time>,
    /// Edges, by `from` and `to`: [`Analysis::edges`] has their sums over all kernels.
    #[serde(skip)]
    pub edges: Vec<Edge>,
    /// Events of each warp that has some.
    pub warp_events: Distribution,
}

/// A step that lanes made: from an event to their next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Edge {
    /// Location from which lanes came; `None`: it was their first event.
    pub from: Option<u16>,
    /// Location to which they went; `None`: the event at `from` was their last, and they have ended.
    pub to: Option<u16>,
    /// Pairs of events between which some lane went straight.
    pub visits: u64,
    /// Lanes that did, summed over the pairs.
    pub lanes: u64,
}

/// Those of `edges`, which are in order, that go from a location; `None`: with which lanes begin.
pub fn edges_from(edges: &[Edge], location: Option<u16>) -> &[Edge] {
    let from = edges.partition_point(|edge| edge.from < location);
    let count = edges[from..].partition_point(|edge| edge.from == location);
    &edges[from..from + count]
}

/// Lanes on all edges from a location, as [`edges_from`].
pub fn lanes_from(edges: &[Edge], location: Option<u16>) -> u64 {
    edges_from(edges, location).iter().fold(0, |sum, edge| sum.saturating_add(edge.lanes))
}

/// What one warp of a launch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpFigures {
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Its events.
    #[serde(flatten)]
    pub counts: Counts,
    /// Its time.
    #[serde(flatten)]
    pub time: Option<WarpTime>,
    /// Where and when it ran; `None` if the trace does not say.
    #[serde(flatten)]
    pub ran: Option<WarpRan>,
    /// Events of the median warp of its launch and role, of those that are looked at and have events.
    pub median: u64,
    /// Digest of its events in order, below 2^61 - 1: warps with the same digest took the same path. In JSON
    /// a text, since readers there keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub path: u64,
    /// Location of its last event.
    pub last: u16,
    /// How it ended.
    pub end: WarpEnd,
    /// Its role, a number from 1 in [`Analysis::roles`]; `None` if all warps of its launch have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<u8>,
}

// Documentation says how much memory warps take.
const _: () = assert!(size_of::<WarpFigures>() == 128);

impl WarpFigures {
    /// How many events it is away from the median warp of its launch and role.
    pub const fn distance(&self) -> u64 {
        self.counts.visits.abs_diff(self.median)
    }
}

/// Warps of a kernel that took the same path: the same events in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathGroup {
    /// Digest of the path; a text in JSON.
    #[serde(serialize_with = "as_text")]
    pub path: u64,
    /// Warps that took it.
    pub warps: u64,
    /// Launch of the first of them.
    pub launch: u32,
    /// The first of them.
    pub warp: u32,
    /// Their role, as [`WarpFigures::role`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<u8>,
    /// Events of each of them.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What a trace lacks, of what was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Losses {
    /// Why the file is not whole; `None` if it is.
    pub cut_off: Option<String>,
    /// Events that were lost.
    pub lost_events: u64,
    /// Warps that lost events.
    pub lossy_warps: u64,
    /// Warps that did not finish.
    pub unfinished_warps: u64,
    /// Warps of which the file has no account.
    pub unaccounted_warps: u64,
    /// Events of which the file does not say when they happened; `None` if the trace has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untimed_events: Option<u64>,
    /// Warps of which the file does not say when they began and ended; `None` if that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced_warps: Option<u64>,
    /// Warps that were chosen not to be recorded. That is no loss.
    pub unchosen_warps: u64,
    /// What was assumed of the kernel when it was recorded; `None` if the events are the kernel's. That is no
    /// loss.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub assumed: Option<&'static str>,
    /// Which launches were not traced, in a sentence; `None` if all were. That is no loss.
    #[serde(skip)]
    pub not_traced: Option<String>,
}

impl Losses {
    /// Whether all events of all warps are there, with the times that were recorded.
    pub const fn is_whole(&self) -> bool {
        self.cut_off.is_none()
            && self.lost_events == 0
            && self.unfinished_warps == 0
            && self.unaccounted_warps == 0
            && matches!(self.untimed_events, None | Some(0))
            && matches!(self.unplaced_warps, None | Some(0))
    }

    /// Whether the first line of a view is only that the trace is whole, so that findings come before it.
    pub const fn is_plain(&self) -> bool {
        self.is_whole() && self.assumed.is_none() && self.not_traced.is_none()
    }
}

/// The figures of a trace, or of what was selected of it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
#[non_exhaustive]
pub struct Analysis {
    /// What is missing.
    pub losses: Losses,
    /// What slots are.
    pub weight: Weight,
    /// Launches looked at.
    pub launches: u64,
    /// All events.
    pub counts: Counts,
    /// All time.
    pub time: Option<Time>,
    /// Visits by 0 to 32 lanes.
    pub active: Vec<u64>,
    /// Kernels with launches, in the order of the trace's table.
    pub kernels: Vec<KernelFigures>,
    /// Locations that warps came to, by id.
    pub locations: Vec<LocationFigures>,
    /// Lines that warps came to, by file and line; those without come first.
    pub lines: Vec<LineFigures>,
    /// Edges, by `from` and `to`.
    pub edges: Vec<Edge>,
    /// Why lanes were idle: the cause of the most idle slots first, then by id.
    pub causes: Vec<Cause>,
    /// Warps with events, by launch and number.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub warps: WarpTable,
    /// Events of each warp that has some.
    pub warp_events: Distribution,
    /// Groups of warps with the same path: most warps first, then by the first warp.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub paths: Vec<PathGroup>,
    /// Roles of warps, of kernels that have more than one: by the first launch.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub roles: Vec<KernelRoles>,
    /// When launches, blocks and warps ran; `None` if that was not recorded.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub schedule: Option<Schedule>,
    /// When launches ran by the host's clocks; `None` if that was not recorded.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub host: Option<HostSchedule>,
    /// Waits, the most lane-cycles first; empty if the trace has no times or no points at waits.
    #[cfg_attr(feature = "bytes", borsh(skip))]
    pub waits: Vec<WaitFigures>,
}

/// Counts and time of all that was looked at.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// All events.
    #[serde(flatten)]
    pub counts: Counts,
    /// All time.
    #[serde(flatten)]
    pub time: Option<Time>,
}

impl Analysis {
    /// The sums over all that was looked at.
    pub const fn totals(&self) -> Totals {
        Totals { counts: self.counts, time: self.time }
    }

    /// The figures of a location that warps came to.
    pub fn location(&self, id: u16) -> Option<&LocationFigures> {
        let at = self.locations.binary_search_by_key(&id, |location| location.point.location);
        at.ok().map(|at| &self.locations[at])
    }

    /// The heads of loops: locations to which a lane came more than once without leaving the loop.
    pub fn loops(&self) -> impl Iterator<Item = &LocationFigures> {
        self.locations.iter().filter(|location| location.trips.max() > 1)
    }

    /// The lanes that were at a location last.
    pub fn ended_at(&self, location: u16) -> u64 {
        self.edges_from(location).iter().filter(|edge| edge.to.is_none()).map(|edge| edge.lanes).sum()
    }

    /// The edges from a location, which lie side by side.
    pub fn edges_from(&self, location: u16) -> &[Edge] {
        edges_from(&self.edges, Some(location))
    }
}
