//! Reproducible pseudorandom numbers.

/// The generator SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub const fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.bits() % end as u64) as usize }
    }

    /// Returns a number that is useful in damaged files: small, at a limit, or arbitrary.
    pub const fn number(&mut self) -> u64 {
        let bits = self.bits();
        match self.below(6) {
            0 => bits % 4,
            1 => 1_u64.wrapping_shl((bits % 64) as u32),
            2 => 1_u64.wrapping_shl((bits % 64) as u32).wrapping_sub(1),
            3 => u64::MAX - bits % 4,
            4 => bits % 1000,
            _ => bits,
        }
    }
}
