//! Pseudorandom generator for a launch's seed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), one per block.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of_block(seed: u64, block: u64) -> Self {
        let mut random = Self(seed);
        let salt = random.next();
        Self(salt ^ block.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number in `0..bound`; `bound` is not 0. The bias is below 2^-32.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_words_for_seed_1234567() {
        let mut random = Random(1_234_567);
        let words = [random.next(), random.next(), random.next()];
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn a_shuffle_keeps_the_items_and_depends_on_the_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            Random::of_block(seed, 3).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut sorted = shuffled(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }
}
