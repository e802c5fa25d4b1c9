//! How long lanes wait, and for whom: from the points at which a wait begins and those at which it is over.
//!
//! Lanes that come to a wait together are a group, until they go on. Warps of a block share a multiprocessor
//! and its clock, so their arrivals at a barrier can be compared: the n-th of each warp belong together, if
//! all warps of the block that come there do so equally often, with all of their lanes at once.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::file::WaitInfo;
use warptrace_format::{Event, LocationKind};

use crate::distribution::Distribution;
use crate::figures::Point;
use crate::points::Points;

/// Warps that a block has at most.
const WARPS: usize = 32;
/// Arrivals of a block that are compared at most.
const MAX_ARRIVALS: usize = 1 << 18;

/// Waits at a location, in cycles of the multiprocessor's clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitFigures {
    /// The location at which they begin.
    #[serde(flatten)]
    pub point: Point,
    /// Which barrier it is, and the copies that it waits for, as far as the compiled code tells.
    pub info: Option<Box<WaitInfo>>,
    /// Groups of lanes that came and went on.
    pub waits: u64,
    /// From when a group came to when it went on, summed over the groups.
    pub cycles: u64,
    /// The same, summed over the lanes.
    pub lane_cycles: u64,
    /// Cycles of each wait.
    pub wait_cycles: Distribution,
    /// Lanes that came, and of which the trace does not have that they went on.
    pub open_lanes: u64,
    /// Who comes last; `None` if this is no barrier of a block, or no arrivals could be compared.
    pub arrivals: Option<Arrivals>,
}

/// In which order the warps of blocks come to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// Times that a block's warps met there, and were compared.
    pub compared: u64,
    /// Arrivals of warps that were not.
    pub not_compared: u64,
    /// The warp for which the others waited longest, by its number in its block.
    pub last_warp: u32,
    /// How often it came last.
    pub last: u64,
    /// Cycles for which only it was missing.
    pub alone_cycles: u64,
}

/// A wait of lanes that came to it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The location at which it began.
    pub location: u16,
    /// The lanes that waited; bit i is lane i.
    pub lanes: u32,
    /// When they came.
    pub begin: u64,
    /// When they went on; `None` if the trace does not have that they did.
    pub end: Option<u64>,
}

/// The waits of a warp that are not over.
#[derive(Debug, Default)]
pub struct OpenWaits {
    /// By location id what begins or ends there.
    kinds: Vec<Option<LocationKind>>,
    now: u64,
    waits: Vec<Wait>,
}

impl OpenWaits {
    /// Returns none of a first warp; `None` if the trace has no points at waits.
    pub fn of_trace(trace: &TraceFile) -> Option<Self> {
        Self::new(&Points::new(trace))
    }

    fn new(points: &Points<'_>) -> Option<Self> {
        let kinds = points.waits();
        (!kinds.is_empty()).then(|| Self { kinds, ..Self::default() })
    }

    /// Takes the warp's next event, and when it began, in any unit: time does not go back. Gives the waits
    /// that are over to `over`. Returns what the event's location is, if a wait begins or ends there.
    pub fn push(&mut self, event: Event, begin: u64, over: &mut impl FnMut(Wait)) -> Option<LocationKind> {
        self.now = self.now.max(begin);
        let kind = self.kinds.get(usize::from(event.location)).copied().flatten()?;
        if kind == LocationKind::Waited {
            self.go_on(event, over);
        } else {
            self.forget(event.mask, over);
            let (location, lanes, begin) = (event.location, event.mask, self.now);
            self.waits.push(Wait { location, lanes, begin, end: None });
        }
        Some(kind)
    }

    /// Ends the warp: gives the waits of which it is not known that they were over, and begins the next one.
    pub fn end(&mut self, over: &mut impl FnMut(Wait)) {
        self.forget(u32::MAX, over);
        self.now = 0;
    }

    /// Takes lanes out of the waits from which they did not come.
    fn forget(&mut self, lanes: u32, over: &mut impl FnMut(Wait)) {
        for wait in self.waits.iter_mut().filter(|wait| wait.lanes & lanes != 0) {
            over(Wait { lanes: wait.lanes & lanes, ..*wait });
            wait.lanes &= !lanes;
        }
        self.waits.retain(|wait| wait.lanes != 0);
    }

