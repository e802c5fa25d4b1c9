//! What is launched, and what comes back.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use warptrace_abi::log::LaunchLogs;
use warptrace_abi::recording::Recording;
use warptrace_abi::stream::StreamLogs;

use crate::error::{LeftBefore, SimError};
use crate::simulator::Watchdog;
use crate::values::ValueSites;

/// CUDA's limits for a launch (CUDA C++ Programming Guide, "Technical specifications per compute
/// capability").
pub mod limits {
    /// Threads of a block.
    pub const BLOCK_THREADS: u32 = 1024;
    /// Threads of a block along x, y and z.
    pub const BLOCK_SIZE: [u32; 3] = [1024, 1024, 64];
    /// Blocks of a grid along x, y and z.
    pub const GRID_SIZE: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
    /// Shared memory of a block, static and dynamic together, in bytes: 227 KiB, as on compute capability
    /// 9.0.
    pub const SHARED_BYTES: usize = 227 << 10;
    /// Warps of a launch: their index in a stream's name has 32 bits.
    pub const LAUNCH_WARPS: u64 = u32::MAX as u64;
}

/// Multiprocessors of which recorded spans of warps tell, if nothing else is said.
const MULTIPROCESSORS: u32 = 4;

/// How the blocks of a launch depend on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interaction {
    /// Blocks neither wait for each other nor care about the order of their atomics: each block runs alone,
    /// from start to end, on one of several threads.
    #[default]
    Independent,
    /// Blocks communicate through global memory (persistent kernels, spinning, worklists): all blocks are
    /// resident at once and their warps take turns on one thread, in an order that the seed decides.
    Global,
}

/// How far a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Blocks that have ended.
    pub blocks_done: u64,
    /// Blocks of the launch.
    pub blocks: u64,
    /// Time since it has begun.
    pub elapsed: Duration,
}

/// Where a launch records.
#[derive(Clone, Copy)]
pub(crate) enum LogMemory {
    /// Nothing is traced.
    None,
    /// Into logs that are read when it has ended.
    Kept(LaunchLogs),
    /// Into logs that the host empties meanwhile. `clock`: by which lanes wait.
    Streamed { logs: StreamLogs, clock: Option<&'static AtomicU64> },
}

impl LogMemory {
    /// The index of a warp among those that record; `None` if it does not.
    pub(crate) fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Kept(logs) => logs.warp_index(block, warp_in_block, warps_per_block),
            Self::Streamed { logs, .. } => logs.warp_index(block, warp_in_block, warps_per_block),
        }
    }
}

/// One launch: the grid and what its threads find there.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared: usize,
    pub(crate) memory: LogMemory,
    pub(crate) recording: Recording,
    pub(crate) interaction: Interaction,
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) multiprocessors: u32,
    pub(crate) values: Option<&'a ValueSites>,
    pub(crate) interrupt: Option<&'a AtomicBool>,
}

