//! Stress: walks that make the lanes of a warp diverge, as a difficult case for the tracer.
//!
//! Every lane derives its path from a hash: loop lengths, branches, early exits. The results are checksums of
//! the paths, so they show whether tracing changed a path. [`lane_locations`] gives each lane's trace, the
//! same on every device. The grouping of lanes into events, and so their number, depends on the device.

mod check;
mod reference;

use std::time::Duration;

use warptrace_host::{Buffer, LaunchShape, Launcher};
use warptrace_kernels::stress::{BINS, COUNTERS};

pub use self::check::{check, check_against};
pub use self::reference::{lane_locations, reference};
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernel and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "stress",
    modules: &[warptrace_kernels::stress::MODULE],
    automatic: &[warptrace_kernels::stress::automatic::MODULE],
};

/// Maximum number of walks: thread numbers have 32 bits.
pub const MAX_WALKS: u32 = 1 << 30;

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StressOptions {
    /// Number of walks, one per thread: 1 to [`MAX_WALKS`].
    pub walks: u32,
    /// Maximum number of rounds of a walk, at least 1. Their number is uniform from 1 to `rounds`, and a walk
    /// also ends with probability 1/128 after each.
    pub rounds: u32,
    /// Seed of the walks.
    pub seed: u32,
    /// Threads per block: a multiple of 32, at most 1,024.
    pub block: u32,
}

impl StressOptions {
    /// Creates options with seed 1 and blocks of 256 threads.
    pub const fn new(walks: u32, rounds: u32) -> Self {
        Self { walks, rounds, seed: 1, block: 256 }
    }

    fn threads(&self) -> u64 {
        u64::from(self.walks).next_multiple_of(u64::from(self.block))
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let error = |option, value: u32, allowed| {
            Err(WorkloadError::Option { option, value: value.to_string(), allowed })
        };
        if self.walks == 0 || self.walks > MAX_WALKS {
            return error("walks", self.walks, "there are 1 to 2^30 walks");
        }
        if self.rounds == 0 {
            return error("rounds", self.rounds, "a walk has at least 1 round");
        }
        if self.block == 0 || self.block > 1024 || !self.block.is_multiple_of(32) {
            return error("block", self.block, "a block has 32 to 1,024 threads, a multiple of 32");
        }
        Ok(())
    }
}

/// Results of the walks: the same on every device, traced or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StressResult {
    /// Checksum of each walk's path.
    pub sums: Vec<u32>,
    /// Number of trace points that each walk passed.
    pub passed: Vec<u32>,
    /// Counters in global memory.
    pub bins: Vec<u32>,
    /// Counters in shared memory, eight per block.
    pub counts: Vec<u32>,
}

impl StressResult {
    /// Returns the sum of active lanes over all events.
    pub fn lane_events(&self, options: &StressOptions) -> u64 {
        // A thread without a walk passes three trace points.
        let outside = options.threads() - u64::from(options.walks);
        self.passed.iter().map(|&passed| u64::from(passed)).sum::<u64>() + 3 * outside
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct StressOutcome {
    /// Results of the walks.
    pub result: StressResult,
    /// Kernel time.
    pub kernel: Duration,
    /// Number of launches: one.
    pub launches: u32,
}

/// Runs the walks. Fails if an option is out of range, or the device or the recording fails.
pub fn run(launcher: &mut dyn Launcher, options: &StressOptions) -> Result<StressOutcome, WorkloadError> {
    options.check()?;
    let mut run = ProgramRun::new(launcher);
    let walks = options.walks as usize;
    let blocks = (options.threads() / u64::from(options.block)) as usize;
    let sums = Buffer::<u32>::filled(run.device(), walks, 0)?;
    let passed = Buffer::<u32>::filled(run.device(), walks, 0)?;
    let bins = Buffer::<u32>::filled(run.device(), BINS as usize, 0)?;
    let counts = Buffer::<u32>::filled(run.device(), blocks * COUNTERS as usize, 0)?;
    let call = warptrace_kernels::stress::stress(
        sums.global(),
        passed.global(),
        bins.global(),
        counts.global(),
        options.seed,
        options.rounds,
    );
    // SAFETY: the arrays have one element per walk, or hold the global counters, or eight counters per block,
    // and outlive the launch; whole warps, with a thread per walk.
    unsafe { run.launch(&call, &LaunchShape::linear(options.walks.into(), options.block)) }?;
    let result = StressResult {
        sums: sums.download(run.device())?,
        passed: passed.download(run.device())?,
        bins: bins.download(run.device())?,
        counts: counts.download(run.device())?,
    };
    let outcome = StressOutcome { result, kernel: run.kernel, launches: run.launches };
    for buffer in [sums, passed, bins, counts] {
        buffer.free(run.device())?;
    }
    Ok(outcome)
}
