//! Stress: walks that lead the lanes of a warp apart, to try the tracer where it is hardest.
//!
//! Every lane draws its way from a hash: loop lengths, branches, early ends. The program's results are
//! checksums of the ways, so they show that tracing led no lane astray; [`lane_locations`] says what each
//! lane's trace must be, on every device and in every order of execution. How the lanes of a warp fall into
//! groups is up to the device, and so is the number of a warp's events.

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

/// Most walks: thread numbers have 32 bits.
pub const MAX_WALKS: u32 = 1 << 30;

/// How to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StressOptions {
    /// Walks, one a thread, 1 to [`MAX_WALKS`].
    pub walks: u32,
    /// Most rounds of a walk, at least 1. A walk has 1 to this many, all equally likely, if it is not broken
    /// off before: one round in 128 does that.
    pub rounds: u32,
    /// What the walks are drawn from.
    pub seed: u32,
    /// Threads of a block: a multiple of 32, at most 1,024.
    pub block: u32,
}

impl StressOptions {
    /// Seed 1, in blocks of 256.
    pub const fn new(walks: u32, rounds: u32) -> Self {
        Self { walks, rounds, seed: 1, block: 256 }
    }

    /// Threads of the launch: whole blocks.
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

/// What the walks leave behind: the same on every device, traced or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StressResult {
    /// Each walk's checksum over its way.
    pub sums: Vec<u32>,
    /// How many trace points each walk passed.
    pub passed: Vec<u32>,
    /// Counters in global memory.
    pub bins: Vec<u32>,
    /// Counters in shared memory, eight a block.
    pub counts: Vec<u32>,
}

impl StressResult {
    /// Lanes that pass trace points, over all of them: what the masks of all events add up to.
    pub fn lane_events(&self, options: &StressOptions) -> u64 {
        // A thread without a walk enters, looks for a counter to clear, and finds that it is outside.
        let outside = options.threads() - u64::from(options.walks);
        self.passed.iter().map(|&passed| u64::from(passed)).sum::<u64>() + 3 * outside
    }
}

/// What a run computed.
#[derive(Clone, Debug)]
pub struct StressOutcome {
    /// What the walks left behind.
    pub result: StressResult,
    /// The kernel's time.
    pub kernel: Duration,
    /// Launches: one.
    pub launches: u32,
}

/// Walks.
///
/// # Errors
/// If an option is out of range, or the device or the recording fails.
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
    // SAFETY: two arrays of one element a walk, the counters, and eight counters a block, which outlive the
    // launch; whole warps, and a thread a walk.
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