    /// Ends the waits of an event's lanes.
    fn go_on(&mut self, event: Event, over: &mut impl FnMut(Wait)) {
        let location = event.location.saturating_sub(1);
        for wait in &mut self.waits {
            let lanes = wait.lanes & event.mask;
            if lanes != 0 && wait.location == location {
                wait.lanes &= !lanes;
                over(Wait { lanes, end: Some(self.now), ..*wait });
            }
        }
        self.waits.retain(|wait| wait.lanes != 0);
    }
}

/// Sums of a location.
#[derive(Clone, Default)]
struct WaitsAt {
    waits: u64,
    cycles: u64,
    lane_cycles: u64,
    each: Distribution,
    open_lanes: u64,
    compared: u64,
    not_compared: u64,
    /// By warp of the block, how often it came last, and cycles for which only it was missing.
    last: [u64; WARPS],
    alone: [u64; WARPS],
}

/// The n-th arrivals of a block's warps.
#[derive(Clone, Copy)]
struct Arrival {
    /// When the last one came, and the one before it.
    last: u64,
    before: u64,
    /// Who came last.
    warp: u32,
    warps: u64,
}

/// Arrivals at a barrier in a block.
#[derive(Default)]
struct Barrier {
    arrivals: Vec<Arrival>,
    /// Arrivals of some of a warp's lanes, and those for which there was no room.
    unfit: u64,
}

/// Barriers of a block, by location.
type Block = BTreeMap<u16, Barrier>;

/// Sums over warps that are given one after the other.
#[derive(Default)]
pub(crate) struct Waits {
    open: OpenWaits,
    at: BTreeMap<u16, WaitsAt>,
    /// The current warp's block, its number there, and its lanes.
    warp: (u32, u32, u32),
    /// Arrivals of the current warp, by location.
    came: BTreeMap<u16, usize>,
    /// Blocks of which other warps may come: the first and the current one.
    blocks: BTreeMap<u32, Block>,
    first: Option<u32>,
}

impl Waits {
    /// Returns what counts waits; `None` if the table has none.
    pub(crate) fn new(points: &Points<'_>) -> Option<Self> {
        OpenWaits::new(points).map(|open| Self { open, ..Self::default() })
    }

    /// Begins a warp, given its block, its number there, and its lanes.
    pub(crate) fn begin(&mut self, block: u32, warp: u32, lanes: u32) {
        self.end();
        if self.warp.0 != block && self.first.is_some_and(|first| first != self.warp.0) {
            self.fold(self.warp.0);
        }
        self.first.get_or_insert(block);
        self.warp = (block, warp, lanes);
        self.came.clear();
    }

    /// Ends the current warp.
    fn end(&mut self) {
        let Self { open, at, .. } = self;
        open.end(&mut |wait| at.entry(wait.location).or_default().take(wait));
    }

    /// Takes the warp's next event, and when it began.
    pub(crate) fn push(&mut self, event: Event, begin: u64) {
        let Self { open, at, .. } = self;
        let kind = open.push(event, begin, &mut |wait| at.entry(wait.location).or_default().take(wait));
        if kind == Some(LocationKind::Barrier) {
            self.arrive(event, begin);
        }
    }

    /// Notes that a warp came to a barrier.
    fn arrive(&mut self, Event { location, mask }: Event, begin: u64) {
        let (block, warp, lanes) = self.warp;
        let block = self.blocks.entry(block).or_default();
        let room = block.values().map(|barrier| barrier.arrivals.len()).sum::<usize>() < MAX_ARRIVALS;
        let barrier = block.entry(location).or_default();
        let number = self.came.entry(location).or_default();
        if mask != lanes || (*number == barrier.arrivals.len() && !room) {
            barrier.unfit += 1;
            return;
        }
        let arrival = Arrival { last: begin, before: 0, warp, warps: 1 };
        match barrier.arrivals.get_mut(*number) {
            Some(known) => known.join(arrival),
            None => barrier.arrivals.push(arrival),
        }
        *number += 1;
    }

    /// Counts the arrivals of a block, of which all have been seen.
    fn fold(&mut self, block: u32) {
        for (location, barrier) in self.blocks.remove(&block).into_iter().flatten() {
            let at = self.at.entry(location).or_default();
            at.not_compared += barrier.unfit;
            let most = barrier.arrivals.iter().map(|arrival| arrival.warps).max().unwrap_or(0);
            let is_whole = barrier.unfit == 0 && most > 1;
            for Arrival { last, before, warp, warps } in barrier.arrivals {
                if !is_whole || warps != most {
                    at.not_compared += warps;
                    continue;
                }
                at.compared += 1;
                let warp = warp as usize % WARPS;
                at.last[warp] += 1;
                at.alone[warp] = at.alone[warp].saturating_add(last - before);
            }
        }
    }

