//! Matrix multiplication: square matrices in single precision, through tiles in shared memory.
//!
//! A block computes 64 x 128 elements. The inputs are chosen so that no operation rounds: whatever the device
//! and the order of summation, the product is exact, and [`check()`] demands that it is right to the last
//! bit.

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

/// Rows of the matrices unless another number is given.
pub const DEFAULT_SIZE: u32 = 2048;
/// Most rows: 1 GiB a matrix.
pub const MAX_SIZE: u32 = 1 << 14;

/// Blocks down and across the product of two matrices of `size` rows.
fn tiles(size: u32) -> (u32, u32) {
    (size.div_ceil(TILE_ROWS), size.div_ceil(TILE_COLUMNS))
}

/// Whether the kernel can multiply matrices of `size` rows: a multiple of 8, up to [`MAX_SIZE`].
///
/// # Errors
/// [`WorkloadError::Option`] if not.
fn check_size(size: u32) -> Result<(), WorkloadError> {
    if size == 0 || size > MAX_SIZE || !size.is_multiple_of(DEPTH) {
        let allowed = "a matrix has 8 to 16,384 rows, a multiple of 8";
        return Err(WorkloadError::Option { option: "size", value: size.to_string(), allowed });
    }
    Ok(())
}

/// What a run computed.
#[derive(Clone, Debug)]
pub struct MatmulOutcome {
    /// The product, row by row.
    pub product: Vec<f32>,
    /// The kernel's time.
    pub kernel: Duration,
    /// Launches: one.
    pub launches: u32,
}

/// Multiplies two matrices.
///
/// # Errors
/// If the device or the recording fails.
pub fn run(launcher: &mut dyn Launcher, matrices: &Matrices) -> Result<MatmulOutcome, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    let size = matrices.size();
    let (down, across) = tiles(size);
    let a = Buffer::upload(run.device(), &vectors(matrices.a()))?;
    let b = Buffer::upload(run.device(), &vectors(matrices.b()))?;
    let c = Buffer::<Float4>::filled(run.device(), matrices.a().len() / 4, 0)?;
    let call = warptrace_kernels::matmul::matmul(a.global(), b.global(), c.global(), size, across);
    let threads = u64::from(down * across) * u64::from(BLOCK);
    // SAFETY: three arrays of `size * size / 4` vectors, which outlive the launch; `size` was checked when
    // the matrices were made; a block a tile.
    unsafe { run.launch(&call, &LaunchShape::linear(threads, BLOCK)) }?;
    let product = c.download(run.device())?.iter().flat_map(|v| [v.x, v.y, v.z, v.w]).collect();
    let outcome = MatmulOutcome { product, kernel: run.kernel, launches: run.launches };
    a.free(run.device())?;
    b.free(run.device())?;
    c.free(run.device())?;
    Ok(outcome)
}

/// Numbers in fours.
fn vectors(numbers: &[f32]) -> Vec<Float4> {
    let (fours, _) = numbers.as_chunks::<4>();
    fours.iter().map(|&[x, y, z, w]| Float4 { x, y, z, w }).collect()
}
