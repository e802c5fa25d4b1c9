//! Sum of many numbers: each block sums a part in shared memory.

#[warptrace::kernels]
pub mod reduction {
    use warptrace::device::{BlockIndex, DisjointSlice, shared_arrays, simt, thread};

    /// Threads of a block; a power of two.
    pub const THREADS: u32 = 256;

    shared_arrays! {
        /// Partial sum of each thread of the block.
        fn partial() -> [u32; THREADS];
    }

    /// Writes the sum of each block's part of `values` to `sums`, one element per block. Sums wrap around.
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
        // SAFETY: blocks have `THREADS` threads, each writes its own element, and all reach the barrier.
        unsafe {
            partial.set(number, own);
            simt::sync_threads();
        }
        let mut half = THREADS / 2;
        while half > 0 {
            // When `half` is less than a warp, lanes are idle.
            if number < half {
                // SAFETY: both indices are in bounds. Until the next barrier, only its own thread accesses
                // each of the first `half` elements, and the elements from `half` on are only read.
                unsafe { partial.set(number, partial.get(number).wrapping_add(partial.get(number + half))) };
            }
            // SAFETY: all threads execute the same number of rounds.
            unsafe { simt::sync_threads() };
            half /= 2;
        }

        let Some(leader) = thread::block_leader() else { return };
        let Some((_, out)) = sums.own(leader) else { return };
        // SAFETY: the index is in bounds, and no thread writes the element after the last barrier.
        *out = unsafe { partial.get(0) };
    }
}
