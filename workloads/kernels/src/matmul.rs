//! Matrix multiplication C = A B in single precision, through tiles in shared memory.
//!
//! A block computes [`TILE_ROWS`] x [`TILE_COLUMNS`] elements of C. A thread computes 8 x 8 of them in
//! registers: four quadrants of 4 x 4, so that the lanes of a warp read whole lines of shared memory. The
//! tiles of A and B are [`DEPTH`] deep. Shared memory has two pairs: while a block multiplies one, it loads
//! the next. Each pair needs one barrier. (Volkov, Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra",
//! 2008; Nath, Tomov, Dongarra, "An Improved MAGMA GEMM for Fermi GPUs", 2010.)
//!
//! Each element is the fused sum of its products in ascending order, so every device computes the same bits.

use warptrace_device::math::fma_f32;
use warptrace_device::{Global, Shared, shared_arrays, simt};
use warptrace_macros::kernels;

use crate::float4::Float4;

/// Rows of C that a block computes.
pub const TILE_ROWS: u32 = 64;
/// Columns of C that a block computes.
pub const TILE_COLUMNS: u32 = 128;
/// Columns of A and rows of B in a tile. The size of the matrices is a multiple of this.
pub const DEPTH: u32 = 8;
/// Threads of a block.
pub const BLOCK: u32 = 128;
/// Rows between a thread's upper and lower quadrants.
pub const QUADRANT_ROWS: u32 = 16;
/// Columns between a thread's left and right quadrants.
pub const QUADRANT_COLUMNS: u32 = 32;

/// Distance in shared memory between columns of a tile of A, in numbers. Four more than the rows: threads
/// that write neighbouring columns of one row are four columns apart, and so access different banks.
const A_STRIDE: u32 = TILE_ROWS + 4;
/// Vectors in a row of a tile of B.
const B_LINE: u32 = TILE_COLUMNS / 4;
/// Numbers in a tile of A, and vectors in a tile of B.
const A_TILE: u32 = DEPTH * A_STRIDE;
const B_TILE: u32 = DEPTH * B_LINE;

shared_arrays! {
    /// Two tiles of A, column by column.
    fn matmul_a() -> [f32; 2 * A_TILE];
    /// Two tiles of B, row by row.
    fn matmul_b() -> [Float4; 2 * B_TILE];
}

/// Returns the first row and column, in its block's tile, of the elements that thread `thread` computes.
///
/// The elements are the quadrants of 4 x 4 at this place, [`QUADRANT_ROWS`] below, [`QUADRANT_COLUMNS`] to
/// the right, and both. A warp has 32 x 64 elements, and its lanes are arranged 4 x 8.
#[inline(always)]
pub fn place(thread: u32) -> (u32, u32) {
    let (warp, lane) = (thread / simt::WARP_LANES, thread % simt::WARP_LANES);
    (warp / 2 * 32 + lane / 8 * 4, warp % 2 * 64 + lane % 8 * 4)
}

/// Adds the 4 x 4 products of four rows and four columns.
#[inline(always)]
fn outer(sums: [Float4; 4], rows: Float4, columns: Float4) -> [Float4; 4] {
    let row = |sum: Float4, by: f32| Float4 {
        x: fma_f32(by, columns.x, sum.x),
        y: fma_f32(by, columns.y, sum.y),
        z: fma_f32(by, columns.z, sum.z),
        w: fma_f32(by, columns.w, sum.w),
    };
    [row(sums[0], rows.x), row(sums[1], rows.y), row(sums[2], rows.z), row(sums[3], rows.w)]
}

