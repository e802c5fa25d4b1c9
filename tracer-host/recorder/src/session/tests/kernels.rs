//! Kernels of several tests. Each has a module of its own, so that their locations have the same ids.

use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked)]
mod turns_kernel {
    /// Turns.
    #[kernel]
    pub fn turns(turns: u32) {
        for _ in 0..turns {
            trace!("LEFT");
            trace!("RIGHT");
        }
    }
}
pub(super) use turns_kernel::{MODULE, turns};

#[kernels(device = warptrace_device, only_marked)]
mod fails_kernel {
    /// Turns, and fails in the end.
    #[kernel]
    pub fn fails(turns: u32) {
        for _ in 0..turns {
            trace!("LEFT");
            trace!("RIGHT");
        }
        assert!(turns == 0, "as it was told");
    }
}
pub(super) use fails_kernel::fails;
