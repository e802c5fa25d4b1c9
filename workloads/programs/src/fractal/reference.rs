//! CPU reference in plain loops.

use rayon::prelude::*;
use warptrace_kernels::fractal::step;

use super::FractalOptions;
use super::paths::{Path, locations};

const ESCAPE: f64 = 5.0;

/// Computes the steps at pixel `index`, and whether |z|^2 passed the limit at the last step.
pub(super) fn pixel(options: &FractalOptions, index: u64) -> Path {
    let width = u64::from(options.width);
    let (row, column) = (index / width, index % width);
    let side = options.pixel();
    let cx = (column as f64).mul_add(side, options.region.left);
    let cy = (-(row as f64)).mul_add(side, options.region.top);
    let (mut x, mut y) = (cx, cy);
    let mut size;
    let mut steps = 0;
    loop {
        (x, y, size) = step(x, y, cx, cy);
        steps += 1;
        if steps >= options.depth || size > ESCAPE {
            return Path { steps, escaped: size > ESCAPE };
        }
    }
}

/// Computes the same picture as [`run`](super::run).
pub fn reference(options: &FractalOptions) -> Vec<u32> {
    (0..options.pixels()).into_par_iter().map(|index| pixel(options, index).steps).collect()
}

/// Returns the locations of thread `index`, in order.
pub fn lane_locations(options: &FractalOptions, index: u64) -> Vec<u16> {
    locations((index < options.pixels()).then(|| pixel(options, index))).collect()
}