impl<'a> Launch<'a> {
    /// A launch of `grid` blocks of `block` threads along x, y and z. Nothing is traced, there is no dynamic
    /// shared memory, blocks are independent, the seed is 0 and all of rayon's threads may be used.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared: 0,
            memory: LogMemory::None,
            recording: Recording::DEFAULT,
            interaction: Interaction::Independent,
            seed: 0,
            threads: None,
            progress: None,
            watchdog: None,
            multiprocessors: MULTIPROCESSORS,
            values: None,
            interrupt: None,
        }
    }

    /// Ends the launch with [`SimError::Interrupted`] once this is set, if there is one.
    #[must_use]
    pub fn interrupt(mut self, asked: Option<&'a AtomicBool>) -> Self {
        self.interrupt = asked;
        self
    }

    /// Gives each block `bytes` of dynamic shared memory.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: usize) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// Traces the launch into `logs`: the warps that are chosen there, or all. A launch of another shape than
    /// `logs` was made for records only the warps that `logs` has.
    ///
    /// # Safety
    /// Every address in `logs` is a host address of memory of the size that the descriptor implies (heads
    /// and first segments of two tracks in a dual recording, log entries up to `claims_end`; spans behind the
    /// accounts if they are recorded), which stays
    /// valid until the launch has returned. Nothing else touches it meanwhile, but accounts and claims
    /// atomically.
    #[must_use]
    pub unsafe fn traced(mut self, logs: LaunchLogs, recording: Recording) -> Self {
        self.memory = LogMemory::Kept(logs);
        self.recording = recording;
        self
    }

    /// Traces the launch into `logs`, which the host empties while it runs, as `warptrace_abi::stream`
    /// says: the warps that are chosen there, or all. A launch of another shape than `logs` was made for
    /// records only the warps that `logs` has.
    ///
    /// A lane that waits for a segment keeps its thread waiting, with all warps that run on it.
    ///
    /// # Safety
    /// Every address in `logs` is a host address of memory that stays valid until the launch has returned: of
    /// the size that the descriptor implies (two streams for each warp that records in a dual recording,
    /// spans behind what is lost if they are recorded), at a multiple of 8, segments at a multiple of 16; the
    /// words of `ended` fill multiples of 8 bytes. So are the segments of which the queue's slots have the
    /// numbers; a segment is one lane's from when a slot names it until another does. Meanwhile others touch
    /// all of this by atomics of eight bytes only. `slots` is not 0.
    #[must_use]
    pub unsafe fn streamed(mut self, logs: StreamLogs, recording: Recording) -> Self {
        self.memory = LogMemory::Streamed { logs, clock: None };
        self.recording = recording;
        self
    }

    /// Lets lanes of a [streamed](Self::streamed) launch that wait for a segment do so by this clock, in
    /// nanoseconds, instead of in real time. Without effect on others.
    #[must_use]
    pub fn clock(mut self, nanoseconds: &'static AtomicU64) -> Self {
        if let LogMemory::Streamed { clock, .. } = &mut self.memory {
            *clock = Some(nanoseconds);
        }
        self
    }

    /// Says which sites the values are that the kernel names. Others are not recorded, and none are unless
    /// the recording has values.
    #[must_use]
    pub fn values(mut self, values: &'a ValueSites) -> Self {
        self.values = Some(values);
        self
    }

    /// Says how the blocks depend on each other.
    #[must_use]
    pub fn interaction(mut self, interaction: Interaction) -> Self {
        self.interaction = interaction;
        self
    }

    /// Chooses among the possible interleavings of warps.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs at most `threads` blocks at a time, on rayon's current pool; 1 runs them in order on the calling
    /// thread. Without effect on [`Interaction::Global`].
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets how many multiprocessors take blocks in turns, for the recorded [spans](warptrace_format::span)
    /// of warps; 4 if not asked for. 0 counts as 1. It changes nothing else.
    #[must_use]
    pub fn multiprocessors(mut self, multiprocessors: u32) -> Self {
        self.multiprocessors = multiprocessors.max(1);
        self
    }

    /// Sets when this launch is stopped, in place of what the simulator was told.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.watchdog = Some(watchdog);
        self
    }

    /// Calls `progress` as blocks end, at most some 256 times, and each second; from any of the threads.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Warps of a block.
    #[must_use]
    pub fn warps_per_block(&self) -> u32 {
        self.block_threads().div_ceil(32)
    }

    /// Returns the multiprocessor of a block.
    pub(crate) fn multiprocessor(&self, block: u64) -> u32 {
        // Less than the number of multiprocessors.
        (block % u64::from(self.multiprocessors)) as u32
    }

    /// Blocks of the launch.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |product, &size| product.saturating_mul(u64::from(size)))
    }

    /// Threads of a block; saturates where CUDA's limits are passed.
    pub(crate) fn block_threads(&self) -> u32 {
        self.block.iter().fold(1, |product, &size| product.saturating_mul(size))
    }

    /// Checks the shape against CUDA's limits.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        const GRID: [&str; 3] = ["grid size x", "grid size y", "grid size z"];
        const BLOCK: [&str; 3] = ["block size x", "block size y", "block size z"];
        let within = |what, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(SimError::Shape { what, value, least, most })
            }
        };
        for axis in 0..3 {
            within(GRID[axis], self.grid[axis].into(), 1, limits::GRID_SIZE[axis].into())?;
            within(BLOCK[axis], self.block[axis].into(), 1, limits::BLOCK_SIZE[axis].into())?;
        }
        within("threads per block", self.block_threads().into(), 1, limits::BLOCK_THREADS.into())?;
        let warps = self.blocks().saturating_mul(self.warps_per_block().into());
        within("warps of the launch", warps, 1, limits::LAUNCH_WARPS)?;
        within("dynamic shared memory in bytes", self.dynamic_shared as u64, 0, limits::SHARED_BYTES as u64)?;
        within("number of threads", self.threads.unwrap_or(1) as u64, 1, u64::MAX)
    }
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("dynamic_shared", &self.dynamic_shared)
            .field("recording", &self.recording)
            .field("interaction", &self.interaction)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Blocks that ran.
    pub blocks: u64,
    /// Warps that ran.
    pub warps: u64,
    /// Operations that groups of lanes executed.
    pub steps: u64,
    /// Those operations counted once per lane that took part, plus one entry per lane.
    pub lane_steps: u64,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Lanes that had left the kernel when others of their warp came to a barrier; of the first such block.
    pub left_before: Option<LeftBefore>,
}
