//! Exact event counts of a run.
//!
//! With n rows, the product has ceil(n / 64) tiles down and ceil(n / 128) across, with four warps each. Every
//! lane takes n / 8 steps. Then each of its four quadrants lies inside or outside the matrix. In a warp at
//! the edge, some lanes may store a quadrant and others not.
//!
//! ```text
//! matmul  a warp: ENTER + n / 8 * STEP + 4 * QUADRANT + for each quadrant:
//!         STORE if it lies in the matrix for some lane, OUTSIDE if it does not for some lane
//! ```
//!
//! If n is a multiple of 128, that is n^2 / 2048 * (n / 8 + 9) events.

use warptrace_kernels::matmul::{
    BLOCK, DEPTH, QUADRANT_COLUMNS, QUADRANT_ROWS, TILE_COLUMNS, TILE_ROWS, at, place,
};

use super::tiles;

const WARP: u64 = 32;

/// Returns whether each of the four quadrants of thread `thread` lies inside a matrix of `size` rows.
fn quadrants(size: u32, thread: u64) -> [bool; 4] {
    let (block, thread) = (thread / u64::from(BLOCK), (thread % u64::from(BLOCK)) as u32);
    let across = u64::from(tiles(size).1);
    let (row, column) = place(thread);
    let row = block / across * u64::from(TILE_ROWS) + u64::from(row);
    let column = block % across * u64::from(TILE_COLUMNS) + u64::from(column);
    let inside = |down: u32, across: u32| {
        row + u64::from(down) < u64::from(size) && column + u64::from(across) < u64::from(size)
    };
    [
        inside(0, 0),
        inside(0, QUADRANT_COLUMNS),
        inside(QUADRANT_ROWS, 0),
        inside(QUADRANT_ROWS, QUADRANT_COLUMNS),
    ]
}

/// Returns the number of events of warp `warp` (its index in the launch) for matrices of `size` rows.
pub fn warp_events(size: u32, warp: u64) -> u64 {
    let lanes: Vec<[bool; 4]> = (0..WARP).map(|lane| quadrants(size, warp * WARP + lane)).collect();
    let ways = |quadrant: usize| {
        let inside = lanes.iter().filter(|lane| lane[quadrant]).count();
        u64::from(inside > 0) + u64::from(inside < lanes.len())
    };
    1 + u64::from(size / DEPTH) + 4 + (0..4).map(ways).sum::<u64>()
}

fn threads(size: u32) -> u64 {
    let (down, across) = tiles(size);
    u64::from(down * across) * u64::from(BLOCK)
}

/// Returns the number of events of a run on matrices of `size` rows.
pub fn expected_events(size: u32) -> u64 {
    let warps = threads(size) / WARP;
    (0..warps).map(|warp| warp_events(size, warp)).sum()
}

/// Returns the locations of thread `thread`, in order.
pub fn lane_locations(size: u32, thread: u64) -> Vec<u16> {
    let mut locations = vec![at::ENTER];
    locations.resize(1 + (size / DEPTH) as usize, at::STEP);
    for inside in quadrants(size, thread) {
        locations.extend([at::QUADRANT, if inside { at::STORE } else { at::OUTSIDE }]);
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_tiles_in_numbers() {
        assert_eq!(expected_events(128), 8 * (16 + 9));
        assert_eq!(expected_events(2048), 4 * 512 * (256 + 9));
    }

    #[test]
    fn a_small_matrix_in_numbers() {
        // Only the first warp's upper left quadrant, with eight rows and columns, has lanes inside.
        assert_eq!(warp_events(8, 0), 1 + 1 + 4 + 2 + 3);
        assert_eq!(expected_events(8), 4 * (1 + 1 + 4 + 4) + 1);
        assert_eq!(lane_locations(8, 0)[..4], [at::ENTER, at::STEP, at::QUADRANT, at::STORE]);
        assert_eq!(lane_locations(8, 0)[4..], [at::QUADRANT, at::OUTSIDE].repeat(3));
        assert_eq!(lane_locations(8, 127)[2..], [at::QUADRANT, at::OUTSIDE].repeat(4));
    }

    #[test]
    fn every_element_is_stored_once() {
        for size in [8, 72, 128, 136, 264] {
            let stored: usize = (0..threads(size))
                .map(|thread| quadrants(size, thread).iter().filter(|&&inside| inside).count())
                .sum();
            assert_eq!(stored * 16, (size * size) as usize, "{size}");
        }
    }
}
