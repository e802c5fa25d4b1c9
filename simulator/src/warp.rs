//! One warp: 32 coroutines and the choice of the group that goes next.
//!
//! # Order
//! Each lane runs by itself up to its next operation. When all lanes that can run have reached one, the group
//! at the lowest program point executes its operation, and its lanes run on (Collange, "Stack-less SIMT
//! reconvergence at low cost", 2011: min-PC). In structured code the lanes that are behind thus catch up with
//! those that wait for them, which is where a GPU reconverges. A group is: same point, same operation, and
//! where the operation has a mask, same mask; it may execute once every live lane of the mask is in it.
//!
//! # Spinning
//! Min-PC alone would starve the lane that a spinning lane of its own warp waits for. After
//! [`SPINS_BEFORE_OTHERS`] spins in a row the other groups get a step each, lowest first.

use warptrace_device::simt::host::{Site, WarpOp};

use crate::context::{Context, LANES, LaneCoroutine, WarpCells};
use crate::error::{Place, SimError, Waiting, op_mask};
use crate::panics;
use crate::site::NO_POINT;

const SPINS_BEFORE_OTHERS: u32 = 16;

/// Steps of one thread of the simulator, and what the watchdog looks at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) lane_steps: u64,
    /// Steps that were no `Yield`.
    pub(crate) work_steps: u64,
    /// Lanes that have left the kernel.
    pub(crate) lanes_left: u64,
}

/// Why a warp's turn has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// All lanes have left the kernel.
    Finished,
    /// All live lanes wait at the block's barrier.
    AtBarrier(Site),
    /// A group spins: others should run.
    Spinning,
    /// The budget of steps is used up.
    Spent,
}

/// A group of lanes that waits at one point with one operation.
#[derive(Clone, Copy)]
struct Group {
    point: u64,
    lanes: u32,
    op: WarpOp,
}

/// The scheduler's side of a warp.
pub(crate) struct Warp {
    pub(crate) block: [u32; 3],
    pub(crate) number: u32,
    pub(crate) lanes: [Option<LaneCoroutine>; LANES],
    /// Lanes that have not left the kernel.
    pub(crate) live: u32,
    /// Lanes whose operation has been answered, or that have not started.
    pub(crate) runnable: u32,
    at_barrier: u32,
    /// Lowest point of the lanes that are neither runnable nor at the barrier.
    parked: u64,
    spins: u32,
    /// Lanes that have yet to get a step beside a spinning group.
    unserved: u32,
}

impl Warp {
    pub(crate) fn new() -> Self {
        Self {
            block: [0; 3],
            number: 0,
            lanes: [const { None }; LANES],
            live: 0,
            runnable: 0,
            at_barrier: 0,
            parked: NO_POINT,
            spins: 0,
            unserved: 0,
        }
    }

    /// Makes this warp `number` of `block`, with the lanes of `live`, whose coroutines are in place.
    pub(crate) fn start(&mut self, block: [u32; 3], number: u32, live: u32) {
        self.block = block;
        self.number = number;
        self.live = live;
        self.runnable = live;
        self.at_barrier = 0;
        self.parked = NO_POINT;
        self.spins = 0;
        self.unserved = 0;
    }

    /// Lets the lanes that wait at the barrier go.
    pub(crate) fn release_barrier(&mut self, cells: &WarpCells) {
        for lane in bits(self.at_barrier) {
            cells.answer[lane].set(0);
        }
        self.runnable = self.at_barrier;
        self.at_barrier = 0;
        self.parked = NO_POINT;
    }

