//! The simulator: configuration, stacks kept between launches, and distribution of blocks over threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::context::LANES;
use crate::error::{LeftBefore, SimError};
use crate::launch::{Interaction, Launch, LaunchReport, Progress, limits};
use crate::panics;
use crate::recorder::spans::schedule;
use crate::resident::{Resident, Rules};
use crate::stack::Arena;
use crate::warp::Tally;

/// Virtual nanoseconds between launches that record spans.
const LAUNCH_GAP: u64 = 1_000;
/// Calls of the progress function per launch.
const PROGRESS_CALLS: u64 = 256;

/// Limits that stop a launch that does not end. A loop without any operation cannot be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Maximum consecutive rounds in which every resident warp that can run executes only `spin_hint`.
    pub yield_rounds: u64,
    /// Maximum consecutive rounds in which every such warp ends its turn in `spin_hint`, possibly after trace
    /// points and other operations, no lane leaves the kernel, and no barrier opens.
    pub spin_rounds: u64,
    /// Maximum operations of groups of lanes, such as visits of trace points, by independent block or launch.
    pub steps: Option<u64>,
    /// Maximum wall-clock time of the launch. The only limit that makes the result depend on the machine.
    pub time: Option<Duration>,
}

impl Default for Watchdog {
    /// Returns 10,000 rounds of only spinning, 1,000,000 of other spinning, 10^10 steps, and no time limit.
    fn default() -> Self {
        Self { yield_rounds: 10_000, spin_rounds: 1_000_000, steps: Some(10_000_000_000), time: None }
    }
}

