//! The same computation in plain loops on the CPU.

use rayon::prelude::*;
use warptrace_kernels::fractal::{at, step};

use super::FractalOptions;

const ESCAPE: f64 = 5.0;

/// Steps at pixel `index`, and whether |z|^2 passed the limit at the last of them.
fn pixel(options: &FractalOptions, index: u64) -> (u32, bool) {
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
            return (steps, size > ESCAPE);
        }
    }
}

/// The picture, as [`run`](super::run) computes it.
pub fn reference(options: &FractalOptions) -> Vec<u32> {
    let pixels = u64::from(options.width) * u64::from(options.width);
    (0..pixels).into_par_iter().map(|index| pixel(options, index).0).collect()
}

/// The locations that thread `index` passes, in order.
pub fn lane_locations(options: &FractalOptions, index: u64) -> Vec<u16> {
    if index >= u64::from(options.width) * u64::from(options.width) {
        return vec![at::ENTER, at::OUTSIDE];
    }
    let (steps, escaped) = pixel(options, index);
    let mut locations = vec![at::ENTER];
    locations.resize(1 + steps as usize, at::ITERATE);
    locations.push(if escaped { at::ESCAPED } else { at::IN_SET });
    locations
}

/// Whether some lane of the pixels from `first` on ends in the set, and whether some escapes.
pub(super) fn exits(options: &FractalOptions, first: u64, steps: &[u32]) -> (bool, bool) {
    let escaped = |(index, &steps): (u64, &u32)| {
        // Below the depth only an escape ends the loop; at the depth it must be computed.
        steps < options.depth || pixel(options, index).1
    };
    let mut found = (false, false);
    for lane in (first..).zip(steps) {
        if escaped(lane) {
            found.1 = true;
        } else {
            found.0 = true;
        }
    }
    found
}
