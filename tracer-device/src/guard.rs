//! The guard that brackets a kernel.

/// Opened at a kernel's entry and held until each lane leaves it; the last lane of a warp to leave flushes the
/// warp's stream. [`kernel!`](crate::kernel!) puts it in place.
///
/// Without a codec compiled in, it is nothing.
#[derive(Debug)]
pub struct KernelGuard(());

impl KernelGuard {
    /// Prepares the warp's state.
    ///
    /// # Safety
    /// Called once by every thread of the block, before anything else in the kernel, and the result lives until
    /// the thread leaves the kernel.
    #[inline(always)]
    #[must_use]
    pub unsafe fn open() -> Self {
        #[cfg(recording)]
        crate::warp::open();
        Self(())
    }
}

impl Drop for KernelGuard {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(not(target_arch = "nvptx64"))]
        if std::thread::panicking() {
            // The simulator unwinds the lanes of a launch that failed; there is no stream to save.
            return;
        }
        #[cfg(recording)]
        crate::warp::leave();
    }
}
