//! The blocks that are resident at once on one thread, and the scheduling of their warps.
//!
//! In each round, every warp that can run has one turn of a random number of steps, in random order; both
//! come from the seed. Interacting blocks are resident together, an independent block alone.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use warptrace_device::simt::host::{self, Site};

use crate::context::{BlockCells, Context, LANES, WarpCells};
use crate::error::{LeftBefore, SimError};
use crate::launch::Launch;
use crate::panics;
use crate::random::Random;
use crate::recorder::WarpRecorder;
use crate::simulator::{Counter, Watchdog};
use crate::stack::Arena;
use crate::warp::{Tally, Turn, Warp, bits};

pub(crate) struct Resident<'a> {
    // Coroutines borrow the cells and the context, so they are dropped first.
    warps: Vec<Warp>,
    cells: Box<[WarpCells]>,
    block_cells: Box<[BlockCells]>,
    blocks: Vec<Block>,
    context: Box<Context<'a>>,
    arena: &'a Arena,
    launch: &'a Launch<'a>,
    kernel: &'a (dyn Fn() + Sync),
    rules: Rules,
    pub(crate) tally: Tally,
    /// Lanes that had left before a barrier, in the block with the lowest index.
    pub(crate) left_before: Option<(u64, LeftBefore)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) shared_limit: usize,
    pub(crate) quantum: u32,
    pub(crate) watchdog: Watchdog,
    pub(crate) started: Instant,
}

#[derive(Clone, Copy, Default)]
struct Block {
    live_warps: u32,
    /// Warps whose live lanes all wait at the barrier.
    waiting_warps: u32,
    /// The first waiting warp and its position.
    barrier: Option<(u32, Site)>,
}

/// Consecutive rounds in which all warps only spun.
#[derive(Default)]
struct Calm {
    rounds: u64,
    /// Number of latest rounds with only `Yield` operations.
    yield_rounds: u64,
}

impl<'a> Resident<'a> {
    pub(crate) fn new(
        launch: &'a Launch<'a>,
        kernel: &'a (dyn Fn() + Sync),
        blocks: usize,
        arena: &'a Arena,
        rules: Rules,
    ) -> Self {
        let warps = blocks * launch.warps_per_block() as usize;
        debug_assert!(arena.slots() >= warps * LANES);
        Self {
            warps: (0..warps).map(|_| Warp::new()).collect(),
            cells: (0..warps).map(|_| WarpCells::new()).collect(),
            block_cells: (0..blocks).map(|_| BlockCells::default()).collect(),
            blocks: vec![Block::default(); blocks],
            context: Box::new(Context::new(launch, rules.shared_limit)),
            arena,
            launch,
            kernel,
            rules,
            tally: Tally::default(),
            left_before: None,
        }
    }

    /// Runs as many blocks as fit, from linear index `first`, to their end. Reports to `progress`.
    pub(crate) fn run(&mut self, first: u64, progress: &Counter<'_>) -> Result<(), SimError> {
        self.start(first);
        let mut random = Random::of_block(self.launch.seed, first);
        self.as_current(|resident| {
            let result = resident.schedule(&mut random, first, progress);
            if result.is_err() {
                resident.unwind();
            }
            result
        })
    }