/// Runs launches. Keeps the stacks of launches for later ones.
#[derive(Debug)]
pub struct Simulator {
    stack_bytes: usize,
    shared_bytes: usize,
    quantum: u32,
    watchdog: Watchdog,
    arenas: Mutex<Vec<Arena>>,
    /// The virtual time, in nanoseconds, at which the last launch that recorded spans ended.
    timer: AtomicU64,
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulator {
    /// Creates a simulator with 64 KiB of stack per lane, CUDA's limit on shared memory, turns of up to 64
    /// steps and the default [`Watchdog`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            stack_bytes: 64 << 10,
            shared_bytes: limits::SHARED_BYTES,
            quantum: 64,
            watchdog: Watchdog::default(),
            arenas: Mutex::default(),
            timer: AtomicU64::new(0),
        }
    }

    /// Sets the size of each lane's stack in bytes, rounded up to pages and at least 32 KiB.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes.max(32 << 10);
        self.arenas.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self
    }

    /// Sets the maximum shared memory of a block, static plus dynamic, in bytes.
    #[must_use]
    pub fn shared_bytes(mut self, bytes: usize) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Sets the maximum steps of a warp's turn, at least 1. Small numbers interleave finely but run slower.
    #[must_use]
    pub fn quantum(mut self, steps: u32) -> Self {
        self.quantum = steps.max(1);
        self
    }

    /// Sets the limits that stop a launch that does not end.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.watchdog = watchdog;
        self
    }

    /// Runs `kernel` once for each thread of the launch and waits for the end.
    ///
    /// The result depends only on the launch and its seed, provided that independent blocks are independent.
    /// `kernel` must not use rayon, nor hold a lock across an operation if another lane may request it.
    ///
    /// # Errors
    /// The shape is outside CUDA's limits, a lane failed or panicked, or the kernel misuses an operation,
    /// waits forever or exceeds a limit. If several blocks fail, returns the error of the block with the
    /// lowest index. Data that the kernel wrote before the error stays written. The process aborts if a
    /// destructor panics while a failed launch unwinds its lanes.
    pub fn launch(&self, launch: &Launch<'_>, kernel: &(dyn Fn() + Sync)) -> Result<LaunchReport, SimError> {
        launch.check()?;
        if std::thread::panicking() {
            return Err(SimError::Unwinding);
        }
        panics::install_hook();
        let started = Instant::now();
        let rules = Rules {
            shared_limit: self.shared_bytes,
            quantum: self.quantum,
            watchdog: launch.watchdog.unwrap_or(self.watchdog),
            started,
        };
        let progress = Counter { done: AtomicU64::new(0), beats: AtomicU64::new(0), started, launch };
        let ran = match launch.interaction {
            Interaction::Global => self.run_together(launch, kernel, rules, &progress),
            Interaction::Independent => self.run_apart(launch, kernel, rules, &progress),
        };
        let blocks = launch.blocks();
        if launch.recording.spans {
            let start = self.next_start();
            // A launch has less than 2^32 warps.
            let shape = [blocks as u32, launch.warps_per_block(), launch.multiprocessors];
            // SAFETY: guaranteed by `Launch::traced` or `Launch::streamed`; the launch has ended.
            let end = unsafe { schedule(&launch.memory, launch.recording, shape, start) };
            self.timer.store(end, Ordering::Relaxed);
        }
        let (tally, left_before) = ran?;
        Ok(LaunchReport {
            blocks,
            warps: blocks * u64::from(launch.warps_per_block()),
            steps: tally.steps,
            lane_steps: tally.lane_steps,
            elapsed: started.elapsed(),
            left_before,
        })
    }

    /// Returns the start, in nanoseconds, of the running or next launch with [spans](warptrace_format::span).
    pub fn next_start(&self) -> u64 {
        self.timer.load(Ordering::Relaxed) + LAUNCH_GAP
    }

    fn run_together(
        &self,
        launch: &Launch<'_>,
        kernel: &(dyn Fn() + Sync),
        rules: Rules,
        progress: &Counter<'_>,
    ) -> Result<Ran, SimError> {
        let arena = self.take_arena(launch, launch.blocks())?;
        let mut resident = Resident::new(launch, kernel, launch.blocks() as usize, &arena, rules);
        let result = resident.run(0, progress);
        let ran = (resident.tally, resident.left_before.map(|(_, left)| left));
        drop(resident);
        self.keep_arena(arena);
        result.map(|()| ran)
    }

    fn run_apart(
        &self,
        launch: &Launch<'_>,
        kernel: &(dyn Fn() + Sync),
        rules: Rules,
        progress: &Counter<'_>,
    ) -> Result<Ran, SimError> {
        let workers = workers(launch);
        let arenas =
            (0..workers).map(|_| self.take_arena(launch, 1)).collect::<Result<Vec<_>, SimError>>()?;
        let shared = Work {
            next: AtomicU64::new(0),
            lowest_failed: AtomicU64::new(u64::MAX),
            outcome: Mutex::default(),
        };
        let work = |arena| {
            let mut resident = Resident::new(launch, kernel, 1, &arena, rules);
            shared.run_blocks(launch.blocks(), &mut resident, progress);
            drop(resident);
            self.keep_arena(arena);
        };
        if workers == 1 {
            arenas.into_iter().for_each(work);
        } else {
            rayon::scope(|scope| {
                for arena in arenas {
                    let work = &work;
                    scope.spawn(move |_| work(arena));
                }
            });
        }
        match shared.outcome.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Outcome { error: Some((_, error)), .. } => Err(error),
            Outcome { tally, left_before, .. } => Ok((tally, left_before.map(|(_, left)| left))),
        }
    }

    fn arenas(&self) -> MutexGuard<'_, Vec<Arena>> {
        self.arenas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns stacks for `blocks` resident blocks: the smallest sufficient kept arena, or a new one.
    fn take_arena(&self, launch: &Launch<'_>, blocks: u64) -> Result<Arena, SimError> {
        let lanes = blocks * u64::from(launch.warps_per_block()) * LANES as u64;
        let kept = {
            let mut arenas = self.arenas();
            let fits = arenas.iter().enumerate().filter(|(_, arena)| arena.slots() as u64 >= lanes);
            fits.min_by_key(|(_, arena)| arena.slots()).map(|(at, _)| at).map(|at| arenas.swap_remove(at))
        };
        if let Some(arena) = kept {
            return Ok(arena);
        }
        let slots = usize::try_from(lanes).unwrap_or(usize::MAX);
        Arena::new(slots, self.stack_bytes).map_err(|source| SimError::Stacks {
            lanes,
            stack_bytes: self.stack_bytes,
            source,
        })
    }

    fn keep_arena(&self, arena: Arena) {
        self.arenas().push(arena);
    }
}

