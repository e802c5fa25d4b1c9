//! Shared memory of traced kernels that keep their lanes' records there.

/// Returns the bytes of dynamic shared memory that a block of a traced kernel needs: the `own` bytes of the
/// kernel, and from the next multiple of 16 on `warp_bytes` for each of `warps`. If `warp_bytes` is 0, that
/// is `own`.
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
