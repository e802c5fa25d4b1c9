//! Fractal: the Mandelbrot set in double precision, one thread a pixel.

use warptrace_device::math::fma_f64;
use warptrace_device::{Global, simt};
use warptrace_macros::kernels;

/// Points whose |z|^2 passes this have left for good.
const ESCAPE: f64 = 5.0;

/// One step of z = z^2 + c: returns the new z and the |z|^2 from before the step.
///
/// The order of operations and roundings is fixed (two fused multiply-adds), so that every device computes
/// the same bits.
#[inline(always)]
pub fn step(x: f64, y: f64, cx: f64, cy: f64) -> (f64, f64, f64) {
    let x2 = x * x;
    let y2 = y * y;
    (fma_f64(x, x, cx - y2), fma_f64(x + x, y, cy), x2 + y2)
}

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Computes `image[row * width + column]`: the number of steps taken at the pixel, 1..=depth.
    ///
    /// Pixel (row, column) is c = (`left` + column * `pixel`, `top` - row * `pixel`). One-dimensional grid
    /// and block, at least `width * width` threads; `depth` is at least 1. Each thread steps until `depth`
    /// steps are done or |z|^2 > 5 (looked at after the step, as the thesis's do-while does).
    #[kernel]
    pub fn fractal(image: Global<u32>, width: u32, depth: u32, left: f64, top: f64, pixel: f64) {
        trace!("ENTER");
        let index = simt::global_thread_x();
        if u64::from(index) >= image.len() {
            trace!("OUTSIDE");
            return;
        }
        let (row, column) = (index / width, index % width);
        let cx = fma_f64(f64::from(column), pixel, left);
        let cy = fma_f64(-f64::from(row), pixel, top);
        let (mut x, mut y) = (cx, cy);
        let mut steps = 0;
        let mut size;
        let mut iterations = trace_loop!("ITERATE");
        loop {
            iterations.tick();
            (x, y, size) = step(x, y, cx, cy);
            steps += 1;
            if steps >= depth || size > ESCAPE {
                break;
            }
        }
        drop(iterations);
        if size > ESCAPE {
            trace!("ESCAPED");
        } else {
            trace!("IN_SET");
        }
        // SAFETY: the index was checked, and no two threads have the same pixel.
        unsafe { image.set(u64::from(index), steps) };
    }
}

pub use kernels::*;
