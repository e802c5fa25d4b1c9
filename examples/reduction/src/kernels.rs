//! The sum of many numbers: each block sums a part in its shared memory.

#[warptrace::kernels]
pub mod reduction {
    use warptrace::device::{BlockIndex, DisjointSlice, shared_arrays, simt, thread};

    /// Threads of a block, a power of two.
    pub const THREADS: u32 = 256;

    shared_arrays! {
        /// What each thread of the block has summed.
        fn partial() -> [u32; THREADS];
    }

    /// Leaves the sum of each block's part of `values` in `sums`, one element a block. Sums wrap around.
    #[kernel]
    pub fn sum(values: &[u32], sums: DisjointSlice<u32, BlockIndex>) {
        let (mut at, step) = (thread::index().get() as usize, thread::count() as usize);
        let mut own = 0u32;
        while at < values.len() {
            own = own.wrapping_add(values[at]);
            at += step;
        }

        let number = simt::linear_thread();
        let partial = partial();
        // SAFETY: blocks have `THREADS` threads, each writes its own element, and all come to the barrier.
        unsafe {
            partial.set(number, own);
            simt::sync_threads();
        }
        let mut half = THREADS / 2;
        while half > 0 {
            // Below one warp's width, this leaves lanes idle.
            if number < half {
                // SAFETY: both are elements. Before the barrier of this round, the lower half of those that
                // are left is read and written by its own threads only, and the upper half only read.
                unsafe { partial.set(number, partial.get(number).wrapping_add(partial.get(number + half))) };
            }
            // SAFETY: all threads go through as many rounds.
            unsafe { simt::sync_threads() };
            half /= 2;
        }

        let Some(leader) = thread::block_leader() else { return };
        let Some((_, out)) = sums.own(leader) else { return };
        // SAFETY: the first element, which nothing writes behind the last barrier.
        *out = unsafe { partial.get(0) };
    }
}
