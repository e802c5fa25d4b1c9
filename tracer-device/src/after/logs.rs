//! The logs of a warp, a lane for each: how many runs they have, and all of them at once.
//!
//! The segments of a log are a chain, and to follow it link by link is to wait for memory each time. But a warp takes its segments out of areas, one
//! behind the other. So the lanes look at the links of 32 segments that lie together, a *window*, and then go from segment to segment in it without
//! memory, each along its own log; segments that follow each other in a log and in memory are one step. The window begins at the first segment in memory
//! of those that lanes have come to: that lane, at least, gets further.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

use super::warp_ops::{ALL, NEVER, least};
use crate::log::{Extent, FIRST_UNITS, SEGMENT_UNITS, at_unit};
use crate::simt::{self, WARP_LANES};
use crate::space::SharedMemory;
use crate::unit::Run;

/// Runs of a segment, and of the first one.
const SEGMENT_RUNS: u32 = SEGMENT_UNITS - 1;
const FIRST_RUNS: u32 = FIRST_UNITS - 2;

/// Bytes of shared memory with which lanes tell each other whose a segment is.
pub(super) const SLOT_BYTES: u32 = 8 * WARP_LANES;

/// The run in a unit.
#[inline(always)]
pub(super) fn run(unit: [u32; 4]) -> Run {
    Run::of_unit(unit)
}

/// The run as it is merged: 16 bytes.
#[inline(always)]
pub(super) fn merged(run: Run) -> [u32; 4] {
    [run.mask, run.location, run.count, 0]
}

/// A warp's logs; each lane has its own.
#[derive(Clone, Copy)]
pub(super) struct Logs {
    logs: u64,
    /// Units of log memory.
    units: u32,
    /// Unit of the first run.
    first: u32,
    /// The second segment, if there is one.
    second: Option<u32>,
    /// Runs of the lane's log.
    pub(super) runs: u32,
}

impl Logs {
    /// Counts the runs. From all lanes of the warp.
    #[inline(always)]
    pub(super) fn read(pool: &PoolDescriptor, log: Extent) -> Self {
        let mut logs =
            Self { logs: pool.logs, units: pool.log_units, first: log.first, second: None, runs: 0 };
        if log.end >= log.first && log.end <= log.link {
            logs.runs = log.end - log.first;
        } else {
            logs.runs = log.link - log.first;
            logs.second = logs.follow(log.link);
        }
        let mut at = logs.second;
        while let Some(window) = Window::open(&logs, at) {
            while let Some(step) = window.step(at) {
                // The unit behind the last run belongs to the segment that is full with it.
                let left = log.end.wrapping_sub(step.segment);
                if !step.is_own {
                } else if left < SEGMENT_UNITS * step.segments {
                    logs.runs += left - left / SEGMENT_UNITS;
                    at = None;
                } else {
                    logs.runs += SEGMENT_RUNS * step.segments;
                    at = step.next;
                    // Of a log that is longer than memory something is wrong.
                    if logs.runs >= logs.units {
                        logs.runs = 0;
                        at = None;
                    }
                }
            }
        }
        logs
    }

    /// The segment behind the one with this link. No link of a log leads out of memory, or to its first segment.
    #[inline(always)]
    fn follow(&self, link: u32) -> Option<u32> {
        let segment = at_unit(self.logs, link).get32(0);
        if segment == 0 || segment > self.units - SEGMENT_UNITS { None } else { Some(segment) }
    }

    /// Time of the first run.
    #[inline(always)]
    pub(super) fn first_time(&self) -> Option<u32> {
        if self.runs == 0 { None } else { Some(run(at_unit(self.logs, self.first).get128(0)).time) }
    }

