//! Parameters and results of launches.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use warptrace_abi::log::LaunchLogs;
use warptrace_abi::recording::Recording;
use warptrace_abi::stream::StreamLogs;

use crate::error::{LeftBefore, SimError};
use crate::simulator::Watchdog;
use crate::values::ValueSites;

/// CUDA's limits for a launch (CUDA C++ Programming Guide, technical specifications).
pub mod limits {
    /// Threads of a block.
    pub const BLOCK_THREADS: u32 = 1024;
    /// Threads of a block along x, y and z.
    pub const BLOCK_SIZE: [u32; 3] = [1024, 1024, 64];
    /// Blocks of a grid along x, y and z.
    pub const GRID_SIZE: [u32; 3] = [0x7fff_ffff, 65_535, 65_535];
    /// Shared memory of a block, static plus dynamic, in bytes: 227 KiB, as on compute capability 9.0.
    pub const SHARED_BYTES: usize = 227 << 10;
    /// Warps of a launch. A stream's name stores the warp index in 32 bits.
    pub const LAUNCH_WARPS: u64 = u32::MAX as u64;
}

/// Default number of multiprocessors in recorded spans of warps.
const MULTIPROCESSORS: u32 = 4;

/// Dependencies between the blocks of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interaction {
    /// Blocks do not wait for each other or depend on the order of atomics. Each runs alone on one thread.
    #[default]
    Independent,
    /// Blocks communicate through global memory (persistent kernels, spinning, worklists). All are resident
    /// at once. Their warps take turns on one thread, in an order that the seed determines.
    Global,
}

/// Progress of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Blocks that have ended.
    pub blocks_done: u64,
    /// Blocks of the launch.
    pub blocks: u64,
    /// Time since the launch began.
    pub elapsed: Duration,
}

#[derive(Clone, Copy)]
pub(crate) enum LogMemory {
    /// Records nothing.
    None,
    /// Logs that are read after the launch has ended.
    Kept(LaunchLogs),
    /// Logs that the host empties meanwhile. Lanes wait by `clock` if set, otherwise by real time.
    Streamed { logs: StreamLogs, clock: Option<&'static AtomicU64> },
}

impl LogMemory {
    /// Returns the index of a warp among those that record; `None` if it does not record.
    pub(crate) fn warp_index(&self, block: u32, warp_in_block: u32, warps_per_block: u32) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Kept(logs) => logs.warp_index(block, warp_in_block, warps_per_block),
            Self::Streamed { logs, .. } => logs.warp_index(block, warp_in_block, warps_per_block),
        }
    }
}

/// Parameters of one launch.
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
    /// Creates a launch of `grid` blocks of `block` threads along x, y and z: not traced, without dynamic
    /// shared memory, with independent blocks, seed 0, and all of rayon's threads.
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

    /// Sets a flag that ends the launch with [`SimError::Interrupted`] when it becomes true.
    #[must_use]
    pub fn interrupt(mut self, asked: Option<&'a AtomicBool>) -> Self {
        self.interrupt = asked;
        self
    }

    /// Sets the bytes of dynamic shared memory of each block.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: usize) -> Self {
        self.dynamic_shared = bytes;
        self
    }

    /// Traces the launch into `logs`: the warps that `logs` selects, or all. Warps outside the shape for
    /// which `logs` was made are not recorded.
    ///
    /// # Safety
    /// Every address in `logs` is a host address of memory with the size that the descriptor implies: heads
    /// and first segments of two tracks in a dual recording, log entries up to `claims_end`, spans after the
    /// accounts if they are recorded. The memory stays valid until the launch returns. Until then, others
    /// access only accounts and claims, by atomic operations.
    #[must_use]
    pub unsafe fn traced(mut self, logs: LaunchLogs, recording: Recording) -> Self {
        self.memory = LogMemory::Kept(logs);
        self.recording = recording;
        self
    }

    /// Like [`traced`](Self::traced), with logs that the host empties during the launch
    /// (`warptrace_abi::stream`). A lane that waits for a segment blocks its thread and all warps on it.
    ///
    /// # Safety
    /// - Every address in `logs` is a host address of memory with the size that the descriptor implies: two
    ///   streams for each warp that records in a dual recording, and spans after `lost` if they are recorded.
    ///   The words of `ended` fill multiples of 8 bytes. The same holds for the segments named in the queue's
    ///   slots.
    /// - The addresses are multiples of 8, and addresses of segments are multiples of 16.
    /// - The memory stays valid until the launch returns. Until then, others access it by 8-byte atomics.
    /// - A segment belongs to one lane from the time a slot names it until another slot does.
    /// - `slots` is not 0.
    #[must_use]
    pub unsafe fn streamed(mut self, logs: StreamLogs, recording: Recording) -> Self {
        self.memory = LogMemory::Streamed { logs, clock: None };
        self.recording = recording;
        self
    }

    /// Sets a clock, in nanoseconds, that a [streamed](Self::streamed) launch uses instead of real time.
    #[must_use]
    pub fn clock(mut self, nanoseconds: &'static AtomicU64) -> Self {
        if let LogMemory::Streamed { clock, .. } = &mut self.memory {
            *clock = Some(nanoseconds);
        }
        self
    }

    /// Sets the sites of named values, if the recording includes values. Other values are not recorded.
    #[must_use]
    pub fn values(mut self, values: &'a ValueSites) -> Self {
        self.values = Some(values);
        self
    }

    /// Sets the dependencies between blocks.
    #[must_use]
    pub fn interaction(mut self, interaction: Interaction) -> Self {
        self.interaction = interaction;
        self
    }

    /// Sets the seed, which selects among the possible interleavings of warps.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Limits the number of blocks that run at a time on rayon's current pool; 1 runs them in order on the
    /// calling thread. [`Interaction::Global`] ignores it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the number of multiprocessors for [spans](warptrace_format::span): 4 by default, at least 1.
    #[must_use]
    pub fn multiprocessors(mut self, multiprocessors: u32) -> Self {
        self.multiprocessors = multiprocessors.max(1);
        self
    }

    /// Sets the limits of this launch, instead of the simulator's.
    #[must_use]
    pub fn watchdog(mut self, watchdog: Watchdog) -> Self {
        self.watchdog = Some(watchdog);
        self
    }

    /// Sets a function that any thread may call: as blocks end, at most about 256 times, and each second.
    #[must_use]
    pub fn progress(mut self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Returns the warps of a block.
    #[must_use]
    pub fn warps_per_block(&self) -> u32 {
        self.block_threads().div_ceil(32)
    }

    pub(crate) fn multiprocessor(&self, block: u64) -> u32 {
        // Less than the number of multiprocessors.
        (block % u64::from(self.multiprocessors)) as u32
    }

    /// Returns the blocks of the launch.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |product, &size| product.saturating_mul(u64::from(size)))
    }

    /// Returns the threads of a block; saturates for sizes outside CUDA's limits.
    pub(crate) fn block_threads(&self) -> u32 {
        self.block.iter().fold(1, |product, &size| product.saturating_mul(size))
    }

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

/// Result of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Blocks that ran.
    pub blocks: u64,
    /// Warps that ran.
    pub warps: u64,
    /// Operations executed by groups of lanes.
    pub steps: u64,
    /// Those operations counted once per participating lane, plus one per lane.
    pub lane_steps: u64,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Lanes that left the kernel before others of their warp reached a barrier, in the lowest such block.
    pub left_before: Option<LeftBefore>,
}