/// Adds the products of column `k` of the tile at `a` and row `k` of the tile at `b` to the four quadrants.
/// The places are those with the thread's first elements.
///
/// # Safety
/// The tiles exist, and no thread writes them.
#[inline(always)]
unsafe fn multiply(
    sums: [[Float4; 4]; 4],
    a: (Shared<Float4>, u32),
    b: (Shared<Float4>, u32),
    k: u32,
) -> [[Float4; 4]; 4] {
    let (a, b) = ((a.0, a.1 + k * (A_STRIDE / 4)), (b.0, b.1 + k * B_LINE));
    // SAFETY: guaranteed by the caller. `k` is below `DEPTH`.
    let (upper, lower, left, right) = unsafe {
        (a.0.get(a.1), a.0.get(a.1 + QUADRANT_ROWS / 4), b.0.get(b.1), b.0.get(b.1 + QUADRANT_COLUMNS / 4))
    };
    [
        outer(sums[0], upper, left),
        outer(sums[1], upper, right),
        outer(sums[2], lower, left),
        outer(sums[3], lower, right),
    ]
}

/// Writes a thread's share of a pair of tiles: four numbers of one row of A, and four numbers of each of two
/// rows of B.
///
/// # Safety
/// The places are in the arrays, each thread has separate places, and no thread reads them at this time.
#[inline(always)]
unsafe fn fill(a_to: u32, b_to: u32, a: Float4, b: [Float4; 2]) {
    let (tiles_a, tiles_b) = (matmul_a(), matmul_b());
    // SAFETY: guaranteed by the caller.
    unsafe {
        tiles_a.set(a_to, a.x);
        tiles_a.set(a_to + A_STRIDE, a.y);
        tiles_a.set(a_to + 2 * A_STRIDE, a.z);
        tiles_a.set(a_to + 3 * A_STRIDE, a.w);
        tiles_b.set(b_to, b[0]);
        tiles_b.set(b_to + DEPTH / 2 * B_LINE, b[1]);
    }
}

#[kernels(device = warptrace_device, only_marked, first_id = 3, automatic = 1)]
mod kernels {
    use super::*;

    /// Stores a quadrant if it is in the matrix.
    ///
    /// # Safety
    /// `c` has `size * size / 4` elements, and only this thread has the quadrant. `row`, `column` and `size`
    /// are multiples of four.
    #[inline(always)]
    unsafe fn store(c: Global<Float4>, size: u32, row: u32, column: u32, sums: [Float4; 4]) {
        trace!("QUADRANT");
        if (row < size) & (column < size) {
            trace!("STORE");
            let line = u64::from(size / 4);
            let first = u64::from(row) * line + u64::from(column / 4);
            // SAFETY: all four rows and columns are in the matrix.
            unsafe {
                c.set(first, sums[0]);
                c.set(first + line, sums[1]);
                c.set(first + 2 * line, sums[2]);
                c.set(first + 3 * line, sums[3]);
            }
        } else {
            trace!("OUTSIDE");
        }
    }

