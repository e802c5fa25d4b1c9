//! Triad a = b + factor c: a kernel that waits for memory and for nothing else.
//!
//! Its blocks stride over the arrays, so that any grid does; with one that fills the card exactly, no block
//! finds room for itself where something else takes some. (McCalpin, "Memory Bandwidth and Machine Balance in
//! Current High Performance Computers", 1995: STREAM.)

use warptrace_device::math::fma_f32;
use warptrace_device::{Global, simt};
use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Sets each element of `a` to that of `b` plus `factor` times that of `c`.
    ///
    /// One-dimensional grid and block, of any size; the three arrays have as many elements.
    #[kernel]
    pub fn triad(a: Global<f32>, b: Global<f32>, c: Global<f32>, factor: f32) {
        trace!("ENTER");
        let count = a.len();
        let step = u64::from(simt::grid_threads_x());
        let mut index = u64::from(simt::global_thread_x());
        let mut elements = trace_loop!("ELEMENT");
        while index < count {
            elements.tick();
            // SAFETY: the index was checked; each thread has its own elements of `a`, and nothing writes the
            // others.
            unsafe { a.set(index, fma_f32(factor, c.get(index), b.get(index))) };
            index += step;
        }
        drop(elements);
    }
}

pub use kernels::*;
