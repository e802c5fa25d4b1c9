//! The host's memory, which is also the simulated device's memory.

/// Returns the total memory of the host in bytes; `None` if the system does not report it.
pub fn host_memory() -> Option<u64> {
    // SAFETY: only queries system configuration.
    let [pages, page_bytes] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    let [pages, page_bytes] = [pages, page_bytes].map(|number| u64::try_from(number).ok());
    pages?.checked_mul(page_bytes?).filter(|bytes| *bytes != 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_host_has_memory() {
        // Every machine that runs this test has 64 MiB to 2^50 bytes.
        let bytes = super::host_memory().expect("the system tells");
        assert!((64 << 20..1 << 50).contains(&bytes), "{bytes}");
    }
}