fn workers(launch: &Launch<'_>) -> usize {
    let threads = launch.threads.unwrap_or_else(rayon::current_num_threads).max(1);
    threads.min(usize::try_from(launch.blocks()).unwrap_or(usize::MAX))
}

struct Work {
    next: AtomicU64,
    lowest_failed: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// Combined results of the workers. `error` and `left_before` are from the block with the lowest index.
#[derive(Default)]
struct Outcome {
    tally: Tally,
    error: Option<(u64, SimError)>,
    left_before: Option<(u64, LeftBefore)>,
}

type Ran = (Tally, Option<LeftBefore>);

impl Work {
    /// Runs blocks in order until no block is left. Skips blocks after a failed one, but not before it, so
    /// that any schedule of threads finds the lowest failure.
    fn run_blocks(&self, blocks: u64, resident: &mut Resident<'_>, progress: &Counter<'_>) {
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks || block > self.lowest_failed.load(Ordering::Relaxed) {
                break;
            }
            if let Err(error) = resident.run(block, progress) {
                self.lowest_failed.fetch_min(block, Ordering::Relaxed);
                let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
                if outcome.error.as_ref().is_none_or(|(lowest, _)| block < *lowest) {
                    outcome.error = Some((block, error));
                }
            }
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.tally.steps += resident.tally.steps;
        outcome.tally.lane_steps += resident.tally.lane_steps;
        let both = [outcome.left_before, resident.left_before];
        outcome.left_before = both.into_iter().flatten().min_by_key(|(block, _)| *block);
    }
}

pub(crate) struct Counter<'a> {
    done: AtomicU64,
    /// Last reported second.
    beats: AtomicU64,
    started: Instant,
    launch: &'a Launch<'a>,
}

impl Counter<'_> {
    pub(crate) fn block_done(&self) {
        let Some(report) = self.launch.progress else { return };
        let blocks = self.launch.blocks();
        let blocks_done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if blocks_done == blocks || blocks_done.is_multiple_of(blocks.div_ceil(PROGRESS_CALLS)) {
            report(Progress { blocks_done, blocks, elapsed: self.started.elapsed() });
        }
    }

    /// Reports progress once in each second.
    pub(crate) fn look_at_clock(&self) {
        let Some(report) = self.launch.progress else { return };
        let elapsed = self.started.elapsed();
        if self.begins_second(elapsed) {
            let blocks_done = self.done.load(Ordering::Relaxed);
            report(Progress { blocks_done, blocks: self.launch.blocks(), elapsed });
        }
    }

    /// Returns true for the first call in a second.
    fn begins_second(&self, elapsed: Duration) -> bool {
        let second = elapsed.as_secs();
        second > self.beats.load(Ordering::Relaxed)
            && second > self.beats.fetch_max(second, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_is_told_once() {
        let launch = Launch::new([1, 1, 1], [32, 1, 1]);
        let counter = Counter {
            done: AtomicU64::new(0),
            beats: AtomicU64::new(0),
            started: Instant::now(),
            launch: &launch,
        };
        let told = [0, 999, 1000, 1001, 1999, 2500, 2600, 7000, 7999];
        let told = told.map(|millis| counter.begins_second(Duration::from_millis(millis)));
        assert_eq!(told, [false, false, true, false, false, true, false, true, false]);
    }
}
