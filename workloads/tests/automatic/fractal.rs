//! The kernel of fractal as `workloads/kernels/src/fractal.rs` has it, with the trace points of the macro.

#[warptrace_macros::kernels(device = warptrace_device)]
pub(crate) mod automatic {
    use warptrace_device::math::fma_f64;
    use warptrace_device::{Global, simt};
    use warptrace_kernels::fractal::step;

    const ESCAPE: f64 = 5.0;

    /// As the kernel of the same name.
    #[kernel]
    pub fn fractal(image: Global<u32>, width: u32, depth: u32, left: f64, top: f64, pixel: f64) {
        // at::ENTER
        let index = simt::global_thread_x();
        if u64::from(index) >= image.len() {
            // at::OUTSIDE
            return;
        }
        let (row, column) = (index / width, index % width);
        let cx = fma_f64(f64::from(column), pixel, left);
        let cy = fma_f64(-f64::from(row), pixel, top);
        let (mut x, mut y) = (cx, cy);
        let mut steps = 0;
        let mut size;
        loop {
            // at::ITERATE
            (x, y, size) = step(x, y, cx, cy);
            steps += 1;
            if steps >= depth || size > ESCAPE {
                break;
            }
        }
        if size > ESCAPE {
            // at::ESCAPED
        } else {
            // at::IN_SET
        }
        // SAFETY: the index was checked, and each thread has a pixel of its own.
        unsafe { image.set(u64::from(index), steps) };
    }
}
