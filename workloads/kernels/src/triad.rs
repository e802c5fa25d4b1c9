//! Triad a = b + factor c: a kernel that only waits for memory.
//!
//! The blocks stride over the arrays, so any grid works. With a grid that fills the device exactly, a block
//! finds no room if other code takes some of it. (McCalpin, "Memory Bandwidth and Machine Balance in Current
//! High Performance Computers", 1995: STREAM.)

use warptrace_device::math::fma_f32;
use warptrace_device::{Global, simt};
use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Sets each element of `a` to the element of `b` plus `factor` times the element of `c`.
    ///
    /// One-dimensional grid and block of any size. The three arrays have the same length.
    #[kernel]
    pub fn triad(a: Global<f32>, b: Global<f32>, c: Global<f32>, factor: f32) {
        trace!("ENTER");
        let count = a.len();
        let step = u64::from(simt::grid_threads_x());
        let mut index = u64::from(simt::global_thread_x());
        let mut elements = trace_loop!("ELEMENT");
        while index < count {
            elements.tick();
            // SAFETY: the index is below the length. Each thread has separate elements of `a`, and the launch
            // does not write `b` and `c`.
            unsafe { a.set(index, fma_f32(factor, c.get(index), b.get(index))) };
            index += step;
        }
        drop(elements);
    }
}

pub use kernels::*;