    /// Hands over all runs, each with its unit and its place: those of the lane's own log take the places from `place` on. Which lane hands over which does
    /// not matter. From all lanes of the warp; `slots` are [`SLOT_BYTES`] of its own.
    #[inline(always)]
    pub(super) fn for_each(&self, slots: SharedMemory, place: u32, mut take: impl FnMut(u32, u32, Run)) {
        let (mut slots, lane) = (slots, simt::lane());
        let firsts = self.runs.min(FIRST_RUNS);
        let (mut place, mut left) = (place, self.runs);
        while left > self.runs - firsts {
            take(place, self.first + (self.runs - left), run(self.unit(self.first + (self.runs - left))));
            place += 1;
            left -= 1;
        }
        let mut at = if left != 0 { self.second } else { None };
        while let Some(window) = Window::open(self, at) {
            slots.set64(8 * lane, [0, 0]);
            simt::sync_warp(ALL);
            while let Some(step) = window.step(at) {
                if step.is_own {
                    slots.set64(8 * step.index, [place, left]);
                    let runs = left.min(SEGMENT_RUNS * step.segments);
                    place += runs;
                    left -= runs;
                    at = if left != 0 { step.next } else { None };
                }
            }
            simt::sync_warp(ALL);
            // The lane's segment may be one of those behind the one that its log's lane has come to.
            let [place, left] = slots.get64(8 * lane);
            let heads = simt::ballot(ALL, left != 0) & (2_u32 << lane).wrapping_sub(1);
            let head = if heads == 0 { lane } else { 31 - heads.leading_zeros() };
            let before = lane - head;
            let (place, left) = (simt::shuffle(ALL, place, head), simt::shuffle(ALL, left, head));
            let runs = left.saturating_sub(SEGMENT_RUNS * before).min(SEGMENT_RUNS);
            let runs = if before <= window.following(head) { runs } else { 0 };
            slots.set64(8 * lane, [place + SEGMENT_RUNS * before, runs]);
            simt::sync_warp(ALL);
            // Neighbours take units that are neighbours, so that they get them together; each has some on the way before it looks at the first.
            let mut number = lane;
            while number < SEGMENT_RUNS * WARP_LANES {
                let a = Found::look(self, &window, slots, number);
                let b = Found::look(self, &window, slots, number + WARP_LANES);
                let c = Found::look(self, &window, slots, number + 2 * WARP_LANES);
                let d = Found::look(self, &window, slots, number + 3 * WARP_LANES);
                a.hand_over(&mut take);
                b.hand_over(&mut take);
                c.hand_over(&mut take);
                d.hand_over(&mut take);
                number += 4 * WARP_LANES;
            }
            simt::sync_warp(ALL);
        }
    }

    #[inline(always)]
    fn unit(&self, unit: u32) -> [u32; 4] {
        at_unit(self.logs, unit).get128(0)
    }
}

/// A run out of a window, or none.
#[derive(Clone, Copy)]
struct Found {
    is_there: bool,
    place: u32,
    unit: u32,
    words: [u32; 4],
}

impl Found {
    /// The run with this number among those for which there is room in the window.
    #[inline(always)]
    fn look(logs: &Logs, window: &Window, slots: SharedMemory, number: u32) -> Self {
        let (segment, run) = (number / SEGMENT_RUNS, number % SEGMENT_RUNS);
        // Behind the last segment there is none.
        let [place, runs] = slots.get64(8 * (segment % WARP_LANES));
        let is_there = run < runs && segment < WARP_LANES;
        let unit = window.first + SEGMENT_UNITS * segment + run;
        // Some unit, if there is none there.
        let words = logs.unit(if is_there { unit } else { window.first });
        Self { is_there, place: place + run, unit, words }
    }

    #[inline(always)]
    fn hand_over(self, take: &mut impl FnMut(u32, u32, Run)) {
        if self.is_there {
            take(self.place, self.unit, run(self.words));
        }
    }
}

/// 32 segments that lie together in memory.
#[derive(Clone, Copy)]
struct Window {
    first: u32,
    /// Where the link of the lane's segment leads.
    link: Option<u32>,
    /// Segments whose link leads to the next in memory, which is in the window, too.
    follows: u32,
}

/// One step of all lanes that can go on in a window.
struct Step {
    /// Whether this lane is one of them.
    is_own: bool,
    /// Where it is, in memory and in the window.
    segment: u32,
    index: u32,
    /// How many segments it takes at once.
    segments: u32,
    /// Where it is then.
    next: Option<u32>,
}

impl Window {
    /// The window for lanes that have come to segments; none if no lane has.
    #[inline(always)]
    fn open(logs: &Logs, at: Option<u32>) -> Option<Self> {
        let first = least(at.unwrap_or(NEVER));
        if first == NEVER {
            return None;
        }
        let own = first + SEGMENT_UNITS * simt::lane();
        let link = if own <= logs.units - SEGMENT_UNITS { logs.follow(own + SEGMENT_RUNS) } else { None };
        let follows = simt::ballot(ALL, link == Some(own + SEGMENT_UNITS)) & (NEVER >> 1);
        Some(Self { first, link, follows })
    }

    /// How many segments follow the one with this index, one by one.
    #[inline(always)]
    fn following(&self, index: u32) -> u32 {
        (self.follows >> index).trailing_ones()
    }

    /// The lanes' next step; none if no lane is at a segment of the window.
    #[inline(always)]
    fn step(&self, at: Option<u32>) -> Option<Step> {
        let segment = at.unwrap_or(NEVER);
        let beyond = segment.wrapping_sub(self.first);
        let index = beyond / SEGMENT_UNITS;
        // One that does not lie as the others do begins a window of its own.
        let is_own = at.is_some() && index < WARP_LANES && beyond.is_multiple_of(SEGMENT_UNITS);
        if simt::ballot(ALL, is_own) == 0 {
            return None;
        }
        let index = index % WARP_LANES;
        let following = self.following(index);
        let next = simt::shuffle(ALL, self.link.unwrap_or(0), index + following);
        Some(Step {
            is_own,
            segment,
            index,
            segments: following + 1,
            next: if next == 0 { None } else { Some(next) },
        })
    }
}
