//! Columns of many kinds, identical in every run.
#![allow(dead_code, reason = "each test uses a part")]

use warptrace_columns::Element;

/// SplitMix64 pseudorandom numbers, by Sebastiano Vigna.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

pub(crate) const KINDS: [&str; 9] = [
    "zero",
    "constant",
    "linear",
    "quadratic",
    "sparse steps",
    "clock",
    "random",
    "random widths",
    "extremes",
];

pub(crate) fn column<T: Element>(kind: &str, length: usize) -> Vec<T> {
    let mut random = Random(length as u64);
    let mut clock = 1 << 40;
    let mut value = |index: u64| match kind {
        "zero" => 0,
        "constant" => 0xdead_beef_cafe,
        "linear" => (1_u64 << 33).wrapping_sub(index * 12),
        "quadratic" => index * index * 3 + index,
        "sparse steps" => {
            clock += u64::from(random.below(90) == 0) * random.below(70_000);
            clock
        }
        "clock" => {
            clock += 400 + random.below(60);
            clock
        }
        "random" => random.next(),
        "random widths" => random.next() >> random.below(64),
        "extremes" => [0, u64::MAX, 1 << 63, 1 << 31, u64::MAX >> 1, 1][random.below(6) as usize],
        kind => panic!("no kind {kind}"),
    };
    (0..length as u64).map(|index| T::truncate(value(index))).collect()
}
