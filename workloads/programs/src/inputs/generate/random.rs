//! Random numbers that are stable across releases.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// ChaCha8 stream of each generator, so that generators never share numbers under one seed. Never renumber.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Rmat = 1,
    Road = 2,
    PowerLaw = 3,
    CoPurchase = 4,
    PointsInTriangle = 5,
    PointsInSquare = 6,
}

/// ChaCha8; the key is the seed's bytes and zeros. `seed_from_u64` is not used, because its expansion may
/// change with the library.
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(purpose as u64);
        Self(rng)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in [0, 1), a multiple of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an unbiased uniform number in 0..n, n > 0 (Lemire, "Fast random integer generation in an
    /// interval", 2019).
    pub(super) fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "there is no number below 0");
        let biased = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next()) * u128::from(n);
            if product as u64 >= biased {
                return (product >> 64) as u64;
            }
        }
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
