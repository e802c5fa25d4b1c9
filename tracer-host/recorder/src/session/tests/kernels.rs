//! Kernels of several tests. They are in separate modules, so that their locations have the same IDs.

use warptrace_macros::kernels;

#[kernels(device = warptrace_device, only_marked)]
mod turns_kernel {
    /// Loops.
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
    /// Loops, and then fails.
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
