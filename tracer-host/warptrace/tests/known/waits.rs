//! Kernels that wait.
//!
//! `waits.ptx` is the output of `warptrace_build::compile` for this file (rustc 1.96).

#[warptrace::kernels]
pub mod waiting {
    use warptrace::device::{AtomicSlice, DisjointSlice, simt, thread};

    /// Waits for the block and contains no branch.
    fn meet() {
        // SAFETY: all threads of the block call it equally often.
        unsafe { simt::sync_threads() };
    }

    /// Warp 1 of each block is late at the barrier in the loop, every second turn.
    #[kernel]
    pub fn late(data: &[u32], turns: u32, out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let warp = simt::linear_thread() / 32;
        for turn in 0..turns {
            if warp == 1 && turn % 2 == 0 {
                for k in 0..40 {
                    *out = *out ^ (*out >> 3) ^ (data[i] + k);
                }
            }
            meet();
        }
        // SAFETY: as above.
        unsafe { simt::sync_threads() };
        *out += data[i];
    }

    /// The last thread of a block sets the flag for which all others wait.
    #[kernel]
    pub fn spinning(flags: AtomicSlice<u32>, out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let block = i / 64;
        if i % 64 == 63 {
            flags.store(block, 1);
        }
        while flags.load(block) == 0 {
            simt::spin_hint();
        }
        *out = i as u32;
    }
}