    /// Adds the sums of other warps: of the same launch, or both of launches that have ended.
    pub(crate) fn merge(&mut self, mut other: Self) {
        other.end();
        self.end();
        if self.open.kinds.is_empty() {
            self.open.kinds = std::mem::take(&mut other.open.kinds);
        }
        self.add(&other.at);
        for (block, barriers) in other.blocks {
            let own = self.blocks.entry(block).or_default();
            for (location, barrier) in barriers {
                own.entry(location).or_default().join(barrier);
            }
        }
    }

    /// Ends the launch: no other warps of its blocks will come.
    pub(crate) fn end_launch(&mut self) {
        self.end();
        let blocks: Vec<u32> = self.blocks.keys().copied().collect();
        blocks.into_iter().for_each(|block| self.fold(block));
    }

    fn add(&mut self, other: &BTreeMap<u16, WaitsAt>) {
        for (location, more) in other {
            let at = self.at.entry(*location).or_default();
            let WaitsAt { waits, cycles, lane_cycles, open_lanes, compared, not_compared, .. } = more;
            for (sum, more) in [
                (&mut at.waits, waits),
                (&mut at.cycles, cycles),
                (&mut at.lane_cycles, lane_cycles),
                (&mut at.open_lanes, open_lanes),
                (&mut at.compared, compared),
                (&mut at.not_compared, not_compared),
            ] {
                *sum = sum.saturating_add(*more);
            }
            at.each.merge(&more.each);
            for (sums, more) in [(&mut at.last, &more.last), (&mut at.alone, &more.alone)] {
                sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
            }
        }
    }

    /// Returns the figures, the most lane-cycles first.
    pub(crate) fn figures(self, points: &Points<'_>) -> Vec<WaitFigures> {
        let figures = |(location, at): (u16, WaitsAt)| WaitFigures {
            point: points.point(location),
            info: points.wait(location),
            waits: at.waits,
            cycles: at.cycles,
            lane_cycles: at.lane_cycles,
            arrivals: at.arrivals(),
            wait_cycles: at.each,
            open_lanes: at.open_lanes,
        };
        let mut all: Vec<WaitFigures> = self.at.into_iter().map(figures).collect();
        all.order_by_key(|wait| std::cmp::Reverse(wait.lane_cycles));
        all
    }
}

impl WaitsAt {
    /// Counts a wait that is over.
    fn take(&mut self, Wait { lanes, begin, end, .. }: Wait) {
        let Some(end) = end else {
            self.open_lanes += u64::from(lanes.count_ones());
            return;
        };
        let cycles = end - begin;
        self.waits += 1;
        self.cycles = self.cycles.saturating_add(cycles);
        self.lane_cycles = self.lane_cycles.saturating_add(cycles.saturating_mul(lanes.count_ones().into()));
        self.each.add(cycles, 1);
    }

    fn arrivals(&self) -> Option<Arrivals> {
        // Of equal ones the first.
        let (last_warp, alone) = (0..WARPS as u32).zip(self.alone).rev().max_by_key(|(_, alone)| *alone)?;
        (self.compared > 0).then(|| Arrivals {
            compared: self.compared,
            not_compared: self.not_compared,
            last_warp,
            last: self.last[last_warp as usize],
            alone_cycles: alone,
        })
    }
}

impl Arrival {
    /// Adds arrivals of other warps.
    fn join(&mut self, other: Self) {
        let (late, early) = if other.last > self.last { (other, *self) } else { (*self, other) };
        *self = Self { before: late.before.max(early.last), warps: self.warps + other.warps, ..late };
    }
}

impl Barrier {
    /// Adds arrivals of the block's other warps.
    fn join(&mut self, other: Self) {
        self.unfit += other.unfit;
        for (number, arrival) in other.arrivals.into_iter().enumerate() {
            match self.arrivals.get_mut(number) {
                Some(known) => known.join(arrival),
                None => self.arrivals.push(arrival),
            }
        }
    }
}