    /// Runs `work` with this thread's lanes as the current lanes.
    fn as_current<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let context: *const Context<'a> = &*self.context;
        // SAFETY: the box keeps the context at its address, and no `&mut` to it is created.
        host::enter(unsafe { &*context }, || work(self))
    }

    fn start(&mut self, first: u64) {
        let per_block = self.launch.warps_per_block();
        let threads = self.launch.block_threads();
        let [grid_x, grid_y, _] = self.launch.grid.map(u64::from);
        for slot in 0..self.blocks.len() {
            let linear = first + slot as u64;
            let coordinates = [linear % grid_x, linear / grid_x % grid_y, linear / grid_x / grid_y];
            let index = coordinates.map(|coordinate| coordinate as u32);
            let block = &self.block_cells[slot];
            block.index.set(index);
            block.shared.borrow_mut().start_block(self.launch.dynamic_shared);
            self.blocks[slot] = Block { live_warps: per_block, ..Block::default() };
            for number in 0..per_block {
                let at = slot * per_block as usize + number as usize;
                let lanes = (threads - number * LANES as u32).min(LANES as u32);
                let live = u32::MAX >> (LANES as u32 - lanes);
                let cells = &self.cells[at];
                let recorder = match self.recording_warp(linear, number) {
                    // SAFETY: guaranteed by `Launch::traced` or `Launch::streamed`; each warp starts once.
                    Some(warp) => unsafe {
                        let sm = self.launch.multiprocessor(linear);
                        WarpRecorder::new(&self.launch.memory, self.launch.recording, warp, sm)
                    },
                    None => WarpRecorder::off(),
                };
                cells.start(block, number, self.launch.block, recorder);
                self.warps[at].start(index, number, live);
                for lane in bits(live) {
                    let stack_slot = at * LANES + lane;
                    // SAFETY: each slot belongs to one lane, whose last coroutine has ended. Cells, context,
                    // kernel and arena outlive the warps, which are dropped first.
                    let coroutine = unsafe {
                        let stack = self.arena.stack(stack_slot);
                        self.context.coroutine(cells, lane, stack, self.arena.floor(stack_slot), self.kernel)
                    };
                    self.warps[at].lanes[lane] = Some(coroutine);
                }
            }
        }
    }

    fn recording_warp(&self, block: u64, warp_in_block: u32) -> Option<u32> {
        let block = u32::try_from(block).ok()?;
        self.launch.memory.warp_index(block, warp_in_block, self.launch.warps_per_block())
    }

    fn schedule(&mut self, random: &mut Random, first: u64, progress: &Counter<'_>) -> Result<(), SimError> {
        let mut queue: Vec<u32> = (0..self.warps.len() as u32).collect();
        let mut next = Vec::with_capacity(queue.len());
        let (mut calm, steps_before) = (Calm::default(), self.tally.steps);
        while !queue.is_empty() {
            random.shuffle(&mut queue);
            let before = self.tally;
            let mut only_spinning = true;
            for &at in &queue {
                let budget = 1 + random.below(self.rules.quantum);
                match self.turn(at, budget)? {
                    Turn::Spinning => next.push(at),
                    Turn::Spent => {
                        next.push(at);
                        only_spinning = false;
                    }
                    Turn::Finished => {
                        only_spinning = false;
                        self.leave_block(at, first, &mut next, progress);
                    }
                    Turn::AtBarrier(site) => {
                        only_spinning = false;
                        self.arrive_at_barrier(at, site, first, &mut next)?;
                    }
                }
                self.check_limits(at, steps_before)?;
            }
            std::mem::swap(&mut queue, &mut next);
            next.clear();
            progress.look_at_clock();
            let moved = !only_spinning || self.tally.lanes_left != before.lanes_left;
            calm.count(moved, self.tally.work_steps != before.work_steps);
            if let (true, Some(&at)) = (calm.is_over(&self.rules.watchdog), queue.first()) {
                let warp = &self.warps[at as usize];
                return Err(SimError::Livelock {
                    rounds: calm.rounds,
                    block: warp.block,
                    warp: warp.number,
                    waiting: warp.waiting(&self.cells[at as usize]),
                });
            }
        }
        Ok(())
    }

    #[inline]
    fn turn(&mut self, at: u32, budget: u32) -> Result<Turn, SimError> {
        let at = at as usize;
        self.warps[at].turn(&self.cells[at], &self.context, &mut self.tally, budget)
    }

    /// Removes an ended warp from its block. This may complete the block's barrier.
    fn leave_block(&mut self, at: u32, first: u64, next: &mut Vec<u32>, progress: &Counter<'_>) {
        let slot = (at / self.launch.warps_per_block()) as usize;
        self.blocks[slot].live_warps -= 1;
        if self.blocks[slot].live_warps == 0 {
            progress.block_done();
        }
        self.open_barrier(slot, first, next);
    }

    fn arrive_at_barrier(
        &mut self,
        at: u32,
        site: Site,
        first_block: u64,
        next: &mut Vec<u32>,
    ) -> Result<(), SimError> {
        let slot = (at / self.launch.warps_per_block()) as usize;
        let number = self.warps[at as usize].number;
        let block = &mut self.blocks[slot];
        block.waiting_warps += 1;
        let first = *block.barrier.get_or_insert((number, site));
        if first.1 != site {
            // Neither warp can continue before the other has arrived, so waiting for the rest is useless.
            let block = self.warps[at as usize].block;
            return Err(SimError::BarrierMismatch { block, first, second: (number, site) });
        }
        self.open_barrier(slot, first_block, next);
        Ok(())
    }

    /// Opens the barrier if every live warp of the block waits at it.
    fn open_barrier(&mut self, slot: usize, first: u64, next: &mut Vec<u32>) {
        let block = &mut self.blocks[slot];
        if block.waiting_warps == 0 || block.waiting_warps != block.live_warps {
            return;
        }
        block.waiting_warps = 0;
        let barrier = block.barrier.take();
        let linear = first + slot as u64;
        let per_block = self.launch.warps_per_block() as usize;
        let warps = slot * per_block..(slot + 1) * per_block;
        let clock = self.launch.recording.waits.then(|| {
            let clocks = self.cells[warps.clone()].iter().map(|cells| cells.recorder.borrow().clock());
            clocks.max().unwrap_or(0)
        });
        for at in warps {
            let warp = &mut self.warps[at];
            if warp.live != 0 {
                if let Some(clock) = clock {
                    self.cells[at].recorder.borrow_mut().wait_until(clock);
                }
                if let (lanes @ 1.., Some((_, barrier))) = (warp.left(), barrier)
                    && self.left_before.is_none_or(|(lowest, _)| linear < lowest)
                {
                    let left = LeftBefore { block: warp.block, warp: warp.number, lanes, barrier };
                    self.left_before = Some((linear, left));
                }
                warp.release_barrier(&self.cells[at]);
                next.push(at as u32);
            }
        }
    }

    fn check_limits(&self, at: u32, steps_before: u64) -> Result<(), SimError> {
        if self.launch.interrupt.is_some_and(|asked| asked.load(Ordering::Relaxed)) {
            return Err(SimError::Interrupted);
        }
        let watchdog = &self.rules.watchdog;
        let late = |limit: Duration| self.rules.started.elapsed() > limit;
        let too_many = watchdog.steps.filter(|&limit| self.tally.steps - steps_before > limit);
        let too_long = watchdog.time.filter(|&limit| late(limit));
        if too_many.is_none() && too_long.is_none() {
            return Ok(());
        }
        let (warp, cells) = (&self.warps[at as usize], &self.cells[at as usize]);
        let (block, number, waiting) = (warp.block, warp.number, warp.waiting(cells));
        Err(match (too_many, too_long) {
            (None, Some(limit)) => SimError::TooLong { limit, block, warp: number, waiting },
            (limit, _) => SimError::TooManySteps { limit: limit.unwrap_or(0), block, warp: number, waiting },
        })
    }

    /// Ends all lanes and drops the values on their stacks.
    fn unwind(&mut self) {
        self.context.unwinding.set(true);
        let scheduler = panics::set_in_lane(true);
        for (warp, cells) in self.warps.iter_mut().zip(&self.cells) {
            self.context.select_warp(cells);
            for (lane, coroutine) in warp.lanes.iter_mut().enumerate() {
                self.context.select_lane(lane);
                if let Some(mut coroutine) = coroutine.take() {
                    coroutine.force_unwind();
                }
            }
            warp.live = 0;
        }
        panics::set_in_lane(scheduler);
        self.context.unwinding.set(false);
    }
}

impl Drop for Resident<'_> {
    /// Lanes remain only if the scheduler or a progress function has panicked.
    fn drop(&mut self) {
        if self.warps.iter().any(|warp| warp.live != 0) {
            self.as_current(|resident| resident.unwind());
        }
    }
}

impl Calm {
    fn count(&mut self, progress: bool, worked: bool) {
        if progress {
            *self = Self::default();
            return;
        }
        self.rounds += 1;
        self.yield_rounds = if worked { 0 } else { self.yield_rounds + 1 };
    }

    fn is_over(&self, watchdog: &Watchdog) -> bool {
        self.rounds > watchdog.spin_rounds || self.yield_rounds > watchdog.yield_rounds
    }
}
