//! One warp: 32 coroutines and the selection of the next group.
//!
//! # Order
//! Each lane runs up to its next operation. When all runnable lanes have reached one, the group at the lowest
//! program point executes its operation, and its lanes continue (Collange, "Stack-less SIMT reconvergence at
//! low cost", 2011: min-PC). In structured code, lanes at earlier points thus catch up with the lanes that
//! wait for them, where a GPU reconverges. In loops, `#[kernels]` makes lanes wait at the end of each body
//! (`WarpOp::Join`) for lanes that are still inside it. The lanes of a group have the same point, operation
//! and mask, if any. A group may execute when it contains every live lane of the mask.
//!
//! # Spinning
//! Min-PC alone would starve a lane for which a spinning lane of the same warp waits. After
//! [`SPINS_BEFORE_OTHERS`] consecutive spins, each other group executes one step, lowest point first.

mod diagnosis;
mod exchange;

use warptrace_device::simt::host::{Site, WarpOp};

use crate::context::{Context, LANES, LaneCoroutine, WarpCells};
use crate::error::{SimError, op_mask};
use crate::panics;
use crate::site::NO_POINT;

const SPINS_BEFORE_OTHERS: u32 = 16;
/// A warp without a spin in this number of steps is not considered spinning.
const SPIN_STEPS: u32 = 1024;

/// Steps of one thread of the simulator, and the counters for the watchdog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) lane_steps: u64,
    /// Steps other than `Yield`.
    pub(crate) work_steps: u64,
    pub(crate) lanes_left: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    Finished,
    AtBarrier(Site),
    /// A group spun, possibly shortly before the budget was used up. Other warps should run.
    Spinning,
    Spent,
}

#[derive(Clone, Copy)]
struct Group {
    point: u64,
    lanes: u32,
    op: WarpOp,
}

pub(crate) struct Warp {
    pub(crate) block: [u32; 3],
    pub(crate) number: u32,
    pub(crate) lanes: [Option<LaneCoroutine>; LANES],
    /// Lanes that have not left the kernel.
    pub(crate) live: u32,
    started: u32,
    /// Lanes whose operation is complete, or that have not started.
    pub(crate) runnable: u32,
    at_barrier: u32,
    /// Lowest point of the lanes at the barrier.
    barrier: u64,
    /// Lowest point of the lanes that are not runnable.
    parked: u64,
    since_yield: u32,
    spins: u32,
    /// Lanes that have not had a step in the current round next to a spinning group.
    unserved: u32,
}

impl Warp {
    pub(crate) fn new() -> Self {
        Self {
            block: [0; 3],
            number: 0,
            lanes: [const { None }; LANES],
            live: 0,
            started: 0,
            runnable: 0,
            at_barrier: 0,
            barrier: NO_POINT,
            parked: NO_POINT,
            since_yield: u32::MAX,
            spins: 0,
            unserved: 0,
        }
    }

    /// Initializes this as warp `number` of `block` with the lanes of `live`, whose coroutines exist.
    pub(crate) fn start(&mut self, block: [u32; 3], number: u32, live: u32) {
        self.block = block;
        self.number = number;
        self.live = live;
        self.started = live;
        self.runnable = live;
        self.at_barrier = 0;
        self.barrier = NO_POINT;
        self.parked = NO_POINT;
        self.since_yield = u32::MAX;
        self.spins = 0;
        self.unserved = 0;
    }

    pub(crate) fn left(&self) -> u32 {
        self.started & !self.live
    }

    pub(crate) fn release_barrier(&mut self, cells: &WarpCells) {
        for lane in bits(self.at_barrier) {
            cells.answer[lane].set(0);
        }
        self.runnable = self.at_barrier;
        self.at_barrier = 0;
        self.barrier = NO_POINT;
        self.parked = NO_POINT;
    }

    /// Runs the warp until it must wait, spins, or has executed `budget` steps.
    pub(crate) fn turn(
        &mut self,
        cells: &WarpCells,
        context: &Context<'_>,
        tally: &mut Tally,
        mut budget: u32,
    ) -> Result<Turn, SimError> {
        context.select_warp(cells);
        loop {
            let ran = self.runnable;
            let by_itself = self.run_lanes(cells, context, tally, budget - 1)?;
            budget -= by_itself;
            self.since_yield = self.since_yield.saturating_add(by_itself);
            if self.live == 0 {
                return Ok(Turn::Finished);
            }
            let ran = ran & self.live;
            let group = match self.still_first(cells, context, ran) {
                Some(group) => group,
                None => match self.choose(cells, context)? {
                    Some(group) => group,
                    None => return self.waits(cells),
                },
            };
            tally.steps += 1;
            tally.lane_steps += u64::from(group.lanes.count_ones());
            match group.op {
                WarpOp::Yield => {
                    self.spins += 1;
                    self.since_yield = 0;
                    answer(cells, group.lanes, 0);
                    self.runnable = group.lanes;
                    return Ok(Turn::Spinning);
                }
                WarpOp::SyncThreads => {
                    self.at_barrier |= group.lanes;
                    self.barrier = self.barrier.min(group.point);
                    self.runnable = 0;
                }
                WarpOp::Converge | WarpOp::Rejoin | WarpOp::Located { .. } | WarpOp::Join => {
                    answer(cells, group.lanes, group.lanes);
                    self.runnable = group.lanes;
                }
                _ => {
                    self.exchange(cells, group)?;
                    self.runnable = group.lanes;
                }
            }
            tally.work_steps += 1;
            self.since_yield = self.since_yield.saturating_add(1);
            budget -= 1;
            if budget == 0 {
                return Ok(if self.since_yield < SPIN_STEPS { Turn::Spinning } else { Turn::Spent });
            }
        }
    }

