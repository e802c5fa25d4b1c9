//! The host's memory, which is the simulated device's.

/// Bytes of memory that the host has, used or not; `None` if the system does not tell.
pub fn host_memory() -> Option<u64> {
    // SAFETY: reads numbers of the system.
    let [pages, page_bytes] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    let [pages, page_bytes] = [pages, page_bytes].map(|number| u64::try_from(number).ok());
    pages?.checked_mul(page_bytes?).filter(|bytes| *bytes != 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_host_has_memory() {
        // No machine that runs this has less than 64 MiB, or more than 2^50 bytes.
        let bytes = super::host_memory().expect("the system tells");
        assert!((64 << 20..1 << 50).contains(&bytes), "{bytes}");
    }
}
