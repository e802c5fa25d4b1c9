//! A kernel in which one thread does not get to the end: it traps, writes out of bounds, or waits for ever.
//!
//! It computes nothing. It shows what a trace has of a kernel that fails or hangs.

use warptrace_device::{Global, atomic, simt};
use warptrace_macros::kernels;

/// The thread traps.
pub const TRAP: u32 = 0;
/// It writes far beyond its memory.
pub const STRAY: u32 = 1;
/// It waits until the flag is set.
pub const HANG: u32 = 2;

/// Elements after the flag, at which a stray write goes: 64 TiB.
const FAR: u64 = 1 << 44;

#[kernels(device = warptrace_device, only_marked)]
mod kernels {
    use super::*;

    /// Takes turns; then thread `culprit` does what `how` says, [`TRAP`], [`STRAY`] or [`HANG`], and nothing
    /// for other numbers.
    ///
    /// Thread i takes `turns` + i % 4 turns. One-dimensional grid and block; `flag` has one element.
    #[kernel]
    pub fn fault(flag: Global<u32>, how: u32, culprit: u32, turns: u32) {
        trace!("ENTER");
        let thread = simt::global_thread_x();
        let mut left = turns + thread % 4;
        while left != 0 {
            if left.is_multiple_of(2) {
                trace!("EVEN");
            } else {
                trace!("ODD");
            }
            left -= 1;
        }
        if thread == culprit {
            trace!("CULPRIT");
            if how == TRAP {
                panic!("a trap, as it was asked for");
            }
            if how == STRAY {
                // Not the kernel's memory, on purpose. SAFETY: none; a GPU stops the kernel.
                unsafe { flag.set(FAR, 1) };
            }
            if how == HANG {
                // SAFETY: there is one element, reached by atomics only.
                while unsafe { atomic::load_u32(flag.at(0)) } == 0 {
                    trace!("SPIN");
                }
            }
        }
        trace!("DONE");
    }
}

pub use kernels::*;
