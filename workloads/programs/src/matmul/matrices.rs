//! Inputs with exact products.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::check_size;
use crate::WorkloadError;

/// ChaCha8 stream of these inputs, different from other inputs' streams. Never change.
pub(super) const STREAM: u64 = 65;
const SIGNIFICANT_BITS: u32 = 24;
/// Maximum number of fraction bits of an element: more would only make small matrices differ from large ones.
const MOST_BITS: u32 = 6;

/// Two square matrices. Elements are multiples of 2^-b in [-1, 1], with b so small that every sum of products
/// is a multiple of 2^-2b that fits into 24 bits. So no operation of a multiplication rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrices {
    size: u32,
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Matrices {
    /// Creates two matrices of `size` rows from a seed. Fails unless `size` is a multiple of 8 up to
    /// [`MAX_SIZE`](super::MAX_SIZE).
    pub fn random(size: u32, seed: u64) -> Result<Self, WorkloadError> {
        check_size(size)?;
        // An element of the product is a sum of `size` products, each at most 1.
        let bits = ((SIGNIFICANT_BITS - size.next_power_of_two().trailing_zeros()) / 2).min(MOST_BITS);
        let mut random = rng(seed, STREAM);
        let mut number = || {
            let steps = random.next_u32() % ((2 << bits) + 1);
            (steps as i32 - (1 << bits)) as f32 / (1 << bits) as f32
        };
        let count = size as usize * size as usize;
        let a = (0..count).map(|_| number()).collect();
        let b = (0..count).map(|_| number()).collect();
        Ok(Self { size, a, b })
    }

    /// Number of rows, equal to the number of columns.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The left matrix, row by row.
    pub fn a(&self) -> &[f32] {
        &self.a
    }

    /// The right matrix, row by row.
    pub fn b(&self) -> &[f32] {
        &self.b
    }
}

pub(super) fn rng(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(stream);
    rng
}

/// Computes the product in plain loops, in double precision: `size` cubed steps.
pub fn reference(matrices: &Matrices) -> Vec<f32> {
    let size = matrices.size as usize;
    let mut product = vec![0.0; size * size];
    product.par_chunks_mut(size).zip(matrices.a.par_chunks(size)).for_each(|(row, factors)| {
        let mut sums = vec![0.0f64; size];
        for (&factor, line) in factors.iter().zip(matrices.b.chunks(size)) {
            for (sum, &number) in sums.iter_mut().zip(line) {
                *sum += f64::from(factor) * f64::from(number);
            }
        }
        for (element, sum) in row.iter_mut().zip(sums) {
            *element = sum as f32;
        }
    });
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::MAX_SIZE;

    #[test]
    fn no_sum_of_products_can_round() {
        for size in [8, 128, 2048, 2056, MAX_SIZE] {
            let bits =
                ((SIGNIFICANT_BITS - u32::next_power_of_two(size).trailing_zeros()) / 2).min(MOST_BITS);
            assert!(bits >= 4);
            // The largest sum, in units of 2^-2b.
            assert!(u64::from(size) << (2 * bits) <= 1 << SIGNIFICANT_BITS, "{size}");
        }
    }

    #[test]
    fn a_product_by_hand() {
        // Row 1 of A times column 2 of B, in units of 2^-12.
        let matrices = Matrices::random(8, 0).unwrap();
        let steps = |number: f32| (number * 64.0) as i32;
        let sum: i32 = (0..8).map(|k| steps(matrices.a()[8 + k]) * steps(matrices.b()[8 * k + 2])).sum();
        assert_eq!(reference(&matrices)[8 + 2], sum as f32 / 4096.0);
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        for size in [0, 4, 12, MAX_SIZE + 8, u32::MAX] {
            let message = Matrices::random(size, 0).unwrap_err().to_string();
            assert!(message.starts_with(&format!("size is {size}: ")), "{message}");
        }
    }
}
