//! Matrix multiplication: square matrices in single precision, through tiles in shared memory.
//!
//! A block computes 64 x 128 elements. Inputs are chosen so that no operation rounds, so the product is exact
//! on every device and in every order of summation, and [`check()`] requires exact elements.

mod check;
mod events;
mod matrices;

use std::time::Duration;

use warptrace_host::{Buffer, LaunchShape, Launcher};
use warptrace_kernels::float4::Float4;
use warptrace_kernels::matmul::{BLOCK, DEPTH, TILE_COLUMNS, TILE_ROWS};

pub use self::check::check;
pub use self::events::{expected_events, lane_locations, warp_events};
pub use self::matrices::{Matrices, reference};
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernel and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "matmul",
    modules: &[warptrace_kernels::matmul::MODULE],
    automatic: &[warptrace_kernels::matmul::automatic::MODULE],
};

/// Default number of rows.
pub const DEFAULT_SIZE: u32 = 2048;
/// Maximum number of rows: 1 GiB per matrix.
pub const MAX_SIZE: u32 = 1 << 14;

/// Returns the number of blocks down and across the product of two matrices of `size` rows.
fn tiles(size: u32) -> (u32, u32) {
    (size.div_ceil(TILE_ROWS), size.div_ceil(TILE_COLUMNS))
}

fn check_size(size: u32) -> Result<(), WorkloadError> {
    if size == 0 || size > MAX_SIZE || !size.is_multiple_of(DEPTH) {
        let allowed = "a matrix has 8 to 16,384 rows, a multiple of 8";
        return Err(WorkloadError::Option { option: "size", value: size.to_string(), allowed });
    }
    Ok(())
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct MatmulOutcome {
    /// The product, row by row.
    pub product: Vec<f32>,
    /// Kernel time.
    pub kernel: Duration,
    /// Number of launches: one.
    pub launches: u32,
}

/// Multiplies two matrices. Fails if the device or the recording fails.
pub fn run(launcher: &mut dyn Launcher, matrices: &Matrices) -> Result<MatmulOutcome, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    let size = matrices.size();
    let (down, across) = tiles(size);
    let a = Buffer::upload(run.device(), &vectors(matrices.a()))?;
    let b = Buffer::upload(run.device(), &vectors(matrices.b()))?;
    let c = Buffer::<Float4>::filled(run.device(), matrices.a().len() / 4, 0)?;
    let call = warptrace_kernels::matmul::matmul(a.global(), b.global(), c.global(), size, across);
    let threads = u64::from(down * across) * u64::from(BLOCK);
    // SAFETY: the three arrays have `size * size / 4` vectors and outlive the launch; [`Matrices::random`]
    // checked `size`; the launch has one block per tile.
    unsafe { run.launch(&call, &LaunchShape::linear(threads, BLOCK)) }?;
    let product = c.download(run.device())?.iter().flat_map(|v| [v.x, v.y, v.z, v.w]).collect();
    let outcome = MatmulOutcome { product, kernel: run.kernel, launches: run.launches };
    a.free(run.device())?;
    b.free(run.device())?;
    c.free(run.device())?;
    Ok(outcome)
}

fn vectors(numbers: &[f32]) -> Vec<Float4> {
    let (fours, _) = numbers.as_chunks::<4>();
    fours.iter().map(|&[x, y, z, w]| Float4 { x, y, z, w }).collect()
}
