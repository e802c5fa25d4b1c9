//! Triad: a = b + factor c over long arrays, with a grid that exactly fills the device. No operation rounds,
//! so [`check()`] requires exact elements.

mod check;

use std::time::Duration;

use warptrace_host::{Buffer, Launcher};
use warptrace_kernels::triad::at;

pub use self::check::check;
use crate::grid::Grid;
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernel and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "triad",
    modules: &[warptrace_kernels::triad::MODULE],
    automatic: &[warptrace_kernels::triad::automatic::MODULE],
};

/// Default number of elements per array.
pub const DEFAULT_ELEMENTS: u32 = 1 << 20;
/// Maximum number of elements: 4 GiB per array.
pub const MAX_ELEMENTS: u32 = 1 << 30;
/// Factor of `c`.
pub const FACTOR: f32 = 3.0;

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriadOptions {
    /// Number of launches; each computes the whole array.
    pub passes: u32,
    /// Grid of each launch. `None`: as many threads as the device holds at once.
    pub grid: Option<Grid>,
}

impl Default for TriadOptions {
    fn default() -> Self {
        Self { passes: 1, grid: None }
    }
}

/// Input arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrays {
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Arrays {
    /// Creates arrays of `elements` small whole numbers. Fails if that is 0 or over [`MAX_ELEMENTS`].
    pub fn new(elements: u32) -> Result<Self, WorkloadError> {
        if elements == 0 || elements > MAX_ELEMENTS {
            let allowed = "an array has 1 to 2^30 elements";
            return Err(WorkloadError::Option { option: "elements", value: elements.to_string(), allowed });
        }
        let numbers = |different: u32| (0..elements).map(|index| (index % different) as f32).collect();
        Ok(Self { b: numbers(1021), c: numbers(509) })
    }

    /// Number of elements per array.
    pub fn elements(&self) -> usize {
        self.b.len()
    }

    fn expected(&self, index: usize) -> f32 {
        self.b[index] + FACTOR * self.c[index]
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct TriadOutcome {
    /// Output array.
    pub a: Vec<f32>,
    /// Total kernel time.
    pub kernel: Duration,
    /// Number of launches.
    pub launches: u32,
    /// Grid of each launch.
    pub grid: Grid,
}

/// Computes the array, `options.passes` times. Fails if the device or the recording fails.
pub fn run(
    launcher: &mut dyn Launcher,
    arrays: &Arrays,
    options: &TriadOptions,
) -> Result<TriadOutcome, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    let grid = options.grid.unwrap_or_else(|| Grid::as_many_as_fit(run.device()));
    let b = Buffer::upload(run.device(), &arrays.b)?;
    let c = Buffer::upload(run.device(), &arrays.c)?;
    // NaN marks elements that no thread writes.
    let a = Buffer::<f32>::filled(run.device(), arrays.elements(), 0xff)?;
    let call = warptrace_kernels::triad::triad(a.global(), b.global(), c.global(), FACTOR);
    for _ in 0..options.passes {
        // SAFETY: the three arrays have the same length and outlive the launch.
        unsafe { run.launch(&call, &grid.independent()) }?;
    }
    let outcome =
        TriadOutcome { a: a.download(run.device())?, kernel: run.kernel, launches: run.launches, grid };
    a.free(run.device())?;
    b.free(run.device())?;
    c.free(run.device())?;
    Ok(outcome)
}

fn elements_of(elements: u64, grid: Grid, thread: u64) -> u64 {
    let threads = u64::from(grid.blocks()) * u64::from(grid.threads());
    elements.saturating_sub(thread).div_ceil(threads)
}

/// Returns the events of a pass: one ENTER per warp, and one ELEMENT per element of a warp's first lane,
/// which has the most.
pub fn expected_events(elements: u64, grid: Grid) -> u64 {
    let warps = u64::from(grid.blocks()) * u64::from(grid.threads() / 32);
    (0..warps).map(|warp| 1 + elements_of(elements, grid, warp * 32)).sum()
}

/// Returns the locations of a thread in a pass, in order.
pub fn lane_locations(elements: u64, grid: Grid, thread: u64) -> impl Iterator<Item = u16> {
    let rounds = elements_of(elements, grid, thread);
    std::iter::once(at::ENTER).chain((0..rounds).map(|_| at::ELEMENT))
}
