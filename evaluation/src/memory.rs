//! Memory of the process that measures.

/// Asks the allocator to give large pieces back to the system as soon as they are freed, so that each run
/// finds its memory untouched, as it would in a process of its own.
///
/// Otherwise a run's time depends on those before it: glibc keeps what was freed, or not, by what was freed
/// last. Untraced, fractal takes 6 ms or 14 so, for the 16 MiB of its result.
pub(crate) fn give_back_at_once() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// What glibc begins with, before it adapts.
        const MAPPED_FROM: i32 = 128 << 10;
        // SAFETY: sets a parameter of the allocator. Whether that has worked is of no importance to any
        // result.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM) };
    }
}
