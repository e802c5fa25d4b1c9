//! A kernel in which one thread does not get to the end: it traps, writes out of bounds, or waits for ever.
//!
//! It computes nothing. It shows what a trace has of a kernel that fails or hangs.

use warptrace_device::{Global, atomic, kernel, simt, trace_loc, trace_points};

trace_points! {
    /// The decisions of [`fault`](super::fault()).
    pub mod at in "fault.rs" {
        ENTER = 1: "thread starts",
        EVEN = 2: "an even turn",
        ODD = 3: "an odd turn",
        CULPRIT = 4: "the thread that does not get to the end",
        SPIN = 5: "it waits for what never comes",
        DONE = 6: "the thread has got to the end",
    }
}

/// The thread traps.
pub const TRAP: u32 = 0;
/// It writes far behind its memory.
pub const STRAY: u32 = 1;
/// It waits until the flag is set.
pub const HANG: u32 = 2;

/// Elements behind the flag at which a stray write goes: 64 TiB.
const FAR: u64 = 1 << 44;

kernel! {
    /// Takes turns; then thread `culprit` does what `how` says, [`TRAP`], [`STRAY`] or [`HANG`], and nothing
    /// for other numbers.
    ///
    /// Thread i takes `turns` + i % 4 turns. One-dimensional grid and block; `flag` has one element.
    pub fn fault(flag: Global<u32>, how: u32, culprit: u32, turns: u32) {
        trace_loc(at::ENTER);
        let thread = simt::global_thread_x();
        let mut left = turns + thread % 4;
        while left != 0 {
            if left.is_multiple_of(2) {
                trace_loc(at::EVEN);
            } else {
                trace_loc(at::ODD);
            }
            left -= 1;
        }
        if thread == culprit {
            trace_loc(at::CULPRIT);
            if how == TRAP {
                panic!("a trap, as it was asked for");
            }
            if how == STRAY {
                // Not memory of the kernel's: that is what it is for. SAFETY: none; a GPU stops the kernel.
                unsafe { flag.set(FAR, 1) };
            }
            if how == HANG {
                // SAFETY: there is one element, reached by atomics only.
                while unsafe { atomic::load_u32(flag.at(0)) } == 0 {
                    trace_loc(at::SPIN);
                }
            }
        }
        trace_loc(at::DONE);
    }
}
