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

/// Bytes that the process has allocated and not freed, over all threads, where the allocator tells. What it
/// keeps of freed memory is not among them, so they grow only if something is kept.
pub(crate) fn in_use() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: reads the allocator's counters, of all threads.
        let info = unsafe { libc::mallinfo2() };
        u64::try_from(info.uordblks + info.hblkhd).ok()
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_allocated_is_in_use_until_it_is_freed() {
        // Other tests allocate meanwhile, but not so much.
        let before = in_use().expect("this allocator tells");
        let small: Vec<Vec<u8>> = (0..80_000).map(|_| vec![1_u8; 1_000]).collect();
        let large = vec![1_u8; 300 << 20];
        let with = in_use().expect("as before");
        assert!(with > before + (360 << 20), "{before} {with}");
        drop((small, large));
        let after = in_use().expect("as before");
        assert!(after < with - (300 << 20), "{with} {after}");
    }
}
