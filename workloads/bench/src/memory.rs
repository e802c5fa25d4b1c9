//! Memory of the measuring process.

/// Makes the allocator return large blocks to the system when they are freed, so that each run gets fresh
/// memory, as in a separate process. Otherwise glibc may keep them, depending on earlier runs: untraced
/// fractal takes 6 ms or 14 ms, because of the 16 MiB of its result.
pub(crate) fn give_back_at_once() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Initial value in glibc, before it adapts.
        const MAPPED_FROM: i32 = 128 << 10;
        // SAFETY: sets a parameter of the allocator. No result depends on its success.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM) };
    }
}

/// Returns the bytes that are allocated and not freed; `None` if the allocator does not report them. Excludes
/// freed memory that the allocator keeps.
pub(crate) fn in_use() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: only reads the allocator's counters for all threads.
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
        // Other tests allocate at the same time, but less.
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