    /// Runs each runnable lane to its next operation. One alone may take `spare` steps; returns their number.
    #[inline]
    fn run_lanes(
        &mut self,
        cells: &WarpCells,
        context: &Context<'_>,
        tally: &mut Tally,
        spare: u32,
    ) -> Result<u32, SimError> {
        let alone = self.runnable.is_power_of_two();
        if alone {
            context.alone_below.set(self.parked);
            context.alone_budget.set(spare);
        }
        let scheduler = panics::set_in_lane(true);
        let before = self.live;
        for lane in bits(self.runnable) {
            context.select_lane(lane);
            let Some(coroutine) = &mut self.lanes[lane] else { continue };
            if coroutine.resume(()).as_return().is_some() {
                self.live &= !(1 << lane);
                tally.lanes_left += 1;
                tally.lane_steps += 1;
                if let Some(failure) = cells.failure.take() {
                    panics::set_in_lane(scheduler);
                    context.alone_below.set(0);
                    return Err(self.failed(cells, lane, failure));
                }
                cells.recorder.borrow_mut().leave(lane);
            }
        }
        panics::set_in_lane(scheduler);
        if before != self.live {
            cells.recorder.borrow_mut().leave_values(before & !self.live);
        }
        if !alone {
            return Ok(0);
        }
        let steps = spare - context.alone_budget.get();
        tally.steps += u64::from(steps);
        tally.lane_steps += u64::from(steps);
        tally.work_steps += u64::from(steps);
        context.alone_below.set(0);
        Ok(steps)
    }

    /// Returns the group that ran last, if its lanes reached one convergence point and it is first again. A
    /// fast path with the result of [`choose`](Self::choose), without checking the other lanes.
    #[inline]
    fn still_first(&mut self, cells: &WarpCells, context: &Context<'_>, ran: u32) -> Option<Group> {
        if ran == 0 {
            return None;
        }
        let first = ran.trailing_zeros() as usize;
        let (site, op, calls) = (cells.site[first].get()?, cells.op[first].get(), cells.calls[first].get());
        if !is_point(op) {
            return None;
        }
        for lane in bits(ran) {
            let same = cells.site[lane].get().is_some_and(|other| std::ptr::eq(other, site));
            if !same || cells.op[lane].get() != op || cells.calls[lane].get() != calls {
                return None;
            }
        }
        let point = cells.point(first, &context.sites);
        (point < self.parked).then_some(Group { point, lanes: ran, op })
    }

    /// Returns the next group; `None` if all live lanes wait at the barrier.
    fn choose(&mut self, cells: &WarpCells, context: &Context<'_>) -> Result<Option<Group>, SimError> {
        let candidates = self.live & !self.at_barrier;
        if candidates == 0 {
            return Ok(None);
        }
        let mut points = [NO_POINT; LANES];
        for lane in bits(candidates) {
            points[lane] = cells.point(lane, &context.sites);
            let op = cells.op[lane].get();
            if let (Some(mask), Some(site)) = (op_mask(op), cells.site[lane].get())
                && mask & (1 << lane) == 0
            {
                return Err(SimError::NotInMask { place: self.place(lane), op, site, mask });
            }
        }
        let Some(mut group) = self.lowest(cells, &points, candidates) else { return Err(self.stuck(cells)) };
        if group.op == WarpOp::Yield && self.spins >= SPINS_BEFORE_OTHERS {
            self.spins = 0;
            self.unserved &= candidates;
            // A group that may not execute yet cannot have a step, so an empty result starts a new round.
            let served = self.lowest(cells, &points, self.unserved).or_else(|| {
                self.unserved = candidates;
                self.lowest(cells, &points, candidates & !group.lanes)
            });
            group = served.unwrap_or(group);
            self.unserved &= !group.lanes;
        }
        if self.passes_barrier(cells, &group) {
            return Err(self.diverged_at_barrier(cells));
        }
        let parked = bits(candidates & !group.lanes).map(|lane| points[lane]);
        self.parked = parked.fold(self.barrier, u64::min);
        Ok(Some(group))
    }

    /// Returns the group at the lowest point that may execute, among the groups with a lane of `among`.
    fn lowest(&self, cells: &WarpCells, points: &[u64; LANES], among: u32) -> Option<Group> {
        let candidates = self.live & !self.at_barrier;
        let mut best: Option<Group> = None;
        let mut rest = among;
        while rest != 0 {
            let lead = rest.trailing_zeros() as usize;
            let (point, op) = (points[lead], cells.op[lead].get());
            let lanes = bits(candidates)
                .filter(|&lane| points[lane] == point && op_mask(cells.op[lane].get()) == op_mask(op))
                .fold(0, |lanes, lane| lanes | 1 << lane);
            rest &= !lanes;
            let complete = op_mask(op).is_none_or(|mask| mask & self.live & !lanes == 0);
            if complete && best.is_none_or(|best| point < best.point) {
                best = Some(Group { point, lanes, op });
            }
        }
        best
    }
}

/// Returns true for operations that only determine which lanes are together.
#[inline]
pub(crate) fn is_point(op: WarpOp) -> bool {
    matches!(op, WarpOp::Converge | WarpOp::Located { .. } | WarpOp::Join)
}

#[inline]
fn answer(cells: &WarpCells, lanes: u32, value: u32) {
    for lane in bits(lanes) {
        cells.answer[lane].set(value);
    }
}

/// Returns the set bits of `mask`, lowest first.
#[inline]
pub(crate) fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            lane
        })
    })
}