    /// Computes `c` = `a` `b` for square matrices of `size` rows, stored row by row, four numbers an element.
    ///
    /// `size` is a positive multiple of [`DEPTH`]. The arrays have `size * size / 4` elements.
    /// One-dimensional grid: `tiles` blocks of [`BLOCK`] threads for each [`TILE_ROWS`] rows; `tiles` is
    /// `size` / [`TILE_COLUMNS`], rounded up.
    #[kernel]
    pub fn matmul(a: Global<Float4>, b: Global<Float4>, c: Global<Float4>, size: u32, tiles: u32) {
        trace!("ENTER" = 1);
        let thread = simt::thread_idx()[0];
        // `max` shows the compiler that the division is not by 0.
        let (down, across) = (simt::block_idx()[0] / tiles.max(1), simt::block_idx()[0] % tiles.max(1));
        let (top, left) = (down * TILE_ROWS, across * TILE_COLUMNS);
        let line = size / 4;

        // A thread loads four numbers of a row of each tile. Beyond the edge it loads the last row or column
        // instead. Results from these are not stored.
        let (a_row, a_part) = (thread / 2, thread % 2);
        let (b_row, b_part) = (thread / 32, thread % 32);
        let a_from = u64::from((top + a_row).min(size - 1)) * u64::from(line) + u64::from(a_part);
        let b_from = u64::from(b_row) * u64::from(line) + u64::from((left / 4 + b_part).min(line - 1));
        let b_half = u64::from(DEPTH / 2) * u64::from(line);
        let a_to = a_part * 4 * A_STRIDE + a_row;
        let b_to = b_row * B_LINE + b_part;

        let (row, column) = place(thread);
        let (tiles_a, tiles_b) = (matmul_a().cast::<Float4>(), matmul_b());
        let mut sums = [[Float4::default(); 4]; 4];

        // SAFETY: places of the first tiles in matrices and shared memory. The barrier comes before any read,
        // and all threads reach it.
        unsafe {
            fill(a_to, b_to, a.get(a_from), [b.get(b_from), b.get(b_from + b_half)]);
            simt::sync_threads();
        }
        let (mut a_next, mut b_next) = (a_from, b_from);
        let mut pairs = size / DEPTH;
        let mut now = 0;
        let mut steps = trace_loop!("STEP");
        while pairs != 0 {
            steps.tick();
            pairs -= 1;
            let next = 1 - now;
            // The last iteration loads its own pair again, which saves a branch. Incremented places take
            // fewer registers than places computed from the iteration, and with at most 168 registers per
            // thread, three blocks fit on a multiprocessor.
            let more = u64::from(pairs != 0);
            a_next += more * u64::from(DEPTH / 4);
            b_next += more * 2 * b_half;
            // SAFETY: a pair of tiles that exists. Threads wrote this iteration's pair, and read the other
            // one, before the last barrier.
            unsafe {
                let next_a = a.get(a_next);
                let next_b = [b.get(b_next), b.get(b_next + b_half)];
                let here_a = (tiles_a, now * (A_TILE / 4) + row / 4);
                let here_b = (tiles_b, now * B_TILE + column / 4);
                // Unrolled by hand: the compiler does not unroll a loop of this size, and ptxas then cannot
                // load values early.
                sums = multiply(sums, here_a, here_b, 0);
                sums = multiply(sums, here_a, here_b, 1);
                sums = multiply(sums, here_a, here_b, 2);
                sums = multiply(sums, here_a, here_b, 3);
                sums = multiply(sums, here_a, here_b, 4);
                sums = multiply(sums, here_a, here_b, 5);
                sums = multiply(sums, here_a, here_b, 6);
                sums = multiply(sums, here_a, here_b, 7);
                fill(next * A_TILE + a_to, next * B_TILE + b_to, next_a, next_b);
            }
            now = next;
            // SAFETY: all threads make the same number of iterations.
            unsafe { simt::sync_threads() };
        }
        drop(steps);

        let (row, column) = (top + row, left + column);
        // SAFETY: each thread has separate quadrants.
        unsafe {
            store(c, size, row, column, sums[0]);
            store(c, size, row, column + QUADRANT_COLUMNS, sums[1]);
            store(c, size, row + QUADRANT_ROWS, column, sums[2]);
            store(c, size, row + QUADRANT_ROWS, column + QUADRANT_COLUMNS, sums[3]);
        }
    }
}

pub use kernels::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_block_share_its_tile() {
        let mut seen = vec![0; (TILE_ROWS * TILE_COLUMNS) as usize];
        for thread in 0..BLOCK {
            let (row, column) = place(thread);
            for (down, across) in
                [(0, 0), (0, QUADRANT_COLUMNS), (QUADRANT_ROWS, 0), (QUADRANT_ROWS, QUADRANT_COLUMNS)]
            {
                for element in 0..16 {
                    let at = (row + down + element / 4) * TILE_COLUMNS + column + across + element % 4;
                    seen[at as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
    }

    #[test]
    fn no_two_lanes_of_a_warp_write_a_tile_of_a_on_one_bank() {
        let mut banks: Vec<u32> =
            (0..32).map(|thread| (thread % 2 * 4 * A_STRIDE + thread / 2) % 32).collect();
        banks.sort_unstable();
        banks.dedup();
        assert_eq!(banks.len(), 32);
    }
}
