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
        let (mut text, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: both outlive the stream, which is closed before they are read.
        let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut length) };
        if stream.is_null() {
            return None;
        }
        // SAFETY: an open stream.
        let written = unsafe { libc::malloc_info(0, stream) };
        // SAFETY: as above; nothing uses it after this.
        let closed = unsafe { libc::fclose(stream) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the stream has left this many bytes there.
        let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
        let found = (written == 0 && closed == 0).then(|| of_malloc_info(&String::from_utf8_lossy(bytes)));
        // SAFETY: allocated by the stream for its user, and no longer read.
        unsafe { libc::free(text.cast()) };
        found.flatten()
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// What is in use by what `malloc_info` writes: after its heaps, all that was asked of the system, less what
/// is free in it, and what has mappings of its own.
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), allow(dead_code))]
fn of_malloc_info(text: &str) -> Option<u64> {
    let (_, totals) = text.rsplit_once("</heap>")?;
    let size = |name: &str| -> Option<u64> {
        let (_, after) = totals.split_once(name)?;
        let (_, size) = after.split_once("size=\"")?;
        size.split_once('"')?.0.parse().ok()
    };
    let free = size("<total type=\"fast\"")? + size("<total type=\"rest\"")?;
    let mapped = size("<total type=\"mmap\"")?;
    Some((size("<system type=\"current\"")? + mapped).saturating_sub(free))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found_behind_the_heaps() {
        let text = r#"<malloc version="1"><heap nr="0"><total type="rest" count="1" size="7"/></heap>
            <total type="fast" count="2" size="10"/><total type="rest" count="3" size="100"/>
            <total type="mmap" count="1" size="5000"/><system type="current" size="2000"/>
            <system type="max" size="9000"/></malloc>"#;
        assert_eq!(of_malloc_info(text), Some(6890));
        assert_eq!(of_malloc_info("<malloc></malloc>"), None);
    }

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
