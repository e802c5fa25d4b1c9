//! A hash that makes an order without pattern.

/// Scrambles a number with the finaliser of MurmurHash3 (Appleby, public domain). It is a bijection of 32
/// bits, so different numbers have different results.
#[inline(always)]
pub fn scramble(number: u32) -> u32 {
    let mut h = number;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::scramble;

    // Expected values of fmix32 in the reference implementation.
    #[test]
    fn matches_the_published_finaliser() {
        assert_eq!(scramble(0), 0);
        assert_eq!(scramble(1), 0x514e_28b7);
        assert_eq!(scramble(u32::MAX), 0x81f1_6f39);
    }
}
