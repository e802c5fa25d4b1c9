//! Shared memory of traced kernels that keep the records of their lanes there.

/// Returns the bytes of dynamic shared memory for a block of a traced kernel: its `own` bytes, rounded up to
/// a multiple of 16, plus `warp_bytes` for each of `warps`; only `own` if `warp_bytes` is 0.
pub const fn dynamic_shared(own: u32, warps: u64, warp_bytes: u32) -> u64 {
    match warp_bytes {
        0 => own as u64,
        _ => (own as u64).next_multiple_of(16) + warps * warp_bytes as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::dynamic_shared;

    #[test]
    fn records_begin_at_a_multiple_of_16() {
        assert_eq!(
            [dynamic_shared(5, 3, 0), dynamic_shared(0, 3, 64), dynamic_shared(5, 3, 64)],
            [5, 192, 208]
        );
    }
}
