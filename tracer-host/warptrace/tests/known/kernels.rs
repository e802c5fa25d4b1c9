//! Kernels with known causes of idle lanes.
//!
//! `kernels.ptx` is the output of `warptrace_build::compile` for this file (rustc 1.96). It is stored so that
//! the weights of locations do not depend on the installed compiler.

#[warptrace::kernels]
pub mod known {
    use warptrace::device::{DisjointSlice, simt, thread};

    /// One lane in eight works on its datum. The loop after the branch idles but is not the cause.
    #[kernel]
    pub fn branch(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if data[i] % 8 == 0 {
            for turn in 0..20 {
                *out += turn;
            }
        }
        if data[i] < 1_000 {
            *out += 1;
        }
    }

    /// One lane of a warp executes forty times as many turns as the others.
    #[kernel]
    pub fn long_lane(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let turns = if data[i] % 32 == 5 { 200 } else { 5 };
        for turn in 0..turns {
            *out += turn;
        }
    }

    /// Half of each warp returns early.
    #[kernel]
    pub fn early(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if data[i] % 2 == 0 {
            return;
        }
        for turn in 0..30 {
            *out += turn;
        }
    }

    /// The outer branch is uniform in each warp; the inner one diverges.
    #[kernel]
    pub fn nested(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if data[i] < 64 {
            if data[i] % 4 == 0 {
                for turn in 0..10 {
                    *out += turn;
                }
            }
            *out += 1;
        }
    }

    /// Lanes stay together.
    #[kernel]
    pub fn nothing(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        for turn in 0..10 {
            *out += turn * data[i];
        }
    }

    /// One branch diverges in each turn, for one instruction; another one diverges once, for many.
    #[kernel]
    pub fn small(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let mut sum = 0;
        for turn in 0..8 {
            if data[i] % 2 == turn % 2 {
                sum += turn;
            }
        }
        if data[i] % 4 == 1 {
            sum = (sum ^ data[i]).wrapping_mul(0x9e37_79b1) ^ (sum >> 3);
            sum = (sum ^ data[i]).wrapping_mul(0x85eb_ca6b) ^ (sum >> 5);
            sum = (sum ^ data[i]).wrapping_mul(0xc2b2_ae35) ^ (sum >> 7);
            sum = (sum ^ data[i]).wrapping_mul(0x27d4_eb2f) ^ (sum >> 9);
            sum = (sum ^ data[i]).wrapping_mul(0x1656_67b1) ^ (sum >> 4);
            sum = (sum ^ data[i]).wrapping_mul(0x2545_f491) ^ (sum >> 6);
            sum = (sum ^ data[i]).wrapping_mul(0x4f6c_dd1d) ^ (sum >> 8);
            sum = (sum ^ data[i]).wrapping_mul(0x7feb_352d) ^ (sum >> 2);
        }
        *out = sum;
    }

    /// Two branches with a barrier between: lanes reconverge there after the first; the second idles more.
    #[kernel]
    pub fn barrier(data: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if data[i] % 2 == 0 {
            *out += 1;
        }
        // SAFETY: all threads of the block execute this.
        unsafe { simt::sync_threads() };
        if data[i] % 8 == 1 {
            for turn in 0..20 {
                *out += turn * data[i];
            }
        }
    }
}