    /// Runs the warp until it has to wait, it spins, or `budget` steps are done.
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
            budget -= self.run_lanes(cells, context, tally, budget - 1)?;
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
                    answer(cells, group.lanes, 0);
                    self.runnable = group.lanes;
                    return Ok(Turn::Spinning);
                }
                WarpOp::SyncThreads => {
                    self.at_barrier |= group.lanes;
                    self.runnable = 0;
                }
                WarpOp::Converge => {
                    answer(cells, group.lanes, group.lanes);
                    self.runnable = group.lanes;
                }
                _ => {
                    self.exchange(cells, group)?;
                    self.runnable = group.lanes;
                }
            }
            tally.work_steps += 1;
            budget -= 1;
            if budget == 0 {
                return Ok(Turn::Spent);
            }
        }
    }

    /// Runs each runnable lane up to its next operation. A lane that runs alone may execute up to `spare` steps
    /// itself; answers how many it did.
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
            }
        }
        panics::set_in_lane(scheduler);
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

    /// The group that ran last, if all of it has reached one point of convergence and still is behind all other
    /// lanes. The common case, and the one that [`choose`](Self::choose) would pick, found without a look at
    /// the others.
    #[inline]
    fn still_first(&self, cells: &WarpCells, context: &Context<'_>, ran: u32) -> Option<Group> {
        if ran == 0 {
            return None;
        }
        let first = ran.trailing_zeros() as usize;
        let site = cells.site[first].get()?;
        for lane in bits(ran) {
            let same = cells.site[lane].get().is_some_and(|other| std::ptr::eq(other, site));
            if !same || cells.op[lane].get() != WarpOp::Converge {
                return None;
            }
        }
        let point = context.sites.point(&cells.files, site, WarpOp::Converge);
        (point < self.parked).then_some(Group { point, lanes: ran, op: WarpOp::Converge })
    }

    /// The group that goes next; `None` if all live lanes wait at the barrier.
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
        if group.op == WarpOp::Yield {
            if self.spins >= SPINS_BEFORE_OTHERS {
                self.spins = 0;
                self.unserved &= candidates;
                // A group that may not execute yet cannot be served, so an empty answer starts a new round.
                let served = self.lowest(cells, &points, self.unserved).or_else(|| {
                    self.unserved = candidates;
                    self.lowest(cells, &points, candidates & !group.lanes)
                });
                group = served.unwrap_or(group);
                self.unserved &= !group.lanes;
            }
        }
        self.parked =
            bits(candidates & !group.lanes).map(|lane| points[lane]).min().unwrap_or(NO_POINT);
        Ok(Some(group))
    }

    /// The group at the lowest point that may execute, among those that contain a lane of `among`.
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

    /// Executes a ballot, shuffle, match or `sync_warp`.
    fn exchange(&self, cells: &WarpCells, group: Group) -> Result<(), SimError> {
        let op_of = |lane: usize| cells.op[lane].get();
        match group.op {
            WarpOp::SyncWarp { mask } => answer(cells, group.lanes, mask),
            WarpOp::Ballot { .. } => {
                let votes = bits(group.lanes)
                    .filter(|&lane| matches!(op_of(lane), WarpOp::Ballot { predicate: true, .. }))
                    .fold(0, |votes, lane| votes | 1 << lane);
                answer(cells, group.lanes, votes);
            }
            WarpOp::MatchAny { .. } => {
                let value_of = |lane| if let WarpOp::MatchAny { value, .. } = op_of(lane) { value } else { 0 };
                for lane in bits(group.lanes) {
                    let same = bits(group.lanes)
                        .filter(|&other| value_of(other) == value_of(lane))
                        .fold(0, |same, other| same | 1 << other);
                    cells.answer[lane].set(same);
                }
            }
            _ => {
                for lane in bits(group.lanes) {
                    if let WarpOp::Shuffle { mask, source, .. } = op_of(lane) {
                        let from = source % LANES as u32;
                        if group.lanes & (1 << from) == 0 {
                            let site = cells.site[lane].get().unwrap_or(core::panic::Location::caller());
                            let left = mask & (1 << from) != 0;
                            return Err(SimError::ShuffleSource { place: self.place(lane), site, mask, from, left });
                        }
                        if let WarpOp::Shuffle { value, .. } = op_of(from as usize) {
                            cells.answer[lane].set(value);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// All live lanes are at a barrier: which, or what is wrong with it.
    fn waits(&self, cells: &WarpCells) -> Result<Turn, SimError> {
        let first = cells.site[self.live.trailing_zeros() as usize].get();
        let same = |lane: usize| cells.site[lane].get() == first;
        match first {
            Some(site) if bits(self.live).all(same) => Ok(Turn::AtBarrier(site)),
            _ => Err(SimError::BarrierDivergence {
                block: self.block,
                warp: self.number,
                waiting: self.waiting(cells),
            }),
        }
    }

    /// Some lanes wait for lanes that cannot come: why.
    fn stuck(&self, cells: &WarpCells) -> SimError {
        let candidates = self.live & !self.at_barrier;
        for lane in bits(candidates) {
            let (op, site) = (cells.op[lane].get(), cells.site[lane].get());
            let (Some(mask), Some(site)) = (op_mask(op), site) else { continue };
            let other = bits(mask & candidates).find(|&other| {
                let there = cells.op[other].get();
                cells.site[other].get() == Some(site)
                    && core::mem::discriminant(&there) == core::mem::discriminant(&op)
                    && op_mask(there) != Some(mask)
            });
            if let Some(other) = other {
                return SimError::MasksDiffer {
                    place: self.place(lane),
                    op,
                    site,
                    mask,
                    other_lane: other as u32,
                    other_mask: op_mask(cells.op[other].get()).unwrap_or(0),
                };
            }
        }
        let (block, warp, waiting) = (self.block, self.number, self.waiting(cells));
        if self.at_barrier != 0 {
            SimError::BarrierDivergence { block, warp, waiting }
        } else {
            SimError::Deadlock { block, warp, waiting }
        }
    }

    /// Where the live lanes wait, in groups.
    pub(crate) fn waiting(&self, cells: &WarpCells) -> Vec<Waiting> {
        let mut groups: Vec<Waiting> = Vec::new();
        for lane in bits(self.live) {
            let Some(site) = cells.site[lane].get() else { continue };
            let op = cells.op[lane].get();
            let same = |group: &&mut Waiting| {
                group.site == site
                    && core::mem::discriminant(&group.op) == core::mem::discriminant(&op)
                    && op_mask(group.op) == op_mask(op)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.lanes |= 1 << lane,
                None => groups.push(Waiting { lanes: 1 << lane, op, site }),
            }
        }
        groups
    }

    fn failed(&self, cells: &WarpCells, lane: usize, failure: panics::Failure) -> SimError {
        let place = self.place(lane);
        match failure {
            panics::Failure { message, location: Some(location), panicked: false } => {
                SimError::Failed { place, message, location }
            }
            panics::Failure { message, location, .. } => {
                SimError::Panicked { place, message, location, last_op: cells.site[lane].get() }
            }
        }
    }

    fn place(&self, lane: usize) -> Place {
        Place { block: self.block, warp: self.number, lane: lane as u32 }
    }
}

#[inline]
fn answer(cells: &WarpCells, lanes: u32, value: u32) {
    for lane in bits(lanes) {
        cells.answer[lane].set(value);
    }
}

/// The set bits of `mask`, lowest first.
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
