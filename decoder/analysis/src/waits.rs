//! Waiting times of lanes, and the warps that they wait for, from trace points at the start and end of waits.
//!
//! Lanes that arrive at a wait together form a group until they continue. The arrivals of a block's warps at
//! a barrier are comparable, because they share a multiprocessor and its clock. The n-th arrivals are
//! compared if no others have more warps, and all warps arrive with all of their lanes at once.

use std::collections::BTreeMap;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::file::WaitInfo;
use warptrace_format::{Event, LocationKind};

use crate::distribution::Distribution;
use crate::figures::Point;
use crate::points::Points;

const WARPS: usize = 32;
const MAX_ARRIVALS: usize = 1 << 18;

/// Waits at a location, in cycles of the multiprocessor's clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitFigures {
    /// Location where the waits begin.
    #[serde(flatten)]
    pub point: Point,
    /// The barrier, and the copies that it waits for, as far as known from the compiled code.
    pub info: Option<Box<WaitInfo>>,
    /// Groups of lanes that arrived and continued.
    pub waits: u64,
    /// Time from arrival to continuation, summed over the groups.
    pub cycles: u64,
    /// The same time, summed over the lanes.
    pub lane_cycles: u64,
    /// Cycles of each wait.
    pub wait_cycles: Distribution,
    /// Lanes that arrived and have no continuation in the trace.
    pub open_lanes: u64,
    /// Last arrivals; `None` if this is not a block barrier, or no arrivals were comparable.
    pub arrivals: Option<Arrivals>,
}

/// Order in which the warps of blocks arrive at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Arrivals {
    /// Barrier uses by a block that were compared.
    pub compared: u64,
    /// Arrivals of warps that were not compared.
    pub not_compared: u64,
    /// Warp that the others waited for the longest, by its number in its block.
    pub last_warp: u32,
    /// Number of times that it arrived last.
    pub last: u64,
    /// Cycles during which only this warp was missing.
    pub alone_cycles: u64,
}

/// A wait of lanes that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// Location where it began.
    pub location: u16,
    /// Lanes that waited; bit i is lane i.
    pub lanes: u32,
    /// Time of arrival.
    pub begin: u64,
    /// Time of continuation; `None` if the trace does not have it.
    pub end: Option<u64>,
}

/// Open waits of a warp.
#[derive(Debug, Default)]
pub struct OpenWaits {
    kinds: Vec<Option<LocationKind>>,
    now: u64,
    waits: Vec<Wait>,
}

impl OpenWaits {
    /// Creates an empty list for the first warp; `None` if the trace has no trace points at waits.
    pub fn of_trace(trace: &TraceFile) -> Option<Self> {
        Self::new(&Points::new(trace))
    }

    fn new(points: &Points<'_>) -> Option<Self> {
        let kinds = points.waits();
        (!kinds.is_empty()).then(|| Self { kinds, ..Self::default() })
    }

    /// Takes the warp's next event and its start time, in any unit; times do not decrease. Calls `over` for
    /// each wait that is over. Returns the kind of a location with a wait.
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

    /// Ends the warp. Calls `over` for its open waits, which have no end.
    pub fn end(&mut self, over: &mut impl FnMut(Wait)) {
        self.forget(u32::MAX, over);
        self.now = 0;
    }

    /// Closes the waits of lanes that arrive at another wait or at the end of the warp.
    fn forget(&mut self, lanes: u32, over: &mut impl FnMut(Wait)) {
        for wait in self.waits.iter_mut().filter(|wait| wait.lanes & lanes != 0) {
            over(Wait { lanes: wait.lanes & lanes, ..*wait });
            wait.lanes &= !lanes;
        }
        self.waits.retain(|wait| wait.lanes != 0);
    }

    /// Ends the waits of an event's lanes. The location of the wait has the previous id.
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

#[derive(Clone, Default)]
struct WaitsAt {
    waits: u64,
    cycles: u64,
    lane_cycles: u64,
    each: Distribution,
    open_lanes: u64,
    compared: u64,
    not_compared: u64,
    /// By warp of the block: last arrivals, and cycles during which only this warp was missing.
    last: [u64; WARPS],
    alone: [u64; WARPS],
}

#[derive(Clone, Copy)]
struct Arrival {
    last: u64,
    before: u64,
    warp: u32,
    warps: u64,
}

#[derive(Default)]
struct Barrier {
    arrivals: Vec<Arrival>,
    /// Arrivals with only some of a warp's lanes, or above the limit.
    unfit: u64,
}

type Block = BTreeMap<u16, Barrier>;

#[derive(Default)]
pub(crate) struct Waits {
    open: OpenWaits,
    at: BTreeMap<u16, WaitsAt>,
    /// Block of the current warp, its number in the block, and its lanes.
    warp: (u32, u32, u32),
    came: BTreeMap<u16, usize>,
    /// Blocks that can have more warps: the first and the current one.
    blocks: BTreeMap<u32, Block>,
    first: Option<u32>,
}

impl Waits {
    pub(crate) fn new(points: &Points<'_>) -> Option<Self> {
        OpenWaits::new(points).map(|open| Self { open, ..Self::default() })
    }

    pub(crate) fn begin(&mut self, block: u32, warp: u32, lanes: u32) {
        self.end();
        if self.warp.0 != block && self.first.is_some_and(|first| first != self.warp.0) {
            self.fold(self.warp.0);
        }
        self.first.get_or_insert(block);
        self.warp = (block, warp, lanes);
        self.came.clear();
    }

    fn end(&mut self) {
        let Self { open, at, .. } = self;
        open.end(&mut |wait| at.entry(wait.location).or_default().take(wait));
    }

    pub(crate) fn push(&mut self, event: Event, begin: u64) {
        let Self { open, at, .. } = self;
        let kind = open.push(event, begin, &mut |wait| at.entry(wait.location).or_default().take(wait));
        if kind == Some(LocationKind::Barrier) {
            self.arrive(event, begin);
        }
    }

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

    /// Adds the sums of other warps, either of the same launch, or after both launches have ended.
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
        // The first of equal warps wins.
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
    fn join(&mut self, other: Self) {
        let (late, early) = if other.last > self.last { (other, *self) } else { (*self, other) };
        *self = Self { before: late.before.max(early.last), warps: self.warps + other.warps, ..late };
    }
}

impl Barrier {
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
